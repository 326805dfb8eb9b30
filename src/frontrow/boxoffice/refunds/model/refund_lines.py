"""What a refund consists of, line by line (ADR 0180). Pure.

A booking is worth what was paid for what it still has (`Booking.amount_minor`). `paid_for` says how much of that is for
each seat, each add-on and the fees per booking. `refund_lines` lists what goes back for a choice of seats and add-ons:
each at what was paid for it. Nothing is divided, so what goes back and what stays always add up to what was paid.

- With the last seat everything goes that is left: a booking without seats is over.
- A ticket type may need a group. If fewer seats are kept than it takes, those seats cost what they cost without the
  group. The difference is withheld, and is part of what the kept seats are worth from then on.
- Bookings from before ADR 0180 have shares of add-ons and fees per booking in the prices of their seats. What they are
  worth is allotted to their lines in proportion, to the cent.

What the organiser keeps of it by the event's policy is worked out in `refunds.model.refund_rules`.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import msgspec

from frontrow.boxoffice.holds.model.bookings import Booking, BookingState, SeatsNotInBooking
from frontrow.boxoffice.pricing.model.prices import DIFFERENT, TYPE_MARK, LineKind, PriceLine, decode_lines
from frontrow.core.errors import InvalidInput
from frontrow.shared.money import share_out


class RefundLineKind(StrEnum):
    """The first three are what goes back. Of the others, a negative amount is withheld or kept."""

    SEAT = "seat"
    ADD_ON = "add_on"
    FEE = "fee"  # fees per booking
    GROUP_PRICE = "group_price"  # the kept seats cost more without the group; positive: that was withheld earlier
    REFUNDED_BEFORE = "refunded_before"  # money that went back in another way
    SEAT_FEES_KEPT = "seat_fees_kept"  # the policy keeps fees per seat
    BOOKING_FEES_KEPT = "booking_fees_kept"
    SHARE_KEPT = "share_kept"  # the policy refunds only a part at this time
    REFUND_FEE = "refund_fee"


class RefundLine(msgspec.Struct, frozen=True, array_like=True):
    """One line of a refund. It is stored with the refund, so new fields go to the end and have a default."""

    kind: RefundLineKind
    name: str
    quantity: int
    amount_minor: int
    seats: tuple[int, ...] = ()
    key: str = ""  # of an add-on, or of the price tier and the ticket type


class RefundChoice(msgspec.Struct, frozen=True):
    """What is to go back: seats, and how many of which add-on. Nothing named means everything."""

    seats: tuple[int, ...] = ()
    add_ons: dict[str, int] = {}

    @property
    def is_everything(self) -> bool:
        return not self.seats and not self.add_ons


EVERYTHING: Final = RefundChoice()
NOTHING: Final[Mapping[str, int]] = MappingProxyType({})


class PaidFor(msgspec.Struct, frozen=True):
    """What a booking still has, with what was paid for it. `withheld_minor`: for kept seats that lost their group.
    `used`: add-ons that were redeemed at the gate. They stay paid, also when the last seat goes (ADR 0199)."""

    seats: dict[int, int]
    add_ons: dict[str, list[int]]  # by key, the amount of each one
    fees: tuple[tuple[str, int], ...]  # per booking: name and amount
    withheld_minor: int = 0
    used: tuple[tuple[str, int, int], ...] = ()  # name, quantity and amount

    @property
    def used_minor(self) -> int:
        return sum(amount for _, _, amount in self.used)

    @property
    def fees_minor(self) -> int:
        return sum(amount for _, amount in self.fees)


def paid_for(
    booking: Booking, prices_minor: Mapping[int, int], gone: Mapping[str, int], used: Mapping[str, int] = NOTHING
) -> PaidFor:
    """What was paid for each part of the booking. `gone` says how many of which add-on were refunded, `used` how many
    were redeemed."""
    lines = decode_lines(booking.price_lines)
    whole = _whole_lines(lines)
    fees = [line for line in whole if line.kind is LineKind.FEE]
    extras = {
        line.key: [line.unit_minor] * max(0, line.quantity - gone.get(line.key, 0))
        for line in whole
        if line.kind is LineKind.ADD_ON
    }
    seats = {seat: prices_minor[seat] for seat in booking.seats if seat in prices_minor}
    own = [*seats.values(), *(one for some in extras.values() for one in some), *(line.amount_minor for line in fees)]
    rest = booking.amount_minor - sum(own)
    if rest < 0:  # the prices of the seats contain shares of the other lines
        rest, own = 0, _allotted(booking.amount_minor, lines, whole, list(seats.values()), own)
    parts = iter(own)
    by_seat = {seat: next(parts) for seat in seats}
    by_add_on = {key: [next(parts) for _ in some] for key, some in extras.items()}
    by_fee = tuple((line.name, next(parts)) for line in fees)
    names = {line.key: line.name for line in whole}
    spent = {key: by_add_on[key][-count:] for key, count in used.items() if count and by_add_on.get(key)}
    unused = {key: some[: len(some) - len(spent.get(key, ()))] for key, some in by_add_on.items()}
    kept = tuple((names[key], len(some), sum(some)) for key, some in spent.items())
    return PaidFor(by_seat, unused, by_fee, rest, kept)


def _whole_lines(lines: Sequence[PriceLine]) -> list[PriceLine]:
    """The lines of the booking as a whole. Old fees per booking are recognised by quantity, if there are more seats."""
    new, count = any(line.terms is not None for line in lines), _seat_count(lines)
    found = []
    for line in lines:
        old_fee = not new and not line.included and line.quantity == 1 and count > 1
        if line.kind is LineKind.ADD_ON or (line.kind is LineKind.FEE and (line.terms is not None or old_fee)):
            found.append(line)
    return found


def _seat_count(lines: Sequence[PriceLine]) -> int:
    return sum(len(line.seats) for line in lines if line.kind is LineKind.SEAT)


def _allotted(
    worth_minor: int, lines: Sequence[PriceLine], whole: Sequence[PriceLine], prices: Sequence[int], own: Sequence[int]
) -> list[int]:
    """What an old booking is worth, over its lines in proportion to what they cost, the seats without their shares."""
    total = sum(line.amount_minor for line in lines if not line.included)
    alone = total - sum(line.amount_minor for line in whole)
    weights = list(own)
    if total > 0 and any(prices):
        left = (sum(prices) * alone * 2 + total) // (2 * total)
        weights[: len(prices)] = share_out(left, prices)
    return share_out(worth_minor, weights) if any(weights) else [0] * len(weights)


def refund_lines(
    booking: Booking, paid: PaidFor, choice: RefundChoice, *, recheck_group: bool = True
) -> tuple[RefundLine, ...]:
    """What goes back for this choice, before the policy keeps anything. The amounts add up to 0 or more."""
    lines = decode_lines(booking.price_lines)
    choice = complete_choice(booking, paid, choice)
    ends = set(choice.seats) == set(booking.seats)
    found = [*_seat_lines(lines, paid, choice.seats), *_add_on_lines(lines, paid, choice.add_ons)]
    if ends:
        found += [RefundLine(RefundLineKind.FEE, name, 1, amount) for name, amount in paid.fees]
    kept = set(booking.seats) - set(choice.seats)
    due = _group_difference(lines, kept) if recheck_group else 0
    gross = sum(line.amount_minor for line in found)
    difference = max(-gross, paid.withheld_minor - due)
    if difference:
        found.append(RefundLine(RefundLineKind.GROUP_PRICE, "", 1, difference))
    return tuple(found)


def complete_choice(booking: Booking, paid: PaidFor, choice: RefundChoice) -> RefundChoice:
    """The choice with everything it includes. `SeatsNotInBooking` or `InvalidInput` if the booking has less."""
    if choice.is_everything:
        choice = RefundChoice(booking.seats)
    missing = sorted(set(choice.seats) - paid.seats.keys())
    if missing:
        raise SeatsNotInBooking(booking.id, missing)
    left = {key: len(some) for key, some in paid.add_ons.items() if some}
    for key, count in choice.add_ons.items():
        if count < 1 or count > left.get(key, 0):
            raise InvalidInput(f"the booking has {left.get(key, 0)} of {key[:40]!r}, not {count}", param="add_ons")
    if set(choice.seats) == set(booking.seats):
        return RefundChoice(tuple(sorted(booking.seats)), left)
    return RefundChoice(tuple(sorted(set(choice.seats))), dict(choice.add_ons))


def _seat_lines(lines: Sequence[PriceLine], paid: PaidFor, seats: Collection[int]) -> list[RefundLine]:
    """A line per line of the price and amount, in their order."""
    named = {seat: (line.name, line.key) for line in lines if line.kind is LineKind.SEAT for seat in line.seats}
    groups: dict[tuple[str, str, int], list[int]] = {}
    for seat in [*named, *sorted(set(seats) - named.keys())]:
        if seat in seats:
            groups.setdefault((*named.get(seat, ("", "")), paid.seats[seat]), []).append(seat)
    return [
        RefundLine(RefundLineKind.SEAT, name, len(group), amount * len(group), tuple(group), key)
        for (name, key, amount), group in groups.items()
    ]


def _add_on_lines(lines: Sequence[PriceLine], paid: PaidFor, add_ons: Mapping[str, int]) -> list[RefundLine]:
    names = {line.key: line.name for line in lines if line.kind is LineKind.ADD_ON}
    return [
        RefundLine(RefundLineKind.ADD_ON, names[key], count, sum(paid.add_ons[key][:count]), (), key)
        for key in names
        if (count := add_ons.get(key, 0))
    ]


def _group_difference(lines: Sequence[PriceLine], kept: Collection[int]) -> int:
    """How much more the kept seats cost where they are too few for their ticket type."""
    seats = [line for line in lines if line.kind is LineKind.SEAT]
    counts: Counter[str] = Counter()
    for line in seats:
        counts[_type_of(line)] += sum(seat in kept for seat in line.seats)
    return sum(
        line.terms.group_saves_minor * sum(seat in kept for seat in line.seats)
        for line in seats
        if line.terms is not None and counts[_type_of(line)] < line.terms.group_min
    )


def _type_of(line: PriceLine) -> str:
    return line.key.rpartition(TYPE_MARK)[2]


def seat_fees(booking: Booking) -> dict[int, int]:
    """What each seat pays in fees per seat, as of the sale."""
    lines = decode_lines(booking.price_lines)
    seats = [(seat, line) for line in lines if line.kind is LineKind.SEAT for seat in line.seats]
    if any(line.terms is not None for line in lines):
        return {seat: line.terms.fees_minor if line.terms else 0 for seat, line in seats}
    whole = _whole_lines(lines)
    found = {seat: 0 for seat, _ in seats}
    for fee in lines:  # a booking from before ADR 0180: the same for every seat, or in proportion to its price
        if fee.kind is LineKind.FEE and fee not in whole and seats:
            weights = [line.unit_minor if fee.unit_minor == DIFFERENT else 1 for _, line in seats]
            shares = share_out(fee.amount_minor, weights if any(weights) else [1] * len(weights))
            for (seat, _), share in zip(seats, shares, strict=True):
                found[seat] += share
    return found


def add_ons_gone(refunds: Sequence[Sequence[RefundLine]]) -> Counter[str]:
    """How many of which add-on these refunds gave back."""
    gone: Counter[str] = Counter()
    for lines in refunds:
        gone.update({line.key: line.quantity for line in lines if line.kind is RefundLineKind.ADD_ON})
    return gone


def covers_choice(seats: Collection[int], lines: Sequence[RefundLine], choice: RefundChoice) -> bool:
    """Whether a refund of these seats and lines is what this choice asks for. With the last seat more has gone."""
    gone = add_ons_gone([lines])
    return set(seats) == set(choice.seats) and all(gone[key] >= count for key, count in choice.add_ons.items())


def add_on_names(lines: Sequence[RefundLine]) -> tuple[str, ...]:
    """The add-ons of a refund as people read them."""
    return tuple(f"{line.quantity} × {line.name}" for line in lines if line.kind is RefundLineKind.ADD_ON)


def kept_lines(booking: Booking, gone: Mapping[str, int]) -> tuple[PriceLine, ...]:
    """The booking's lines with the add-ons that it still has, and no line for one that has gone. A booking that is over
    has none."""
    found, over = [], booking.state in (BookingState.REFUNDED, BookingState.CANCELLED)
    for line in decode_lines(booking.price_lines):
        if line.kind is LineKind.ADD_ON and (over or gone.get(line.key)):
            count = 0 if over else max(0, line.quantity - gone[line.key])
            line = msgspec.structs.replace(line, quantity=count, amount_minor=line.unit_minor * count)
        if line.kind is not LineKind.ADD_ON or line.quantity:
            found.append(line)
    return tuple(found)


def encode_refund_lines(lines: Sequence[RefundLine]) -> str:
    """The lines as a refund stores them."""
    return _encoder.encode(lines).decode()


def decode_refund_lines(text: str) -> tuple[RefundLine, ...]:
    """The lines of a refund; none for refunds made before lines were stored."""
    return _decoder.decode(text) if text else ()


_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(tuple[RefundLine, ...])
