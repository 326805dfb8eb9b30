"""When an invoice can be issued, what a receipt names, and who gets priority after an outage: values only."""

from dataclasses import replace as replace_seller

import pytest
from msgspec.structs import replace

from frontrow.boxoffice.checkout.model.invoices import (
    MAX_BILLED_TO_CHARS,
    MAX_BILLED_TO_LINES,
    Invoice,
    InvoiceDocument,
    NothingToInvoice,
    PaymentNotTaken,
    check_taken,
    checked_billed_to,
    credit_document,
    credit_lines,
    invoice_document,
)
from frontrow.boxoffice.checkout.model.outage_priority import PRIORITY_US, NoPriority, check_priority
from frontrow.boxoffice.checkout.model.receipts import (
    MoneyMoved,
    PriceSummary,
    Receipt,
    ReceiptLine,
    Seller,
    checked_seller,
)
from frontrow.boxoffice.events.model.events import Fee
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.payments.model.payments import ENDED, PROVIDER_UNAVAILABLE, Payment, PaymentState
from frontrow.boxoffice.pricing.model.prices import LineKind
from frontrow.boxoffice.refunds.model.refund_lines import RefundLine, RefundLineKind, encode_refund_lines
from frontrow.boxoffice.refunds.model.refunds import Refund
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import InvalidInput
from frontrow.shared.money import Money

BOOKING = Booking("bkg_1", "evt_1", "ada", BookingState.CONFIRMED, 1, (1,), 100, "EUR", "", 0, 0, 9)
PAYMENT = Payment("pay_1", "bkg_1", 1, "stripe", 100, "EUR")


def paid(state: PaymentState, **more: object) -> Payment:
    return replace(PAYMENT, state=state, **more)


def with_fee(fee_minor: int, payment_id: str = "pay_1") -> Refund:
    return Refund("ref_1", "bkg_1", payment_id, 1, 50, "EUR", (1,), fee_minor=fee_minor)


def test_a_sale_whose_money_is_taken_or_was_taken_by_staff_has_an_invoice() -> None:
    check_taken(BOOKING, [], [])
    check_taken(BOOKING, [paid(PaymentState.DECLINED), paid(PaymentState.CAPTURED)], [])
    check_taken(BOOKING, [paid(PaymentState.CAPTURED), paid(PaymentState.VOIDED)], [])


@pytest.mark.parametrize("state", sorted(set(PaymentState) - ENDED - {PaymentState.CAPTURED}))
def test_a_sale_whose_money_is_on_its_way_has_its_invoice_soon(state: PaymentState) -> None:
    with pytest.raises(PaymentNotTaken):
        check_taken(BOOKING, [paid(state)], [])
    for other in set(BookingState) - {BookingState.CONFIRMED, BookingState.REFUNDED}:
        with pytest.raises(NothingToInvoice):
            check_taken(replace(BOOKING, state=other), [paid(state)], [])


@pytest.mark.parametrize("state", sorted(ENDED))
def test_what_was_never_paid_has_no_invoice(state: PaymentState) -> None:
    with pytest.raises(NothingToInvoice):
        check_taken(BOOKING, [paid(state)], [])


def test_a_refunded_sale_has_an_invoice_soon_if_its_fee_is_being_taken() -> None:
    refunded = replace(BOOKING, state=BookingState.REFUNDED)
    with pytest.raises(PaymentNotTaken):
        check_taken(refunded, [paid(PaymentState.CAPTURING)], [with_fee(0), with_fee(5)])
    for payment, refunds in (
        (paid(PaymentState.CAPTURING), [with_fee(0)]),
        (paid(PaymentState.CAPTURING), [with_fee(5, "pay_2")]),
        (paid(PaymentState.CAPTURING), []),
        (paid(PaymentState.OPEN), [with_fee(5)]),
    ):
        with pytest.raises(NothingToInvoice):
            check_taken(refunded, [payment], refunds)


# what an invoice says

HALL = Seller("org_1", "Hall", "Main street 1\n1010 Wien", "ATU1", 1_300, "2026-")
LINES = (ReceiptLine(LineKind.SEAT, "Front", Money(10_500, "EUR"), 2, Money(5_250, "EUR"), ("S-A-1", "S-A-2")),)
RECEIPT = Receipt(
    "bkg_1", "Aurora", 77, "Europe/Vienna", HALL, "Ada", LINES, 1_300, MoneyMoved(88, Money(10_500, "EUR"))
)


def named(place: int) -> str:
    return f"S-A-{place}"


def test_an_invoice_is_a_copy_of_the_receipt_for_whom_the_buyer_named() -> None:
    said = ("bkg_1", "Aurora", 77, "Europe/Vienna", LINES, Money(10_500, "EUR"), 1_300, 88)
    assert invoice_document(RECEIPT, "A-", "ACME\nWien") == InvoiceDocument("A-", HALL, "ACME\nWien", *said)
    assert invoice_document(RECEIPT, "A-", "") == InvoiceDocument("A-", HALL, "Ada", *said)


def test_a_credit_note_says_which_invoice_it_corrects_and_when_the_money_went_back() -> None:
    document = invoice_document(RECEIPT, "A-", "")
    lines = [ReceiptLine(LineKind.SEAT, "", Money(-500, "EUR"))]
    note = credit_document(Invoice("org_1", 7, "bkg_1", "", 99, document), lines, Money(500, "EUR"), 111)
    assert note == replace(document, lines=tuple(lines), total=Money(-500, "EUR"), paid_at_us=111, corrects="A-000007")


