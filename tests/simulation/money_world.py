"""A little box office in virtual time, over the real ledger: fans hold, pay, refund, return, wait for offers and come
through the gate; the organiser refunds, moves and may cancel; the provider loses calls, refunds fail at once or later,
and processes die at any step. One seed decides. `check` and `check_at_rest` are the laws of money."""

import contextlib
import random
from collections import defaultdict
from typing import Any

from frontrow.boxoffice.adapters.payments.simulated import CARDS, LAPSES, Fault
from frontrow.boxoffice.checkout.checkout import Checkout
from frontrow.boxoffice.events.model.event_changes import Change
from frontrow.boxoffice.events.model.events import EventStatus
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.payments.model.payments import ENDED
from frontrow.boxoffice.refunds.model.refund_policy import RefundPolicy
from frontrow.boxoffice.refunds.model.refunds import RefundState
from frontrow.boxoffice.refunds.model.ticket_returns import ReturnState
from frontrow.boxoffice.refunds.refunds import Refunds
from frontrow.boxoffice.refunds.return_refunds import ReturnRefunds
from frontrow.boxoffice.refunds.ticket_returns import TicketReturns
from frontrow.boxoffice.tickets.model.tickets import Ticket, TicketState
from frontrow.core.errors import FrontrowError
from tests.boxoffice.checkout.office import ADA, Office, replace_event
from tests.boxoffice.checkout.till import ISSUER
from tests.boxoffice.payments.crashes import Crash, Fuse, FusedLedger, FusedProvider
from tests.boxoffice.shop import EVENT

SEATS = 12  # sections A and B of the small plan, all of one price
CARD_NAMES = ["pm_card_visa"] * 8 + [*CARDS, "pm_card_3ds", LAPSES]
STATUSES = ["succeeded"] * 6 + ["pending", "pending", "failed"]


