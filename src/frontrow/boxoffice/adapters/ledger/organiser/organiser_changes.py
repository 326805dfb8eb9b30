"""What organisers and gates write to and read from the ledger.

Every change is written in one transaction with a note of who made it, and only over the version it was made from. The
reads are pages of bookings, changes, waitlist entries, webhooks and the gate's counts.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, cast

import msgspec
from msgspec.structs import replace as replace_struct

from frontrow.boxoffice.adapters.ledger.engine.batched_reads import ReadsByKey
from frontrow.boxoffice.adapters.ledger.engine.due_work import CANCELLATIONS, DueWork
from frontrow.boxoffice.adapters.ledger.engine.group_commit import CommitLine, LedgerReader, RunProgram, RunStatements
from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row
from frontrow.boxoffice.adapters.ledger.events.catalogue import SqlCatalogue
from frontrow.boxoffice.adapters.ledger.events.event_index import index_events, index_venue
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import MakeMove, Program, booking_of, make_moves
from frontrow.boxoffice.adapters.ledger.messages.message_book import change_email
from frontrow.boxoffice.adapters.ledger.organiser.reseating import reseat
from frontrow.boxoffice.adapters.ledger.payments.payment_transactions import (
    RequestRefund,
    SavePayment,
    SaveRefund,
    refund_of,
    request_refunds,
    save_payments,
    save_refunds,
)
from frontrow.boxoffice.adapters.ledger.tickets.ticket_book import scan_of, scan_row
from frontrow.boxoffice.adapters.ledger.waitlist.waitlist_transactions import entry_of
from frontrow.boxoffice.checkout.model.receipts import Seller
from frontrow.boxoffice.events.model.event_changes import Cancellation, Change, NotedChange
from frontrow.boxoffice.events.model.events import Event, Fee
from frontrow.boxoffice.events.model.pictures import KEEP_UNUSED_US
from frontrow.boxoffice.events.model.show_dates import MAX_DATES
from frontrow.boxoffice.facts.model import Fact
from frontrow.boxoffice.gate.model.scans import Scan, Way, later_than
from frontrow.boxoffice.holds.model.bookings import Booking, Move
from frontrow.boxoffice.messages.model.messages import Buyer, Endpoint, SentDelivery
from frontrow.boxoffice.organiser.model.booking_search import MAX_SCANNED, BookingSearch, like_part
from frontrow.boxoffice.organiser.model.box_office_sales import BUYER_PREFIX, BoxOfficeTotal, PaidBy
from frontrow.boxoffice.organiser.model.reseating import Reseat
from frontrow.boxoffice.payments.model.payments import Payment, PaymentChanged
from frontrow.boxoffice.people.model.person_names import LAST
from frontrow.boxoffice.pricing.model.taxes import SELLERS_TAX, TaxRates
from frontrow.boxoffice.refunds.model.refunds import BookingSeen, Refund
from frontrow.boxoffice.seats.model.venues import OwnVenue, Venue
from frontrow.boxoffice.tickets.model.tickets import NewTicket, TicketRevoked
from frontrow.boxoffice.waitlist.model.waitlist import WaitlistEntry
from frontrow.core.errors import InvalidInput

NEWEST: Final = 2**62  # greater than every number: a page that starts with the newest
MAX_FANS: Final = 100  # fans per address
_names = msgspec.json.Decoder(tuple[str, ...])


class SqlOrganiserBook:
    """What organisers and gates write and read."""

    def __init__(
        self, store: LedgerReader, line: CommitLine, reads: ReadsByKey, catalogue: SqlCatalogue, due: DueWork
    ) -> None:
        self._store, self._line, self._reads, self._catalogue, self._due = store, line, reads, catalogue, due

    async def changed(
        self,
        change: Change,
        first: Query,
        rest: Sequence[Query] = (),
        index: Callable[[], Program[None]] | None = None,
    ) -> list[Row]:
        """Run `first`. If it returns rows, run `rest` and `index` and write the note. Returns the rows of `first`."""
        note = organiser_note(change)
        run = RunProgram(lambda facts: _changed(change, first, tuple(rest), index), change.at_us, note=note)
        answered = cast("list[Row]", await self._line.submit(run))
        self._catalogue.version += 1
        return answered

    async def put_seller(self, seller: Seller, change: Change) -> None:
        """Create or change an organiser's seller details."""
        row = (
            seller.organiser_id,
            seller.name,
            seller.address,
            seller.tax_id,
            seller.tax_basis_points,
            change.at_us,
        )
        fees = msgspec.json.encode((seller.fees_currency, seller.fees)).decode() if seller.fees else ""
        put = Query("put_sellers", [(*row, seller.invoice_prefix, fees, seller.contact_email)])
        await self.changed(change, put, (Query("keep_sellers", [row]),))

    async def seller(self, organiser_id: str) -> Seller | None:
        """An organiser's seller details, if there are any."""
        rows = await self._store.read(Query("seller_of", params=(organiser_id,)))
        if not rows:
            return None
        organiser, name, address, tax_id, rate, prefix, text, contact_email = rows[0]
        currency, fees = msgspec.json.decode(text, type=tuple[str, tuple[Fee, ...]]) if text else ("", ())
        return Seller(organiser, name, address, tax_id, rate, prefix, fees, currency, contact_email)

    async def seller_at(self, organiser_id: str, at_us: int) -> Seller | None:
        """The seller details as of `at_us`, if there were any."""
        rows = [row for row in await self._reads["sellers_of"].read(organiser_id) if row[5] <= at_us]
        return Seller(*rows[-1][:5]) if rows else None

    async def tax_rate_at(self, event: Event, at_us: int) -> int | None:
        """The event's own tax rate as of `at_us`. None means the seller's rate."""
        rows = [row for row in await self._reads["tax_rates_of"].read(event.id) if row[2] <= at_us]
        if not rows:  # it never changed
            return event.tax_basis_points
        return None if rows[-1][1] == SELLERS_TAX else int(rows[-1][1])

    async def tax_rates(self, event: Event) -> TaxRates:
        """All rates that the event's sales ever had."""
        own = [(int(row[2]), int(row[1])) for row in await self._reads["tax_rates_of"].read(event.id)]
        if not own:  # it never changed
            own = [(0, SELLERS_TAX if event.tax_basis_points is None else event.tax_basis_points)]
        sellers = await self._reads["sellers_of"].read(event.organiser_id)
        return TaxRates(own, [(int(row[5]), int(row[4])) for row in sellers])

    async def note(self, change: Change) -> None:
        """Write only the note. The change itself was made elsewhere, for example in the waiting room."""
        await self._line.submit(RunStatements((noted(change),), organiser_note(change), change.at_us))

    async def changes(
        self,
        organiser_id: str,
        event_id: str,
        before: int,
        limit: int,
        *,
        act: str = "",
        actor: str = "",
        booking_id: str = "",
    ) -> list[NotedChange]:
        """Noted changes, newest first, filtered by event, act, member or booking."""
        about = f'%"booking":"{_plain(booking_id)}"%' if booking_id else ""
        params = (organiser_id, event_id, before or NEWEST, limit, act, actor, about)
        return [NotedChange(*row) for row in await self._store.read(Query("changes_page", params=params))]

    # venues and events

    async def own_venues(self, organiser_id: str, after: str, limit: int) -> list[OwnVenue]:
        rows = await self._store.read(Query("venues_of_organiser", params=(organiser_id, after, limit)))
        return [_venue_of(row) for row in rows]

    async def own_venue(self, organiser_id: str, venue_id: str) -> OwnVenue | None:
        rows = await self._store.read(Query("own_venue", params=(venue_id, organiser_id)))
        return _venue_of(rows[0]) if rows else None

    async def add_venue(self, venue: Venue, change: Change) -> None:
        about = (venue.id, venue.name, venue.plan_hash, venue.city, venue.country, venue.time_zone)
        await self.changed(change, Query("add_venues", [(*about, change.at_us, change.editor.organiser_id)]))

    async def swap_venue(self, was: OwnVenue, venue: Venue, change: Change) -> bool:
        """Change the venue from `was`. False when somebody else changed it first. Reindexes its events."""
        row = (
            venue.id,
            was.changed_at_us,
            venue.name,
            venue.plan_hash,
            venue.city,
            venue.country,
            venue.time_zone,
            change.at_us,
        )
        same = replace(was.venue, plan_hash="") == replace(venue, plan_hash="")
        index = None if same else lambda: index_venue(venue)
        return bool(await self.changed(change, Query("swap_venues", [row]), (), index))

    async def event_document(self, event_id: str) -> str | None:
        """The event's document exactly as stored, for `swap_event`."""
        rows = await self._reads["events_by_id"].read(event_id)
        return str(rows[0][1]) if rows else None

    async def add_event(self, event: Event, change: Change) -> bool:
        rest = [Query("drop_tiers", [(event.id,)]), *_tiers(event)]
        row = (*_columns(event), change.at_us, event.organiser_id)
        return bool(await self.changed(change, Query("add_events", [row]), rest, lambda: index_events([event])))

    async def add_dates(self, was: str, event: Event, dates: Sequence[Event], change: Change) -> int | None:
        """Add further dates of the event's show; returns how many. Dates the show has already are left out.

        None when somebody else changed the event since `was`. `event` has its `show_id`.
        """
        run = RunProgram(lambda facts: _add_dates(was, event, dates, change), change.at_us, note=organiser_note(change))
        added = cast("tuple[int] | None", await self._line.submit(run))
        self._catalogue.version += 1
        return None if added is None else added[0]

    async def swap_event(
        self,
        was: str,
        event: Event,
        change: Change,
        *,
        tax_rates: tuple[int, int] | None = None,
        left_picture: str = "",
        starts_refunds: bool = False,
    ) -> bool:
        first, *others = _columns(event)
        row = (first, was, *others, change.at_us)
        rest = [Query("drop_tiers", [(event.id,)]), *_tiers(event)]
        if tax_rates is not None:
            rest.append(Query("keep_tax_rates", [(event.id, 0, tax_rates[0]), (event.id, change.at_us, tax_rates[1])]))
        if left_picture:
            rest.append(Query("check_pictures", [(left_picture, change.at_us + KEEP_UNUSED_US)]))
        if starts_refunds:
            rest.append(_start_refunds(change))
        return bool(await self.changed(change, Query("swap_events", [row]), rest, lambda: index_events([event])))

    async def taken_seats(self, event_id: str, seats: Sequence[int], now_us: int) -> list[int]:
        """The seats among these that are sold or held."""
        if not seats:
            return []
        rows = await self._store.read(Query("seats_in_the_way", [(event_id, seat) for seat in sorted(seats)]))
        return sorted(int(row[1]) for row in rows if row[3] == "confirmed" or row[4] > now_us)

    # cancellations

    async def begin_cancellation(self, change: Change) -> None:
        await self.changed(change, _start_refunds(change))

    async def cancellation(self, event_id: str) -> Cancellation | None:
        rows = await self._store.read(Query("cancellation_of", params=(event_id,)))
        return Cancellation(*rows[0]) if rows else None

    async def claim_cancellations(self, now_us: int, until_us: int, limit: int) -> list[tuple[str, int]]:
        """Claim cancelled events, each with the time of its cancellation. Workers get distinct ones."""
        if not await self._due.may_have(CANCELLATIONS, now_us):
            return []
        run = RunProgram(lambda facts: _claim_due(now_us, until_us, limit), now_us)
        return [(str(row[0]), int(row[1])) for row in await self._line.submit(run)]

    async def note_cancellation(
        self, event_id: str, state: str, done: tuple[int, int, int, int, int], next_at_us: int, now_us: int
    ) -> None:
        """Add the counts of one page: bookings refunded, released, stopped and failed, and returns paid back."""
        row = (event_id, state, *done, next_at_us, now_us)
        await self._line.submit(RunStatements((Query("note_cancellations", [row]),), now_us=now_us))

    # bookings

    async def event_bookings(self, event_id: str, state: str, before: int, limit: int) -> list[Booking]:
        params = (event_id, state, before or NEWEST, limit)
        return [booking_of(row) for row in await self._store.read(Query("bookings_page", params=params))]

    async def bookings_on_seat(self, event_id: str, seat: int, before: int, limit: int) -> list[Booking]:
        params = (event_id, seat, before or NEWEST, limit)
        return [booking_of(row) for row in await self._store.read(Query("bookings_on_seat", params=params))]

    async def bookings_by_email(self, event_id: str, email: str, before: int, limit: int) -> list[Booking]:
        fans = await self._store.read(Query("fans_by_email", params=(email, MAX_FANS)))
        if not fans:
            return []
        query = Query("bookings_of_fans", [(row[0],) for row in fans], (event_id, before or NEWEST, limit))
        return [booking_of(row) for row in await self._store.read(query)]

    async def bookings_by_name(self, event_id: str, words: Sequence[str], before: int, limit: int) -> list[Booking]:
        """Bookings whose buyer's name contains all these folded words (`person_names.search_words`).

        The first word is looked up in the index; two more are compared.
        """
        if not words:
            return []
        also = [f"%{word}%" for word in (*words[1:3], "", "")][:2]
        params = (event_id, words[0], words[0] + LAST, *also, before or NEWEST, limit)
        return [booking_of(row) for row in await self._store.read(Query("bookings_by_name", params=params))]

    async def bookings_by_part(self, event_id: str, search: BookingSearch, before: int, limit: int) -> list[Booking]:
        """Bookings whose number, or whose buyer's address, contains this part. Reads at most `MAX_SCANNED` bookings."""
        number, email = like_part(search.number_part), like_part(search.email_part)
        params = (event_id, number, email, before or NEWEST, MAX_SCANNED, limit)
        return [booking_of(row) for row in await self._store.read(Query("bookings_by_part", params=params))]

    async def buyers_of(self, fans: Sequence[str]) -> dict[str, Buyer]:
        """Name and address per fan, for those who gave any."""
        if not fans:
            return {}
        rows = await self._store.read(Query("contacts_of", [(fan,) for fan in sorted(set(fans))]))
        return {row[0]: Buyer(row[1], row[2]) for row in rows}

    async def change_email(self, booking: Booking, email: str, change: Change) -> bool:
        """Correct the address of a booking's buyer, with a note. False when it was this one already."""
        organiser = change.editor.organiser_id

        def run() -> Program[bool | BaseException]:
            return change_email(booking.fan, email, booking.event_id, organiser, noted(change), change.at_us)

        ran = RunProgram(lambda facts: run(), change.at_us, note=organiser_note(change))
        return cast(bool, await self._line.submit(ran))

    async def reseat(self, ask: Reseat, change: Change) -> Booking:
        """Move a confirmed booking to other seats, in one transaction."""
        ran = RunProgram(lambda facts: reseat(ask, noted(change), facts), ask.now_us)
        return cast(Booking, await self._line.submit(ran))

    async def sell_noted(
        self,
        booking_id: str,
        fence: int,
        payment: Payment | None,
        tickets: Sequence[NewTicket],
        *,
        now_us: int,
        change: Change,
    ) -> Booking:
        """Confirm a sale by staff with its payment (None: free), its tickets and the note of who sold, in one
        transaction. A repeated sale is not noted again."""
        move = MakeMove(booking_id, Move.CONFIRM, fence, now_us, tickets=tuple(tickets))
        ran = RunProgram(lambda facts: _sold(move, payment, noted(change), facts), now_us, note=organiser_note(change))
        return cast(Booking, await self._line.submit(ran))

    async def refund_noted(
        self,
        refund: Refund,
        *,
        fence: int,
        now_us: int,
        change: Change,
        seen: BookingSeen | None = None,
        uses: Sequence[tuple[str, int]] = (),
    ) -> Refund:
        """Write a refund with the note of who gave it, in one transaction. A repeated refund is not noted again."""
        ask = RequestRefund(refund, fence, now_us, seen=seen, uses=tuple(uses))
        return cast(
            Refund, await self._line.submit(RunProgram(lambda facts: _refunded(ask, noted(change), facts), now_us))
        )

    async def save_refund_noted(self, refund: Refund, *, now_us: int, change: Change) -> Refund:
        """Write the next version of a refund with its note, in one transaction."""
        ask = SaveRefund(refund, (), now_us)
        ran = RunProgram(lambda facts: _saved(ask, noted(change), facts), now_us, note=organiser_note(change))
        return cast(Refund, await self._line.submit(ran))

    async def failed_refunds(self, organiser_id: str, event_id: str, limit: int) -> list[tuple[str, Refund]]:
        """Failed refunds with their events, oldest first, of one event or (empty) of all."""
        params = (organiser_id, event_id, limit)
        rows = await self._store.read(Query("failed_refunds", params=params))
        return [(row[-1], refund_of(row[:-1])) for row in rows]

    async def box_office_totals(self, event_id: str, from_us: int, before_us: int) -> list[BoxOfficeTotal]:
        """What each member of the team sold at the box office, by way of payment."""
        params = (event_id, f"{BUYER_PREFIX}{event_id}:", f"{BUYER_PREFIX}{event_id};", from_us, before_us)
        rows = await self._store.read(Query("box_office_totals", params=params))
        return [BoxOfficeTotal(row[0], PaidBy(row[1]), *(int(count) for count in row[2:])) for row in rows]

    # waitlist

    async def waitlist_page(self, event_id: str, state: str, after: int, limit: int) -> list[WaitlistEntry]:
        params = (event_id, state, after, limit)
        return [entry_of(row) for row in await self._store.read(Query("waitlist_page", params=params))]

    async def waitlist_counts(self, event_id: str) -> dict[str, tuple[int, int]]:
        rows = await self._store.read(Query("waitlist_counts", params=(event_id,)))
        return {row[0]: (int(row[1]), int(row[2])) for row in rows}

    # webhooks

    async def own_endpoints(self, organiser_id: str, after: str, limit: int) -> list[Endpoint]:
        rows = await self._store.read(Query("endpoints_of_organiser", params=(organiser_id, after, limit)))
        return [Endpoint(row[0], row[1], row[2], row[3], row[4], _names.decode(row[5]), bool(row[6])) for row in rows]

    async def write_endpoint(self, endpoint: Endpoint, change: Change) -> None:
        facts = msgspec.json.encode(endpoint.facts).decode()
        about = (endpoint.id, endpoint.organiser, endpoint.event_id, endpoint.url, endpoint.secret)
        row = (*about, facts, int(endpoint.active), change.at_us)
        await self.changed(change, Query("write_endpoints", [row]))

    async def endpoint_deliveries(self, endpoint: Endpoint, before: int, limit: int) -> list[SentDelivery]:
        params = (endpoint.organiser, f"webhook:{endpoint.id}:%", before or NEWEST, limit)
        rows = await self._store.read(Query("deliveries_of_endpoint", params=params))
        return [SentDelivery(row[0], f"fct_{row[1].rpartition(':')[2]}", *row[2:7]) for row in rows]

    async def redeliver(self, endpoint: Endpoint, number: int, change: Change) -> bool:
        row = (number, endpoint.organiser, f"webhook:{endpoint.id}:", change.at_us)
        return bool(await self.changed(change, Query("redeliver", [row])))

    # the gate

    async def admit(self, scan: Scan, *, again: bool = False) -> list[Scan]:
        """Admit a ticket once, or (`again`) once more after each exit. Returns its earlier admissions; an empty list
        means this scan admitted it. Safe to repeat.

        `TicketRevoked` when the ticket is no longer valid: given back, refunded or moved.
        """
        run = RunProgram(lambda facts: _admit(scan, again=again), scan.at_us)
        before = await self._line.submit(run)
        return [scan_of(row) for row in before]

    async def let_out(self, scan: Scan) -> bool:
        """Let a ticket out. False when it is not inside. Safe to repeat."""
        return bool(await self._line.submit(RunProgram(lambda facts: _let_out(scan), scan.at_us)))

    async def known_tickets(self, event_id: str, ticket_ids: Sequence[str]) -> dict[str, str]:
        """The states of those of the tickets that the event has, by id."""
        if not ticket_ids:
            return {}
        rows = await self._store.read(Query("tickets_by_id", [(one, event_id) for one in sorted(set(ticket_ids))]))
        return {row[0]: row[1] for row in rows}

    async def admissions(self, event_id: str, after: int, limit: int) -> list[tuple[int, Scan]]:
        """Admissions of an event in the order in which they were recorded, from after that number on."""
        rows = await self._store.read(Query("admissions_page", params=(event_id, after, limit)))
        return [(int(row[0]), scan_of(row[1:])) for row in rows]

    async def undo_admission(self, scan_id: str, ticket_id: str, change: Change) -> bool:
        """Undo one scan, with a note. The ticket may be admitted again unless it has another scan."""
        first = Query("remove_scans", [(scan_id, change.event_id, ticket_id)])
        ticket = (ticket_id, change.event_id)
        rest = [Query("restamp_scanned", [ticket]), Query("stamp_left", [ticket])]
        return bool(await self.changed(change, first, rest))

    async def revocation_mark(self, event_id: str) -> tuple[int, int]:
        rows = await self._store.read(Query("revocation_mark", params=(event_id,)))
        return int(rows[0][0]), int(rows[0][1])

    async def gate_counts(self, event_id: str) -> list[Row]:
        """(gate, scans, tickets, first, last, exits) per gate."""
        return await self._store.read(Query("gate_counts", params=(event_id,)))

    async def gate_totals(self, event_id: str) -> tuple[int, int, int]:
        """The number of valid tickets, of those inside, and of those that have left and may come back."""
        rows = await self._store.read(Query("gate_totals", params=(event_id,)))
        tickets, inside, outside = (int(count or 0) for count in rows[0])
        return tickets, inside, outside


