"""What a fan chooses for held seats: a ticket type per seat, add-ons, a code; and what that costs. Pure.

The choice changes the price of a hold before it is paid. Its price has the same form as every other
(`pricing.model.prices`): lines that add up to the total, and what was paid for each seat. A discount is a line with a
negative amount, and each seat's total is less by its part. An add-on is a line of its own and in no seat's total.

A ticket type with a minimum makes seats cheaper for a group. The lines of its seats say how much cheaper, so that a
refund of some of them can check whether the others still are a group (`refunds.model.refund_lines`).

A code that unlocks hidden ticket types is kept in the lines of the seats. Without it those types do not exist: choosing
one is answered like choosing a type that the event does not have.

What is limited (a code, a stock, a shared limit) is listed as `uses`, which the ledger counts when it writes the price.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace as replace_in_event
from typing import Final

import msgspec
from msgspec.structs import replace

from frontrow.boxoffice.events.model.events import Event, PriceTier
from frontrow.boxoffice.pricing.model.discounts import (
    apply_discount,
    discount_counter,
    discount_of,
    discounted_seat_minor,
    find_discount,
)
from frontrow.boxoffice.pricing.model.prices import (
    TYPE_MARK,
    LineKind,
    LineTerms,
    PriceLine,
    PriceList,
    Quote,
    decode_lines,
)
from frontrow.boxoffice.pricing.model.sale_options import MAX_OF_ONE_ADD_ON, AddOn, Discount, TicketType
from frontrow.boxoffice.seats.model.venues import Plan
from frontrow.core.errors import InvalidInput, Refused
from frontrow.shared.money import Money

NO_LIMIT: Final = -1


class BookingChoice(msgspec.Struct, frozen=True):
    """What a fan has chosen. A seat without a type has the event's first one."""

    types: dict[int, str] = {}
    add_ons: dict[str, int] = {}
    code: str = ""


class Use(msgspec.Struct, frozen=True):
    """So many of something limited. `most` of all bookings together, `most_per_person` bookings of one fan (0: any)."""

    counter: str
    quantity: int
    most: int
    kind: str  # discount, add_on or limit
    name: str
    most_per_person: int = 0


class ChosenPrice(msgspec.Struct, frozen=True):
    """The price of a choice and what it uses up."""

    quote: Quote
    uses: tuple[Use, ...]


class Reprice(msgspec.Struct, frozen=True):
    """The new price of a hold. `seat_totals` has one amount per seat of the booking, in its order; none: they stay."""

    booking_id: str
    fence: int
    now_us: int
    seats: tuple[int, ...]
    seat_totals: tuple[int, ...]
    amount_minor: int
    price_lines: str
    uses: tuple[Use, ...]


class NoneLeft(Refused):
    """An add-on or a shared limit has fewer left than were chosen."""

    code = "none_left"

    def __init__(self, name: str, left: int, param: str) -> None:
        super().__init__(f"{name}: only {left} left" if left else f"{name}: none left", param=param, left=left)
        self.name, self.left = name, left


def offers_choices(event: Event) -> bool:
    """Whether there is anything to choose at checkout."""
    return bool(event.ticket_types or event.add_ons or event.discounts)


def offered_types(event: Event, code: str = "") -> tuple[TicketType, ...]:
    """The ticket types that can be chosen with this code."""
    discount = discount_of(event, code)
    unlocked = discount.unlocks if discount is not None else ()
    return tuple(one for one in event.ticket_types if not one.hidden or one.key in unlocked)


