"""The edges of the refund rules (B12): who is refused, until when, what the policy keeps, and what a resale brings."""

from dataclasses import replace

import msgspec
import pytest

from frontrow.boxoffice.events.model.events import Event, EventStatus, PriceTier
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.payments.model.payments import EXTERNAL, Payment
from frontrow.boxoffice.pricing.model.prices import LineKind, LineTerms, PriceLine, encode_lines
from frontrow.boxoffice.refunds.model.refund_lines import PaidFor, RefundChoice, RefundLineKind
from frontrow.boxoffice.refunds.model.refund_policy import (
    MAX_REFUND_STEPS,
    RefundPolicy,
    RefundStep,
    check_policy,
)
from frontrow.boxoffice.refunds.model.refund_rules import (
    PaidAtBoxOffice,
    RefundRefused,
    check_paid_online,
    check_window,
    refund_sum,
    resale_sum,
)
from frontrow.boxoffice.refunds.model.ticket_returns import NotReturnable, check_returnable, return_id
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import InvalidInput
from frontrow.shared.money import Money

H = 3_600
STARTS_US = 400 * H * US_PER_S
EVENT = Event(
    id="evt_1",
    name="Aurora",
    venue_id="ven_1",
    plan_hash="p",
    currency="EUR",
    starts_at_us=STARTS_US,
    sale_starts_at_us=1,
    sale_ends_at_us=STARTS_US - 1,
    tiers=(PriceTier("front", Money(5_000, "EUR")),),
    status=EventStatus.ON_SALE,
)
BOOKING = Booking("bkg_1", "evt_1", "fan", BookingState.CONFIRMED, 1, (1, 2), 10_600, "EUR", "", 1, 1, 2, 1)
PAID = PaidFor({1: 5_000, 2: 5_000}, {}, (("Booking fee", 600),))


def paid_by(*providers: str) -> list[Payment]:
    return [Payment(f"pay_{n}", "bkg_1", n, name, 1, "EUR") for n, name in enumerate(providers, 1)]


def test_what_was_paid_to_staff_is_given_back_by_staff() -> None:
    check_paid_online([])
    check_paid_online(paid_by("stripe", "simulated"))
    for providers in ((EXTERNAL,), ("stripe", EXTERNAL)):
        with pytest.raises(PaidAtBoxOffice) as refused:
            check_paid_online(paid_by(*providers))
        assert refused.value.code == "paid_at_box_office"


@pytest.mark.parametrize("steps", [(), (RefundStep(48 * H), RefundStep(24 * H, 5_000))])
def test_the_window_closes_with_its_last_step(steps: tuple[RefundStep, ...]) -> None:
    event = replace(EVENT, refunds=RefundPolicy(steps=steps))
    ends_us = STARTS_US - (24 if steps else 48) * H * US_PER_S
    check_window(event, ends_us - 1)
    with pytest.raises(RefundRefused, match="24 h" if steps else "48 h"):
        check_window(event, ends_us)
    check_window(replace(event, status=EventStatus.CANCELLED), ends_us)


def test_an_event_without_refunds_refuses_until_it_is_cancelled() -> None:
    event = replace(EVENT, refunds=RefundPolicy(allowed=False))
    with pytest.raises(RefundRefused, match="cannot be refunded"):
        check_window(event, 1)
    check_window(replace(event, status=EventStatus.CANCELLED), 1)


def test_each_step_ends_at_its_instant() -> None:
    policy = RefundPolicy(steps=(RefundStep(48 * H), RefundStep(24 * H, 5_000), RefundStep(0, 1_000)))
    for until_h, before, at in ((48, 10_000, 5_000), (24, 5_000, 1_000)):
        edge_us = STARTS_US - until_h * H * US_PER_S
        found = [policy.step_at(STARTS_US, now_us) for now_us in (edge_us - 1, edge_us)]
        assert [step.basis_points for step in found if step] == [before, at]
    assert policy.step_at(STARTS_US, STARTS_US) is None
    assert RefundPolicy(window_s=7).all_steps == (RefundStep(7, 10_000),)
    assert str(RefundStep(36 * H, 5_050)) == "50.5 % until 36 h before"


