"""Optimistic batches: nobody looks who has the seats or how a payment stands, unless something was in the way."""

import asyncio
import contextlib
from collections.abc import Awaitable
from typing import Any

import pytest

from frontrow.boxoffice.adapters.ledger.audit_verification import verify
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.engine.statements import NO_CONFLICT
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import MakeMove
from frontrow.boxoffice.adapters.ledger.holds.hold_transactions import place_holds
from frontrow.boxoffice.adapters.ledger.holds.optimistic_insert import (
    CAREFUL_BATCHES,
    CAREFUL_SAVES,
    ConflictDetected,
    ConflictHistory,
)
from frontrow.boxoffice.adapters.ledger.payments.payment_transactions import SavePayment, save_payments
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.holds.model.bookings import Booking, Move
from frontrow.boxoffice.holds.model.holds import CapExceeded, NewHold, PlacedHold, SeatsTaken
from frontrow.boxoffice.payments.model.payments import Payment, PaymentChanged
from tests.contracts.ledger_contract import Bench

NOW = 1_700_000_000_000_000


def wish(number: int, seat: int, fan: str = "", cap: int | None = 4) -> NewHold:
    return NewHold(f"bkg_{number}", "evt", fan or f"fan{number}", (seat,), NOW, NOW + 10**9, cap=cap)


def asked_in(history: ConflictHistory, *, in_the_way: bool = False) -> list[str]:
    """The statements of a batch of one wish, in a ledger where its seat is free or sold."""
    program = place_holds([wish(1, 1)], [], history)
    names: list[str] = []
    rows: Any = None
    try:
        while True:
            query: Query = program.send(rows)
            names.append(query.name)
            rows = {
                "active_counts": [("evt", "fan1", 0)],
                "seats_in_the_way": [("evt", 1, "bkg_9", "confirmed", 0, 5)] if in_the_way else [],
                "take_free_seats": [] if in_the_way else NO_CONFLICT,  # as `take_seats` answered: got none
                "add_new_bookings": [("bkg_1", 7)],
                "bookings_by_id": [],
            }[query.name]
    except StopIteration as done:
        answer = done.value[0]
    assert isinstance(answer, SeatsTaken if in_the_way else PlacedHold)
    return names


def test_a_batch_does_not_look_until_a_seat_was_in_the_way_and_then_looks_for_a_while() -> None:
    history = ConflictHistory()
    optimistic = ["active_counts", "take_free_seats", "add_new_bookings"]
    careful = ["active_counts", "seats_in_the_way", "take_free_seats", "add_new_bookings"]
    assert asked_in(history) == optimistic
    assert asked_in(history, in_the_way=True) == [
        "active_counts",
        "take_free_seats",
        "bookings_by_id",
        "seats_in_the_way",
    ]
    for _ in range(CAREFUL_BATCHES):
        assert asked_in(history) == careful
    assert asked_in(history) == optimistic


async def test_a_hold_asked_for_again_at_the_cap_is_the_same_hold(bench: Bench) -> None:
    """B4: without a look the cap seems exceeded by the very hold that is asked for again."""
    first = await bench.one.place_hold(wish(1, 1, "ann", cap=1))
    again = await bench.one.place_hold(wish(1, 1, "ann", cap=1))
    assert again.repeated
    assert again.fence == first.fence
    with pytest.raises(CapExceeded):
        await bench.one.place_hold(wish(2, 2, "ann", cap=1))
    told = await asyncio.gather(
        *(bench.either(n).place_hold(wish(100 + n, 50, cap=1)) for n in range(60)), return_exceptions=True
    )
    assert sum(isinstance(answer, PlacedHold) for answer in told) == 1
    assert sum(isinstance(answer, SeatsTaken) for answer in told) == 59


