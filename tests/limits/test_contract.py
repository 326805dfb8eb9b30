"""What every store must do, over every backend: compiled and plain memory, Redis and SQL by threads and asyncio."""

import asyncio
from collections.abc import Callable

import pytest

from frontrow.limits import CostTooLarge, Quota, Rule, Throttled, algorithms
from frontrow.limits.stores import memory
from frontrow.limits.stores.protocol import StoreRequest
from tests.limits.backends import ALGORITHMS, T0_US, Backend, S

WINDOWED = ("fixed_window", "sliding_log", "sliding_counter")


def at(seconds: float) -> int:
    return T0_US + round(seconds * S)


def test_l1_five_in_ten_seconds_exactly(backend: Backend) -> None:
    """L1 L3: requests at 0…9 s, then 10, 11, 12 s: five allowed, five refused, then each as an old one leaves."""
    asker = backend.limiter(Quota.parse("5/10s", algorithm="sliding_log"))
    answers = [asker.check("fan", now_us=at(t)).allowed for t in range(13)]
    assert answers == [True] * 5 + [False] * 5 + [True] * 3


@pytest.mark.parametrize(("previous", "current", "into_s", "estimate"), [(60, 15, 20, 55), (8, 4, 45, 6)])
def test_l1_the_sliding_counter_weighs_the_previous_window(
    backend: Backend, previous: int, current: int, into_s: int, estimate: int
) -> None:
    """L1: previous 60, current 15, 20 s into 60 s: 55; previous 8, current 4, 45 s in: 6."""
    limit = 100
    asker = backend.limiter(Quota.parse(f"{limit}/60s", algorithm="sliding_counter"))
    start_us = T0_US - T0_US % (60 * S)
    asker.check("fan", cost=previous, now_us=start_us - 30 * S)
    asker.check("fan", cost=current, now_us=start_us + into_s * S)
    assert asker.peek("fan", now_us=start_us + into_s * S).remaining == limit - estimate


@pytest.mark.parametrize("algorithm", WINDOWED)
def test_l1_only_the_fixed_window_lets_two_hundred_through_around_a_boundary(backend: Backend, algorithm: str) -> None:
    asker = backend.limiter(Quota.parse("100/minute", algorithm=algorithm))
    boundary_us = T0_US - T0_US % (60 * S) + 60 * S
    before = sum(asker.check("fan", now_us=boundary_us - 1).allowed for _ in range(120))
    after = sum(asker.check("fan", now_us=boundary_us).allowed for _ in range(120))
    assert before == 100
    assert after == (100 if algorithm == "fixed_window" else 0)


@pytest.mark.parametrize("algorithm", ["token_bucket", "leaky_bucket"])
def test_l1_a_bucket_of_ten_drained_at_two_seconds_gives_one_permit_at_three(backend: Backend, algorithm: str) -> None:
    asker = backend.limiter(Quota.parse("1/second", algorithm=algorithm, burst=10))
    assert sum(asker.check("fan", now_us=at(2)).allowed for _ in range(15)) == 10
    assert not asker.check("fan", now_us=at(3) - 1).allowed
    assert asker.check("fan", now_us=at(3)).allowed
    assert not asker.check("fan", now_us=at(3)).allowed


