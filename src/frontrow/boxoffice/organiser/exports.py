"""Exports (B13) as CSV or XLSX: bookings, tickets, attendees, revenue, disputes, one page of bookings at a time.

Cells that begin like a formula get a quote before them (`organiser.model.csv_cells.safe_cell`); a workbook has no
formulas. Amounts are in units of the currency (140.00). Times are in UTC in CSV and in the venue's time in a workbook.
The ledger batches the reads of one page, so a page costs a few statements.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.messages.model.messages import NOBODY, Buyer
from frontrow.boxoffice.organiser.model.csv_cells import amount_cell, to_csv
from frontrow.boxoffice.organiser.ports.ledger import BrowsingLedger
from frontrow.boxoffice.organiser.workbooks import WorkbookFile
from frontrow.boxoffice.payments.model.disputes import DisputeState, PaymentDispute
from frontrow.boxoffice.payments.model.payments import Payment, PaymentState
from frontrow.boxoffice.pricing.model.booking_choices import choice_of, type_names
from frontrow.boxoffice.pricing.model.prices import LineKind, PriceLine
from frontrow.boxoffice.pricing.model.taxes import TaxRates, tax_inside
from frontrow.boxoffice.refunds.model.refund_lines import add_ons_gone, decode_refund_lines, kept_lines
from frontrow.boxoffice.refunds.model.refunds import Refund, RefundState
from frontrow.boxoffice.tickets.model.tickets import Ticket
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import InvalidInput, NotFound
from frontrow.shared.money import Money

PAGE: Final = 500
MAX_PAGES: Final = 2_000  # a million bookings
MAX_DISPUTES: Final = 10_000  # of one event
TAXED: Final = ("gross_amount", "tax_percent", "tax", "net_amount")
HEADERS: Final = {
    "bookings": (
        "booking",
        "state",
        "email",
        "seats",
        "amount",
        "currency",
        "created_at",
        "confirmed_at",
        "name",
        "extras",
        "discount_code",
        "ticket_types",
        *TAXED,
    ),
    "tickets": ("ticket", "booking", "seat", "state", "issued_at", "scanned_at", "type"),
    "attendees": ("email", "seat", "booking", "ticket", "scanned_at", "name", "type"),
    "revenue": (
        "booking",
        "confirmed_at",
        "currency",
        "captured",
        "refunded",
        "fees_kept",
        "net",
        "ticket_types",
        "extras",
        "extras_amount",
        *TAXED,
    ),
    "disputes": (
        "dispute",
        "booking",
        "opened_at",
        "state",
        "changed_at",
        "currency",
        "amount",
        "disputed",
        "lost",
        "reason",
        "answer_by",
        "provider",
        "payment",
    ),
}
Rows = list[tuple[Any, ...]]


class Exports:
    """Writes tables."""

    def __init__(self, ledger: BrowsingLedger) -> None:
        self._ledger = ledger

    async def table(self, kind: str, event: Event, names: Sequence[str]) -> AsyncIterator[str]:
        """The table as CSV in pieces, newest bookings first. `names` are the seats' public ids."""
        head = to_csv(HEADERS[kind], [])
        async for rows in self._pages(kind, event, names):
            yield head + "".join(to_csv(HEADERS[kind], rows).partition("\r\n")[2:])
            head = ""

    async def workbook(self, kind: str, event: Event, names: Sequence[str], time_zone: str, path: Path) -> None:
        """The table as a file for spreadsheets; `InvalidInput` if it does not fit."""
        file = await asyncio.to_thread(WorkbookFile, path, time_zone)
        try:
            await asyncio.to_thread(file.begin_sheet, kind, HEADERS[kind])
            async for rows in self._pages(kind, event, names):
                await asyncio.to_thread(file.add_rows, rows)
        finally:
            await asyncio.to_thread(file.close)

    async def _pages(self, kind: str, event: Event, names: Sequence[str]) -> AsyncIterator[Rows]:
        if kind == "disputes":
            yield await self.disputes(event)
            return
        before, rates = 0, await self._ledger.organiser.tax_rates(event)
        for _ in range(MAX_PAGES):
            page = await self._ledger.organiser.event_bookings(event.id, "", before, PAGE)
            yield await self._rows(kind, event, page, names, rates)
            if len(page) < PAGE:
                return
            before = page[-1].fence

    async def _rows(
        self, kind: str, event: Event, page: Sequence[Booking], names: Sequence[str], rates: TaxRates
    ) -> Rows:
        if kind == "revenue":
            return await self._revenue(page, event, rates)
        buyers = await self._ledger.organiser.buyers_of([one.fan for one in page]) if kind != "tickets" else {}
        if kind == "bookings":
            gone = await self._add_ons_gone(page)
            return [_booking(one, buyers, names, event, rates, kept_lines(one, gone.get(one.id, {}))) for one in page]
        bought = [one for one in page if one.confirmed_at_us]  # including what was returned or cancelled since
        tickets = await asyncio.gather(*(self._ledger.tickets.tickets_of(one.id) for one in bought))
        pairs = [(one, ticket) for one, some in zip(bought, tickets, strict=True) for ticket in some]
        if kind == "tickets":
            return [(*_ticket(ticket, names), _type(event, one, ticket)) for one, ticket in pairs]
        return [
            (*_attendee(one, ticket, buyers, names), _type(event, one, ticket))
            for one, ticket in pairs
            if ticket.state == "valid"
        ]

    async def disputes(self, event: Event) -> Rows:
        """One row per dispute, the newest first."""
        found = await self._ledger.payments.disputes("", event.id, MAX_DISPUTES + 1)
        if len(found) > MAX_DISPUTES:
            raise InvalidInput(f"an event with more than {MAX_DISPUTES} disputes cannot be exported", param="kind")
        return [_dispute(one) for one in found]

    async def _add_ons_gone(self, page: Sequence[Booking]) -> dict[str, Mapping[str, int]]:
        """How many of which add-on were refunded, by booking."""
        some = [one for one in page if one.confirmed_at_us and LineKind.ADD_ON in one.price_lines]
        refunds = await asyncio.gather(*(self._ledger.payments.refunds_of(one.id) for one in some))
        return {one.id: _gone(own) for one, own in zip(some, refunds, strict=True)}

    async def _revenue(self, page: Sequence[Booking], event: Event, rates: TaxRates) -> Rows:
        """One row per booking that was sold or paid, including refunded ones."""
        payments = await asyncio.gather(*(self._ledger.payments.payments_of(one.id) for one in page))
        refunds = await asyncio.gather(*(self._ledger.payments.refunds_of(one.id) for one in page))
        rows = zip(page, payments, refunds, strict=True)
        return [_revenue(*row, event, rates) for row in rows if row[0].confirmed_at_us or _captured(row[1])]


