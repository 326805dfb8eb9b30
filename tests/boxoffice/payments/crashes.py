"""Every crash point of the money services: before and after each foreign call and each commit, by scenario (F5).

A scenario is a purchase (or refund) whose steps are listed in order; the recorder proves that the list is complete. At
a point the process dies: `Crash` in the simulation, SIGKILL in tests/faults. Then a new process, which knows nothing
but the ledger and the provider, must find the right end within 60 s.
"""

import contextlib
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any

from frontrow.boxoffice.adapters.payments.simulated import LAPSES
from frontrow.boxoffice.holds.model.bookings import BookingState, HoldEnded
from frontrow.boxoffice.payments.model.payments import Payment
from frontrow.boxoffice.payments.model.provider_intents import NewIntent
from frontrow.boxoffice.payments.model.retry_schedule import RETRIES_S
from frontrow.boxoffice.refunds.model.refunds import Refund

CARD = "pm_card_visa"
CALLS = ("create", "authorise", "capture", "void", "refund")

STEPS = {
    "sold": [
        "commit begin_payment creating",
        "call create",
        "commit confirm capturing",
        "call capture",
        "commit captured",
    ],
    "sold in two calls": [
        "commit begin_payment creating",
        "call create",
        "commit authorising",
        "call authorise",
        "commit confirm capturing",
        "call capture",
        "commit captured",
    ],
    "declined": [
        "commit begin_payment creating",
        "call create",
        "commit declined",
        "commit decline declined",
        "call void",
        "commit declined",
    ],
    "paid in the browser": ["commit authorised", "commit confirm capturing", "call capture", "commit captured"],
    "given back": ["commit withdraw voiding", "call void", "commit voided"],
    "late": [
        "commit begin_payment creating",
        "call create",
        "commit voiding",
        "call void",
        "commit voided",
    ],
    "after an outage": [
        "commit begin_payment creating",
        "call create",
        "commit creating",
        "call create",
        "commit confirm capturing",
        "call capture",
        "commit captured",
    ],
    "lapsed": [
        "commit begin_payment creating",
        "call create",
        "commit confirm capturing",
        "call capture",
        "commit lapsed",
        "commit creating",
        "commit lapsed",
        "call create",
        "commit capturing",
        "call capture",
        "commit lapsed",
        "commit creating",
        "commit lapsed",
        "call create",
        "commit capturing",
        "call capture",
        "commit lapsed",
        "commit cancel lapsed",
    ],
    "given back before the capture": [
        "commit refund asked",
        "call capture",
        "commit captured",
        "call refund",
        "commit refund done",
    ],
    "paid at once": [
        "commit begin_payment creating",
        "call create",
        "commit action",
        "commit action",
        "commit captured",
        "commit confirm captured",
    ],
    "paid at once, too late": [
        "commit begin_payment creating",
        "call create",
        "commit action",
        "commit action",
        "commit captured",
        "commit captured",
        "commit refund asked",
        "commit captured",
        "call refund",
        "commit refund done",
    ],
    "wallet": [
        "commit begin_payment creating",
        "call create",
        "commit confirm capturing",
        "call capture",
        "commit captured",
    ],
    "klarna": [
        "commit begin_payment creating",
        "call create",
        "commit action",
        "commit action",
        "commit authorised",
        "commit confirm capturing",
        "call capture",
        "commit captured",
    ],
    "direct debit": [
        "commit begin_payment creating",
        "call create",
        "commit action",
        "commit action",
        "commit processing",
        "commit extend processing",
        "commit processing",
        "commit captured",
        "commit confirm captured",
    ],
    "direct debit that fails": [
        "commit begin_payment creating",
        "call create",
        "commit action",
        "commit action",
        "commit processing",
        "commit extend processing",
        "commit processing",
        "commit declined",
        "commit decline declined",
        "call void",
        "commit declined",
    ],
    "transfer": [
        "commit begin_payment creating",
        "call create",
        "commit processing",
        "commit extend processing",
        "commit processing",
        "commit captured",
        "commit confirm captured",
    ],
    "transfer, too late": [
        "commit begin_payment creating",
        "call create",
        "commit processing",
        "commit extend processing",
        "commit processing",
        "commit captured",
        "commit captured",
        "commit refund asked",
        "commit captured",
        "call refund",
        "commit refund done",
    ],
    "money for a payment that was cancelled": ["commit voided", "call refund", "commit voided"],
    "refunded": ["commit refund asked", "call refund", "commit refund done"],
    "partly refunded": ["commit refund asked", "call refund", "commit refund done"],
}
# Steps that another scenario has in the same situation are tried once.
TRIED = {
    "sold in two calls": range(1, 4),
    "declined": range(1, 6),
    "given back": range(1, 3),
    "late": range(1, 5),
    "after an outage": range(1, 5),
    "lapsed": [*range(3, 11), 17],
    "paid at once, too late": range(3, 10),
    "direct debit that fails": range(7, 11),
    "transfer, too late": range(4, 11),
}
# Scenarios of methods other than cards: what the fan pays with.
METHODS = {
    "paid at once": "ideal",
    "paid at once, too late": "ideal",
    "wallet": "google_pay",
    "klarna": "klarna",
    "direct debit": "sepa_debit",
    "direct debit that fails": "sepa_debit",
    "transfer": "bank_transfer",
    "transfer, too late": "bank_transfer",
}
LATE_S = {"paid at once, too late": 600, "transfer, too late": 5 * 86_400}
POINTS = [
    (scenario, number, when, step)
    for scenario, steps in STEPS.items()
    for number, step in enumerate(steps)
    if number in TRIED.get(scenario, range(len(steps)))
    for when in ("before", "after")
]
# Dying before the fan's first step is written leaves the hold as it was; everything later has one right end.
ENDS = {
    "sold": {BookingState.CONFIRMED},
    "sold in two calls": {BookingState.CONFIRMED},
    "declined": {BookingState.CANCELLED},
    "paid in the browser": {BookingState.CONFIRMED},
    "given back": {BookingState.CANCELLED},
    "late": {BookingState.EXPIRED},
    "after an outage": {BookingState.CONFIRMED},
    "lapsed": {BookingState.CANCELLED},
    "paid at once": {BookingState.CONFIRMED},
    "paid at once, too late": {BookingState.EXPIRED},
    "wallet": {BookingState.CONFIRMED},
    "klarna": {BookingState.CONFIRMED},
    "direct debit": {BookingState.CONFIRMED},
    "direct debit that fails": {BookingState.CANCELLED},
    "transfer": {BookingState.CONFIRMED},
    "transfer, too late": {BookingState.EXPIRED},
    "money for a payment that was cancelled": {BookingState.HELD},
    "given back before the capture": {BookingState.REFUNDED},
    "refunded": {BookingState.REFUNDED},
    "partly refunded": {BookingState.CONFIRMED},
}
UNTOUCHED = {
    "sold": BookingState.HELD,
    "paid in the browser": BookingState.CONFIRMED,  # the worker finds it without us
    **dict.fromkeys(METHODS, BookingState.HELD),
    "paid at once, too late": BookingState.EXPIRED,
    "transfer, too late": BookingState.EXPIRED,
    "money for a payment that was cancelled": BookingState.HELD,
    "given back before the capture": BookingState.CONFIRMED,
    "refunded": BookingState.CONFIRMED,
    "partly refunded": BookingState.CONFIRMED,
}