def price_choice(
    event: Event, plan: Plan, seats: Sequence[int], choice: BookingChoice, now_us: int, *, by_staff: bool = False
) -> ChosenPrice:
    """What these seats cost with this choice, or why it cannot be.

    Staff need no code for hidden ticket types, and bounds per booking do not apply to them.
    """
    discount = find_discount(event, choice.code, now_us) if choice.code else None
    offered = event.ticket_types if by_staff else offered_types(event, discount.code if discount else "")
    types = _types_of(offered, seats, choice)
    if not by_staff:
        _check_bounds(event, types, choice.add_ons)
    tiers = [plan.seats[plan.check_index(seat)].tier for seat in seats]
    prices = PriceList(_priced_by_type(event, types, tiers) if event.ticket_types else event)
    keys = [_line_key(tier, one) for tier, one in zip(tiers, types, strict=True)]
    shown = [prices.tiers[key].shown_minor for key in keys]
    quote = prices.quote([prices.tiers[key] for key in keys], seats)
    if any(one is not None and one.min_per_booking > 1 for one in types):
        quote = replace(quote, lines=_with_group_terms(event, quote.lines, types, tiers, discount))
    uses: list[Use] = []
    if discount is not None:
        quote = apply_discount(quote, discount, tiers, shown)
        uses.append(_use_of(event, discount))
    quote, added = _with_add_ons(event, quote, choice.add_ons)
    uses += added
    uses += _limit_uses(event, tiers, types, choice.add_ons)
    return ChosenPrice(quote, tuple(uses))


def free_of_charge(quote: Quote) -> Quote:
    """The same seats and add-ons as a gift, without fees."""
    kept = [line for line in quote.lines if line.kind in (LineKind.SEAT, LineKind.ADD_ON)]
    lines = tuple(replace(line, unit_minor=0, amount_minor=0, terms=None) for line in kept)
    return Quote(lines, (0,) * len(quote.seat_totals_minor), 0, quote.currency)


def uses_of(event: Event, plan: Plan, seats: Sequence[int], choice: BookingChoice) -> tuple[Use, ...]:
    """What a choice uses, without its price. Options that the event no longer has are left out."""
    by_key = {one.key: one for one in event.ticket_types}
    first = event.ticket_types[0] if event.ticket_types else None
    types = [by_key.get(choice.types.get(seat, ""), first) for seat in seats]
    discount = discount_of(event, choice.code)
    uses = [_use_of(event, discount)] if discount is not None else []
    uses += [_add_on_use(event, one, count) for one in event.add_ons if (count := choice.add_ons.get(one.key, 0))]
    return (*uses, *_limit_uses(event, [plan.seats[seat].tier for seat in seats], types, choice.add_ons))


def uses_left(
    event: Event, lines: Sequence[PriceLine], seats: Collection[int], add_ons: Mapping[str, int]
) -> tuple[tuple[str, int], ...]:
    """What a booking with these lines uses of add-ons and shared limits once it has only these seats and add-ons: the
    counters whose use is less than it was, with what is left."""
    sold = [(seat, *_tier_and_type(event, line)) for line in lines if line.kind is LineKind.SEAT for seat in line.seats]
    all_add_ons = {line.key: line.quantity for line in lines if line.kind is LineKind.ADD_ON}
    before = _counted_uses(event, sold, all_add_ons)
    after = _counted_uses(event, [one for one in sold if one[0] in seats], add_ons)
    return tuple((name, after.get(name, 0)) for name in before if after.get(name, 0) < before[name])


def _counted_uses(
    event: Event, seats: Sequence[tuple[int, str, TicketType | None]], add_ons: Mapping[str, int]
) -> dict[str, int]:
    tiers, types = [tier for _, tier, _ in seats], [one for _, _, one in seats]
    uses = [_add_on_use(event, one, count) for one in event.add_ons if (count := add_ons.get(one.key, 0))]
    return {use.counter: use.quantity for use in (*uses, *_limit_uses(event, tiers, types, add_ons))}


def _tier_and_type(event: Event, line: PriceLine) -> tuple[str, TicketType | None]:
    tier, mark, key = line.key.rpartition(TYPE_MARK)
    if not mark:
        return line.key, event.ticket_types[0] if event.ticket_types else None
    return tier, next((one for one in event.ticket_types if one.key == key), None)


class PricedType(msgspec.Struct, frozen=True):
    """A ticket type and the price that is shown for it, by tier."""

    type: TicketType
    shown_minor: dict[str, int]
    currency: str


