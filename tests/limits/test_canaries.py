"""Deliberately broken limiters that the contract suite must catch: if one of these passes, the suite is blind."""

import asyncio
import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from frontrow.limits import Quota, algorithms
from frontrow.limits.stores import memory, plain_checks
from frontrow.limits.stores.protocol import StoreRequest
from tests.limits import test_contract as contract
from tests.limits.doors import Door
from tests.limits.test_contention import hammer


@pytest.fixture
def pure(redis_url: str, loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch) -> Door:
    monkeypatch.setattr(memory.MemoryStore, "prepare_check", lambda *_: None)  # every check runs the specification
    return Door("pure", redis_url, loop)


def burns_on_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Charges the rules that would have allowed although another refused."""

    def apply_rules(request: StoreRequest, slots: object, states: object, now_us: int) -> object:
        both = [
            algorithms.SPECIFICATION[slot.quota.algorithm](slot.quota, state, now_us, request.cost)
            for slot, state in zip(slots, states, strict=True)  # type: ignore[call-overload]
        ]
        return [verdict for verdict, _ in both], [state for _, state in both]

    monkeypatch.setattr(memory, "_apply_rules", apply_rules)


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
        (burns_on_refusal, contract.test_l4_a_refused_rule_burns_nothing_of_the_others),
        (
            promises_too_early,
            lambda d: contract.test_l11_the_promised_moment_is_true_to_the_microsecond(d, "token_bucket"),
        ),
        (
            grants_when_the_clock_goes_back,
            lambda d: contract.test_l15_time_that_steps_back_a_little_stands_still(d, "sliding_log"),
        ),
    ],
    ids=["burns on refusal", "promises too early", "grants when the clock goes back"],
)
def test_the_contract_suite_catches(
    sabotage: Callable[[pytest.MonkeyPatch], None],
    test: Callable[[Door], None],
    pure: Door,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    test(pure)
    sabotage(monkeypatch)
    with pytest.raises(AssertionError):
        test(pure)


def test_the_contention_test_catches_a_store_without_its_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check and act in two steps, with another thread in between: more than the capacity is granted."""

    class Open:
        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None: ...

    turn = threading.Barrier(10)
    original = plain_checks.JUDGES["fixed_window"]

    def slow(quota: Quota) -> plain_checks.Judge:
        judge = original(quota)

        def wait_and_judge(state: object, now_us: int, cost: int) -> object:
            turn.wait(30)  # everybody has read before anybody writes
            return judge(state, now_us, cost)

        return wait_and_judge  # type: ignore[return-value]

    monkeypatch.setitem(plain_checks.JUDGES, "fixed_window", slow)
    monkeypatch.setattr(memory, "threading", SimpleNamespace(Lock=Open))
    assert hammer(compiled=False) > 100
