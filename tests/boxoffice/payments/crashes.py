"""Every crash point of the money services: before and after each foreign call and each commit, by scenario (F5).

A scenario is a purchase (or refund) whose steps are listed in order; the recorder proves that the list is complete. At
a point the process dies: `Crash` in the simulation, SIGKILL in tests/faults. Then a new process, which knows nothing
but the ledger and the provider, must find the right end within 60 s.
"""

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
}
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
    "given back before the capture": {BookingState.REFUNDED},
    "refunded": {BookingState.REFUNDED},
    "partly refunded": {BookingState.CONFIRMED},
}
UNTOUCHED = {
    "sold": BookingState.HELD,
    "paid in the browser": BookingState.CONFIRMED,  # the worker finds it without us
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
    """A provider whose calls are steps."""

    def __init__(self, inner: Any, fuse: Fuse) -> None:
        self._inner, self._fuse = inner, fuse

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


async def play(
    scenario: str, checkout: Any, refunds: Any, booking_id: str, fence: int, late: Callable[[], object]
) -> None:
    """What the fan does, and what the worker does then; `late` makes the hold end while the bank thinks."""
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
    elif scenario == "after an outage":
        provider = checkout._provider
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
        create = checkout._provider.create

        async def slow(new: NewIntent) -> Any:
            late()
            return await create(new)

        checkout._provider.create = slow
        try:
            await checkout.pay(booking_id, fence, CARD)
        except HoldEnded:
            return
    else:
        card = {"sold": CARD, "sold in two calls": CARD, "declined": "pm_card_declined", "lapsed": LAPSES}[scenario]
        await checkout.pay(booking_id, fence, card)
        await checkout.work()
