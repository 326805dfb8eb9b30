"""Expiry (B14, N5, F4): by predicate and by sweeping, any number of workers, clocks off by an hour, never early."""

import asyncio
from collections.abc import Sequence

from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.facts.model import HoldExpired
from frontrow.boxoffice.holds import expiry
from frontrow.boxoffice.holds.expiry import LedgerClock, Sweeper
from frontrow.boxoffice.holds.model.holds import ExpiredHold
from frontrow.core.errors import Unavailable
from frontrow.testing.clock import ManualClock
from tests.boxoffice.conftest import opened
from tests.contracts.ledger_contract import TEN_MINUTES_US, Bench, outcomes
from tests.support.eventually import eventually

HOUR_US = 3_600_000_000


async def test_sweepers_of_many_workers_end_each_hold_once(ledger_url: str) -> None:
    """B14: 50 sweepers over two servers, 300 dead and 50 live holds."""
    async with opened(ledger_url) as one, opened(ledger_url) as two:
        bench = Bench(one, two)
        wishes = [bench.wish(n, expires_at_us=bench.now_us + (1 if n < 300 else HOUR_US)) for n in range(350)]
        await outcomes([one.place_hold(wish) for wish in wishes])
        bench.clock.advance(us=1)
        heard: list[ExpiredHold] = []

        async def told(ended: Sequence[ExpiredHold]) -> None:
            heard.extend(ended)

        sweepers = [Sweeper(bench.either(n), bench.clock, on_expired=told, batch=7) for n in range(50)]
        counts = await asyncio.gather(*[sweeper.sweep() for sweeper in sweepers])
        counts += await asyncio.gather(*[sweeper.sweep() for sweeper in sweepers])  # what others had in hand
        assert sum(counts) == len(heard) == 300
        assert {hold.booking_id for hold in heard} == {wish.booking_id for wish in wishes[:300]}
        facts = [fact for fact in await bench.facts() if isinstance(fact, HoldExpired)]
        assert sorted(fact.booking_id for fact in facts) == sorted(wish.booking_id for wish in wishes[:300])
        assert len(await bench.seats(0)) == 50


async def test_a_sweep_is_bounded_and_the_next_one_goes_on(ledger: SqlLedger, monkeypatch: object) -> None:
    bench = Bench(ledger, ledger)
    await outcomes([ledger.place_hold(bench.wish(n, expires_at_us=bench.now_us + 1)) for n in range(25)])
    bench.clock.advance(us=1)
    monkeypatch.setattr(expiry, "BATCHES_PER_SWEEP", 2)  # type: ignore[attr-defined]
    sweeper = Sweeper(ledger, bench.clock, batch=10)
    assert [await sweeper.sweep() for _ in range(3)] == [20, 5, 0]


async def test_with_clocks_an_hour_off_nothing_ends_early_and_nothing_is_kept(ledger: SqlLedger) -> None:
    """B14: servers at -1 h, 0 and +1 h agree to within the time of a round trip, because the ledger's time counts."""
    bench = Bench(ledger, ledger)

    class Store:
        """The ledger with a time that the test moves."""

        expire_due = staticmethod(ledger.expire_due)

        async def time_us(self) -> int:
            return bench.now_us

    locals_ = [ManualClock(bench.now_us + off_us) for off_us in (-HOUR_US, 0, HOUR_US)]
    workers = [Sweeper(Store(), await LedgerClock.measure(Store(), local)) for local in locals_]

    def advance(us: int) -> None:
        for clock in (bench.clock, *locals_):
            clock.advance(us=us)

    hold = await bench.hold(1)
    advance(TEN_MINUTES_US - 1)
    assert [await worker.sweep() for worker in workers] == [0, 0, 0]
    assert list(await bench.seats()) == [1]
    advance(1)
    assert sum([await worker.sweep() for worker in workers[::-1]]) == 1
    (fact,) = [fact for fact in await bench.facts() if isinstance(fact, HoldExpired)]
    assert (fact.booking_id, fact.at_us) == (hold.booking_id, hold.expires_at_us)


async def test_the_measured_clock_is_never_ahead_of_the_ledger() -> None:
    local = ManualClock(5 * HOUR_US)
    answers = iter([10_000, 10_300, 10_500, 10_900, 11_000])
    delays = iter([300, 100, 250, 400, 200])

    class Slow:
        async def time_us(self) -> int:
            answer = next(answers)
            local.advance(us=next(delays))
            return answer

        async def expire_due(self, now_us: int, limit: int) -> list[ExpiredHold]:
            raise AssertionError

    clock = await LedgerClock.measure(Slow(), local)
    # The quickest answer said 10,300 when at most 10,300 + 100 us of the ledger's time had passed.
    assert clock.offset_us == 10_300 - (5 * HOUR_US + 400)


async def test_the_real_ledgers_time_is_what_the_clock_tells(ledger: SqlLedger) -> None:
    local = ManualClock(0)
    clock = await LedgerClock.measure(ledger, local)
    before_us = clock()
    assert 0 <= await ledger.time_us() - before_us < 60_000_000


async def test_an_expired_seat_is_claimable_with_no_sweeper_at_all(ledger: SqlLedger) -> None:
    """B14, N5: correct even when every notification and every sweep is lost."""
    bench = Bench(ledger, ledger)
    for _ in range(5):
        await bench.hold(1, 2)
        bench.clock.advance(us=TEN_MINUTES_US)
    assert await bench.seats() == {}


async def test_the_running_sweeper_wakes_on_a_hint_and_survives_a_silent_ledger(ledger: SqlLedger) -> None:
    bench = Bench(ledger, ledger)
    silent = 3

    class Flaky:
        time_us = staticmethod(ledger.time_us)

        async def expire_due(self, now_us: int, limit: int) -> list[ExpiredHold]:
            nonlocal silent
            if silent:
                silent -= 1
                raise Unavailable("no answer")
            return await ledger.expire_due(now_us, limit)

    await bench.hold(1)
    bench.clock.advance(us=TEN_MINUTES_US)
    sweeper = Sweeper(Flaky(), bench.clock, every_s=0.001)
    task = asyncio.create_task(sweeper.run())
    await eventually(lambda: sweeper.ended == 1)
    assert sweeper.failures == 3
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
