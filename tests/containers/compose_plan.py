"""What deploy/compose.yaml means for podman: each service as the words of `podman create`, in the order to start them.

Nothing is left out in silence. A key that this file does not know stops the run, and what podman cannot do as written
is in the plan's `notes`, which the run prints.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.support.compose import filled, read_env

TOP_KEYS = {"name", "services", "networks", "volumes"}
SERVICE_KEYS = {
    *("image", "build", "env_file", "environment", "command", "read_only", "tmpfs", "cap_drop", "security_opt"),
    *("logging", "ulimits", "restart", "depends_on", "healthcheck", "deploy", "stop_grace_period", "expose"),
    *("volumes", "ports"),
}
CONDITIONS = {"service_healthy", "service_completed_successfully"}
DEFAULT_GRACE_S = 10  # Docker's
UNITS_S = {"s": 1, "m": 60, "h": 3_600}


class NotUnderstood(Exception):
    """The compose file says something that this driver would have to leave out."""


@dataclass(frozen=True, slots=True)
class PlannedService:
    """One service: what it is made from and how its containers are created."""

    name: str
    image: str
    replicas: int
    grace_s: int
    needs: dict[str, str]  # service -> condition
    options: tuple[str, ...]  # words of `podman create` before the image
    command: tuple[str, ...]
    builds: bool  # the image is ours


@dataclass(frozen=True, slots=True)
class ComposePlan:
    """The whole file. `services` are in an order in which each comes after what it needs."""

    project: str
    subnet: str
    services: dict[str, PlannedService]
    notes: list[str] = field(default_factory=list)


def read_plan(file: Path, *, most_open_files: int) -> ComposePlan:
    """The plan of a compose file and the `.env` beside it. Limits above this machine's own are lowered, with a note."""
    text: dict[str, Any] = yaml.safe_load(file.read_text())
    _known("the file", {key: value for key, value in text.items() if not key.startswith("x-")}, TOP_KEYS)
    variables = read_env(file.parent / ".env")
    (network,) = text["networks"].items()
    if network[0] != "default":
        raise NotUnderstood(f"network {network[0]}")
    (subnet,) = network[1]["ipam"]["config"]
    plan = ComposePlan(text["name"], subnet["subnet"], {})
    reader = _Reader(file.parent, variables, set(text["volumes"]), most_open_files, plan)
    read = {name: reader.service(name, given) for name, given in text["services"].items()}
    plan.services.update({name: read[name] for name in start_order({one.name: one.needs for one in read.values()})})
    return plan


