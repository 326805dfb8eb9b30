"""The files under deploy/: nginx's by nginx itself, systemd's by running their commands, the others by their form and
against what the program really has. The compose file runs in test_compose.py.

There is no Docker or Kubernetes here, so images are not built and manifests are not applied.
"""

import asyncio
import configparser
import contextlib
import json
import re
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import yaml

from frontrow.core.errors import ConfigError
from frontrow.core.settings_loader import load
from frontrow.settings.platform import _SECTIONS, read_settings
from frontrow.web.api.organiser.venues import MAX_PLAN_BYTES
from frontrow.web.observability.metrics import families
from frontrow.web.site.organiser.venues import MOST_BYTES
from tests.support.compose import COMPOSE, image_environment, read_env
from tests.support.nginx import nginx_program
from tests.web.api.support import a_server

DEPLOY = Path("deploy")
KUBERNETES = [
    one for file in sorted((DEPLOY / "kubernetes").glob("*.yaml")) for one in yaml.safe_load_all(file.read_text())
]


TESTED = {  # every file of deploy/ and examples/ -> the test that runs or checks it
    "deploy/Dockerfile": "test_the_dockerfile_runs_without_root_and_ends_by_sigterm",
    "deploy/alerts/frontrow.yml": "tests/deploy/test_dashboards.py",
    "deploy/compose.yaml": "tests/deploy/test_compose.py",
    "deploy/example.env": "tests/deploy/test_compose.py",
    "deploy/grafana/dashboards/frontrow.json": "tests/deploy/test_dashboards.py",
    "deploy/grafana/provisioning/dashboards/frontrow.yaml": "test_grafana_loads_the_dashboard_from_our_prometheus",
    "deploy/grafana/provisioning/datasources/prometheus.yaml": "test_grafana_loads_the_dashboard_from_our_prometheus",
    "deploy/kubernetes/autoscaling.yaml": "test_autoscaling_and_probes_use_what_the_server_really_answers",
    "deploy/kubernetes/example.env": "test_kubernetes_gives_every_container_all_it_needs",
    "deploy/kubernetes/frontrow.yaml": "test_kubernetes_objects_point_at_each_other",
    "deploy/kubernetes/ingress.yaml": "test_the_ingress_leads_to_the_service_and_lets_whole_halls_through",
    "deploy/kubernetes/settings.yaml": "test_kubernetes_gives_every_container_all_it_needs",
    "deploy/nginx/frontrow.conf": "tests/deploy/test_compose.py",
    "deploy/nginx/upstream-compose.conf": "tests/deploy/test_compose.py",
    "deploy/nginx/upstream.conf": "test_nginx_accepts_its_configuration",
    "deploy/prometheus.yml": "test_prometheus_asks_every_server_and_reads_our_rules",
    "deploy/systemd/example.env": "test_the_units_commands_start_with_their_files",
    "deploy/systemd/frontrow-work.service": "test_the_units_commands_start_with_their_files",
    "deploy/systemd/frontrow.service": "test_the_units_commands_start_with_their_files",
    "deploy/systemd/frontrow.toml": "test_the_units_commands_start_with_their_files",
    "examples/nginx/frontrow.conf": "tests/waitingroom/protect/test_nginx.py",
    "examples/protected_shop.py": "tests/web/room/test_serve.py",
}


def test_every_file_here_is_run_or_checked_by_a_test() -> None:
    found = {str(file) for top in ("deploy", "examples") for file in Path(top).rglob("*") if file.is_file()}
    assert {file for file in found if "__pycache__" not in file} == set(TESTED)
    for where in TESTED.values():
        assert where in globals() or Path(where).exists(), where


@pytest.mark.parametrize("upstream", ["upstream.conf", "upstream-compose.conf"])
def test_nginx_accepts_its_configuration(tmp_path, upstream):
    done = _checked_by_nginx(tmp_path, upstream)
    assert done.returncode == 0, done.stderr


def test_nginx_refuses_a_broken_one(tmp_path):
    """The canary of the test above."""
    assert _checked_by_nginx(tmp_path, "upstream.conf", {"keepalive 256;": "keepalive;"}).returncode != 0


def _checked_by_nginx(folder: Path, upstream: str, changes: dict[str, str] | None = None) -> Any:
    for source, name in (("frontrow.conf", "nginx.conf"), (upstream, "upstream.conf")):
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
    texts = [file.read_text() for file in DEPLOY.rglob("*") if file.is_file()]
    return {found for text in texts for found in re.findall(r"FRONTROW_[A-Z_]+", text)}


