"""B19, O3: each alert fires once on made-up figures and none fires in health, by the rules that are shipped.

`tests/support/promql.py` evaluates them as Prometheus does. The cases have promtool's form; promtool agreed with every
one of them (2.42).
"""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from tests.support.promql import Series, Unsupported, evaluate, firing, labels_of, seconds, values_of

CASES_FILE = Path(__file__).with_name("alert_cases.yml")
DOCUMENT = yaml.safe_load(CASES_FILE.read_text())
RULES: list[dict[str, Any]] = [
    rule
    for file in DOCUMENT["rule_files"]
    for group in yaml.safe_load((CASES_FILE.parent / file).read_text())["groups"]
    for rule in group["rules"]
]
CASES = DOCUMENT["tests"]
FIRING = 'count by (alertname) (ALERTS{alertstate="firing"})'


def expected(case: dict[str, Any]) -> dict[str, float]:
    (asked,) = case["promql_expr_test"]
    assert asked["expr"] == FIRING
    return {dict(labels_of(one["labels"]))["alertname"]: one["value"] for one in asked["exp_samples"]}


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_b19_the_alerts_that_should_fire_do_and_no_others(case: dict[str, Any]) -> None:
    at_s = seconds(case["promql_expr_test"][0]["eval_time"])
    fired = [alert["alertname"] for alert in firing(RULES, case, at_s, seconds(DOCUMENT["evaluation_interval"]))]
    assert {name: float(fired.count(name)) for name in fired} == expected(case)


def test_b19_every_alert_is_fired_by_a_case_and_has_a_line_in_the_runbook() -> None:
    names = {rule["alert"] for rule in RULES}
    assert {name for case in CASES for name in expected(case)} == names
    told = re.findall(r"^\| `(Frontrow\w+)` \|", Path("docs/operations.md").read_text(), re.M)
    assert sorted(told) == sorted(names)


def test_b19_the_case_of_health_has_every_figure_that_a_rule_reads() -> None:
    read = {name for rule in RULES for name in re.findall(r"frontrow_\w+", rule["expr"])}
    shown = {dict(labels_of(given["series"]))["__name__"] for given in CASES[0]["input_series"]}
    assert read == shown


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("sum(rate(total[1m]))", 2.0),
        ("sum(increase(total[1m]))", 120.0),
        ("sum(rate(total[1m] offset 2m))", 1.0),
        ("max(gauge)", 7.0),
        ("sum by (k) (gauge) / sum(gauge)", None),
        ("histogram_quantile(0.5, sum by (le) (rate(bucket[1m])))", 0.5),
    ],
)
def test_the_evaluator_counts_as_prometheus_does(expression: str, value: float | None) -> None:
    """Values that promtool 2.42 gave for the same series."""
    series = Series()
    given = {
        'total{i="a"}': "0+15x12 210+30x12",
        'gauge{k="x"}': "3x40",
        'gauge{k="y"}': "7x40",
        'bucket{le="1"}': "0+10x40",
        'bucket{le="+Inf"}': "0+10x40",
    }
    for name, values in given.items():
        for number, one in enumerate(values_of(values)):
            assert one is not None
            series.add(labels_of(name), number * 15.0, one)
    found = evaluate(promql_parser.parse(expression), series, 300.0)
    assert isinstance(found, dict)
    assert list(found.values()) == ([] if value is None else [pytest.approx(value)])


def test_what_the_evaluator_does_not_know_is_an_error_and_not_silence() -> None:
    for expression in ("irate(a[1m])", "topk(3, a)", "a > bool 1", "a and on (b) c"):
        with pytest.raises(Unsupported):
            evaluate(promql_parser.parse(expression), Series(), 0.0)


def test_promtool_says_the_same_where_it_is_installed(not_checked: Callable[[str], None]) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        not_checked("the cases of the alerts by promtool itself (not installed)")
        return
    subprocess.run([promtool, "test", "rules", str(CASES_FILE)], check=True, capture_output=True)
