"""Makes the images: Debian's base system, the stand-ins, our own of today and the one before it."""

import contextlib
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

from tests.containers.engine import Engine, Failed
from tests.containers.stand_ins import STAND_INS, archive_of, debian, full_name, python_image, repository
from tests.pythons.debian_roots import OWN_MOUNTS

TRIES = 3
BASE_WITHIN_S, BUILD_WITHIN_S = 600, 1_200
MADE_FROM = "frontrow.made-from"
APT = (Path("/etc/apt/sources.list"), Path("/etc/apt/sources.list.d"))
TRUSTED = (Path("/etc/ssl/certs/ca-certificates.crt"), Path("/etc/pip.conf"))  # how this machine reaches packages
VERSIONS = "src/frontrow/boxoffice/adapters/ledger/migrations/versions"
Say = Callable[[str], None]


class NotPossible(Exception):
    """The run cannot go on, for a reason that is not ours to mend; in one sentence."""


def archive() -> str:
    """Debian's archive as this machine's apt knows it."""
    files = [APT[0], *sorted(APT[1].glob("*"))] if APT[1].exists() else [APT[0]]
    found = archive_of("\n".join(file.read_text() for file in files if file.is_file()))
    if found is None:
        raise NotPossible("apt's sources name no archive of Debian: give it with ARCHIVE=http://…/debian")
    return found


def make_debian(engine: Engine, suite: str, uri: str, say: Say) -> None:
    """Debian's base system as an image, unless it is there."""
    if engine.image_labels(debian(suite)).get(MADE_FROM) == uri:
        say(f"Debian {suite}: kept from the last run")
        return
    program = shutil.which("debootstrap", path="/usr/sbin:/usr/bin:/sbin:/bin")
    assert program
    for number in range(1, TRIES + 1):
        with tempfile.TemporaryDirectory(prefix="frontrow-debian-") as folder:
            words = [*OWN_MOUNTS, program, "--variant=minbase", suite, folder, uri]
            done = subprocess.run(words, capture_output=True, text=True, timeout=BASE_WITHIN_S)
            if done.returncode == 0:
                shutil.rmtree(Path(folder, "var/cache/apt"), ignore_errors=True)
                packed = Path(folder).with_suffix(".tar")
                try:
                    subprocess.run(["tar", "-C", folder, "-cf", str(packed), "."], check=True)
                    change = f"LABEL {MADE_FROM}={uri}"
                    engine("import", "--change", change, str(packed), debian(suite), within_s=BASE_WITHIN_S)
                finally:
                    packed.unlink(missing_ok=True)
                return
        say(f"Debian {suite}: try {number} of {TRIES} failed: {done.stdout.splitlines()[-1:]}")
    raise NotPossible(f"debootstrap could not get Debian {suite} from {uri}, {TRIES} times")


def make_stand_in(engine: Engine, image: str) -> str:
    """One base image under its own name, unless it is there; what it really is."""
    recipe, name = STAND_INS[repository(image)], full_name(image)
    if engine.image_labels(name).get(MADE_FROM) != recipe.digest():
        with tempfile.TemporaryDirectory(prefix="frontrow-stand-in-") as folder:
            Path(folder, "Containerfile").write_text(recipe.containerfile())
            if recipe.script:
                Path(folder, "entrypoint").write_text(recipe.script)
                Path(folder, "entrypoint").chmod(0o755)
            label = f"{MADE_FROM}={recipe.digest()}"
            words = ["build", "--format", "docker", "--label", label, "--tag", name, folder]
            engine(*words, within_s=BUILD_WITHIN_S)
    return engine("run", "--rm", "--network=none", "--entrypoint=", name, "sh", "-c", recipe.version)


def build_ours(engine: Engine, tree: Path, name: str) -> str:
    """Our image from a tree of files; its base image's name. pip reaches packages as this machine does."""
    image = python_image(tree / "deploy" / "Dockerfile")
    make_stand_in(engine, image)
    base = full_name(image)
    mounts = [f"--volume={file}:{file}:ro" for file in TRUSTED if file.exists()]
    words = ["build", "--format", "docker", "--build-arg", f"PYTHON_IMAGE={base}", *mounts]
    engine(*words, "--file", f"{tree}/deploy/Dockerfile", "--tag", name, str(tree), within_s=BUILD_WITHIN_S)
    return base


def copy_of_this_tree(root: Path, target: Path) -> None:
    """What somebody who cloned this state would have: files of git, also those that are not committed yet."""
    names = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    for name in filter(None, names):
        if (root / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, target / name)


def copy_of_revision(root: Path, revision: str, target: Path) -> None:
    """The files of an earlier state."""
    done = subprocess.run(["git", "-C", str(root), "archive", revision], capture_output=True, check=True, timeout=60)
    with tarfile.open(fileobj=BytesIO(done.stdout)) as packed:
        packed.extractall(target, filter="data")


def revision_before(root: Path) -> tuple[str, str]:
    """The earlier state to upgrade from, and why this one: the newest tag, else the state before the newest migration.

    A migration that takes something away (`contracts = True`) needs two releases, so nobody upgrades over it without a
    stop; then the state that brought it.
    """
    with contextlib.suppress(subprocess.CalledProcessError):
        tag = _git(root, "describe", "--tags", "--abbrev=0", "HEAD^").strip()
        return tag, f"the newest tag, {tag}"
    added = _git(root, "log", "-1", "--format=%h", "--diff-filter=A", "--", VERSIONS).strip()
    newest = sorted((root / VERSIONS).glob("v*.py"))[-1]
    if "contracts = True" in newest.read_text():
        changed = _git(root, "log", "-1", "--format=%h", "--", VERSIONS).strip()
        return changed, f"commit {changed}: no tag yet, and {newest.stem} cannot be upgraded to without a stop"
    return f"{added}^", f"the commit before {newest.stem} came, {added}^: no tag yet"


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


def parts_of(image: str, engine: Engine) -> list[tuple[float, str]]:
    """The largest packages inside our image, in MB, for whoever must make it smaller."""
    command = "du -sm /opt/frontrow/lib/python3*/site-packages/* | sort -rn | head -8"
    said = engine("run", "--rm", "--network=none", "--entrypoint=", image, "sh", "-c", command)
    with contextlib.suppress(ValueError, Failed):
        return [(float(line.split()[0]), line.rsplit("/", 1)[-1]) for line in said.splitlines()]
    return []
