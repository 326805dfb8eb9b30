"""L16: counters per rule, Prometheus, and a log line on refusal that is bounded and names nobody."""

import json
import logging
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi import Depends, FastAPI
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from frontrow.limits.http.asgi import RateLimitMiddleware
from frontrow.limits.http.fastapi import RateLimits
from frontrow.limits.http.request_limits import TIMED_ONE_IN
from frontrow.limits.metrics import LimitMetrics
from frontrow.limits.quota import Decision
from frontrow.limits.refusal_log import RefusalLog
from frontrow.limits.stats import Stats
from frontrow.testing.clock import ManualClock
from tests.contracts.rate_limit_middleware import rule
from tests.limits.limited_apps import call_asgi, starlette_app


async def test_l16_prometheus_shows_allowed_refused_latency_and_store_errors_per_rule():
    metrics, registry = LimitMetrics(), CollectorRegistry()
    metrics.register(registry)
    rules = [rule("slow", "2/minute", "ip"), rule("trial", "1/minute", shadow=True)]
    app = RateLimitMiddleware(starlette_app([]), rules, metrics=metrics, clock=ManualClock())
    for _ in range(2 * TIMED_ONE_IN):
        await call_asgi(app, "GET", "/", {}, "203.0.113.1")
    families = {family.name: family for family in text_string_to_metric_families(generate_latest(registry).decode())}
    decided = {
        (sample.labels["rule"], sample.labels["outcome"]): sample.value
        for sample in families["frontrow_limits_decisions"].samples
        if sample.name.endswith("_total")
    }
    assert decided["slow", "allowed"] == 2
    assert decided["slow", "refused"] == 2 * TIMED_ONE_IN - 2
    assert decided["trial", "shadow_refused"] > 0
    errors = {s.labels["rule"]: s.value for s in families["frontrow_limits_store_errors"].samples if "_total" in s.name}
    assert errors == {"slow": 0, "trial": 0}
    latency = families["frontrow_limits_latency_seconds"].samples
    counts = {s.labels["rule"]: s.value for s in latency if s.name.endswith("_count")}
    assert counts == {"slow": 2, "trial": 0}, "in memory one in sixteen is timed"
    assert 0 < next(s.value for s in latency if s.name.endswith("_sum") and s.labels["rule"] == "slow") < 5


def test_l16_latency_buckets_are_cumulative_powers_of_two_and_the_last_holds_everything():
    metrics = LimitMetrics()
    metrics.follow(Stats(["r"]))
    allowed = Decision(True, "r", 1, 0, 0, 0)
    for ns in (0, 1023, 1024, 5_000, 10**12):
        metrics.record_latency(allowed, ns)
    registry = CollectorRegistry()
    metrics.register(registry)
    at_most = lambda le: registry.get_sample_value("frontrow_limits_latency_seconds_bucket", {"rule": "r", "le": le})  # noqa: E731
    assert [at_most(le) for le in ("1.024e-06", "2.048e-06", "8.192e-06", "+Inf")] == [2, 3, 4, 5]
    assert sum(metrics.latency["r"].buckets) == 5


def test_l14_decisions_made_without_the_store_are_counted_per_rule():
    metrics = LimitMetrics()
    metrics.follow(Stats(["a", "b"]))
    for source in ("store", "local", "open", "closed"):
        metrics.record_latency(Decision(True, "a", 1, 0, 0, 0, 0, source), 10)
    assert metrics.snapshot()["a"]["store_errors"] == 3
    assert metrics.snapshot()["b"]["store_errors"] == 0


async def test_two_routes_with_the_same_quota_are_counted_apart():
    """Both limits are called `limit-1-60s`, which says nothing about the route that refuses."""
    limits = RateLimits(clock=ManualClock())
    app = FastAPI()

    @app.get("/codes")
    @limits.limited("1/minute")
    async def codes() -> str:
        return "served"

    @app.get("/mails/{number}", dependencies=[Depends(limits.limit("1/minute"))])
    async def mails(number: int) -> str:
        return "served"

    for path in ("/codes", "/codes", "/codes", "/mails/1"):
        await call_asgi(app, "GET", path, {})
    registry = CollectorRegistry()
    limits.metrics.register(registry)
    here = f"{__name__}.test_two_routes_with_the_same_quota_are_counted_apart.<locals>."

    def value(endpoint: str, outcome: str) -> float | None:
        labels = {"rule": "limit-1-60s", "endpoint": endpoint, "outcome": outcome}
        return registry.get_sample_value("frontrow_limits_route_decisions_total", labels)

    mails_route = f"/mails/{{number}} {here}mails"
    assert [value(here + "codes", outcome) for outcome in ("allowed", "refused")] == [1, 2]
    assert [value(mails_route, outcome) for outcome in ("allowed", "refused")] == [1, 0]