def test_every_variable_named_in_deploy_is_a_setting():
    assert given_variables() - variables() == set()
    assert load(_SECTIONS["server"], "server", env={"FRONTROW_SERVER_JOBS_INSIDE": "false"}).jobs_inside is False


def by_kind(kind: str) -> list[dict[str, Any]]:
    return [one for one in KUBERNETES if one["kind"] == kind]


def config_map() -> dict[str, str]:
    (settings,) = by_kind("ConfigMap")
    return settings["data"]


def test_kubernetes_gives_every_container_all_it_needs():
    """The settings and the Secret together start a platform; mail and proxies are not forgotten."""
    pods = [one["spec"]["template"]["spec"] for kind in ("Deployment", "Job") for one in by_kind(kind)]
    commands = []
    for pod in pods:
        for container in pod["containers"]:
            assert container["envFrom"] == [{"configMapRef": {"name": "frontrow"}}, {"secretRef": {"name": "frontrow"}}]
            assert container["securityContext"]["readOnlyRootFilesystem"]
            commands.append(container["args"])
            folder = next(one["name"] for one in container["volumeMounts"] if one["mountPath"] == "/var/lib/frontrow")
            volume = next(one for one in pod["volumes"] if one["name"] == folder)
            assert "emptyDir" in volume, "servers share no folder: each pod has its own metrics"
    compose = [COMPOSE["services"][name]["command"] for name in ("web", "work", "migrate")]
    assert commands == [["serve"], ["work"], ["ledger", "migrate"]]
    assert [command[: len(one)] for command, one in zip(compose, commands, strict=True)] == commands, (
        "run in test_compose"
    )
    secret = read_env(DEPLOY / "kubernetes" / "example.env")
    assert not set(secret) & set(config_map())
    given = config_map() | {name: value or "x" * 40 for name, value in secret.items()}
    settings = read_settings(None, image_environment() | given)
    assert settings.server.trusted_proxies
    assert settings.mail_url.startswith("smtp://")
    assert settings.public_url.startswith("https://")
    assert settings.stripe.publishable_key
    assert settings.shared
    for name in secret:
        with contextlib.suppress(ConfigError):
            assert read_settings(None, given | {name: ""}) != settings, f"{name} makes no difference"


def test_the_ingress_leads_to_the_service_and_lets_whole_halls_through():
    (ingress,) = by_kind("Ingress")
    services = {one["metadata"]["name"]: one["spec"] for one in by_kind("Service")}
    (rule,) = ingress["spec"]["rules"]
    assert f"https://{rule['host']}" == config_map()["FRONTROW_SERVER_PUBLIC_URL"]
    assert ingress["spec"]["tls"][0]["hosts"] == [rule["host"]]
    ways = {one["path"]: one["backend"]["service"] for one in rule["http"]["paths"]}
    assert ways["/"]["name"] == "frontrow"
    assert ways["/"]["port"]["name"] in [port["name"] for port in services["frontrow"]["ports"]]
    hidden = services[ways["/metrics"]["name"]]["selector"]
    pods = [one["spec"]["template"]["metadata"]["labels"] for kind in ("Deployment", "Job") for one in by_kind(kind)]
    assert not [labels for labels in pods if hidden.items() <= labels.items()], "/metrics is not for everybody"
    notes = {name.rpartition("/")[2]: value for name, value in ingress["metadata"]["annotations"].items()}
    assert int(notes["proxy-body-size"].removesuffix("m")) * 2**20 > MOST_BYTES
    assert (notes["proxy-buffering"], notes["proxy-read-timeout"]) == ("off", "3600")


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
    (job,) = config["scrape_configs"]
    (names,) = job["dns_sd_configs"]
    assert names["names"] == ["web"]
    assert str(names["port"]) in COMPOSE["services"]["web"]["expose"]


