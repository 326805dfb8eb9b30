"""Receipts: seller, buyer, items, net, tax and gross to the cent, what was paid and what went back."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.checkout.model.receipts import (
    MoneyMoved,
    PriceSummary,
    Receipt,
    ReceiptLine,
    Seller,
    checked_seller,
)
from frontrow.boxoffice.checkout.receipts import Receipts
from frontrow.boxoffice.events.model.event_changes import Change, Editor
from frontrow.boxoffice.messages.model.messages import Contact
from frontrow.boxoffice.pricing.model.prices import LineKind
from frontrow.boxoffice.pricing.model.taxes import tax_inside
from frontrow.boxoffice.seats.model.venues import Venue
from frontrow.boxoffice.texts.locale_formats import LANGUAGES
from frontrow.boxoffice.texts.message_texts import render
from frontrow.boxoffice.tickets.ticket_codes import Issuer
from frontrow.boxoffice.tickets.ticket_renderer import TicketRenderer
from frontrow.core.errors import InvalidInput
from frontrow.shared.money import Money
from tests.boxoffice.messages.text_samples import ABOUT
from tests.boxoffice.shop import EVENT, NOW, shop_event, sqlite_url
from tests.boxoffice.tickets.samples import KEYS
from tests.contracts.ledger_contract import Bench

HALL = Seller("org_default", "Waldbühne GmbH", "Hauptstraße 1\n1010 Wien", "ATU12345678", 1300)
BY = Change(Editor("stf_1", "org_default"), "change_seller", "", NOW)


@given(st.integers(0, 10**12), st.integers(0, 5_000))
def test_net_and_tax_always_add_up_to_the_gross(gross: int, rate: int) -> None:
    tax = tax_inside(Money(gross, "EUR"), rate)
    exact = gross * rate / (10_000 + rate)
    assert 0 <= tax.minor <= gross
    assert abs(tax.minor - exact) <= 0.5 + exact * 1e-12
    paid = MoneyMoved(NOW, Money(gross, "EUR"))
    receipt = Receipt("bkg_1", "Aurora", NOW, "UTC", HALL, "", (), rate, paid)
    assert receipt.net + receipt.tax == receipt.total


@pytest.mark.parametrize(
    ("gross", "rate", "tax"), [(119_00, 1900, 19_00), (100_00, 1300, 11_50), (1, 1900, 0), (5, 0, 0)]
)
def test_tax_inside_a_price_is_rounded_half_up(gross: int, rate: int, tax: int) -> None:
    assert tax_inside(Money(gross, "EUR"), rate) == Money(tax, "EUR")


@pytest.mark.parametrize(
    ("seller", "param"),
    [
        (Seller("org_1", " "), "name"),
        (Seller("org_1", "x" * 201), "name"),
        (Seller("org_1", "x\ny"), "name"),
        (Seller("org_1", "x", "y" * 501), "address"),
        (Seller("org_1", "x", "a\x00"), "address"),
        (Seller("org_1", "x", "", "1" * 41), "tax_id"),
        (Seller("org_1", "x", "", "", 5_001), "tax_basis_points"),
        (Seller("org_1", "x", "", "", -1), "tax_basis_points"),
    ],
)
def test_a_seller_that_cannot_be_printed_is_refused(seller: Seller, param: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        checked_seller(seller)
    assert refused.value.param == param
    assert checked_seller(HALL) == HALL


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[SqlLedger]:
    opened = await open_ledger(sqlite_url(tmp_path))
    await opened.catalogue.put_venue(Venue("ven_1", "Waldbühne", "0" * 64, "Wien", "AT", "Europe/Vienna"), NOW)
    await opened.catalogue.put_event(shop_event(name="Aurora", starts_at_us=NOW), NOW)
    yield opened
    await opened.aclose()


async def test_the_receipt_of_a_booking_follows_the_sellers_details_and_refunds(ledger: SqlLedger) -> None:
    bench = Bench(ledger, ledger)
    bench.event, bench.clock.now_us = EVENT, NOW
    receipts = Receipts(ledger, TicketRenderer(ledger, KEYS))
    hold = await bench.paid(3, 4, fan="fan_1")
    assert await receipts.of(hold.booking_id) is None  # nothing is paid yet
    booking = await ledger.booking(hold.booking_id)
    assert booking is not None
    await ledger.confirm(booking.id, booking.fence, NOW, Issuer(KEYS).issue(booking))
    await ledger.messages.keep_buyer(Contact("fan_1", "ada@example.org", name="Ada Lovelace"), EVENT, NOW)
    plain = await receipts.of(booking.id)
    assert plain is not None
    assert (plain.seller.name, plain.seller.tax_id, plain.tax.minor) == ("Frontrow", "", 0)
    await ledger.organiser.put_seller(HALL, BY)
    receipt = await receipts.of(booking.id)
    assert receipt is not None
    assert (receipt.seller, receipt.buyer, receipt.tax_basis_points) == (HALL, "Ada Lovelace", 1300)
    assert receipt.total.minor == booking.amount_minor == receipt.net.minor + receipt.tax.minor
    assert receipt.total == Money.total([line.amount for line in receipt.lines], booking.currency)
    await ledger.catalogue.put_event(shop_event(name="Aurora", starts_at_us=NOW, tax_basis_points=0), NOW)
    exempt = await receipts.of(booking.id)
    assert exempt is not None
    assert (exempt.tax.minor, exempt.net) == (0, exempt.total)  # the event's own rate
    assert await receipts.of("bkg_none") is None


def test_the_price_of_a_seat_is_that_of_its_own_line() -> None:
    seat, off = Money(50_25, "EUR"), Money(-5_00, "EUR")
    lines = (
        ReceiptLine(LineKind.SEAT, "Stalls", seat, 1, seat, ("Stalls, Row 1, Seat 12",), seat_ids=("A-1-12",)),
        ReceiptLine(LineKind.DISCOUNT, "TEN", off, 1, off, ("A-1-12",)),
    )
    assert PriceSummary(lines, seat + off).prices() == {"A-1-12": seat}


def test_the_confirmation_shows_the_receipt_in_every_language() -> None:
    """Issue 11: the mail said only "Paid:"."""
    unit, seats = Money(50_25, "EUR"), ("A-1-12", "A-1-13")
    lines = (
        ReceiptLine(LineKind.SEAT, "Stalls", Money(100_50, "EUR"), 2, unit, seats),
        ReceiptLine(LineKind.FEE, "Service", Money(4_40, "EUR"), 2, Money(2_20, "EUR"), included=True),
    )
    paid, back = MoneyMoved(NOW, Money(100_50, "EUR")), MoneyMoved(NOW, Money(50_25, "EUR"))
    receipt = Receipt("bkg_1", "Aurora", NOW, "Europe/Vienna", HALL, "Ada <Lovelace>", lines, 1300, paid, (back,))
    for language in LANGUAGES:
        made = render("confirmed", language, ABOUT | {"receipt": receipt}, url="https://t.example/open#x")
        for part in ("Waldbühne GmbH", "1010 Wien", "ATU12345678", "13"):
            assert part in made.text
            assert part in made.html
        assert "Ada &lt;Lovelace&gt;" in made.html
        comma = "," if language in ("de", "fr", "es", "pt") else "."
        for amount in ("100.50", "2 × ", "50.25", "4.40", "88.94", "11.56"):  # gross, seat, fee in it, net, tax
            assert amount.replace(".", comma) in made.text
            assert amount.replace(".", comma) in made.html
