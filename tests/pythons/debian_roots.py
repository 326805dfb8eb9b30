"""Minimal Debians in a folder, made by debootstrap and entered by chroot. Needs root on a Debian or Ubuntu.

A root has Python, make, git and the certificates of authorities, and nothing else: no compiler, no Node, no browser
library. A stranger without rights has an account in it. It is unpacked anew for every run from an archive in the cache
folder (`$XDG_CACHE_HOME/frontrow/debian-roots`, else `~/.cache/…`), which is made again after a week.

What is mounted lives in a mount namespace of the command that runs inside, and ends with it, however it ends.
"""

import contextlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

PACKAGES: Final = "python3,python3-venv,make,git,ca-certificates"
TRIES: Final = 3
PAUSE_S: Final = 20.0
MAKE_WITHIN_S: Final = 900
KEEP_S: Final = 7 * 86_400
STRANGER: Final = "stranger"
HOME: Final = f"/home/{STRANGER}"
CERTIFICATES: Final = "etc/ssl/certs/ca-certificates.crt"
SOURCES: Final = Path("/etc/apt")
# how this machine reaches registries
PASSED_ON: Final = re.compile(
    r"(https?|all|no)_proxy|(PIP|UV)_(\w+_)?INDEX(_URL)?|UV_DEFAULT_INDEX|PIP_(TRUSTED_HOST|DEFAULT_TIMEOUT)|npm_config_registry",
    re.IGNORECASE,
)
# debootstrap mounts /proc in what it makes and may leave it there; so its mounts are its own and end with it.
OWN_MOUNTS: Final = ["unshare", "--mount", "--propagation", "private"]
APART: Final = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]
# The shell stays, as root and as the first process of the namespace: it dies with `unshare`, and all others with it. A
# process that has become the stranger is not told that its parent died.
ENTER: Final = """
mount -t proc proc "$1/proc"
mount -t sysfs sysfs "$1/sys"
mount --rbind /dev "$1/dev"
mount -t tmpfs tmpfs "$1/dev/shm"
root=$1 who=$2
shift 2
chroot --userspec="$who:$who" "$root" /usr/bin/env -i "$@" || exit $?
"""


class NotMade(Exception):
    """There is no root, for a reason that is not ours. The message says which."""


def archive_of(sources: str) -> str | None:
    """The address of the Debian archive that apt's sources name, in either of their two forms."""
    lines = re.findall(r"^\s*deb\s+(?:\[[^]]*\]\s+)?(\S+)\s+\S+\s+(?:.*\s)?main\b", sources, re.MULTILINE)
    stanzas = re.findall(r"^URIs:\s*(\S+)", sources, re.MULTILINE)
    found = [one.rstrip("/") for one in (*lines, *stanzas)]
    return next((one for one in found if one.endswith("/debian")), None)


def debian_archive(environ: Mapping[str, str] = os.environ, folder: Path = SOURCES) -> str:
    """The archive to make roots from: named in the environment, else in this machine's own sources."""
    if named := environ.get("DEBIAN_ARCHIVE"):
        return named
    files = [folder / "sources.list", *sorted(folder.glob("sources.list.d/*.list"))]
    files += sorted(folder.glob("sources.list.d/*.sources"))
    found = archive_of("\n".join(file.read_text() for file in files if file.is_file()))
    if found is None:
        raise NotMade("apt's sources name no Debian archive; set DEBIAN_ARCHIVE to one")
    return found


def try_again(act: Callable[[], bool], tries: int = TRIES, sleep: Callable[[float], None] = time.sleep) -> bool:
    """Whether `act` succeeded, tried a few times with pauses in between."""
    for number in range(tries):
        if number:
            sleep(PAUSE_S)
        if act():
            return True
    return False


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where archives of roots are kept between runs. Not in /tmp, where others could put one for us to enter."""
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "frontrow" / "debian-roots"


def is_fresh(archive: Path, now_s: float) -> bool:
    return archive.is_file() and now_s - archive.stat().st_mtime < KEEP_S


def environment(given: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The whole environment of the stranger: nothing of ours but how registries are reached."""
    passed_on = {name: value for name, value in given.items() if PASSED_ON.fullmatch(name)}
    certificates = dict.fromkeys(("SSL_CERT_FILE", "PIP_CERT", "NODE_EXTRA_CA_CERTS"), f"/{CERTIFICATES}")
    return {"HOME": HOME, "USER": STRANGER, "LANG": "C.UTF-8", "PATH": "/usr/bin:/bin", **certificates, **passed_on}


