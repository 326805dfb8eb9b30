"""The dashboard and the alert rules (B19): every expression parses, every metric and label in them is on the real page.

promtool is not in the package registries, so the expressions are read by a PromQL parser; `promtool check rules
deploy/alerts/frontrow.yml` says the same where it is installed. tests/deploy/test_alerts.py fires each alert.
"""

import re

import httpx
import pytest
import yaml

from frontrow.web.observability.job_health import FAILING, FAILURES, work_families
from frontrow.web.observability.worker_metrics import text
from tests.deploy.expressions import DASHBOARD, DEPLOY, EXPRESSIONS, IN_WORDS, PANELS, RULES, selectors
from tests.web.api.support import EVENT_ID, a_server

B19_WORDS = (
    *("Seats locked", "Queue depth", "Payment success", "Latency", "Shed", "Outbox", "Waitlist", "breaker"),
    *("five minutes before", "Availability", "Redis memory", "Captures waiting", "Mails waiting", "Background jobs"),
)


@pytest.fixture
async def page(tmp_path):
    """What Prometheus reads of a server and of a worker."""
    async with a_server(tmp_path) as (_, address), httpx.AsyncClient(base_url=address) as client:
        await client.post(f"/v1/events/{EVENT_ID}/room/join")
        await client.get("/v1/events")
        return (await client.get("/metrics")).text + text(work_families()).decode()


async def test_b19_every_metric_of_dashboard_and_alerts_is_on_the_real_page(page):
    assert len(EXPRESSIONS) > 40
    known: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^(\w+)(?:\{(.*)\})? ", page, re.M):
        known.setdefault(name, set()).update(re.findall(r"(\w+)=\"", labels or ""))
    assert {name for name, labels in known.items() if "job" in labels} == {FAILURES, FAILING}
    assert not [name for name, labels in known.items() if "instance" in labels]
    for name in (FAILURES, FAILING):
        known[name].add("exported_job")  # `job` is a label of Prometheus itself: it renames ours
    assert set(known) >= IN_WORDS, "what an alert advises to look at"
    for expression in EXPRESSIONS:
        for name, labels in selectors(expression):
            assert name in known, f"{name} is not on the page: {expression}"
            assert set(labels) <= known[name], f"{name} has no label {labels}: {expression}"


def test_b19_the_dashboard_shows_every_row():
    titles = " ".join(panel["title"] for panel in PANELS)
    assert not [words for words in B19_WORDS if words not in titles]
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))


def test_every_alert_says_how_bad_it_is_and_what_to_do():
    names = [rule["alert"] for rule in RULES]
    assert len(names) == len(set(names)) >= 10
    for rule in RULES:
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert {"summary", "action"} <= set(rule["annotations"])
        assert re.fullmatch(r"\d+[smh]", rule["for"])


def test_the_rules_have_the_form_prometheus_reads():
    """What promtool checks besides the expressions: groups and keys; one it does not know stops Prometheus."""
    for file in sorted((DEPLOY / "alerts").glob("*.yml")):
        document = yaml.safe_load(file.read_text())
        assert set(document) == {"groups"}
        names = [group["name"] for group in document["groups"]]
        assert len(names) == len(set(names))
        for group in document["groups"]:
            assert set(group) <= {"name", "interval", "limit", "labels", "query_offset", "rules"}
            for rule in group["rules"]:
                assert set(rule) <= {"alert", "expr", "for", "keep_firing_for", "labels", "annotations"}
                texts = [*rule["labels"].values(), *rule["annotations"].values()]
                assert all(isinstance(text, str) and text.count("{{") == text.count("}}") for text in texts)


def test_a_broken_expression_is_caught():
    """The canary of this file."""
    with pytest.raises(ValueError, match="."):
        selectors("sum by (rate(frontrow_info[1m])")
