"""Random simulated histories: money is conserved after every step, and exact at rest (N4, F2, F4, F5, B7, B12).

Each seed is a little sale with faults on a quarter of all provider calls: lost requests, lost replies, stored 500s,
429s, outages, processes dying at any step, webhooks late, twice or never, holds that end while the bank thinks,
browsers that confirm, decline and mistype on their own, fans who give the seats back or want another card. Every third
payment is by a method of another family: paid at once, awaited for days, or reserved on a bank's page; banks pay, fail
to, and sometimes pay for what was cancelled.
`FRONTROW_SEEDS=5000` runs more of them.
"""

import contextlib
import os
import random
from pathlib import Path

import pytest

from frontrow.boxoffice.adapters.payments.simulated import CARDS, LAPSES, Fault
from frontrow.boxoffice.checkout.checkout import Checkout, CheckoutResult
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.payments.model.payment_rules import PaymentRules
from frontrow.boxoffice.refunds.refunds import Refunds
from frontrow.core.errors import FrontrowError
from tests.boxoffice.checkout.till import EVENT, ISSUER, Till, assert_money, open_till, reserved_objects
from tests.boxoffice.payments.crashes import Crash, Fuse, FusedLedger, FusedProvider, pay_although_void
from tests.boxoffice.shop import shop_event

SEEDS = int(os.environ.get("FRONTROW_SEEDS", "24"))
STEPS = 40
SEATS = 12
METHODS = ["pm_card_visa"] * 6 + [*CARDS, "pm_card_3ds", "pm_card_3ds_declined", LAPSES]
OTHERS = ["ideal", "ideal", "twint", "klarna", "google_pay", "sepa_debit", "bank_transfer", "bank_transfer"]


class History:
    """One seed's sale."""

    def __init__(self, till: Till, seed: int) -> None:
        self.till, self.random = till, random.Random(seed)
        self.bookings: list[tuple[str, int]] = []
        self.shown: list[str] = []  # payments whose page was open in a browser
        self.faulty = True
        till.provider.script = self.fault

    def fault(self, operation: str, key: str, number: int) -> Fault | None:
        if not self.faulty or self.random.random() > 0.25:
            return None
        return self.random.choice(list(Fault))

    async def step(self) -> None:
        till, chance = self.till, self.random.random()
        if chance < 0.15:
            till.clock.advance(self.random.choice([1, 5, 15, 31, 140, 620]))
        elif chance < 0.30:
            await till.turn()
        elif chance < 0.36:
            till.provider.down = not till.provider.down
        elif chance < 0.44:
            await self.webhooks()
        elif chance < 0.52:
            self.confirm_in_browser()
        elif chance < 0.55:
            await till.reconciler.run()
        elif chance < 0.72 or not self.bookings:
            with contextlib.suppress(FrontrowError):
                seats = self.random.sample(range(SEATS), self.random.choice([1, 1, 2, 3]))
                hold = await till.hold(*seats, hold_s=self.random.choice([60, 600]))
                self.bookings.append((hold.booking_id, hold.fence))
        else:
            await self.act(*self.random.choice(self.bookings))

    async def act(self, booking_id: str, fence: int) -> None:
        """A fan does something in a process that may die at any of its steps."""
        fuse = Fuse(self.random.randrange(12), self.random.choice(["before", "after"]))
        ledger, provider = FusedLedger(self.till.ledger, fuse), FusedProvider(self.till.guarded, fuse)
        checkout = Checkout(ledger, provider, self.till.clock, issuer=ISSUER)  # type: ignore[arg-type]
        refunds = Refunds(ledger, provider, self.till.clock)  # type: ignore[arg-type]
        booking = await self.till.booking(booking_id)
        with contextlib.suppress(FrontrowError, Crash):
            if booking.state is BookingState.CONFIRMED:
                some = self.random.sample(booking.seats, self.random.randint(1, len(booking.seats)))
                await refunds.refund(booking_id, fence, some)
                await refunds.work()
            else:
                wish = self.random.choice(["begin", "begin", "begin", "pay", "pay", "check", "release", "step_back"])
                more = [self.random.choice(METHODS + OTHERS)] if wish == "pay" else []
                answer = await getattr(checkout, wish)(booking_id, fence, *more)
                if isinstance(answer, CheckoutResult) and answer.client_secret and answer.payment:
                    self.shown.append(answer.payment.ref)

    def confirm_in_browser(self) -> None:
        """A fan puts a card to a payment page that is open somewhere, perhaps for a hold that is long over."""
        if self.shown:
            ref = self.random.choice(self.shown)
            with contextlib.suppress(FrontrowError):
                self.till.provider.confirm_in_browser(ref, self.random.choice(METHODS + OTHERS))

    async def webhooks(self) -> None:
        for ref in list(self.till.provider.objects):
            if self.random.random() < 0.5:
                self.till.provider.finish_action(ref, agreed=self.random.random() < 0.8)
            if self.random.random() < 0.3:
                self.till.provider.finish_money(ref, failed=self.random.random() < 0.2)
            found = self.till.provider.objects[ref]
            cancelled = found["status"] == "canceled" and found["payment_method"] in ("ideal", "twint")
            if cancelled and self.random.random() < 0.1:
                pay_although_void(self.till.provider, ref)
        told = self.random.choices(self.till.provider.notices, k=3) if self.till.provider.notices else []
        for body, signature in told:  # any order, some twice, some never
            with contextlib.suppress(FrontrowError):  # older ones are out of tolerance
                await self.till.checkout.handle_webhook(body, signature)


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_money_is_conserved(seed: int, tmp_path: Path) -> None:
    async with open_till(tmp_path) as till:
        rules = PaymentRules(pay_days=seed % 2 * 5)
        event = shop_event(id=EVENT, card_tries=1 + seed % 3, payments=rules)
        await till.ledger.catalogue.put_event(event, till.clock())
        history = History(till, seed)
        for _ in range(STEPS):
            with contextlib.suppress(FrontrowError):
                await history.step()
            await assert_money(till)
        history.faulty, till.provider.down = False, False
        till.clock.advance(700)
        await till.settle(for_s=480, step_s=60)
        for ref in till.provider.objects:  # no money is awaited for ever
            till.provider.finish_action(ref)
            till.provider.finish_money(ref, failed=seed % 4 == 0)
        await till.reconciler.run()
        till.clock.advance(6 * 86_400)
        await till.settle(for_s=480, step_s=60)
        await till.reconciler.run()
        await assert_money(till, at_rest=True)
        report = await till.reconciler.run()
        assert report.problems == []
        assert report.difference_minor == {}
        assert reserved_objects(till) == [], "the reconciler leaves money reserved"
