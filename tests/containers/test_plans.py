"""The pure parts of `make containers`: the compose file is read whole, stand-ins are made under the right names."""

from pathlib import Path

import pytest
import yaml

from tests.containers.compose_plan import SERVICE_KEYS, NotUnderstood, read_plan, seconds, start_order
from tests.containers.engine import CONFIG
from tests.containers.images import revision_before
from tests.containers.scenes import SCENES
from tests.containers.stand_ins import STAND_INS, SUITES, archive_of, full_name, python_image, repository
from tests.support.compose import COMPOSE, DEPLOY, read_env

OTHER_FILE = {
    "name": "shop",
    "services": {
        "web": {
            "image": "shop:1",
            "restart": "unless-stopped",
            "logging": {"driver": "local", "options": {"max-size": "1m", "max-file": "2"}},
            "environment": {"PASSWORD": "${SECRET:?set it}"},
            "healthcheck": {"test": ["CMD", "true"], "interval": "5s", "start_period": "1m"},
        }
    },
    "networks": {"default": {"ipam": {"config": [{"subnet": "172.31.0.0/24"}]}}},
    "volumes": {},
}


def plan_of(folder: Path, text: str, env: str = "", most_open_files: int = 65_536):  # type: ignore[no-untyped-def]
    (folder / "compose.yaml").write_text(text)
    (folder / ".env").write_text(env)
    return read_plan(folder / "compose.yaml", most_open_files=most_open_files)


@pytest.fixture
def ours(tmp_path: Path):  # type: ignore[no-untyped-def]
    env = "".join(f"{name}={value or 'made-up'}\n" for name, value in read_env(DEPLOY / "example.env").items())
    return plan_of(tmp_path, (DEPLOY / "compose.yaml").read_text(), env, most_open_files=20_000)


def test_every_line_of_our_compose_file_reaches_podman(ours) -> None:  # type: ignore[no-untyped-def]
    order = list(ours.services)
    for name, service in ours.services.items():
        given = COMPOSE["services"][name]
        assert all(order.index(other) < order.index(name) for other in service.needs)
        assert service.command == tuple(given.get("command", ()))
        assert service.replicas == given.get("deploy", {}).get("replicas", 1)
        words = service.options
        assert ("--read-only" in words) == given.get("read_only", False)
        assert [f"--cap-drop={one}" for one in given.get("cap_drop", [])] == [
            word for word in words if word.startswith("--cap-drop=")
        ]
        assert len([word for word in words if word.startswith("--volume=")]) == len(given.get("volumes", []))
        assert len([word for word in words if word == "--publish"]) == len(given.get("ports", []))
        assert f"--restart={given['restart']}" in words
    web = ours.services["web"]
    assert (web.grace_s, web.builds) == (35, True)
    assert "--env=FRONTROW_SERVER_DRAIN_S=20" in web.options
    assert any(word.startswith("--env=FRONTROW_LEDGER_URL=postgresql://frontrow:made-up@") for word in web.options)
    assert "--security-opt=no-new-privileges:true" in web.options
    assert "--no-healthcheck" in ours.services["migrate"].options
    assert "--health-cmd=pg_isready -U frontrow -h 127.0.0.1" in ours.services["postgres"].options
    assert ours.subnet == "172.31.240.0/24"


def test_what_podman_cannot_do_as_written_is_said(ours) -> None:  # type: ignore[no-untyped-def]
    assert "--ulimit=nofile=20000:20000" in ours.services["web"].options
    assert [note for note in ours.notes if "65536 open files" in note and "20000" in note]
    assert [note for note in ours.notes if "log driver `local`" in note]


