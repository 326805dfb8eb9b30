"""Every way to pay, every crash point, and notices that are off, late, doubled, forged or reordered (issue 27).

Each ends with tickets and one charge of their value, or with neither and nothing reserved. The providers are Stripe's
and Adyen's adapters over HTTP with the stand-ins that are written from their public documentation. A point is the
moment before a call or a commit: dying after it is the same as dying before the next one.
"""

import contextlib
import itertools
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from frontrow.boxoffice.checkout.checkout import Checkout
from frontrow.boxoffice.checkout.reconciliation import Reconciler
from frontrow.boxoffice.facts.model import LatePaymentReturned
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState, HoldEnded
from frontrow.boxoffice.holds.model.holds import PlacedHold
from frontrow.boxoffice.payments.model.payment_methods import MethodFamily
from frontrow.boxoffice.payments.model.payment_rules import DAY_US, PaymentRules
from frontrow.boxoffice.payments.model.payments import ENDED, Payment, PaymentState
from frontrow.boxoffice.payments.payment_driver import PaymentDriver
from frontrow.boxoffice.refunds.model.refunds import RefundState
from frontrow.boxoffice.refunds.refunds import Refunds
from frontrow.core.errors import FrontrowError, Unauthorised
from tests.boxoffice.checkout.till import EVENT, ISSUER, Till, open_till
from tests.boxoffice.payments.banks import WAYS, AdyenBank, Bank, Way, a_bank
from tests.boxoffice.payments.crashes import Crash, Fuse, FusedLedger, FusedProvider
from tests.boxoffice.shop import shop_event

KINDS = ("in order", "off", "late", "doubled", "forged", "reordered")
LOST = ("off", "forged")
STORIES = ("sold", "too late")
PRICE = 5000
LATE_S = 120


