"""Refunds, cancellation of a whole event, and the reconciler (B12, N4)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.adapters.payments.simulated import Fault
from frontrow.boxoffice.events.model.events import EventStatus
from frontrow.boxoffice.facts.model import BookingPartlyRefunded, BookingRefunded, PaymentDeclined, RefundPaid
from frontrow.boxoffice.holds.model.bookings import BookingState, MoveRefused, SeatsNotInBooking
from frontrow.boxoffice.refunds.model.refund_policy import RefundPolicy
from frontrow.boxoffice.refunds.model.refund_rules import RefundRefused
from frontrow.boxoffice.refunds.model.refunds import Refund, RefundState
from frontrow.boxoffice.refunds.refunds import Refunds
from tests.boxoffice.checkout.till import EVENT, Till, assert_money, open_till
from tests.boxoffice.shop import shop_event

CARD = "pm_card_visa"


@pytest.fixture
async def till(tmp_path: Path) -> AsyncIterator[Till]:
    async with open_till(tmp_path) as one:
        await one.ledger.catalogue.put_event(shop_event(id=EVENT), one.clock())
        yield one


async def sold(till: Till, *seats: int, price: int = 5000) -> tuple[str, int]:
    hold = await till.hold(*seats, price=price)
    await till.pay(hold.booking_id, hold.fence, CARD)
    return hold.booking_id, hold.fence


async def test_a_full_refund_frees_the_seats_and_pays_back(till: Till) -> None:
    """B12."""
    booking_id, fence = await sold(till, 1, 2)
    refund = await till.refunds.refund(booking_id, fence)
    assert (refund.amount_minor, refund.fee_minor, refund.state) == (10_000, 0, RefundState.ASKED)
    assert (await till.hold(1, 2)).fence > fence, "back on sale before the money is back"
    await till.settle()
    assert (await till.booking(booking_id)).state is BookingState.REFUNDED
    facts = [type(f) for f in await till.facts()]
    assert (facts.count(BookingRefunded), facts.count(RefundPaid)) == (1, 1)
    again = await till.refunds.refund(booking_id, fence)
    assert again.id == refund.id, "asking again is harmless"
    await assert_money(till, at_rest=True)


async def test_seat_after_seat_gives_back_exactly_what_was_paid(till: Till) -> None:
    """B12: partial refunds; the booking shrinks, its tickets too, the last seat ends it."""
    booking_id, fence = await sold(till, 1, 2, 3)
    await till.refunds.refund(booking_id, fence, [2])
    booking = await till.booking(booking_id)
    assert (booking.seats, booking.amount_minor, booking.state) == ((1, 3), 10_000, BookingState.CONFIRMED)
    await till.settle()
    await assert_money(till, at_rest=True)
    with pytest.raises(SeatsNotInBooking):
        await till.refunds.refund(booking_id, fence, [9])
    await till.refunds.refund(booking_id, fence, [1])
    await till.refunds.refund(booking_id, fence)
    await till.settle()
    assert (await till.booking(booking_id)).state is BookingState.REFUNDED
    assert sum(r["amount"] for r in till.provider.refunds.values()) == 15_000
    assert [type(f) for f in await till.facts()].count(BookingPartlyRefunded) == 2
    await assert_money(till, at_rest=True)


async def test_sixty_refunds_of_one_seat_pay_once(till: Till) -> None:
    """N4."""
    booking_id, fence = await sold(till, 1, 2)
    done = await asyncio.gather(
        *(till.refunds.refund(booking_id, fence, [1]) for _ in range(60)), return_exceptions=True
    )
    assert {one.id for one in done if not isinstance(one, BaseException)} == {f"rfd_{booking_id[4:]}_1"}
    assert all(isinstance(one, SeatsNotInBooking) for one in done if isinstance(one, BaseException))
    await till.settle()
    assert [r["amount"] for r in till.provider.refunds.values()] == [5000]
    await assert_money(till, at_rest=True)


class ReadsBefore:
    """A ledger at which somebody else does something right after the first read of a booking's refunds."""

    def __init__(self, ledger: SqlLedger, does: Callable[[], Awaitable[object]]) -> None:
        self._ledger, self._does, self._was_read = ledger, does, False

    @property
    def payments(self) -> "ReadsBefore":
        return self

    async def refunds_of(self, booking_id: str) -> list[Refund]:
        found = await self._ledger.payments.refunds_of(booking_id)
        if not self._was_read:
            self._was_read = True
            await self._does()
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name, None) or getattr(self._ledger.payments, name)


