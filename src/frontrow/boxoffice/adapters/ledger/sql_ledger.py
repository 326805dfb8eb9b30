"""The ledger over a store (SQLite or PostgreSQL): single calls in, batches of the group commit out.

Calls that arrive while a commit is in progress go into the next batch (`shared.coalescer`). Each caller gets its own
answer or error. When nothing else is in progress, a call is committed at once.
"""

import asyncio
import functools
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from frontrow.boxoffice.adapters.ledger.checkout.invoice_book import SqlInvoiceBook
from frontrow.boxoffice.adapters.ledger.engine.batched_reads import BatchedReads, KeyedRead
from frontrow.boxoffice.adapters.ledger.engine.due_work import FACTS, HOLDS, DueWork
from frontrow.boxoffice.adapters.ledger.engine.group_commit import (
    ClaimFacts,
    CommitLine,
    LedgerStore,
    Operation,
    RunProgram,
    RunStatements,
)
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.engine.replica import (
    BROWSING,
    BrowsingKeyedRead,
    BrowsingReader,
    NearReader,
    Replica,
)
from frontrow.boxoffice.adapters.ledger.events.catalogue import SqlCatalogue
from frontrow.boxoffice.adapters.ledger.events.pictures import SqlPictureBook
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import ExpireHolds, MakeMove, Program, booking_of
from frontrow.boxoffice.adapters.ledger.holds.hold_changes import change_hold
from frontrow.boxoffice.adapters.ledger.keys.platform_keys import KeyBook
from frontrow.boxoffice.adapters.ledger.messages.buyer_message_book import SqlBuyerMessageBook
from frontrow.boxoffice.adapters.ledger.messages.dead_letters import DeadLetterBook
from frontrow.boxoffice.adapters.ledger.messages.message_book import SqlMessageBook
from frontrow.boxoffice.adapters.ledger.operations.operations_book import SqlOperationsBook
from frontrow.boxoffice.adapters.ledger.organiser.brands import SqlBrandBook
from frontrow.boxoffice.adapters.ledger.organiser.organiser_changes import SqlOrganiserBook
from frontrow.boxoffice.adapters.ledger.organiser.report_mails import SqlReportBook
from frontrow.boxoffice.adapters.ledger.organiser.sales_figures import SqlFiguresBook
from frontrow.boxoffice.adapters.ledger.payments.payment_account_book import SqlPaymentAccountBook
from frontrow.boxoffice.adapters.ledger.payments.payment_book import SqlPaymentBook
from frontrow.boxoffice.adapters.ledger.payments.provider_notes import SqlProviderNotes
from frontrow.boxoffice.adapters.ledger.people.people_book import SqlPeopleBook
from frontrow.boxoffice.adapters.ledger.presale.signup_book import SqlSignupBook
from frontrow.boxoffice.adapters.ledger.pricing.booking_choices import confirm_free, reprice
from frontrow.boxoffice.adapters.ledger.refunds.return_book import SqlReturnsBook
from frontrow.boxoffice.adapters.ledger.requests.idempotency_store import IdempotencyStore
from frontrow.boxoffice.adapters.ledger.tickets.redemption_book import SqlRedemptionBook
from frontrow.boxoffice.adapters.ledger.tickets.ticket_book import SqlTicketBook
from frontrow.boxoffice.adapters.ledger.tickets.transfer_book import SqlTransferBook
from frontrow.boxoffice.adapters.ledger.tickets.wallet_book import SqlWalletBook
from frontrow.boxoffice.adapters.ledger.waitlist.waitlist_book import SqlWaitlistBook
from frontrow.boxoffice.facts.model import Fact, OutboxFact
from frontrow.boxoffice.holds.model.bookings import LONGEST_HOLD_US, Booking, BookingState, Move, StaleFence
from frontrow.boxoffice.holds.model.holds import ActiveSeat, ChangedHold, ExpiredHold, NewHold, PlacedHold, VisitHold
from frontrow.boxoffice.pricing.model.booking_choices import Reprice
from frontrow.boxoffice.tickets.model.tickets import NewTicket
from frontrow.core.errors import InvalidInput
from frontrow.shared.coalescer import Coalescer, ResultSlot

