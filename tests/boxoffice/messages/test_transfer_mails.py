"""Who chose a bank transfer is told by mail where the money has to go: once, in their language, and reminded once."""

import email
import email.policy
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from frontrow.boxoffice.adapters.channels.email import FolderChannel
from frontrow.boxoffice.checkout.checkout import Checkout, CheckoutState
from frontrow.boxoffice.checkout.receipts import Receipts
from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.facts.model import BankTransferAwaited, BankTransferReminded
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.messages.mail_links import MailLinks
from frontrow.boxoffice.messages.model.messages import Contact
from frontrow.boxoffice.messages.notifications import Notifier
from frontrow.boxoffice.payments.model.payment_rules import DAY_US, PaymentRules
from frontrow.boxoffice.payments.model.provider_intents import TransferDetails
from frontrow.boxoffice.texts.locale_formats import LANGUAGES
from frontrow.boxoffice.tickets.ticket_renderer import TicketRenderer
from tests.boxoffice.checkout.till import EVENT, ISSUER, Till, open_till
from tests.boxoffice.payments.crashes import Crash, Fuse, FusedLedger, FusedProvider
from tests.boxoffice.shop import shop_event
from tests.boxoffice.tickets.samples import KEYS

DAY_S = 86_400
FAN = "fan_1"


class Mailed:
    """A till with an event that takes transfers, whose facts are mailed to a folder."""

    def __init__(self, till: Till, folder: Path) -> None:
        self.till, self.folder, self.number = till, folder, 0
        renderer = TicketRenderer(till.ledger, KEYS)
        links, receipts = MailLinks(b"k" * 32, "https://tickets.example.org"), Receipts(till.ledger, renderer)
        self.notifier = Notifier(till.ledger, renderer, [FolderChannel(folder)], till.clock, links, receipts)

    async def allow(self, days: int) -> Event:
        starts_at_us = self.till.clock() + 60 * DAY_US
        event = shop_event(id=EVENT, payments=PaymentRules(pay_days=days), starts_at_us=starts_at_us)
        await self.till.ledger.catalogue.put_event(event, self.till.clock())
        return event

    async def mails(self, *, twice: bool = False) -> list[tuple[str, str]]:
        """Subject and text of what was sent since the last call; `twice`: the bus brings every fact again."""
        for path in self.folder.glob("*.eml"):
            path.unlink()
        for fact in await self.till.facts():
            self.number += 1
            for _ in range(1 + twice):
                writes = await self.notifier.plan(self.number, fact)
                await self.till.ledger.messages.once("notify", str(self.number), writes, self.till.clock())
        await self.notifier.worker().drain()
        found = [email.message_from_bytes(one.read_bytes(), policy=email.policy.default) for one in self._files()]
        return [(str(one["Subject"]), one.get_body(("plain",)).get_content()) for one in found]  # type: ignore[union-attr]

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("*.eml"))

    async def transfer(self) -> tuple[str, TransferDetails]:
        """A fan chooses a transfer. Returns the booking and where the money has to go."""
        hold = await self.till.hold(fan=FAN)
        asked = await self.till.checkout.pay(hold.booking_id, hold.fence, "bank_transfer")
        assert asked.state is CheckoutState.AWAITED
        assert asked.transfer is not None
        return hold.booking_id, asked.transfer


@pytest.fixture
async def mailed(tmp_path: Path) -> AsyncIterator[Mailed]:
    async with open_till(tmp_path) as till:
        one = Mailed(till, tmp_path / "outbox")
        await one.allow(5)
        await till.ledger.messages.put_contact(Contact(FAN, email="ada@example.org"), till.clock())
        yield one


@pytest.mark.parametrize("language", sorted(LANGUAGES))
async def test_the_mail_says_what_to_transfer_where_and_until_when(mailed: Mailed, language: str) -> None:
    await mailed.till.ledger.messages.put_contact(
        Contact(FAN, email="ada@example.org", locale=language), mailed.till.clock()
    )
    _, to = await mailed.transfer()
    ((_, text),) = await mailed.mails(twice=True)
    for part in (to.iban, to.reference, to.holder, to.bic):
        assert part in text
    assert "50" in text


async def test_the_mail_is_in_ordinary_words(mailed: Mailed) -> None:
    _, to = await mailed.transfer()
    ((subject, text),) = await mailed.mails()
    assert subject.startswith("Please send €50.00")
    assert f"Reference: {to.reference}" in text
    assert f"IBAN: {to.iban}, BIC: {to.bic}" in text
    assert "go back on sale" in text


async def test_reloads_notices_and_turns_of_the_worker_send_no_second_mail(mailed: Mailed) -> None:
    booking_id, to = await mailed.transfer()
    assert len(await mailed.mails()) == 1
    booking = await mailed.till.booking(booking_id)
    for notice in list(mailed.till.provider.notices) * 2:
        await mailed.till.checkout.handle_webhook(*notice)
    for _ in range(3):
        shown = await mailed.till.checkout.check(booking_id, booking.fence)
        assert shown.transfer == to
        mailed.till.clock.advance(3600)
        await mailed.till.restarted().turn()
    assert await mailed.mails() == []


