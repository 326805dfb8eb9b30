"""The services of the compose file as running containers: what `docker compose` does with them, by podman."""

import time
from dataclasses import dataclass, field

from tests.containers.compose_plan import ComposePlan, PlannedService
from tests.containers.engine import Engine, Failed
from tests.containers.stand_ins import full_name
from tests.support.eventually import eventually_sync

OURS = "localhost/frontrow:latest"
JOB_WITHIN_S = 180


@dataclass
class Stack:
    """Starts, stops and replaces containers. `left_out` are services whose image cannot be had."""

    engine: Engine
    plan: ComposePlan
    left_out: frozenset[str]
    running: dict[str, list[str]] = field(default_factory=dict)

    @property
    def network(self) -> str:
        return f"{self.plan.project}_default"

    def up(self) -> None:
        """Everything, in order, each after what it needs is healthy or done."""
        self.engine("network", "create", "--subnet", self.plan.subnet, self.network)
        for name, service in self.plan.services.items():
            if name in self.left_out:
                continue
            for other, condition in service.needs.items():
                if condition == "service_healthy":
                    self.wait_healthy(other)
            if self._is_job(name):
                self.run_job(name)
            else:
                for number in range(1, service.replicas + 1):
                    self.start(name, number)
        for name in self.running:
            self.wait_healthy(name)

    def _is_job(self, name: str) -> bool:
        done = "service_completed_successfully"
        return any(service.needs.get(name) == done for service in self.plan.services.values())

    def start(self, name: str, number: int) -> str:
        """One container of a service, from the image that its name leads to now."""
        container = f"{self.plan.project}_{name}_{number}"
        self.engine("run", "--detach", *self._words(self.plan.services[name], container))
        self.running.setdefault(name, []).append(container)
        return container

    def run_job(self, name: str) -> str:
        """`docker compose run --rm`: what it printed. Raises `Failed` when it ends with another code than 0."""
        service = self.plan.services[name]
        container = f"{self.plan.project}_{name}_1"
        words = [word for word in self._words(service, container) if not word.startswith("--restart=")]
        return self.engine("run", "--rm", *words, within_s=JOB_WITHIN_S)

    def _words(self, service: PlannedService, container: str) -> list[str]:
        image = OURS if service.builds else full_name(service.image)
        words = ["--name", container, "--pull=never", f"--network={self.network}:alias={service.name}"]
        limited = any(word.startswith("--ulimit=") for word in service.options)
        words += [self.engine.limit_of_processes] if limited else []
        return [*words, *service.options, image, *service.command]

    def wait_healthy(self, name: str) -> None:
        for container in self.running[name]:
            self.engine.wait_healthy(container)

    def stop(self, container: str) -> tuple[float, int]:
        """`docker stop`: seconds until it had ended, and its exit code (137: it was killed)."""
        began_s = time.monotonic()
        self.engine("stop", container)
        return time.monotonic() - began_s, int(self.engine.inspect(container)["State"]["ExitCode"])

    def remove(self, container: str) -> None:
        self.engine("rm", "--force", "--volumes", "--time", "0", container)
        for containers in self.running.values():
            if container in containers:
                containers.remove(container)

    def address(self, name: str) -> str:
        """The address of a service's first container inside the network."""
        found = self.engine.inspect(self.running[name][0])["NetworkSettings"]["Networks"][self.network]["IPAddress"]
        return str(found)

    def main_process(self, container: str) -> int:
        return int(self.engine.inspect(container)["State"]["Pid"])

    def execute(self, name: str, *words: str, within_s: float = 180) -> str:
        """`docker compose exec` in the first container of a service."""
        return self.engine("exec", self.running[name][0], *words, within_s=within_s)

    def wait_restarted(self, container: str, old_process: int, within_s: float = 60) -> None:
        """Until the engine has started a container again whose process died."""
        try:
            eventually_sync(
                lambda: self.engine.inspect(container)["State"],
                within_s,
                until=lambda state: state["Running"] and state["Pid"] not in (0, old_process),
                every_s=0.2,
            )
        except AssertionError as error:
            raise Failed(f"{container} was not restarted: {error}") from error
