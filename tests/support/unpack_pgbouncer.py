"""`python -m tests.support.unpack_pgbouncer FOLDER`: Debian's PgBouncer into a folder, without installing it.

Needs `apt-get`, `dpkg-deb` and a Debian registry. Without them it says so, and the tests use their own pooler alone.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGES = ("pgbouncer", "libc-ares2", "libevent-2.1-7")


def unpack(folder: Path) -> str:
    """Unpack it; a sentence about how it went."""
    if (folder / "usr" / "sbin" / "pgbouncer").exists():
        return "PgBouncer is there"
    with tempfile.TemporaryDirectory() as kept:
        for package in PACKAGES:
            try:
                subprocess.run(
                    ["apt-get", "--quiet=2", "download", package], cwd=kept, check=True, capture_output=True, timeout=60
                )
            except (OSError, subprocess.SubprocessError):
                return f"PgBouncer is not tried by the tests: {package} cannot be had here"
        for archive in Path(kept).glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", archive, folder], check=True)
    return f"PgBouncer is in {folder}"


if __name__ == "__main__":
    print(unpack(Path(sys.argv[1])))
