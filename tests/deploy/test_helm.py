"""The Helm chart: linted and rendered by helm itself, each object checked against Kubernetes' own schemas, and what the
objects say compared with what the program really has. There is no cluster here, so nothing is applied.
"""

import contextlib
import tomllib
from pathlib import Path
from typing import Any

import httpx
import kubernetes_validate
import promql_parser
import pytest
import yaml

from frontrow.core.errors import ConfigError
from frontrow.settings.platform import read_settings
from frontrow.web.platform.metrics import families
from frontrow.web.site.organiser.venues.venue_list import MOST_BYTES
from tests.deploy.helm_chart import CHART, by_kind, container_of, helm, pods, rendered
from tests.support.compose import COMPOSE, image_environment, read_env
from tests.web.api.support import a_server

ADAPTER = yaml.safe_load((CHART.parent / "prometheus-adapter.yaml").read_text())
OPERATORS = ("--values", str(CHART / "operators.example.yaml"))
OLDEST, NEWEST = "1.27", "1.37"


def test_helm_finds_nothing_wrong_and_kubernetes_takes_every_object() -> None:
    done = helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout
    off = ("autoscaling.enabled=false", "ingress.enabled=false", "networkPolicy.enabled=false")
    less = rendered("--set", ",".join(off))
    assert {one["kind"] for one in less} == {"Service", "Deployment", "Job", "PodDisruptionBudget"}
    changed = [one for one in (*rendered(*OPERATORS), *less) if one not in rendered()]
    assert {one["kind"] for one in changed} == {"Deployment", "Job", "NetworkPolicy"}
    for one in (*rendered(), *changed):
        kubernetes_validate.validate(one, NEWEST, strict=True)
    for one in by_kind("Deployment").values():
        kubernetes_validate.validate(one, OLDEST, strict=True)
    with pytest.raises(kubernetes_validate.ValidationError):  # the canary
        kubernetes_validate.validate({**by_kind("Service")["frontrow"], "sped": {}}, NEWEST, strict=True)


@pytest.mark.parametrize("wrong", ["host=", "image.digest=latest", "web.replica=3", "settings.PATH=/", "secret="])
def test_a_value_that_cannot_be_right_is_refused_before_anything_is_sent(wrong: str) -> None:
    done = helm("template", "frontrow", str(CHART), "--set", wrong)
    assert done.returncode != 0
    assert "values don't meet the specifications" in done.stderr


def test_the_chart_is_of_this_version_and_names_its_image() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == project["version"]
    assert chart["kubeVersion"] == f">={OLDEST}.0-0"
    images = {container_of(pod)["image"] for pod in pods().values()}
    assert images == {f"registry.example.org/frontrow:{project['version']}"}
    digest = f"sha256:{'a' * 64}"
    (image,) = {container_of(pod)["image"] for pod in pods("--set", f"image.digest={digest}").values()}
    assert image.endswith(f"@{digest}")


def given_to(container: dict[str, Any], secrets: dict[str, str]) -> dict[str, str]:
    """The variables that Kubernetes gives to a container; values from other Secrets are put in by their key."""
    given = dict(secrets)
    for one in container["env"]:
        value = one.get("value", f"from-{one.get('valueFrom', {}).get('secretKeyRef', {}).get('key')}")
        if value == "from-uri":
            value = "postgresql://app:word@frontrow-db-rw.default:5432/app"
        for name in ("REDIS_PASSWORD",):
            value = value.replace(f"$({name})", given.get(name, ""))
        given[one["name"]] = value
    return given


def test_every_container_gets_all_it_needs_and_no_secret_is_in_the_chart() -> None:
    assert set(pods()) == {"web", "work", "migrate"}
    for name, pod in pods().items():
        container = container_of(pod)
        assert container["args"] == COMPOSE["services"][name]["command"][: len(container["args"])], (
            "run in test_compose"
        )
        assert container["envFrom"] == [{"secretRef": {"name": "frontrow"}}]
    assert not by_kind("Secret")
    secret = read_env(CHART / "secret.example.env")
    filled = {name: value or "x" * 40 for name, value in secret.items()}
    given = given_to(container_of(pods()["web"]), filled)
    settings = read_settings(None, image_environment() | given)
    assert settings.shared
    assert settings.server.trusted_proxies == ("10.0.0.0/8",)
    assert settings.public_url == "https://tickets.example.org"
    assert settings.work.health == "0.0.0.0:8001"
    for name in secret:
        with contextlib.suppress(ConfigError):
            assert read_settings(None, given | {name: ""}) != settings, f"{name} makes no difference"
    text = "".join(file.read_text() for file in CHART.rglob("*.yaml"))
    assert not [name for name, value in secret.items() if f"{name}:" in text and not value]


def test_the_stores_of_operators_are_found_by_their_secrets() -> None:
    left_out = ("FRONTROW_LEDGER_URL", "FRONTROW_REDIS_URL")
    secret = {name: value or "x" * 40 for name, value in read_env(CHART / "secret.example.env").items()}
    given = {name: value for name, value in secret.items() if name not in left_out}
    for pod in pods(*OPERATORS).values():
        settings = read_settings(None, image_environment() | given_to(container_of(pod), given))
        assert settings.ledger_url.endswith("frontrow-db-rw.default:5432/app")
        assert settings.redis.url.startswith("redis+sentinel://:from-password@")
        assert settings.bus_url == "kafka://frontrow-kafka-bootstrap:9092/facts"
    (policy,) = by_kind("NetworkPolicy", *OPERATORS).values()
    open_ports = {port["port"] for rule in policy["spec"]["egress"] for port in rule["ports"]}
    assert {5432, 26379, 6379, 9092, 53} <= open_ports


