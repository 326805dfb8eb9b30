"""What an event offers besides its price tiers: ticket types, add-ons, codes and shared limits. Values only.

All are off unless the organiser sets them. A fan chooses among them at checkout (`pricing.model.booking_choices`);
placing a hold knows nothing of them. The first ticket type costs what the tier costs, so it is what a hold is priced
with.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from frontrow.core.errors import InvalidInput

MAX_TYPES: Final = 12
MAX_ADD_ONS: Final = 20
MAX_DISCOUNTS: Final = 200
MAX_LIMITS: Final = 20
MAX_OF_ONE_ADD_ON: Final = 100
MAX_COUNT: Final = 10**6
MAX_MINOR: Final = 10**10
KEY: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
CODE: Final = re.compile(r"[A-Z0-9][A-Z0-9-]{1,39}")


@dataclass(frozen=True, slots=True)
class TicketType:
    """Who a ticket is for, such as adult or child.

    A seat costs `basis_points` of its tier's price, or the amount in `prices` (tier, minor units) if its tier is there.
    """

    key: str
    name: str
    basis_points: int = 10_000
    prices: tuple[tuple[str, int], ...] = ()
    min_per_booking: int = 0  # if there are any, at least so many
    max_per_booking: int = 0  # 0: no limit of its own
    note: str = ""  # such as "proof at the gate"
    hidden: bool = False  # shown and sold only with a code that unlocks it, or at the box office

    def __str__(self) -> str:
        """As the audit shows it."""
        price = "own prices" if self.prices else _percent(self.basis_points)
        bounds = f" {self.min_per_booking}-{self.max_per_booking or ''}" if self.min_per_booking else ""
        most = f" ≤{self.max_per_booking}" if self.max_per_booking and not bounds else ""
        return f"{self.name} {price}{bounds}{most}{' (hidden)' if self.hidden else ''}"


@dataclass(frozen=True, slots=True)
class AddOn:
    """Something without a seat, such as parking. `stock` None means that it never runs out."""

    key: str
    name: str
    price_minor: int
    stock: int | None = None
    max_per_booking: int = 10


@dataclass(frozen=True, slots=True)
class Discount:
    """A code that makes seats cheaper, unlocks hidden ticket types, or both.

    Seats become cheaper by a share of their price or by an amount, per seat or once per booking.
    """

    code: str
    basis_points: int = 0
    amount_minor: int = 0
    per_booking: bool = False  # of the amount
    tiers: tuple[str, ...] = ()  # empty: all
    most_uses: int = 0  # bookings in all; 0: no limit
    most_per_person: int = 0
    starts_at_us: int = 0
    ends_at_us: int = 0  # 0: until the sale ends
    unlocks: tuple[str, ...] = ()  # keys of ticket types

    def __str__(self) -> str:
        """As the audit shows it."""
        off = f" −{self.amount_minor}" if self.amount_minor else ""
        off = off or (f" −{_percent(self.basis_points)}" if self.basis_points else "")
        unlocks = f" unlocks {' + '.join(self.unlocks)}" if self.unlocks else ""
        uses = f" ×{self.most_uses}" if self.most_uses else ""
        return f"{self.code}{off}{unlocks}{uses}"


@dataclass(frozen=True, slots=True)
class SharedLimit:
    """At most `most` of all these together. `counts` are `type:child`, `add_on:parking` or `tier:front`.

    With `across_dates` all dates of the show share it.
    """

    key: str
    name: str
    most: int
    counts: tuple[str, ...] = ()
    across_dates: bool = False


def _percent(basis_points: int) -> str:
    return f"{basis_points / 100:g} %"


def fold_code(text: str) -> str:
    """A code as it is compared: capitals, without blanks."""
    return "".join(text.split()).upper()


def check_options(
    types: Sequence[TicketType],
    add_ons: Sequence[AddOn],
    discounts: Sequence[Discount],
    limits: Sequence[SharedLimit],
    tiers: Sequence[str],
) -> None:
    """Raise an `InvalidInput` that names the field unless all of these can be sold with these price tiers."""
    _check_keys([one.key for one in types], "ticket_types", MAX_TYPES)
    _check_keys([one.key for one in add_ons], "add_ons", MAX_ADD_ONS)
    _check_keys([one.key for one in limits], "limits", MAX_LIMITS)
    _check_types(types, tiers)
    for add_on in add_ons:
        if not add_on.name or not 0 <= add_on.price_minor <= MAX_MINOR:
            raise InvalidInput(f"add-on {add_on.key} needs a name and a price of 0 or more", param="add_ons")
        if not 1 <= add_on.max_per_booking <= MAX_OF_ONE_ADD_ON:
            raise InvalidInput(f"max_per_booking must be 1 to {MAX_OF_ONE_ADD_ON}", param="add_ons")
        if add_on.stock is not None and not 0 <= add_on.stock <= MAX_COUNT:
            raise InvalidInput(f"the stock must be 0 to {MAX_COUNT:,}", param="add_ons")
    _check_discounts(discounts, tiers, {one.key for one in types if one.hidden})
    known = {f"type:{one.key}" for one in types} | {f"add_on:{one.key}" for one in add_ons}
    known |= {f"tier:{key}" for key in tiers}
    for limit in limits:
        if not limit.name or not 0 <= limit.most <= MAX_COUNT or not limit.counts:
            raise InvalidInput(f"limit {limit.key} needs a name, a number and something it counts", param="limits")
        unknown = sorted(set(limit.counts) - known)
        if unknown:
            raise InvalidInput(f"limit {limit.key} counts {unknown[0]}, which the event does not have", param="limits")


def _check_keys(keys: Sequence[str], param: str, most: int) -> None:
    if len(keys) > most:
        raise InvalidInput(f"{param} has at most {most} entries", param=param)
    bad = next((key for key in keys if not KEY.fullmatch(key)), None)
    if bad is not None:
        raise InvalidInput(f"key {bad[:40]!r} must be of small letters, digits and dashes", param=param)
    if len(set(keys)) != len(keys):
        raise InvalidInput(f"two entries of {param} have the same key", param=param)


def _check_types(types: Sequence[TicketType], tiers: Sequence[str]) -> None:
    if types and (types[0].basis_points != 10_000 or types[0].prices or types[0].min_per_booking):
        raise InvalidInput("the first ticket type costs what its tier costs and has no minimum", param="ticket_types")
    if types and types[0].hidden:
        raise InvalidInput("the first ticket type is what a hold costs and cannot be hidden", param="ticket_types")
    for one in types:
        if not one.name:
            raise InvalidInput(f"ticket type {one.key} needs a name", param="ticket_types")
        if not 0 <= one.basis_points <= 100_000 or any(not 0 <= price <= MAX_MINOR for _, price in one.prices):
            raise InvalidInput(f"ticket type {one.key}: prices must be 0 or more", param="ticket_types")
        unknown = sorted({tier for tier, _ in one.prices} - set(tiers))
        if unknown:
            raise InvalidInput(f"ticket type {one.key}: there is no tier {unknown[0]}", param="ticket_types")
        if one.min_per_booking < 0 or one.max_per_booking < 0:
            raise InvalidInput(f"ticket type {one.key}: numbers must be 0 or more", param="ticket_types")
        if one.max_per_booking and one.min_per_booking > one.max_per_booking:
            raise InvalidInput(f"ticket type {one.key}: the minimum is above the maximum", param="ticket_types")


def _check_discounts(discounts: Sequence[Discount], tiers: Sequence[str], hidden: Collection[str]) -> None:
    if len(discounts) > MAX_DISCOUNTS:
        raise InvalidInput(f"an event has at most {MAX_DISCOUNTS} discount codes", param="discounts")
    codes = [one.code for one in discounts]
    if len(set(codes)) != len(codes):
        raise InvalidInput("two discounts have the same code", param="discounts")
    for one in discounts:
        if not CODE.fullmatch(one.code):
            raise InvalidInput("a code has 2 to 40 capitals, digits and dashes, such as EARLY-10", param="discounts")
        if one.basis_points and one.amount_minor:
            raise InvalidInput(f"discount {one.code} needs a share or an amount, not both", param="discounts")
        if not (one.basis_points or one.amount_minor or one.unlocks):
            raise InvalidInput(f"code {one.code} needs a share, an amount or a type to unlock", param="discounts")
        if not 0 <= one.basis_points <= 10_000 or not 0 <= one.amount_minor <= MAX_MINOR:
            raise InvalidInput(f"discount {one.code} must be at most 100 % and 0 or more", param="discounts")
        if min(one.most_uses, one.most_per_person, one.starts_at_us, one.ends_at_us) < 0:
            raise InvalidInput(f"discount {one.code}: numbers must be 0 or more", param="discounts")
        if one.ends_at_us and one.ends_at_us <= one.starts_at_us:
            raise InvalidInput(f"discount {one.code} must end after it starts", param="discounts")
        unknown = sorted(set(one.tiers) - set(tiers))
        if unknown:
            raise InvalidInput(f"discount {one.code}: there is no tier {unknown[0]}", param="discounts")
        unknown = sorted(set(one.unlocks) - set(hidden))
        if unknown:
            raise InvalidInput(f"code {one.code}: there is no hidden ticket type {unknown[0]}", param="discounts")
