"""The short ways of `check` and `acheck` in memory give the results of the specification."""

import asyncio
import collections.abc
import gc
import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontrow.limits import CostTooLarge, Decision, InvalidCost, InvalidKey, Limiter, Quota, Rule
from frontrow.limits.stores.protocol import CHARGE, CHECK, PEEK, REFUND, RESET
from frontrow.testing.clock import ManualClock
from tests.limits.backends import T0_US, S
from tests.limits.strategies import operations, quotas

KERNELS = pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "pure"])
PER = (None, (), ("user",), ("endpoint",), ("user", "endpoint"))


def run(limiter: Limiter, history: list[tuple[int, int, int, int]], key_of: Callable[[int], Any]) -> list[Decision]:
    """The decisions of a history of checks, peeks, refunds, charges and resets."""

    def charge(key: Any, cost: int, now_us: int) -> Decision:
        """What the settlement of a reservation does when more was used: it may leave a debt."""
        request = limiter._request(key, cost, now_us, CHARGE)
        return limiter._store.decide(request._replace(cost=3 * cost)).decision

    def reset(key: Any, cost: int, now_us: int) -> Decision:
        return limiter.reset(key, now_us)

    ask = {CHECK: limiter.check, PEEK: limiter.peek, REFUND: limiter.refund, CHARGE: charge, RESET: reset}
    most = min(rule.quota.capacity for rule in limiter.rules)
    now_us, told = T0_US, []
    for op, cost, step_us, who in history:
        now_us += step_us
        told.append(ask[op](key_of(who), min(cost, most), now_us))
    return told


class Long(Limiter):
    """A limiter whose checks take the long way, because it replaces `check`."""

    def check(self, key: Any, cost: int = 1, now_us: int | None = None) -> Decision:
        return super().check(key, cost, now_us)


@given(
    rules=st.lists(st.tuples(quotas, st.booleans(), st.sampled_from(PER)), min_size=1, max_size=3),
    whole=st.booleans(),
    history=st.lists(operations, max_size=30),
)
def test_short_and_long_ways_agree_on_random_histories(
    rules: list[tuple[Quota, bool, Any]], whole: bool, history: list[tuple[int, int, int, int]]
) -> None:
    """Compiled and plain, one rule and several, string keys and mappings, also when the clock jumps."""
    built = [
        Rule(f"r{n}", quota, None if whole else per, shadow=shadow) for n, (quota, shadow, per) in enumerate(rules)
    ]

    def key_of(who: int) -> Any:
        return f"fan{who}" if whole else {"user": f"fan{who}", "endpoint": "POST /holds"}

    specified = Long(built, clock=ManualClock(T0_US), compiled=False)
    told = run(specified, history, key_of)
    for compiled in (True, False):
        limiter = Limiter(built, clock=ManualClock(T0_US), compiled=compiled)
        assert run(limiter, history, key_of) == told
        assert limiter.stats.rules == specified.stats.rules


texts = st.one_of(
    st.text(min_size=1, max_size=12), st.text("aé€😀\udcff", min_size=1, max_size=100), st.just("x" * 256)
)


numbers = st.one_of(st.integers(-1000, 1000), st.sampled_from([0, -1, 2**63 - 1, -(2**63), 2**63, 10**300]))
part_values = st.one_of(texts, numbers, st.uuids())
whole_keys = st.one_of(part_values, st.dictionaries(texts, part_values, min_size=1, max_size=10))


@KERNELS
@given(key=whole_keys, rules=st.integers(1, 3))
def test_a_key_of_any_form_is_the_same_client_on_the_short_way_and_on_the_long_one(
    key: Any, rules: int, compiled: bool
) -> None:
    built = [Rule(f"r{n}", Quota.parse("9/minute")) for n in range(rules)]
    limiter = Limiter(built, clock=ManualClock(), compiled=compiled)
    limiter.check(key, cost=4)
    assert limiter.peek(key).remaining == 5, "peek makes its key in Python, by keys.py"
    if isinstance(key, dict):
        assert limiter.peek(MappingProxyType(dict(reversed(key.items())))).remaining == 5
    elif not isinstance(key, str):
        assert limiter.check(str(key)).remaining == 4, "42 is the client '42'"


