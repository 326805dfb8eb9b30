"""podman with a store of its own, so that nothing of the machine's other containers is seen or touched."""

import contextlib
import json
import os
import resource
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.support.eventually import eventually_sync

NEEDED = {  # program -> Debian's package
    "podman": "podman",
    "runc": "runc",
    "debootstrap": "debootstrap",
    "iptables": "iptables",
    "unshare": "util-linux",
    "ip": "iproute2",
}
HELPERS = {"netavark": "netavark", "aardvark-dns": "aardvark-dns"}  # podman finds them here
HELPER_FOLDERS = [Path(folder) for folder in ("/usr/lib/podman", "/usr/libexec/podman", "/usr/local/libexec/podman")]
COMMAND_S = 120
MOST_OPEN_FILES, MOST_PROCESSES = 65_536, 10_000

CONFIG = """[containers]
default_ulimits = ["nofile={files}:{files}", "nproc={processes}:{processes}"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
"""


class Failed(Exception):
    """A command of podman's ended with an error; the last lines of what it said."""


def missing_packages() -> list[str]:
    """Debian's packages that this machine lacks."""
    lacking = [package for program, package in NEEDED.items() if shutil.which(program, path=_path()) is None]
    return lacking + [
        package for name, package in HELPERS.items() if not any((folder / name).exists() for folder in HELPER_FOLDERS)
    ]


def _path() -> str:
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


def most_open_files() -> int:
    """How many files a container may open at most: what this machine allows, up to what the compose file asks for."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return MOST_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_OPEN_FILES)


class Engine:
    """Runs podman. Images stay in `folder` for the next run; containers, networks and volumes do not."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("store", "networks"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        files, processes = most_open_files(), _at_most(resource.RLIMIT_NPROC, MOST_PROCESSES)
        # a service with a limit of its own gets podman's million for the other one, which this machine may refuse
        self.limit_of_processes = f"--ulimit=nproc={processes}:{processes}"
        config = folder / "containers.conf"
        config.write_text(CONFIG.format(files=files, processes=processes))
        self._env = os.environ | {
            "CONTAINERS_CONF": str(config),
            "BUILDAH_ISOLATION": "chroot",
            "DISABLE_HC_SYSTEMD": "true",
            "PATH": _path(),
        }
        self._podman = ["podman", "--root", f"{folder}/store", "--runroot", f"{folder}/run"]
        self._podman += ["--tmpdir", f"{folder}/tmp"]
        self._podman += ["--network-config-dir", f"{folder}/networks", "--storage-driver", "overlay"]

    def __call__(self, *words: str, within_s: float = COMMAND_S) -> str:
        """What `podman <words>` printed. Raises `Failed`."""
        done = self.tried(*words, within_s=within_s)
        if done.returncode:
            said = "\n".join((done.stdout + done.stderr).splitlines()[-25:])
            raise Failed(f"{_shown(words)}: {said}")
        return done.stdout.strip()

    def tried(self, *words: str, within_s: float = COMMAND_S) -> "subprocess.CompletedProcess[str]":
        """The same, whatever its exit code."""
        try:
            return subprocess.run(
                [*self._podman, *words], env=self._env, capture_output=True, text=True, timeout=within_s
            )
        except subprocess.TimeoutExpired:
            raise Failed(f"{_shown(words)}: not done within {within_s:.0f} s") from None

    def inspect(self, container: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self("inspect", container))[0]
        return found

    def image_labels(self, image: str) -> dict[str, str]:
        """The labels of an image, or nothing where there is none."""
        done = self.tried("image", "inspect", image)
        return (json.loads(done.stdout)[0].get("Labels") or {}) if done.returncode == 0 else {}

    def own_bytes(self, image: str, base: str) -> int:
        """What an image adds to its base image."""
        sizes = [int(json.loads(self("image", "inspect", one))[0]["Size"]) for one in (image, base)]
        return sizes[0] - sizes[1]

    def wait_healthy(self, container: str, within_s: float = 120) -> None:
        """Ask a container's own health check, as an engine with a timer does, until it is content."""
        try:
            eventually_sync(lambda: self.tried("healthcheck", "run", container).returncode == 0, within_s, every_s=0.5)
        except AssertionError as error:
            said = self.tried("logs", "--tail", "20", container)
            raise Failed(f"{container} is not healthy after {within_s:.0f} s: {said.stdout}{said.stderr}") from error

    def forget_the_last_run(self) -> None:
        """Containers, volumes and networks of a run that was cut off; what podman believes to run, does not."""
        for name in ("run", "tmp"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        self.remove_everything()

    def remove_everything(self) -> None:
        """All containers, volumes and networks. Images stay."""
        self("rm", "--force", "--all", "--time", "0")
        self("volume", "prune", "--force")
        for name in self("network", "ls", "--quiet", "--format", "{{.Name}}").splitlines():
            if name != "podman":
                self("network", "rm", "--force", name)

    def drop_unused_layers(self) -> None:
        """Images of yesterday that no name leads to any more; those of today make the next build quick."""
        with contextlib.suppress(Failed):
            self("image", "prune", "--force", "--filter", "until=24h")


def _shown(words: tuple[str, ...]) -> str:
    """A command without what is long or secret in it."""
    return " ".join(["podman", *(word for word in words if not word.startswith("--"))])[:200]


def _at_most(kind: int, wanted: int) -> int:
    hard = resource.getrlimit(kind)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
