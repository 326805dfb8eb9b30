"""Who gets which freed seats, and the lottery: pure (B11)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.holds.model.requested_seats import Wish, masks_for
from frontrow.boxoffice.seats.model.best_seats import layouts
from frontrow.boxoffice.waitlist.model.offers import (
    MAX_LAPSES,
    OFFER_MOVES,
    Offer,
    OfferMove,
    OfferState,
    due_move,
    entry_after,
)
from frontrow.boxoffice.waitlist.model.waitlist import (
    MAX_SECTIONS,
    EntryState,
    NewEntry,
    WaitlistEntry,
    WaitOrder,
    lottery_rank,
    rules_for,
    seed_hash,
)
from frontrow.boxoffice.waitlist.model.waitlist_matching import SeatPool, assign_seats
from frontrow.core.errors import InvalidInput
from tests.boxoffice.shop import shop_event
from tests.boxoffice.waiting import small_plan

PLAN = small_plan()
LAYOUTS = layouts(PLAN)
EVENT = shop_event()


def pool(*free: int, last: dict[int, str] | None = None) -> SeatPool:
    taken = [seat for seat in range(PLAN.size) if seat not in free]

    def masks(wish: Wish) -> list[tuple[int, bytes]]:
        return masks_for(PLAN, LAYOUTS, EVENT, wish)

    return SeatPool(PLAN, LAYOUTS, masks, taken, last)


def entry(number: int, count: int = 1, *sections: str, split_ok: bool = False, rank: int = 0) -> WaitlistEntry:
    state = EntryState.WAITING
    return WaitlistEntry(
        number, f"wle_{number}", EVENT.id, f"f{number}", count, sections, split_ok, rank, state, 0, 0, 0
    )


def given_to(entries: list[WaitlistEntry], free: SeatPool) -> dict[int, tuple[int, ...]]:
    return {one.number: seats for one, seats in assign_seats(entries, free)}


def test_seats_go_to_the_first_in_line_whom_they_fit() -> None:
    line = [entry(1, 3), entry(2, 2), entry(3, 1, "B"), entry(4, 1)]
    assert given_to(line, pool(1, 2, 9)) == {2: (1, 2), 3: (9,)}
    assert given_to(line, pool(1)) == {4: (1,)}
    assert given_to(line, pool(0, 1, 2)) == {1: (0, 1, 2)}


def test_a_party_is_split_only_if_it_said_so() -> None:
    """Seats 0 and 2 are not side by side, 3 and 4 are in two rows, 7 and 8 in two sections."""
    for free in ((0, 2), (3, 4), (7, 8), (0, 4)):
        assert given_to([entry(1, 2)], pool(*free)) == {}
        assert given_to([entry(1, 2, split_ok=True)], pool(*free)) == {1: free}
    assert given_to([entry(1, 2, "A", split_ok=True)], pool(7, 8)) == {}, "outside the chosen sections"
    assert given_to([entry(1, 3)], pool(12, 13, 14)) == {1: (12, 13, 14)}, "places of an area are all alike"


def test_nobody_is_offered_the_seat_they_had_last() -> None:
    last = {1: "f1", 2: "f2"}
    assert given_to([entry(1)], pool(1, last=last)) == {}
    assert given_to([entry(1), entry(2)], pool(1, 2, last=last)) == {1: (2,), 2: (1,)}
    assert given_to([entry(1, 2)], pool(0, 1, last=last)) == {}
    for seat in range(PLAN.size):  # in each section, also its first and its last
        assert given_to([entry(1)], pool(seat, last={seat: "f1"})) == {}
        assert given_to([entry(2)], pool(seat, last={seat: "f1"})) == {2: (seat,)}


def test_unknown_sections_fit_nothing() -> None:
    assert given_to([entry(1, 1, "Z")], pool(1)) == {}


@given(
    free=st.sets(st.integers(0, PLAN.size - 1)),
    line=st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["", "A", "B", "S"]), st.booleans()), max_size=8),
)
def test_every_assignment_is_whole_disjoint_and_in_the_chosen_section(
    free: set[int], line: list[tuple[int, str, bool]]
) -> None:
    entries = [entry(n, count, *filter(None, [section]), split_ok=ok) for n, (count, section, ok) in enumerate(line)]
    rest = pool(*free)
    given_seats = given_to(entries, rest)
    used = [seat for seats in given_seats.values() for seat in seats]
    assert len(used) == len(set(used))
    assert set(used) <= free
    for one in entries:
        seats = given_seats.get(one.number)
        if seats is None:
            assert not rest.pick(one), "was passed over although it fits what is left"
            continue
        assert len(seats) == one.seat_count
        sections = {PLAN.sections[PLAN.section_at(seat)].id for seat in seats}
        assert not one.sections or sections <= set(one.sections)
        if not one.split_ok and sections != {"S"}:
            assert seats == tuple(range(seats[0], seats[0] + len(seats)))
            assert len({PLAN.seat_ids[seat].rpartition("-")[0] for seat in seats}) == 1, "two rows"


def test_a_lottery_can_be_checked_by_anybody_and_favours_nobody() -> None:
    """The hash is published before, the seed after; ranks are spread evenly over fans in any order of joining."""
    rules = rules_for("evt_1", WaitOrder.LOTTERY, "0123456789abcdef")
    assert rules.seed_hash == seed_hash("0123456789abcdef")
    assert rules.rank("ada") == lottery_rank("0123456789abcdef", "evt_1", "ada") < 2**53
    assert rules.rank("ada") != rules_for("evt_2", WaitOrder.LOTTERY, "0123456789abcdef").rank("ada")
    ranks = [rules.rank(f"fan{n}") for n in range(2_000)]
    first_half = sum(rank < 2**52 for rank in ranks)
    assert 850 < first_half < 1_150
    early = sum(sorted(range(2_000), key=ranks.__getitem__)[:1_000]) / 1_000
    assert 900 < early < 1_100, "those who joined early were preferred"
    fifo = rules_for("evt_1", WaitOrder.FIFO)
    assert (fifo.rank("ada"), fifo.seed, fifo.seed_hash) == (0, "", "")
    with pytest.raises(InvalidInput, match="seed"):
        rules_for("evt_1", WaitOrder.LOTTERY, "short")


def test_the_table_of_offers_decides_every_cell() -> None:
    for state in OfferState:
        for move in OfferMove:
            to = OFFER_MOVES.get((state, move))
            if state is OfferState.OPEN:
                assert to is not None
                assert OFFER_MOVES[to, move] is to, "a repeated answer is no error"
            else:
                assert to in (None, state)


def offer(state: BookingState, hold_expires_at_us: int = 300) -> Offer:
    return Offer("o", "e", "v", "f", "b", OfferState.OPEN, 300, 1, (1,), state, hold_expires_at_us)


def test_what_becomes_of_an_offer_follows_from_its_booking() -> None:
    claim, decline, lapse = OfferMove.CLAIM, OfferMove.DECLINE, OfferMove.LAPSE
    assert [due_move(offer(BookingState.HELD), now_us) for now_us in (0, 299, 300)] == [None, None, lapse]
    assert due_move(offer(BookingState.HELD, 900), 300) is claim, "the hold was extended: in use"
    assert due_move(offer(BookingState.PAYING), 900) is claim
    assert due_move(offer(BookingState.CONFIRMED), 0) is claim
    assert due_move(offer(BookingState.REFUNDED), 0) is claim
    assert due_move(offer(BookingState.CANCELLED), 0) is decline
    assert due_move(offer(BookingState.EXPIRED), 0) is lapse


def test_an_entry_that_never_answers_leaves_the_line() -> None:
    assert entry_after(OfferMove.LAPSE, 0) is EntryState.WAITING
    assert entry_after(OfferMove.LAPSE, MAX_LAPSES - 1) is EntryState.ENDED
    assert entry_after(OfferMove.DECLINE, MAX_LAPSES) is EntryState.WAITING
    assert entry_after(OfferMove.CLAIM, 0) is EntryState.SERVED
    assert entry_after(OfferMove.WITHDRAW, 0) is EntryState.ENDED


def test_what_can_never_be_right_is_refused() -> None:
    for bad in (
        NewEntry("", "e", "f", 1),
        NewEntry("i", "e", "", 1),
        NewEntry("i", "e", "f", 0),
        NewEntry("i", "e", "f", 1, ("A|B",)),
        NewEntry("i", "e", "f", 1, ("A",) * 51),
        NewEntry("i", "e", "f\0", 1),
    ):
        with pytest.raises(InvalidInput):
            bad.check()


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"id": ""}, "fan"),
        ({"event_id": ""}, "fan"),
        ({"fan": ""}, "fan"),
        ({"id": "a\0"}, "fan"),
        ({"fan": "a\0"}, "fan"),
        ({"seat_count": 0}, "count"),
        ({"sections": ("A",) * (MAX_SECTIONS + 1)}, "sections"),
        ({"sections": ("A|B",)}, "sections"),
        ({"sections": ("",)}, "sections"),
    ],
)
def test_an_entry_that_can_never_be_valid_names_its_field(changes: dict[str, Any], param: str) -> None:
    new = NewEntry("wle_1", "evt_1", "ada", 1)
    new.check()
    replace(new, sections=("A",) * MAX_SECTIONS).check()
    with pytest.raises(InvalidInput) as refused:
        replace(new, **changes).check()
    assert refused.value.param == param


def test_the_same_wish_has_the_same_count_sections_and_willingness_to_part() -> None:
    mine = entry(1, 2, "A", "B")
    wish = NewEntry("wle_2", "evt_1", "ada", 2, ("B", "A"))
    assert mine.same_wish(wish)
    for changes in ({"seat_count": 1}, {"sections": ("A",)}, {"split_ok": True}):
        assert not mine.same_wish(replace(wish, **changes))


def test_the_next_offer_of_an_entry_has_the_same_ids_on_every_server_and_other_ones_next_time() -> None:
    one = entry(1)
    offer, booking = one.next_offer_ids()
    assert (offer[:4], booking[:4], len(offer), len(booking)) == ("ofr_", "bkg_", 30, 30)
    assert one.next_offer_ids() == entry(1).next_offer_ids()
    assert offer[4:] != booking[4:]
    # servers of other versions work with the same entry: what the ids are made of never changes
    assert one.next_offer_ids() == ("ofr_MT8AB80ZB0D8E1XFGZ4DT8N2CK", "bkg_AWMBKE3BH9AQJWQKAPZNAHKHZB")
    lasts = {offer[-1] for number in range(64) for offer in entry(number).next_offer_ids()}
    assert len(lasts) > 16, "also the last bit is drawn"
    assert {offer, booking}.isdisjoint(replace(one, offers_made=1).next_offer_ids())
    assert {offer, booking}.isdisjoint(entry(2).next_offer_ids())


def test_a_pool_counts_what_is_free_by_section() -> None:
    seats = pool(1, 2, 9)
    assert (seats.free, seats.free_by_section()) == (3, {"A": 2, "B": 1})
    seats.block([1])
    assert (seats.free, seats.free_by_section()) == (2, {"A": 1, "B": 1})
    seats.block([2])
    assert seats.free_by_section() == {"B": 1}
    seats.free_again([1])
    assert seats.free_by_section() == {"A": 1, "B": 1}


def test_an_offer_is_open_until_its_end() -> None:
    offer = Offer("ofr_1", "wle_1", "evt_1", "ada", "bkg_1", OfferState.OPEN, 100, 1, (1,), BookingState.HELD, 200)
    assert (offer.open(99), offer.open(100)) == (True, False)
    assert not replace(offer, state=OfferState.CLAIMED).open(99)
