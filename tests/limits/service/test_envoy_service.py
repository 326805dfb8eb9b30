"""O7: Envoy's rate limit service v3. The examples are those of the reference service's manual, as configurations."""

import asyncio

import grpc
import pytest

from frontrow.limits.stores.protocol import PEEK
from frontrow.limits_service import envoy_messages as messages
from frontrow.testing.clock import ManualClock
from tests.limits.backends import ALGORITHMS, T0_US, S
from tests.limits.service.support import config_of, running

HOURS = T0_US - T0_US % (86_400 * S)  # the start of a day


@pytest.fixture
def clock():
    return ManualClock(HOURS)


@pytest.fixture
def serve(tmp_path, clock):
    """Starts a service with these domains, by a clock that stands still."""

    def start(toml, **settings):
        return running(config_of(tmp_path, toml, **settings), clock)

    return start


MESSAGING = """
[[domains]]
domain = "messaging"
[[domains.descriptors]]
key = "message_type"
value = "marketing"
[[domains.descriptors.descriptors]]
key = "to_number"
rate_limit = { unit = "day", requests_per_unit = 5 }
[[domains.descriptors]]
key = "to_number"
rate_limit = { unit = "day", requests_per_unit = 100 }
"""


async def test_example_1_each_value_has_its_own_limit(serve, clock):
    toml = """
    [[domains]]
    domain = "mongo_cps"
    [[domains.descriptors]]
    key = "database"
    value = "users"
    rate_limit = { unit = "second", requests_per_unit = 5 }
    [[domains.descriptors]]
    key = "database"
    value = "default"
    rate_limit = { unit = "second", requests_per_unit = 3 }
    """
    async with serve(toml) as service:
        assert await service.codes("mongo_cps", [("database", "users")], times=6) == ".....X"
        assert await service.codes("mongo_cps", [("database", "default")], times=4) == "...X"
        assert await service.codes("mongo_cps", [("database", "other")], times=9) == "........."
        clock.advance(1.0)
        assert await service.codes("mongo_cps", [("database", "users")], times=6) == ".....X", "the next second"


async def test_example_2_nested_descriptors_and_a_limit_per_value(serve):
    first = [("message_type", "marketing"), ("to_number", "2061111111")]
    second = [("message_type", "marketing"), ("to_number", "2062222222")]
    async with serve(MESSAGING) as service:
        assert await service.codes("messaging", first, times=6) == ".....X"
        assert await service.codes("messaging", second, times=6) == ".....X", "each number has its own"
        overall = [("to_number", "2061111111")]
        assert await service.codes("messaging", overall, times=101) == "." * 100 + "X"


async def test_example_2_a_request_is_refused_if_one_descriptor_is(serve):
    both = [[("message_type", "marketing"), ("to_number", "206")], [("to_number", "206")]]
    async with serve(MESSAGING) as service:
        assert await service.codes("messaging", *both, times=6) == ".....X"
        refused = await service.envoy("messaging", *both)
        assert [status.code for status in refused.statuses] == [messages.OVER_LIMIT, messages.OK]
        assert [status.limit_remaining for status in refused.statuses] == [0, 95], "the refusals cost nothing"


async def test_each_on_its_own_charges_what_did_not_refuse_like_the_reference(serve):
    both = [[("message_type", "marketing"), ("to_number", "206")], [("to_number", "206")]]
    async with serve(MESSAGING, decide="each") as service:
        assert await service.codes("messaging", *both, times=8) == ".....XXX"
        refused = await service.envoy("messaging", *both)
        assert refused.statuses[1].limit_remaining == 91, "nine requests, of which five were let through"


async def test_each_on_its_own_uses_up_what_was_left_like_the_reference(serve):
    for decide, after in (("each", "X"), ("all", ".")):
        async with serve(MESSAGING, decide=decide) as service:
            marketing = [("message_type", "marketing"), ("to_number", decide)]
            assert await service.codes("messaging", marketing, times=2, hits=3) == ".X"
            assert await service.codes("messaging", marketing, times=1) == after