def _plain(text: str) -> str:
    """An id for a LIKE pattern, without `%`. (`_` matches one letter, which ids allow.)"""
    return text.replace("%", "")


def _changed(
    change: Change, first: Query, rest: Sequence[Query], index: Callable[[], Program[None]] | None
) -> Program[list[Row]]:
    rows = yield first
    if not rows:
        return []
    for query in rest:  # noqa: UP028 - `yield from` a list cannot be sent the rows
        yield query
    if index is not None:
        yield from index()
    yield noted(change)
    return rows


def _start_refunds(change: Change) -> Query:
    return Query("add_cancellations", [(change.event_id, change.at_us)])


def _add_dates(
    was: str, event: Event, dates: Sequence[Event], change: Change
) -> Program[tuple[int] | BaseException | None]:
    """Lock the event, so that two requests for the same dates come one after the other, then add what is missing."""
    rows = yield Query("locked_event", params=(event.id,))
    if not rows or rows[0][0] != was:
        return None
    known = {event.starts_at_us, *(int(row[0]) for row in (yield Query("show_starts", params=(event.show_id,))))}
    fresh = [one for one in dates if one.starts_at_us not in known]
    if len(known) + len(fresh) > MAX_DATES:
        return InvalidInput(f"a show has at most {MAX_DATES} dates; this one has {len(known)}", param="dates")
    first, *others = _columns(event)
    yield Query("swap_events", [(first, was, *others, change.at_us)])
    if fresh:
        yield Query("add_events", [(*_columns(one), change.at_us, one.organiser_id) for one in fresh])
        if event.tiers:
            yield Query("put_tiers", [row for one in fresh for row in _tier_rows(one)])
    yield from index_events([event, *fresh])
    yield noted(change)
    for one in fresh:
        yield noted(replace_struct(change, act="create_event", event_id=one.id, detail={"like": event.id}))
    return (len(fresh),)