MAX_BATCH: Final = 512
MAX_WAITING: Final = 50_000
SPREAD_FROM: Final = 64  # writes in line from which on two writers are cheaper than one
# Statements that are read by one key, and the column of the key.
KEY_COLUMNS: Final = {
    "bookings_by_id": 0,
    "payments_by_id": 0,
    "payments_of_bookings": 1,
    "refunds_of_bookings": 1,
    "seat_prices_of": 0,
    "events_by_id": 0,
    "venues_by_id": 0,
    "contacts_by_fan": 0,
    "tickets_of_bookings": 1,
    "names_of_buyers": 0,
    "push_of": 0,
    "organisers_by_id": 0,
    "sellers_of": 0,
    "tax_rates_of": 0,
    "brands_of": 0,
    "wallet_keys_of": 0,
    "redemptions_of_bookings": 2,
}
NAMED_IN_LINKS: Final = ("events_by_id", "venues_by_id")  # a replica that lags must not answer "there is no such event"
FENCES_END: Final = 2**63
MAX_PAGE: Final = 10_000
YIELD_EVERY: Final = 5_000  # seats between two turns of the event loop


class BrowsingBooks(NamedTuple):
    """Books of those who look and decide nothing: lists, figures, reports, exports. They may lag behind (ADR 0161)."""

    operations: SqlOperationsBook
    catalogue: SqlCatalogue
    figures: SqlFiguresBook
    organiser: SqlOrganiserBook
    tickets: SqlTicketBook
    payments: SqlPaymentBook


