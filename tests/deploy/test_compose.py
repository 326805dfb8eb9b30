"""The compose file as it would run, without an engine: its own command lines, environment and nginx, on real stores.

What stands in for Docker: processes for containers, a small name server for its names. Nothing is imported that the
image would not have.
"""

import asyncio
import importlib.metadata
import json
import re
import secrets
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.core.clock import SystemClock
from frontrow.settings.platform import read_settings
from tests.journeys.mailbox import SmtpServer
from tests.support.compose import COMPOSE, DEPLOY, Missing, environment, image_environment, read_env
from tests.support.eventually import eventually
from tests.support.localstripe import PUBLISHABLE_KEY, SECRET_KEY, WEBHOOK_SECRET, LocalStripe
from tests.support.nginx import DeployedNginx, NameServer
from tests.support.processes import START_WITHIN_S
from tests.web.api.script import a_buyer
from tests.web.api.support import EVENT_ID, one_row, put_into

SERVICES = COMPOSE["services"]
STORES = re.compile(r"(?<=@)postgres:5432/frontrow")


def filled_in() -> dict[str, str]:
    """example.env as its comments say to fill it in."""
    made = {"FRONTROW_STRIPE_KEY": SECRET_KEY, "FRONTROW_STRIPE_WEBHOOK_SECRET": WEBHOOK_SECRET}
    made["FRONTROW_STRIPE_PUBLISHABLE_KEY"] = PUBLISHABLE_KEY
    example = read_env(DEPLOY / "example.env")
    return {name: value or made.get(name) or secrets.token_hex(32) for name, value in example.items()}


# -- the file alone ---------------------------------------------------------------------------------------------------


def test_every_service_waits_for_what_it_needs_and_mounts_what_is_there() -> None:
    for name, service in SERVICES.items():
        assert service["image"].rpartition(":")[2], f"{name} has no fixed version"
        assert service["restart"] == ("on-failure" if name == "migrate" else "unless-stopped")
        assert service["logging"]["options"]["max-size"], f"the log of {name} fills the disk"
        has_check = bool(service.get("healthcheck")) or "build" in service  # the image's own
        assert has_check, f"{name} has no health check"
        for other, condition in _depends_on(service).items():
            assert condition in ("service_healthy", "service_completed_successfully"), (
                f"{name} does not wait for {other}"
            )
        for volume in service.get("volumes", []):
            source, target, *_ = volume.split(":")
            assert target.startswith("/")
            assert source in COMPOSE["volumes"] or (DEPLOY / source).exists(), f"{name}: {source}"
    waits = {name: set(_depends_on(service)) for name, service in SERVICES.items()}
    assert waits["web"] == waits["work"] == {"redis", "migrate"}
    assert (waits["migrate"], waits["nginx"]) == ({"postgres"}, {"web"})
    mounted = {volume.split(":")[0] for one in SERVICES.values() for volume in one.get("volumes", [])}
    assert set(COMPOSE["volumes"]) == {source for source in mounted if not source.startswith(".")}
    assert "noeviction" in SERVICES["redis"]["command"], "a claim that Redis throws away is a seat sold twice"


def _depends_on(service: dict[str, Any]) -> dict[str, str]:
    given = service.get("depends_on", {})
    if isinstance(given, list):
        return dict.fromkeys(given, "service_started")
    return {name: one["condition"] for name, one in given.items()}


def test_servers_share_no_folder_so_each_container_has_its_own_metrics() -> None:
    """Workers add up the files in their folder; two containers in one folder would count each other's requests."""
    for name in ("web", "work", "migrate"):
        assert "volumes" not in SERVICES[name]


def test_the_environment_of_every_container_is_accepted() -> None:
    given = filled_in()
    for name in ("web", "work", "migrate"):
        settings = read_settings(None, image_environment() | environment(name, given))
        assert settings.shared
        assert settings.server.host == "0.0.0.0"
        assert settings.public_url == "https://tickets.example.org"
        assert settings.mail_url.startswith("smtp://")
        assert settings.stripe.publishable_key
    (subnet,) = COMPOSE["networks"]["default"]["ipam"]["config"]
    assert settings.server.trusted_proxies == (subnet["subnet"],), "nginx is believed, and nobody outside"
    assert ip_network(subnet["subnet"]).is_private
    assert settings.server.jobs_inside is False
    grace_s = int(SERVICES["web"]["stop_grace_period"].removesuffix("s"))
    assert settings.server.drain_s + 10 <= grace_s, "Docker would kill it while it finishes"