async def test_example_3_the_most_specific_match_wins_and_zero_refuses_all(serve):
    toml = """
    [[domains]]
    domain = "edge_proxy_per_ip"
    [[domains.descriptors]]
    key = "remote_address"
    rate_limit = { unit = "second", requests_per_unit = 10 }
    [[domains.descriptors]]
    key = "remote_address"
    value = "50.0.0.5"
    rate_limit = { unit = "second", requests_per_unit = 0 }
    """
    async with serve(toml) as service:
        assert await service.codes("edge_proxy_per_ip", [("remote_address", "50.0.0.1")], times=11) == "." * 10 + "X"
        assert await service.codes("edge_proxy_per_ip", [("remote_address", "50.0.0.5")], times=2) == "XX"
        refused = await service.envoy("edge_proxy_per_ip", [("remote_address", "50.0.0.5")])
        [status] = refused.statuses
        assert (status.code, status.limit_remaining, status.duration_until_reset.seconds) == (messages.OVER_LIMIT, 0, 1)
        rows = (await service.http.get("/refused.json")).json()["keys"]
        assert {row["key"]: row["refusals"] for row in rows} == {
            "remote_address=50.0.0.1": 1,
            "remote_address=50.0.0.5": 3,
        }


async def test_example_4_a_limit_applies_only_at_its_own_depth(serve):
    shallow = """
    [[domains]]
    domain = "example4"
    [[domains.descriptors]]
    key = "key"
    value = "value"
    rate_limit = { unit = "second", requests_per_unit = 1 }
    """
    two = [("key", "value"), ("subkey", "subvalue")]
    async with serve(shallow) as service:
        assert await service.codes("example4", two, times=3) == "...", "two entries find no limit at the first level"
    deep = shallow.replace(
        "    rate_limit", "    [[domains.descriptors.descriptors]]\n    key = 'subkey'\n    rate_limit"
    )
    async with serve(deep) as service:
        assert await service.codes("example4", two, times=2) == ".X"
        assert await service.codes("example4", two[:1], times=3) == "..."


async def test_example_5_an_unlimited_descriptor_says_so(serve):
    toml = """
    [[domains]]
    domain = "internal"
    [[domains.descriptors]]
    key = "ldap"
    rate_limit = { unlimited = true }
    [[domains.descriptors]]
    key = "azure"
    rate_limit = { unit = "minute", requests_per_unit = 1 }
    """
    async with serve(toml) as service:
        [unlimited] = (await service.envoy("internal", [("ldap", "x")])).statuses
        assert (unlimited.code, unlimited.limit_remaining) == (messages.OK, messages.MAX_UINT32)
        [unknown] = (await service.envoy("internal", [("nobody", "x")])).statuses
        assert (unknown.code, unknown.limit_remaining, unknown.HasField("current_limit")) == (messages.OK, 0, False)
        assert await service.codes("internal", [("azure", "x")], [("ldap", "x")], times=2) == ".X"


async def test_example_6_a_shadow_limit_counts_and_never_refuses(serve):
    toml = """
    [[domains]]
    domain = "example6"
    [[domains.descriptors]]
    key = "service"
    [[domains.descriptors.descriptors]]
    key = "user"
    value = "user-a"
    shadow_mode = true
    rate_limit = { unit = "second", requests_per_unit = 2 }
    [[domains.descriptors.descriptors]]
    key = "user"
    value = "user-b"
    rate_limit = { unit = "second", requests_per_unit = 2 }
    """
    async with serve(toml) as service:
        assert await service.codes("example6", [("service", "auth"), ("user", "user-a")], times=5) == "....."
        assert await service.codes("example6", [("service", "auth"), ("user", "user-b")], times=3) == "..X"
        metrics = (await service.http.get("/metrics")).text
        assert 'outcome="shadow_refused",rule="example6.service.user_user-a",worker="1"} 3.0' in metrics