PLAIN_KEYS = [
    "user:42",
    42,
    -7,
    UUID("00000000-0000-0000-0000-00000000002a"),
    UUID("ffffffff-89ab-4def-8123-456789abcdef"),
    {"user": "42"},
    {"user": 42},
    {"user": UUID("ffffffff-89ab-4def-8123-456789abcdef")},
    {"user": "42", "endpoint": "POST /holds"},
]


@KERNELS
@pytest.mark.parametrize("key", PLAIN_KEYS, ids=repr)
@pytest.mark.parametrize("rules", [1, 3])
def test_no_common_key_takes_the_long_way(
    key: Any, rules: int, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The long way costs 10 to 20 times as much."""
    limiter = Limiter([Rule(f"r{n}", Quota.parse("9/minute")) for n in range(rules)], compiled=compiled)
    monkeypatch.setattr(limiter, "_request", lambda *_: pytest.fail("the long way"))
    assert limiter.check(key).remaining == 8
    assert limiter.check(key).remaining == 7


@KERNELS
def test_many_keys_of_every_form_stay_apart(compiled: bool) -> None:
    """More than the kernel remembers at a time, and such that a number, a UUID and a part have the same value."""
    limiter = Limiter("9/minute", clock=ManualClock(), compiled=compiled)
    forms: list[Callable[[int], Any]] = [
        lambda n: n,
        lambda n: UUID(int=n),
        lambda n: {"user": n},
        lambda n: {"name": n},
        lambda n: {"user": UUID(int=n)},
        lambda n: {"user": f"fan{n}"},
    ]
    for turn in range(2):
        for n in range(3000):
            assert {limiter.check(form(n)).remaining for form in forms} == {8 - turn}
    assert limiter.check({"user": "7"}).remaining == 6, "7 and '7' are one client"
    assert limiter.check({"user": 7}).remaining == 5


@KERNELS
def test_rules_by_parts_and_by_the_whole_key_are_checked_together(
    compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = [Rule("all", Quota.parse("9/minute")), Rule("user", Quota.parse("3/minute"), per=("user",))]
    limiter = Limiter(rules, clock=ManualClock(), compiled=compiled)
    with monkeypatch.context() as patch:
        patch.setattr(limiter, "_request", lambda *_: pytest.fail("the long way"))
        told = [limiter.check({"user": 1, "page": n % 2}) for n in range(4)]
    assert [(decision.allowed, decision.rule, decision.remaining) for decision in told] == [
        (True, "user", 2),
        (True, "user", 1),
        (True, "user", 0),
        (False, "user", 0),
    ]
    assert limiter.peek({"user": 2, "page": 0}).rule == "user"


@given(parts=st.fixed_dictionaries({"user": texts, "endpoint": texts}), per=st.sampled_from(PER[1:]))
def test_the_compiled_check_packs_keys_as_the_others_do(parts: dict[str, str], per: tuple[str, ...]) -> None:
    """What a check charged, a peek finds: it packs the key in Python."""
    limiter = Limiter(Rule("r", Quota.parse("9/minute"), per=per), clock=ManualClock())
    limiter.check(parts, cost=4)
    assert limiter.peek(MappingProxyType(parts)).remaining == 5
    assert limiter.check(MappingProxyType(parts)).remaining == 4


@KERNELS
@pytest.mark.parametrize(
    ("key", "cost", "error"),
    [
        ({"user": "42"}, 1, "counts by 'endpoint'"),
        ({"user": "42", "endpoint": ""}, 1, "counts by 'endpoint'"),
        ({"user": "42", "endpoint": 7.5}, 1, "counts by 'endpoint'"),
        ("user:42", 1, "give a mapping"),
        (None, 1, "a key is"),
        ({"user": "42", "endpoint": "/"}, 0, "at least 1"),
        ({"user": "42", "endpoint": "/"}, True, "at least 1"),
        ({"user": "42", "endpoint": "/"}, 10**30, "never fit"),
        ({"user": "42", "endpoint": "/"}, 6, "never fit"),
    ],
)
def test_what_is_wrong_is_said_and_charges_nothing(key: Any, cost: int, error: str, compiled: bool) -> None:
    rules = [Rule("a", Quota.parse("9/minute"), per=("user",)), Rule("b", Quota.parse("5/minute"), per=("endpoint",))]
    limiter = Limiter(rules, clock=ManualClock(), compiled=compiled)
    with pytest.raises((InvalidKey, InvalidCost, CostTooLarge), match=error):
        limiter.check(key, cost)
    assert limiter.peek({"user": "42", "endpoint": "/"}).remaining == 5


def test_a_limiter_that_replaces_check_is_asked_itself() -> None:
    class Counted(Limiter):
        asked = 0

        def check(self, key: str | Mapping[str, str], cost: int = 1, now_us: int | None = None) -> Decision:
            self.asked += 1
            return super().check(key, cost, now_us)

    limiter = Counted("5/minute")
    assert limiter.check("fan").remaining == 4
    assert limiter.asked == 1


# -- acheck: what people do with a coroutine ---------------------------------------------------------------------------


@KERNELS
async def test_acheck_goes_wherever_a_coroutine_goes(compiled: bool) -> None:
    limiter = Limiter("9/minute", clock=ManualClock(), compiled=compiled)
    assert (await limiter.acheck("fan")).remaining == 8
    told = await asyncio.gather(limiter.acheck("fan"), limiter.acheck("fan", cost=2))
    assert [decision.remaining for decision in told] == [7, 5]
    assert (await asyncio.wait_for(limiter.acheck("fan"), 60)).remaining == 4
    assert (await asyncio.create_task(limiter.acheck("fan"))).remaining == 3
    assert (await asyncio.ensure_future(limiter.acheck("fan"))).remaining == 2
    async with asyncio.TaskGroup() as group:
        task = group.create_task(limiter.acheck(key="fan", cost=1, now_us=None))
    assert task.result().remaining == 1
    closed = limiter.acheck("fan")
    assert isinstance(closed, collections.abc.Coroutine)
    closed.close()
    cancelled = asyncio.create_task(limiter.acheck("fan"))
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert limiter.peek("fan").remaining == 1, "neither was made"


@KERNELS
def test_acheck_runs_as_a_main_function_also_in_debug_mode(compiled: bool) -> None:
    limiter = Limiter("9/minute", clock=ManualClock(), compiled=compiled)
    assert asyncio.run(limiter.acheck("fan")).remaining == 8
    assert asyncio.run(limiter.acheck("fan"), debug=True).remaining == 7


@KERNELS
async def test_acheck_raises_what_check_raises(compiled: bool) -> None:
    limiter = Limiter("9/minute", compiled=compiled)
    with pytest.raises(CostTooLarge):
        await limiter.acheck("fan", cost=10)
    with pytest.raises(InvalidKey):
        await asyncio.create_task(limiter.acheck(""))


@KERNELS
async def test_acheck_is_made_once_and_only_when_awaited(compiled: bool) -> None:
    limiter = Limiter("9/minute", clock=ManualClock(), compiled=compiled)
    due = limiter.acheck("fan")
    assert limiter.peek("fan").remaining == 9
    assert (await due).remaining == 8
    with pytest.raises(RuntimeError, match="already awaited"):
        await due
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        forgotten = limiter.acheck("fan")
        del forgotten
        gc.collect()
    assert ["never awaited" in str(warning.message) for warning in caught] == [True]
    assert limiter.peek("fan").remaining == 8


async def test_acheck_in_an_awaitable_of_ones_own() -> None:
    limiter = Limiter("9/minute", clock=ManualClock())

    class Twice:
        def __await__(self) -> Any:
            yield from limiter.acheck("fan").__await__()
            return (yield from limiter.acheck("fan").__await__())

    assert (await Twice()).remaining == 7


def test_sends_and_throws_of_acheck_are_those_of_a_coroutine() -> None:
    limiter = Limiter("9/minute", clock=ManualClock())
    with pytest.raises(StopIteration) as stop:
        limiter.acheck("fan").send(None)
    assert stop.value.value.remaining == 8
    with pytest.raises(KeyError, match="x"):
        limiter.acheck("fan").throw(KeyError("x"))
    with pytest.raises(KeyError):
        limiter.acheck("fan").throw(KeyError)
    assert limiter.peek("fan").remaining == 8


async def test_rules_by_parts_are_checked_for_asyncio_too() -> None:
    rules = [Rule("a", Quota.parse("9/minute"), per=("user",)), Rule("b", Quota.parse("3/minute"), per=())]
    limiter = Limiter(rules, clock=ManualClock())
    told = [await limiter.acheck({"user": f"{n}"}, now_us=T0_US + S) for n in range(4)]
    assert [(decision.allowed, decision.rule) for decision in told] == [(True, "b")] * 3 + [(False, "b")]
    assert limiter.stats.rules["b"].refused == 1
