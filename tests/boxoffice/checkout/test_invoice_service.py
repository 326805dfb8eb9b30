"""When an invoice and its credit notes are issued: for money that was taken, and for money that went back."""

from pathlib import Path

import pytest

from frontrow.boxoffice.checkout.invoices import Invoices
from frontrow.boxoffice.checkout.model.invoices import InvoiceDocument, NothingToInvoice, PaymentNotTaken
from frontrow.boxoffice.checkout.model.receipts import Seller
from frontrow.boxoffice.checkout.receipts import Receipts
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.tickets.ticket_renderer import TicketRenderer
from frontrow.shared.money import Money
from tests.boxoffice.checkout.office import Office, an_office
from tests.boxoffice.shop import sqlite_url
from tests.boxoffice.tickets.samples import KEYS


def invoices_of(office: Office) -> Invoices:
    renderer = TicketRenderer(office.ledger, KEYS)
    return Invoices(office.ledger, Receipts(office.ledger, renderer), renderer, office.clock)


async def booking_of(office: Office, booking_id: str) -> Booking:
    booking = await office.ledger.booking(booking_id)
    assert booking is not None
    return booking


async def test_a_credit_note_waits_until_the_money_went_back(tmp_path: Path) -> None:
    async with an_office(sqlite_url(tmp_path)) as office:
        booking_id, fence = await office.sell("ada", 0, 1)
        invoices = invoices_of(office)
        (invoice,) = await invoices.issue(await booking_of(office, booking_id))
        await office.refunds.refund(booking_id, fence, [0])
        asked = await invoices.issue(await booking_of(office, booking_id))
        assert asked == [invoice], "the refund is asked for, and nobody has paid it"
        await office.till.settle()
        _, credit = await invoices.issue(await booking_of(office, booking_id))
        assert (credit.number, credit.document.corrects) == (invoice.number + 1, invoice.label)
        assert credit.document.total == Money(-5_000, "EUR")


async def test_an_invoice_waits_until_the_money_is_taken(tmp_path: Path) -> None:
    async with an_office(sqlite_url(tmp_path)) as office:
        invoices = invoices_of(office)
        hold = await office.waiting.shop.hold("ada", 0)
        await office.checkout.pay(hold.booking_id, hold.fence, "pm_card_visa")
        with pytest.raises(PaymentNotTaken):
            await invoices.issue(await booking_of(office, hold.booking_id))
        await office.checkout.work()
        assert len(await invoices.issue(await booking_of(office, hold.booking_id))) == 1
        held = await office.waiting.shop.hold("bob", 1)
        with pytest.raises(NothingToInvoice):
            await invoices.issue(await booking_of(office, held.booking_id))


@pytest.mark.parametrize(("total", "tax"), [(3, 1), (-3, -1), (9, 2), (-9, -2), (0, 0)])
def test_a_credit_note_takes_back_the_tax_that_its_invoice_had(total: int, tax: int) -> None:
    """20 % of 0.03 is half a cent. Rounded up on the invoice, it goes back as much on the credit note."""
    document = InvoiceDocument("", Seller("o", "S"), "", "b", "e", 0, "UTC", (), Money(total, "EUR"), 2_000, 0)
    assert (document.tax.minor, document.net.minor) == (tax, total - tax)