@dataclass(frozen=True)
class DebianRoot:
    """One unpacked root."""

    folder: Path

    def run(self, command: str, within_s: float, log: TextIO, *, who: str = STRANGER) -> int:
        """Run a shell line in the root, in the stranger's copy of the project; its exit code. 124: it took too long."""
        words = ["sh", "-c", f"cd {HOME}/frontrow 2>/dev/null; {command}"]
        named = [f"{name}={value}" for name, value in environment().items()]
        full = [*APART, "sh", "-ec", ENTER, "sh", str(self.folder), who, *named, *words]
        with subprocess.Popen(full, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as running:
            try:
                return running.wait(within_s)
            except subprocess.TimeoutExpired:
                log.write(f"\n`{command}` was ended after {within_s:.0f} s\n")
                return 124
            finally:
                running.kill()  # and with it everything inside

    def python_version(self) -> str:
        """Of the `python3` inside, such as 3.13.5."""
        told = subprocess.run(
            ["chroot", str(self.folder), "python3", "-c", "import platform; print(platform.python_version())"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return told.stdout.strip()

    def welcome_stranger(self, project: Path) -> None:
        """Make the account, give it how this machine reaches registries, and a clone of the project's last commit."""
        root = self.folder
        subprocess.run(["chroot", str(root), "useradd", "--create-home", STRANGER], check=True, timeout=60)
        shutil.copyfile("/etc/resolv.conf", root / "etc/resolv.conf")
        for name in (CERTIFICATES, "etc/pip.conf", "etc/uv/uv.toml"):
            _copy(Path("/") / name, root / name)
        for name in (".config/pip/pip.conf", ".pip/pip.conf", ".config/uv/uv.toml", ".npmrc"):
            _copy(Path.home() / name, root / HOME[1:] / name)
        clone_project(project, root / HOME[1:] / "frontrow")
        subprocess.run(["chroot", str(root), "chown", "-R", f"{STRANGER}:{STRANGER}", HOME], check=True, timeout=300)


def clone_project(project: Path, target: Path) -> None:
    """A clone of its last commit that shares no file with it. The project may belong to another account than ours."""
    anybodys = "--upload-pack=git -c safe.directory=* upload-pack"
    subprocess.run(["git", "clone", "--quiet", "--depth=1", anybodys, f"file://{project}", str(target)], check=True)


def _copy(source: Path, target: Path) -> None:
    if source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


@contextlib.contextmanager
def debian_root(suite: str, log: TextIO) -> Iterator[DebianRoot]:
    """A fresh minimal Debian of this suite, removed afterwards. Raises `NotMade`."""
    if os.geteuid() != 0:
        raise NotMade("a Debian root is made and entered by root only: sudo make test-pythons")
    if subprocess.run([*APART, "true"], capture_output=True, check=False, timeout=60).returncode:
        raise NotMade("this machine allows no namespaces for mounts and processes")
    folder = Path(tempfile.mkdtemp(prefix=f"frontrow-{suite}-"))
    try:
        folder.chmod(0o755)
        archive = cache_folder() / f"{suite}-{platform.machine()}.tar"
        if not is_fresh(archive, time.time()):
            _make_archive(suite, archive, log)
        unpack = ["tar", "--extract", "--numeric-owner", f"--file={archive}", f"--directory={folder}"]
        subprocess.run(unpack, check=True, timeout=MAKE_WITHIN_S)
        yield DebianRoot(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _make_archive(suite: str, archive: Path, log: TextIO) -> None:
    uri = debian_archive()
    _install_debootstrap(log)
    with tempfile.TemporaryDirectory(prefix=f"frontrow-{suite}-") as kept:
        numbers = iter(range(TRIES))

        def bootstrap() -> bool:
            made = Path(kept) / str(next(numbers))
            command = [*OWN_MOUNTS, "debootstrap", "--variant=minbase", f"--include={PACKAGES}", suite, str(made), uri]
            return _runs(command, log) and made.rename(Path(kept) / "root") is not None

        if not try_again(bootstrap):
            raise NotMade(f"debootstrap got no {suite} from {uri} in {TRIES} tries")
        archive.parent.mkdir(parents=True, exist_ok=True)
        unfinished = archive.with_suffix(f".{os.getpid()}")
        if not _runs(
            ["tar", "--create", "--numeric-owner", f"--file={unfinished}", f"--directory={kept}/root", "."], log
        ):
            unfinished.unlink(missing_ok=True)
            raise NotMade(f"there is no room for the root of {suite} at {archive.parent}")
        unfinished.replace(archive)


def _install_debootstrap(log: TextIO) -> None:
    if shutil.which("debootstrap", path=f"{os.environ.get('PATH', '')}:/usr/sbin"):
        return
    wanted = ["apt-get", "install", "--yes", "--no-install-recommends", "debootstrap", "debian-archive-keyring"]

    def install() -> bool:
        _runs(["apt-get", "update"], log)
        return _runs(wanted, log)

    if not try_again(install):
        raise NotMade(f"debootstrap is not here, and `{' '.join(wanted)}` failed {TRIES} times")


def _runs(command: list[str], log: TextIO) -> bool:
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"}
    log.write(f"$ {' '.join(command)}\n")
    log.flush()
    try:
        done = subprocess.run(command, stdout=log, stderr=log, env=env, timeout=MAKE_WITHIN_S, check=False)
        return done.returncode == 0
    except (OSError, subprocess.TimeoutExpired) as error:
        log.write(f"{error}\n")
        return False