def test_a_limit_of_very_many_routes_keeps_a_bounded_number_of_labels(monkeypatch):
    monkeypatch.setattr("frontrow.limits.metrics.MAX_ROUTES", 2)
    metrics = LimitMetrics()
    for number in range(5):
        metrics.count_route(Decision(True, "a", 1, 0, 0, 0), f"route{number}")
    assert {key: counts.allowed for key, counts in metrics.routes.items()} == {
        ("a", "route0"): 1,
        ("a", "route1"): 1,
        ("a", ""): 3,
    }


def test_l16_counts_survive_any_number_of_reloads():
    metrics = LimitMetrics()
    for _ in range(20):
        stats = Stats(["r"])
        metrics.follow(stats)
        stats.count(Decision(True, "r", 1, 0, 0, 0))
    assert metrics.snapshot()["r"]["allowed"] == 20


def test_l16_counting_from_50_threads_loses_nothing():
    metrics = LimitMetrics()
    metrics.follow(Stats(["r"]))
    decision = Decision(False, "r", 1, 0, 0, 0)
    with ThreadPoolExecutor(50) as pool:
        list(pool.map(lambda _: [metrics.record_latency(decision, 1500) for _ in range(400)], range(50)))
    assert metrics.latency["r"].buckets[1] == 20_000
    assert metrics.latency["r"].total_ns == 20_000 * 1500


def test_l16_counting_needs_no_prometheus_and_registering_without_it_says_what_to_install():
    program = (
        "import sys; sys.modules['prometheus_client'] = None\n"
        "from frontrow.limits.metrics import LimitMetrics\n"
        "from frontrow.limits.stats import Stats\n"
        "metrics = LimitMetrics(); metrics.follow(Stats(['r'])); print(metrics.snapshot())\n"
        "try: metrics.register()\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert "'allowed': 0" in done.stdout
    assert "ConfigError Prometheus metrics need its client: pip install 'frontrow-limits[metrics]'" in done.stdout


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.WARNING, "frontrow.limits")
    return lambda: [json.loads(record.getMessage()) for record in caplog.records]


async def test_l16_a_refusal_logs_one_structured_line_without_the_clients_name(lines):
    app = RateLimitMiddleware(
        starlette_app([]), [rule("all", "1/minute", "user")], identify={"user": "header:x-user"}, clock=ManualClock()
    )
    for who in ("alice@example.org", "alice@example.org", "alice@example.org", "bob", "bob"):
        await call_asgi(app, "GET", "/", {"x-user": who}, "203.0.113.1")
    first, second, bob = lines()
    assert first == second
    assert (first["fact"], first["rule"], first["method"], first["source"]) == ("RequestRefused", "all", "GET", "store")
    assert first["endpoint"] == "GET /**"
    assert first["key_hash"] != bob["key_hash"]
    assert not any(name in json.dumps(lines()) for name in ("alice", "example", "bob", "203.0.113"))


async def test_l16_the_line_of_a_limit_of_a_route_names_the_endpoint(lines):
    app, limits = FastAPI(), RateLimits(clock=ManualClock())

    @app.get("/codes", dependencies=[Depends(limits.limit("1/minute"))])
    async def codes() -> str:
        return "sent"

    @app.get("/pages")
    @limits.limited("1/minute")
    async def pages() -> str:
        return "served"

    for path in ("/codes", "/codes", "/pages", "/pages"):
        await call_asgi(app, "GET", path, {}, "203.0.113.1")
    told = [line["endpoint"] for line in lines()]
    assert [endpoint.rpartition(".")[2] for endpoint in told] == ["codes", "pages"], told
    assert {line["rule"] for line in lines()} == {"limit-1-60s"}, "by the rule alone they could not be told apart"


def test_l16_lines_are_bounded_per_second_and_rule_and_the_rest_is_counted(lines):
    now = [0.0]
    log = RefusalLog(3, monotonic_s=lambda: now[0])
    for number in range(1000):
        log.write("busy", f"client{number}")
    log.write("quiet", "client")
    assert [line["rule"] for line in lines()] == ["busy"] * 3 + ["quiet"]
    now[0] = 1.0
    log.write("busy", "client")
    assert lines()[-1]["suppressed"] == 997
    now[0] = 2.0
    log.write("busy", "client")
    assert "suppressed" not in lines()[-1]


def test_l16_the_log_remembers_a_bounded_number_of_rules(lines):
    log = RefusalLog(1, monotonic_s=lambda: 0.0, max_rules=10)
    for number in range(100):
        log.write(f"r{number}", "client")
    assert len(log._seen) == 10


def test_l16_hashes_agree_between_processes_only_with_a_common_key():
    assert RefusalLog(hash_key=b"k").hash("alice") == RefusalLog(hash_key=b"k").hash("alice")
    assert RefusalLog().hash("alice") != RefusalLog().hash("alice")