def checked_kind(kind: str) -> str:
    """The kind of table, or `NotFound`."""
    if kind not in HEADERS:
        raise NotFound(f"there is no table {kind[:30]}; there are {', '.join(HEADERS)}")
    return kind


def _type(event: Event, one: Booking, ticket: Ticket) -> str:
    return type_names(event, one.price_lines, [ticket.seat_index]).get(ticket.seat_index, "")


def _booking(
    one: Booking,
    buyers: Mapping[str, Buyer],
    names: Sequence[str],
    event: Event,
    rates: TaxRates,
    lines: Sequence[PriceLine],
) -> tuple[Any, ...]:
    """`lines` are the booking's, with the add-ons it still has."""
    seats, buyer = " ".join(names[seat] for seat in one.seats), buyers.get(one.fan, NOBODY)
    rate = _rate(one, rates)
    return (
        one.id,
        one.state.value,
        buyer.email,
        seats,
        amount_cell(one.amount_minor, one.currency),
        one.currency,
        _time(one.created_at_us),
        _time(one.confirmed_at_us),
        buyer.name,
        _extras(lines),
        choice_of(event, lines).code,
        _types(event, one),
        *_taxed(one.amount_minor, _tax(one.amount_minor, one.currency, rate), one.currency, rate),
    )


