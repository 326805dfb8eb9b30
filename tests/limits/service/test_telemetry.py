"""O7: the page of refused keys, Prometheus and OpenTelemetry."""

import re

import pytest

from frontrow.limits.stores.most_refused_keys import MAX_COUNTED, RefusedKey
from frontrow.limits_service.refused_keys import MemoryRefusals, RedisRefusals
from tests.limits.service.support import RULES, config_of, running
from tests.support.eventually import eventually

ONE = RULES.replace("3/day burst 3", "1/day burst 1")


@pytest.fixture(params=["memory", "redis"])
def store(request, redis_url):
    return "memory://" if request.param == "memory" else redis_url


async def test_the_most_refused_keys_come_first(tmp_path, store):
    async with running(config_of(tmp_path, ONE, store)) as service:
        for key, times in (("a", 3), ("b", 5), ("c", 1)):
            for _ in range(times):
                await service.check(key)

        async def rows():
            return (await service.http.get("/refused.json?top=2")).json()["keys"]

        expected = [{"rule": "api", "key": "b", "refusals": 4}, {"rule": "api", "key": "a", "refusals": 2}]
        await eventually(rows, until=lambda found: found == expected)


async def test_keys_can_be_shown_as_hashes(tmp_path):
    async with running(config_of(tmp_path, ONE, shown_keys="hashed")) as service:
        for _ in range(2):
            await service.check("person@example.com")
        [row] = (await service.http.get("/refused.json")).json()["keys"]
        assert re.fullmatch("[0-9a-f]{16}", row["key"])
        [again] = (await service.http.get("/refused.json")).json()["keys"]
        assert row == again


async def test_a_page_that_cannot_read_its_figures_says_so(tmp_path, own_valkey):
    async with running(config_of(tmp_path, ONE, own_valkey.url)) as service:
        own_valkey.kill()
        answer = await service.http.get("/refused.json")
        assert (answer.status_code, answer.json()["code"]) == (503, "refused_keys_down")


async def test_counts_are_bounded_and_old_ones_leave():
    now_s = [0.0]
    counts = MemoryRefusals(lambda: now_s[0])
    for number in range(MAX_COUNTED + 5):
        counts.count("api", f"k{number}")
    assert RefusedKey("api", "(others)", 5) in await counts.top(60, MAX_COUNTED + 5)
    now_s[0] = 100.0
    counts.count("api", "new")
    assert await counts.top(60, 10) == [RefusedKey("api", "new", 1)]
    for later in range(100):
        now_s[0] += 10.0
        counts.count("api", f"later{later}")
    assert len(counts._spans) <= 62


async def test_counts_in_redis_are_those_of_all_processes(redis_url):
    first, second = RedisRefusals(redis_url), RedisRefusals(redis_url)
    first.count("api", "a"), second.count("api", "a")
    await first.aclose(), await second.aclose()
    assert await first.top(60, 5) == [RefusedKey("api", "a", 2)]


async def test_prometheus_reads_decisions_latencies_and_the_store(tmp_path):
    from prometheus_client.parser import text_string_to_metric_families

    async with running(config_of(tmp_path, ONE)) as service:
        for _ in range(3):
            await service.check("42")
        page = await service.http.get("/metrics")
        assert page.headers["content-type"].startswith("text/plain")
        rows = {
            (row.name, *sorted(row.labels.items())): row.value
            for family in text_string_to_metric_families(page.text)
            for row in family.samples
        }
        about = (("rule", "api"), ("worker", "1"))
        name = "frontrow_limits_decisions_total"
        assert rows[name, ("outcome", "allowed"), *about] == 1
        assert rows[name, ("outcome", "refused"), *about] == 2
        assert rows["frontrow_limits_latency_seconds_count", *about] == 3
        assert rows["frontrow_limits_store_up", ("worker", "1")] == 1


async def test_opentelemetry_gets_decisions_and_spans_of_sampled_traces(tmp_path, monkeypatch):
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from frontrow.limits_service import telemetry

    reader, spans = InMemoryMetricReader(), InMemorySpanExporter()
    monkeypatch.setattr(telemetry, "_otlp_reader", lambda: reader)
    monkeypatch.setattr(telemetry, "_otlp_processor", lambda: SimpleSpanProcessor(spans))
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-{}"
    async with running(config_of(tmp_path, ONE, opentelemetry=True)) as service:
        for flags in ("01", "00", "nonsense"):
            await service.post("/v1/check", {"key": flags}, traceparent=trace.format(flags))
        await service.check("01")
        [span] = spans.get_finished_spans()
        assert (span.name, span.attributes["http.response.status_code"]) == ("POST /v1/check", 200)
        assert f"{span.context.trace_id:x}" == "af7651916cd43dd8448eb211c80319c"
        [scope] = reader.get_metrics_data().resource_metrics[0].scope_metrics
        points = {tuple(sorted(point.attributes.items())): point.value for point in scope.metrics[0].data.data_points}
        assert points[(("outcome", "allowed"), ("rule", "api"))] == 3
        assert points[(("outcome", "refused"), ("rule", "api"))] == 1