class Crash(BaseException):
    """The process is gone."""


class Fuse:
    """Counts the steps of a process and ends it before or after one of them."""

    def __init__(self, at: int = -1, when: str = "", *, kill: bool = False) -> None:
        self.at, self.when, self.kill = at, when, kill
        self.trace: list[str] = []
        self.dead = False

    async def around(self, step: str, act: Callable[[], Awaitable[Any]]) -> Any:
        number = len(self.trace)
        self.trace.append(step)
        self._burn(number, "before")
        try:
            return await act()
        finally:
            self._burn(number, "after")

    def _burn(self, number: int, when: str) -> None:
        if self.dead or (number, when) == (self.at, self.when):
            if self.kill:
                os.kill(os.getpid(), signal.SIGKILL)
            self.dead = True
            raise Crash


class FusedProvider:
    """A provider whose calls are steps. It has its methods itself: since Python 3.12 `isinstance` with a protocol does
    not ask `__getattr__`."""

    def __init__(self, inner: Any, fuse: Fuse) -> None:
        self._inner, self._fuse = inner, fuse
        for name in dir(inner):
            if not name.startswith("_") and callable(getattr(inner, name)):
                setattr(self, name, self.__getattr__(name))

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if name not in CALLS:
            return method
        return lambda *args, **more: self._fuse.around(f"call {name}", lambda: method(*args, **more))