@pytest.mark.parametrize("seats", [[1], [1, 2]], ids=["some", "all"])
async def test_the_second_of_two_equal_refunds_at_once_gets_the_first(till: Till, seats: list[int]) -> None:
    """N4: a double click. The other request is written between the reads of this one."""
    booking_id, fence = await sold(till, 1, 2)

    async def first() -> None:
        await till.refunds.refund(booking_id, fence, seats)

    second = Refunds(ReadsBefore(till.ledger, first), till.guarded, till.clock)  # type: ignore[arg-type]
    answer = await second.refund(booking_id, fence, seats)
    assert [answer.id] == [one.id for one in await till.ledger.payments.refunds_of(booking_id)]
    await till.settle()
    assert [one["amount"] for one in till.provider.refunds.values()] == [5000 * len(seats)]
    await assert_money(till, at_rest=True)


async def test_seats_that_the_booking_never_had_are_refused_also_when_another_refund_comes_between(till: Till) -> None:
    booking_id, fence = await sold(till, 1, 2)

    async def other() -> None:
        await till.refunds.refund(booking_id, fence, [1])

    late = Refunds(ReadsBefore(till.ledger, other), till.guarded, till.clock)  # type: ignore[arg-type]
    with pytest.raises(SeatsNotInBooking):
        await late.refund(booking_id, fence, [1, 9])


async def test_window_and_fee_are_data_on_the_event_and_the_organiser_overrides(till: Till) -> None:
    """B12: 48 h before the show, half-open; fee per seat and in basis points, kept and accounted for."""
    policy = RefundPolicy(window_s=48 * 3600, fee_per_seat_minor=100, fee_basis_points=500)
    starts_us = till.clock() + 49 * 3600 * 1_000_000
    await till.ledger.catalogue.put_event(shop_event(id=EVENT, starts_at_us=starts_us, refunds=policy), till.clock())
    booking_id, fence = await sold(till, 1, 2, 3)
    till.clock.now_us = starts_us - 48 * 3600 * 1_000_000 - 1
    refund = await till.refunds.refund(booking_id, fence, [1])
    assert (refund.amount_minor, refund.fee_minor) == (4650, 350)
    till.clock.advance(us=1)
    with pytest.raises(RefundRefused, match="48 h before"):
        await till.refunds.refund(booking_id, fence, [2])
    free = await till.refunds.override(booking_id, [2])
    assert (free.amount_minor, free.fee_minor) == (5000, 0)
    await till.settle()
    await assert_money(till, at_rest=True)
    await till.ledger.catalogue.put_event(shop_event(id=EVENT, refunds=RefundPolicy(allowed=False)), till.clock())
    with pytest.raises(RefundRefused, match="cannot be refunded"):
        await till.refunds.refund(booking_id, fence, [3])


async def test_only_sold_bookings_can_be_refunded(till: Till) -> None:
    hold = await till.hold(1)
    with pytest.raises(MoveRefused):
        await till.refunds.refund(hold.booking_id, hold.fence)


@pytest.mark.parametrize("fault", list(Fault))
async def test_one_fault_in_a_refund_pays_back_exactly_once(tmp_path: Path, fault: Fault) -> None:
    """N4, F2."""
    faults = iter([fault])

    def script(asked: str, key: str, number: int) -> Fault | None:
        return next(faults, None) if asked == "refund" else None

    async with open_till(tmp_path, script=script) as till:
        await till.ledger.catalogue.put_event(shop_event(id=EVENT), till.clock())
        booking_id, fence = await sold(till, 1, 2)
        await till.refunds.refund(booking_id, fence, [1])
        await till.settle()
        assert [r["amount"] for r in till.provider.refunds.values()] == [5000]
        await assert_money(till, at_rest=True)


async def test_a_refund_asked_while_the_capture_is_unknown_waits_for_it(till: Till) -> None:
    hold = await till.hold(1, 2)
    till.provider.script = lambda operation, *_: Fault.LOST_REPLY if operation == "capture" else None
    await till.pay(hold.booking_id, hold.fence, CARD)
    await till.refunds.refund(hold.booking_id, hold.fence, [1])
    till.provider.script = lambda *_: None
    await till.settle()
    assert [r["amount"] for r in till.provider.refunds.values()] == [5000]
    await assert_money(till, at_rest=True)