@pytest.mark.parametrize("name", ["POSTGRES_PASSWORD", "GRAFANA_PASSWORD"])
def test_a_password_that_is_not_set_stops_the_start(name: str) -> None:
    """No default password: Grafana's own would be admin."""
    users = {"POSTGRES_PASSWORD": ("web", "postgres"), "GRAFANA_PASSWORD": ("grafana",)}[name]
    for service in users:
        with pytest.raises(Missing, match=name):
            environment(service, filled_in() | {name: ""})


# -- the file in motion -----------------------------------------------------------------------------------------------


@dataclass
class Containers:
    """The processes of the compose file and what they stand on."""

    folder: Path
    env: dict[str, dict[str, str]]
    mail: SmtpServer
    stripe: LocalStripe
    ledger_url: str

    def command(self, service: str) -> list[str]:
        return [sys.executable, "-m", "frontrow.cli.main", *SERVICES[service]["command"]]

    def start(self, service: str) -> "Container":
        return Container(self.command(service), self.env[service], self.folder)


class Container:
    """A process in place of a container: its lines are read as they come."""

    def __init__(self, command: list[str], env: dict[str, str], folder: Path) -> None:
        self.process = subprocess.Popen(
            command, env=env, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.lines: list[str] = []
        self._ended = False
        self._new = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._new:
                self.lines.append(line)
                self._new.notify_all()
        with self._new:
            self._ended = True
            self._new.notify_all()

    def wait_for(self, pattern: str) -> str:
        """The part of its output that matches, once it is there."""

        def found() -> re.Match[str] | None:
            return re.search(pattern, "".join(self.lines))

        with self._new:
            self._new.wait_for(lambda: found() is not None or self._ended, START_WITHIN_S)
            match = found()
        assert match, "".join(self.lines)[-3000:]
        return match[0]

    def stop(self) -> int:
        self.process.terminate()
        try:
            return self.process.wait(60)
        finally:
            self.process.kill()
            self._reader.join(10)
            assert self.process.stdout is not None
            self.process.stdout.close()


@pytest.fixture
def containers(tmp_path: Path, redis_url: str, postgres_url: str) -> Iterator[Containers]:
    (tmp_path / "image").mkdir()
    (tmp_path / "image" / "sitecustomize.py").write_text(ONLY_THE_IMAGE.format(foreign=foreign_modules()))
    given = filled_in()
    database = postgres_url.rpartition("/")[2]
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        if not admin.execute("SELECT 1 FROM pg_roles WHERE rolname = 'frontrow'").fetchone():
            admin.execute("CREATE ROLE frontrow LOGIN")
        admin.execute(f'ALTER DATABASE "{database}" OWNER TO frontrow')  # type: ignore[arg-type]
    address = postgres_url.partition("@")[2]
    mail = SmtpServer()
    mail.start()
    with LocalStripe() as stripe:
        here = {"FRONTROW_STRIPE_API": stripe.url, "FRONTROW_MAIL_URL": mail.url, "FRONTROW_SERVER_PORT": "0"}
        here |= {"FRONTROW_SERVER_PER_PERSON": "1000/second", "FRONTROW_SERVER_PER_IP": "1000/second"}  # a script asks
        env = {}
        for service in ("migrate", "web", "work"):
            own = image_environment() | environment(service, given) | here
            own["FRONTROW_REDIS_URL"] = own["FRONTROW_REDIS_URL"].replace("redis://redis:6379/0", redis_url)
            own["FRONTROW_LEDGER_URL"] = STORES.sub(address, own["FRONTROW_LEDGER_URL"])
            own["FRONTROW_SERVER_FOLDER"] = str(tmp_path / service)
            own["FRONTROW_SERVER_TRUSTED_PROXIES"] = "127.0.0.1"  # where this nginx is
            own["FRONTROW_WORK_HEALTH"] = own["FRONTROW_WORK_HEALTH"].replace(":8001", ":0")
            own["FRONTROW_SERVER_METRICS"] = own["FRONTROW_SERVER_METRICS"].replace(":8002", ":0")
            env[service] = own | {"PYTHONPATH": str(tmp_path / "image")}
        yield Containers(tmp_path, env, mail, stripe, env["web"]["FRONTROW_LEDGER_URL"])
    mail.stop()


@pytest.mark.timeout(600)  # five processes start
async def test_the_compose_file_sells_a_ticket_through_its_nginx(containers: Containers) -> None:
    """Migrate, serve by two workers, work, nginx: a purchase, a stream, a mail, a whole hall, metrics from inside."""
    migrate = containers.start("migrate")
    migrate.wait_for(r"schema none -> \w+")
    assert migrate.process.wait(60) == migrate.stop() == 0
    ledger = await open_ledger(containers.ledger_url)
    await put_into(ledger, SystemClock()(), one_row(4))
    await ledger.aclose()
    web, work = containers.start("web"), containers.start("work")
    try:
        port = int(web.wait_for(r"frontrow on http://0\.0\.0\.0:\d+").rpartition(":")[2])
        figures = int(web.wait_for(r"metrics on port \d+").rpartition(" ")[2])
        web.wait_for(r'"serving"')
        health = (
            work.wait_for(r"health: http://0\.0\.0\.0:\d+").removeprefix("health: ").replace("0.0.0.0", "127.0.0.1")
        )
        work.wait_for("working: ")
        assert _checked_as_docker_does("work", health) == 0
        with NameServer() as names:
            resolver = f"resolver 127.0.0.1:{names.port} valid=2s ipv6=off;"  # start.sh writes it: test_deploy
            with DeployedNginx("upstream-compose.conf", {"web:8000": f"web:{port}"}, resolver=resolver) as nginx:
                assert "web" in names.asked
                await _buy_and_look(f"http://127.0.0.1:{nginx.port}", containers)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{figures}", trust_env=False) as prometheus:
            assert "frontrow_http_requests_total" in (await prometheus.get("/metrics")).text
            assert (await prometheus.get(f"http://127.0.0.1:{port}/metrics")).status_code == 404
            assert "frontrow_job_failing" in (await prometheus.get(f"{health}/metrics")).text
        assert list((containers.folder / "web" / "metrics").glob("*/*.bin")), "the workers' numbers are in its folder"
    finally:
        codes = [work.stop(), web.stop()]
    assert codes == [0, 0], "".join(web.lines + work.lines)[-3000:]


def _checked_as_docker_does(service: str, address: str) -> int:
    """The exit code of a container's own health check."""
    _, _, *words = SERVICES[service]["healthcheck"]["test"]
    return subprocess.run(
        [sys.executable, *(word.replace("http://127.0.0.1:8001", address) for word in words)]
    ).returncode


async def _buy_and_look(url: str, containers: Containers) -> None:
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as client:
        assert (await client.get("/metrics")).status_code == 404, "only from inside"
        for path in ("", f"/{EVENT_ID}", f"/{EVENT_ID}/room/now-serving", f"/{EVENT_ID}/room/overflow"):
            answers = await asyncio.gather(*(client.get(f"/v1/events{path}") for _ in range(20)))
            assert {one.status_code for one in answers} == {200}
            assert "HIT" in {one.headers["x-cache"] for one in answers}, f"nginx asks again and again for {path}"
        buyer = await a_buyer(client)
        await buyer.enter(EVENT_ID)
        async with client.stream("GET", f"/v1/events/{EVENT_ID}/room/stream") as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            assert (await anext(stream.aiter_lines())).startswith(("event:", "data:", "id:", "retry:", ":"))
        async with client.stream("GET", f"/v1/events/{EVENT_ID}/seats/stream") as stream:
            lines = stream.aiter_lines()
            await anext(lines)
            held = await buyer.hold(EVENT_ID, seats=["S-A-1"])  # while the stream is open
            assert [line async for line in _until(lines, "data:")]
        assert (await buyer.pay(held["booking"]))["state"] == "confirmed"
        await eventually(
            lambda: [one["status"] for one in containers.stripe.intents_of(held["booking"])] == ["succeeded"]
        )  # by the worker
        hall = json.dumps({"name": "x" * 16_000_000})
        plan = await client.post("/v1/organiser/venues", content=hall, headers={"content-type": "application/json"})
        assert plan.status_code == 401, "refused by the server for want of a session, not by nginx for its size"
        form = {"content-type": "application/x-www-form-urlencoded"}
        typed = await client.post("/organiser/venues/new", content="a=" + "x" * 30_000_000, headers=form)
        assert typed.status_code in (303, 401, 403), typed.text[:300]
        assert (await client.post("/ready", content="a" * 2_000_000)).status_code == 413, "elsewhere nginx is strict"
        asked = await client.post("/sign-in", data={"email": "ada@example.org"}, headers={"accept": "text/html"})
        assert asked.status_code == 303
        cookies = asked.headers.get_list("set-cookie")
        assert cookies
        assert all(line.startswith("__Host-") and "; Secure" in line for line in cookies), cookies
    mail = containers.mail.mailbox().wait_for("ada@example.org")
    assert "https://tickets.example.org/" in mail.text


async def _until(lines: Any, start: str) -> Any:
    async for line in lines:
        if line.startswith(start):
            yield line
            return


# -- what the image has -----------------------------------------------------------------------------------------------

ONLY_THE_IMAGE = '''"""Refuses what the image would not have."""
import importlib.abc, sys
FOREIGN = set({foreign!r})
class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if path is None and top in FOREIGN:
            raise ModuleNotFoundError(f"the image has no {{top}}", name=top)
        return None
sys.meta_path.insert(0, Finder())
'''


def image_modules() -> set[str]:
    """The top-level modules of everything that the image's lock brings, and of nothing else."""
    kept = {"frontrow", "frontrow-limits", *locked("requirements/image.txt")}
    modules = importlib.metadata.packages_distributions()
    return {module for module, names in modules.items() if {_plain(name) for name in names} & kept}


def locked(file: str) -> dict[str, str]:
    """Distribution -> version of a lock file."""
    found = re.findall(r"^([\w.-]+)==(\S+)", Path(file).read_text(), re.M)
    return {_plain(name): version for name, version in found}


def required(*extras: str) -> set[str]:
    """The distributions that Frontrow with these extras needs here."""
    todo, brought = [("frontrow", extra) for extra in ("", *extras)], {("", "")}
    while todo:
        one = todo.pop()
        if one in brought:
            continue
        brought.add(one)
        try:
            needs = importlib.metadata.requires(one[0]) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # for another system or version
        todo += [found for need in needs for found in _needed(need, one[1])]
    return {_plain(name) for name, _ in brought if name}


def foreign_modules() -> list[str]:
    """What is installed here for tests and benchmarks only."""
    return sorted(set(importlib.metadata.packages_distributions()) - image_modules())


def _needed(text: str, extra: str) -> list[tuple[str, str]]:
    from packaging.requirements import Requirement

    need = Requirement(text)
    if need.marker is not None and not need.marker.evaluate({"extra": extra}):
        return []
    return [(need.name, one) for one in ("", *sorted(need.extras))]


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_image_is_built_from_the_versions_that_were_tested() -> None:
    """Its lock is all that the extras need, with hashes, in the versions of the lock that these tests run on."""
    image, tested = locked("requirements/image.txt"), locked("requirements/dev.txt")
    assert required("platform", "traces") - {"frontrow", "frontrow-limits"} <= set(image)
    assert {name: tested.get(name) for name in image} == image
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    for file in ("requirements/image.txt", "requirements/build.txt"):
        assert f"--require-hashes -r {file}" in dockerfile
        lines = Path(file).read_text().splitlines()
        assert sum("==" in line for line in lines) <= sum("--hash=" in line for line in lines)
    build = tomllib.loads(Path("pyproject.toml").read_text())["build-system"]["requires"]
    limiter = tomllib.loads(Path("packages/limits/pyproject.toml").read_text())["build-system"]["requires"]
    assert set(limiter) <= set(build)
    names = {_plain(re.split(r"[<>=]", need)[0]) for need in build}
    assert names <= set(locked("requirements/build.txt"))
    [recipe] = [line for line in Path("Makefile").read_text().splitlines() if "-o requirements/build.txt" in line]
    listed = recipe.partition('"')[2].partition('"')[0].split("\\n")
    assert listed == [*build, "wheel", ""], "the Makefile locks what pyproject.toml asks for"


def test_the_image_has_no_more_and_no_less_than_it_says() -> None:
    modules = image_modules()
    assert {"frontrow", "litestar", "asyncpg", "stripe", "fpdf", "opentelemetry", "uvicorn"} <= modules
    assert {"pytest", "psycopg", "localstripe", "playwright", "starlette"} <= set(foreign_modules())
