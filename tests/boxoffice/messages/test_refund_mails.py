"""One refund, one mail (B12): it says what went back, what is still valid and how much is paid back. The mail with the
tickets says which add-ons belong to the booking."""

import email
import email.policy
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from frontrow.boxoffice.adapters.channels.email import FolderChannel
from frontrow.boxoffice.checkout.receipts import Receipts
from frontrow.boxoffice.facts.model import RefundPaid
from frontrow.boxoffice.messages.mail_links import MailLinks
from frontrow.boxoffice.messages.model.messages import Contact
from frontrow.boxoffice.messages.notifications import Notifier
from frontrow.boxoffice.tickets.ticket_renderer import TicketRenderer
from tests.boxoffice.checkout.till import Till, open_till
from tests.boxoffice.refunds.show_with_choices import CARD, SHOW, held
from tests.boxoffice.tickets.samples import KEYS


class Mailed:
    """A till whose facts are mailed to a folder."""

    def __init__(self, till: Till, folder: Path) -> None:
        self.till, self.folder, self.numbers = till, folder, 0
        renderer = TicketRenderer(till.ledger, KEYS)
        links, receipts = MailLinks(b"k" * 32, "https://tickets.example.org"), Receipts(till.ledger, renderer)
        self.notifier = Notifier(till.ledger, renderer, [FolderChannel(folder)], till.clock, links, receipts)

    async def mails(self) -> list[tuple[str, str]]:
        """Subject and text of what was sent since the last call."""
        for path in self.folder.glob("*.eml"):
            path.unlink()
        for fact in await self.till.facts():
            self.numbers += 1
            writes = await self.notifier.plan(self.numbers, fact)
            await self.till.ledger.messages.once("notify", str(self.numbers), writes, self.till.clock())
        await self.notifier.worker().drain()
        found = [email.message_from_bytes(one.read_bytes(), policy=email.policy.default) for one in self.files()]
        return [(str(one["Subject"]), one.get_body(("plain",)).get_content()) for one in found]  # type: ignore[union-attr]

    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*.eml"))


@pytest.fixture
async def mailed(tmp_path: Path) -> AsyncIterator[Mailed]:
    async with open_till(tmp_path) as till:
        await till.ledger.catalogue.put_event(SHOW, till.clock())
        await till.ledger.messages.put_contact(Contact("fan_1", email="ada@example.org"), till.clock())
        yield Mailed(till, tmp_path / "outbox")


async def sold(mailed: Mailed) -> tuple[str, int]:
    booking_id, fence = await held(mailed.till, 1, 2, dinner=1, parking=2)
    await mailed.till.pay(booking_id, fence, CARD)
    await mailed.mails()
    return booking_id, fence


async def test_the_mail_with_the_tickets_names_the_add_ons_as_text_and_as_a_page(mailed: Mailed) -> None:
    booking_id, fence = await held(mailed.till, 1, 2, dinner=1, parking=2)
    await mailed.till.pay(booking_id, fence, CARD)
    ((_, text),) = await mailed.mails()
    assert "Add-ons of the booking: 1 × Dinner, 2 × Parking" in text
    (path,) = mailed.files()
    mail = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
    page = mail.get_body(("html",)).get_content()  # type: ignore[union-attr]
    assert "1 × Dinner" in page
    assert "2 × Parking" in page


async def test_a_refund_in_part_is_one_mail_that_says_what_is_still_valid(mailed: Mailed) -> None:
    booking_id, fence = await sold(mailed)
    await mailed.till.refunds.refund(booking_id, fence, [1], {"parking": 1})
    await mailed.till.settle()
    ((subject, text),) = await mailed.mails()
    assert subject.startswith("Part of your booking")
    assert "1 × Parking" in text
    assert "€59.33 goes back to the card" in text
    assert "Still valid: " in text
    assert "1 × Dinner, 1 × Parking" in text


async def test_a_refund_in_full_is_one_mail_with_its_amount(mailed: Mailed) -> None:
    booking_id, fence = await sold(mailed)
    await mailed.till.refunds.refund(booking_id, fence)
    await mailed.till.settle()
    ((subject, text),) = await mailed.mails()
    assert subject.startswith("Your booking")
    assert "€320.65 goes back to the card" in text
    assert "Still valid" not in text


async def test_a_refund_that_had_failed_is_mailed_again_once_it_is_paid(mailed: Mailed) -> None:
    """The mail about the failure promises it."""
    booking_id, fence = await sold(mailed)
    await mailed.till.refunds.refund(booking_id, fence)
    await mailed.mails()
    (refund,) = await mailed.till.ledger.payments.refunds_of(booking_id)
    paid = RefundPaid(booking_id, SHOW.id, "fan_1", fence, refund.seats, mailed.till.clock(), refund.id, 100, "EUR")
    assert await mailed.notifier._is_announced(paid)
    assert not await mailed.notifier._is_announced(RefundPaid(*_fields(paid), was_delayed=True))


def _fields(paid: RefundPaid) -> tuple[object, ...]:
    return tuple(getattr(paid, name) for name in paid.__struct_fields__[:-1])
