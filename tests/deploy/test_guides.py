"""The operators' guides (docs/guides): every command, option, service, value, alert and metric in them is real.

The commands themselves run elsewhere: the upgrade in tests/app/test_rolling_upgrade.py, the restore drill in
tests/journeys/test_restore_drill.py, the containers' commands in test_compose.py, the chart in test_helm.py.
"""

import importlib
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from frontrow.cli import main
from tests.deploy.test_dashboards import EXPRESSIONS, IN_WORDS, RULES, selectors
from tests.deploy.test_helm import CHART, rendered
from tests.support.compose import COMPOSE

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