def _sold(move: MakeMove, payment: Payment | None, note: Query, facts: list[Fact]) -> Program[Booking | BaseException]:
    before = len(facts)
    answer: Booking | BaseException | None
    if payment is None:
        (answer,) = yield from make_moves([move], facts)
    else:
        (saved,) = yield from save_payments([SavePayment(payment, move, (), move.now_us)], facts)
        answer = saved if isinstance(saved, BaseException) else saved[0]
    assert answer is not None, move.booking_id
    if len(facts) > before:  # it was confirmed now, not before
        yield note
    return answer


def _refunded(ask: RequestRefund, note: Query, facts: list[Fact]) -> Program[Refund | BaseException]:
    (answer,) = yield from request_refunds([ask], facts)
    if answer is ask.refund:
        yield note
    return answer


def _saved(ask: SaveRefund, note: Query, facts: list[Fact]) -> Program[Refund | BaseException]:
    (written,) = yield from save_refunds([ask], facts)
    if not written:
        return PaymentChanged(ask.refund.id)
    yield note
    return ask.refund


def noted(change: Change) -> Query:
    """The statement that writes a change into the organiser's audit."""
    detail = msgspec.json.encode(change.detail).decode()
    editor = change.editor
    row = (editor.organiser_id, change.event_id, editor.id, change.act, detail, change.at_us)
    return Query("add_changes", [row])


