"""The files under deploy/: nginx's by nginx itself, systemd's by running their commands, the Dockerfile by hadolint,
the others by their form and against what the program really has. The compose file runs in test_compose.py. The Helm
chart is in test_helm.py.

Images are built and started by `make containers` (tests/containers). Manifests are not applied: there is no cluster.
"""

import asyncio
import configparser
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import yaml

from frontrow.core.settings_loader import load
from frontrow.settings.platform import _SECTIONS
from frontrow.waitingroom.entrance.person_and_address_limits import EntranceLimits
from frontrow.web.http.request_bodies import MAX_PLAN_BYTES
from frontrow.web.site.organiser.venues.venue_list import MOST_BYTES
from tests.support.compose import COMPOSE, read_env
from tests.support.eventually import eventually
from tests.support.nginx import nginx_program, write_own_certificate

DEPLOY = Path("deploy")


TESTED = {  # every file of deploy/ and examples/ -> the test that runs or checks it
    "deploy/Dockerfile": "test_the_dockerfile_runs_without_root_and_ends_by_sigterm",
    "deploy/alerts/frontrow.yml": "tests/deploy/test_dashboards.py",
    "deploy/compose.tls.yaml": "test_compose_and_nginx_agree_about_tls",
    "deploy/compose.yaml": "tests/deploy/test_compose.py",
    "deploy/example.env": "tests/deploy/test_compose.py",
    "deploy/grafana/dashboards/frontrow.json": "tests/deploy/test_dashboards.py",
    "deploy/grafana/provisioning/dashboards/frontrow.yaml": "test_grafana_loads_the_dashboard_from_our_prometheus",
    "deploy/grafana/provisioning/datasources/prometheus.yaml": "test_grafana_loads_the_dashboard_from_our_prometheus",
    "deploy/helm/prometheus-adapter.yaml": "tests/deploy/test_helm.py",
    "deploy/nginx/frontrow.conf": "tests/deploy/test_compose.py",
    "deploy/nginx/start.sh": "test_nginx_asks_the_first_name_server_of_its_container",
    "deploy/nginx/tls/http.conf": "test_nginx_accepts_its_configuration",
    "deploy/nginx/tls/server.conf": "tests/browser/test_https.py",
    "deploy/nginx/upstream-compose.conf": "tests/deploy/test_compose.py",
    "deploy/nginx/upstream.conf": "test_nginx_accepts_its_configuration",
    "deploy/pin-images.sh": "test_images_are_pinned_by_digest",
    "deploy/slim.py": "tests/deploy/test_slim.py",
    "deploy/prometheus.yml": "test_prometheus_asks_every_server_and_reads_our_rules",
    "deploy/systemd/example.env": "test_the_units_commands_start_with_their_files",
    "deploy/systemd/frontrow-work.service": "test_the_units_commands_start_with_their_files",
    "deploy/systemd/frontrow.service": "test_the_units_commands_start_with_their_files",
    "deploy/systemd/frontrow.toml": "test_the_units_commands_start_with_their_files",
    "examples/README.md": "tests/docs/test_docs.py",
    "examples/nginx/frontrow.conf": "tests/waitingroom/protect/test_nginx.py",
    "examples/nginx/other_domain.conf": "tests/shop_connectors/test_adapters.py",
    "examples/protected_shop.py": "tests/web/room/test_serve.py",
    "examples/shops/static/index.html": "tests/browser/test_static_shop.py",
}
for example in ("django_app", "celery_tasks", "fastapi_app", "flask_app", "httpx_client", "litestar_app"):
    TESTED[f"examples/limiter/{example}.py"] = "tests/example_apps/test_limiter_examples.py"
for example in ("django_shop.py", "headless_shop.py", "own_provider/bank.py", "own_provider/provider.py"):
    TESTED[f"examples/{example}"] = "tests/example_apps/test_shop_examples.py"
for example in (
    "asgi_shop.py",
    "django_shop.py",
    "edge_shop.mjs",
    "go/go.mod",
    "go/main.go",
    "java/JavaShop.java",
    "java/run.sh",
    "node_shop.mjs",
    "php_shop.php",
    "wsgi_shop.py",
):
    TESTED[f"examples/shops/{example}"] = "tests/shop_connectors/test_shops.py"
for example in ("own_provider", "own_theme"):
    TESTED[f"examples/{example}/frontrow.toml"] = "tests/example_apps/test_shop_examples.py"