class Sale:
    """A till whose money is with one bank, and what people do there."""

    def __init__(self, till: Till, bank: Bank, way: Way) -> None:
        self.till, self.bank, self.way = till, bank, way
        self.waiting: list[tuple[int, bytes]] = []  # (from when it may come, the notice)
        self.lost: list[bytes] = []
        self.kind = "in order"
        self.url = ""  # where the fan was sent to
        self.restart()

    def restart(self, fuse: Fuse | None = None) -> None:
        """A process that knows nothing but the ledger and the provider; with a fuse, one that will die."""
        ledger: Any = FusedLedger(self.till.ledger, fuse) if fuse else self.till.ledger
        provider: Any = FusedProvider(self.bank.provider, fuse) if fuse else self.bank.provider
        self.checkout = Checkout(ledger, provider, self.till.clock, issuer=ISSUER)
        self.refunds = Refunds(ledger, provider, self.till.clock)
        self.reconciler = Reconciler(ledger, provider, self.till.clock, self.checkout.driver)

    async def hear(self) -> None:
        """Hand over the notices that are due, as this kind of network does."""
        now_us = self.till.clock()
        pause_us = LATE_S * 1_000_000 if self.kind == "late" else 0
        self.waiting += [(now_us + pause_us, told) for told in self.bank.take_notices()]
        due = [one for one in self.waiting if one[0] <= now_us]
        if self.kind == "reordered":
            due.reverse()
        for one in due:
            told = one[1]
            if self.kind == "forged":
                with pytest.raises(Unauthorised):
                    await self.checkout.handle_webhook(self.bank.forge(told), self.bank.headers(told))
            if self.kind in LOST:
                self.lost.append(told)
            else:
                for _ in range(2 if self.kind == "doubled" else 1):
                    await self.checkout.handle_webhook(told, self.bank.headers(told))
            self.waiting.remove(one)  # one whose process died before its answer comes again

    async def work(self) -> None:
        await self.till.sweeper.sweep()
        await self.checkout.work()
        await self.refunds.work()

    async def settle(self, for_s: int, step_s: int = 15) -> None:
        """Time passes: workers work, and people at their banks go on whatever happens to us."""
        for _ in range(0, for_s, step_s):
            await self.work()
            self.bank.answer()
            await self.hear()
            self.till.clock.advance(step_s)
        await self.work()

    # What a fan does.

    async def choose(self, hold: PlacedHold) -> None:
        """Up to the page of the bank, or the form of the provider."""
        event = await self.till.ledger.catalogue.event(EVENT)
        if self.way.in_form:
            opened = await self.checkout.begin(hold.booking_id, hold.fence, event=event)
            assert opened.payment is not None
            self.ref = opened.payment.ref
            return
        asked = await self.checkout.pay(hold.booking_id, hold.fence, self.way.method)
        self.url = asked.action_url

    async def agree(self, hold: PlacedHold) -> None:
        """In the form and on the bank's page, and back to the shop's."""
        if self.way.in_form:
            self.bank.give_to_form(self.ref, self.way.method)
        answers = self.bank.answer(self.url)
        await self.hear()
        await self.checkout.check(hold.booking_id, hold.fence, answers)

    async def sold(self, hold: PlacedHold) -> None:
        """In time, and one of the two seats is given back."""
        await self.choose(hold)
        await self.agree(hold)
        if self.way.is_slow:
            self.till.clock.advance(3 * 86_400)
            self.bank.pay_awaited()
            await self.hear()
        await self.checkout.work()
        await self.hear()
        if (await self.till.booking(hold.booking_id)).state is not BookingState.CONFIRMED:
            self.till.clock.advance(LATE_S)  # nothing was told: it is read, and told at last
            await self.hear()
            await self.checkout.work()
        await self.refunds.refund(hold.booking_id, hold.fence, hold.seats[:1])
        await self.refunds.work()
        await self.hear()

    async def too_late(self, hold: PlacedHold) -> None:
        """The fan, or the fan's bank, pays after the hold."""
        await self.choose(hold)
        await self.hear()
        if self.way.is_slow:
            await self.agree(hold)
            self.till.clock.advance(6 * 86_400)
        else:
            self.till.clock.advance(601)
        await self.till.sweeper.sweep()
        if not self.way.is_slow:
            with contextlib.suppress(HoldEnded):
                await self.agree(hold)
        self.bank.pay_awaited()
        await self.hear()
        with contextlib.suppress(HoldEnded):
            await self.checkout.check(hold.booking_id, hold.fence, self.bank.answer(self.url))
        await self.work()
        await self.hear()

    async def play(self, story: str, hold: PlacedHold) -> None:
        await (self.sold(hold) if story == "sold" else self.too_late(hold))

    async def go_on(self, story: str, hold: PlacedHold) -> None:
        """What still happens after a process died: the fan looks at the page again, banks pay what is awaited."""
        with contextlib.suppress(FrontrowError):
            await self.checkout.check(hold.booking_id, hold.fence, self.bank.answer(self.url))
        await self.settle(60)
        if self.way.is_slow:
            self.till.clock.advance((6 if story == "too late" else 3) * 86_400)
            self.bank.pay_awaited()
            await self.settle(60)
            await self.settle(7 * 3600, 3 * 3600)  # awaited money is looked for every six hours
        await self.settle(660, 60)
        await self.settle(60)

    async def hear_again(self) -> None:
        """A provider goes on sending what was not accepted, for days. Only Adyen's results cannot be had in another
        way; until then nobody has a ticket without a charge."""
        lost, self.lost = self.lost, []
        kind, self.kind = self.kind, "in order"
        for told in lost:
            await self.checkout.handle_webhook(told, self.bank.headers(told))
        await self.settle(120)
        self.kind = kind

    # The law.

    async def check_no_free_ticket(self, hold: PlacedHold) -> None:
        booking, found = await self.till.booking(hold.booking_id), self.bank.charges(hold.booking_id)
        valid = [one for one in await self.till.ledger.tickets.tickets_of(booking.id) if one.state == "valid"]
        reserved = any(one.reserved for one in found)
        assert reserved or sum(one.captured - one.refunded for one in found) >= PRICE * len(valid)

    async def check_money(self, hold: PlacedHold) -> BookingState:
        """Tickets and one charge of their value, or neither and nothing reserved."""
        booking = await self.till.booking(hold.booking_id)
        found = self.bank.charges(hold.booking_id)
        kept = [one.captured - one.refunded for one in found if one.captured != one.refunded]
        valid = [one for one in await self.till.ledger.tickets.tickets_of(booking.id) if one.state == "valid"]
        sold = booking.state is BookingState.CONFIRMED
        assert kept == ([booking.amount_minor] if sold else []), (booking.state, found)
        assert len(valid) == (len(booking.seats) if sold else 0)
        assert not [one for one in found if one.reserved], "money stays reserved"
        return booking.state

    async def check_rest(self, hold: PlacedHold) -> None:
        """Nothing is unfinished, and no seat is kept for nobody."""
        booking = await self.till.booking(hold.booking_id)
        payments = await self.till.ledger.payments.payments_of(hold.booking_id)
        assert [one for one in payments if one.retry_at_us or one.state not in ENDED | {PaymentState.CAPTURED}] == []
        refunds = await self.till.ledger.payments.refunds_of(hold.booking_id)
        assert {one.state for one in refunds} <= {RefundState.DONE, RefundState.MOOT}
        assert booking.state not in (BookingState.HELD, BookingState.PAYING)
        if booking.state is not BookingState.CONFIRMED:
            free = await self.till.hold(*hold.seats)  # anybody can have the seats
            await self.checkout.release(free.booking_id, free.fence)

    async def check_books(self) -> None:
        report = await self.reconciler.run()
        assert (report.problems, report.difference_minor, report.wrong_accounts) == ([], {}, [])