def organiser_note(change: Change) -> str:
    """A change as the chained log records it."""
    note = {"act": change.act, "organiser": change.editor.organiser_id, "actor": change.editor.id}
    note |= {"event": change.event_id} if change.event_id else {}
    return msgspec.json.encode(note | {"detail": change.detail, "at_us": change.at_us}).decode()


def _claim_due(now_us: int, until_us: int, limit: int) -> Program[list[Row]]:
    due = yield Query("due_cancellations", params=(now_us, limit))
    if not due:
        return []
    return (yield Query("claim_cancellations", [(row[0], until_us) for row in due]))


def _admit(scan: Scan, *, again: bool) -> Program[list[Row] | BaseException]:
    known = yield Query("scans_of", [(scan.ticket_id, scan.event_id)])
    if ways := _ways_of(scan, known):
        return [] if ways == {Way.IN.value} else _other_way(scan)  # a repeated call: this scan admitted it
    scan = _later(scan, known)
    let_in = yield Query("admit_tickets", [(scan.ticket_id, scan.event_id, scan.at_us, int(again))])
    if let_in:
        yield Query("add_scans", [scan_row(scan)])
        return []
    scans = yield Query("scans_of", [(scan.ticket_id, scan.event_id)])
    before = [row for row in scans if row[5] == Way.IN.value]
    tickets = yield Query("tickets_by_id", [(scan.ticket_id, scan.event_id)])
    if not before or not tickets or tickets[0][1] != "valid":
        return TicketRevoked(scan.ticket_id)
    return before


