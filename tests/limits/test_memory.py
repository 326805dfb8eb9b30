"""The in-process store at size: a million clients, idle ones gone by themselves, a cap that holds (L8, N6)."""

import asyncio
import gc
import itertools
import os
import random
import shutil
import sysconfig
from collections.abc import Callable
from typing import Any

import pytest

from frontrow.core.errors import ConfigError, InvalidInput
from frontrow.limits import Limiter, Quota
from frontrow.limits.algorithms import SPECIFICATION
from frontrow.limits.stores.from_url import CompiledStore
from frontrow.limits.stores.key_table import FREED_PER_CHECK
from frontrow.limits.stores.memory import MemoryStore
from frontrow.testing.clock import ManualClock
from tests.limits.backends import ALGORITHMS, S

COMPILER = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
MOST_BYTES = 80 if CompiledStore else 250  # per client, beside its name
KERNELS = pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "pure"])


def held(limiter: Limiter) -> int:
    store = limiter._store
    assert isinstance(store, MemoryStore | CompiledStore)
    return len(store)


@KERNELS
@pytest.mark.parametrize("now_us", [-1, 1.5, "now", True, 1 << 52, float("nan")])
def test_a_time_that_is_none_is_refused_clearly(now_us: Any, compiled: bool) -> None:
    limiter = Limiter("10/minute", compiled=compiled)
    for ask in (limiter.check, limiter.peek, limiter.refund, limiter.reserve):
        with pytest.raises(InvalidInput, match="now_us must be a whole number of microseconds since 1970"):
            ask("fan", 1, now_us)
    with pytest.raises(InvalidInput, match="now_us"):
        limiter.reset("fan", now_us)
    with pytest.raises(InvalidInput, match="now_us"):
        asyncio.run(_await(limiter.acheck("fan", 1, now_us)))
    with pytest.raises(InvalidInput, match="now_us"):
        limiter.reserve("fan", 2).settle(1, now_us)


async def _await(check: Any) -> Any:
    return await check


def test_the_same_options_do_for_memory_and_for_redis() -> None:
    """A prefix changes nothing in memory, so a development server needs no other configuration."""
    assert Limiter("1/minute", prefix="shop").check("fan").allowed
    with pytest.raises(ConfigError, match="prefix must be 1 to 64 letters"):
        Limiter("1/minute", prefix="sh op")


def test_the_compiled_kernel_was_built_here(not_checked: Callable[[str], None]) -> None:
    """The suite must test it; `make setup` builds it wherever there is a C compiler."""
    if CompiledStore is None:
        assert shutil.which(COMPILER) is None
        not_checked("the limiter's compiled kernel (there is no C compiler); the one in Python is")


@pytest.mark.parametrize("algorithm", ["fixed_window", "sliding_counter", "token_bucket"])
def test_l8_a_million_clients_take_constant_memory_each(algorithm: str) -> None:
    """L8 N6: 1,000,000 clients, at most 80 bytes each beside their names; more without a C compiler."""
    limiter = Limiter(Quota.parse("10/minute", algorithm=algorithm), clock=ManualClock())
    keys = [f"user:{n}" for n in range(1_000_000)]
    gc.collect()
    before = _rss_bytes()
    for key in keys:
        limiter.check(key)
    assert held(limiter) == 1_000_000
    assert (_rss_bytes() - before) / 1_000_000 <= MOST_BYTES
    assert limiter.check(keys[0]).remaining == 8
    assert limiter.check(keys[-1]).remaining == 8


def _rss_bytes() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096


def test_l8_the_log_takes_at_most_ten_bytes_a_remembered_request() -> None:
    limiter = Limiter(Quota.parse("1000/hour", algorithm="sliding_log"), clock=ManualClock())
    gc.collect()
    before = _rss_bytes()
    for n in range(1000):
        limiter.check(f"user:{n}", cost=1000)
    assert (_rss_bytes() - before) / 1_000_000 <= 10


