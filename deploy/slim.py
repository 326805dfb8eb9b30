"""Takes out of an installed environment what a server never reads: `python deploy/slim.py <folder of the environment>`.

The Dockerfile runs it with the environment's own Python. It drops debug symbols of compiled modules, the languages that
Frontrow does not speak, the tests of packages, and sources that were compiled. Nothing here changes what a server does.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

SOURCES = {".c", ".cpp", ".h", ".hpp", ".pxd", ".pyi", ".pyx"}
TESTS = {"tests", "test"}


def unused(packages: Path, languages: Iterable[str]) -> Iterator[Path]:
    """Files and folders below site-packages that no server reads."""
    spoken = ("root", *languages)
    for file in (packages / "babel" / "locale-data").glob("*.dat"):
        if file.stem.split("_")[0] not in spoken:
            yield file
    for folder in (packages / "faker" / "providers").glob("*/*_*/"):  # made-up people for the framework's examples
        if folder.name not in ("en_US", "__pycache__"):
            yield folder
    for folder in packages.rglob("*/"):
        if folder.name in TESTS or folder == packages / "sqlalchemy" / "testing":
            yield folder
    for file in packages.rglob("*"):
        if file.suffix in SOURCES and file.is_file():
            yield file


def compiled(packages: Path) -> Iterator[Path]:
    """Compiled modules. Libraries that wheels bring along are left alone: some were patched, which `strip` undoes."""
    return (file for file in packages.rglob("*.so") if not file.parent.name.endswith(".libs"))


def strip(file: Path) -> None:
    """Drop what only a debugger reads."""
    subprocess.run(["strip", "--strip-unneeded", str(file)], check=True)  # noqa: S603, S607


def slim(packages: Path, languages: Iterable[str], strip_one: Callable[[Path], None] = strip) -> None:
    """Drop all of it."""
    for path in list(unused(packages, languages)):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    for file in compiled(packages):
        strip_one(file)


def size_mb(folder: Path) -> float:
    """What its files hold, in MB."""
    return sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def main() -> None:
    from frontrow.web.site.languages import LANGUAGES

    environment = Path(sys.argv[1])
    (packages,) = environment.glob("lib/python*/site-packages")
    before = size_mb(environment)
    slim(packages, LANGUAGES)
    print(f"{environment}: {before:.0f} MB, then {size_mb(environment):.0f} MB")


if __name__ == "__main__":
    main()
