"""Bad configuration and bad questions: one error each, naming the field and a valid example (L15)."""

import copy
import pickle
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontrow.core.errors import ConfigError
from frontrow.limits import Decision, InvalidCost, InvalidKey, InvalidQuota, Limiter, Quota, Rule, Throttled
from frontrow.limits.algorithms import month_start_us
from frontrow.limits.http.asgi import RateLimitMiddleware
from frontrow.limits.http.decorators import limited
from frontrow.limits.http.starlette import limited as starlette_limited
from frontrow.limits.quota import ALGORITHMS, BUCKETS

DAY_US = 86_400_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "limit", "period_s"),
    [
        ("100/minute", 100, 60),
        ("5/10s", 5, 10),
        ("1000 per hour", 1000, 3600),
        ("3/2 days", 3, 172_800),
        ("1/s", 1, 1),
        ("7/sec", 7, 1),
        ("9/15 minutes", 9, 900),
        ("2 / d", 2, 86_400),
        ("4/HOUR", 4, 3600),
        ("6/30seconds", 6, 30),
        ("8/min", 8, 60),
        ("8/mins", 8, 60),
        ("2/hrs", 2, 3600),
        ("5/100ms", 5, 0.1),
        ("5/ms", 5, 0.001),
        ("5 per 250 milliseconds", 5, 0.25),
        ("7/20us", 7, 0.00002),
        ("7/20 µs", 7, 0.00002),
        ("3/week", 3, 604_800),
        ("3/2w", 3, 1_209_600),
        ("100_000/day", 100_000, 86_400),
    ],
)
def test_l3_quotas_are_written_as_people_say_them(text: str, limit: int, period_s: float) -> None:
    """L3: microseconds to weeks. `5/100ms` was once read as five per 100 minutes."""
    quota = Quota.parse(text)
    assert (quota.limit, quota.period_us, quota.algorithm) == (limit, round(period_s * 1_000_000), "sliding_counter")


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "100",
            "100/",
            "/minute",
            "ten/minute",
            "10/fortnight",
            "1.5/s",
            "10/0s",
            "0/s",
            "-5/s",
            None,
            7,
            "1/s/s",
        ),
        *("10/year", "10/mss", "10/ns", "10/0.5s", "10/3 months", "1/s; 100/h", "10/s burst", "10/s burst -1", ";"),
    ],
)
def test_l15_a_bad_quota_text_is_one_clear_error(text: Any) -> None:
    with pytest.raises(InvalidQuota) as caught:
        Quota.parse(text)
    assert caught.value.param in ("quota", "limit", "period_us")
    assert any(example in caught.value.message for example in ("100/minute", "e.g.", "90 days", "write", "like burst"))


def test_l3_a_burst_and_an_algorithm_are_written_behind_the_rate() -> None:
    assert Quota.parse("10/s burst 20") == Quota(10, 1_000_000, "token_bucket", 20)
    assert Quota.parse("10/s, burst=20") == Quota.parse("10/s", burst=20) == Quota.parse("10/s burst 20")
    for text in ("10/s burst 20 leaky_queue", "10/s leaky_queue burst 20", "10/s leaky_queue, burst=20"):
        assert Quota.parse(text) == Quota(10, 1_000_000, "leaky_queue", 20)
        assert Quota.parse_all(f"{text}; 100/h")[0] == Quota(10, 1_000_000, "leaky_queue", 20)
    for text in ("10/s burst 20 burst 30", "10/s leaky_queue token_bucket", "10/s leaky_queue burst"):
        with pytest.raises(InvalidQuota, match="two bursts|nor an algorithm|needs a whole number"):
            Quota.parse(text)
    assert Quota.parse("10/s sliding_log", algorithm="sliding_log").algorithm == "sliding_log"
    for options in ({"burst": 3}, {"algorithm": "leaky_bucket"}):
        with pytest.raises(InvalidQuota, match="differ; say the (burst|algorithm) once"):
            Quota.parse("10/s burst 20 token_bucket", **options)  # type: ignore[arg-type]
    with pytest.raises(InvalidQuota, match="burst belongs to"):
        Quota.parse("10/s burst 20", algorithm="fixed_window")