def test_a_file_with_more_in_it_is_refused_and_not_read_in_part(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, yaml.safe_dump(OTHER_FILE), "SECRET=x\n")
    assert "--env=PASSWORD=x" in plan.services["web"].options
    assert '--health-cmd=["true"]' in plan.services["web"].options
    assert "--health-start-period=1m" in plan.services["web"].options
    web = OTHER_FILE["services"]["web"]  # type: ignore[index]
    for more in ({"privileged": True}, {"depends_on": {"x": {"condition": "service_started"}}}, {"restart": "always"}):
        changed = OTHER_FILE | {"services": {"web": web | more}}
        with pytest.raises((NotUnderstood, KeyError)):
            plan_of(tmp_path, yaml.safe_dump(changed), "SECRET=x\n")
    with pytest.raises(NotUnderstood, match="configs"):
        plan_of(tmp_path, yaml.safe_dump(OTHER_FILE | {"configs": {}}), "SECRET=x\n")
    assert {key for service in COMPOSE["services"].values() for key in service} <= SERVICE_KEYS


def test_services_start_after_what_they_need() -> None:
    assert start_order({"a": {"b": ""}, "b": {"c": ""}, "c": {}}) == ["c", "b", "a"]
    with pytest.raises(NotUnderstood, match="a, b"):
        start_order({"a": {"b": ""}, "b": {"a": ""}})


@pytest.mark.parametrize(("text", "value"), [("35s", 35), ("2m", 120), ("1h", 3_600)])
def test_durations(text: str, value: int) -> None:
    assert seconds(text) == value
    with pytest.raises(NotUnderstood):
        seconds("1m30s")


def test_every_base_image_has_a_stand_in_but_grafana() -> None:
    images = {one["image"] for one in COMPOSE["services"].values() if "build" not in one}
    images.add(python_image(DEPLOY / "Dockerfile"))
    assert {image for image in images if repository(image) not in STAND_INS} == {
        image for image in images if "grafana" in image
    }
    assert {one.suite for one in STAND_INS.values()} == set(SUITES)
    assert STAND_INS["nginx"].suite == "sid", "`server … resolve` needs nginx 1.27.3"
    for one in STAND_INS.values():
        assert one.containerfile().startswith("FROM localhost/")
        assert ("COPY entrypoint" in one.containerfile()) == bool(one.script)
    assert len({one.digest() for one in STAND_INS.values()}) == len(STAND_INS)


@pytest.mark.parametrize(
    ("image", "name", "full"),
    [
        ("nginx:1.28-alpine", "nginx", "docker.io/library/nginx:1.28-alpine"),
        ("prom/prometheus:v3.0.0", "prom/prometheus", "docker.io/prom/prometheus:v3.0.0"),
        (f"postgres:17@sha256:{'a' * 64}", "postgres", f"docker.io/library/postgres:17@sha256:{'a' * 64}"),
        ("localhost/frontrow:latest", "localhost/frontrow", "localhost/frontrow:latest"),
    ],
)
def test_images_have_the_names_that_an_engine_looks_for(image: str, name: str, full: str) -> None:
    assert repository(image) == name
    assert full_name(image) == full


@pytest.mark.parametrize(
    ("sources", "found"),
    [
        ("deb http://archive.example/debian trixie main\n", "http://archive.example/debian"),
        ("deb [signed-by=/k] https://m.example/debian/ sid main", "https://m.example/debian"),
        (
            "Types: deb\nURIs: http://a.example/debian-security\n\nURIs: http://a.example/debian\n",
            "http://a.example/debian",
        ),
        ("# deb http://archive.example/debian trixie main\ndeb https://other.example/apt stable main\n", None),
        ("", None),
    ],
)
def test_the_archive_is_the_one_of_this_machine(sources: str, found: str | None) -> None:
    assert archive_of(sources) == found


def test_the_engine_stays_inside_the_limits_of_the_machine() -> None:
    assert 'runtime = "runc"' in CONFIG.format(files=20_000, processes=10_000)
    assert len(SCENES) >= 7


def test_the_state_to_upgrade_from_is_an_earlier_one_and_says_why() -> None:
    root = Path(__file__).parents[2]
    if (root / ".git").exists():
        revision, why = revision_before(root)
        assert revision
        assert revision.rstrip("^") in why
