"""Each lock of the ledger against the race that it is for: two servers on PostgreSQL cross where it matters (N4).

`tests/mutants/corpus/locks.py` takes every one of these locks away in turn, and the test of its race must fail then.
"""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from alembic.runtime.migration import MigrationContext
from msgspec.structs import replace

from frontrow.boxoffice.adapters.ledger import archives
from frontrow.boxoffice.adapters.ledger.audit_verification import verify
from frontrow.boxoffice.adapters.ledger.engine.sqlite import SqliteStore
from frontrow.boxoffice.adapters.ledger.ledger_url import sqlite_path
from frontrow.boxoffice.adapters.ledger.messages.dead_letters import DeadLetterNotFound
from frontrow.boxoffice.adapters.ledger.migrate import LOCK_KEY, migrate
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.checkout.model.invoices import InvoiceDocument
from frontrow.boxoffice.checkout.model.receipts import Seller
from frontrow.boxoffice.events.model.event_changes import Change, Editor
from frontrow.boxoffice.events.model.event_search import EventSearch
from frontrow.boxoffice.facts.model import EventSoldOut
from frontrow.boxoffice.holds.model.bookings import BookingState, Move
from frontrow.boxoffice.holds.model.holds import CapExceeded
from frontrow.boxoffice.messages.delivery_retries import apply_outcome
from frontrow.boxoffice.messages.model.buyer_messages import (
    MAX_PER_DAY,
    Audience,
    AudienceScope,
    BuyerMessage,
    BuyerMessageState,
)
from frontrow.boxoffice.messages.model.messages import Contact, NewDelivery, Outcome
from frontrow.boxoffice.payments.model.payments import PaymentChanged, PaymentState
from frontrow.boxoffice.people.model.people import LastOwner, Organiser, Staff
from frontrow.boxoffice.people.model.roles import Role
from frontrow.boxoffice.presale.model import Purpose, Signup, SignupState
from frontrow.boxoffice.pricing.model.booking_choices import Reprice, Use
from frontrow.boxoffice.pricing.model.discounts import DiscountRefused
from frontrow.boxoffice.seats.model.venues import Venue
from frontrow.boxoffice.tickets.model.tickets import TicketScanned, TicketState
from frontrow.shared.money import Money
from frontrow.waitingroom.audit import postgres as room_audit
from frontrow.waitingroom.console import postgres_book as console_book
from frontrow.waitingroom.ports import CodeRow
from tests.boxoffice.adapters.ledger.races import RaceBench, racing
from tests.boxoffice.shop import shop_event
from tests.boxoffice.waiting import small_plan
from tests.contracts.ledger_contract import Bench
from tests.contracts.message_book import put
from tests.contracts.payment_book import begun, owed, scan_of, sold
from tests.support.eventually import eventually

ADA = Editor("stf_ada", "org_hall")
MINUTE_US = 60_000_000


@pytest.fixture
async def bench(postgres_ledger_url: str) -> AsyncIterator[RaceBench]:
    async with racing(postgres_ledger_url) as one:
        yield one


async def test_a_code_is_not_used_more_often_than_it_may_be(bench: RaceBench) -> None:
    """`lock_use_counters`: 36 of 40 races of two servers over-used a code without it."""
    code = Use(f"code:{bench.event}:TEN", 1, 2, "discount", "TEN")
    holds = [await bench.hold(seat, amount_minor=5_000, prices_minor=(5_000,)) for seat in range(3)]
    asks = [
        Reprice(one.booking_id, one.fence, bench.now_us, one.seats, (4_500,), 4_500, "[]", (code,)) for one in holds
    ]
    await bench.one.reprice(asks[0])
    won, refused = await bench.won_and_refused(
        "lock_use_counters", lambda: bench.one.reprice(asks[1]), lambda: bench.two.reprice(asks[2])
    )
    assert (len(won), [type(one) for one in refused]) == (1, [DiscountRefused])
    assert await bench.one.live_uses([code.counter], bench.now_us) == {code.counter: 2}