def _gone(refunds: Sequence[Refund]) -> Mapping[str, int]:
    return add_ons_gone([decode_refund_lines(one.lines) for one in refunds])


def _types(event: Event, one: Booking) -> str:
    """How many of which ticket type: 2 Adult, 1 Child."""
    counted = Counter(type_names(event, one.price_lines, one.seats).values())
    return ", ".join(f"{count} {name}" for name, count in counted.items())


def _extras(lines: Sequence[PriceLine]) -> str:
    return ", ".join(f"{line.quantity} {line.name}" for line in lines if line.kind is LineKind.ADD_ON)


def _rate(one: Booking, rates: TaxRates) -> int:
    """The tax rate as of the sale."""
    return rates.at(one.confirmed_at_us or one.created_at_us)


def _tax(gross_minor: int, currency: str, rate: int) -> int:
    return tax_inside(Money(gross_minor, currency), rate).minor


def _taxed(gross_minor: int, tax_minor: int, currency: str, rate: int) -> tuple[Any, ...]:
    """The cells of TAXED."""
    gross, tax, net = (amount_cell(minor, currency) for minor in (gross_minor, tax_minor, gross_minor - tax_minor))
    return gross, Decimal(rate).scaleb(-2), tax, net


def _ticket(one: Ticket, names: Sequence[str]) -> tuple[Any, ...]:
    times = _time(one.issued_at_us), _time(one.scanned_at_us)
    return (one.id, one.booking_id, names[one.seat_index], one.state.value, *times)


def _attendee(one: Booking, ticket: Ticket, buyers: Mapping[str, Buyer], names: Sequence[str]) -> tuple[Any, ...]:
    buyer = buyers.get(one.fan, NOBODY)
    return buyer.email, names[ticket.seat_index], one.id, ticket.id, _time(ticket.scanned_at_us), buyer.name


def _captured(payments: Sequence[Payment]) -> int:
    return sum(payment.amount_minor for payment in payments if payment.state is PaymentState.CAPTURED)


def _revenue(
    one: Booking, payments: Sequence[Payment], refunds: Sequence[Refund], event: Event, rates: TaxRates
) -> tuple[Any, ...]:
    """The tax is rounded per payment and per refund, as on invoices and credit notes."""
    captured = _captured(payments)
    owed = [refund for refund in refunds if refund.state not in (RefundState.FAILED, RefundState.MOOT)]
    back, kept = sum(refund.amount_minor for refund in owed), sum(refund.fee_minor for refund in owed)
    amounts = (amount_cell(minor, one.currency) for minor in (captured, back, kept, captured - back))
    lines, rate = kept_lines(one, _gone(refunds)), _rate(one, rates)
    extras = sum(line.amount_minor for line in lines if line.kind is LineKind.ADD_ON)
    tax = _tax(captured, one.currency, rate) - sum(_tax(refund.amount_minor, one.currency, rate) for refund in owed)
    return (
        one.id,
        _time(one.confirmed_at_us),
        one.currency,
        *amounts,
        _types(event, one),
        _extras(lines),
        amount_cell(extras, one.currency),
        *_taxed(captured - back, tax, one.currency, rate),
    )


def _dispute(one: PaymentDispute) -> tuple[Any, ...]:
    """`disputed` and `lost` are the parts that the ledger counts as with the bank for now, or for good."""
    in_state = [one.amount_minor * (one.state is state) for state in (DisputeState.OPEN, DisputeState.LOST)]
    amounts = (amount_cell(minor, one.currency) for minor in (one.amount_minor, *in_state))
    times = _time(one.opened_at_us), one.state.value, _time(one.changed_at_us)
    about = one.reason, _time(one.answer_by_us), one.provider, one.payment_ref
    return one.ref, one.booking_id, *times, one.currency, *amounts, *about


def _time(at_us: int | None) -> datetime | str:
    return datetime.fromtimestamp(at_us / US_PER_S, UTC) if at_us else ""
