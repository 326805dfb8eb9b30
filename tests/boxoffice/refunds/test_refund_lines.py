"""A refund is the sum of its lines: whatever was bought, and in whatever order it goes back."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontrow.boxoffice.events.model.events import Event, EventStatus, Fee, FeesShown, PriceTier, check_event
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState, SeatsNotInBooking
from frontrow.boxoffice.pricing.model.booking_choices import BookingChoice, price_choice
from frontrow.boxoffice.pricing.model.prices import (
    DIFFERENT,
    LineKind,
    LineTerms,
    PriceLine,
    Quote,
    decode_lines,
    encode_lines,
    move_lines,
)
from frontrow.boxoffice.pricing.model.sale_options import AddOn, Discount, TicketType
from frontrow.boxoffice.refunds.model.refund_lines import (
    EVERYTHING,
    PaidFor,
    RefundChoice,
    RefundLine,
    RefundLineKind,
    add_on_names,
    add_ons_gone,
    covers_choice,
    decode_refund_lines,
    encode_refund_lines,
    kept_lines,
    paid_for,
    refund_lines,
    seat_fees,
)
from frontrow.boxoffice.refunds.model.refund_policy import RefundPolicy, RefundStep
from frontrow.boxoffice.refunds.model.refund_rules import RefundRefused, RefundSum, check_window, refund_sum, resale_sum
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import InvalidInput
from frontrow.shared.money import Money, share_out
from tests.boxoffice.plan_samples import small_plan

PLAN = small_plan()
FRONT = [at for at, seat in enumerate(PLAN.seats) if seat.tier == "front"][:4]
BACK = [at for at, seat in enumerate(PLAN.seats) if seat.tier == "back"][:3]
STARTS_US = 400 * 3600 * US_PER_S
NOW = US_PER_S
DINNER, PARKING = AddOn("dinner", "Dinner", 20_000), AddOn("parking", "Parking", 833, max_per_booking=5)
EVENT = Event(
    id="evt_1",
    name="Aurora",
    venue_id="ven_1",
    plan_hash="p",
    currency="EUR",
    starts_at_us=STARTS_US,
    sale_starts_at_us=1,
    sale_ends_at_us=STARTS_US,
    tiers=(
        PriceTier("front", Money(5001, "EUR"), "Front"),
        PriceTier("back", Money(2000, "EUR")),
        PriceTier("standing", Money(3000, "EUR")),
    ),
    ticket_types=(TicketType("adult", "Adult"), TicketType("family", "Family", 5_003, min_per_booking=3)),
    add_ons=(DINNER, PARKING),
    discounts=(
        Discount("TEN", basis_points=1_000),
        Discount("FIVE", amount_minor=500, tiers=("back",)),
        Discount("ONCE", amount_minor=3_001, per_booking=True),
    ),
)


class Sold(msgspec.Struct):
    """A booking with the prices of its seats, as the ledger keeps them. Refunds change it as the ledger would."""

    booking: Booking
    prices: dict[int, int]
    gone: Counter[str]

    def paid(self) -> PaidFor:
        return paid_for(self.booking, self.prices, self.gone)

    def refund(self, event: Event, choice: RefundChoice, now_us: int = NOW, *, by_policy: bool = True) -> RefundSum:
        done = refund_sum(event, self.booking, self.paid(), choice, now_us, by_policy=by_policy)
        left = tuple(seat for seat in self.booking.seats if seat not in done.choice.seats)
        worth = self.booking.amount_minor - done.worth_minor
        self.booking = msgspec.structs.replace(self.booking, seats=left, amount_minor=worth)
        self.prices = {seat: price for seat, price in self.prices.items() if seat in left}
        self.gone += add_ons_gone([done.lines])
        return done


def sold(quote: Quote, seats: Sequence[int]) -> Sold:
    prices = dict(zip(seats, quote.seat_totals_minor, strict=True))
    booking = Booking(
        "bkg_1",
        "evt_1",
        "fan",
        BookingState.CONFIRMED,
        1,
        tuple(sorted(seats)),
        quote.total_minor,
        "EUR",
        "",
        1,
        1,
        2,
        1,
        price_lines=encode_lines(quote.lines),
    )
    return Sold(booking, prices, Counter())


def bought(
    event: Event, seats: Sequence[int], types: Mapping[int, str] | None = None, code: str = "", **add_ons: int
) -> Sold:
    choice = BookingChoice(dict(types or {}), add_ons, code)
    return sold(price_choice(event, PLAN, seats, choice, NOW).quote, seats)


def old_form(one: Sold) -> Sold:
    """The same booking as it was sold before ADR 0180: shares of add-ons and fees per booking in the seats' prices, and
    lines without terms."""
    lines = decode_lines(one.booking.price_lines)
    apart = [x for x in lines if x.kind is LineKind.ADD_ON or (x.kind is LineKind.FEE and x.terms is not None)]
    prices = list(one.prices.values())
    for line in apart:
        shares = share_out(line.amount_minor, prices if any(prices) else [1] * len(prices))
        prices = [price + share for price, share in zip(prices, shares, strict=True)]
    bare = encode_lines([msgspec.structs.replace(line, terms=None) for line in lines])
    booking = msgspec.structs.replace(one.booking, price_lines=bare)
    return Sold(booking, dict(zip(one.prices, prices, strict=True)), Counter())


def amounts(done: RefundSum) -> list[tuple[str, str, int, int]]:
    return [(line.kind.value, line.name, line.quantity, line.amount_minor) for line in done.lines]


def test_a_percentage_is_kept_of_the_whole_refund_and_not_of_each_seat() -> None:
    """0.37 % of four times 50.01 is 0.74. Rounded per seat it is 0.19 four times."""
    for points, whole in ((37, 74), (33, 66), (111, 222)):
        event = replace(EVENT, refunds=RefundPolicy(fee_basis_points=points))
        done = bought(event, FRONT).refund(event, EVERYTHING)
        assert (done.fee_minor, done.amount_minor) == (whole, 4 * 5001 - whole), points


def test_nobody_gets_everything_back_and_keeps_a_seat_and_the_dinner() -> None:
    """The finding: 50.00, a free seat for a child and a dinner of 200.00. The first seat brought back 250.00."""
    child = TicketType("child", "Child", 0)
    event = replace(
        EVENT,
        ticket_types=(*EVENT.ticket_types, child),
        tiers=(PriceTier("front", Money(5000, "EUR"), "Front"), *EVENT.tiers[1:]),
    )
    for made in (lambda one: one, old_form):
        one = made(bought(event, FRONT[:2], {FRONT[1]: "child"}, dinner=1))
        assert one.booking.amount_minor == 25_000
        assert one.refund(event, RefundChoice((FRONT[0],))).amount_minor == 5000
        assert one.booking.amount_minor == 20_000


def test_a_seat_brings_back_its_own_price_and_the_dinner_stays() -> None:
    event = replace(EVENT, tiers=(PriceTier("front", Money(2500, "EUR"), "Front"), *EVENT.tiers[1:]))
    one = bought(event, FRONT[:2], dinner=1)
    assert one.booking.amount_minor == 25_000
    done = one.refund(event, RefundChoice((FRONT[0],)))
    assert amounts(done) == [("seat", "Front · Adult", 1, 2500)]
    assert (done.amount_minor, one.booking.amount_minor) == (2500, 22_500)
    done = one.refund(event, RefundChoice((), {"dinner": 1}))
    assert amounts(done) == [("add_on", "Dinner", 1, 20_000)]
    assert one.booking.seats == (FRONT[1],)
    assert one.refund(event, EVERYTHING).amount_minor == 2500


def test_the_last_seat_takes_everything_with_it() -> None:
    event = replace(EVENT, fees=(Fee("Service", per_booking_minor=199),))
    one = bought(event, FRONT[:2], parking=2)
    one.refund(event, RefundChoice((FRONT[0],)))
    done = one.refund(event, RefundChoice((FRONT[1],)))
    assert amounts(done) == [
        ("seat", "Front · Adult", 1, 5001),
        ("add_on", "Parking", 2, 1666),
        ("fee", "Service", 1, 199),
    ]
    assert one.booking.amount_minor == 0


@pytest.mark.parametrize("shown", list(FeesShown))
def test_fees_go_back_with_their_seat_unless_the_policy_keeps_them(shown: FeesShown) -> None:
    fees = (Fee("Service", 150, 100), Fee("Card", basis_points=200))
    event = replace(EVENT, fees=fees, fees_shown=shown)
    first, last = RefundChoice((FRONT[0],)), RefundChoice((BACK[0],))
    one = bought(event, [FRONT[0], BACK[0]])
    assert seat_fees(one.booking) == {FRONT[0]: 250, BACK[0]: 190}
    assert (one.refund(event, first).amount_minor, one.refund(event, last).amount_minor) == (5251, 2290)
    keeps = replace(event, refunds=RefundPolicy(keeps_seat_fees=True, keeps_booking_fees=True))
    one = bought(event, [FRONT[0], BACK[0]])
    done = one.refund(keeps, first)
    assert (done.amount_minor, done.fee_minor) == (5001, 250)
    assert amounts(done)[1:] == [("seat_fees_kept", "", 1, -250)]
    assert amounts(one.refund(keeps, last))[2:] == [("seat_fees_kept", "", 1, -190), ("booking_fees_kept", "", 1, -100)]
    cancelled = replace(keeps, status=EventStatus.CANCELLED)
    assert bought(event, [FRONT[0]]).refund(cancelled, EVERYTHING).fee_minor == 0


def test_a_seat_that_leaves_the_group_pays_the_price_without_it() -> None:
    seats = FRONT[:3]
    one = bought(EVENT, seats, dict.fromkeys(seats, "family"))
    assert one.booking.amount_minor == 3 * 2502
    done = one.refund(EVENT, RefundChoice((seats[0], seats[1])))
    assert amounts(done) == [("seat", "Front · Family", 2, 5004), ("group_price", "", 1, -2499)]
    assert one.booking.amount_minor == 5001, "the seat that is kept costs what one seat costs"
    done = one.refund(EVENT, EVERYTHING)
    assert amounts(done) == [("seat", "Front · Family", 1, 2502), ("group_price", "", 1, 2499)]
    assert one.booking.amount_minor == 0


def test_a_group_that_is_still_large_enough_keeps_its_price() -> None:
    one = bought(EVENT, FRONT, dict.fromkeys(FRONT, "family"))
    assert one.refund(EVENT, RefundChoice((FRONT[0],))).amount_minor == 2502


def test_nobody_pays_for_returning_a_seat_of_a_group() -> None:
    """Two of three stay and cost more without the group than was paid for all: nothing comes back, nothing is due."""
    seats = FRONT[:3]
    one = bought(EVENT, seats, dict.fromkeys(seats, "family"))
    assert one.refund(EVENT, RefundChoice((seats[0],))).amount_minor == 0
    assert one.booking.amount_minor == 3 * 2502
    assert one.refund(EVENT, RefundChoice((seats[1],))).amount_minor == 3 * 2502 - 5001
    assert one.refund(EVENT, EVERYTHING).amount_minor == 5001


def test_in_full_the_organiser_leaves_the_group_its_price() -> None:
    seats = FRONT[:3]
    one = bought(EVENT, seats, dict.fromkeys(seats, "family"))
    assert one.refund(EVENT, RefundChoice((seats[0],)), by_policy=False).amount_minor == 2502


def test_seats_for_resale_are_checked_for_the_group_too() -> None:
    seats = FRONT[:3]
    one = bought(EVENT, seats, dict.fromkeys(seats, "family"), dinner=1)
    assert resale_sum(one.booking, one.paid(), seats[:2]).amount_minor == 5004 - 2499
    assert resale_sum(one.booking, one.paid(), seats).amount_minor == one.booking.amount_minor


@pytest.mark.parametrize(
    "choice",
    [
        RefundChoice((), {"dinner": 2}),
        RefundChoice((), {"dinner": -1}),
        RefundChoice((), {"boat": 1}),
        RefundChoice((FRONT[0],), {"parking": 1}),
    ],
)
def test_nobody_gets_back_what_the_booking_does_not_have(choice: RefundChoice) -> None:
    one = bought(EVENT, FRONT[:2], dinner=1)
    with pytest.raises(InvalidInput, match="the booking has"):
        one.refund(EVENT, choice)
    with pytest.raises(SeatsNotInBooking):
        one.refund(EVENT, RefundChoice((BACK[0],)))


def test_steps_refund_less_as_the_show_comes_nearer() -> None:
    steps = (RefundStep(48 * 3600), RefundStep(24 * 3600, 5_000))
    event = replace(EVENT, refunds=RefundPolicy(steps=steps))
    check_event(event, PLAN)

    def at(hours: int, later_us: int = 0) -> int:
        return STARTS_US - hours * 3600 * US_PER_S + later_us

    for now_us, back, kept in (
        (at(48, -1), 5001, 0),
        (at(48), 2501, 2500),  # half a cent goes to the fan
        (at(24, -1), 2501, 2500),
    ):
        done = bought(event, FRONT[:1]).refund(event, EVERYTHING, now_us)
        assert (done.amount_minor, done.fee_minor) == (back, kept), now_us
        check_window(event, now_us)
    with pytest.raises(RefundRefused, match="until 24 h before"):
        check_window(event, at(24))
    one_step = replace(EVENT, refunds=RefundPolicy(steps=(RefundStep(48 * 3600),)))
    for now_us in (at(48, -1), at(49)):
        plain = bought(EVENT, FRONT[:1]).refund(EVENT, EVERYTHING, now_us)
        assert bought(one_step, FRONT[:1]).refund(one_step, EVERYTHING, now_us) == plain


@pytest.mark.parametrize(
    "policy",
    [
        RefundPolicy(steps=(RefundStep(48 * 3600), RefundStep(48 * 3600, 5_000))),
        RefundPolicy(steps=(RefundStep(48 * 3600), RefundStep(24 * 3600, 10_000))),
        RefundPolicy(steps=(RefundStep(48 * 3600, 0),)),
        RefundPolicy(steps=(RefundStep(48 * 3600, 10_001),)),
        RefundPolicy(steps=(RefundStep(24 * 3600),)),  # not the end of the window
        RefundPolicy(window_s=9, steps=tuple(RefundStep(9 - n, 9_000 - n) for n in range(7))),
    ],
)
def test_steps_that_make_no_sense_are_refused(policy: RefundPolicy) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_event(replace(EVENT, refunds=policy), PLAN)
    assert refused.value.param == "refunds"


def test_an_old_booking_gives_back_its_lines_without_their_shares() -> None:
    event = replace(EVENT, fees=(Fee("Service", per_booking_minor=100),))
    new = bought(event, FRONT[:2], dinner=1)
    old = old_form(new)
    assert sum(old.prices.values()) == old.booking.amount_minor
    assert old.paid() == new.paid()
    assert old.refund(event, RefundChoice((FRONT[0],))).amount_minor == 5001
    assert old.refund(event, RefundChoice((), {"dinner": 1})).amount_minor == 20_000
    assert old.refund(event, EVERYTHING).amount_minor == 5101


def test_an_old_booking_that_was_refunded_in_part_gives_back_no_more_than_is_left() -> None:
    """The old rule paid half of the dinner with the first seat. The rest is allotted to what is kept."""
    event = replace(EVENT, tiers=(PriceTier("front", Money(2500, "EUR"), "Front"), *EVENT.tiers[1:]))
    old = old_form(bought(event, FRONT[:2], dinner=1))
    gone = FRONT[0]
    paid = old.prices.pop(gone)
    assert paid == 12_500
    old.booking = msgspec.structs.replace(old.booking, seats=(FRONT[1],), amount_minor=12_500)
    dinner = old.refund(event, RefundChoice((), {"dinner": 1})).amount_minor
    assert (dinner, old.booking.amount_minor) == (11_111, 1389)
    assert old.refund(event, EVERYTHING).amount_minor == 1389


def test_lines_that_an_older_server_moved_keep_their_meaning() -> None:
    """A server from before ADR 0180 drops the terms when it moves a seat; the prices of the seats tell."""
    event = replace(EVENT, fees=(Fee("Service", per_booking_minor=100),))
    one = bought(event, FRONT[:2], dinner=1)
    bare = [msgspec.structs.replace(line, terms=None) for line in decode_lines(one.booking.price_lines)]
    one.booking = msgspec.structs.replace(
        one.booking, price_lines=move_lines(encode_lines(bare), [(FRONT[0], FRONT[3])]), seats=(FRONT[1], FRONT[3])
    )
    one.prices = {FRONT[1]: 5001, FRONT[3]: 5001}
    assert one.refund(event, RefundChoice((FRONT[3],))).amount_minor == 5001
    assert one.refund(event, EVERYTHING).amount_minor == 25_101


def test_the_add_ons_that_are_left_are_lines_with_what_is_left() -> None:
    one = bought(EVENT, FRONT[:2], dinner=1, parking=3)
    left = [x for x in kept_lines(one.booking, {"dinner": 1, "parking": 1}) if x.kind is LineKind.ADD_ON]
    assert [(line.key, line.quantity, line.amount_minor) for line in left] == [("parking", 2, 1666)]
    over = msgspec.structs.replace(one.booking, state=BookingState.REFUNDED)
    assert not [line for line in kept_lines(over, {}) if line.kind is LineKind.ADD_ON]


def test_money_that_went_back_in_another_way_is_not_paid_again() -> None:
    one = bought(EVENT, FRONT[:1], dinner=1)
    done = refund_sum(EVENT, one.booking, one.paid(), EVERYTHING, NOW, by_policy=True, left_minor=20_000)
    assert done.amount_minor == 20_000
    assert amounts(done)[-1] == ("refunded_before", "", 1, -5001)


policies = st.builds(
    RefundPolicy,
    fee_per_seat_minor=st.sampled_from([0, 0, 150, 100_000]),
    fee_basis_points=st.sampled_from([0, 0, 333, 10_000]),
    keeps_seat_fees=st.booleans(),
    keeps_booking_fees=st.booleans(),
    steps=st.sampled_from([(), (RefundStep(48 * 3600, 5_001),)]),
)
events = st.builds(
    replace,
    st.just(EVENT),
    fees=st.sampled_from(
        [(), (Fee("Service", 133, 99),), (Fee("Card", basis_points=333), Fee("Order", per_booking_minor=101))]
    ),
    fees_shown=st.sampled_from(FeesShown),
    refunds=policies,
)
orders = st.lists(st.tuples(st.sets(st.sampled_from([*FRONT, *BACK])), st.integers(0, 2), st.booleans()), max_size=8)


def some_of(one: Sold, wish: tuple[set[int], int, bool]) -> RefundChoice | None:
    """What of this wish the booking still has. None: nothing."""
    seats, parking, dinner = wish
    left = {key: len(some) for key, some in one.paid().add_ons.items()}
    add_ons = {"parking": min(parking, left.get("parking", 0)), "dinner": min(int(dinner), left.get("dinner", 0))}
    choice = RefundChoice(
        tuple(sorted(seats & set(one.booking.seats))), {key: count for key, count in add_ons.items() if count}
    )
    return None if choice.is_everything else choice


@given(
    events,
    st.sets(st.sampled_from([*FRONT, *BACK]), min_size=1),
    st.sampled_from(["", "TEN", "ONCE"]),
    st.booleans(),
    st.integers(0, 4),
    st.integers(0, 1),
    st.booleans(),
    orders,
)
def test_any_sequence_of_refunds_gives_back_the_lines_and_keeps_the_rest(
    event: Event, chosen: set[int], code: str, family: bool, parking: int, dinner: int, old: bool, order: list[object]
) -> None:
    """For any booking, of today or from before ADR 0180: back + kept by the policy + paid for what stays = paid."""
    seats = sorted(chosen)
    types = dict.fromkeys(seats, "family") if family and len(seats) >= 3 else {}
    one = bought(event, seats, types, code, parking=parking, dinner=dinner)
    paid = one.booking.amount_minor
    if old:
        one = old_form(one)
    back = kept = 0
    for wish in order:
        before, has = one.booking.amount_minor, one.paid()
        choice = some_of(one, wish)  # type: ignore[arg-type]
        if choice is None:
            continue
        done = one.refund(event, choice)
        assert sum(line.amount_minor for line in done.lines) == done.amount_minor >= 0
        assert done.fee_minor >= 0
        returned = {seat for line in done.lines for seat in line.seats}
        assert returned == set(choice.seats)
        assert sum(x.amount_minor for x in done.lines if x.kind is RefundLineKind.SEAT) == sum(
            has.seats[seat] for seat in choice.seats
        )
        back, kept = back + done.amount_minor, kept + done.fee_minor
        assert back + kept + one.booking.amount_minor == paid
        assert one.booking.amount_minor == before - done.worth_minor >= 0
        if not one.booking.seats:
            break
        now = one.paid()
        assert sum(now.seats.values()) + sum(map(sum, now.add_ons.values())) + now.fees_minor + now.withheld_minor == (
            one.booking.amount_minor
        )
        if not old:
            assert now.seats == {seat: has.seats[seat] for seat in one.booking.seats}, "what is kept keeps its price"
    if one.booking.seats:
        last = one.refund(event, EVERYTHING)
        back, kept = back + last.amount_minor, kept + last.fee_minor
    assert (one.booking.amount_minor, back + kept) == (0, paid)


@given(
    events,
    st.sets(st.sampled_from([*FRONT, *BACK]), min_size=3),
    st.sampled_from(["", "TEN", "FIVE"]),
    st.lists(st.sets(st.sampled_from([*FRONT, *BACK])), max_size=5),
)
def test_who_leaves_a_group_pays_what_the_rest_costs_alone(
    event: Event, chosen: set[int], code: str, order: list[set[int]]
) -> None:
    """Priced by the shop itself: the kept seats bought alone. Never more than was paid at any time before."""
    if code == "FIVE":
        chosen = chosen | {BACK[0]}
        order = [some - {BACK[0]} for some in order]
    seats = sorted(chosen)
    one = bought(event, seats, dict.fromkeys(seats, "family"), code, parking=1)
    worth = one.booking.amount_minor
    for some in order:
        choice = RefundChoice(tuple(sorted(some & set(one.booking.seats))))
        left = sorted(set(one.booking.seats) - some)
        if not choice.seats or not left:
            continue
        one.refund(event, choice)
        types = dict.fromkeys(left, "family") if len(left) >= 3 else {}
        worth = min(worth, bought(event, left, types, code, parking=1).booking.amount_minor)
        assert one.booking.amount_minor == worth


# Lines of the price as they are stored, without the shop that priced them.

STALLS = PriceLine(LineKind.SEAT, "Stalls", 2, 5_000, 10_000, (1, 2), key="stalls")
GALLERY = PriceLine(LineKind.SEAT, "Gallery", 1, 2_000, 2_000, (3,), key="gallery/child")
PER_SEAT = PriceLine(LineKind.FEE, "Service", 3, 100, 300)
IN_PROPORTION = PriceLine(LineKind.FEE, "Card", 3, DIFFERENT, 1_200)
PER_BOOKING = PriceLine(LineKind.FEE, "Order", 1, 99, 99)
CAR = PriceLine(LineKind.ADD_ON, "Parking", 3, 800, 2_400, key="parking")


def stored(*lines: PriceLine, worth: int = 0) -> Booking:
    """A booking with these lines; all its seats are in them."""
    seats = tuple(sorted(seat for line in lines for seat in line.seats))
    state, text = BookingState.CONFIRMED, encode_lines(lines)
    return Booking("bkg_1", "evt_1", "fan", state, 1, seats, worth, "EUR", "", 1, 1, 2, 1, price_lines=text)


def test_an_old_booking_paid_its_fees_per_seat_alike_or_in_proportion() -> None:
    assert seat_fees(stored(STALLS, GALLERY, PER_SEAT, CAR, PER_BOOKING)) == {1: 100, 2: 100, 3: 100}
    assert seat_fees(stored(STALLS, GALLERY, PER_SEAT, IN_PROPORTION, CAR, PER_BOOKING)) == {1: 600, 2: 600, 3: 300}
    free = [msgspec.structs.replace(line, unit_minor=0, amount_minor=0) for line in (STALLS, GALLERY)]
    assert seat_fees(stored(*free, IN_PROPORTION)) == {1: 400, 2: 400, 3: 400}, "free seats share alike"
    assert seat_fees(stored(GALLERY, PER_BOOKING)) == {3: 99}, "of one seat nobody can tell it from a fee per seat"
    assert seat_fees(stored()) == {}


def test_a_booking_of_today_says_what_each_seat_paid_in_fees() -> None:
    with_terms = msgspec.structs.replace(STALLS, terms=LineTerms(250))
    assert seat_fees(stored(with_terms, GALLERY, PER_SEAT)) == {1: 250, 2: 250, 3: 0}


def test_a_fee_without_terms_is_per_seat_today_and_was_per_booking_if_there_was_one_of_it() -> None:
    alone = msgspec.structs.replace(PER_BOOKING, name="Alone")
    ours = msgspec.structs.replace(PER_BOOKING, terms=LineTerms())
    prices = {1: 5_000, 2: 5_000, 3: 2_000}
    today = stored(msgspec.structs.replace(STALLS, terms=LineTerms()), GALLERY, alone, ours, worth=12_099)
    assert paid_for(today, prices, {}).fees == (("Order", 99),)
    old = stored(STALLS, GALLERY, PER_SEAT, alone, worth=12_099)
    assert paid_for(old, prices, {}).fees == (("Alone", 99),)
    shown = stored(STALLS, GALLERY, msgspec.structs.replace(alone, included=True), worth=12_000)
    assert paid_for(shown, prices, {}).fees == ()


def test_add_ons_that_were_redeemed_stay_paid_and_the_others_are_left() -> None:
    booking = stored(STALLS, CAR, worth=12_400)

    def left(**used: int) -> tuple[dict[str, list[int]], tuple[tuple[str, int, int], ...]]:
        paid = paid_for(booking, {1: 5_000, 2: 5_000}, {}, used)
        return paid.add_ons, paid.used

    assert left(parking=2) == ({"parking": [800]}, (("Parking", 2, 1_600),))
    assert left(parking=3) == ({"parking": []}, (("Parking", 3, 2_400),))
    assert left(parking=0, boat=1) == ({"parking": [800] * 3}, ())
    assert paid_for(booking, {1: 5_000, 2: 5_000}, {"parking": 3}, {"parking": 1}).used == ()


def test_what_is_over_keeps_its_lines_but_for_the_add_ons() -> None:
    lines = (STALLS, GALLERY, PER_SEAT, CAR)
    for state in (BookingState.REFUNDED, BookingState.CANCELLED):
        assert kept_lines(msgspec.structs.replace(stored(*lines), state=state), {"stalls": 1}) == lines[:3]
    assert kept_lines(stored(*lines), {}) == lines
    fewer = msgspec.structs.replace(CAR, quantity=1, amount_minor=800)
    assert kept_lines(stored(*lines), {"parking": 2, "stalls": 1}) == (*lines[:3], fewer)


def test_a_line_of_a_refund_names_the_line_of_the_price_that_it_gives_back() -> None:
    with_strange = msgspec.structs.replace(stored(STALLS, GALLERY, worth=12_500), seats=(1, 2, 3, 4))
    paid = paid_for(with_strange, {1: 5_000, 2: 5_000, 3: 2_000, 4: 500}, {})
    assert refund_lines(with_strange, paid, RefundChoice((1, 2, 3, 4))) == (
        RefundLine(RefundLineKind.SEAT, "Stalls", 2, 10_000, (1, 2), "stalls"),
        RefundLine(RefundLineKind.SEAT, "Gallery", 1, 2_000, (3,), "gallery/child"),
        RefundLine(RefundLineKind.SEAT, "", 1, 500, (4,), ""),
    )


SEAT_LINE = RefundLine(RefundLineKind.SEAT, "Front", 1, 5_001, (1,), "front")
CARS = RefundLine(RefundLineKind.ADD_ON, "Parking", 2, 1_666, (), "parking")
DINNERS = RefundLine(RefundLineKind.ADD_ON, "Dinner", 1, 20_000, (), "dinner")


def test_the_add_ons_of_several_refunds_are_counted_together() -> None:
    assert add_ons_gone([[SEAT_LINE, CARS], [CARS, DINNERS]]) == {"parking": 4, "dinner": 1}
    assert add_ons_gone([]) == {}
    assert add_on_names([SEAT_LINE, CARS, DINNERS]) == ("2 × Parking", "1 × Dinner")


def test_a_refund_stores_its_lines_and_an_old_one_has_none() -> None:
    assert decode_refund_lines(encode_refund_lines([SEAT_LINE, CARS])) == (SEAT_LINE, CARS)
    assert decode_refund_lines("") == ()


def test_a_refund_covers_a_choice_of_its_seats_and_of_no_more_add_ons_than_it_has() -> None:
    lines = [SEAT_LINE, CARS]
    assert covers_choice([2, 1], lines, RefundChoice((1, 2), {"parking": 2}))
    assert covers_choice([1], lines, RefundChoice((1,), {"parking": 1})), "with the last seat more has gone"
    assert covers_choice([1], lines, RefundChoice((1,)))
    assert not covers_choice([1], lines, RefundChoice((1,), {"parking": 3}))
    assert not covers_choice([1], lines, RefundChoice((1,), {"parking": 1, "dinner": 1}))
    assert not covers_choice([1, 2], lines, RefundChoice((1,)))
    assert not covers_choice([1], lines, RefundChoice((1, 2)))


@pytest.mark.parametrize("left", [300, 0])
def test_a_booking_without_the_prices_of_its_seats_gives_back_what_is_left(left: int) -> None:
    """An older server wrote no price per seat, and a part of the money went back in another way."""
    lines = price_choice(EVENT, PLAN, FRONT[:2], BookingChoice({}, {"parking": 1}), NOW).quote.lines
    stored = encode_lines([line for line in lines if line.kind is not LineKind.FEE])
    booking = Booking(
        "bkg_1",
        "evt_1",
        "ada",
        BookingState.CONFIRMED,
        1,
        tuple(FRONT[:2]),
        left,
        "EUR",
        "",
        0,
        0,
        9,
        price_lines=stored,
    )
    assert paid_for(booking, {}, {}) == PaidFor({}, {"parking": [left]}, (), 0, ())
