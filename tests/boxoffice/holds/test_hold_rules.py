"""The rules of holds as values: what can be asked for, how long a hold lasts, and what refusals say."""

from typing import Any

import pytest
from msgspec.structs import replace

from frontrow.boxoffice.holds.model.bookings import (
    NUMBER_CHARS,
    Booking,
    BookingNotFound,
    BookingState,
    HoldEnded,
    Move,
    MoveRefused,
    SeatsNotInBooking,
    StaleFence,
    booking_number,
)
from frontrow.boxoffice.holds.model.claims import (
    MAX_NAME_CHARS,
    ClaimKind,
    ClaimsLost,
    SeatClaim,
    SeatState,
    TakenSeat,
    check_claim,
    check_name,
    sold_seat,
)
from frontrow.boxoffice.holds.model.holds import (
    MAX_HOLD_FACTOR,
    MAX_MINOR,
    MAX_SEATS_PER_HOLD,
    CapExceeded,
    HoldNotExtendable,
    IdempotencyMismatch,
    NewHold,
    SeatsTaken,
    VisitEnded,
    extended_end_us,
)
from frontrow.boxoffice.holds.model.requested_seats import (
    CapReached,
    DuplicateSeats,
    SeatsWithheld,
    Wish,
    WrongSeatCount,
    check_count,
    check_seats,
)
from frontrow.boxoffice.seats.model.best_seats import Grade
from frontrow.core.errors import InvalidInput
from tests.boxoffice.plan_samples import an_event, small_plan