class SqlLedger:
    """A ledger over one store; the contract is `holds.ports.ledger.Ledger`.

    Holds, bookings and the outbox are its own methods. Everything else is in books, which share the store, the group
    commit (`line`) and the batched reads. `browsing` has the books that may read from `replica`.
    """

    def __init__(
        self,
        store: LedgerStore,
        *,
        max_batch: int = MAX_BATCH,
        max_waiting: int = MAX_WAITING,
        replica: Replica | None = None,
    ) -> None:
        self.store, self.replica = store, replica
        self.due_work = due = DueWork(store)
        self.line: CommitLine = Coalescer(
            self._write,
            max_batch=max_batch,
            max_in_flight=store.writers,
            max_waiting=max_waiting,
            spread_from=SPREAD_FROM,
            name="ledger",
        )
        self.reads = {
            name: BatchedReads(store, name, at, max_batch=max_batch, max_waiting=max_waiting)
            for name, at in KEY_COLUMNS.items()
        }
        line, reads = self.line, self.reads
        self.catalogue = SqlCatalogue(store, line, reads)
        self.payments = SqlPaymentBook(store, line, reads, due)
        self.provider_notes = SqlProviderNotes(store, line)
        self.tickets = SqlTicketBook(store, line, reads)
        self.messages = SqlMessageBook(store, line, reads, due)
        self.waitlist = SqlWaitlistBook(store, line, reads)
        self.returns = SqlReturnsBook(store, line)
        self.transfers = SqlTransferBook(store, line)
        self.pictures = SqlPictureBook(store, line)
        self.people = SqlPeopleBook(store, line, reads)
        self.organiser = SqlOrganiserBook(store, line, reads, self.catalogue, due)
        self.redemptions = SqlRedemptionBook(store, line, reads, self.organiser)
        self.brands = SqlBrandBook(store, reads, self.organiser)
        self.wallets = SqlWalletBook(reads, self.organiser)
        self.payment_accounts = SqlPaymentAccountBook(store, line)
        self.buyer_messages = SqlBuyerMessageBook(store, line, due)
        self.figures = SqlFiguresBook(store)
        self.invoices = SqlInvoiceBook(store, line)
        self.reports = SqlReportBook(store, line)
        self.signups = SqlSignupBook(store, line, self.messages, due)
        self.dead_letters = DeadLetterBook(store, line)
        self.keys = KeyBook(store, line)
        self.idempotency = IdempotencyStore(store, line)
        self.operations = SqlOperationsBook(store)
        self._near_reads: list[BatchedReads] = []
        self.browsing = BrowsingBooks(
            self.operations, self.catalogue, self.figures, self.organiser, self.tickets, self.payments
        )
        if replica is not None:
            self.browsing = self._make_browsing(BrowsingReader(store, replica), max_batch, max_waiting)

    def _make_browsing(self, reader: BrowsingReader, max_batch: int, max_waiting: int) -> BrowsingBooks:
        reads: dict[str, KeyedRead] = dict(self.reads)
        for name in sorted(BROWSING & KEY_COLUMNS.keys()):
            at = KEY_COLUMNS[name]
            near = BatchedReads(NearReader(reader), name, at, max_batch=max_batch, max_waiting=max_waiting)
            self._near_reads.append(near)
            reads[name] = BrowsingKeyedRead(reader, self.reads[name], near, surely=name in NAMED_IN_LINKS)
        line, due = self.line, self.due_work
        catalogue = SqlCatalogue(reader, line, reads)
        return BrowsingBooks(
            SqlOperationsBook(reader),
            catalogue,
            SqlFiguresBook(reader),
            SqlOrganiserBook(reader, line, reads, catalogue, due),
            SqlTicketBook(reader, line, reads),
            SqlPaymentBook(reader, line, reads, due),
        )

    async def _write(self, operations: Sequence[Operation]) -> list[Any]:
        try:
            return await self.store.write(operations)
        finally:
            self.due_work.forget()

    async def place_hold(self, hold: NewHold) -> PlacedHold:
        hold.check()
        return cast(PlacedHold, await self.line.submit(hold))

    def place_hold_into(self, hold: NewHold, slot: ResultSlot) -> None:
        hold.check()
        self.line.submit_into(hold, slot)

    async def change_hold(self, hold: NewHold, fence: int) -> ChangedHold:
        hold.check()
        ran = RunProgram(lambda facts: change_hold(hold, fence, facts), hold.now_us, holds=(hold,))
        return cast(ChangedHold, await self.line.submit(ran))

    async def extend_hold(self, booking_id: str, fence: int, now_us: int, expires_at_us: int) -> Booking:
        return await self._move(Move.EXTEND, booking_id, fence, now_us, expires_at_us)

    async def release_hold(self, booking_id: str, fence: int, now_us: int) -> Booking:
        return await self._move(Move.RELEASE, booking_id, fence, now_us)

    async def begin_payment(self, booking_id: str, fence: int, now_us: int) -> Booking:
        return await self._move(Move.BEGIN_PAYMENT, booking_id, fence, now_us)

    async def step_back(self, booking_id: str, fence: int, now_us: int) -> Booking:
        return await self._move(Move.STEP_BACK, booking_id, fence, now_us)

    async def confirm(self, booking_id: str, fence: int, now_us: int, tickets: Sequence[NewTicket] = ()) -> Booking:
        return await self._submit(MakeMove(booking_id, Move.CONFIRM, fence, now_us, tickets=tuple(tickets)))

    async def confirm_free(
        self, booking_id: str, fence: int, now_us: int, tickets: Sequence[NewTicket] = ()
    ) -> Booking:
        ask = MakeMove(booking_id, Move.CONFIRM, fence, now_us, tickets=tuple(tickets))
        return cast(Booking, await self.line.submit(RunProgram(lambda facts: confirm_free(ask, facts), now_us)))

    async def reprice(self, ask: Reprice) -> Booking:
        return cast(Booking, await self.line.submit(RunProgram(lambda facts: reprice(ask, facts), ask.now_us)))

    async def live_uses(self, counters: Sequence[str], now_us: int) -> dict[str, int]:
        if not counters:
            return {}
        rows = await self.store.read(Query("live_uses", [(one,) for one in counters], (now_us,)))
        return {row[0]: int(row[1]) for row in rows}

    async def _move(self, move: Move, booking_id: str, fence: int, now_us: int, expires_at_us: int = 0) -> Booking:
        return await self._submit(MakeMove(booking_id, move, fence, now_us, expires_at_us))

    async def _submit(self, ask: MakeMove) -> Booking:
        if not 0 < ask.fence < FENCES_END:
            raise StaleFence(ask.booking_id, ask.fence)
        return cast(Booking, await self.line.submit(ask))

    async def expire_due(self, now_us: int, limit: int) -> list[ExpiredHold]:
        if not await self.due_work.may_have(HOLDS, now_us):
            return []
        return cast(list[ExpiredHold], await self.line.submit(ExpireHolds(now_us, _page(limit))))

    async def booking(self, booking_id: str) -> Booking | None:
        rows = await self.reads["bookings_by_id"].read(booking_id)
        return booking_of(rows[0]) if rows else None

    async def bookings_of(self, event_id: str, fan: str, limit: int = 100) -> list[Booking]:
        rows = await self.store.read(Query("bookings_of_fan", params=(event_id, fan, _page(limit))))
        return [booking_of(row) for row in rows]

    async def live_bookings(self, event_id: str, after: str, limit: int) -> list[Booking]:
        rows = await self.store.read(Query("live_bookings", params=(event_id, after, limit)))
        return [booking_of(row) for row in rows]

    async def visit_holds(self, event_id: str, now_us: int, limit: int) -> list[VisitHold]:
        rows = await self.store.read(Query("visit_holds", params=(event_id, now_us, LONGEST_HOLD_US, limit)))
        return [VisitHold(*row) for row in rows]

    async def active_seats(self, event_id: str, now_us: int) -> AsyncIterator[ActiveSeat]:
        rows = await self.store.read(Query("active_seats", params=(event_id, now_us)))
        for number, row in enumerate(rows, start=1):
            state = BookingState(row[1])
            expires_at_us = 0 if state is BookingState.CONFIRMED else row[4]
            yield ActiveSeat(row[0], state, row[2], row[3], expires_at_us, row[5])
            if number % YIELD_EVERY == 0:
                await asyncio.sleep(0)

    async def time_us(self) -> int:
        return await self.store.time_us()

    async def claim_facts(self, now_us: int, claim_us: int, limit: int) -> list[OutboxFact]:
        if not await self.due_work.may_have(FACTS, now_us):
            return []
        return cast(list[OutboxFact], await self.line.submit(ClaimFacts(now_us, claim_us, _page(limit))))

    async def facts_published(self, numbers: Sequence[int], now_us: int) -> None:
        if numbers:
            rows = [(number, now_us) for number in sorted(numbers)]
            await self.line.submit(RunStatements((Query("facts_published", rows),), now_us=now_us))

    async def purge_facts(self, before_us: int, limit: int) -> None:
        await self.line.submit(
            RunStatements((Query("purge_facts", params=(before_us, _page(limit))),), now_us=before_us)
        )

    async def purge_keys(self, before_us: int, limit: int, after: tuple[str, str] = ("", "")) -> tuple[str, str]:
        run = functools.partial(_purge_keys, before_us, _page(limit), after)
        return cast(tuple[str, str], await self.line.submit(RunProgram(run, before_us)))

    async def aclose(self) -> None:
        await self.due_work.aclose()
        await self.line.aclose()
        for read in (*self.reads.values(), *self._near_reads):
            await read.aclose()
        if self.replica is not None:
            self.replica.close()
        await self.store.aclose()