async def test_a_cancelled_event_refunds_everybody_in_batches_and_resumes(till: Till) -> None:
    """B12: bounded batches with progress; stopped half-way it goes on; paying fans are stopped, holds are freed."""
    for seat in range(30):
        await sold(till, seat)
    held = await till.hold(100)
    paying = await till.hold(101)
    await till.checkout.begin(paying.booking_id, paying.fence)
    async for progress in till.refunds.cancel_event(EVENT, page=7):
        assert progress.refunded == 7
        break  # the process dies here
    assert (await till.ledger.catalogue.event(EVENT)).status is EventStatus.CANCELLED
    steps = [progress async for progress in till.restarted().refunds.cancel_event(EVENT, page=7)]
    assert (steps[-1].refunded, steps[-1].released, steps[-1].stopped, steps[-1].failed) == (23, 1, 1, 0)
    await till.settle()
    assert len(till.provider.refunds) == 30
    assert (await till.booking(held.booking_id)).state is BookingState.CANCELLED
    assert [f.reason for f in await till.facts() if isinstance(f, PaymentDeclined)] == ["event_cancelled"]
    assert [p async for p in till.refunds.cancel_event(EVENT)] == []
    await assert_money(till, at_rest=True)


async def test_the_reconciler_finds_no_difference_at_rest(till: Till) -> None:
    for seat in range(5):
        await sold(till, seat)
    booking_id, fence = await sold(till, 10, 11)
    await till.refunds.refund(booking_id, fence, [10])
    await till.settle()
    report = await till.reconciler.run()
    assert (report.objects, report.payments, report.mended, report.problems) == (6, 6, 0, [])
    assert report.ledger_minor == report.provider_minor == {"EUR": 30_000}
    assert report.difference_minor == {}


async def test_the_reconciler_mends_what_it_finds(till: Till) -> None:
    """Orphans are voided, unfinished payments driven on, refunds made by hand are written down."""
    till.provider.script = lambda operation, key, _: Fault.ERROR_AFTER if key.endswith("pay:1") else None
    first, _ = await sold(till, 1)  # its first object is an orphan: the answer to create was a stored 500
    till.provider.script = lambda *_: None
    till.clock.advance(30)
    await till.turn()
    by_hand, _ = await sold(till, 2)
    payment = await till.driver_payment(by_hand)
    await till.provider.refund(payment.ref, 5000, "", "by hand")
    strange, _ = await sold(till, 3)
    payment = await till.driver_payment(strange)
    await till.provider.refund(payment.ref, 1234, "", "by hand too")
    till.clock.advance(120)
    report = await till.reconciler.run()
    assert len(till.provider.objects) == 4
    assert sorted(o["status"] for o in till.provider.objects.values()) == ["canceled"] + ["succeeded"] * 3
    assert (await till.booking(first)).state is BookingState.CONFIRMED
    assert (await till.booking(by_hand)).state is BookingState.REFUNDED
    assert len(report.problems) == 1
    assert "1234 were refunded at the provider" in report.problems[0]
    assert report.difference_minor == {"EUR": -1234}
    assert (await till.reconciler.run()).mended == 0, "what it mended stays mended"


async def test_the_reconciler_gives_back_a_capture_nobody_owns(till: Till) -> None:
    booking_id, _ = await sold(till, 1)
    payment = await till.driver_payment(booking_id)
    copy = dict(till.provider.objects[payment.ref]) | {"id": "pi_stranger", "latest_charge": "ch_x"}
    till.provider.objects["pi_stranger"] = copy
    till.clock.advance(120)
    report = await till.reconciler.run()
    assert report.difference_minor == {}
    assert [r["amount"] for r in till.provider.refunds.values()] == [5000]


async def test_a_running_server_asks_about_an_old_payment_again_when_its_age_has_doubled(till: Till) -> None:
    """A captured payment is read at the provider a few times in its life, not every five minutes."""
    booking_id, _ = await sold(till, 1)
    asked_on = []
    for day in range(4, 68, 4):
        till.clock.advance(4 * 86_400)
        reads = till.provider.calls["read"]
        report = await till.reconciler.run_due()
        assert (report.problems, report.difference_minor) == ([], {})
        asked_on += [day] if till.provider.calls["read"] > reads else []
    assert asked_on == [16, 32, 64]
    payment = await till.driver_payment(booking_id)
    await till.provider.refund(payment.ref, 5000, "", "by hand")
    assert (await till.restarted().reconciler.run_due()).mended == 1, "a new process makes up for the last day"
    till.clock.advance(4 * 86_400)
    assert (await till.reconciler.run_due()).payments == 0
    assert (await till.reconciler.run()).payments == 1, "a full pass asks about every payment"


def test_the_policy_is_part_of_the_event() -> None:
    event = replace(shop_event(), refunds=RefundPolicy(fee_basis_points=1))
    assert event.refunds.fee_basis_points == 1