def test_the_lines_of_a_credit_note_are_those_of_the_refund_and_what_was_withheld() -> None:
    lines = (
        RefundLine(RefundLineKind.SEAT, "Front", 2, 10_500, (0, 1), "front"),
        RefundLine(RefundLineKind.ADD_ON, "Dinner", 3, 6_000, (), "dinner"),
        RefundLine(RefundLineKind.FEE, "Service", 2, 500),
        RefundLine(RefundLineKind.REFUND_FEE, "", 1, -700),
    )
    refund = Refund("rfd_1", "bkg_1", "pay_1", 1, 16_300, "EUR", (0, 1), lines=encode_refund_lines(lines))
    shown = (
        ReceiptLine(LineKind.SEAT, "Front", Money(-10_500, "EUR"), 2, None, ("S-A-0", "S-A-1")),
        ReceiptLine(LineKind.ADD_ON, "Dinner", Money(-6_000, "EUR"), 3),
        ReceiptLine(LineKind.FEE, "Service", Money(-500, "EUR"), 2),
    )
    assert credit_lines(refund, named) == (*shown, ReceiptLine(LineKind.FEE, "", Money(700, "EUR")))
    whole = replace(refund, amount_minor=17_000, lines=encode_refund_lines(lines[:3]))
    assert credit_lines(whole, named) == shown, "nothing was withheld"
    old = replace(refund, lines="")
    seats = ReceiptLine(LineKind.SEAT, "", Money(-16_300, "EUR"), 1, None, ("S-A-0", "S-A-1"))
    assert credit_lines(old, named) == (seats,)


def test_an_address_may_be_as_long_as_it_can_be_printed() -> None:
    assert checked_billed_to("x" * MAX_BILLED_TO_CHARS) == "x" * MAX_BILLED_TO_CHARS
    lines = ["line"] * MAX_BILLED_TO_LINES
    assert checked_billed_to("\n\n".join(lines)) == "\n".join(lines), "empty lines are not counted"


@pytest.mark.parametrize(("param", "most"), [("name", 200), ("address", 500), ("tax_id", 40), ("invoice_prefix", 20)])
def test_the_words_of_a_seller_may_be_as_long_as_they_can_be_printed(param: str, most: int) -> None:
    longest = replace_seller(HALL, **{param: "x" * most})
    assert checked_seller(longest) == longest
    breaks = "" if param == "address" else "\n"
    for text in ("x" * (most + 1), f"a\tb{breaks}", f"a{breaks or chr(7)}b"):
        with pytest.raises(InvalidInput) as refused:
            checked_seller(replace_seller(HALL, **{param: text}))
        assert refused.value.param == param


# receipts


def test_a_seller_has_an_address_to_write_to_and_fees_of_one_currency() -> None:
    seller = Seller("org_1", "Hall", contact_email="hall@example.org", fees=(Fee("Service", 100),), fees_currency="EUR")
    assert checked_seller(seller) == seller
    with pytest.raises(InvalidInput) as refused:
        checked_seller(replace_seller(seller, contact_email="hall"))
    assert refused.value.param == "contact_email"
    with pytest.raises(InvalidInput):
        checked_seller(replace_seller(seller, fees_currency="euros"))
    with pytest.raises(InvalidInput) as refused:
        checked_seller(replace_seller(seller, fees=(Fee("Service", -1),)))
    assert refused.value.param == "fees"


def test_a_line_has_a_name_or_the_names_of_its_seats() -> None:
    seats = ReceiptLine(LineKind.SEAT, "", Money(100, "EUR"), 2, seats=("S-A-1", "S-A-2"))
    assert seats.title_in("en") == seats.seats_in("en") == "S-A-1; S-A-2"
    named = ReceiptLine(LineKind.SEAT, "", Money(100, "EUR"), seats=("Stalls, Row 1, Seat 2",))
    assert named.title_in("de") == named.seats_in("de") == "Stalls, Reihe 1, Platz 2"
    assert ReceiptLine(LineKind.FEE, "Service", Money(1, "EUR"), seats=("S-A-1",)).title_in("de") == "Service"


def test_the_tax_and_the_net_of_a_price_are_its_total() -> None:
    price = PriceSummary((), Money(1_190, "EUR"), 1_900)
    assert (price.tax, price.net) == (Money(190, "EUR"), Money(1_000, "EUR"))
    assert PriceSummary((), Money(5, "EUR")).tax == Money(0, "EUR")


# priority after an outage

LOST = replace(BOOKING, state=BookingState.CANCELLED)
GIVEN_UP = paid(PaymentState.VOIDED, reason=PROVIDER_UNAVAILABLE, changed_at_us=7)


def test_who_lost_a_booking_to_an_outage_has_priority_for_a_day() -> None:
    assert PRIORITY_US == 24 * 3_600 * US_PER_S
    for booking in (LOST, replace(LOST, state=BookingState.EXPIRED)):
        for payment in (GIVEN_UP, replace(GIVEN_UP, state=PaymentState.VOIDING)):
            check_priority(booking, [paid(PaymentState.DECLINED), payment], 7 + PRIORITY_US - 1)
    with pytest.raises(NoPriority):
        check_priority(LOST, [GIVEN_UP], 7 + PRIORITY_US)


@pytest.mark.parametrize(
    ("booking", "payments"),
    [
        (BOOKING, [GIVEN_UP]),
        (LOST, []),
        (LOST, [GIVEN_UP, paid(PaymentState.DECLINED)]),
        (LOST, [replace(GIVEN_UP, reason="declined")]),
        (LOST, [replace(GIVEN_UP, state=PaymentState.OPEN)]),
    ],
)
def test_nobody_else_has_priority(booking: Booking, payments: list[Payment]) -> None:
    with pytest.raises(NoPriority):
        check_priority(booking, payments, 8)