def priced_types(event: Event, types: Sequence[TicketType]) -> list[PricedType]:
    """These ticket types of the event with their prices."""
    keys = [tier.key for tier in event.tiers]
    found = []
    for one in types:
        prices = PriceList(_priced_by_type(event, [one] * len(keys), keys)).tiers
        shown = {key: prices[_line_key(key, one)].shown_minor for key in keys}
        found.append(PricedType(one, shown, event.currency))
    return found


def choice_of(event: Event, lines: Sequence[PriceLine]) -> BookingChoice:
    """The choice that a price was made with."""
    keys = {one.key for one in event.ticket_types}
    types: dict[int, str] = {}
    add_ons: dict[str, int] = {}
    code = ""
    for line in lines:
        if line.kind is LineKind.SEAT:
            _, _, key = line.key.rpartition(TYPE_MARK)
            types |= dict.fromkeys(line.seats, key) if key in keys else {}
            code = code or line.code
        elif line.kind is LineKind.ADD_ON:
            add_ons[line.key] = line.quantity
        elif line.kind is LineKind.DISCOUNT:
            code = line.key
    return BookingChoice(types, add_ons, code)


def drop_unused_code(event: Event, lines: Sequence[PriceLine]) -> tuple[PriceLine, ...]:
    """The lines without a code that was given and made nothing cheaper and unlocked none of the chosen types."""
    choice = choice_of(event, lines)
    discount = discount_of(event, choice.code)
    cheaper = any(line.kind is LineKind.DISCOUNT for line in lines)
    if discount is None or cheaper or not set(discount.unlocks).isdisjoint(choice.types.values()):
        return tuple(lines)
    return tuple(replace(line, code="") for line in lines)


def type_names(event: Event, price_lines: str, seats: Sequence[int]) -> dict[int, str]:
    """The name of each seat's ticket type; empty for an event without types."""
    if not event.ticket_types:
        return {}
    names = {one.key: one.name for one in event.ticket_types}
    chosen = choice_of(event, decode_lines(price_lines)).types
    return {seat: names[chosen.get(seat, event.ticket_types[0].key)] for seat in seats}


def _types_of(types: Sequence[TicketType], seats: Sequence[int], choice: BookingChoice) -> list[TicketType | None]:
    """The ticket type of each seat, one of `types`."""
    by_key = {one.key: one for one in types}
    foreign = sorted(set(choice.types) - set(seats))
    if foreign:
        raise InvalidInput("a ticket type was chosen for a seat that is not held", param="types")
    first = types[0] if types else None
    found: list[TicketType | None] = []
    for seat in seats:
        key = choice.types.get(seat)
        if key is not None and key not in by_key:
            raise InvalidInput(f"there is no ticket type {key[:40]!r}", param="types")
        found.append(first if key is None else by_key[key])
    return found


def _check_bounds(event: Event, types: Sequence[TicketType | None], add_ons: Mapping[str, int]) -> None:
    for one, count in Counter(one for one in types if one is not None).items():
        if count < one.min_per_booking:
            raise _out_of_bounds(one.name, least=one.min_per_booking)
        if one.max_per_booking and count > one.max_per_booking:
            raise _out_of_bounds(one.name, most=one.max_per_booking)
    for add_on in event.add_ons:
        if add_ons.get(add_on.key, 0) > add_on.max_per_booking:
            raise _out_of_bounds(add_on.name, "add_ons", most=add_on.max_per_booking)


def _out_of_bounds(name: str, param: str = "types", **bound: int) -> InvalidInput:
    ((which, number),) = bound.items()
    return InvalidInput(f"{name}: at {which} {number} per booking", param=param, name=name, **bound)


def _line_key(tier: str, one: TicketType | None) -> str:
    return tier if one is None else f"{tier}{TYPE_MARK}{one.key}"


def _priced_by_type(event: Event, types: Sequence[TicketType | None], tiers: Sequence[str]) -> Event:
    """The event with a price tier per tier and ticket type that were chosen."""
    pairs = {_line_key(key, one): (event.tier(key), one) for key, one in zip(tiers, types, strict=True)}
    priced = []
    for key, (tier, one) in pairs.items():
        assert one is not None
        absolute = dict(one.prices).get(tier.key)
        price = tier.price.percent(one.basis_points) if absolute is None else Money(absolute, event.currency)
        name = tier.shown_name
        priced.append(PriceTier(key, price, f"{name} · {one.name}", tier.colour))
    return replace_in_event(event, tiers=tuple(priced))


