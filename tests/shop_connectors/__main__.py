"""`make test-connectors`: the vectors and a shop in every language. As root it installs what is missing from Debian's
packages. What could not run is said in the last line, and the exit code is then 2."""

import os
import shutil
import subprocess
import sys

from tests.shop_connectors.languages import LANGUAGES, ROOT


def main() -> int:
    """Install, run, tell."""
    missing = [package for language in LANGUAGES if language.missing for package in language.debian]
    if missing and os.geteuid() == 0 and shutil.which("apt-get"):
        print(f"installing {', '.join(missing)}", flush=True)
        subprocess.run(["apt-get", "update", "-q"], check=False, stdout=subprocess.DEVNULL)
        install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *missing]
        subprocess.run(install, check=False, stdout=subprocess.DEVNULL)
    tests = [sys.executable, "-m", "pytest", "tests/shop_connectors", *sys.argv[1:]]
    failed = subprocess.run(tests, cwd=ROOT, check=False).returncode
    unchecked = [language for language in LANGUAGES if language.missing]
    for language in unchecked:
        print(f"{language.name} needs {', '.join(language.missing)} (Debian: {', '.join(language.debian)})")
    if unchecked:
        print(f"NOT CHECKED ON THIS MACHINE: {', '.join(language.name for language in unchecked)}", flush=True)
    return failed or (2 if unchecked else 0)


if __name__ == "__main__":
    sys.exit(main())