async def test_example_7_a_limit_replaces_another_of_the_same_request(serve):
    toml = """
    [[domains]]
    domain = "example7"
    [[domains.descriptors]]
    key = "key_1"
    value = "value_1"
    [[domains.descriptors.descriptors]]
    key = "user"
    value = "bkthomps"
    rate_limit = { name = "specific_limit", unit = "second", requests_per_unit = 5 }
    [[domains.descriptors]]
    key = "key_2"
    value = "value_2"
    [[domains.descriptors.descriptors]]
    key = "user"
    value = "bkthomps"
    rate_limit = { replaces = [{ name = "specific_limit" }], unit = "second", requests_per_unit = 10 }
    """
    first, second = [("key_1", "value_1"), ("user", "bkthomps")], [("key_2", "value_2"), ("user", "bkthomps")]
    async with serve(toml) as service:
        assert await service.codes("example7", first, second, times=11) == "." * 10 + "X"
        assert await service.codes("example7", first, times=6) == ".....X", "what was replaced was not charged"


async def test_examples_8_and_10_metrics_per_value_are_read_and_change_no_limit(serve, caplog):
    toml = """
    [[domains]]
    domain = "example8"
    [[domains.descriptors]]
    key = "key1"
    detailed_metric = true
    rate_limit = { unit = "minute", requests_per_unit = 1 }
    [[domains.descriptors]]
    key = "key1"
    value = "value1"
    value_to_metric = true
    rate_limit = { unit = "minute", requests_per_unit = 2 }
    """
    async with serve(toml) as service:
        told = [await service.codes("example8", [("key1", value)], times=3) for value in ("value1", "a", "b")]
        assert told == ["..X", ".XX", ".XX"]
    assert "detailed_metric has no effect" in caplog.text


async def test_examples_9_and_11_values_with_a_star_have_a_limit_each_or_share_one(serve):
    toml = """
    [[domains]]
    domain = "example11"
    [[domains.descriptors]]
    key = "files"
    value = "files/*"
    share_threshold = true
    rate_limit = { unit = "hour", requests_per_unit = 4 }
    [[domains.descriptors]]
    key = "files_no_share"
    value = "files_no_share/*"
    rate_limit = { unit = "hour", requests_per_unit = 4 }
    """
    async with serve(toml) as service:
        for name in ("files/a.pdf", "files/b.csv"):
            assert await service.codes("example11", [("files", name)], times=2) == ".."
        assert await service.codes("example11", [("files", "files/c.txt")], times=1) == "X"
        assert await service.codes("example11", [("files", "other")], times=9) == "........."
        for name in ("files_no_share/a", "files_no_share/b"):
            assert await service.codes("example11", [("files_no_share", name)], times=5) == "....X"


@pytest.mark.parametrize("quota", [f"3/minute {algorithm}" for algorithm in ALGORITHMS])
async def test_all_six_algorithms_are_there(serve, quota):
    toml = f"""
    [[domains]]
    domain = "d"
    [[domains.descriptors]]
    key = "k"
    rate_limit = {{ quota = "{quota}" }}
    """
    async with serve(toml) as service:
        assert await service.codes("d", [("k", "v")], times=4) == "...X"


async def test_a_status_tells_the_limit_what_is_left_and_until_when(serve, clock):
    clock.advance(60.0)
    async with serve(MESSAGING) as service:
        [status] = (await service.envoy("messaging", [("to_number", "1")], hits=30)).statuses
        assert (status.current_limit.requests_per_unit, status.current_limit.unit) == (100, 4)
        assert (status.limit_remaining, status.duration_until_reset.seconds) == (70, 86_340)


async def test_hits_of_one_descriptor_override_those_of_the_request(serve):
    async with serve(MESSAGING) as service:
        answer = await service.envoy(
            "messaging",
            {"entries": [("to_number", "1")], "hits": 10},
            {"entries": [("to_number", "2")], "hits": 0},
            [("to_number", "3")],
            hits=3,
        )
        assert [status.limit_remaining for status in answer.statuses] == [90, 100, 97]


