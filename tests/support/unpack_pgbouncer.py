"""`python -m tests.support.unpack_pgbouncer FOLDER`: Debian's PgBouncer into a folder, without installing it.

Needs `apt-get`, `dpkg-deb` and a Debian registry. Without them it says so, and the tests use their own pooler alone.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGES = (("pgbouncer",), ("libcares2", "libc-ares2"), ("libevent-2.1-7t64", "libevent-2.1-7"))  # by newer names, too


def unpack(folder: Path) -> str:
    """Unpack it; a sentence about how it went."""
    if (folder / "usr" / "sbin" / "pgbouncer").exists():
        return "PgBouncer is there"
    with tempfile.TemporaryDirectory() as kept:
        for names in PACKAGES:
            if not any(_download(name, kept) for name in names):
                return f"PgBouncer is not tried by the tests: {names[0]} cannot be had here"
        for archive in Path(kept).glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", archive, folder], check=True)
    if said := _does_not_start(folder):
        shutil.rmtree(folder)
        return f"PgBouncer is not tried by the tests: {said}"
    return f"PgBouncer is in {folder}"


def _does_not_start(folder: Path) -> str:
    """Why the unpacked program does not start; nothing if it does."""
    libraries = ":".join(map(str, (folder / "usr" / "lib").resolve().glob("*-linux-gnu")))
    command = ["env", f"LD_LIBRARY_PATH={libraries}", str(folder / "usr" / "sbin" / "pgbouncer"), "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.stderr.strip() if done.returncode else ""


def _download(package: str, folder: str) -> bool:
    command = ["apt-get", "--quiet=2", "download", package]
    try:
        return subprocess.run(command, cwd=folder, check=False, capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


if __name__ == "__main__":
    print(unpack(Path(sys.argv[1])))