@given(
    st.integers(1, 10_000),
    st.sampled_from([1, 7, 1000, 250_000, 1_500_000, 60_000_000, DAY_US]),
    st.sampled_from(ALGORITHMS),
    st.integers(0, 50),
)
def test_l3_the_text_of_a_quota_reads_as_the_same_quota(limit: int, period_us: int, algorithm: str, burst: int) -> None:
    quota = Quota(limit, period_us, algorithm, burst if algorithm in BUCKETS else 0)
    assert Quota.parse(str(quota)) == quota


@pytest.mark.parametrize("text", ["1/s; 100/h", "1/s, 100/h", "1/s\n100/h", " 1/s ;; 100/h; "])
def test_l3_a_text_may_hold_several_quotas(text: str) -> None:
    assert Quota.parse_all(text) == (Quota.parse("1/s"), Quota.parse("100/h"))
    with pytest.raises(InvalidQuota, match="several quotas"):
        Quota.parse(text)


def test_l3_a_calendar_month_belongs_to_the_fixed_window() -> None:
    quota = Quota.parse("5000/month")
    assert (quota.algorithm, quota.calendar_month, str(quota)) == ("fixed_window", True, "5000/month fixed_window")
    assert Quota.parse(str(quota)) == quota
    for algorithm in set(ALGORITHMS) - {"fixed_window"}:
        with pytest.raises(InvalidQuota, match=r'write "5000/30 days"'):
            Quota.parse("5000/month", algorithm=algorithm)
    with pytest.raises(InvalidQuota, match="calendar month"):
        Quota(5, DAY_US, "fixed_window", calendar_month=True)


@given(st.datetimes(datetime(1970, 1, 1), datetime(2400, 1, 1)))
def test_l3_a_months_start_is_that_of_the_calendar(moment: datetime) -> None:
    month = moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0, tzinfo=UTC)
    since_1970 = (moment.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    assert month_start_us(since_1970) == (month - EPOCH) // timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": -1}, "limit"),
        ({"limit": 1.5}, "limit"),
        ({"limit": True}, "limit"),
        ({"limit": 1 << 31}, "limit"),
        ({"period_us": 0}, "period_us"),
        ({"period_us": 1.5}, "period_us"),
        ({"period_us": 10_000_000_001, "limit": (1 << 31) - 1}, "period_us"),
        ({"period_us": 367 * DAY_US}, "period_us"),
        ({"algorithm": "gcra"}, "algorithm"),
        ({"algorithm": "token_bucket", "burst": -1}, "burst"),
        ({"algorithm": "fixed_window", "burst": 5}, "burst"),
    ],
)
def test_l15_every_bad_field_is_named(arguments: dict[str, Any], field: str) -> None:
    """L15: zero, negative, unknown algorithm, burst below 1."""
    with pytest.raises(InvalidQuota) as caught:
        Quota(**({"limit": 10, "period_us": 1_000_000} | arguments))
    assert caught.value.param == field


def test_l15_a_burst_of_zero_is_refused_where_somebody_wrote_it() -> None:
    with pytest.raises(InvalidQuota, match="burst must be a whole number from 1"):
        Quota.parse("10/second", algorithm="token_bucket", burst=0)


class Account:
    """A class without `__str__`: its text is another one at every request."""


NO_KEYS = ["", None, True, 4.5, b"bytes", ["user"], Account(), {}]
NO_KEYS += [{"user": part} for part in ("", None, False, 0.5, b"7", ["7"], Account())]


