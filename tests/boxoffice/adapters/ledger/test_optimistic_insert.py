"""The first round of a batch does not look who has the seats, as long as nobody had any lately."""

import asyncio
from typing import Any

import pytest

from frontrow.boxoffice.adapters.ledger.audit_verification import verify
from frontrow.boxoffice.adapters.ledger.engine.statements import NO_CONFLICT
from frontrow.boxoffice.adapters.ledger.programs.holds import place_holds
from frontrow.boxoffice.adapters.ledger.programs.optimistic_insert import CAREFUL_BATCHES, ConflictHistory
from frontrow.boxoffice.model.holds import CapExceeded, NewHold, PlacedHold, SeatsTaken
from frontrow.boxoffice.ports.queries import Query
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