@KERNELS
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_l8_idle_clients_leave_by_themselves_a_few_at_each_check(algorithm: str, compiled: bool) -> None:
    clock = ManualClock()
    quota = Quota.parse("10/10s", algorithm=algorithm)
    limiter = Limiter(quota, clock=clock, compiled=compiled)
    for n in range(2000):
        limiter.check(f"user:{n}")
    sizes = []
    for _ in range(4):
        clock.advance(us=quota.life_us)
        for _ in range(2000 // FREED_PER_CHECK + 20):
            limiter.check("awake")
            sizes.append(held(limiter))
    assert sizes[0] >= 2000
    assert sizes[-1] <= 2
    drops = [before - after for before, after in itertools.pairwise(sizes)]
    assert max(drops) <= FREED_PER_CHECK, "no check sweeps them all"


@KERNELS
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_state_that_still_matters_is_never_forgotten(algorithm: str, compiled: bool) -> None:
    """Generations turn while the key is asleep, but not before its state equals none."""
    clock = ManualClock()
    quota = Quota.parse("4/8s", algorithm=algorithm)
    limiter = Limiter(quota, clock=clock, compiled=compiled)
    for _ in range(50):
        limiter.check("other")
        clock.advance(0.7)
        assert limiter.check("fan", cost=4).allowed
        refusal = limiter.check("fan", cost=4)
        wait_us = refusal.retry_after_us
        clock.advance(us=wait_us - 1)
        limiter.check("other")
        assert not limiter.peek("fan", cost=4).allowed
        clock.advance(us=1)
        assert limiter.peek("fan", cost=4).allowed
        clock.advance(us=quota.life_us)


@KERNELS
def test_one_forward_jump_of_the_clock_forgets_nobody(compiled: bool) -> None:
    limiter = Limiter(Quota.parse("1/10s", algorithm="token_bucket"), compiled=compiled)
    start_us = 1_700_000_000_000_000
    assert limiter.check("fan", now_us=start_us).allowed
    assert limiter.check("someone else", now_us=start_us + 86_400 * S).allowed
    assert not limiter.check("fan", now_us=start_us + S).allowed


def capped(max_keys: int, compiled: bool, algorithm: str, clock: ManualClock | None = None) -> Limiter:
    return Limiter(
        Quota.parse("5/minute", algorithm=algorithm),
        store=f"memory://?max_keys={max_keys}",
        clock=clock or ManualClock(),
        compiled=compiled,
    )


@KERNELS
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_l8_at_the_cap_no_newcomer_is_refused_and_who_used_most_stays_known(algorithm: str, compiled: bool) -> None:
    """L8: the cap holds. A new client takes the place of one who has used little."""
    limiter = capped(1000, compiled, algorithm)
    heavy = [f"user:{n}" for n in range(20)]
    for key in heavy:
        assert limiter.check(key, cost=5).allowed
    assert all(limiter.check(f"new:{n}").allowed for n in range(3000))
    assert held(limiter) == 1000
    assert not any(limiter.check(key).allowed for key in heavy), "no heavy user was forgotten"


def test_at_the_cap_a_newcomer_is_judged_beside_few_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a compiler, each judgement costs more than a check."""
    judged, specified = 0, SPECIFICATION["sliding_counter"]

    def counted(*state: Any) -> Any:
        nonlocal judged
        judged += 1
        return specified(*state)

    monkeypatch.setitem(SPECIFICATION, "sliding_counter", counted)
    limiter = capped(1000, False, "sliding_counter")
    assert all(limiter.check(f"user:{n}").allowed for n in range(1000))
    assert judged == 0
    assert all(limiter.check(f"new:{n}").allowed for n in range(1000))
    assert judged <= 10_000, "ten per newcomer"


@KERNELS
@pytest.mark.parametrize("algorithm", ["sliding_log", "sliding_counter", "token_bucket", "leaky_queue"])
def test_at_the_cap_those_who_have_everything_back_are_forgotten_first(algorithm: str, compiled: bool) -> None:
    clock = ManualClock(1_700_000_040_000_000)  # a whole minute
    limiter = capped(400, compiled, algorithm, clock)
    for n in range(200):
        limiter.check(f"idle:{n}", cost=5)
    clock.advance(us=limiter.rules[0].quota.life_us - 5 * S)
    known = [f"known:{n}" for n in range(200)]
    for key in known:
        limiter.check(key, cost=2)
    clock.advance(5)
    assert all(limiter.check(f"new:{n}").allowed for n in range(100))
    assert held(limiter) == 400
    assert [limiter.peek(key).remaining for key in known] == [3] * 200


@KERNELS
def test_a_cap_of_one_key_still_serves_everybody(compiled: bool) -> None:
    limiter = capped(1, compiled, "sliding_log")
    assert all(limiter.check(f"fan:{n}").remaining == 4 for n in range(50))
    assert held(limiter) == 1


@KERNELS
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_keys_stay_found_while_others_are_forgotten_and_move(algorithm: str, compiled: bool) -> None:
    """Removing a key from the table must not hide those that were stored behind it."""
    clock = ManualClock()
    limiter = Limiter(Quota.parse("9/minute", algorithm=algorithm), clock=clock, compiled=compiled)
    for n in range(500):
        limiter.check(f"user:{n}", cost=4)
    clock.advance(us=limiter.rules[0].quota.life_us)  # the next check turns a generation
    for n in range(0, 500, 2):
        limiter.check(f"user:{n}", cost=4)  # moves to the young generation
    for n in range(0, 500, 2):
        assert limiter.peek(f"user:{n}").remaining == 5
    assert held(limiter) == 500


@KERNELS
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_look_ahead_does_not_age_the_other_clients(algorithm: str, compiled: bool) -> None:
    limiter = Limiter(Quota.parse("5/minute", algorithm=algorithm), compiled=compiled)
    now_us = 1_700_000_000_000_000
    assert limiter.check("fan", cost=5, now_us=now_us).allowed
    for days in (1, 2, 3, 4):
        assert limiter.peek("someone", now_us=now_us + days * 86_400 * S).remaining == 5
    assert not limiter.check("fan", now_us=now_us).allowed


@KERNELS
def test_a_key_of_a_class_of_its_own_is_counted_by_its_text(compiled: bool) -> None:
    class Strange(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            return False

        def __hash__(self) -> int:
            return random.getrandbits(32)

    limiter = Limiter("2/minute", clock=ManualClock(), compiled=compiled)
    assert [limiter.check(key).remaining for key in (Strange("fan"), "fan", Strange("fan"))] == [1, 0, 0]


@KERNELS
def test_nothing_leaks_when_a_limiter_is_thrown_away(compiled: bool) -> None:
    def use() -> None:
        limiter = Limiter(Quota.parse("9/minute", algorithm="sliding_log"), compiled=compiled)
        for n in range(3000):
            limiter.check(f"user:{n}", cost=3)

    for _ in range(20):
        use()
    gc.collect()
    before = _rss_bytes()
    for _ in range(40):
        use()
    gc.collect()
    assert _rss_bytes() - before < 4_000_000, "40 limiters of 3,000 logs each would be 15 MB"