HOLD = NewHold("bkg_1", "evt_1", "ada", (3, 4), 100, 200, 500, "EUR", (250, 250))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"seats": (0,), "prices_minor": ()},
        {"seats": tuple(range(MAX_SEATS_PER_HOLD)), "prices_minor": ()},
        {"expires_at_us": 101},
        {"amount_minor": 0, "prices_minor": (0, 0)},
        {"amount_minor": MAX_MINOR, "prices_minor": (MAX_MINOR, 0)},
        {"fan": "Zoë 高橋", "idempotency_key": "k"},
        {"fan": "\ud7ff\ue000"},
    ],
)
def test_a_hold_that_can_be_placed(changes: dict[str, Any]) -> None:
    replace(HOLD, **changes).check()


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"booking_id": ""}, "booking_id"),
        ({"event_id": ""}, "booking_id"),
        ({"fan": ""}, "booking_id"),
        ({"seats": (), "prices_minor": ()}, "seats"),
        ({"seats": tuple(range(MAX_SEATS_PER_HOLD + 1)), "prices_minor": ()}, "seats"),
        ({"seats": (-1,), "prices_minor": ()}, "seats"),
        ({"seats": (3, 3)}, "seats"),
        ({"expires_at_us": 100}, "expires_at_us"),
        *(
            ({name: "a\0"}, "booking_id")
            for name in ("booking_id", "event_id", "fan", "idempotency_key", "currency", "visit_id", "offer_id")
        ),
        ({"sold_by": "a\0"}, "booking_id"),
        ({"fan": "\ud800"}, "booking_id"),
        ({"fan": "the last \udfff"}, "booking_id"),
        ({"amount_minor": -1}, "amount_minor"),
        ({"amount_minor": MAX_MINOR + 1}, "amount_minor"),
        ({"prices_minor": (-1, 501)}, "amount_minor"),
        ({"prices_minor": (MAX_MINOR + 1, 0)}, "amount_minor"),
        ({"prices_minor": (500,)}, "prices_minor"),
    ],
)
def test_a_hold_that_can_never_be_placed_names_its_field(changes: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        replace(HOLD, **changes).check()
    assert refused.value.param == param


def held(created_us: int, ends_us: int, state: BookingState = BookingState.HELD) -> Booking:
    return Booking("bkg_1", "evt_1", "ada", state, 1, (3,), 0, "EUR", "", created_us, created_us, ends_us)


def test_a_hold_is_extended_by_its_time_and_lasts_at_most_twice_its_time() -> None:
    assert MAX_HOLD_FACTOR == 2
    assert extended_end_us(held(0, 100), 100, 60) == 160
    assert extended_end_us(held(0, 160), 100, 150) == 200, "at most twice its time after it began"
    with pytest.raises(HoldNotExtendable) as refused:
        extended_end_us(held(0, 200), 100, 199)
    assert refused.value.code == "hold_cannot_be_extended"
    with pytest.raises(HoldNotExtendable):
        extended_end_us(held(0, 160), 100, 60)  # it would end when it ends anyway
    assert extended_end_us(held(0, 200), 100, 200) == 200, "it is over: whoever writes says so"


def test_a_number_that_people_say_is_the_end_of_the_id() -> None:
    assert booking_number("bkg_0123456789ABCDEFGHJKMNPQRS") == "JKMNPQRS"
    assert NUMBER_CHARS == 8


def test_refusals_carry_what_a_caller_needs() -> None:
    assert BookingNotFound("bkg_1").booking_id == "bkg_1"
    moved = MoveRefused("bkg_1", BookingState.EXPIRED, Move.EXTEND)
    assert (moved.booking_id, moved.state, moved.move) == ("bkg_1", BookingState.EXPIRED, Move.EXTEND)
    foreign = SeatsNotInBooking("bkg_1", [4, 3])
    assert (foreign.booking_id, foreign.seats) == ("bkg_1", (4, 3))
    stale = StaleFence("bkg_1", 7)
    assert (stale.booking_id, stale.fence) == ("bkg_1", 7)
    ended = HoldEnded("bkg_1", 100)
    assert (ended.booking_id, ended.expired_at_us, ended.http_status) == ("bkg_1", 100, 410)
    taken = SeatsTaken("evt_1", [9, 2])
    assert (taken.event_id, taken.seats) == ("evt_1", (2, 9))
    cap = CapExceeded("evt_1", "ada", 4, 3, 2)
    assert (cap.event_id, cap.fan, cap.cap, cap.active, cap.asked) == ("evt_1", "ada", 4, 3, 2)
    assert VisitEnded("evt_1").code == "visit_ended"
    mismatch = IdempotencyMismatch("k" * 200)
    assert (mismatch.key, mismatch.http_status, mismatch.code) == ("k" * 200, 409, "idempotency_mismatch")
    lost = ClaimsLost("evt_1")
    assert (lost.event_id, lost.code) == ("evt_1", "claims_rebuilding")


# what is requested


def test_a_person_asks_for_one_seat_or_more_and_no_more_than_the_event_and_a_request_allow() -> None:
    event = an_event(max_per_person=500)
    assert [check_count(event, count) for count in (1, 100)] == [1, 100]
    for count in (0, -1, 101):
        with pytest.raises(WrongSeatCount):
            check_count(event, count)
    assert check_count(an_event(max_per_person=4), 4) == 4
    with pytest.raises(CapReached):
        check_count(an_event(max_per_person=4), 5)


def test_seats_come_back_sorted_and_a_wrong_one_is_named() -> None:
    plan = small_plan()
    assert check_seats(plan, an_event(), ["S-A-4", "S-A-3"]) == [2, 3]
    with pytest.raises(DuplicateSeats) as twice:
        check_seats(plan, an_event(), ["S-A-3", "S-A-4", "S-A-3"])
    assert twice.value.about["seats"] == ["S-A-3"]
    with pytest.raises(SeatsWithheld) as withheld:
        check_seats(plan, an_event(withheld=frozenset({3})), ["S-A-3", "S-A-4"])
    assert withheld.value.about["seats"] == ["S-A-4"]


def test_a_wish_accepts_seats_apart_only_if_it_says_so() -> None:
    assert Wish(2).worst is Grade.ADJACENT_ROWS
    assert Wish(2, apart_ok=True).worst is Grade.APART


# claims


@pytest.mark.parametrize("text", ["a", "a" * MAX_NAME_CHARS])
def test_a_name_that_can_be_stored(text: str) -> None:
    assert check_name(text, "fan") == text
    check_claim(SeatClaim("evt_1", (1,), text, text, 200))


@pytest.mark.parametrize("text", ["", "a" * (MAX_NAME_CHARS + 1), "a|b", "a{b", "a}b"])
def test_a_name_that_cannot_be_stored_is_refused(text: str) -> None:
    for fan, booking, param in ((text, "bkg_1", "fan"), ("ada", text, "booking")):
        with pytest.raises(InvalidInput) as refused:
            check_claim(SeatClaim("evt_1", (1,), fan, booking, 200))
        assert refused.value.param == param


def test_a_sold_seat_stays_taken_and_a_held_one_until_its_end() -> None:
    sold = sold_seat(3, "ada", "bkg_1", 5)
    assert (sold.seat, sold.kind, sold.fan, sold.booking_id, sold.placed_at_us) == (
        3,
        ClaimKind.SOLD,
        "ada",
        "bkg_1",
        5,
    )
    assert sold.live(2**52)
    held_seat = TakenSeat(3, ClaimKind.HELD, "ada", "bkg_1", 5, 100)
    assert (held_seat.live(99), held_seat.live(100)) == (True, False)
    assert (held_seat.state, sold.state) == (SeatState.HELD, SeatState.SOLD)
