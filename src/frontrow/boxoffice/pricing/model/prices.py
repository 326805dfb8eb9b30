"""The price of seats as lines that add up to the total, exact to the minor unit.

A `PriceList` is worked out once per change of an event. Its `quote` prices a choice of seats. A `Quote` has

- `lines`, what people see. A line has a kind, a name, how many, the price of one, the amount and the seats it belongs
  to (none: the booking as a whole). The lines that are not `included` add up to the total. A line that is `included`
  is a part of the amounts above it (a fee inside the price, the tax) and is only shown.
- `seat_totals_minor`, what was paid for each seat: its price and its own fees, less its part of a discount. What
  belongs to the booking as a whole (a fee per booking, an add-on) is in no seat's total. The totals and those lines add
  up to the total.

Kinds of lines: `seat` (equal seats together), `fee`, `tax`, and what a fan chooses (`pricing.model.booking_choices`):
`discount` with a negative amount, `add_on`. A line also says what a refund needs to know of it (`LineTerms`), so that
`refunds.model.refund_lines` adds up lines as they were sold and divides nothing later.

Percentages are rounded per seat, so equal seats cost the same in every choice. With `FeesShown.INCLUDED` the price of a
seat contains its fees everywhere, from the event's page to the receipt. With `FeesShown.BESIDE` they stand beside every
price and are lines of their own. A fee per booking is a line of its own in both cases.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from frontrow.boxoffice.events.model.events import Event, Fee, FeesShown, PriceTier
from frontrow.boxoffice.pricing.model.taxes import tax_inside
from frontrow.boxoffice.seats.model.venues import Plan
from frontrow.shared.money import Money

DIFFERENT: Final = -1  # the price of one, when they differ
TYPE_MARK: Final = "/"  # between the tier's key and the ticket type's in the key of a line


class LineKind(StrEnum):
    SEAT = "seat"
    FEE = "fee"
    DISCOUNT = "discount"  # its amount is negative
    ADD_ON = "add_on"
    TAX = "tax"


class LineTerms(msgspec.Struct, frozen=True, array_like=True):
    """What a refund needs to know of a line, as of the sale. Of a seat: what one seat of the line pays in fees, and,
    for a ticket type that needs a group, how many it takes and how much cheaper it makes a seat. A fee that has terms
    is one per booking."""

    fees_minor: int = 0
    group_min: int = 0
    group_saves_minor: int = 0


class PriceLine(msgspec.Struct, frozen=True, array_like=True):
    """One line of a price. It is stored with the booking, so new fields go to the end and have a default."""

    kind: LineKind
    name: str
    quantity: int
    unit_minor: int  # DIFFERENT: see the amount
    amount_minor: int
    seats: tuple[int, ...] = ()
    included: bool = False
    key: str = ""  # of the price tier
    basis_points: int = 0  # the rate of a tax
    code: str = ""  # of a seat: the code that was given to unlock ticket types
    terms: LineTerms | None = None  # what a refund needs to know of it


class Quote(msgspec.Struct, frozen=True):
    """The price of a choice of seats. `seat_totals_minor` has one amount per seat, in the order they were named."""

    lines: tuple[PriceLine, ...]
    seat_totals_minor: tuple[int, ...]
    total_minor: int
    currency: str


class TierPrice(msgspec.Struct, frozen=True):
    """What one seat of a tier costs. The buyer pays `shown_minor` plus `beside_minor`."""

    key: str
    name: str
    face_minor: int
    fees_minor: tuple[int, ...]  # one per fee of the event
    each_minor: int  # with its fees
    shown_minor: int  # the price that is shown
    beside_minor: int  # fees that are shown beside it; 0 if the price includes them


class BookingFee(msgspec.Struct, frozen=True):
    """A fee that is paid once per booking."""

    name: str
    amount_minor: int


class PriceList:
    """The prices of one event."""

    __slots__ = ("_has_fees", "booking_fees", "booking_fees_minor", "currency", "fee_names", "shown", "tiers")

    def __init__(self, event: Event) -> None:
        self.currency, self.shown = event.currency, event.fees_shown
        seat_fees = [fee for fee in event.fees if fee.per_seat_minor or fee.basis_points]
        self.fee_names = tuple(fee.name for fee in seat_fees)
        self.booking_fees = tuple(
            BookingFee(fee.name, fee.per_booking_minor) for fee in event.fees if fee.per_booking_minor
        )
        self.booking_fees_minor = sum(fee.amount_minor for fee in self.booking_fees)
        self._has_fees = bool(event.fees)
        self.tiers = {tier.key: _tier_price(tier, seat_fees, event.fees_shown) for tier in event.tiers}

    def quote(self, tiers: Sequence[TierPrice], seats: Sequence[int]) -> Quote:
        """The price of these seats. `tiers` has the tier of each seat."""
        if not self._has_fees and len(set(map(id, tiers))) == 1:  # most holds: equal seats, no fees
            tier, count = tiers[0], len(seats)
            unit = tier.each_minor
            line = PriceLine(LineKind.SEAT, tier.name, count, unit, unit * count, tuple(seats), False, tier.key)
            return Quote((line,), (unit,) * count, unit * count, self.currency)
        totals = tuple([tier.each_minor for tier in tiers])
        total = sum(totals)
        lines = self._seat_lines(tiers, seats)
        if self.fee_names:
            lines += self._fee_lines(tiers)
        if self.booking_fees and seats:
            lines += [_booking_fee_line(fee) for fee in self.booking_fees]
            total += self.booking_fees_minor
        return Quote(tuple(lines), totals, total, self.currency)

    def _seat_lines(self, tiers: Sequence[TierPrice], seats: Sequence[int]) -> list[PriceLine]:
        """Equal seats together, in the order of their first seat."""
        groups: dict[str, list[int]] = {}
        for tier, seat in zip(tiers, seats, strict=True):
            group = groups.get(tier.key)
            if group is None:
                groups[tier.key] = [seat]
            else:
                group.append(seat)
        lines = []
        for key, group in groups.items():
            tier, count = self.tiers[key], len(group)
            unit, fees = tier.shown_minor, sum(tier.fees_minor)
            terms = LineTerms(fees) if fees else None
            line = PriceLine(LineKind.SEAT, tier.name, count, unit, unit * count, tuple(group), False, key, terms=terms)
            lines.append(line)
        return lines

    def _fee_lines(self, tiers: Sequence[TierPrice]) -> list[PriceLine]:
        included = self.shown is FeesShown.INCLUDED
        lines = []
        for at, name in enumerate(self.fee_names):
            parts = [tier.fees_minor[at] for tier in tiers]
            if any(parts):
                unit = parts[0] if min(parts) == max(parts) else DIFFERENT
                lines.append(PriceLine(LineKind.FEE, name, len(parts), unit, sum(parts), (), included))
        return lines


def _booking_fee_line(fee: BookingFee) -> PriceLine:
    return PriceLine(LineKind.FEE, fee.name, 1, fee.amount_minor, fee.amount_minor, terms=LineTerms())


def quote(plan: Plan, event: Event, seats: Sequence[int]) -> Quote:
    """The price of these seats with every fee of the event."""
    prices = PriceList(event)
    return prices.quote([prices.tiers[plan.seats[plan.check_index(seat)].tier] for seat in seats], seats)


def ticket_prices(lines: Sequence[PriceLine]) -> dict[int, int]:
    """The price that each seat's ticket shows: as in the lines, with the fees per seat that stand beside it.

    A fee per booking belongs to no ticket, except to an only one. A discount stands on the receipt. If the lines do not
    say how much of a fee belongs to a seat, there are no prices.
    """
    seats = [line for line in lines if line.kind is LineKind.SEAT]
    count = sum(len(line.seats) for line in seats)
    fees = [line for line in lines if line.kind is LineKind.FEE and not line.included and line.quantity == count]
    if any(line.unit_minor == DIFFERENT for line in (*seats, *fees)):
        return {}
    beside_minor = sum(line.unit_minor for line in fees)
    return {seat: line.unit_minor + beside_minor for line in seats for seat in line.seats}


def tax_line(total_minor: int, currency: str, basis_points: int) -> PriceLine:
    """The tax inside a total."""
    tax = tax_inside(Money(total_minor, currency), basis_points).minor
    return PriceLine(LineKind.TAX, "", 1, tax, tax, (), True, "", basis_points)


def cheapest_minor(event: Event) -> int | None:
    """The lowest price that the event's pages show, if it has prices."""
    return min((tier.shown_minor for tier in PriceList(event).tiers.values()), default=None)