@contextlib.asynccontextmanager
async def open_sale(way: Way, folder: Path) -> AsyncIterator[Sale]:
    async with open_till(folder) as till, a_bank(way, till.ledger, till.clock) as bank:
        rules, show_us = PaymentRules(pay_days=5), till.clock() + 3_000 * DAY_US
        event = shop_event(id=EVENT, card_tries=1, payments=rules, starts_at_us=show_us)
        await till.ledger.catalogue.put_event(event, till.clock())
        yield Sale(till, bank, way)


async def walk(way: Way, story: str, kind: str, folder: Path) -> list[BookingState]:
    """Die at each point of the story, the last time at none. Returns how each booking ended."""
    ends = []
    async with open_sale(way, folder) as sale:
        sale.kind, points = kind, 0
        for number in itertools.count(-1):
            hold = await sale.till.hold(2 * number + 10, 2 * number + 11)
            fuse = Fuse(number, "before")
            sale.restart(fuse)
            with contextlib.suppress(Crash):
                await sale.play(story, hold)
            points = max(points, len(fuse.trace))
            sale.restart()
            await sale.go_on(story, hold)
            if way.provider == "adyen" and kind in LOST:
                await sale.check_no_free_ticket(hold)
                await sale.hear_again()
            ends.append(await sale.check_money(hold))
            await sale.check_rest(hold)
            if number == points:
                break
        await sale.check_books()
    return ends


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("way", WAYS, ids=str)
async def test_every_crash_point_ends_with_a_ticket_and_one_charge_or_neither(
    way: Way, story: str, kind: str, tmp_path: Path
) -> None:
    ends = await walk(way, story, kind, tmp_path)
    at_once = not way.in_form and way.family is MethodFamily.RESERVE  # its money cannot come late: nobody waits for it
    assert len(ends) > 4
    assert ends[0] == ends[-1] == (BookingState.CONFIRMED if story == "sold" or at_once else BookingState.EXPIRED)


def keeps_late_money(patch: pytest.MonkeyPatch) -> None:
    """Money that came for a booking that is over stays where it is."""

    async def keep(self: PaymentDriver, booking: Booking, payment: Payment) -> Payment:
        return payment

    patch.setattr(PaymentDriver, "_refund_late", keep)


def forgets_what_it_began(patch: pytest.MonkeyPatch) -> None:
    """No worker goes on with what another process left."""

    async def nothing(self: Checkout) -> int:
        return 0

    patch.setattr(Checkout, "work", nothing)