async def test_the_page_shows_the_details_while_the_provider_is_away(mailed: Mailed) -> None:
    booking_id, to = await mailed.transfer()
    booking = await mailed.till.booking(booking_id)
    fuse = Fuse()
    checkout = Checkout(mailed.till.ledger, FusedProvider(mailed.till.provider, fuse), mailed.till.clock)  # type: ignore[arg-type]
    mailed.till.provider.down = True
    shown = await checkout.check(booking_id, booking.fence)
    assert (shown.state, shown.transfer) == (CheckoutState.AWAITED, to)
    assert fuse.trace == []


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", range(2, 5))
async def test_a_process_that_dies_after_the_providers_answer_costs_no_mail(
    mailed: Mailed, number: int, when: str
) -> None:
    """The next process finds the transfer at the provider, and its mail is written with the longer hold."""
    hold, fuse = await mailed.till.hold(fan=FAN), Fuse(number, when)
    ledger, provider = FusedLedger(mailed.till.ledger, fuse), FusedProvider(mailed.till.provider, fuse)
    checkout = Checkout(ledger, provider, mailed.till.clock, issuer=ISSUER)  # type: ignore[arg-type]
    with pytest.raises(Crash):
        await checkout.pay(hold.booking_id, hold.fence, "bank_transfer")
    await mailed.till.restarted().settle(for_s=60, step_s=10)
    ((subject, _),) = await mailed.mails()
    assert subject.startswith("Please send")
    assert (await mailed.till.booking(hold.booking_id)).is_ordered


@pytest.mark.parametrize(("days", "after_s"), [(5, 3 * DAY_S), (1, DAY_S // 2), (14, 12 * DAY_S)])
async def test_who_has_not_transferred_is_reminded_once_before_the_end(mailed: Mailed, days: int, after_s: int) -> None:
    """Two days before the end, or at half of the time."""
    await mailed.allow(days)
    booking_id, to = await mailed.transfer()
    assert len(await mailed.mails()) == 1
    mailed.till.clock.advance(after_s - 1)
    await mailed.till.turn()
    assert await mailed.mails() == []
    mailed.till.clock.advance(1)
    await mailed.till.turn()
    await mailed.till.restarted().turn()
    ((subject, text),) = await mailed.mails(twice=True)
    assert subject.startswith("Reminder: ")
    assert to.reference in text
    await mailed.till.settle(for_s=days * DAY_S - after_s - 60, step_s=6 * 3600)
    assert await mailed.mails() == []
    assert (await mailed.till.driver_payment(booking_id)).reminded_at_us


async def test_money_that_came_before_the_mails_were_sent_needs_neither(mailed: Mailed) -> None:
    booking_id, _ = await mailed.transfer()
    payment = await mailed.till.driver_payment(booking_id)
    mailed.till.provider.finish_money(payment.ref)
    await mailed.till.checkout.handle_webhook(*mailed.till.provider.notices[-1])
    assert (await mailed.till.booking(booking_id)).state is BookingState.CONFIRMED
    (only,) = await mailed.mails()
    assert "Please send" not in only[0]
    mailed.till.clock.advance(4 * DAY_S)
    await mailed.till.turn()
    assert await mailed.mails() == []


async def test_a_fan_who_pays_another_way_is_not_reminded_and_a_new_transfer_is_told_again(mailed: Mailed) -> None:
    booking_id, first = await mailed.transfer()
    booking = await mailed.till.booking(booking_id)
    await mailed.mails()
    await mailed.till.checkout.step_back(booking_id, booking.fence)
    again = await mailed.till.checkout.pay(booking_id, booking.fence, "bank_transfer")
    assert again.transfer is not None
    assert again.transfer.reference != first.reference
    ((_, text),) = await mailed.mails()
    assert again.transfer.reference in text
    await mailed.till.checkout.step_back(booking_id, booking.fence)
    await mailed.till.pay(booking_id, booking.fence, "pm_card_visa")
    mailed.till.clock.advance(4 * DAY_S)
    await mailed.till.turn()
    facts = [type(one) for one in await mailed.till.facts()]
    assert BankTransferReminded not in facts
    assert BankTransferAwaited not in facts


async def test_a_direct_debit_is_told_no_account(mailed: Mailed) -> None:
    hold = await mailed.till.hold(fan=FAN)
    await mailed.till.checkout.pay(hold.booking_id, hold.fence, "sepa_debit")
    mailed.till.provider.finish_action((await mailed.till.driver_payment(hold.booking_id)).ref)
    await mailed.till.checkout.check(hold.booking_id, hold.fence)
    mailed.till.clock.advance(4 * DAY_S)
    await mailed.till.turn()
    assert await mailed.mails() == []