def _with_group_terms(
    event: Event,
    lines: Sequence[PriceLine],
    types: Sequence[TicketType | None],
    tiers: Sequence[str],
    discount: Discount | None,
) -> tuple[PriceLine, ...]:
    """The lines of the seats whose ticket type needs a group, with how much more such a seat costs alone: as the first
    ticket type that everybody can choose for one seat."""
    alone = next((one for one in event.ticket_types if not one.hidden and one.min_per_booking <= 1), None)
    pairs = {_line_key(tier, one): (tier, one) for tier, one in zip(tiers, types, strict=True)}
    prices = PriceList(_priced_by_type(event, types, tiers)).tiers
    single = PriceList(_priced_by_type(event, [alone] * len(tiers), tiers)).tiers if alone else {}
    found = []
    for line in lines:
        tier, one = pairs.get(line.key, ("", None)) if line.kind is LineKind.SEAT else ("", None)
        if one is not None and one.min_per_booking > 1 and alone is not None:
            less = discounted_seat_minor(prices[line.key], discount, tier, event.currency)
            saves = discounted_seat_minor(single[_line_key(tier, alone)], discount, tier, event.currency) - less
            terms = LineTerms(line.terms.fees_minor if line.terms else 0, one.min_per_booking, max(0, saves))
            line = replace(line, terms=terms)
        found.append(line)
    return tuple(found)


def _use_of(event: Event, discount: Discount) -> Use:
    counter = discount_counter(event.id, discount.code)
    most = discount.most_uses or NO_LIMIT
    return Use(counter, 1, most, "discount", discount.code, discount.most_per_person)


def add_on_counter(event_id: str, key: str) -> str:
    """The name of the counter of an add-on."""
    return f"add_on:{event_id}:{key}"


def limit_counter(event: Event, key: str, *, across_dates: bool) -> str:
    """The name of the counter of a shared limit."""
    return f"limit:{(across_dates and event.show_id) or event.id}:{key}"


def _with_add_ons(event: Event, quote: Quote, chosen: Mapping[str, int]) -> tuple[Quote, list[Use]]:
    by_key = {one.key: one for one in event.add_ons}
    lines, uses, amount = list(quote.lines), [], 0
    for key in chosen:
        if key not in by_key:
            raise InvalidInput(f"there is no add-on {key[:40]!r}", param="add_ons")
    for one in event.add_ons:
        count = chosen.get(one.key, 0)
        if not 0 <= count <= MAX_OF_ONE_ADD_ON:
            raise _out_of_bounds(one.name, "add_ons", most=MAX_OF_ONE_ADD_ON)
        if count:
            amount += one.price_minor * count
            lines.append(
                PriceLine(LineKind.ADD_ON, one.name, count, one.price_minor, one.price_minor * count, key=one.key)
            )
            uses.append(_add_on_use(event, one, count))
    return Quote(tuple(lines), quote.seat_totals_minor, quote.total_minor + amount, quote.currency), uses


def _add_on_use(event: Event, add_on: AddOn, count: int) -> Use:
    most = NO_LIMIT if add_on.stock is None else add_on.stock
    return Use(add_on_counter(event.id, add_on.key), count, most, "add_on", add_on.name)


def _limit_uses(
    event: Event, tiers: Sequence[str], types: Sequence[TicketType | None], add_ons: Mapping[str, int]
) -> list[Use]:
    counted = Counter(f"tier:{tier}" for tier in tiers)
    counted.update(f"type:{one.key}" for one in types if one is not None)
    counted.update({f"add_on:{key}": count for key, count in add_ons.items()})
    uses = []
    for limit in event.limits:
        count = sum(counted[name] for name in set(limit.counts))
        if count:
            counter = limit_counter(event, limit.key, across_dates=limit.across_dates)
            uses.append(Use(counter, count, limit.most, "limit", limit.name))
    return uses
