"""Clashes between writers on PostgreSQL (N4): deadlocks and races are the ledger's to solve, not its callers'."""

import asyncio

import asyncpg
import psycopg

from frontrow.boxoffice.adapters.ledger.audit_verification import verify
from frontrow.boxoffice.holds.model.bookings import BookingState
from tests.boxoffice.adapters.ledger.races import racing
from tests.boxoffice.conftest import opened
from tests.contracts.ledger_contract import Bench, outcomes
from tests.support.eventually import eventually


async def test_a_deadlock_with_another_transaction_is_run_again(postgres_ledger_url: str) -> None:
    """Somebody locks booking two and then wants booking one, while a batch has one and wants two."""
    with psycopg.connect(postgres_ledger_url, autocommit=True) as admin:
        name = postgres_ledger_url.rpartition("/")[2]
        admin.execute(f"ALTER DATABASE \"{name}\" SET deadlock_timeout = '50ms'")  # type: ignore[arg-type]
    stranger = await asyncpg.connect(postgres_ledger_url)
    try:
        async with opened(postgres_ledger_url, writers=1) as ledger:
            bench = Bench(ledger, ledger)
            one, two = await bench.paid(1), await bench.paid(2)
            lock = "SELECT 1 FROM bookings WHERE id = $1 FOR UPDATE"
            for _ in range(3):  # whom PostgreSQL sacrifices is not ours to choose
                await stranger.execute("BEGIN")
                await stranger.execute(lock, two.booking_id)
                moves = [
                    asyncio.create_task(ledger.extend_hold(h.booking_id, h.fence, bench.now_us, h.expires_at_us + 1))
                    for h in (one, two)
                ]
                await until_blocked(postgres_ledger_url)
                await asyncio.gather(stranger.execute(lock, one.booking_id), return_exceptions=True)
                await stranger.execute("ROLLBACK")
                assert {move.state for move in await asyncio.gather(*moves)} == {BookingState.PAYING}
    finally:
        await stranger.close()


async def until_blocked(url: str) -> None:
    """Wait until some connection of this database waits for a lock."""
    connection = await asyncpg.connect(url)
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    try:
        await eventually(lambda: connection.fetchval(query))
    finally:
        await connection.close()


async def test_of_two_holds_that_change_to_overlapping_seats_one_stays_as_it_was(postgres_ledger_url: str) -> None:
    """Both see seat 3 free. The one that does not get it keeps none of the others that it took on the way."""
    async with racing(postgres_ledger_url) as bench:
        ada, bob = await bench.hold(10, fan="ada"), await bench.hold(11, fan="bob")
        wishes = [bench.wish(10, 2, 3, fan="ada", booking=ada.booking_id)]
        wishes.append(bench.wish(11, 3, 4, fan="bob", booking=bob.booking_id))
        won, refused = await bench.won_and_refused(
            "seats_in_the_way",
            lambda: bench.one.change_hold(wishes[0], ada.fence),
            lambda: bench.two.change_hold(wishes[1], bob.fence),
        )
        assert (len(won), [error.seats for error in refused]) == (1, [(3,)])
        assert len(await bench.seats()) == 4
        assert (await verify(bench.one.store))[0] == []


async def test_writers_racing_for_overlapping_seats_never_split_or_lose_a_batch(postgres_ledger_url: str) -> None:
    """Three servers, 600 wishes for 200 seats in pairs: the hopeful way fails often, every answer is still right."""
    async with opened(postgres_ledger_url) as a, opened(postgres_ledger_url) as b, opened(postgres_ledger_url) as c:
        ledgers = (a, b, c)
        bench = Bench(a, b)
        calls = [ledgers[n % 3].place_hold(bench.wish((7 * n) % 200, (7 * n + 1) % 200)) for n in range(600)]
        won, refused = await outcomes(calls)
        seats = [seat for hold in won for seat in hold.seats]
        assert len(seats) == len(set(seats))
        assert {error.code for error in refused} == {"seats_taken"}
        taken = set(seats)
        assert all(set(error.seats) <= taken for error in refused)  # type: ignore[attr-defined]
        assert sorted(await bench.seats()) == sorted(seats)
        free = set(range(200)) - taken
        wanted = [{(7 * n) % 200, (7 * n + 1) % 200} for n in range(600)]
        assert not any(pair <= free for pair in wanted), "two free seats that somebody asked for together"
        assert sum(ledger.store.batches_split for ledger in ledgers) == 0  # type: ignore[attr-defined]