def _ways_of(scan: Scan, known: list[Row]) -> set[str]:
    """The ways that the ticket has already gone by this scan: one if it is repeated, else none."""
    return {str(row[5]) for row in known if row[0] == scan.id}


def _other_way(scan: Scan) -> InvalidInput:
    """It is no repeated call: the gate must not believe that the ticket went this way."""
    return InvalidInput(f"scan {scan.id} was the other way through the gate; choose a new one", param="scan")


def _later(scan: Scan, known: list[Row]) -> Scan:
    """The scan after those that are known: a gate that was offline may have a clock that is ahead."""
    return replace_struct(scan, at_us=later_than([scan_of(row) for row in known], scan.at_us))


def _let_out(scan: Scan) -> Program[bool | BaseException]:
    known = yield Query("scans_of", [(scan.ticket_id, scan.event_id)])
    if ways := _ways_of(scan, known):
        return True if ways == {Way.OUT.value} else _other_way(scan)
    scan = _later(scan, known)
    left = yield Query("let_out_tickets", [(scan.ticket_id, scan.event_id, scan.at_us)])
    if left:
        yield Query("add_scans", [scan_row(scan)])
    return bool(left)


def _venue_of(row: Row) -> OwnVenue:
    return OwnVenue(Venue(*row[:6]), row[6], row[7])


def _columns(event: Event) -> tuple[Any, ...]:
    document = msgspec.json.encode(event).decode()
    return (
        event.id,
        event.venue_id,
        event.plan_hash,
        event.name,
        event.status.value,
        event.currency,
        event.starts_at_us,
        event.sale_starts_at_us,
        event.sale_ends_at_us,
        event.max_per_person,
        document,
    )


def _tiers(event: Event) -> list[Query]:
    return [Query("put_tiers", _tier_rows(event))] if event.tiers else []


def _tier_rows(event: Event) -> list[Row]:
    return [(event.id, tier.key, tier.name, tier.price.minor, tier.price.currency) for tier in event.tiers]