@pytest.mark.parametrize("key", NO_KEYS)
@pytest.mark.parametrize("compiled", [True, False])
def test_l15_a_missing_or_empty_client_id_is_a_clear_error(key: Any, compiled: bool) -> None:
    limiter = Limiter(Quota.parse("1/minute"), compiled=compiled)
    with pytest.raises(InvalidKey) as caught:
        limiter.check(key)
    assert "like" in caught.value.message


@pytest.mark.parametrize("compiled", [True, False])
def test_l15_numbers_and_objects_with_a_text_are_keys_like_their_text(compiled: bool) -> None:
    limiter = Limiter("9/minute", compiled=compiled)
    for key in (42, UUID(int=42), ip_address("203.0.113.7")):
        limiter.check(str(key))
        assert limiter.check(key).remaining == 7
        limiter.check({"user": str(key)})
        assert limiter.check({"user": key}).remaining == 7


def test_l15_an_object_without_a_text_is_told_apart_from_a_missing_key() -> None:
    for key in (Account(), {"user": Account()}):
        with pytest.raises(InvalidKey, match="has no __str__; pass its id"):
            Limiter("9/minute").check(key)  # type: ignore[arg-type]


def test_l15_a_key_without_the_part_a_rule_needs_names_the_part() -> None:
    limiter = Limiter([Rule("person", Quota.parse("1/minute"), per=("user",))])
    for key in ({"ip": "203.0.113.7"}, "user:42"):
        with pytest.raises(InvalidKey, match="rule person counts by .*user"):
            limiter.check(key)


@pytest.mark.parametrize("cost", [0, -1, 1.5, "1", None, True])
@pytest.mark.parametrize("compiled", [True, False])
def test_l15_a_cost_is_a_positive_whole_number(cost: Any, compiled: bool) -> None:
    limiter = Limiter(Quota.parse("10/minute"), compiled=compiled)
    with pytest.raises(InvalidCost):
        limiter.check("fan", cost=cost)
    assert limiter.peek("fan").remaining == 10


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": ""},
        {"name": "a b"},
        {"name": "x" * 65},
        {"name": "a:b"},
        {"per": "user"},
        {"per": ("",)},
        {"on_store_down": "panic"},
        {"tiers": {"vip": Quota.parse("1/s")}},
        {"lease": 0},
        {"lease": 5},
    ],
)
def test_l15_a_bad_rule_is_refused_when_it_is_made(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidQuota):
        Rule(**({"name": "burst", "quota": Quota.parse("10/second")} | arguments))


def test_l15_a_limiter_needs_rules_with_different_names_and_a_known_store() -> None:
    rule = Rule("burst", Quota.parse("10/second"))
    for rules in ([], [rule, rule], [7], 7, None, "", [Rule(f"r{n}", rule.quota) for n in range(33)]):
        with pytest.raises(InvalidQuota):
            Limiter(rules)  # type: ignore[arg-type]
    for store in ("mongodb://x", "redis", "memory", "memory://?size=3", "memory://?max_keys=0", "memory://?max_keys=x"):
        with pytest.raises(ConfigError):
            Limiter(rule, store=store)
    for options in ({"on_store_down": "shrug"}, {"deadline_s": 0}, {"prefix": "a{b}"}, {"colour": "red"}):
        with pytest.raises(ConfigError):
            Limiter(rule, store="redis://127.0.0.1:1/0", **options)  # type: ignore[arg-type]
    for options in ({"on_store_down": "bogus"}, {"deadline_s": 0}, {"deadline_s": "1"}, {"colour": "red"}):
        with pytest.raises(ConfigError, match=next(iter(options))):
            Limiter(rule, **options)  # type: ignore[arg-type]


async def no_endpoint(request: Any) -> None: ...