TESTED |= {str(file): "tests/deploy/test_helm.py" for file in (DEPLOY / "helm/frontrow").rglob("*") if file.is_file()}


def test_every_file_here_is_run_or_checked_by_a_test() -> None:
    found = {str(file) for top in ("deploy", "examples") for file in Path(top).rglob("*") if file.is_file()}
    assert {file for file in found if "__pycache__" not in file} == set(TESTED)
    for where in TESTED.values():
        assert where in globals() or Path(where).exists(), where


@pytest.mark.parametrize("upstream", ["upstream.conf", "upstream-compose.conf"])
def test_nginx_accepts_its_configuration(tmp_path, upstream):
    done = _checked_by_nginx(tmp_path, upstream, tls=upstream == "upstream.conf")
    assert done.returncode == 0, done.stderr


def test_nginx_refuses_a_broken_one(tmp_path):
    """The canary of the test above."""
    assert _checked_by_nginx(tmp_path, "upstream.conf", {"keepalive 256;": "keepalive;"}).returncode != 0


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (
            "search dns.podman\nnameserver 172.31.240.1\nnameserver 9.9.9.9\n",
            "resolver 172.31.240.1 valid=2s ipv6=off;",
        ),
        ("nameserver 127.0.0.11\noptions ndots:0\n", "resolver 127.0.0.11 valid=2s ipv6=off;"),
        ("nameserver fe80::1%eth0\nnameserver fd00::53\n", "resolver [fd00::53] valid=2s ipv6=off;"),
    ],
)
def test_nginx_asks_the_first_name_server_of_its_container(tmp_path, given, written):
    """start.sh as the compose file calls it, with an nginx that only says how it was called."""
    volumes = dict(volume.split(":")[:2] for volume in COMPOSE["services"]["nginx"]["volumes"])
    shell, script = COMPOSE["services"]["nginx"]["command"]
    assert volumes["./nginx/start.sh"] == script
    (tmp_path / "nginx").write_text('#!/bin/sh\necho nginx "$@"\n')
    (tmp_path / "nginx").chmod(0o755)
    (tmp_path / "resolv.conf").write_text(given)
    words = [shell, str(DEPLOY / "nginx/start.sh"), str(tmp_path / "resolv.conf"), str(tmp_path / "resolver.conf")]
    done = _run(words, PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert (done.returncode, done.stdout) == (0, "nginx -g daemon off;\n"), done.stderr
    assert (tmp_path / "resolver.conf").read_text() == f"{written}\n"
    (tmp_path / "resolv.conf").write_text("search example.org\n")
    done = _run(words, PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert done.returncode != 0
    assert "names no name server" in done.stderr
    assert "include /tmp/frontrow-nginx-resolver.conf;" in (DEPLOY / "nginx/upstream-compose.conf").read_text()
    assert "/tmp/frontrow-nginx-resolver.conf" in (DEPLOY / "nginx/start.sh").read_text()


def test_compose_and_nginx_agree_about_tls():
    """Ports 80 and 443 lead to what the files of nginx/tls listen on; the certificate and the proofs are mounted."""
    loader = type("Loader", (yaml.SafeLoader,), {})
    loader.add_constructor("!override", lambda reader, node: reader.construct_sequence(node))  # type: ignore[attr-defined]
    nginx = yaml.load((DEPLOY / "compose.tls.yaml").read_text(), loader)["services"]["nginx"]  # type: ignore[arg-type]
    ports = dict(pair.split(":") for pair in nginx["ports"])
    http, server = [(DEPLOY / "nginx/tls" / name).read_text() for name in ("http.conf", "server.conf")]
    assert f"listen {ports['80']} " in http
    assert f"listen {ports['443']} ssl " in server
    mounts = dict(volume.split(":")[:2] for volume in nginx["volumes"])
    assert mounts["./nginx/tls"] == "/etc/nginx/tls"
    assert f"root {mounts['acme']};" in http


def _checked_by_nginx(folder: Path, upstream: str, changes: dict[str, str] | None = None, *, tls: bool = True) -> Any:
    files = [("frontrow.conf", "nginx.conf"), (upstream, "upstream.conf")]
    (folder / "nginx-resolver.conf").write_text("resolver 127.0.0.1 valid=2s ipv6=off;\n")
    if tls:
        write_own_certificate(folder / "tls")
        files += [(f"tls/{name}", f"tls/{name}") for name in ("http.conf", "server.conf")]
    for source, name in files:
        text = (DEPLOY / "nginx" / source).read_text().replace("/tmp/frontrow-nginx", f"{folder}/nginx")
        for was, now in (changes or {}).items():
            text = text.replace(was, now)
        (folder / name).write_text(text)
    return subprocess.run(
        [nginx_program(), "-t", "-c", str(folder / "nginx.conf")], capture_output=True, text=True, check=False
    )


def variables() -> set[str]:
    """Every variable the program reads."""
    fields = {name: kind.__dataclass_fields__ for name, kind in _SECTIONS.items()}
    return {f"FRONTROW_{section}_{field}".upper() for section, known in fields.items() for field in known}


def given_variables() -> set[str]:
    texts = [file.read_text() for file in DEPLOY.rglob("*") if file.is_file() and file.suffix != ".pyc"]
    return {found for text in texts for found in re.findall(r"FRONTROW_[A-Z_]+", text)}


def test_every_variable_named_in_deploy_is_a_setting():
    assert given_variables() - variables() == set()
    assert load(_SECTIONS["server"], "server", env={"FRONTROW_SERVER_JOBS_INSIDE": "false"}).jobs_inside is False


def test_nginx_lets_whole_halls_through():
    text = (DEPLOY / "nginx" / "frontrow.conf").read_text()
    sizes = [int(size) for size in re.findall(r"client_max_body_size (\d+)m;", text)]
    assert sizes[0] == 1
    assert max(sizes) * 2**20 > MOST_BYTES > MAX_PLAN_BYTES


def test_grafana_loads_the_dashboard_from_our_prometheus():
    grafana = COMPOSE["services"]["grafana"]
    mounts = dict(volume.split(":")[:2] for volume in grafana["volumes"])
    assert mounts["./grafana/provisioning"] == "/etc/grafana/provisioning", "where Grafana looks"
    provisioning = DEPLOY / "grafana" / "provisioning"
    (source,) = yaml.safe_load((provisioning / "datasources" / "prometheus.yaml").read_text())["datasources"]
    address = urlsplit(source["url"])
    assert (source["type"], address.hostname in COMPOSE["services"], address.port) == ("prometheus", True, 9090)
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "frontrow.yaml").read_text())["providers"]
    assert provider["options"]["path"] == mounts["./grafana/dashboards"]
    (file,) = (DEPLOY / "grafana" / "dashboards").glob("*.json")
    dashboard = json.loads(file.read_text())
    assert (
        grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
        == f"{mounts['./grafana/dashboards']}/{file.name}"
    )
    (variable,) = dashboard["templating"]["list"]
    assert (variable["type"], variable["query"]) == ("datasource", source["type"])
    uids = {panel["datasource"]["uid"] for panel in dashboard["panels"] if "datasource" in panel}
    assert uids == {"${" + variable["name"] + "}"}
    assert dashboard["uid"]
    assert "GF_SECURITY_ADMIN_PASSWORD" in grafana["environment"], "no default password"


