"""The bodies of what an event offers besides its price tiers: ticket types, add-ons, codes, shared limits."""

from typing import Annotated

import msgspec

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.pricing.model.sale_options import (
    MAX_ADD_ONS,
    MAX_COUNT,
    MAX_DISCOUNTS,
    MAX_LIMITS,
    MAX_MINOR,
    MAX_OF_ONE_ADD_ON,
    MAX_TYPES,
    AddOn,
    Discount,
    SharedLimit,
    TicketType,
    fold_code,
)
from frontrow.shared.local_time import time_text
from frontrow.web.api.organiser.parameters import Moment, moment_us
from frontrow.web.http.bodies.json_values import Time

Key = Annotated[str, msgspec.Meta(min_length=1, max_length=40, pattern="^[a-z0-9][a-z0-9-]*$", examples=["child"])]
Title = Annotated[str, msgspec.Meta(min_length=1, max_length=100, examples=["Child"])]
OptionMinor = Annotated[int, msgspec.Meta(ge=0, le=MAX_MINOR, examples=[800])]
Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_COUNT)]
TierKey = Annotated[str, msgspec.Meta(max_length=60)]


class TicketTypeGiven(msgspec.Struct, forbid_unknown_fields=True):
    """A ticket type: a share of the tier's price, or an amount per tier. The first type costs what the tier costs."""

    key: Key
    name: Title
    basis_points: Annotated[int, msgspec.Meta(ge=0, le=100_000, description="of the tier's price; 5000 is half")] = (
        10_000
    )
    prices: Annotated[dict[TierKey, OptionMinor], msgspec.Meta(description="by tier, instead of the share")] = {}
    min_per_booking: Annotated[int, msgspec.Meta(ge=0, le=100)] = 0
    max_per_booking: Annotated[int, msgspec.Meta(ge=0, le=100, description="0: no limit of its own")] = 0
    note: Annotated[str, msgspec.Meta(max_length=200, examples=["Proof at the gate"])] = ""
    hidden: Annotated[
        bool, msgspec.Meta(description="shown only with a code that unlocks it, and at the box office")
    ] = False


class AddOnGiven(msgspec.Struct, forbid_unknown_fields=True):
    """Something without a seat, such as parking. Without a `stock` it never runs out."""

    key: Key
    name: Title
    price_minor: OptionMinor
    stock: Count | None = None
    max_per_booking: Annotated[int, msgspec.Meta(ge=1, le=MAX_OF_ONE_ADD_ON)] = 10


class DiscountGiven(msgspec.Struct, forbid_unknown_fields=True):
    """A code that makes seats cheaper, unlocks hidden ticket types, or both.

    It takes off a share of each seat's price, or an amount per seat or (`per_booking`) once per booking.
    """

    code: Annotated[str, msgspec.Meta(min_length=2, max_length=40, examples=["EARLY-10"])]
    basis_points: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 0
    amount_minor: OptionMinor = 0
    per_booking: bool = False
    tiers: Annotated[list[TierKey], msgspec.Meta(max_length=32, description="empty: all")] = []
    most_uses: Annotated[Count, msgspec.Meta(description="bookings in all; 0: no limit")] = 0
    most_per_person: Count = 0
    starts_at: Moment | None = None
    ends_at: Moment | None = None
    unlocks: Annotated[list[Key], msgspec.Meta(max_length=MAX_TYPES, description="hidden ticket types")] = []


class DiscountView(msgspec.Struct):
    """A code as its organiser sees it."""

    code: str
    basis_points: int
    amount_minor: int
    per_booking: bool
    tiers: list[str]
    most_uses: int
    most_per_person: int
    starts_at: Time | None
    ends_at: Time | None
    unlocks: list[str]


class SharedLimitGiven(msgspec.Struct, forbid_unknown_fields=True):
    """At most `most` of all these together: `type:child`, `add_on:parking`, `tier:front`.

    With `across_dates` all dates of the show share it.
    """

    key: Key
    name: Title
    most: Count
    counts: Annotated[list[Annotated[str, msgspec.Meta(max_length=80)]], msgspec.Meta(min_length=1, max_length=60)]
    across_dates: bool = False


TicketTypes = Annotated[list[TicketTypeGiven], msgspec.Meta(max_length=MAX_TYPES)]
AddOns = Annotated[list[AddOnGiven], msgspec.Meta(max_length=MAX_ADD_ONS)]
Discounts = Annotated[list[DiscountGiven], msgspec.Meta(max_length=MAX_DISCOUNTS)]
SharedLimits = Annotated[list[SharedLimitGiven], msgspec.Meta(max_length=MAX_LIMITS)]


def types_of(given: list[TicketTypeGiven] | None) -> tuple[TicketType, ...] | None:
    if given is None:
        return None
    return tuple(
        TicketType(
            one.key,
            one.name,
            one.basis_points,
            tuple(sorted(one.prices.items())),
            one.min_per_booking,
            one.max_per_booking,
            one.note,
            one.hidden,
        )
        for one in given
    )


def add_ons_of(given: list[AddOnGiven] | None) -> tuple[AddOn, ...] | None:
    if given is None:
        return None
    return tuple(AddOn(one.key, one.name, one.price_minor, one.stock, one.max_per_booking) for one in given)


def discounts_of(given: list[DiscountGiven] | None) -> tuple[Discount, ...] | None:
    if given is None:
        return None
    return tuple(
        Discount(
            fold_code(one.code),
            one.basis_points,
            one.amount_minor,
            one.per_booking,
            tuple(one.tiers),
            one.most_uses,
            one.most_per_person,
            moment_us(one.starts_at, "discounts") or 0,
            moment_us(one.ends_at, "discounts") or 0,
            tuple(one.unlocks),
        )
        for one in given
    )


def limits_of(given: list[SharedLimitGiven] | None) -> tuple[SharedLimit, ...] | None:
    if given is None:
        return None
    return tuple(SharedLimit(one.key, one.name, one.most, tuple(one.counts), one.across_dates) for one in given)


def type_views(event: Event) -> list[TicketTypeGiven]:
    return [
        TicketTypeGiven(
            one.key,
            one.name,
            one.basis_points,
            dict(one.prices),
            one.min_per_booking,
            one.max_per_booking,
            one.note,
            one.hidden,
        )
        for one in event.ticket_types
    ]


def add_on_views(event: Event) -> list[AddOnGiven]:
    return [AddOnGiven(one.key, one.name, one.price_minor, one.stock, one.max_per_booking) for one in event.add_ons]


def discount_views(event: Event) -> list[DiscountView]:
    return [
        DiscountView(
            one.code,
            one.basis_points,
            one.amount_minor,
            one.per_booking,
            list(one.tiers),
            one.most_uses,
            one.most_per_person,
            time_text(one.starts_at_us) if one.starts_at_us else None,
            time_text(one.ends_at_us) if one.ends_at_us else None,
            list(one.unlocks),
        )
        for one in event.discounts
    ]


def limit_views(event: Event) -> list[SharedLimitGiven]:
    return [SharedLimitGiven(one.key, one.name, one.most, list(one.counts), one.across_dates) for one in event.limits]