def test_l1_the_shaper_tells_everybody_to_leave_one_interval_after_the_one_before(backend: Backend) -> None:
    """L1: leaky bucket as a shaper: a constant rate out, whatever came in."""
    asker = backend.limiter(Quota.parse("10/second", algorithm="leaky_queue", burst=4))
    decisions = [asker.check("fan", now_us=at(0)) for _ in range(5)]
    assert [d.delay_s for d in decisions[:4]] == [0.0, 0.1, 0.2, 0.3]
    assert [d.allowed for d in decisions] == [True, True, True, True, False]
    assert asker.check("fan", now_us=at(0.25)).delay_s == pytest.approx(0.15)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_l11_the_promised_moment_is_true_to_the_microsecond(backend: Backend, algorithm: str) -> None:
    """L11: refused at every instant before `retry_after_s`, allowed at it; all is back at `reset_after_s`."""
    asker = backend.limiter(Quota.parse("7/10s", algorithm=algorithm))
    now_us, refusals = T0_US, 0
    for step in range(40):
        cost = 1 + step % 3
        decision = asker.check("fan", cost=cost, now_us=now_us)
        if decision.allowed:
            now_us += 317_001 * (step % 4)
            continue
        refusals += 1
        opens_us = now_us + decision.retry_after_us
        for early_us in (now_us, (now_us + opens_us) // 2, opens_us - 1):
            assert not asker.peek("fan", cost=cost, now_us=early_us).allowed
        assert asker.peek("fan", cost=cost, now_us=opens_us).allowed
        full = asker.peek("fan", now_us=now_us + decision.reset_after_us)
        assert (full.remaining, full.reset_after_us) == (7, 0)
        now_us = opens_us
    assert refusals > 5


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_l7_cost_peek_and_refund(backend: Backend, algorithm: str) -> None:
    asker = backend.limiter(Quota.parse("10/10s", algorithm=algorithm))
    assert asker.peek("fan", now_us=at(0)).remaining == 10
    assert asker.check("fan", cost=7, now_us=at(0)).remaining == 3
    assert not asker.check("fan", cost=4, now_us=at(0)).allowed
    assert asker.peek("fan", now_us=at(0)).remaining == 3, "the refusal burnt nothing"
    assert asker.refund("fan", cost=5, now_us=at(0)).remaining == 8
    assert asker.refund("fan", cost=10, now_us=at(0)).remaining == 10, "never more than untouched"
    assert asker.refund("nobody", cost=10, now_us=at(0)).remaining == 10
    assert asker.check("fan", cost=10, now_us=at(0)).remaining == 0


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_l7_a_cost_that_can_never_fit_is_an_error_of_its_own_and_locks_nobody_out(
    backend: Backend, algorithm: str
) -> None:
    asker = backend.limiter(Quota.parse("10/10s", algorithm=algorithm))
    with pytest.raises(CostTooLarge, match="can never fit"):
        asker.check("fan", cost=11, now_us=at(0))
    assert asker.check("fan", cost=10, now_us=at(0)).allowed


def test_l4_a_refused_rule_burns_nothing_of_the_others(backend: Backend) -> None:
    """L4: 1/s and 3/h, 60 calls at once: one is served and one hourly unit is burnt, so two more follow later."""
    asker = backend.limiter(
        [Rule("burst", Quota.parse("1/second")), Rule("hourly", Quota.parse("3/hour", algorithm="fixed_window"))]
    )
    start_us = T0_US - T0_US % (3600 * S)
    answers = [asker.check("fan", now_us=start_us) for _ in range(60)]
    assert sum(answer.allowed for answer in answers) == 1
    assert {answer.rule for answer in answers if not answer.allowed} == {"burst"}
    later = [asker.check("fan", now_us=start_us + wait_s * S) for wait_s in (10, 20, 30)]
    assert [answer.allowed for answer in later] == [True, True, False]
    assert later[-1].rule == "hourly"


def test_l4_with_several_refusals_the_wait_is_the_longest(backend: Backend) -> None:
    asker = backend.limiter(
        [
            Rule("second", Quota.parse("1/second", algorithm="fixed_window")),
            Rule("minute", Quota.parse("1/minute", algorithm="fixed_window")),
        ]
    )
    asker.check("fan", now_us=at(0))
    refusal = asker.check("fan", now_us=at(0))
    assert refusal.rule == "minute"
    assert not asker.peek("fan", now_us=at(0) + refusal.retry_after_us - 1).allowed
    assert asker.peek("fan", now_us=at(0) + refusal.retry_after_us).allowed


def test_l5_a_persons_limit_lies_inside_the_endpoints_inside_the_global_one(backend: Backend) -> None:
    """L2 L5: user inside endpoint inside global, one question."""
    asker = backend.limiter(
        [
            Rule("user", Quota.parse("2/minute"), per=("user", "endpoint")),
            Rule("endpoint", Quota.parse("5/minute"), per=("endpoint",)),
            Rule("everybody", Quota.parse("7/minute"), per=()),
        ]
    )
    hits: dict[str, list[str]] = {}
    for user in "abcd":
        for endpoint in ("holds", "pay"):
            for _ in range(3):
                decision = asker.check({"user": user, "endpoint": endpoint}, now_us=at(0))
                hits.setdefault(endpoint, []).append("ok" if decision.allowed else decision.rule)
    assert hits["holds"] == ["ok", "ok", "user", "ok", "ok", "user"] + ["everybody"] * 6
    assert hits["pay"] == ["ok", "ok", "user", "ok", "everybody", "everybody"] + ["everybody"] * 6


def test_l6_tiers_have_their_own_quotas_and_change_while_running(backend: Backend) -> None:
    tier = {"ann": "vip", "bob": "free"}
    rule = Rule(
        "plan",
        Quota.parse("1/minute"),
        per=("user",),
        tiers={"vip": Quota.parse("4/minute"), "free": Quota.parse("2/minute")},
        tier_of=lambda key: tier.get(key["user"]) if not isinstance(key, str) else None,
    )
    asker = backend.limiter([rule])

    def served(user: str) -> int:
        return sum(asker.check({"user": user}, now_us=at(0)).allowed for _ in range(6))

    assert (served("ann"), served("bob"), served("eve")) == (4, 2, 1)
    tier["bob"] = "vip"
    assert served("bob") == 4


def test_a_shadow_rule_counts_and_never_refuses(backend: Backend) -> None:
    asker = backend.limiter(
        [Rule("real", Quota.parse("10/minute")), Rule("tried", Quota.parse("3/minute"), shadow=True)]
    )
    answers = [asker.check("fan", now_us=at(0)) for _ in range(12)]
    assert [answer.allowed for answer in answers] == [True] * 10 + [False] * 2
    assert {answer.rule for answer in answers} == {"real"}
    assert asker.limiter.stats.rules["tried"].shadow_refused >= 7


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_l15_a_clock_set_back_neither_grants_nor_burns_and_locks_nobody_out(backend: Backend, algorithm: str) -> None:
    """L15: back by an hour, then forward by a day, then back again."""
    quota = Quota.parse("6/10s", algorithm=algorithm)
    asker = backend.limiter(quota)
    now_us = at(5)
    assert asker.check("fan", cost=4, now_us=now_us).remaining == 2
    now_us -= 3600 * S
    assert asker.check("fan", now_us=now_us).remaining == 1, "nothing granted, nothing burnt"
    assert asker.check("fan", now_us=now_us).remaining == 0
    assert not asker.check("fan", now_us=now_us).allowed
    assert asker.check("fan", now_us=now_us + 20 * S).remaining == 5, "time goes on from where the clock was set"
    now_us += 86_400 * S
    assert asker.check("fan", now_us=now_us).remaining == 5
    now_us -= 86_400 * S
    assert asker.check("fan", cost=5, now_us=now_us).allowed
    assert not asker.check("fan", now_us=now_us).allowed
    assert asker.check("fan", now_us=now_us + 20 * S).allowed, "and nobody is locked out until tomorrow"


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_l15_time_that_steps_back_a_little_stands_still(backend: Backend, algorithm: str) -> None:
    asker = backend.limiter(Quota.parse("5/10s", algorithm=algorithm))
    for _ in range(5):
        asker.check("fan", now_us=at(9))
    for back_s in (1, 2, 5, 8):
        assert not asker.check("fan", now_us=at(9 - back_s)).allowed


def test_l7_acquire_gives_up_with_the_decision_when_the_wait_is_too_long(backend: Backend) -> None:
    asker = backend.limiter(Quota.parse("2/10s", algorithm="sliding_log"))
    asker.acquire("fan", timeout_s=0)
    asker.acquire("fan", timeout_s=0)
    with pytest.raises(Throttled) as caught:
        asker.acquire("fan", timeout_s=0.001)
    assert caught.value.decision.rule == "default"
    assert caught.value.retry_after_s == caught.value.decision.retry_after_s > 0.001


def test_l7_acquire_waits_until_the_promised_moment(backend: Backend) -> None:
    """The bucket refills a thousand a second, so the real wait is a millisecond."""
    asker = backend.limiter(Quota.parse("1000/second", algorithm="token_bucket", burst=1))
    assert all(asker.acquire("fan", timeout_s=60).allowed for _ in range(20))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_different_keys_and_rules_never_meet(backend: Backend, algorithm: str) -> None:
    """Keys cannot collide or be injected: separators, braces, control characters, a megabyte."""
    quota = Quota.parse("1/minute", algorithm=algorithm)
    asker = backend.limiter([Rule("a", quota)])
    keys: list[object] = [
        "user:1",
        "user:12",
        "user:1:23",
        "user:12:3",
        "{user}",
        "}{",
        "a\x00b",
        "a",
        "a\r\nSET x 1",
        "é",
        "e\u0301",
        "*",
        "~0",
        "#",
        "\udcff",
        " ",
        "x" * 1_000_000,
        "x" * 999_999 + "y",
        "x" * 256,
        "x" * 257,
        {"user": "1", "item": "23"},
        {"user": "12", "item": "3"},
        {"user": "1"},
        {"item": "1"},
        {"user": "4:item"},
        {"user": "1", "item": "2"},
        {"user:1": "item:2"},
        {"user": "user:1"},
    ]
    first = [asker.check(key, now_us=at(0)).allowed for key in keys]
    second = [asker.check(key, now_us=at(0)).allowed for key in keys]
    assert first == [True] * len(keys)
    assert second == [False] * len(keys)


@pytest.mark.parametrize("text", ["1/day", "1234567/day", "999983/day", "2147483647/second", "7/second", "3/2 days"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_large_and_odd_quotas_stay_exact(backend: Backend, algorithm: str, text: str) -> None:
    if algorithm == "sliding_log" and Quota.parse(text).limit > 10_000:
        text = "9973/day"
    quota = Quota.parse(text, algorithm=algorithm)
    asker = backend.limiter(quota)
    assert asker.check("fan", cost=quota.limit, now_us=at(0)).remaining == 0
    refusal = asker.check("fan", now_us=at(0))
    assert not refusal.allowed
    assert not asker.peek("fan", now_us=at(0) + refusal.retry_after_us - 1).allowed
    assert asker.peek("fan", now_us=at(0) + refusal.retry_after_us).allowed
    assert asker.peek("fan", now_us=at(0) + quota.life_us).remaining == quota.limit


def test_l3_a_calendar_month_ends_with_the_calendar(backend: Backend) -> None:
    """A leap February has 29 days, and the next month begins at midnight UTC."""
    limiter = backend.limiter("2/month")
    february_us, march_us = 1_706_745_600 * S, 1_709_251_200 * S
    assert march_us - february_us == 29 * 86_400 * S
    first = limiter.check("fan", now_us=february_us)
    assert (first.remaining, first.reset_after_us) == (1, march_us - february_us)
    assert limiter.check("fan", now_us=march_us - 1).allowed
    refused = limiter.check("fan", now_us=march_us - 1)
    assert (refused.allowed, refused.retry_after_us) == (False, 1)
    march = limiter.check("fan", now_us=march_us)
    assert (march.allowed, march.remaining, march.reset_after_us) == (True, 1, 31 * 86_400 * S)


# Canaries: deliberately broken limiters that the checks above must catch. If one passes, the suite is blind.


@pytest.fixture
def pure(loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch) -> Backend:
    monkeypatch.setattr(memory.MemoryStore, "prepare_check", lambda *_: None)  # every check runs the specification
    return Backend("pure", "memory://", loop)


def burns_on_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Charges the rules that would have allowed although another refused."""

    def apply_rules(request: StoreRequest, slots: object, states: object, now_us: int) -> object:
        both = [
            algorithms.SPECIFICATION[slot.quota.algorithm](slot.quota, state, now_us, request.cost)
            for slot, state in zip(slots, states, strict=True)  # type: ignore[call-overload]
        ]
        return [verdict for verdict, _ in both], [state for _, state in both]

    monkeypatch.setattr(memory, "apply_rules", apply_rules)


def promises_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    original = algorithms.SPECIFICATION["token_bucket"]

    def eager(*args: object) -> object:
        verdict, state = original(*args)  # type: ignore[arg-type]
        return verdict._replace(retry_after_us=max(0, verdict.retry_after_us - 1)), state

    monkeypatch.setitem(algorithms.SPECIFICATION, "token_bucket", eager)


def grants_when_the_clock_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    original = algorithms.SPECIFICATION["sliding_log"]

    def forgetful(quota: object, state: object, now_us: int, cost: int) -> object:
        if state and state[-1] > now_us:  # type: ignore[index]
            state = None
        return original(quota, state, now_us, cost)  # type: ignore[arg-type]

    monkeypatch.setitem(algorithms.SPECIFICATION, "sliding_log", forgetful)


@pytest.mark.parametrize(
    ("sabotage", "test"),
    [
        (burns_on_refusal, test_l4_a_refused_rule_burns_nothing_of_the_others),
        (
            promises_too_early,
            lambda d: test_l11_the_promised_moment_is_true_to_the_microsecond(d, "token_bucket"),
        ),
        (
            grants_when_the_clock_goes_back,
            lambda d: test_l15_time_that_steps_back_a_little_stands_still(d, "sliding_log"),
        ),
    ],
    ids=["burns on refusal", "promises too early", "grants when the clock goes back"],
)
def test_the_contract_suite_catches(
    sabotage: Callable[[pytest.MonkeyPatch], None],
    test: Callable[[Backend], None],
    pure: Backend,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    test(pure)
    sabotage(monkeypatch)
    with pytest.raises(AssertionError):
        test(pure)