def test_prometheus_asks_every_server_and_reads_our_rules():
    config = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())
    assert set(config) == {"global", "rule_files", "scrape_configs"}
    mounts = dict(volume.split(":")[:2] for volume in COMPOSE["services"]["prometheus"]["volumes"])
    (rules,) = config["rule_files"]
    assert rules == f"{mounts['./alerts']}/*.yml"
    assert list((DEPLOY / "alerts").glob("*.yml"))
    for job, service in zip(config["scrape_configs"], ("web", "work"), strict=True):
        (names,) = job["dns_sd_configs"]
        assert names["names"] == [service]
        assert str(names["port"]) in COMPOSE["services"][service]["expose"]


@pytest.mark.parametrize("file", sorted((DEPLOY / "systemd").glob("*.service")), ids=lambda file: file.name)
def test_systemd_units_can_be_read_and_run_real_commands(file):
    unit = configparser.RawConfigParser(strict=True)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(file.read_text())
    command = unit["Service"]["ExecStart"].split()
    assert command[0].endswith("/frontrow")
    assert command[1] in ("serve", "work")
    assert int(unit["Service"]["LimitNOFILE"]) >= 20_000
    assert unit["Install"]["WantedBy"] == "multi-user.target"


DIRECTIVES = {  # those of systemd.directives(7) that the units use: systemd ignores a misspelt one with a warning
    "Unit": "Description After Wants",
    "Service": "Type User Group EnvironmentFile ExecStartPre ExecStart Restart RestartSec TimeoutStopSec KillSignal "
    "LimitNOFILE StateDirectory StateDirectoryMode WorkingDirectory NoNewPrivileges ProtectSystem ProtectHome "
    "PrivateTmp PrivateDevices ProtectKernelTunables ProtectControlGroups RestrictAddressFamilies "
    "CapabilityBoundingSet SystemCallFilter",
    "Install": "WantedBy",
}