class FusedLedger:
    """A ledger whose commits of money are steps."""

    def __init__(self, inner: Any, fuse: Fuse) -> None:
        self._inner = inner
        self.payments = FusedPayments(inner.payments, fuse)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class FusedPayments:
    """The payment book of a `FusedLedger`."""

    def __init__(self, inner: Any, fuse: Fuse) -> None:
        self._inner, self._fuse = inner, fuse

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def save_payment(self, payment: Payment, **more: Any) -> Any:
        move = more.get("move")
        step = f"commit {move} {payment.state}" if move else f"commit {payment.state}"
        return await self._fuse.around(step, lambda: self._inner.save_payment(payment, **more))

    async def ask_refund(self, refund: Refund, **more: Any) -> Any:
        return await self._fuse.around(f"commit refund {refund.state}", lambda: self._inner.ask_refund(refund, **more))

    async def save_refund(self, refund: Refund, **more: Any) -> Any:
        return await self._fuse.around(f"commit refund {refund.state}", lambda: self._inner.save_refund(refund, **more))


async def pay_by_method(
    scenario: str, checkout: Any, refunds: Any, booking_id: str, fence: int, sweep: Callable[[], Awaitable[object]]
) -> None:
    """The fan pays with the scenario's method, and the bank does its part, if need be when it is too late."""
    bank, awaited = checkout._providers.default._inner, METHODS[scenario] in ("sepa_debit", "bank_transfer")
    paying = await checkout.pay(booking_id, fence, METHODS[scenario])
    if awaited:
        at_bank(bank, agree=True)
    if awaited and paying.state == "action":
        await checkout.check(booking_id, fence)
    checkout._clock.advance(LATE_S.get(scenario, 0))
    at_bank(bank, agree=True, pays=awaited, fails=scenario == "direct debit that fails")
    with contextlib.suppress(HoldEnded):
        await checkout.check(booking_id, fence)
    await sweep()
    checkout._clock.advance(1)
    await checkout.work()
    await refunds.work()


def at_bank(bank: Any, *, agree: bool = False, pays: bool = False, fails: bool = False) -> None:
    """Fans answer on their bank's pages, and banks pay what is awaited of them."""
    for ref in list(bank.objects):
        if agree:
            bank.finish_action(ref)
        if pays:
            bank.finish_money(ref, failed=fails)


def pay_although_void(bank: Any, ref: str) -> None:
    """A bank's page that could not be closed: its money comes for a cancelled payment, which not everybody stops."""
    found = bank.objects[ref]
    found["status"], found["amount_received"], found["latest_charge"] = "succeeded", found["amount"], f"ch_{ref[3:]}"
    bank._send_webhook("payment_intent.succeeded", found)


async def play(
    scenario: str,
    checkout: Any,
    refunds: Any,
    booking_id: str,
    fence: int,
    late: Callable[[], object],
    sweep: Callable[[], Awaitable[object]] | None = None,
) -> None:
    """What the fan does, and what the worker does then; `late` makes the hold end while the bank thinks, `sweep` frees
    the seats of holds that ended."""
    if scenario == "refunded":
        await refunds.refund(booking_id, fence)
        await refunds.work()
    elif scenario == "given back before the capture":
        await refunds.refund(booking_id, fence)
        await checkout.work()
        await refunds.work()
    elif scenario == "partly refunded":
        booking = await checkout.records.load_booking(booking_id)
        await refunds.refund(booking_id, fence, booking.seats[:1])
        await refunds.work()
    elif scenario == "paid in the browser":
        await checkout.check(booking_id, fence)
        await checkout.work()
    elif scenario == "given back":
        await checkout.release(booking_id, fence)
    elif scenario in METHODS:
        assert sweep is not None
        await pay_by_method(scenario, checkout, refunds, booking_id, fence, sweep)
    elif scenario == "money for a payment that was cancelled":
        notice = checkout._providers.default._inner.notices[-1]
        await checkout.handle_webhook(*notice)
    elif scenario == "after an outage":
        provider = checkout._providers.default
        create = provider.create

        async def fail(new: NewIntent) -> Any:
            provider.create = create
            provider._inner.down = True
            try:
                return await create(new)
            finally:
                provider._inner.down = False

        provider.create = fail
        await checkout.pay(booking_id, fence, CARD)
        checkout._clock.advance(RETRIES_S[0])
        await checkout.work()  # sells the seats
        await checkout.work()  # takes the money
    elif scenario == "late":
        create = checkout._providers.default.create

        async def slow(new: NewIntent) -> Any:
            late()
            return await create(new)

        checkout._providers.default.create = slow
        try:
            await checkout.pay(booking_id, fence, CARD)
        except HoldEnded:
            return
    else:
        card = {"sold": CARD, "sold in two calls": CARD, "declined": "pm_card_declined", "lapsed": LAPSES}[scenario]
        await checkout.pay(booking_id, fence, card)
        await checkout.work()