async def test_hits_that_differ_are_charged_all_or_none_too(serve):
    async with serve(MESSAGING) as service:
        await service.envoy("messaging", [("to_number", "2")], hits=98)
        refused = await service.envoy(
            "messaging", {"entries": [("to_number", "1")], "hits": 10}, {"entries": [("to_number", "2")], "hits": 3}
        )
        assert refused.overall_code == messages.OVER_LIMIT
        assert [status.limit_remaining for status in refused.statuses] == [100, 2], "what was taken was given back"


async def test_more_hits_than_the_limit_are_over_it_and_charge_nothing(serve):
    async with serve(MESSAGING) as service:
        refused = await service.envoy("messaging", [("to_number", "1")], hits=101)
        assert refused.overall_code == messages.OVER_LIMIT
        assert refused.statuses[0].limit_remaining == 100


async def test_the_same_descriptor_twice_counts_twice(serve):
    async with serve(MESSAGING) as service:
        twice = [[("to_number", "1")]] * 2
        answer = await service.envoy("messaging", *twice)
        assert [status.limit_remaining for status in answer.statuses] == [98, 98]
        assert (await service.envoy("messaging", *twice, hits=60)).overall_code == messages.OVER_LIMIT


async def test_envoy_may_send_a_limit_along(serve):
    async with serve(MESSAGING) as service:
        mine = {"entries": [("anything", "1")], "limit": (2, 2)}
        assert await service.codes("messaging", mine, times=3) == "..X"
        assert await service.codes("messaging", mine | {"limit": (0, 1)}, times=1) == "X"
        [status] = (await service.envoy("messaging", mine | {"limit": (9, 3)})).statuses
        assert (status.current_limit.requests_per_unit, status.current_limit.unit) == (9, 3)


async def test_overrides_are_bounded_and_the_oldest_is_forgotten(serve):
    async with serve(MESSAGING, max_quotas=2) as service:
        for limit in range(1, 6):
            await service.envoy("messaging", {"entries": [("k", "1")], "limit": (limit, 2)})
        metrics = (await service.http.get("/metrics")).text
        assert 'frontrow_limits_quotas_dropped_total{worker="1"} 3.0' in metrics


async def test_in_global_shadow_mode_nothing_is_refused(serve):
    async with serve(MESSAGING, shadow=True) as service:
        marketing = [("message_type", "marketing"), ("to_number", "1")]
        assert await service.codes("messaging", marketing, times=6) == "......"
        assert (await service.envoy("messaging", marketing)).statuses[0].code == messages.OVER_LIMIT


async def test_headers_are_added_if_wanted(serve):
    async with serve(MESSAGING, response_headers=True) as service:
        marketing = [("message_type", "marketing"), ("to_number", "1")]
        await service.codes("messaging", marketing, times=5)
        refused = await service.envoy("messaging", marketing, [("to_number", "1")])
        headers = {field.key: field.value for field in refused.response_headers_to_add}
        assert headers["x-ratelimit-limit"] == "5"
        assert headers["retry-after"] == "86400"
        assert headers["ratelimit"].endswith(";r=0;t=86400")
    async with serve(MESSAGING) as service:
        assert not (await service.envoy("messaging", [("to_number", "1")])).response_headers_to_add


@pytest.mark.parametrize(
    ("domain", "descriptors", "said"),
    [
        ("", [[("k", "v")]], "domain is empty"),
        ("messaging", [], "1 to 32 descriptors"),
        ("messaging", [[("k", "v")]] * 33, "1 to 32 descriptors"),
        ("messaging", [[]], "1 to 32 entries"),
        ("messaging", [[("", "v")]], "each with a key"),
        ("messaging", [[("k", "v" * 2000)]], "at most 1024 characters"),
        ("messaging", [{"entries": [("k", "v")], "limit": (5, 0)}], "unit 0 is unknown"),
    ],
)
async def test_a_request_that_makes_no_sense_is_an_invalid_argument(serve, domain, descriptors, said):
    async with serve(MESSAGING) as service:
        with pytest.raises(grpc.aio.AioRpcError, match=said) as failed:
            await service.envoy(domain, *descriptors)
        assert failed.value.code() == grpc.StatusCode.INVALID_ARGUMENT