def _unknown_directives(text: str) -> set[str]:
    unit = configparser.RawConfigParser(strict=True)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text)
    return {name for section in unit.sections() for name in unit[section] if name not in DIRECTIVES[section].split()}


def test_units_have_only_directives_that_systemd_knows():
    for file in (DEPLOY / "systemd").glob("*.service"):
        assert _unknown_directives(file.read_text()) == set()
        wrong = file.read_text().replace("[Service]", "[Service]\nRestartSeconds=1")
        assert _unknown_directives(wrong) == {"RestartSeconds"}, "the canary"


def test_systemd_reads_the_units(tmp_path, not_checked):
    """By systemd itself where it is installed; its program and its user are this machine's."""
    systemd = shutil.which("systemd-analyze")
    if systemd is None:
        not_checked("systemd's own reading of deploy/systemd (there is no systemd-analyze); their directives are")
        return
    for file in (DEPLOY / "systemd").glob("*.service"):
        unit = file.read_text().replace("/opt/frontrow/bin/frontrow", sys.executable).replace("=frontrow\n", "=root\n")
        (tmp_path / file.name).write_text(unit)
    units = sorted(str(file) for file in tmp_path.glob("*.service"))
    done = _run([systemd, "verify", "--man=no", *units])
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "frontrow.service").write_text(unit.replace("[Service]", "[Service]\nRestartSeconds=1"))
    assert "RestartSeconds" in _run([systemd, "verify", "--man=no", *units]).stderr, "the canary"


async def test_the_units_commands_start_with_their_files(tmp_path, redis_url, postgres_ledger_url):
    """The very lines of the units: the doctor finds nothing that hurts, the server answers, the worker works."""
    units = [_unit(DEPLOY / "systemd" / name) for name in ("frontrow.service", "frontrow-work.service")]
    toml = (DEPLOY / "systemd" / "frontrow.toml").read_text()
    for was, now in {
        "redis://127.0.0.1:6379/0": redis_url,
        "/var/lib/frontrow": str(tmp_path),
        "workers = 2": "",
    }.items():
        assert was in toml
        toml = toml.replace(was, now)
    (tmp_path / "frontrow.toml").write_text(toml)
    given = {name: value or secrets.token_hex(32) for name, value in read_env(DEPLOY / "systemd/example.env").items()}
    given["FRONTROW_LEDGER_URL"] = postgres_ledger_url
    given["FRONTROW_SERVER_PORT"] = "0"
    lines = [units[0]["ExecStartPre"], units[0]["ExecStart"], units[1]["ExecStart"]]
    commands = [_own(line, tmp_path) for line in lines]
    doctor = await asyncio.create_subprocess_exec(*commands[0], env=given, cwd=tmp_path, stdout=subprocess.PIPE)
    told, _ = await asyncio.wait_for(doctor.communicate(), 120)
    assert doctor.returncode == 0, told.decode()
    for command, first in zip(commands[1:], ("frontrow on http://", "working: "), strict=True):
        process = await asyncio.create_subprocess_exec(*command, env=given, cwd=tmp_path, stdout=subprocess.PIPE)
        assert process.stdout is not None
        line = (await asyncio.wait_for(process.stdout.readline(), 150)).decode()
        assert line.startswith(first)
        if "http" in first:
            await _answers(line.split()[-1])
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 60) == 0


def _unit(file: Path) -> Any:
    unit = configparser.RawConfigParser(strict=True)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(file.read_text())
    assert unit["Service"]["EnvironmentFile"] == "/etc/frontrow/env"
    return unit["Service"]


def _own(line: str, folder: Path) -> list[str]:
    """The command line with this machine's program and folder."""
    program, *words = line.split()
    assert program.endswith("/frontrow")
    return [
        sys.executable,
        "-m",
        "frontrow.cli.main",
        *(word.replace("/etc/frontrow/", f"{folder}/") for word in words),
    ]