def has_add_ons(price_lines: str) -> bool:
    """Whether the stored lines of a booking may have add-ons, without reading them."""
    return f'"{LineKind.ADD_ON}"' in price_lines


def encode_lines(lines: Sequence[PriceLine]) -> str:
    """The lines as a booking stores them."""
    return _encoder.encode(lines).decode()


def decode_lines(text: str) -> tuple[PriceLine, ...]:
    """The lines of a booking; none for bookings made before lines were stored."""
    return _decoder.decode(text) if text else ()


def move_lines(text: str, pairs: Sequence[tuple[int, int]]) -> str:
    """The stored lines after seats were moved, each pair from the first seat to the second."""
    moved = dict(pairs)
    lines = decode_lines(text)
    return (
        encode_lines(
            [msgspec.structs.replace(line, seats=tuple(moved.get(seat, seat) for seat in line.seats)) for line in lines]
        )
        if lines
        else text
    )


_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(tuple[PriceLine, ...])


def _tier_price(tier: PriceTier, fees: Sequence[Fee], shown: FeesShown) -> TierPrice:
    face = tier.price.minor
    parts = tuple(fee.per_seat_minor + tier.price.percent(fee.basis_points).minor for fee in fees)
    each = face + sum(parts)
    included = shown is FeesShown.INCLUDED
    return TierPrice(
        tier.key,
        tier.shown_name,
        face,
        parts,
        each,
        each if included else face,
        0 if included else each - face,
    )