async def test_bytes_that_are_no_message_are_refused_and_the_service_goes_on(serve):
    async with serve(MESSAGING) as service:
        call = service.channel.unary_unary(f"/{messages.RATE_LIMIT_SERVICE}/ShouldRateLimit")
        with pytest.raises(grpc.aio.AioRpcError):
            await call(b"\xff" * 64, timeout=20)
        assert await service.codes("messaging", [("to_number", "1")], times=1) == "."


async def test_without_its_token_nobody_is_served(serve):
    async with serve(MESSAGING, token="s3cret") as service:
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await service.envoy("messaging", [("to_number", "1")])
        assert failed.value.code() == grpc.StatusCode.UNAUTHENTICATED
        bearer = [("authorization", "Bearer s3cret")]
        assert await service.codes("messaging", [("to_number", "1")], times=1, metadata=bearer) == "."


async def test_health_is_told_while_serving(serve):
    async with serve(MESSAGING, token="s3cret") as service:
        path = f"/{messages.HEALTH_SERVICE}/Check"
        for name in ("", messages.RATE_LIMIT_SERVICE):
            request = messages.HealthCheckRequest(service=name)
            assert (await service.call(path, request, messages.HealthCheckResponse)).status == messages.SERVING
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await service.call(path, messages.HealthCheckRequest(service="other"), messages.HealthCheckResponse)
        assert failed.value.code() == grpc.StatusCode.NOT_FOUND


async def test_fifty_at_once_get_exactly_what_there_is(tmp_path, redis_url):
    async with running(config_of(tmp_path, MESSAGING, redis_url)) as service:
        both = [[("message_type", "marketing"), ("to_number", "1")], [("to_number", "1")]]
        answers = await asyncio.gather(*(service.envoy("messaging", *both) for _ in range(50)))
        assert sum(answer.overall_code == messages.OK for answer in answers) == 5
        [status] = (await service.envoy("messaging", {"entries": [("to_number", "1")], "hits": 0})).statuses
        assert status.limit_remaining == 95


async def test_a_call_that_is_cancelled_takes_all_or_nothing(tmp_path, redis_url):
    async with running(config_of(tmp_path, MESSAGING, redis_url)) as service:
        used_up = {"entries": [("message_type", "marketing"), ("to_number", "1")], "hits": 5}
        await service.envoy("messaging", used_up)
        pair = [{"entries": [("to_number", "2")], "hits": 2}, {"entries": used_up["entries"], "hits": 1}]
        for _ in range(20):
            call = asyncio.ensure_future(service.envoy("messaging", *pair))
            for _ in range(5):
                await asyncio.sleep(0)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
        refused = await service.envoy("messaging", *pair)
        assert refused.overall_code == messages.OVER_LIMIT
        assert refused.statuses[0].limit_remaining == 100, "every charge of a cancelled call was given back"


def test_a_charge_looks_at_nothing_but_its_own_slots(tmp_path):
    """Many rules in one file: a call to Redis names only those that the request uses."""
    from frontrow.limits.quota import Rule
    from frontrow.limits.stores.protocol import QuotaSlot, StoreRequest
    from frontrow.limits.stores.redis_script import LimitScript

    rules = [Rule(f"r{at}", f"{at + 1}/minute") for at in range(100)]
    script = LimitScript([QuotaSlot(rule, "", rule.quota) for rule in rules], "frl", cluster=False)
    requests = [StoreRequest((70, 3), ("a", "b"), op=PEEK), StoreRequest((99,), ("c",), cost=2)]
    algorithms, packed = script.call(requests).arguments[4:6]
    assert (len(algorithms), len(packed)) == (3, 3 * 56)