async def _answers(url: str) -> None:
    async with httpx.AsyncClient(base_url=url, timeout=5) as client:
        await eventually(
            lambda: client.get("/healthz"),
            150,
            until=lambda answer: answer.status_code == 200,
            ignoring=httpx.TransportError,
            every_s=0.05,
        )


def test_the_dockerfile_runs_without_root_and_ends_by_sigterm():
    done = _run([_program("hadolint"), "--no-color", str(DEPLOY / "Dockerfile")])
    assert done.returncode == 0, done.stdout
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    words = [line.split()[0] for line in lines if re.match(r"[A-Z]+ ", line)]
    assert words.count("FROM") == 2
    assert {"USER 10001:10001", "STOPSIGNAL SIGTERM", 'ENTRYPOINT ["frontrow"]'} <= set(lines)
    copied = [
        word for line in lines if line.startswith("COPY ") and "--from" not in line for word in line.split()[1:-1]
    ]
    allowed = {line[1:] for line in Path(".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert set(copied) == allowed, "what is copied is what is sent to the builder"
    assert all(Path(word).exists() for word in allowed)


def test_hadolint_refuses_a_bad_dockerfile(tmp_path):
    """The canary of the test above."""
    (tmp_path / "Dockerfile").write_text("FROM python\nRUN cd /opt && sudo make\n")
    assert _run([_program("hadolint"), str(tmp_path / "Dockerfile")]).returncode != 0


REGISTRY = f"""#!{sys.executable}
import hashlib, sys
name = hashlib.sha256(sys.argv[-1].encode()).hexdigest()[:31]
print(f"sha256:{{name}}NUMBER{{name}}0", end="")
"""


def test_images_are_pinned_by_digest(tmp_path):
    """The script with a registry that answers: every image but ours gets its digest, again and again; else nothing."""
    for name in ("compose.yaml", "Dockerfile", "pin-images.sh"):
        shutil.copy(DEPLOY / name, tmp_path)
    docker = tmp_path / "docker"
    for number in (1, 2):
        docker.write_text(REGISTRY.replace("NUMBER", str(number)))
        docker.chmod(0o755)
        done = _run(["sh", str(tmp_path / "pin-images.sh")], PATH=f"{tmp_path}:{os.environ['PATH']}")
        assert done.returncode == 0, done.stderr
        services = yaml.safe_load((tmp_path / "compose.yaml").read_text())["services"]
        pinned = {name: service["image"] for name, service in services.items()}
        assert {name for name, image in pinned.items() if image == "frontrow:latest"} == {"web", "work", "migrate"}
        for name, image in pinned.items():
            was = COMPOSE["services"][name]["image"].partition("@")[0]
            assert image == was or re.fullmatch(rf"{re.escape(was)}@sha256:[0-9a-f]{{31}}{number}[0-9a-f]{{32}}", image)
        text = (tmp_path / "Dockerfile").read_text()
        assert re.search(rf"^ARG PYTHON_IMAGE=python:[\w.-]+@sha256:[0-9a-f]{{31}}{number}[0-9a-f]{{32}}$", text, re.M)
        assert _run([_program("hadolint"), str(tmp_path / "Dockerfile")]).returncode == 0
    docker.write_text("#!/bin/sh\necho no such image >&2; exit 1\n")
    assert _run(["sh", str(tmp_path / "pin-images.sh")], PATH=f"{tmp_path}:{os.environ['PATH']}").returncode != 0
    assert (tmp_path / "Dockerfile").read_text() == text, "nothing changes when the registry does not answer"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["Dockerfile", "compose.yaml", "docker", "pin-images.sh"]


def _program(name: str) -> str:
    """A program that a wheel brought into this environment."""
    return str(Path(sys.executable).with_name(name))


def _run(command: list[str], **env: str) -> Any:
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | env)


def test_what_nginx_caches_for_everybody_says_nothing_about_one_client() -> None:
    """The headers of the limits and the id of a request belong to whoever asked first."""
    limits = EntranceLimits()
    own = {name.decode() for name, _ in limits.headers.fields([limits._per_ip.check("somebody")])} | {"x-request-id"}
    text = (DEPLOY / "nginx" / "frontrow.conf").read_text("utf-8")
    cached = [block for block in re.findall(r"location [^{]+\{([^{}]*)\}", text) if "proxy_cache frontrow;" in block]
    assert len(cached) >= 2
    for block in cached:
        assert {name.lower() for name in re.findall(r"proxy_hide_header (\S+);", block)} >= own
