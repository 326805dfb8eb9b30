"""The PromQL expressions of the dashboard and the alert rules, and the metrics that they and the alerts' texts name."""

import json
import re
from pathlib import Path

import promql_parser
import yaml

DEPLOY = Path("deploy")
DASHBOARD = json.loads((DEPLOY / "grafana" / "dashboards" / "frontrow.json").read_text())
RULES = [
    rule
    for file in sorted((DEPLOY / "alerts").glob("*.yml"))
    for group in yaml.safe_load(file.read_text())["groups"]
    for rule in group["rules"]
]
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
EXPRESSIONS = [rule["expr"] for rule in RULES] + [one["expr"] for panel in PANELS for one in panel["targets"]]
IN_WORDS = {
    name for rule in RULES for text in rule["annotations"].values() for name in re.findall(r"frontrow_\w+", text)
}


def selectors(expression: str) -> list[tuple[str, list[str]]]:
    """(metric, label names) of every selector in an expression; raises when it does not parse."""
    promql_parser.parse(expression)
    found = []
    for name, labels in re.findall(r"\b(frontrow_\w+)(?:\{([^}]*)\})?", expression):
        found.append((name, re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", labels or "")))
    return found
