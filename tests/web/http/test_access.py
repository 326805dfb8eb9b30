"""What a request proves about its sender, proof by proof (B17)."""

import pytest
from msgspec.structs import replace

from frontrow.boxoffice.holds.model.bookings import HOLD_STATES, Booking, BookingState
from frontrow.boxoffice.holds.model.holds import ShopPass
from frontrow.boxoffice.people.model.people import SecondFactorNeeded, Session, Stage, SubjectKind
from frontrow.boxoffice.people.model.roles import Role
from frontrow.web.http.access import Caller, actor, caller_in, need_permission
from tests.boxoffice.tickets.samples import booking

MINE = replace(booking(1), visit_id="visit-1")
PASS = ShopPass(MINE.event_id, MINE.fan, 10, "visit-1")


def with_state(state: BookingState) -> Booking:
    return replace(MINE, state=state)


@pytest.mark.parametrize("state", BookingState)
def test_a_pass_that_ended_is_good_for_the_hold_it_was_used_for_and_for_nothing_else(state: BookingState) -> None:
    assert Caller(past_pass=PASS).owns(with_state(state)) is (state in HOLD_STATES)
    assert not Caller(past_pass=replace(PASS, id="visit-2")).owns(with_state(state))


def test_a_booking_is_its_owners() -> None:
    for caller in (Caller(bookings=frozenset({MINE.id})), Caller("fan", MINE.fan), Caller(shop_pass=PASS)):
        assert caller.owns(MINE)
    for caller in (
        Caller(),
        Caller(bookings=frozenset({"bkg_other"})),
        Caller("fan", "fan_other"),
        Caller("staff", MINE.fan),
        Caller(shop_pass=replace(PASS, fan="fan_other")),
        Caller(shop_pass=replace(PASS, event_id="evt_other")),
    ):
        assert not caller.owns(MINE)


@pytest.mark.parametrize("stage", [Stage.TOTP, Stage.ENROL])
def test_staff_without_the_second_factor_are_nobody_yet(stage: Stage) -> None:
    unfinished = Session("ses_1", SubjectKind.STAFF, "stf_1", stage, 0, 0, 10, 10, "", "org_1", Role.OWNER)
    caller = caller_in(unfinished)
    assert (caller.kind, caller.id, caller.permissions) == ("nobody", "", frozenset())
    with pytest.raises(SecondFactorNeeded):
        need_permission(caller, "events:read")
    full = caller_in(replace(unfinished, stage=Stage.FULL))
    assert actor(full).role is Role.OWNER
