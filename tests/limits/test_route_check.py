"""L2, L4, L5: a route's rules asked in one step, with the keys and the counts of the limiter they belong to."""

import redis
from hypothesis import given
from hypothesis import strategies as st

from bench import middleware
from frontrow.limits import Limiter, Quota, Rule
from frontrow.limits.http.asgi import RateLimitMiddleware
from frontrow.limits.http.route_check import RouteCheck, packer
from frontrow.limits.keys import rule_key
from frontrow.testing.clock import ManualClock
from tests.contracts.rate_limit_middleware import rule
from tests.limits.limited_apps import call_asgi, starlette_app

QUOTA = Quota.parse("3/minute", algorithm="sliding_log")
PARTS = ("user", "ip", "tenant", "endpoint@x")
texts = st.one_of(st.text(min_size=1, max_size=20), st.text(min_size=200, max_size=400))
mappings = st.fixed_dictionaries(dict.fromkeys(PARTS, texts))


@given(mappings, st.lists(st.sampled_from(PARTS), max_size=4, unique=True), st.sets(st.sampled_from(PARTS)))
def test_l2_packed_keys_are_the_limiters_own_whatever_is_constant(key, per, constant):
    rule = Rule("r", QUOTA, per=tuple(per))
    assert packer(rule, {part: key[part] for part in constant})(key) == rule_key(rule, key)


def rules() -> list[Rule]:
    return [
        Rule("everybody", Quota.parse("5/minute", algorithm="sliding_log"), per=()),
        Rule("user", QUOTA, per=("user",)),
    ]


def test_l5_a_subset_counts_in_the_store_of_the_whole(clock: ManualClock):
    whole = Limiter(rules(), clock=clock)
    some = RouteCheck(whole, ["everybody"], {})
    assert [some.check({}).remaining for _ in range(3)] == [4, 3, 2]
    decisions = [whole.check({"user": "1"}) for _ in range(3)]
    assert [(answer.allowed, answer.rule) for answer in decisions] == [
        (True, "everybody"),
        (True, "everybody"),
        (False, "everybody"),
    ]
    assert some.check({}).allowed is False
    counts = whole.stats.rules["everybody"]
    assert (counts.allowed, counts.refused) == (5, 2)


async def test_l4_a_refused_rule_of_a_question_burns_nothing_of_the_others(clock: ManualClock):
    whole = Limiter(rules(), clock=clock)
    both = RouteCheck(whole, ["everybody", "user"], {})
    decisions = [await both.acheck({"user": "1"}) for _ in range(6)]
    assert [answer.allowed for answer in decisions] == [True] * 3 + [False] * 3
    assert decisions[-1].rule == "user"
    assert both.check({"user": "2"}).remaining == 1, "four of everybody's five are used, not seven"


def test_l6_tiers_choose_the_line(clock: ManualClock):
    vip = {"vip": Quota.parse("9/minute", algorithm="sliding_log")}
    tiered = Rule("fans", QUOTA, per=("user",), tiers=vip, tier_of=lambda key: key["tier"])
    route_check = RouteCheck(Limiter([tiered], clock=clock), ["fans"], {})
    assert route_check.check({"user": "1", "tier": "vip"}).limit == 9
    assert route_check.check({"user": "1", "tier": "unknown"}).limit == 3


async def test_l17_however_many_rules_a_request_has_it_is_one_question_to_the_store(redis_url):
    """L17: a check cannot become the bottleneck of what it protects: one round trip, all rules in it."""
    rules = [rule("user", "9/minute", "user"), rule("ip", "9/minute", "ip"), rule("end", "9/minute", "endpoint")]
    app = RateLimitMiddleware(starlette_app([]), rules, redis_url, identify={"user": "header:x-user"}, deadline_s=5.0)
    with redis.Redis.from_url(redis_url) as client:
        await call_asgi(app, "GET", "/", {"x-user": "1"}, "203.0.113.1")  # connects and loads the script
        client.config_resetstat()
        for number in range(5):
            await call_asgi(app, "GET", "/", {"x-user": str(number)}, "203.0.113.1")
        commands = client.info("commandstats")
    scripts = sum(
        stats["calls"] for name, stats in commands.items() if name.startswith(("cmdstat_eval", "cmdstat_fcall"))
    )
    assert scripts == 5
    await app.aclose()


def test_l17_the_middleware_benchmark_runs_and_names_every_peer(monkeypatch):
    """L17: the figures themselves come from `make bench-limits`; no test asserts on time."""
    monkeypatch.setattr(middleware, "REQUESTS", 30)
    figures = middleware.run(rounds=1)
    assert {"Frontrow", "floor", "slowapi", "slowapi, ASGI", "litestar's own"} <= set(figures["added_us"])
    assert all(us > 0 for us in figures["total_us"].values())