def start_order(needs: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Every service after those that it needs; otherwise as they stand in the file."""
    order: list[str] = []
    while left := [name for name in needs if name not in order]:
        ready = [name for name in left if set(needs[name]) <= set(order)]
        if not ready:
            raise NotUnderstood(f"these wait for each other: {', '.join(left)}")
        order.append(ready[0])
    return order


def seconds(text: str | int) -> int:
    """A duration of the compose file."""
    text = str(text)
    if text[-1:] in UNITS_S and text[:-1].isdecimal():
        return int(text[:-1]) * UNITS_S[text[-1]]
    raise NotUnderstood(f"the duration {text!r}")


def _known(where: str, given: Mapping[str, Any], keys: set[str]) -> None:
    if unknown := sorted(set(given) - keys):
        raise NotUnderstood(f"{where}: {', '.join(unknown)}")


@dataclass(frozen=True, slots=True)
class _Reader:
    """Turns services into words for podman."""

    folder: Path
    variables: Mapping[str, str]
    volumes: set[str]
    most_open_files: int
    plan: ComposePlan

    def service(self, name: str, given: Mapping[str, Any]) -> PlannedService:
        _known(name, given, SERVICE_KEYS)
        needs = {other: one["condition"] for other, one in given.get("depends_on", {}).items()}
        if wrong := set(needs.values()) - CONDITIONS:
            raise NotUnderstood(f"{name} waits for {', '.join(wrong)}")
        grace_s = seconds(given.get("stop_grace_period", f"{DEFAULT_GRACE_S}s"))
        options = [
            *self._environment(name, given),
            *self._confinement(name, given),
            *self._files(name, given),
            *self._health_check(name, given.get("healthcheck")),
            *self._logging(name, given),
            *(word for port in given.get("ports", ()) for word in ("--publish", port)),
            f"--restart={self._restart(name, given['restart'])}",
            f"--stop-timeout={grace_s}",
        ]
        deploy = given.get("deploy", {})
        _known(f"{name}: deploy", deploy, {"replicas"})
        return PlannedService(
            name,
            given["image"],
            deploy.get("replicas", 1),
            grace_s,
            needs,
            tuple(options),
            tuple(given.get("command", ())),
            "build" in given,
        )

    def _environment(self, name: str, given: Mapping[str, Any]) -> list[str]:
        values: dict[str, str] = {}
        if "env_file" in given:
            if given["env_file"] != ".env":
                raise NotUnderstood(f"{name}: env_file {given['env_file']}")
            values |= self.variables
        values |= {key: filled(str(value), self.variables) for key, value in given.get("environment", {}).items()}
        return [f"--env={key}={value}" for key, value in values.items()]

    def _confinement(self, name: str, given: Mapping[str, Any]) -> list[str]:
        words = [f"--cap-drop={one}" for one in given.get("cap_drop", ())]
        words += [f"--security-opt={one}" for one in given.get("security_opt", ())]
        words += [f"--tmpfs={one}" for one in given.get("tmpfs", ())]
        if given.get("read_only"):
            words += ["--read-only", "--read-only-tmpfs=false"]  # Docker adds no folders in memory by itself
        for kind, limit in given.get("ulimits", {}).items():
            soft, hard = limit["soft"], limit["hard"]
            if kind == "nofile" and hard > self.most_open_files:
                self._note(f"{name}: {hard} open files are asked for; this machine allows {self.most_open_files}")
                soft, hard = min(soft, self.most_open_files), self.most_open_files
            words.append(f"--ulimit={kind}={soft}:{hard}")
        return words

    def _files(self, name: str, given: Mapping[str, Any]) -> list[str]:
        words = []
        for volume in given.get("volumes", ()):
            source, target, *mode = volume.split(":")
            if source.startswith("."):
                source = str((self.folder / source).resolve())
            elif source not in self.volumes:
                raise NotUnderstood(f"{name}: volume {source}")
            else:
                source = f"{self.plan.project}_{source}"
            words.append("--volume=" + ":".join([source, target, *mode]))
        return words

    def _health_check(self, name: str, given: Mapping[str, Any] | None) -> list[str]:
        if given is None:
            return []  # the image's own
        _known(f"{name}: healthcheck", given, {"disable", "test", "interval", "timeout", "retries", "start_period"})
        if given.get("disable"):
            return ["--no-healthcheck"]
        kind, *words = given["test"]
        if kind not in ("CMD", "CMD-SHELL"):
            raise NotUnderstood(f"{name}: healthcheck {kind}")
        options = [f"--health-cmd={json.dumps(words) if kind == 'CMD' else words[0]}"]
        names = {"interval": "interval", "timeout": "timeout", "retries": "retries", "start_period": "start-period"}
        options += [f"--health-{names[key]}={value}" for key, value in given.items() if key in names]
        return options

    def _logging(self, name: str, given: Mapping[str, Any]) -> list[str]:
        driver, options = given["logging"]["driver"], given["logging"]["options"]
        if driver != "local":
            raise NotUnderstood(f"{name}: logging {driver}")
        self._note("podman has no log driver `local`; `k8s-file` with the same size per file, and one file, stands in")
        return ["--log-driver=k8s-file", f"--log-opt=max-size={options['max-size']}"]

    def _restart(self, name: str, policy: str) -> str:
        if policy not in ("unless-stopped", "on-failure"):
            raise NotUnderstood(f"{name}: restart {policy}")
        return policy

    def _note(self, text: str) -> None:
        if text not in self.plan.notes:
            self.plan.notes.append(text)