def test_pods_are_shut_in_and_share_nothing() -> None:
    for pod in pods().values():
        spec, container = pod["spec"], container_of(pod)
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"]
        assert spec["securityContext"]["runAsUser"] == 10001
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert {one["name"] for one in container["volumeMounts"]} == {one["name"] for one in spec["volumes"]}
        assert all("emptyDir" in one for one in spec["volumes"]), "no volume that several pods write to"
        assert container["resources"]["limits"]["memory"]


def test_the_migration_runs_before_everything_else_changes() -> None:
    (job,) = by_kind("Job").values()
    notes = job["metadata"]["annotations"]
    assert notes["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert "before-hook-creation" in notes["helm.sh/hook-delete-policy"], "a Job cannot be changed, only made anew"
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    strategy = by_kind("Deployment")["frontrow-web"]["spec"]["strategy"]["rollingUpdate"]
    assert strategy["maxUnavailable"] == 0


def test_objects_point_at_each_other() -> None:
    deployments = by_kind("Deployment")
    labels = {name: one["spec"]["template"]["metadata"]["labels"] for name, one in deployments.items()}
    for name, one in deployments.items():
        assert one["spec"]["selector"]["matchLabels"] == labels[name]
        budget = by_kind("PodDisruptionBudget")[name]
        assert budget["spec"]["selector"]["matchLabels"] == labels[name]
        spread = one["spec"]["template"]["spec"]["topologySpreadConstraints"]
        assert {rule["topologyKey"] for rule in spread} == {"topology.kubernetes.io/zone", "kubernetes.io/hostname"}
        assert all(rule["labelSelector"]["matchLabels"] == labels[name] for rule in spread)
    service = by_kind("Service")["frontrow"]["spec"]
    assert service["selector"] == labels["frontrow-web"]
    web = container_of(pods()["web"])
    assert service["ports"][0]["targetPort"] in [port["name"] for port in web["ports"]]
    given = {one["name"]: one.get("value") for one in web["env"]}
    grace = pods()["web"]["spec"]["terminationGracePeriodSeconds"]
    before = int(web["lifecycle"]["preStop"]["exec"]["command"][1])
    assert before + float(given["FRONTROW_SERVER_DRAIN_S"]) + 10 <= grace, "it would be killed while it finishes"
    (policy,) = by_kind("NetworkPolicy").values()
    every = policy["spec"]["podSelector"]["matchLabels"].items()
    assert all(every <= pod["metadata"]["labels"].items() for pod in pods().values())
    named = {port["name"] for pod in pods().values() for port in container_of(pod).get("ports", ())}
    assert {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]} == named
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]


def test_the_ingress_leads_to_the_service_and_lets_whole_halls_through() -> None:
    (ingress,) = by_kind("Ingress").values()
    services = {name: one["spec"] for name, one in by_kind("Service").items()}
    (rule,) = ingress["spec"]["rules"]
    assert ingress["spec"]["tls"][0]["hosts"] == [rule["host"]]
    ways = {one["path"]: one["backend"]["service"] for one in rule["http"]["paths"]}
    assert ways["/"]["port"]["name"] in [port["name"] for port in services[ways["/"]["name"]]["ports"]]
    hidden = services[ways["/metrics"]["name"]]["selector"].items()
    assert not [pod for pod in pods().values() if hidden <= pod["metadata"]["labels"].items()], "not for everybody"
    notes = {name.rpartition("/")[2]: value for name, value in ingress["metadata"]["annotations"].items()}
    assert int(notes["proxy-body-size"].removesuffix("m")) * 2**20 > MOST_BYTES
    assert (notes["proxy-buffering"], notes["proxy-read-timeout"]) == ("off", "3600")


async def test_autoscaling_and_probes_use_what_the_server_really_answers(tmp_path: Path) -> None:
    """Figures of the autoscaler are on the real page and known to the adapter; probes are real routes (F3)."""
    (scaler,) = by_kind("HorizontalPodAutoscaler").values()
    assert scaler["spec"]["scaleTargetRef"]["name"] in by_kind("Deployment")
    wanted = {
        kind: {one[kind.lower()]["metric"]["name"] for one in scaler["spec"]["metrics"] if one["type"] == kind}
        for kind in ("Pods", "External")
    }
    offered = {
        kind: {rule["seriesQuery"].partition("{")[0] for rule in ADAPTER["rules"][key]}
        for kind, key in (("Pods", "custom"), ("External", "external"))
    }
    assert (
        wanted
        == offered
        == {
            "Pods": {"frontrow_requests_in_flight", "frontrow_loop_lag_seconds"},
            "External": {"frontrow_room_waiting"},
        }
    )
    for rule in [*ADAPTER["rules"]["custom"], *ADAPTER["rules"]["external"]]:
        query = rule["metricsQuery"].replace("<<.Series>>", "a").replace("<<.LabelMatchers>>", 'b="c"')
        promql_parser.parse(query.replace("<<.GroupBy>>", "namespace"))
    web = container_of(pods()["web"])
    async with a_server(tmp_path) as (platform, address), httpx.AsyncClient(base_url=address) as client:
        assert wanted["Pods"] | wanted["External"] <= {family.name for family in families(platform)}
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert (await client.get(web[probe]["httpGet"]["path"])).status_code == 200
    work = container_of(pods()["work"])
    paths = {work[probe]["httpGet"]["path"] for probe in ("startupProbe", "readinessProbe", "livenessProbe")}
    assert paths == {"/healthz", "/readyz"}, "answered in tests/web/observability/test_job_health.py"
    assert {work[probe]["httpGet"]["port"] for probe in ("startupProbe", "livenessProbe")} == {"health"}
