"""B7: idempotency keys of requests are forgotten after a while, in bounded steps; a payment keeps its own for ever."""

from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.holds.model.bookings import Move
from frontrow.boxoffice.jobs.background_jobs import KEEP_KEYS_S
from frontrow.core.clock import US_PER_S
from tests.contracts.ledger_contract import Bench
from tests.contracts.payment_book import first

KEYS = 25


async def keys(bench: Bench) -> int:
    return len(await bench.one.store.read(Query("keys_page", params=("", "", 1_000))))


async def test_old_keys_go_a_page_at_a_time_and_young_ones_stay(bench: Bench) -> None:
    began_us, was = bench.now_us, await keys(bench)
    wishes = [bench.wish(n, fan=f"old{n}", idempotency_key="k", request_hash="h") for n in range(KEYS)]
    for wish in wishes:
        await bench.one.place_hold(wish)
    bench.clock.advance(KEEP_KEYS_S)
    for n in range(KEYS):
        await bench.hold(100 + n, fan=f"young{n}", idempotency_key="k", request_hash="h")
    before_us, after = bench.now_us - KEEP_KEYS_S * US_PER_S, ("", "")
    assert before_us == began_us
    await bench.one.purge_keys(before_us, 1_000)
    assert await keys(bench) == was + 2 * KEYS, "exactly at its time a key is still known"
    steps = 0
    for _ in range(100):
        had = await keys(bench)
        after = await bench.one.purge_keys(before_us + 1, 7, after)
        steps += 1
        assert had - await keys(bench) <= 7, "bounded"
        if after == ("", ""):
            break
    assert steps >= 2 * KEYS // 7
    assert await keys(bench) == was + KEYS
    again = await bench.one.place_hold(bench.wish(100, fan="young0", idempotency_key="k", request_hash="h"))
    assert again.seats == (100,), "a young key still answers as before"


async def test_the_keys_of_payments_are_kept_as_long_as_the_ledger(bench: Bench) -> None:
    hold = await bench.hold(1, amount_minor=4500, idempotency_key="k", request_hash="h")
    payment = first(bench, hold)
    await bench.one.payments.save_payment(payment, now_us=bench.now_us, move=Move.BEGIN_PAYMENT, fence=hold.fence)
    bench.clock.advance(10 * 365 * 86_400)
    await bench.one.purge_keys(bench.now_us, 1_000)
    kept = await bench.one.payments.payment(payment.id)
    assert kept is not None
    assert kept.key("create") == f"{hold.booking_id}:create:1"
