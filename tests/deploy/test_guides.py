"""The operators' guides (docs/guides): every command, option, service, value, alert and metric in them is real.

The commands themselves run elsewhere: the upgrade in tests/app/test_rolling_upgrade.py, the restore drill in
tests/journeys/test_restore_drill.py, the containers' commands in test_compose.py, the chart in test_helm.py.
"""

import http.server
import importlib
import re
import shlex
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer
import yaml

from frontrow.boxoffice.adapters.ledger.schema_versions import MIGRATIONS, newest_version
from frontrow.cli import main
from tests.deploy.expressions import EXPRESSIONS, IN_WORDS, RULES, selectors
from tests.deploy.helm_chart import CHART, rendered
from tests.support.compose import COMPOSE
from tests.support.nginx import DeployedNginx

GUIDES = sorted(Path("docs/guides").glob("*.md"))
TEXTS = {guide.name: guide.read_text() for guide in GUIDES}
BLOCKS = re.compile(r"```(?:sh|text)\n(.*?)```", re.S)
INLINE = re.compile(r"`((?:frontrow|docker compose|helm|kubectl) [^`]+)`")
OPTIONS_WITH_VALUE = {"--set", "--set-string", "--values", "-f", "--scale"}


def command_lines(text: str) -> list[list[str]]:
    """Every command of a guide, from its blocks and in its sentences, split as a shell does."""
    lines = [line for block in BLOCKS.findall(text) for line in block.replace("\\\n", " ").splitlines()]
    return [shlex.split(line, comments=True) for line in [*lines, *INLINE.findall(text)] if line.strip()]


COMMANDS = [(name, words) for name, text in TEXTS.items() for words in command_lines(text) if words]


def own_commands() -> list[tuple[str, list[str]]]:
    """Those of `frontrow`, also inside a container."""
    return [(name, words[words.index("frontrow") :]) for name, words in COMMANDS if _calls_frontrow(words)]


def _calls_frontrow(words: list[str]) -> bool:
    return words[0] == "frontrow" or ("exec" in words and "frontrow" in words)


def test_the_guides_are_there_and_lead_to_each_other() -> None:
    wanted = {
        "backup",
        "disaster-recovery",
        "kubernetes",
        "on-sale",
        "production",
        "regions",
        "sizing",
        "tls",
        "upgrade",
    }
    assert {guide.stem for guide in GUIDES} == wanted
    reference = Path("docs/operations.md").read_text()
    assert all(f"(guides/{guide.name})" in reference for guide in GUIDES)
    assert len(own_commands()) > 25


def command_named(name: str) -> Any:
    """The command or the group of commands of this name, as `frontrow` loads it."""
    if name in main.GROUPS:
        return typer.main.get_command(importlib.import_module(main.GROUPS[name][0]).app)
    alone = typer.Typer(add_completion=False)
    alone.command()(getattr(importlib.import_module(main.COMMANDS[name][0]), name.replace("-", "_")))
    return typer.main.get_command(alone)


@pytest.mark.parametrize(("guide", "words"), own_commands(), ids=lambda one: one if isinstance(one, str) else one[1])
def test_every_command_of_ours_is_one(guide: str, words: list[str]) -> None:
    found, rest = command_named(words[1]), words[2:]
    while hasattr(found, "commands"):
        found, rest = found.get_command(None, rest[0]), rest[1:]
        assert found is not None, f"{guide}: {' '.join(words)}"
    known = {option for one in found.params for option in (*one.opts, *one.secondary_opts)}
    given = {word.partition("=")[0] for word in rest if word.startswith("--")}
    assert given <= known, f"{guide}: {' '.join(words)}"


def test_compose_commands_name_files_and_services_that_are_there() -> None:
    seen = [(name, words) for name, words in COMMANDS if words[:2] == ["docker", "compose"]]
    assert len(seen) > 8
    for name, words in seen:
        files = [words[at + 1] for at, word in enumerate(words) if word == "-f"]
        assert all(Path(file).exists() for file in files), f"{name}: {words}"
        plain = [word for at, word in enumerate(words) if words[at - 1] not in OPTIONS_WITH_VALUE]
        plain = [word for word in plain if not word.startswith("-")][2:]
        if plain[0] in ("exec", "run"):
            assert plain[1] in COMPOSE["services"], f"{name}: {words}"
        scaled = [words[at + 1].partition("=")[0] for at, word in enumerate(words) if word == "--scale"]
        assert set(scaled) <= set(COMPOSE["services"])