def test_the_fee_is_per_seat_and_per_cent() -> None:
    policy = RefundPolicy(fee_per_seat_minor=150, fee_basis_points=1_000)
    assert policy.fee_of(Money(5_000, "EUR"), 3) == 450 + 500


@pytest.mark.parametrize(
    "policy",
    [
        RefundPolicy(window_s=0),
        RefundPolicy(fee_basis_points=10_000),
        RefundPolicy(steps=(RefundStep(48 * H, 10_000), RefundStep(0, 1))),
        RefundPolicy(window_s=9, steps=tuple(RefundStep(9 - n, 9_000 - n) for n in range(MAX_REFUND_STEPS))),
    ],
)
def test_policies_at_the_edge_are_allowed(policy: RefundPolicy) -> None:
    check_policy(policy)


@pytest.mark.parametrize(
    "policy",
    [
        RefundPolicy(window_s=-1),
        RefundPolicy(fee_per_seat_minor=-1),
        RefundPolicy(fee_basis_points=-1),
        RefundPolicy(fee_basis_points=10_001),
        RefundPolicy(window_s=9, steps=tuple(RefundStep(9 - n, 9_000 - n) for n in range(MAX_REFUND_STEPS + 1))),
        RefundPolicy(steps=(RefundStep(48 * H), RefundStep(-1, 5_000))),
        RefundPolicy(steps=(RefundStep(48 * H, 0),)),
        RefundPolicy(steps=(RefundStep(48 * H, 10_001),)),
        RefundPolicy(steps=(RefundStep(48 * H), RefundStep(48 * H, 5_000))),
        RefundPolicy(steps=(RefundStep(48 * H, 5_000), RefundStep(24 * H, 5_000))),
        RefundPolicy(window_s=48 * H + 1, steps=(RefundStep(48 * H),)),
    ],
)
def test_policies_beyond_the_edge_are_refused(policy: RefundPolicy) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_policy(policy)
    assert refused.value.param == "refunds"


def test_a_resale_brings_the_seats_price_and_the_last_seat_the_fees_too() -> None:
    one = resale_sum(BOOKING, PAID, [2])
    assert (one.choice.seats, one.amount_minor, one.fee_minor) == ((2,), 5_000, 0)
    assert sum(line.amount_minor for line in one.lines) == one.amount_minor == one.worth_minor
    assert (one.fees_left, one.used) == (PAID.fees, ())
    used = msgspec.structs.replace(PAID, used=(("Parking", 1, 800),))
    last = resale_sum(BOOKING, used, [1, 2])
    assert (last.choice.seats, last.amount_minor, last.fees_left, last.used) == ((1, 2), 10_600, (), used.used)
    assert resale_sum(BOOKING, used, [1]).used == (), "what was redeemed is told with the last seat"


def test_what_was_redeemed_stays_with_the_organiser_as_far_as_it_is_still_paid() -> None:
    """The last seats go back; 800 for parking that was used do not."""
    used, everything = msgspec.structs.replace(PAID, used=(("Parking", 1, 800),)), RefundChoice((1, 2))
    for left_minor, fee in ((None, 800), (11_400, 800), (10_900, 300), (10_600, 0)):
        done = refund_sum(EVENT, BOOKING, used, everything, 1, by_policy=False, left_minor=left_minor)
        assert (done.amount_minor, done.fee_minor, done.fees_left, done.used) == (10_600, fee, (), used.used)
    part = refund_sum(EVENT, BOOKING, used, RefundChoice((1,)), 1, by_policy=False)
    assert (part.fee_minor, part.used) == (0, ())


