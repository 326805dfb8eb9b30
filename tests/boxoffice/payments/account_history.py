"""A random sale of three organisers at Adyen, two of whom have accounts of their own.

Fans pay by card and by iDEAL, give seats back and dispute what they paid. Processes die at any step; calls and notices
are lost, doubled and reordered; an organiser changes the account, and one is taken away for a while. One seed decides.
"""

import contextlib
import random
from typing import Any, Final

from frontrow.boxoffice.checkout.checkout import Checkout
from frontrow.boxoffice.checkout.reconciliation import Reconciler
from frontrow.boxoffice.events.model.event_changes import Editor
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.holds.model.holds import NewHold
from frontrow.boxoffice.payments.disputes import Disputes
from frontrow.boxoffice.payments.model.disputes import is_disputed
from frontrow.boxoffice.payments.model.payments import ENDED, PaymentState
from frontrow.boxoffice.payments.open_providers import OpenProviders
from frontrow.boxoffice.payments.payment_accounts import PaymentAccounts
from frontrow.boxoffice.refunds.model.refunds import RefundState
from frontrow.boxoffice.refunds.refunds import Refunds
from frontrow.core.errors import FrontrowError
from tests.boxoffice.checkout.till import ISSUER, Till
from tests.boxoffice.payments.adyen_server import MERCHANT, AdyenServer, Payment, provider_of
from tests.boxoffice.payments.crashes import Crash, Fuse, FusedLedger, FusedProvider
from tests.boxoffice.shop import shop_event

PRICE: Final = 1999
SEATS: Final = 10  # of each event
ACCOUNTS: Final = {"evt_hall": {"HallECOM", "NewHallECOM"}, "evt_club": {"ClubECOM"}, "evt_other": {MERCHANT}}
METHODS: Final = ("fan/visa", "fan/visa", "ideal", "ideal", "fan/3ds", "fan/declined")


