"""What limits, throttled-py and pyrate-limiter document, in our own words: a table of histories.

Each history runs over our four backends and the peers that share its meaning, so the table is true of them too.
Where a peer means something else, the test says what each of them does; docs/limits-migration.md says why.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import limits
import limits.storage
import limits.strategies
import pytest
import slowapi
import slowapi.errors
import throttled
from pyrate_limiter import InMemoryBucket, Rate, RateItem
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from throttled.store import MemoryStore

from frontrow.limits import CostTooLarge, InvalidCost, InvalidQuota, Limiter, Quota, Throttled
from frontrow.limits.http.key_states import KeyStates
from frontrow.testing.clock import ManualClock
from tests.limits.backends import Backend, S
from tests.limits.limited_apps import call_asgi

DAY_S = 1_699_920_000  # a midnight in UTC, so that windows of every length begin here

CHECK, PEEK = "check", "peek"


@dataclass(frozen=True)
class History:
    """Requests at times (in seconds from a midnight) and whether each is allowed."""

    meaning: str
    quota: str
    steps: tuple[tuple[float, str, int, bool], ...]  # at, key, cost, allowed
    peers: tuple[str, ...]
    op: str = CHECK


def steps(*rows: tuple[Any, ...]) -> tuple[tuple[float, str, int, bool], ...]:
    """(at, allowed), (at, cost, allowed) or (at, key, cost, allowed)."""
    full = []
    for row in rows:
        at, key, cost, allowed = {
            2: lambda a, yes: (a, "fan", 1, yes),
            3: lambda a, cost, yes: (a, "fan", cost, yes),
            4: lambda a, key, cost, yes: (a, key, cost, yes),
        }[len(row)](*row)
        full.append((at, key, cost, allowed))
    return tuple(full)


HISTORIES = [
    History(
        "as many as the limit, then none until the window ends",
        "3/minute fixed_window",
        steps(
            (0, True), (1, True), (2, True), (3, False), (59, False), (60, True), (61, True), (62, True), (63, False)
        ),
        ("limits.fixed", "throttled.fixed_window"),
    ),
    History(
        "a window's boundary lets twice the limit through",
        "3/minute fixed_window",
        steps((0, True), (58, True), (59, True), (59, False), (60, True), (61, True), (62, True), (62, False)),
        ("limits.fixed", "throttled.fixed_window"),
    ),
    History(
        "a unit is free again when its own request leaves the window",
        "2/10s sliding_log",
        steps((0, True), (4, True), (9.9, False), (10.1, True), (13.9, False), (14.1, True), (20, False), (20.2, True)),
        ("limits.moving", "pyrate.log"),
    ),
    History(
        "refused requests take nothing",
        "2/10s sliding_log",
        steps((0, True), (0, True), (5, False), (6, False), (9, False), (10.1, True), (10.1, True), (10.2, False)),
        ("limits.moving", "pyrate.log"),
    ),
    History(
        "a request takes several units or none",
        "10/minute sliding_log",
        steps((0, 4, True), (1, 7, False), (2, 6, True), (3, 1, False), (60.5, 5, False), (60.5, 4, True)),
        ("limits.moving", "pyrate.log"),
    ),
    History(
        "every key has its own count",
        "1/minute sliding_log",
        steps((0, "a", 1, True), (0, "b", 1, True), (1, "a", 1, False), (1, "b", 1, False), (61, "a", 1, True)),
        ("limits.moving",),
    ),
    History(
        "the share of the previous window that is still inside counts",
        "10/minute sliding_counter",
        steps((30, 10, True), (78, 3, True), (90, 1, True), (90, 3, False)),
        ("limits.sliding", "throttled.sliding_window"),
    ),
    History(
        "a burst at once, then the steady rate",
        "1/s burst 5",
        steps((0, 5, True), (0, False), (1, True), (1, False), (3, 2, True), (3, False), (20, 5, True), (20, False)),
        ("throttled.token_bucket", "throttled.gcra"),
    ),
    History(
        "a leaky bucket takes what fits and drains at the rate",
        "1/s burst 3 leaky_bucket",
        steps((0, 3, True), (0, False), (2, 2, True), (2, False), (3, True), (30, 3, True), (30, False)),
        ("throttled.leaking_bucket",),
    ),
    History(
        "of several rates every one must allow",
        "2/s sliding_log; 3/10s sliding_log",
        steps((0, True), (0.1, True), (0.2, False), (1.2, True), (2.4, False), (9.9, False), (10.2, True)),
        ("pyrate.log",),
    ),
    History(
        "looking takes nothing",
        "1/minute sliding_log",
        steps((0, True), (0, True), (1, True)),
        ("limits.moving", "limits.fixed", "throttled.token_bucket"),
        PEEK,
    ),
]


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history.meaning)
def test_a_documented_behaviour_of_a_peer_holds_in_every_integration(backend: Backend, history: History) -> None:
    limiter = backend.limiter(history.quota)
    ask = limiter.check if history.op == CHECK else limiter.peek
    told = [ask(key, cost, now_us=round((DAY_S + at) * S)).allowed for at, key, cost, _ in history.steps]
    assert told == [allowed for *_, allowed in history.steps]


@pytest.mark.parametrize(
    ("history", "peer"),
    [pytest.param(h, peer, id=f"{peer}: {h.meaning}") for h in HISTORIES for peer in h.peers],
)
def test_the_peer_itself_behaves_so(history: History, peer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now_s=float(DAY_S))
    freeze(monkeypatch, clock)
    ask = PEERS[peer](Quota.parse_all(history.quota), history.op)
    told = []
    for at, key, cost, _ in history.steps:
        clock.now_s = DAY_S + at
        told.append(ask(key, cost, clock.now_s))
    assert told == [allowed for *_, allowed in history.steps]


# -- texts and figures ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        *(
            "10/hour",
            "10 per hour",
            "10/second",
            "10/minute",
            "10/day",
            "1 per 3 hour",
            "100/10 minutes",
            "5/30 second",
        ),
        *("10/second; 100/minute", "1 per minute, 20 per hour", "1/second|100 per day"),
    ],
)
def test_texts_of_limits_slowapi_and_flask_limiter_mean_the_same(text: str) -> None:
    theirs = [(item.amount, item.get_expiry() * S) for item in limits.parse_many(text)]
    assert [(quota.limit, quota.period_us) for quota in Quota.parse_all(text)] == theirs


@pytest.mark.parametrize(
    ("text", "limit", "period_s"),
    [
        ("5/s", 5, 1),
        ("100/10s", 100, 10),
        ("100/m", 100, 60),
        ("100/5m", 100, 300),
        ("9/h", 9, 3600),
        ("9/d", 9, 86_400),
    ],
)
def test_texts_of_django_ratelimit_mean_the_same(text: str, limit: int, period_s: int) -> None:
    quota = Quota.parse(text)
    assert (quota.limit, quota.period_us) == (limit, period_s * S)


def test_what_is_left_and_when_it_is_free_are_told_like_throttleds_state(backend: Backend, monkeypatch: Any) -> None:
    clock = SimpleNamespace(now_s=float(DAY_S))
    freeze(monkeypatch, clock)
    theirs = throttled.Throttled(using="token_bucket", quota=throttled.per_sec(1, burst=5), store=MemoryStore())
    ours = backend.limiter("1/s burst 5")
    for at, cost in ((0, 2), (1, 2), (1, 3), (2, 2), (2, 4)):
        clock.now_s = DAY_S + at
        state, decision = theirs.limit("fan", cost), ours.check("fan", cost, now_us=round(clock.now_s * S))
        assert decision.allowed is not state.limited
        assert (decision.limit, decision.remaining) == (state.state.limit, state.state.remaining)
        assert decision.retry_after_s == state.state.retry_after


@pytest.mark.parametrize("compiled", [True, False])
def test_who_waits_is_served_in_time_or_told_at_once(compiled: bool, clock: ManualClock) -> None:
    """throttled's `timeout` and pyrate's `max_delay`: a wait that cannot succeed is not begun."""
    limiter = Limiter("1/10s sliding_log", clock=clock, compiled=compiled)
    limiter.acquire("fan", timeout_s=0)
    began_us = clock()
    with pytest.raises(Throttled):
        limiter.acquire("fan", timeout_s=9)
    assert clock() == began_us
    assert limiter.acquire("fan", timeout_s=11).allowed
    assert clock() - began_us == 10 * S


# -- where the meaning differs: docs/limits-migration.md says why ------------------------------------------------------


def test_we_raise_for_a_cost_that_can_never_fit(backend: Backend) -> None:
    assert not PEERS["limits.moving"](Quota.parse_all("3/minute"), CHECK)("fan", 4, DAY_S)
    assert not PEERS["pyrate.log"](Quota.parse_all("3/minute"), CHECK)("fan", 4, DAY_S)
    with pytest.raises(CostTooLarge):
        backend.limiter("3/minute").check("fan", 4)


def test_we_refuse_a_cost_of_nothing(backend: Backend) -> None:
    assert PEERS["pyrate.log"](Quota.parse_all("3/minute"), CHECK)("fan", 0, DAY_S)
    with pytest.raises(InvalidCost):
        backend.limiter("3/minute").check("fan", 0)


def test_our_refusals_charge_nothing_in_a_fixed_window_too(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    freeze(monkeypatch, SimpleNamespace(now_s=float(DAY_S)))
    history = (("fan", 2, True), ("fan", 2, False), ("fan", 1, True))
    for peer in ("limits.fixed", "throttled.fixed_window"):
        ask = PEERS[peer](Quota.parse_all("3/minute"), CHECK)
        assert [ask(key, cost, DAY_S) for key, cost, _ in history] == [True, False, False], peer
    limiter = backend.limiter("3/minute fixed_window")
    told = [limiter.check(key, cost, now_us=DAY_S * S).allowed for key, cost, _ in history]
    assert told == [allowed for *_, allowed in history]


async def test_our_rules_are_charged_together_or_not_at_all() -> None:
    """slowapi (and Flask-Limiter) charge the day for calls that the hour refuses."""
    theirs = slowapi.Limiter(key_func=lambda request: "fan")

    @theirs.limit("1/hour;100/day")
    async def home(request: Any) -> PlainTextResponse:
        return PlainTextResponse("served")

    app = Starlette(routes=[Route("/", home)])
    app.state.limiter = theirs
    app.add_exception_handler(slowapi.errors.RateLimitExceeded, lambda request, error: PlainTextResponse("no", 429))
    answers = [(await call_asgi(app, "GET", "/", {}, "203.0.113.1")).status for _ in range(60)]
    assert (answers.count(200), answers.count(429)) == (1, 59)
    assert max(theirs._storage.storage.values()) == 60
    ours = Limiter("1/hour; 100/day")
    assert [ours.check("fan").allowed for _ in range(60)].count(True) == 1
    day = next(state for state in KeyStates(ours, {"rule2": "fan"}).read())
    assert day.decision.remaining == 99


def test_our_fixed_windows_begin_with_the_clock_and_not_with_the_first_request(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now_s=DAY_S + 50.0)
    freeze(monkeypatch, clock)
    theirs = PEERS["limits.fixed"](Quota.parse_all("1/minute"), CHECK)
    ours = backend.limiter("1/minute fixed_window")
    told = []
    for at in (50, 61):
        clock.now_s = DAY_S + at
        told.append((theirs("fan", 1, clock.now_s), ours.check("fan", now_us=round(clock.now_s * S)).allowed))
    assert told == [(True, True), (False, True)]


def test_our_sliding_counter_does_not_round_the_previous_windows_share_down(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now_s=DAY_S + 30.0)
    freeze(monkeypatch, clock)
    theirs, ours = PEERS["limits.sliding"](Quota.parse_all("10/minute"), CHECK), backend.limiter("10/minute")
    told = []
    for at, cost in ((30, 10), (75, 2), (75, 1)):  # 7.5 of the previous window are still inside
        clock.now_s = DAY_S + at
        told.append((theirs("fan", cost, clock.now_s), ours.check("fan", cost, now_us=round(clock.now_s * S)).allowed))
    assert told == [(True, True), (True, True), (True, False)]


def test_our_month_is_one_of_the_calendar_and_a_year_is_written_in_days() -> None:
    days = [limits.parse(text).get_expiry() // 86_400 for text in ("1000/month", "1000/year")]
    assert days == [30, 360]
    assert Quota.parse("1000/month").calendar_month
    with pytest.raises(InvalidQuota, match="'year' is no unit of time"):
        Quota.parse("1000/year")
    assert Quota.parse("1000/365 days").period_us == 365 * 86_400 * S


def test_our_keys_never_meet() -> None:
    item = limits.parse("1/minute")
    assert item.key_for("a/b", "c") == item.key_for("a", "b/c")
    limiter = Limiter("1/minute")
    assert limiter.check({"user": "a/b", "item": "c"}).allowed
    assert limiter.check({"user": "a", "item": "b/c"}).allowed


def test_pyrates_bucket_is_everybodys_and_our_key_has_its_own() -> None:
    theirs = PEERS["pyrate.log"](Quota.parse_all("1/minute"), CHECK)
    limiter = Limiter("1/minute")
    assert [theirs(key, 1, DAY_S) for key in ("a", "b")] == [True, False]
    assert [limiter.check(key).allowed for key in ("a", "b")] == [True, True]


# -- the peers ------------------------------------------------------------------------------------------------------

Ask = Callable[[str, int, float], bool]


def freeze(monkeypatch: pytest.MonkeyPatch, clock: SimpleNamespace) -> None:
    """The peers read this clock."""
    still = SimpleNamespace(time=lambda: clock.now_s, monotonic=lambda: clock.now_s, perf_counter=lambda: clock.now_s)
    for module in ("limits.storage.memory", "limits.storage.base", "limits.strategies", "throttled.utils"):
        monkeypatch.setattr(f"{module}.time", still, raising=False)


def of_limits(strategy: type[Any]) -> Callable[[tuple[Quota, ...], str], Ask]:
    def make(quotas: tuple[Quota, ...], op: str) -> Ask:
        [quota] = quotas
        limiter = strategy(limits.storage.MemoryStorage())
        item = limits.RateLimitItemPerSecond(quota.limit, quota.period_us // S)
        act = limiter.hit if op == CHECK else limiter.test
        return lambda key, cost, now_s: bool(act(item, key, cost=cost))

    return make


def of_throttled(algorithm: str) -> Callable[[tuple[Quota, ...], str], Ask]:
    def make(quotas: tuple[Quota, ...], op: str) -> Ask:
        [quota] = quotas
        period = {S: throttled.per_sec, 60 * S: throttled.per_min}[quota.period_us]
        limiter = throttled.Throttled(
            using=algorithm, quota=period(quota.limit, burst=quota.capacity), store=MemoryStore()
        )
        if op == PEEK:
            return lambda key, cost, now_s: limiter.peek(key).remaining >= cost
        return lambda key, cost, now_s: not limiter.limit(key, cost).limited

    return make


def of_pyrate(quotas: tuple[Quota, ...], op: str) -> Ask:
    assert op == CHECK
    bucket = InMemoryBucket([Rate(quota.limit, quota.period_us // 1000) for quota in quotas])
    return lambda key, cost, now_s: bool(bucket.put(RateItem(key, round(now_s * 1000), weight=cost)))


PEERS: dict[str, Callable[[tuple[Quota, ...], str], Ask]] = {
    "limits.fixed": of_limits(limits.strategies.FixedWindowRateLimiter),
    "limits.moving": of_limits(limits.strategies.MovingWindowRateLimiter),
    "limits.sliding": of_limits(limits.strategies.SlidingWindowCounterRateLimiter),
    **{
        f"throttled.{algorithm}": of_throttled(algorithm)
        for algorithm in ("fixed_window", "sliding_window", "token_bucket", "leaking_bucket", "gcra")
    },
    "pyrate.log": of_pyrate,
}