def test_kubernetes_commands_name_values_and_objects_that_are_there() -> None:
    objects = {f"{one['kind'].lower()}/{one['metadata']['name']}" for one in rendered()}
    helm = [
        (name, words)
        for name, words in COMMANDS
        if words[0] == "helm" and "frontrow" in words and words[1] != "rollback"
    ]
    assert len(helm) >= 4
    for name, words in helm:
        assert words[2:4] == ["frontrow", str(CHART)], f"{name}: {words}"
        options = [word for at, word in enumerate(words) if {word, words[at - 1]} & {"--set", "--set-string"}]
        assert rendered(*options), f"{name}: {words}"
    for name, words in COMMANDS:
        if words[0] == "kubectl" and "deployment" in words:
            after = words[words.index("deployment") + 1 :]
            named = [f"deployment/{word}" for word in after if not word.startswith("-")]
            assert named
            assert set(named) <= objects, f"{name}: {words}"
        assert {word for word in words if word.startswith("deployment/")} <= objects, f"{name}: {words}"


def test_alerts_metrics_and_values_named_in_guides_exist() -> None:
    text = BLOCKS.sub("", "\n".join(TEXTS.values()))
    alerts = {rule["alert"] for rule in RULES}
    assert set(re.findall(r"\bFrontrow[A-Z]\w+", text)) <= alerts
    on_the_page = IN_WORDS | {
        name for expression in EXPRESSIONS for name, _ in selectors(expression)
    }  # test_dashboards
    mentioned = {name for query in re.findall(r"`([^`]*frontrow_[^`]*)`", text) for name, _ in selectors(query)}
    assert mentioned
    assert mentioned <= on_the_page
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    for path in re.findall(r"`((?:autoscaling|networkPolicy|ingress|web|image)\.\w+)`", text):
        part, _, key = path.partition(".")
        assert key in values[part], path


def test_the_upgrade_guide_says_the_schema_of_today_and_every_version_that_needs_a_stop() -> None:
    text = TEXTS["upgrade.md"]
    (today,) = re.findall(r"schema is version (\d+) today", text)
    assert int(today) == int(newest_version()), "the ledger has a new version: say so in docs/guides/upgrade.md"
    sources = {path: path.read_text() for path in (MIGRATIONS / "versions").glob("v*.py")}
    contracting = {int(path.stem[1:5]) for path, source in sources.items() if "\ncontracts = True" in source}
    _, _, table = text.partition("## Versions that need a stop")
    assert {int(number) for number in re.findall(r"^\| (\d+) \|", table, re.M)} == contracting


def test_the_runbook_loads_one_and_a_half_times_the_crowd_that_is_rehearsed() -> None:
    people = {
        words[1]: int(words[words.index("--people") + 1])
        for guide, words in own_commands()
        if guide == "on-sale.md" and "--people" in words
    }
    assert people["storm"] == 1.5 * people["rehearse"]
    assert "1.5 times" in TEXTS["on-sale.md"]


def test_pods_on_spot_machines_end_before_the_machine_does() -> None:
    """The values of the guide, with the shortest notice that it names."""
    (words,) = [
        words for guide, words in COMMANDS if guide == "kubernetes.md" and "nodeSelector.capacity=spot" in words
    ]
    options = [word for at, word in enumerate(words) if "--set" in (word, words[at - 1])]
    pods = {
        one["metadata"]["name"]: one["spec"]["template"]["spec"]
        for one in rendered(*options)
        if "template" in one["spec"]
    }
    for pod in pods.values():
        assert pod["nodeSelector"] == {"capacity": "spot"}
        assert pod["tolerations"] == [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}]
    text = TEXTS["kubernetes.md"].replace("\n", " ")
    (notice_s,) = [int(number) for number in re.findall(r"Where the notice is (\d+) seconds", text)]
    assert pods["frontrow-web"]["terminationGracePeriodSeconds"] <= notice_s
    assert "/readyz" in TEXTS["regions.md"], "what the health checks of two regions ask; see tests/faults for its 503"


def test_behind_a_cdn_nginx_passes_on_the_address_of_the_visitor() -> None:
    """The directives of the production guide, in the nginx that we ship: the CDN is believed, nobody else."""
    directives = re.findall(
        r"`((?:set_real_ip_from|real_ip_header|real_ip_recursive)[^`;]*);?`", TEXTS["production.md"]
    )
    assert {line.split()[0] for line in directives} == {"set_real_ip_from", "real_ip_header", "real_ip_recursive"}
    lines = ["set_real_ip_from 127.0.0.1", *(line for line in directives if " " in line)]
    seen: list[str | None] = []

    class Upstream(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers["X-Forwarded-For"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        changes = {"127.0.0.1:8000": f"127.0.0.1:{server.server_port}"}
        told = changes | {"server_tokens off;": "server_tokens off;" + "".join(f"{line};" for line in lines)}
        try:
            for given, wanted in ((told, "203.0.113.9"), (changes, "127.0.0.1")):
                with DeployedNginx("upstream.conf", given) as nginx:
                    httpx.get(f"{nginx.url}/v1/x", headers={"X-Forwarded-For": "203.0.113.9"}, trust_env=False)
                assert seen[-1] == wanted
        finally:
            server.shutdown()
            thread.join(10)