class AccountHistory:
    """One seed's sale. `check` holds after every step, `check_at_rest` when everything has ended."""

    def __init__(self, till: Till, adyen: AdyenServer, seed: int) -> None:
        self.till, self.adyen, self.random = till, adyen, random.Random(seed)
        self.adyen.merchants |= set().union(*ACCOUNTS.values())
        self.provider = provider_of(adyen, till.ledger, till.clock)
        self.accounts = PaymentAccounts(till.ledger, OpenProviders(self.provider), till.clock)
        self.checkout, self.refunds = self.process(Fuse())
        self.reconciler = Reconciler(
            till.ledger, OpenProviders(self.provider), till.clock, self.checkout.driver, payees=self.accounts
        )
        self.bookings: list[str] = []
        self.shown: dict[str, str] = {}  # booking -> the bank's page that the fan was sent to
        self.disputes: list[tuple[str, Payment, int]] = []
        self.notices: list[bytes] = []  # those that may still come, or come again
        self.unheard: list[bytes] = []

    async def aclose(self) -> None:
        await self.provider.aclose()

    async def begin(self) -> None:
        for event_id in ACCOUNTS:
            event = shop_event(id=event_id, organiser_id=f"org_{event_id[4:]}", card_tries=2)
            await self.till.ledger.catalogue.put_event(event, self.till.clock())
        await self.accounts.put(Editor("operator", "org_hall"), "adyen", "HallECOM", 250)
        await self.accounts.put(Editor("operator", "org_club"), "adyen", "ClubECOM", 0)

    def process(self, fuse: Fuse) -> tuple[Checkout, Refunds]:
        """A process that dies at the fuse's step."""
        ledger: Any = FusedLedger(self.till.ledger, fuse)
        providers = OpenProviders(FusedAccounts(self.provider, fuse))
        checkout = Checkout(
            ledger,
            providers,
            self.till.clock,
            issuer=ISSUER,
            payees=self.accounts,
            listeners=[Disputes(self.till.ledger, self.till.clock)],
        )
        return checkout, Refunds(ledger, providers, self.till.clock)

    # What happens.

    async def step(self) -> None:
        acts = {
            self._buy: 24,
            self._at_bank: 14,
            self._come_back: 8,
            self._hear: 16,
            self._work: 14,
            self._refund: 10,
            self._leave: 4,
            self._dispute: 6,
            self._time: 8,
            self._trouble: 5,
            self._reconcile: 2,
        }
        (act,) = self.random.choices([*acts], [*acts.values()])
        with contextlib.suppress(FrontrowError, Crash):
            await act()
        self._collect()

    def _dying(self) -> tuple[Checkout, Refunds]:
        return self.process(Fuse(self.random.randrange(25), self.random.choice(["before", "after"])))

    async def _buy(self) -> None:
        booking_id, now_us = f"bkg_{len(self.bookings) + 1:026d}", self.till.clock()
        seats = tuple(self.random.sample(range(SEATS), self.random.choice([1, 2, 2, 3])))
        prices = (PRICE,) * len(seats)
        new = NewHold(booking_id, self.random.choice([*ACCOUNTS]), f"fan_{booking_id[-6:]}", seats, now_us,
                      now_us + 600_000_000, sum(prices), "EUR", prices)  # fmt: skip
        hold = await self.till.ledger.place_hold(new)
        self.bookings.append(booking_id)
        checkout, _ = self._dying()
        asked = await checkout.pay(hold.booking_id, hold.fence, self.random.choice(METHODS))
        if asked.action_url:
            self.shown[booking_id] = asked.action_url

    async def _at_bank(self) -> None:
        for one in list(self.adyen.redirects):
            if self.random.random() < 0.5:
                self.adyen.answer_redirect(one, success=self.random.random() < 0.85)

    async def _come_back(self) -> None:
        if self.shown:
            booking = await self._booking(self.random.choice([*self.shown]))
            answers = {"redirectResult": self.shown[booking.id].rpartition("/")[2]}
            await self._dying()[0].check(booking.id, booking.fence, answers)

    async def _hear(self) -> None:
        """Notices in any order, some again."""
        for body in self.random.choices(self.notices, k=4) if self.notices else []:
            if body in self.unheard:
                self.unheard.remove(body)
            with contextlib.suppress(Crash):
                await self._dying()[0].handle_webhook(body, {}, "adyen")

    async def _work(self) -> None:
        await self.till.sweeper.sweep()
        checkout, refunds = self._dying() if self.random.random() < 0.5 else (self.checkout, self.refunds)
        await checkout.work()
        await refunds.work()

    async def _refund(self) -> None:
        sold = [one for one in [await self._booking(name) for name in self.bookings] if one.state == "confirmed"]
        if sold:
            booking = self.random.choice(sold)
            some = self.random.sample(booking.seats, self.random.randint(1, len(booking.seats)))
            await self._dying()[1].refund(booking.id, booking.fence, some)

    async def _leave(self) -> None:
        if self.bookings:
            booking = await self._booking(self.random.choice(self.bookings))
            checkout, _ = self._dying()
            await (checkout.release if self.random.random() < 0.5 else checkout.step_back)(booking.id, booking.fence)

    async def _dispute(self) -> None:
        """A bank disputes what its fan has not got back; or it decides."""
        if self.disputes and self.random.random() < 0.5:
            self.close_dispute()
            return
        known = {one.psp for _, one, _ in self.disputes}
        paid = [one for one in self.adyen.payments.values() if one.captured and not one.refunded]
        paid = [one for one in paid if one.psp not in known]
        if paid:
            payment = self.random.choice(paid)
            amount = self.random.choice([payment.captured, PRICE])
            self.disputes.append((self.adyen.open_dispute(payment.psp, amount), payment, amount))

    def close_dispute(self) -> None:
        own, payment, amount = self.disputes.pop(self.random.randrange(len(self.disputes)))
        self.adyen.close_dispute(own, payment.psp, amount, won=self.random.random() < 0.5)

    async def _time(self) -> None:
        self.till.clock.advance(self.random.choice([1, 5, 31, 140, 620]))

    async def _trouble(self) -> None:
        what = self.random.choice(["lost", "500", "revoked", "given back", "another account"])
        if what == "revoked":
            self.adyen.revoked.add(self.random.choice(["HallECOM", "ClubECOM"]))
        elif what == "given back":
            self.adyen.revoked.clear()
        elif what == "another account":
            await self.accounts.put(Editor("operator", "org_hall"), "adyen", "NewHallECOM", 100)
        else:
            self.adyen.fail_next = [what]

    async def _reconcile(self) -> None:
        await self.reconciler.run()

    def _collect(self) -> None:
        self.notices += self.adyen.notices
        self.unheard += self.adyen.notices
        self.adyen.notices.clear()

    # The laws.

    async def heal(self) -> None:
        """Nothing fails any more, what Adyen has to say is said, banks decide."""
        self.adyen.fail_next, self.adyen.revoked = [], set()
        for _ in range(6):
            while self.disputes:
                self.close_dispute()
            for _ in range(8):
                self._collect()
                for body in self.unheard:
                    await self.checkout.handle_webhook(body, {}, "adyen")
                self.unheard.clear()
                await self.till.sweeper.sweep()
                await self.checkout.work()
                await self.refunds.work()
                self.till.clock.advance(90)
            await self.reconciler.run()
            self.till.clock.advance(3_600)

    async def check(self) -> None:
        """Nobody gave back more than was taken, and nobody has a ticket for which nothing was reserved or taken."""
        for one in self.adyen.payments.values():
            assert one.refunded <= one.captured
        for event_id, merchants in ACCOUNTS.items():
            mine = [one for one in self.adyen.payments.values() if one.merchant in merchants]
            backed = sum(one.amount["value"] if one.is_reserved else one.captured - one.refunded for one in mine)
            assert await self._worth(event_id) <= backed, event_id

    async def check_at_rest(self) -> None:
        """On each account: captured - refunded = value of the tickets that admit, and of what banks took for good."""
        for event_id, merchants in ACCOUNTS.items():
            mine = [one for one in self.adyen.payments.values() if one.merchant in merchants]
            kept = sum(one.captured - one.refunded for one in mine)
            assert kept == await self._worth(event_id) + await self._not_owed(event_id), event_id
            assert not [one for one in mine if one.is_reserved], f"money of {event_id} stays reserved"

    async def _of(self, event_id: str) -> list[Booking]:
        found = [await self._booking(name) for name in self.bookings]
        return [one for one in found if one.event_id == event_id]

    async def _worth(self, event_id: str) -> int:
        count = 0
        for booking in await self._of(event_id):
            tickets = await self.till.ledger.tickets.tickets_of(booking.id)
            count += len([one for one in tickets if one.state == "valid"])
        return PRICE * count

    async def _not_owed(self, event_id: str) -> int:
        """Of seats that were given back: what the fan's bank had taken already. Everything else was paid."""
        total = 0
        for booking in await self._of(event_id):
            payments = {one.id: one for one in await self.till.ledger.payments.payments_of(booking.id)}
            assert all(one.state in ENDED | {PaymentState.CAPTURED} for one in payments.values())
            disputed = is_disputed(await self.till.ledger.payments.disputes_of(booking.id))
            for refund in await self.till.ledger.payments.refunds_of(booking.id):
                if refund.state is RefundState.DONE or payments[refund.payment_id].state in ENDED:
                    continue
                assert disputed, refund
                assert refund.state in (RefundState.MOOT, RefundState.FAILED), refund
                total += refund.amount_minor
        return total

    async def _booking(self, booking_id: str) -> Booking:
        found = await self.till.ledger.booking(booking_id)
        assert found is not None
        return found

    async def sold(self) -> int:
        found = [await self._booking(name) for name in self.bookings]
        return len([one for one in found if one.state in (BookingState.CONFIRMED, BookingState.REFUNDED)])


class FusedAccounts(FusedProvider):
    """A provider whose calls are steps, for every account."""

    def __init__(self, inner: Any, fuse: Fuse) -> None:
        super().__init__(inner, fuse)
        self.for_account = lambda account: FusedProvider(inner.for_account(account), fuse)