def test_l15_every_limited_app_reads_rules_in_the_same_way() -> None:
    """What the middleware and the decorator accept, the limiter accepts, with the same names."""
    for rules in ("1/s; 100/h", ["1/s", "100/h"], [Quota.parse("1/s"), "100/h"]):
        limited_function = limited(rules, name="rule")(print)
        middleware = RateLimitMiddleware(None, rules)  # type: ignore[arg-type]
        quotas = [rule.quota for rule in Limiter(rules).rules]  # type: ignore[arg-type]
        assert quotas == [Quota.parse("1/s"), Quota.parse("100/h")]
        assert [rule.quota for rule in middleware.limits.book.current.rules] == quotas
        assert [rule.quota for rule in limited_function.limiter.rules] == quotas  # type: ignore[attr-defined]
        assert [rule.name for rule in Limiter(rules).rules] == ["rule1", "rule2"]  # type: ignore[arg-type]
        assert [rule.name for rule in middleware.limits.book.current.rules] == ["rule1", "rule2"]
        assert [rule.name for rule in limited_function.limiter.rules] == ["rule-1", "rule-2"]  # type: ignore[attr-defined]
    assert [rule.name for rule in Limiter(["5/s"]).rules] == ["default"]
    starlette_limited("5/100ms; 5/200ms")(no_endpoint)  # each has its own name
    with pytest.raises(ConfigError, match="a rule for requests is like"):
        RateLimitMiddleware(None, [7])  # type: ignore[arg-type, list-item]


def test_a_refusal_survives_pickling_and_copying() -> None:
    """A `Throttled` in a process pool or a Celery worker reaches the caller."""
    limiter = Limiter("1/minute")
    limiter.check("fan")
    error = Throttled("too many", limiter.check("fan"))
    for same in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(same) is Throttled
        assert (same.decision, same.message, same.problem()) == (error.decision, error.message, error.problem())
        assert same.retry_after_s == error.retry_after_s


@given(st.integers(1, 2**31 - 1), st.integers(1, 366 * 86_400), st.integers(1, 2**31 - 1))
def test_a_buckets_rate_is_never_faster_than_asked_and_exact_in_lua(limit: int, period_s: int, burst: int) -> None:
    drain_years = burst * period_s / limit / (365 * 86_400)
    if drain_years > 286:
        with pytest.raises(InvalidQuota, match="centuries"):
            Quota(limit, period_s * 1_000_000, "token_bucket", burst)
    if drain_years > 142:  # from here on exact arithmetic may not reach
        return
    quota = Quota(limit, period_s * 1_000_000, "token_bucket", burst)
    leak, unit = quota.drip
    assert leak >= 1
    assert unit >= 1
    assert leak * quota.period_us <= quota.limit * unit, "at most `limit` units a period"
    assert quota.capacity * unit <= 1 << 53


def test_l11_a_decision_is_true_or_false_and_speaks_in_seconds() -> None:
    """L11: allowed, limit, remaining, reset, retry-after and the rule."""
    limiter = Limiter([Rule("burst", Quota.parse("2/10s", algorithm="token_bucket"))])
    now_us = 1_700_000_000_000_000
    decision = limiter.check("fan", now_us=now_us)
    assert decision
    assert isinstance(decision, Decision)
    assert (decision.allowed, decision.limit, decision.remaining, decision.rule) == (True, 2, 1, "burst")
    assert (decision.reset_after_s, decision.retry_after_s, decision.delay_s) == (5.0, 0.0, 0.0)
    limiter.check("fan", now_us=now_us)
    refusal = limiter.check("fan", now_us=now_us)
    assert not refusal
    assert (refusal.retry_after_s, refusal.reset_after_s) == (5.0, 10.0)


def test_l16_decisions_are_counted_per_rule() -> None:
    for compiled in (True, False):
        limiter = Limiter([Rule("a", Quota.parse("3/day")), Rule("b", Quota.parse("9/day"))], compiled=compiled)
        for _ in range(5):
            limiter.check("fan")
        limiter.check({"user": "fan"})
        counted = limiter.stats.rules
        assert (counted["a"].allowed, counted["a"].refused, counted["b"].allowed) == (4, 2, 0)