if TYPE_CHECKING:  # mypy proves that the ledger has the shape of what each domain uses
    from frontrow.boxoffice.checkout.ports import CheckoutLedger
    from frontrow.boxoffice.events.ports import EventLedger
    from frontrow.boxoffice.gate.ports import GateLedger
    from frontrow.boxoffice.jobs.ports import JobLedger
    from frontrow.boxoffice.messages.ports.buyer_messages import BuyerMessageBook
    from frontrow.boxoffice.messages.ports.ledger import MessageLedger
    from frontrow.boxoffice.organiser.ports.ledger import BrowsingLedger, OrganiserLedger
    from frontrow.boxoffice.organiser.ports.reports import ReportBook
    from frontrow.boxoffice.people.ports import PeopleLedger
    from frontrow.boxoffice.presale.ports import SignupBook
    from frontrow.boxoffice.refunds.ports.refunds import RefundLedger
    from frontrow.boxoffice.seats.ports.venues import VenueLedger
    from frontrow.boxoffice.tickets.ports.ledger import TicketLedger
    from frontrow.boxoffice.waitlist.ports import WaitlistLedger

    def _fulfils_ports(
        ledger: SqlLedger,
    ) -> tuple[
        CheckoutLedger,
        EventLedger,
        GateLedger,
        JobLedger,
        MessageLedger,
        OrganiserLedger,
        PeopleLedger,
        RefundLedger,
        TicketLedger,
        VenueLedger,
        WaitlistLedger,
        BrowsingLedger,
        BuyerMessageBook,
        ReportBook,
        SignupBook,
    ]:
        return (*(ledger,) * 11, ledger.browsing, ledger.buyer_messages, ledger.reports, ledger.signups)


def _purge_keys(before_us: int, limit: int, after: tuple[str, str], facts: list[Fact]) -> Program[tuple[str, str]]:
    page = yield Query("keys_page", params=(*after, limit))
    old = [(row[0], row[1]) for row in page if row[2] < before_us]
    if old:
        yield Query("forget_keys", old)
    return (page[-1][0], page[-1][1]) if len(page) == limit else ("", "")


def _page(limit: int) -> int:
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidInput(f"limit must be 1 to {MAX_PAGE}, not {limit}", param="limit")
    return limit