async def test_two_servers_on_one_file_write_one_after_the_other(
    sqlite_ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite: a transaction that locked the file only when it writes would fail if another one wrote meanwhile."""
    run_query, second_ended = SqliteStore._run_query, threading.Event()
    async with contextlib.AsyncExitStack() as stack:
        stores = [SqliteStore(sqlite_path(sqlite_ledger_url)) for _ in range(2)]
        one, two = (SqlLedger(store) for store in stores)
        stack.push_async_callback(one.aclose)
        stack.push_async_callback(two.aclose)
        bench = Bench(one, two)
        hold, payment = await sold(bench, 1, 2)
        refunds = [owed(bench, payment, number, number) for number in (1, 2)]

        def cross(self: SqliteStore, connection: Any, query: Any, **named: Any) -> Any:
            rows = run_query(self, connection, query, **named)
            if self is stores[0] and query.name == "lock_bookings":
                second_ended.wait(0.5)  # the second waits for the file, so this ends by the time
            return rows

        monkeypatch.setattr(SqliteStore, "_run_query", cross)

        async def second() -> Any:
            given = await two.payments.ask_refund(refunds[1], fence=hold.fence, now_us=bench.now_us)
            second_ended.set()
            return given

        first = one.payments.ask_refund(refunds[0], fence=hold.fence, now_us=bench.now_us)
        assert await asyncio.gather(first, second()) == refunds


async def test_two_invoices_at_once_get_two_numbers(bench: RaceBench) -> None:
    """`lock_invoice_numbers`: 29 of 60 invoices failed without it."""
    seller = Seller("org_a", "Hall")
    total = Money(1, "EUR")
    document = InvoiceDocument("", seller, "Ada", "bkg_1", "Aurora", 0, "UTC", (), total, 0, 0)
    first = await bench.one.invoices.issue("org_a", "bkg_0", "", document, bench.now_us)
    issued, refused = await bench.won_and_refused(
        "lock_invoice_numbers",
        lambda: bench.one.invoices.issue("org_a", "bkg_1", "", document, bench.now_us),
        lambda: bench.two.invoices.issue("org_a", "bkg_2", "", document, bench.now_us),
    )
    assert refused == []
    assert sorted(one.number for one in (first, *issued)) == [1, 2, 3]


async def test_a_fan_gets_no_more_seats_than_the_cap(bench: RaceBench) -> None:
    """The advisory lock of a fan: both requests would count the same seats."""
    won, refused = await bench.won_and_refused(
        "active_counts",
        lambda: bench.one.place_hold(bench.wish(1, 2, fan="greedy", cap=3)),
        lambda: bench.two.place_hold(bench.wish(3, 4, fan="greedy", cap=3)),
    )
    assert (len(won), [type(one) for one in refused]) == (1, [CapExceeded])
    assert len(await bench.seats()) == 2


async def test_two_refunds_of_one_booking_count_one_after_the_other(bench: RaceBench) -> None:
    """`lock_bookings`: each would leave the seat that the other one frees."""
    hold, payment = await sold(bench, 1, 2)
    first, second = (owed(bench, payment, number, seat) for number, seat in ((1, 1), (2, 2)))
    given, refused = await bench.won_and_refused(
        "lock_bookings",
        lambda: bench.one.payments.ask_refund(first, fence=hold.fence, now_us=bench.now_us),
        lambda: bench.two.payments.ask_refund(second, fence=hold.fence, now_us=bench.now_us),
    )
    assert (given, refused) == ([first, second], [])
    booking = await bench.one.booking(hold.booking_id)
    assert booking is not None
    assert booking.state is BookingState.REFUNDED
    assert (await verify(bench.one.store))[0] == []


async def test_a_sale_is_not_written_beside_a_payment_that_moved_on(bench: RaceBench) -> None:
    """`lock_payments`: the booking would be sold, and its payment would not be the one that takes the money."""
    hold, payment = await begun(bench, 1)
    stale = payment.moved(PaymentState.OPEN, bench.now_us, ref="stale")
    with contextlib.suppress(PaymentChanged):  # from now on this server reads before it writes
        await bench.one.payments.save_payment(replace(stale, version=9), now_us=bench.now_us)
    taking = replace(payment, state=PaymentState.CAPTURING, ref="pi_1", version=2, changed_at_us=bench.now_us)
    opened = payment.moved(PaymentState.OPEN, bench.now_us, ref="pi_2")
    save_one, save_two = bench.one.payments.save_payment, bench.two.payments.save_payment
    won, refused = await bench.won_and_refused(
        "lock_payments",
        lambda: save_one(taking, now_us=bench.now_us, move=Move.CONFIRM, fence=hold.fence),
        lambda: save_two(opened, now_us=bench.now_us),
    )
    assert (len(won), [type(one) for one in refused]) == (1, [PaymentChanged])
    booking, kept = await bench.one.booking(hold.booking_id), await bench.one.payments.payment(payment.id)
    assert booking is not None
    assert (booking.state, kept) == (BookingState.CONFIRMED, taking)


async def test_a_ticket_is_let_in_or_refunded_and_never_both(bench: RaceBench) -> None:
    """`lock_tickets`."""
    hold, payment = await sold(bench, 1)
    refund = owed(bench, payment, 1, 1)
    await bench.race(
        "lock_tickets",
        lambda: bench.one.payments.ask_refund(refund, fence=hold.fence, now_us=bench.now_us),
        lambda: bench.two.organiser.admit(scan_of(bench, hold, 1)),
    )
    (ticket,) = await bench.one.tickets.tickets_of(hold.booking_id)
    assert (ticket.state, ticket.scanned_at_us) == (TicketState.REVOKED, None)
    assert await bench.one.payments.refunds_of(hold.booking_id) == [refund]
    other, paid = await sold(bench, 2)
    await bench.one.organiser.admit(scan_of(bench, other, 2))
    with pytest.raises(TicketScanned):
        await bench.two.payments.ask_refund(owed(bench, paid, 1, 2), fence=other.fence, now_us=bench.now_us)


async def test_two_owners_cannot_remove_each_other(bench: RaceBench) -> None:
    """`lock_organiser`."""
    people = bench.one.people
    await people.put_organiser(Organiser("org_a", "Hall", bench.now_us))
    for name in "ab":
        await people.add_staff(Staff(f"stf_{name}", "org_a", f"{name}@x.org", name, Role.OWNER, "hash"))
    won, refused = await bench.won_and_refused(
        "owners_of",
        lambda: bench.one.people.remove_staff("org_a", "stf_a", "stf_b", bench.now_us),
        lambda: bench.two.people.remove_staff("org_a", "stf_b", "stf_a", bench.now_us),
    )
    assert (len(won), [type(one) for one in refused]) == (1, [LastOwner])
    assert len(await people.staff_of("org_a")) == 1


async def test_an_event_is_found_by_the_name_its_venue_has_now(bench: RaceBench) -> None:
    """`locked_venue`: the event would keep the words of the old name."""
    venue = Venue("ven_1", "Old Hall", "0" * 64, "Vienna", "AT", "Europe/Vienna")
    await bench.one.catalogue.put_venue(venue, bench.now_us)
    renamed = Venue("ven_1", "New Arena", "0" * 64, "Vienna", "AT", "Europe/Vienna")
    event = shop_event(id=bench.event, venue_id="ven_1")
    await bench.one.catalogue.put_event(event, bench.now_us)
    await bench.race(
        "locked_venue",
        lambda: bench.one.catalogue.put_event(event, bench.now_us + 1),
        lambda: bench.two.catalogue.put_venue(renamed, bench.now_us + 1),
    )
    by_name = {name: len((await bench.one.catalogue.find_events(EventSearch(name)))[0]) for name in ("old", "arena")}
    assert by_name == {"old": 0, "arena": 1}


async def test_an_event_sells_out_once(bench: RaceBench) -> None:
    """The counted seats are written first, so the second server waits there. Everybody is told once."""
    await bench.one.catalogue.put_plan("hash", small_plan(), "{}", bench.now_us)
    event = shop_event(id=bench.event, plan_hash="hash")
    await bench.one.catalogue.put_event(event, bench.now_us)
    hold = await bench.paid(*range(small_plan().size))
    await bench.one.confirm(hold.booking_id, hold.fence, bench.now_us)
    await bench.facts()
    await bench.race(
        "locked_event",
        lambda: bench.one.catalogue.update_event_status(bench.event, bench.now_us),
        lambda: bench.two.catalogue.update_event_status(bench.event, bench.now_us),
    )
    assert [type(one) for one in await bench.facts()] == [EventSoldOut]


async def test_two_workers_write_to_different_buyers(bench: RaceBench) -> None:
    """`lock_buyer_message`: both would write to the first one."""
    for seat in (1, 2):
        hold, _ = await sold(bench, seat)
        contact = Contact(hold.fan, f"{seat}@x.org")
        await bench.one.messages.put_contact(contact, bench.now_us)
    await bench.one.catalogue.put_event(shop_event(id=bench.event), bench.now_us)
    message = a_message(bench, 1, bench.now_us + 1)
    await bench.one.buyer_messages.send(message, Change(ADA, "write_to_buyers", bench.event, bench.now_us))
    scope = AudienceScope(bench.event, "", 0, 100)

    def next_buyer(number: int) -> Awaitable[Any]:
        book = bench.either(number).buyer_messages
        return book.queue_next(
            message.id,
            scope,
            lambda holder: [NewDelivery("buyer_message", message.id, f"{message.id} {holder.address}", "")],
            1,
            bench.now_us,
        )

    assert await bench.race("lock_buyer_message", lambda: next_buyer(1), lambda: next_buyer(2)) == [1, 1]
    assert (await bench.one.buyer_messages.mails([message.id])).total == 2


def a_message(bench: RaceBench, number: int, at_us: int) -> BuyerMessage:
    made = (f"msg_{bench.event}_{number}", bench.event, "stf_ada", Audience(), "Doors", "Open at 7.")
    return BuyerMessage(*made, BuyerMessageState.SENDING, at_us, recipients=2)


async def test_an_event_sends_no_more_messages_per_day_than_it_may(bench: RaceBench) -> None:
    """`locked_event`: both would count the same messages."""
    await bench.one.catalogue.put_event(shop_event(id=bench.event), bench.now_us)
    change = Change(ADA, "write_to_buyers", bench.event, bench.now_us)
    for number in range(MAX_PER_DAY - 1):
        await bench.one.buyer_messages.send(a_message(bench, number, bench.now_us), change)
    won, refused = await bench.won_and_refused(
        "messages_sent_since",
        lambda: bench.one.buyer_messages.send(a_message(bench, 10, bench.now_us), change),
        lambda: bench.two.buyer_messages.send(a_message(bench, 11, bench.now_us), change),
    )
    assert (len(won), len(refused)) == (1, 1)


async def test_a_dead_letter_is_tried_again_by_one(bench: RaceBench) -> None:
    """`dead_letter_by_number`."""
    kind = f"k {bench.event}"
    await put(bench, kind, ("lane", f"{kind}:1"))
    (one,) = await bench.one.messages.claim_deliveries(kind, bench.now_us, 1_000, 10, 10)
    given_up = apply_outcome(one, Outcome(False, final=True, reason="410"), bench.now_us, 60)
    await bench.one.messages.save_delivery_results([given_up], bench.now_us)
    won, refused = await bench.won_and_refused(
        "dead_letter_by_number",
        lambda: bench.one.dead_letters.retry(one.number, bench.now_us),
        lambda: bench.two.dead_letters.retry(one.number, bench.now_us),
    )
    assert (len(won), [type(one) for one in refused]) == (1, [DeadLetterNotFound])


# What workers lease, and how: the statement that finds it, what makes it due, and a lease by each server. A lease
# answers with the names of what it got.
async def due_payments(bench: RaceBench) -> Callable[[int], Awaitable[list[str]]]:
    for seat in range(3):
        await begun(bench, seat)

    async def lease(number: int) -> list[str]:
        at_us = bench.now_us + MINUTE_US
        return [one.id for one in await bench.either(number).payments.claim_payments(at_us, at_us + MINUTE_US, 10)]

    return lease


async def due_refunds(bench: RaceBench) -> Callable[[int], Awaitable[list[str]]]:
    hold, payment = await sold(bench, 1)
    await bench.one.payments.ask_refund(owed(bench, payment, 1, 1), fence=hold.fence, now_us=bench.now_us)

    async def lease(number: int) -> list[str]:
        until_us = bench.now_us + MINUTE_US
        return [one.id for one in await bench.either(number).payments.claim_refunds(bench.now_us, until_us, 10)]

    return lease


async def due_facts(bench: RaceBench) -> Callable[[int], Awaitable[list[str]]]:
    await bench.hold(1)

    async def lease(number: int) -> list[str]:
        leased = await bench.either(number).claim_facts(bench.now_us, MINUTE_US, 10)
        return [str(one.number) for one in leased]

    return lease


async def due_deliveries(bench: RaceBench) -> Callable[[int], Awaitable[list[str]]]:
    kind = f"k {bench.event}"
    await put(bench, kind, ("lane", f"{kind}:1"))

    async def lease(number: int) -> list[str]:
        leased = await bench.either(number).messages.claim_deliveries(kind, bench.now_us, 1_000, 10, 10)
        return [one.dedupe for one in leased]

    return lease


async def due_cancellations(bench: RaceBench) -> Callable[[int], Awaitable[list[str]]]:
    await bench.one.catalogue.put_event(shop_event(id=bench.event), bench.now_us)
    await bench.one.organiser.begin_cancellation(Change(ADA, "cancel_event", bench.event, bench.now_us))

    async def lease(number: int) -> list[str]:
        until_us = bench.now_us + MINUTE_US
        return [one[0] for one in await bench.either(number).organiser.claim_cancellations(bench.now_us, until_us, 10)]

    return lease


async def put_off_payments(bench: RaceBench) -> Callable[[int], Awaitable[list[str]]]:
    _, payment = await begun(bench, 1)
    late = replace(payment.retry_later(bench.now_us, answered=False), version=2)
    await bench.one.payments.save_payment(late, now_us=bench.now_us)

    async def wake(number: int) -> list[str]:
        return ["woken"] * await bench.either(number).payments.wake_payments(bench.now_us, 10)

    return wake


async def waiting_notices(bench: RaceBench) -> Callable[[int], Awaitable[list[str]]]:
    signup = Signup("sgn_1", bench.event, Purpose.NOTICE, "a@x.org", "en", SignupState.CONFIRMED)
    await bench.one.signups.save_signup(replace(signup, created_at_us=bench.now_us), None)

    async def send(number: int) -> list[str]:
        def mail(one: Signup) -> NewDelivery:
            return NewDelivery("signup", "lane", f"{one.id} by {number}", "")

        return ["sent"] * await bench.either(number).signups.send_notices(bench.event, mail, 10, bench.now_us)

    return send


LEASES = (
    due_payments,
    due_refunds,
    due_facts,
    due_deliveries,
    due_cancellations,
    put_off_payments,
    waiting_notices,
)


@pytest.mark.parametrize("due", LEASES, ids=lambda due: due.__name__)
async def test_work_is_leased_to_one_worker(due: Any, bench: RaceBench) -> None:
    """`:skip_locked`: a worker leaves out what another one is just taking, and does not wait for it."""
    lease = await due(bench)
    first, second = await bench.race(due.__name__, lambda: lease(1), lambda: lease(2))
    assert first, "the first worker gets it"
    assert second == [], "and the second one nothing"


async def test_a_booking_that_changes_while_it_is_archived_is_not_lost(
    bench: RaceBench, postgres_ledger_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """`archives.py`: between comparing the rows with the file and deleting them nobody can change one."""
    hold, _ = await sold(bench, 1)
    tried: list[str] = []
    read = archives._with_dependants

    async def read_and_meet(database: Any, bookings: Any) -> Any:
        found = await read(database, bookings)
        other = await asyncpg.connect(postgres_ledger_url)
        try:
            await other.execute("SELECT 1 FROM bookings WHERE id = $1 FOR UPDATE NOWAIT", hold.booking_id)
            tried.append("changed")
        except asyncpg.LockNotAvailableError:
            tried.append("refused")
        finally:
            await other.close()
        return found

    async with archives._connected(postgres_ledger_url) as database:
        step = {"bookings": await database.fetch("SELECT * FROM bookings WHERE id = $1", hold.booking_id)}
        step = await read(database, step["bookings"])
        monkeypatch.setattr(archives, "_with_dependants", read_and_meet)
        async with database.transaction():
            await archives._delete(database, step, tmp_path / "event.jsonl")
    assert tried == ["refused"]


@contextlib.asynccontextmanager
async def locked(url: str, key: int) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    """Somebody else has the advisory lock. Yields a connection that sees who waits."""
    other = await asyncpg.connect(url)
    try:
        await other.execute("SELECT pg_advisory_lock($1)", key)
        yield other
    finally:
        await other.close()


async def waits_for_lock(watch: "asyncpg.Connection[asyncpg.Record]", done: Callable[[], bool]) -> bool:
    """Whether somebody waits for an advisory lock before the work is done."""
    query = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"

    async def seen() -> str:
        return "waits" if await watch.fetchval(query) else "done" if done() else ""

    return await eventually(seen) == "waits"


async def test_servers_migrate_one_after_the_other(postgres_url: str) -> None:
    """The advisory lock of `migrate.py`."""
    async with locked(postgres_url, LOCK_KEY) as other:
        migrating = asyncio.ensure_future(asyncio.to_thread(migrate, postgres_url))
        waited = await waits_for_lock(other, migrating.done)
    await migrating
    assert waited


def test_a_migration_locks_the_file_before_it_reads_the_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite: what another server migrates meanwhile would otherwise be migrated again."""
    read_heads, file = MigrationContext.get_current_heads, tmp_path / "new.db"
    refused: list[str] = []

    def write_beside(self: MigrationContext) -> tuple[str, ...]:
        heads = read_heads(self)
        with contextlib.closing(sqlite3.connect(file, timeout=0)) as other:
            try:
                other.execute("BEGIN IMMEDIATE")  # a write alone would also be refused because of the read
            except sqlite3.OperationalError as error:
                refused.append(str(error))
            else:
                refused.append("")
        return heads

    monkeypatch.setattr(MigrationContext, "get_current_heads", write_beside)
    migrate(f"sqlite:///{file}")
    assert set(refused) == {"database is locked"}


async def test_rooms_make_the_tables_of_their_audit_one_after_the_other(postgres_url: str) -> None:
    """The advisory lock of the waiting room's audit."""
    audit = room_audit.open_postgres_audit(postgres_url, timeout_s=20)
    async with locked(postgres_url, room_audit.SCHEMA_LOCK) as other:
        writing = asyncio.ensure_future(audit.append("evt_1", [CodeRow(1, 1)]))
        waited = await waits_for_lock(other, writing.done)
    await writing
    assert waited
    await audit.aclose()


async def test_consoles_make_their_tables_one_after_the_other(postgres_url: str) -> None:
    """The advisory lock of the waiting room's console."""
    book = console_book.open_postgres_book(postgres_url, timeout_s=20)
    async with locked(postgres_url, console_book.SCHEMA_LOCK) as other:
        reading = asyncio.ensure_future(book.change_no())
        waited = await waits_for_lock(other, reading.done)
    await reading
    assert waited
    await book.aclose()