class MoneyWorld:
    """One seed's history."""

    def __init__(self, office: Office, seed: int) -> None:
        self.office, self.random = office, random.Random(seed)
        self.provider, self.ledger = office.till.provider, office.ledger
        self.bookings: list[str] = []
        self.inside: dict[str, tuple[str, int]] = {}  # scan -> (ticket, seat) that a gate let in
        self.faulty = True
        self.cancelled_at = self.random.randrange(30, 90) if self.random.random() < 0.5 else -1
        self.provider.script = self._fault
        self.provider.refund_status = lambda found, known: self.random.choice(STATUSES)
        self.fans = 0

    def _fault(self, operation: str, key: str, number: int) -> Fault | None:
        if not self.faulty or self.random.random() > 0.2:
            return None
        return self.random.choice(list(Fault))

    async def begin(self) -> None:
        event = await self.ledger.catalogue.event(EVENT)
        policy = RefundPolicy(fee_per_seat_minor=self.random.choice([0, 350]))
        await self.ledger.catalogue.put_event(replace_event(event, refunds=policy), self.office.clock())
        self.faulty = False  # a sale that has begun well
        for seats in ((0, 1), (2,), (3, 4), (5,), (6, 7)):
            self.fans += 1
            self.bookings.append((await self.office.sell(f"fan{self.fans}", *seats))[0])
        self.faulty = True

    async def step(self, number: int) -> None:
        if number == self.cancelled_at:
            await self.office.cancel_event()
            return
        acts = [
            (9, self._time),
            (16, self._workers),
            (3, self._outage),
            (8, self._bank),
            (3, self._reconcile),
            (24, self._buy),
            (5, self._refund),
            (11, self._give_back),
            (9, self._reseat),
            (6, self._scan),
            (3, self._undo),
            (4, self._wait),
            (4, self._retry),
        ]
        act = self.random.choices([act for _, act in acts], [weight for weight, _ in acts])[0]
        with contextlib.suppress(FrontrowError, Crash):
            await act()

    # what happens

    async def _time(self) -> None:
        self.office.clock.advance(self.random.choice([1, 5, 31, 31, 140, 620]))

    async def _workers(self) -> None:
        await self.office.till.turn()
        await self.office.resale.sweep()
        await self.office.waiting.worker.sweep()
        if await self.ledger.organiser.cancellation(EVENT) is not None:
            await self.office.cancelling.work()

    async def _outage(self) -> None:
        self.provider.down = not self.provider.down

    async def _bank(self) -> None:
        """The bank answers, refunds end, webhooks come: late, twice, in any order, or never."""
        for ref in list(self.provider.objects):
            if self.random.random() < 0.5:
                self.provider.finish_action(ref)
        for ref, refund in list(self.provider.refunds.items()):
            if refund["status"] == "pending" and self.random.random() < 0.5:
                self.provider.finish_refund(ref, self.random.choice(["succeeded", "failed"]))
            elif refund["status"] == "succeeded" and self.random.random() < 0.05:
                self.provider.finish_refund(ref, "failed")
        for body, headers in self.random.choices(self.provider.notices, k=4) if self.provider.notices else []:
            with contextlib.suppress(FrontrowError):
                await self.office.checkout.handle_webhook(body, headers)

    async def _reconcile(self) -> None:
        await self.office.till.reconciler.run()

    def _process(self) -> tuple[Any, Any]:
        """A ledger and a provider as a process sees them that may die at one of its steps."""
        fuse = Fuse(self.random.randrange(40), self.random.choice(["before", "after"]))
        return FusedLedger(self.ledger, fuse), FusedProvider(self.office.till.guarded, fuse)

    async def _buy(self) -> None:
        self.fans += 1
        seats = self.random.sample(range(SEATS), self.random.choice([1, 1, 2, 3]))
        hold = await self.office.waiting.shop.hold(f"fan{self.fans}", *seats)
        self.bookings.append(hold.booking_id)
        ledger, provider = self._process()
        checkout = Checkout(
            ledger, provider, self.office.clock, seats=self.office.waiting.shop.holds.held, issuer=ISSUER
        )
        await checkout.pay(hold.booking_id, hold.fence, self.random.choice(CARD_NAMES))

    async def _sold(self) -> Booking | None:
        sold = [one for one in [await self.ledger.booking(b) for b in self.bookings] if one is not None]
        sold = [one for one in sold if one.state is BookingState.CONFIRMED]
        return self.random.choice(sold) if sold else None

    async def _refund(self) -> None:
        booking = await self._sold()
        if booking is None:
            return
        ledger, provider = self._process()
        refunds = Refunds(ledger, provider, self.office.clock, seats=self.office.waiting.shop.holds.held)
        some = self.random.sample(booking.seats, self.random.randint(1, len(booking.seats)))
        if self.random.random() < 0.5:
            await refunds.refund(booking.id, booking.fence, some)
        else:
            await refunds.override(booking.id, some)
        await refunds.work()

    async def _give_back(self) -> None:
        booking = await self._sold()
        if booking is None:
            return
        some = self.random.sample(booking.seats, self.random.randint(1, len(booking.seats)))
        if self.random.random() < 0.2:  # the process dies after the intent
            await self.ledger.returns.begin_return(booking.id, booking.fan, booking.fence, some, self.office.clock())
            return
        shop = self.office.waiting.shop
        ledger, _ = self._process()
        resale = TicketReturns(shop.sales, ledger, shop.holds.held, ReturnRefunds(ledger), self.office.clock)
        await resale.give_back(booking.id, booking.fan, booking.fence, some)
        await resale.sweep()

    async def _reseat(self) -> None:
        booking = await self._sold()
        if booking is not None:
            await self.office.reseat(booking.id, self.random.choice(booking.seats), self.random.randrange(SEATS))

    async def _scan(self) -> None:
        booking = await self._sold()
        if booking is not None:
            ticket = self.random.choice(await self.ledger.tickets.tickets_of(booking.id))
            scan = f"scn_{self.random.randrange(10**9)}"
            if await self.office.scan(booking.id, ticket.seat_index, scan) == []:
                self.inside[scan] = (ticket.id, ticket.seat_index)

    async def _undo(self) -> None:
        if self.inside:
            scan = self.random.choice(list(self.inside))
            change = Change(ADA, "undo_scan", EVENT, self.office.clock())
            if await self.ledger.organiser.undo_admission(scan, self.inside[scan][0], change):
                del self.inside[scan]

    async def _wait(self) -> None:
        """Somebody waits for a seat, or takes the offer that came."""
        waiting = self.office.waiting.list
        fan = f"waits{self.random.randrange(3)}"
        for offer in await waiting.offers(EVENT, fan):
            claimed = await waiting.claim(offer.id, fan)
            self.bookings.append(claimed.booking_id)
            await self.office.checkout.pay(claimed.booking_id, claimed.fence, "pm_card_visa")
            return
        await waiting.join(EVENT, fan, 1)

    async def _retry(self) -> None:
        for booking_id in self.bookings:
            for refund in await self.ledger.payments.refunds_of(booking_id):
                if refund.state is RefundState.FAILED and self.random.random() < 0.7:
                    await self.office.refunds.retry(booking_id, refund.id, self.office.note)

    # the laws

    async def heal(self) -> None:
        """Nothing fails any more; everything that goes on by itself goes on, and the organiser tries again."""
        self.faulty, self.provider.down = False, False
        self.provider.refund_status = lambda found, known: "succeeded"
        for ref, refund in list(self.provider.refunds.items()):
            if refund["status"] == "pending":
                self.provider.finish_refund(ref, "succeeded")
        for _ in range(3):
            self.office.clock.advance(3_700)
            await self.office.till.settle(360, 60)
            await self.office.resale.sweep()
            await self.office.waiting.worker.sweep()
            await self.office.till.reconciler.run()
            if await self.ledger.organiser.cancellation(EVENT) is not None:
                await self.office.finish_cancelling()
            for booking_id in self.bookings:
                for refund in await self.ledger.payments.refunds_of(booking_id):
                    if refund.state is RefundState.FAILED:
                        await self.office.refunds.retry(booking_id, refund.id, self.office.note)
        await self.office.till.settle(360, 60)

    async def check(self) -> None:
        """Every seat admits at most once, who is inside has paid, and never more went back than was taken."""
        if (await self.ledger.catalogue.event(EVENT)).status is not EventStatus.CANCELLED:
            seats = [seat for _, seat in self.inside.values()]
            assert len(seats) == len(set(seats)), f"two people are inside for one seat: {sorted(seats)}"
            for ticket_id, seat in self.inside.values():
                ticket = await self.ledger.tickets.ticket(ticket_id)
                assert ticket is not None
                assert ticket.state is TicketState.VALID, f"somebody is inside on seat {seat}, which is for sale again"
        for ref, found in self.provider.objects.items():
            assert self._given(ref) <= found["amount_received"], f"{ref} gave back more than it took"

    def _given(self, ref: str) -> int:
        refunds = self.provider.refunds.values()
        return sum(one["amount"] for one in refunds if one["payment_intent"] == ref and one["status"] != "failed")

    async def check_at_rest(self) -> None:
        """For every fan: captured - refunded = value of the tickets that still admit, fees kept, and seats that wait in
        the pool for a buyer. Nothing is unfinished."""
        balance: defaultdict[str, int] = defaultdict(int)
        worth: defaultdict[str, int] = defaultdict(int)
        for ref, found in self.provider.objects.items():
            booking = await self._booking(found["metadata"]["booking"])
            balance[booking.fan] += found["amount_received"] - self._given(ref)
            assert found["status"] in ("succeeded", "canceled"), f"{ref} still holds money: {found['status']}"
        for booking_id in self.bookings:
            booking = await self._booking(booking_id)
            worth[booking.fan] += await self._worth(booking)
            await self._check_finished(booking)
        wrong = {fan: (balance[fan], worth[fan]) for fan in balance.keys() | worth.keys() if balance[fan] != worth[fan]}
        assert not wrong, f"(paid and not given back, worth) of {wrong}"
        sold = {seat.seat_index async for seat in self.ledger.active_seats(EVENT, 0) if seat.state == "confirmed"}
        listed = {one.seat_index for one in await self.ledger.returns.returns_in(ReturnState.LISTED, 1_000)}
        assert not sold & listed, f"somebody sits on returned seats that were never paid back: {sold & listed}"
        if (await self.ledger.catalogue.event(EVENT)).status is EventStatus.CANCELLED:
            assert not await self.ledger.live_bookings(EVENT, "", 10), "a cancelled event has bookings"
            assert not listed, f"returned seats of a cancelled event were never paid back: {listed}"

    async def _booking(self, booking_id: str) -> Booking:
        found = await self.ledger.booking(booking_id)
        assert found is not None
        return found

    async def _worth(self, booking: Booking) -> int:
        prices = await self.ledger.payments.seat_prices(booking.id)
        valid = [one for one in await self.ledger.tickets.tickets_of(booking.id) if one.state is TicketState.VALID]
        if booking.state is BookingState.CONFIRMED and await self._never_paid(booking, valid):
            return 0
        refunds = await self.ledger.payments.refunds_of(booking.id)
        pool = [one for one in await self.ledger.returns.returns_of(booking.id) if one.state is ReturnState.LISTED]
        fees = sum(one.fee_minor for one in refunds if one.state is RefundState.DONE)
        return sum(prices[one.seat_index] for one in valid) + sum(one.price_minor for one in pool) + fees

    async def _never_paid(self, booking: Booking, valid: list[Ticket]) -> bool:
        """Let in while the bank thought, then it said no: the one debt there can be; the reconciler names it."""
        payments = await self.ledger.payments.payments_of(booking.id)
        if not payments or payments[-1].state not in ENDED:
            return False
        assert any(one.scanned_at_us for one in valid), f"{booking.id} has seats without money"
        report = await self.office.till.reconciler.run()
        assert f"booking {booking.id}: was let in and never paid" in report.problems
        return True

    async def _check_finished(self, booking: Booking) -> None:
        payments = await self.ledger.payments.payments_of(booking.id)
        assert all(one.retry_at_us == 0 for one in payments), payments
        refunds = await self.ledger.payments.refunds_of(booking.id)
        assert {one.state for one in refunds} <= {RefundState.DONE, RefundState.MOOT}, refunds
        returns = {one.state for one in await self.ledger.returns.returns_of(booking.id)}
        assert returns <= {ReturnState.LISTED, ReturnState.REFUNDED, ReturnState.VOID}, returns
        valid = [
            one.seat_index for one in await self.ledger.tickets.tickets_of(booking.id) if one.state is TicketState.VALID
        ]
        assert valid == (list(booking.seats) if booking.state is BookingState.CONFIRMED else []), booking.id