async def test_a_lost_hope_costs_only_the_wish_whose_seat_was_taken(bench: Bench) -> None:
    """N4: the index objects in the middle of a optimistic batch; nothing of the first try is left behind."""
    await bench.one.place_hold(wish(1, 90))
    told = await asyncio.gather(*(bench.two.place_hold(wish(1_000 + n, n)) for n in range(150)), return_exceptions=True)
    assert [n for n, answer in enumerate(told) if isinstance(answer, SeatsTaken)] == [90]
    held = {answer.booking_id: answer.fence for answer in told if isinstance(answer, PlacedHold)}
    assert len(held) == 149
    seats = [seat async for seat in bench.one.active_seats("evt", NOW)]
    assert sorted(seat.seat_index for seat in seats) == list(range(150))
    assert {seat.booking_id: seat.fence for seat in seats if seat.booking_id != "bkg_1"} == held
    after = await asyncio.gather(*(bench.two.place_hold(wish(2_000 + n, 500 + n)) for n in range(150)))
    assert all(after)
    assert (await verify(bench.one.store))[0] == []


def save(number: int, version: int, move: Move | None, booking: str = "") -> SavePayment:
    booking_id = booking or f"bkg_{number}"
    payment = Payment(f"pay_{number}", booking_id, 1, "simulated", 0, "EUR", version=version)
    moving = MakeMove(booking_id, move, 7, NOW) if move else None
    return SavePayment(payment, moving, (), NOW)


PLAIN_PAYMENT = (0, 0, 0, "", "", "", 0, "", 0, "", 0)  # what a row says behind its version


def asked_to_save(history: ConflictHistory, *, changed: bool = False) -> list[str]:
    """The statements of a batch of three saves: a new payment, a confirmation and an answer of the provider."""
    batch = [save(1, 1, Move.BEGIN_PAYMENT), save(2, 3, Move.CONFIRM), save(3, 4, None)]
    program = save_payments(batch, [], history)
    tail = (7, "[1]", 0, "EUR", "", NOW, NOW, NOW + 10**9, 0, "", "shop", "", None, "")
    names: list[str] = []
    rows: Any = None
    with contextlib.suppress(StopIteration):
        while True:
            query: Query = program.send(rows)
            names.append(query.name)
            rows = {
                "move_bookings": [
                    ("bkg_1", "evt", "ann", "paying", *tail),
                    ("bkg_2", "evt", "bob", "confirmed", *tail),
                ],
                "add_payments": [("pay_1",)],
                "set_payments": [(row[0],) for row in query.rows if not (changed and row[0] == "pay_2")],
                "lock_bookings": [],
                "lock_payments": [
                    ("pay_2", "bkg_2", 1, "simulated", 0, "EUR", "authorising", *[""] * 3, 1, 0, 0, 2, *PLAIN_PAYMENT)
                ],
            }[query.name]
    return names


def test_payments_are_written_without_a_look_until_one_was_changed_by_another_driver() -> None:
    history = ConflictHistory()
    at_once = ["move_bookings", "add_payments", "set_payments"]
    careful = ["lock_bookings", "lock_payments", *at_once, "set_payments"]
    assert asked_to_save(history) == at_once
    with pytest.raises(ConflictDetected):
        asked_to_save(history, changed=True)
    for _ in range(CAREFUL_SAVES):
        assert asked_to_save(history) == careful
    assert asked_to_save(history) == at_once
    assert not history.careful_batches, "a second click makes no batch of holds slower"


async def test_a_second_click_costs_only_itself(bench: Bench) -> None:
    """Of many saves in one transaction one is out of date: the others are written, and this one is refused."""
    held = await asyncio.gather(*(bench.one.place_hold(wish(n, n, cap=None)) for n in range(40)))

    def begin(n: int, ledger: SqlLedger) -> Awaitable[Booking | None]:
        payment = Payment(f"pay_{n}", f"bkg_{n}", 1, "simulated", 0, "EUR")
        return ledger.payments.save_payment(payment, now_us=NOW, move=Move.BEGIN_PAYMENT, fence=held[n].fence)

    other = Payment("pay_other", "bkg_20", 1, "simulated", 0, "EUR")
    await bench.two.payments.save_payment(other, now_us=NOW, move=Move.BEGIN_PAYMENT, fence=held[20].fence)
    told = await asyncio.gather(*(begin(n, bench.one) for n in range(40)), return_exceptions=True)
    assert [n for n, answer in enumerate(told) if isinstance(answer, PaymentChanged)] == [20]
    assert all(isinstance(answer, Booking) for n, answer in enumerate(told) if n != 20)
    again = await asyncio.gather(*(begin(n, bench.two) for n in range(20)))
    assert [answer and answer.id for answer in again] == [f"bkg_{n}" for n in range(20)], "a repeated save is the same"