def test_kubernetes_objects_point_at_each_other():
    deployments = {one["metadata"]["name"]: one for one in by_kind("Deployment")}
    labels = {name: one["spec"]["template"]["metadata"]["labels"] for name, one in deployments.items()}
    for name, one in deployments.items():
        assert one["spec"]["selector"]["matchLabels"].items() <= labels[name].items()
        pod = one["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"]
        for container in pod["containers"]:
            assert {mount["name"] for mount in container["volumeMounts"]} == {one["name"] for one in pod["volumes"]}
            assert container["args"][0] in ("serve", "work")
    service = next(one for one in by_kind("Service") if one["metadata"]["name"] == "frontrow")
    assert service["spec"]["selector"].items() <= labels["frontrow-web"].items()
    web = deployments["frontrow-web"]["spec"]["template"]["spec"]["containers"][0]
    assert service["spec"]["ports"][0]["targetPort"] in [port["name"] for port in web["ports"]]
    drain = float(config_map()["FRONTROW_SERVER_DRAIN_S"])
    grace = deployments["frontrow-web"]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    assert drain + 5 < grace, "the pod would be killed while it finishes"
    (budget,) = by_kind("PodDisruptionBudget")
    assert budget["spec"]["selector"]["matchLabels"].items() <= labels["frontrow-web"].items()


def test_the_upgrade_that_needs_old_servers_stopped_is_documented_for_kubernetes() -> None:
    """Version 12 of the ledger: a rolling update would leave old servers on the new names (issue 11)."""
    docs = Path("docs/operations.md").read_text()
    (steps,) = re.findall(r"```sh\n(kubectl scale .*?)```", docs, re.DOTALL)
    scale, delete, wait, apply = [line.partition("#")[0].split() for line in steps.splitlines()]
    deployments = {one["metadata"]["name"]: one for one in KUBERNETES if one["kind"] == "Deployment"}
    assert scale[:3] == ["kubectl", "scale", "deployment"]
    assert {name for name in scale[3:] if not name.startswith("--")} == set(deployments)
    assert "--replicas=0" in scale
    (selector,) = [word.removeprefix("--selector=") for word in wait if word.startswith("--selector=")]
    name, _, value = selector.partition("=")
    assert "--for=delete" in wait
    for one in deployments.values():
        assert one["spec"]["template"]["metadata"]["labels"][name] == value
        assert one["spec"]["replicas"] > 0, "apply starts them again"
    jobs = {one["metadata"]["name"] for one in KUBERNETES if one["kind"] == "Job"}
    assert delete[:4] == ["kubectl", "delete", "job", *jobs]
    assert apply == ["kubectl", "apply", "-f", str(DEPLOY / "kubernetes")]
    assert "docs/operations.md" in (DEPLOY / "kubernetes" / "frontrow.yaml").read_text()


async def test_autoscaling_and_probes_use_what_the_server_really_answers(tmp_path):
    """Queue figures of the HPA are metrics of the real page; probes are real routes (F3)."""
    (scaler,) = by_kind("HorizontalPodAutoscaler")
    assert scaler["spec"]["scaleTargetRef"]["name"] in [one["metadata"]["name"] for one in by_kind("Deployment")]
    wanted = {
        metric[metric["type"].lower()]["metric"]["name"]
        for metric in scaler["spec"]["metrics"]
        if metric["type"] in ("Pods", "External")
    }
    assert "frontrow_room_waiting" in wanted
    web = next(one for one in by_kind("Deployment") if one["metadata"]["name"] == "frontrow-web")
    container = web["spec"]["template"]["spec"]["containers"][0]
    async with a_server(tmp_path) as (platform, address), httpx.AsyncClient(base_url=address) as client:
        assert wanted <= {family.name for family in families(platform)}
        for probe in ("readinessProbe", "livenessProbe"):
            assert (await client.get(container[probe]["httpGet"]["path"])).status_code == 200


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
        for _ in range(3_000):
            with contextlib.suppress(httpx.TransportError):
                if (await client.get("/healthz")).status_code == 200:
                    return
            await asyncio.sleep(0.05)
    raise AssertionError("the server did not answer")


def test_the_dockerfile_runs_without_root_and_ends_by_sigterm():
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    words = [line.split()[0] for line in lines if re.match(r"[A-Z]+ ", line)]
    assert words.count("FROM") == 2
    assert "USER 10001" in lines
    assert "STOPSIGNAL SIGTERM" in lines
    assert 'ENTRYPOINT ["frontrow"]' in lines
    copied = [
        word for line in lines if line.startswith("COPY ") and "--from" not in line for word in line.split()[1:-1]
    ]
    allowed = {line[1:] for line in Path(".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert {word.removeprefix("./") for word in copied} == allowed, "what is copied is what is sent to the builder"
    assert all(Path(word).exists() for word in allowed)
