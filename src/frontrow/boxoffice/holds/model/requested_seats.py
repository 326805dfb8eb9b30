"""The wish of a fan, and the checks that requested seats must pass before anything is claimed.

Every refusal names its seats. A request that can never succeed (unknown, duplicate, no or too many seats) gets 422. One
that depends on other fans or on the organiser (taken, withheld, over the cap) gets 409.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.pricing.model.prices import PriceList
from frontrow.boxoffice.seats.model.best_seats import Grade, SectionLayout
from frontrow.boxoffice.seats.model.venues import MAX_SEATS_NAMED, Plan, SeatFlag
from frontrow.core.errors import InvalidInput, Refused

MAX_SEATS_PER_REQUEST = 100
STEP_FREE_PLACES = SeatFlag.STEP_FREE | SeatFlag.COMPANION


class DuplicateSeats(InvalidInput):
    code = "duplicate_seats"


class WrongSeatCount(InvalidInput):
    code = "wrong_seat_count"


class SeatsWithheld(Refused):
    code = "seats_withheld"


class CapReached(Refused):
    code = "cap_reached"


class LonelySeat(Refused):
    code = "lonely_seat"


@dataclass(frozen=True, slots=True)
class Wish:
    """What "best available" should find. Prices limit the price of each seat as it is shown. No sections: any."""

    count: int
    sections: tuple[str, ...] = ()
    min_price_minor: int = 0
    max_price_minor: int | None = None
    step_free: bool = False
    restricted_view_ok: bool = False
    standing: bool = False
    apart_ok: bool = False

    @property
    def worst(self) -> Grade:
        """The worst grade this wish accepts."""
        return Grade.APART if self.apart_ok else Grade.ADJACENT_ROWS


def check_count(event: Event, count: int) -> int:
    """`count` if a person may have this many seats. The ledger counts the seats that a person has already."""
    if count < 1:
        raise WrongSeatCount(f"ask for 1 seat or more, not {count}", param="count")
    if count > MAX_SEATS_PER_REQUEST:
        raise WrongSeatCount(
            f"at most {MAX_SEATS_PER_REQUEST} seats are allowed per request, not {count}", param="count"
        )
    if count > event.max_per_person:
        left = event.max_per_person
        raise CapReached(
            f"{event.name}: {event.max_per_person} seats per person; you can have {left} more", param="count", left=left
        )
    return count


def check_seats(plan: Plan, event: Event, seat_ids: Sequence[str]) -> list[int]:
    """The sorted indexes of `seat_ids`; otherwise an error that names the wrong ones."""
    check_count(event, len(seat_ids))
    indexes = plan.indexes(seat_ids)
    if len(set(indexes)) != len(indexes):
        repeated = sorted({seat_id for seat_id in seat_ids if seat_ids.count(seat_id) > 1})
        raise DuplicateSeats(
            f"seats requested twice: {', '.join(repeated[:MAX_SEATS_NAMED])}",
            param="seats",
            seats=repeated[:MAX_SEATS_NAMED],
        )
    withheld = [plan.seat_ids[index] for index in indexes if index in event.withheld]
    if withheld:
        raise SeatsWithheld(f"not for sale: {', '.join(withheld)}", param="seats", seats=withheld)
    return sorted(indexes)


def masks_for(plan: Plan, layouts: Sequence[SectionLayout], event: Event, wish: Wish) -> list[tuple[int, bytes]]:
    """The sections that can serve `wish`, best first, each with its mask for `choose_seats`.

    Step-free places are kept for step-free wishes, unless every place is one. The mask does not depend on the count,
    except for companion seats: only step-free wishes for two or more get those.
    Withheld seats are in no mask; the states must also show them as blocked.
    """
    table = _allowed_kinds(plan, event, wish)
    named = {plan.section_number(section_id) for section_id in wish.sections}
    withheld: dict[int, list[int]] = {}
    for index in event.withheld:
        withheld.setdefault(plan.section_at(index), []).append(index)
    found = []
    for number in plan.section_order:
        layout = layouts[number]
        if (named and number not in named) or (not named and layout.is_area is not wish.standing):
            continue
        mask = bytearray(plan.seat_kinds[layout.base : layout.base + layout.size].translate(table))
        for index in withheld.get(number, ()):
            mask[index - layout.base] = 0
        if any(mask):
            found.append((number, bytes(mask)))
    return found


def _allowed_kinds(plan: Plan, event: Event, wish: Wish) -> bytes:
    """A translation table from seat kinds (tier and flags) to 1 (allowed) or 0."""
    prices = {key: tier.shown_minor for key, tier in PriceList(event).tiers.items()}
    kept = any(not flags & STEP_FREE_PLACES for _, flags in plan.kinds)
    highest = wish.max_price_minor
    table = bytearray(256)
    for number, (tier, flags) in enumerate(plan.kinds):
        price = prices.get(tier, -1)
        fits_price = price >= wish.min_price_minor and (highest is None or price <= highest)
        if flags & SeatFlag.COMPANION:
            fits_flags = wish.step_free and wish.count > 1
        else:
            fits_flags = bool(flags & SeatFlag.STEP_FREE) if wish.step_free else not (kept and flags & STEP_FREE_PLACES)
        fits_view = wish.restricted_view_ok or not flags & SeatFlag.RESTRICTED_VIEW
        table[number] = fits_price and fits_flags and fits_view
    return bytes(table)
