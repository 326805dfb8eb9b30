"""Invoices: numbers without gaps under concurrency, documents that never change, credit notes, the PDF."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import msgspec
import psycopg
import pytest

from frontrow.boxoffice.adapters.ledger.checkout.invoice_book import issue_program
from frontrow.boxoffice.adapters.ledger.engine.group_commit import RunProgram
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import Program
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.checkout.invoice_pdf import invoice_pdf
from frontrow.boxoffice.checkout.model.invoices import (
    Invoice,
    checked_billed_to,
    credit_document,
    credit_lines,
    invoice_document,
)
from frontrow.boxoffice.checkout.model.receipts import MoneyMoved, Receipt, ReceiptLine, Seller
from frontrow.boxoffice.events.model.events import Fee
from frontrow.boxoffice.pricing.model.prices import LineKind
from frontrow.boxoffice.refunds.model.refund_lines import RefundLine, RefundLineKind, encode_refund_lines
from frontrow.boxoffice.refunds.model.refunds import Refund
from frontrow.boxoffice.texts.locale_formats import LANGUAGES
from frontrow.core.errors import InvalidInput
from frontrow.shared.money import Money
from tests.boxoffice.adapters.ledger.raw_sql import run_sql
from tests.boxoffice.shop import NOW
from tests.support.pdf_letters import core_texts

HALL = Seller("org_a", "Waldbühne GmbH", "Hauptstraße 1\n1010 Wien", "ATU12345678", 1300)
TOTAL = Money(106_99, "EUR")
LINES = (
    ReceiptLine(LineKind.SEAT, "Front", Money(105_00, "EUR"), 2, Money(52_50, "EUR"), ("S-A-1", "S-A-2")),
    ReceiptLine(LineKind.FEE, "Order fee", Money(1_99, "EUR")),
    ReceiptLine(LineKind.FEE, "Service fee", Money(5_00, "EUR"), 2, Money(2_50, "EUR"), (), True),
)
RECEIPT = Receipt(
    "bkg_1", "Aurora", NOW, "Europe/Vienna", HALL, "Ada Lovelace", LINES, 1300, MoneyMoved(NOW, TOTAL), ()
)
DOCUMENT = invoice_document(RECEIPT, "2026-", "")


def seat_line(seat: str, minor: int) -> ReceiptLine:
    return ReceiptLine(LineKind.SEAT, "", Money(-minor, "EUR"), 1, None, (seat,))


@pytest.fixture
async def ledgers(ledger_url: str) -> AsyncIterator[list[SqlLedger]]:
    """Two servers on one ledger."""
    async with AsyncExitStack() as stack:
        opened = [await open_ledger(ledger_url) for _ in range(2)]
        for one in opened:
            stack.push_async_callback(one.aclose)
        yield opened


async def test_concurrent_invoices_have_no_gap_and_no_number_twice(ledgers: list[SqlLedger]) -> None:
    """Two servers, 60 bookings of two organisers, each asked for three times at once; some transactions fail."""

    def fails(number: int) -> "asyncio.Future[object]":
        def program(_: object) -> Program[Invoice]:
            yield from issue_program(("org_a", f"bkg_fails_{number}", "", NOW, msgspec.json.encode(DOCUMENT).decode()))
            yield Query("add_invoices", [("org_a", 1, "bkg_1", "", NOW, "{}")])  # a number that is taken
            raise AssertionError("two invoices have one number")

        return ledgers[number % 2].line.submit(RunProgram(program, NOW))

    await ledgers[0].invoices.issue("org_a", "bkg_a0", "", DOCUMENT, NOW)
    asked = [
        ledgers[turn % 2].invoices.issue(f"org_{letter}", f"bkg_{letter}{number}", "", DOCUMENT, NOW)
        for number in range(30)
        for letter in "ab"
        for turn in range(3)
    ]
    issued = await asyncio.gather(*asked)
    failed = await asyncio.gather(*(fails(n) for n in range(2)), return_exceptions=True)
    last = await ledgers[1].invoices.issue("org_a", "bkg_last", "", DOCUMENT, NOW)
    assert all(isinstance(one, Exception) for one in failed), failed
    assert last.number == 31  # what failed has taken no number
    for letter in "ab":
        own = {one.booking_id: one.number for one in issued if one.organiser_id == f"org_{letter}"}
        assert sorted(own.values()) == list(range(1, 31))
        kept = await ledgers[0].invoices.page(f"org_{letter}", 0, 100)
        assert [one.number for one in kept if one.number <= 30] == list(range(30, 0, -1))
        assert all(own[one.booking_id] == one.number for one in kept if one.booking_id != "bkg_last")
    assert await ledgers[0].invoices.invoice("org_a", 31) == last
    assert await ledgers[0].invoices.invoice("org_b", 31) is None


async def test_a_document_never_changes_and_a_refund_gets_a_credit_note(
    ledgers: list[SqlLedger], ledger_url: str
) -> None:
    book = ledgers[0].invoices
    first = await book.issue("org_a", "bkg_1", "", DOCUMENT, NOW)
    other = msgspec.structs.replace(DOCUMENT, billed_to="Somebody else")
    assert await book.issue("org_a", "bkg_1", "", other, NOW + 1) == first
    note = credit_document(first, (seat_line("S-A-1", 52_50),), Money(52_50, "EUR"), NOW)
    credit = await book.issue("org_a", "bkg_1", "rfd_1", note, NOW)
    assert (first.label, credit.label, credit.document.corrects) == ("2026-000001", "2026-000002", "2026-000001")
    assert (credit.document.total.minor, credit.document.tax.minor, credit.document.net.minor) == (-5250, -604, -4646)
    assert (first.document.total.minor, first.document.tax.minor, first.document.net.minor) == (10699, 1231, 9468)
    assert await book.invoices_of("bkg_1") == [first, credit]
    for change in ("UPDATE invoices SET number = 9", "DELETE FROM invoices"):
        with pytest.raises((psycopg.Error, sqlite3.Error), match="append-only"):
            run_sql(ledger_url, change)


def test_a_credit_note_has_the_lines_of_its_refund() -> None:
    """What was withheld is one line, whatever the reasons. A refund from before lines were stored names its seats."""
    lines = (
        RefundLine(RefundLineKind.SEAT, "Front", 2, 10_500, (0, 1), "front"),
        RefundLine(RefundLineKind.ADD_ON, "Dinner", 1, 2_000, (), "dinner"),
        RefundLine(RefundLineKind.GROUP_PRICE, "", 1, -3_000),
        RefundLine(RefundLineKind.REFUND_FEE, "", 1, -500),
    )
    refund = Refund("rfd_1", "bkg_1", "pay_1", 1, 9_000, "EUR", (0, 1), 500, lines=encode_refund_lines(lines))
    shown = credit_lines(refund, "S-A-{}".format)
    assert [(line.name, line.seats, line.amount.minor) for line in shown] == [
        ("Front", ("S-A-0", "S-A-1"), -10_500),
        ("Dinner", (), -2_000),
        ("", (), 3_500),
    ]
    assert sum(line.amount.minor for line in shown) == -refund.amount_minor
    old = credit_lines(msgspec.structs.replace(refund, lines=""), "S-A-{}".format)
    assert [(line.seats, line.amount.minor) for line in old] == [(("S-A-0", "S-A-1"), -9_000)]
    invoice = Invoice("org_a", 17, "bkg_1", "", NOW, DOCUMENT)
    note = credit_document(invoice, shown, Money(9_000, "EUR"), NOW)
    said = core_texts(invoice_pdf(Invoice("org_a", 18, "bkg_1", "rfd_1", NOW, note), "en"))
    assert {"Front", "Dinner", "Not refunded", "Credit note"} <= set(said)


def test_the_pdf_has_the_numbers_in_every_language() -> None:
    invoice = Invoice("org_a", 17, "bkg_1", "", NOW, DOCUMENT)
    note = credit_document(invoice, (seat_line("S-A-1", TOTAL.minor),), TOTAL, NOW)
    credit = Invoice("org_a", 18, "bkg_1", "rfd_1", NOW, note)
    for language in LANGUAGES:
        assert invoice_pdf(invoice, language).startswith(b"%PDF")
        assert invoice_pdf(credit, language).startswith(b"%PDF")
    drawn = invoice_pdf(invoice, "en")
    assert drawn == invoice_pdf(invoice, "en")
    said = core_texts(drawn)
    for part in ("Invoice", "2026-000017", "ATU12345678", "Ada Lovelace", "1010 Wien", "bkg_1", "Front", "Order fee"):
        assert part in said, part
    swiss = msgspec.structs.replace(DOCUMENT, lines=(), total=Money(106_99, "CHF"))  # amounts without a symbol
    said = [text.replace("\xa0", " ") for text in core_texts(invoice_pdf(Invoice("o", 1, "b", "", NOW, swiss), "en"))]
    assert said[said.index("Net") - 1 :][:6] == ["CHF94.68", "Net", "CHF12.31", "Tax 13%", "CHF106.99", "Total"]


@pytest.mark.parametrize("text", ["x" * 501, "\n".join("123456789"), "a\x07b"])
def test_an_address_that_cannot_be_printed_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="billed_to"):
        checked_billed_to(text)
    assert checked_billed_to(" Ada \n\n 1 Main Street ") == "Ada\n1 Main Street"


def test_new_events_begin_with_the_fees_of_their_seller() -> None:
    fixed, percent = Fee("Service", per_seat_minor=250), Fee("Levy", basis_points=300)
    seller = Seller("org_a", "Hall", fees=(fixed, percent), fees_currency="EUR")
    assert seller.fees_in("EUR") == (fixed, percent)
    assert seller.fees_in("JPY") == (percent,)