@pytest.mark.parametrize(
    ("canary", "way", "story"),
    [(keeps_late_money, WAYS[4], "too late"), (forgets_what_it_began, WAYS[0], "sold")],
    ids=["late money", "no worker"],
)
async def test_the_walk_catches_a_checkout(
    canary: Callable[[pytest.MonkeyPatch], None],
    way: Way,
    story: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    canary(monkeypatch)
    with pytest.raises(AssertionError):
        await walk(way, story, "in order", tmp_path)


@pytest.mark.parametrize("found_by", ["notice", "read"])
@pytest.mark.parametrize("way", [one for one in WAYS if one.in_form or one.family is not MethodFamily.RESERVE], ids=str)
async def test_money_after_the_holds_end_is_back_within_a_minute_of_the_notice_or_the_next_read(
    way: Way, found_by: str, tmp_path: Path
) -> None:
    async with open_sale(way, tmp_path) as sale:
        hold = await sale.till.hold(1, 2)
        await sale.choose(hold)
        if way.is_slow:
            await sale.agree(hold)
        booking = await sale.till.booking(hold.booking_id)
        sale.till.clock.now_us = booking.hold_expires_at_us
        if way.in_form and not way.is_slow:
            sale.bank.give_to_form(sale.ref, way.method)
        answers = sale.bank.answer(sale.url)
        sale.bank.pay_awaited()
        assert any(one.captured or one.reserved for one in sale.bank.charges(hold.booking_id))
        if found_by == "notice":
            await sale.hear()
        else:
            sale.kind = "off"
            payment = await sale.till.driver_payment(hold.booking_id)
            sale.till.clock.now_us = max(sale.till.clock(), payment.retry_at_us)
            with contextlib.suppress(HoldEnded):  # Adyen's payments are read through the fan's browser alone
                await sale.checkout.check(hold.booking_id, hold.fence, answers)
        found_us = sale.till.clock()
        while any(one.reserved or one.captured != one.refunded for one in sale.bank.charges(hold.booking_id)):
            assert sale.till.clock() < found_us + 60_000_000, "a minute is over"
            await sale.work()
            await sale.hear()
            sale.till.clock.advance(5)
        await sale.work()
        assert await sale.check_money(hold) is BookingState.EXPIRED
        told = [one for one in await sale.till.facts() if isinstance(one, LatePaymentReturned)]
        assert [one.amount_minor for one in told] == [2 * PRICE]


async def test_a_fan_who_comes_back_from_the_bank_after_the_payment_was_given_up_has_the_money_again(
    tmp_path: Path,
) -> None:
    """Adyen's notice is lost, and its payments cannot be read: the fan's browser alone brings the news."""
    way = Way("adyen", "ideal", MethodFamily.AT_ONCE)
    async with open_sale(way, tmp_path) as sale:
        sale.kind = "off"
        hold = await sale.till.hold(1, 2)
        await sale.choose(hold)
        sale.till.clock.advance(601)
        await sale.work()
        assert (await sale.till.driver_payment(hold.booking_id)).state is PaymentState.VOIDED
        answers = sale.bank.answer(sale.url)
        for _ in range(3):  # and reloads the page
            with pytest.raises(HoldEnded):
                await sale.checkout.check(hold.booking_id, hold.fence, answers)
        assert await sale.check_money(hold) is BookingState.EXPIRED
        assert [type(one) for one in await sale.till.facts()].count(LatePaymentReturned) == 1


@pytest.mark.parametrize("pays", ["the first", "both"])
async def test_a_return_from_a_page_that_was_left_counts_for_the_payment_of_that_page(
    pays: str, tmp_path: Path
) -> None:
    """The fan opens the bank's page twice, perhaps at two prices, and pays on the first one."""
    way = Way("adyen", "ideal", MethodFamily.AT_ONCE)
    async with open_sale(way, tmp_path) as sale:
        hold = await sale.till.hold(1, 2)
        await sale.choose(hold)
        left = sale.url
        await sale.checkout.step_back(hold.booking_id, hold.fence)
        await sale.choose(hold)
        assert isinstance(sale.bank, AdyenBank)
        answers = {"redirectResult": sale.bank.server.answer_redirect(left)}
        await sale.checkout.check(hold.booking_id, hold.fence, answers)
        assert (await sale.till.booking(hold.booking_id)).state is BookingState.PAYING
        if pays == "both":
            await sale.agree(hold)
        else:
            sale.bank.server.redirects.clear()  # nobody goes to the second page
        await sale.settle(60)
        await sale.settle(660, 60)
        state = await sale.check_money(hold)
        assert state is (BookingState.CONFIRMED if pays == "both" else BookingState.EXPIRED)
        assert [type(one) for one in await sale.till.facts()].count(LatePaymentReturned) == 1
        await sale.check_books()