def test_every_part_that_is_kept_is_a_line_of_its_kind() -> None:
    """Fees per seat and per booking, the step's share and the fee for refunding: in this order, of what is left."""
    seats = PriceLine(LineKind.SEAT, "Front", 2, 5_000, 10_000, (1, 2), key="front", terms=LineTerms(100))
    booking = msgspec.structs.replace(BOOKING, price_lines=encode_lines((seats,)))
    policy = RefundPolicy(
        steps=(RefundStep(48 * H, 9_000), RefundStep(24 * H, 5_000), RefundStep(2 * H, 2_500)),
        fee_per_seat_minor=10,
        keeps_seat_fees=True,
        keeps_booking_fees=True,
    )
    done = refund_sum(replace(EVENT, refunds=policy), booking, PAID, RefundChoice((1, 2)), STARTS_US, by_policy=True)
    kept = [(line.kind, line.quantity, line.amount_minor) for line in done.lines if line.amount_minor < 0]
    worth = sum(line.amount_minor for line in done.lines if line.amount_minor > 0)
    left = worth - 600 + sum(amount for kind, _, amount in kept if kind is RefundLineKind.SEAT_FEES_KEPT)
    share = left - Money(left, "EUR").percent(2_500).minor
    assert kept[-3:] == [
        (RefundLineKind.BOOKING_FEES_KEPT, 1, -600),
        (RefundLineKind.SHARE_KEPT, 1, -share),
        (RefundLineKind.REFUND_FEE, 1, -20),
    ]
    assert [count for kind, count, _ in kept if kind is RefundLineKind.SEAT_FEES_KEPT] == [2]
    assert done.amount_minor == worth + sum(amount for _, _, amount in kept)


def test_what_a_policy_keeps_is_never_more_than_the_refund_is_worth() -> None:
    event = replace(EVENT, refunds=RefundPolicy(fee_per_seat_minor=9_000, fee_basis_points=5_000))
    kept = refund_sum(event, BOOKING, PAID, RefundChoice((1,)), 1, by_policy=True)
    assert (kept.amount_minor, kept.fee_minor, kept.fees_left) == (0, 5_000, PAID.fees)
    without = refund_sum(event, BOOKING, PAID, RefundChoice((1,)), 1, by_policy=False)
    assert (without.amount_minor, without.fee_minor) == (5_000, 0)
    cancelled = refund_sum(
        replace(event, status=EventStatus.CANCELLED), BOOKING, PAID, RefundChoice((1,)), 1, by_policy=True
    )
    assert (cancelled.amount_minor, cancelled.fee_minor) == (5_000, 0), "nobody keeps anything of a cancelled event"


def test_a_share_is_kept_by_the_step_and_after_the_last_step_by_the_last_one() -> None:
    steps = (RefundStep(48 * H), RefundStep(24 * H, 2_500))
    event = replace(EVENT, refunds=RefundPolicy(steps=steps))
    for now_us, amount in ((1, 5_000), (STARTS_US - 30 * H * US_PER_S, 1_250), (STARTS_US, 1_250)):
        done = refund_sum(event, BOOKING, PAID, RefundChoice((2,)), now_us, by_policy=True)
        assert (done.amount_minor, done.fee_minor) == (amount, 5_000 - amount), now_us


@pytest.mark.parametrize(("left_minor", "amount"), [(None, 10_600), (10_600, 10_600), (10_599, 10_599), (0, 0)])
def test_no_more_goes_back_than_is_left_of_the_payment(left_minor: int | None, amount: int) -> None:
    done = refund_sum(EVENT, BOOKING, PAID, RefundChoice((1, 2)), 1, by_policy=False, left_minor=left_minor)
    assert done.amount_minor == amount == sum(line.amount_minor for line in done.lines)
    assert any(line.kind is RefundLineKind.REFUNDED_BEFORE for line in done.lines) == (amount < 10_600)


def test_a_seat_is_given_back_while_the_event_can_resell_it() -> None:
    check_returnable(EVENT, "bkg_1", EVENT.sale_ends_at_us - 1)
    for event, now_us in ((EVENT, EVENT.sale_ends_at_us), (replace(EVENT, status=EventStatus.CANCELLED), 1)):
        with pytest.raises(NotReturnable):
            check_returnable(event, "bkg_1", now_us)


def test_a_returns_name_is_its_bookings_and_seats_and_never_changes() -> None:
    """It is the idempotency key of its refund: another version of the program must find the same."""
    found = {return_id(booking, seat) for booking in ("bkg_1", "bkg_2") for seat in (1, 2, 11)}
    assert len(found) == 6
    assert return_id("bkg_1", 1) == "rtn_CE1E7PHE1QK92SF3JVPYXVXA4N"
