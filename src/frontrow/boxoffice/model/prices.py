"""The price of seats: a line per seat, the fees and the total, in one currency and exact to the minor unit.

The fees of a booking are also spread over its seats (`seat_totals`), so that refunding the seats one by one returns
exactly what was paid.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from frontrow.boxoffice.model.events import Event, Fee
from frontrow.boxoffice.model.venues import Plan
from frontrow.core.money import Money


@dataclass(frozen=True, slots=True)
class SeatPrice:
    """The line of one seat in a quote."""

    seat_index: int
    tier: str
    price: Money


@dataclass(frozen=True, slots=True)
class FeeLine:
    """The line of one fee in a quote."""

    name: str
    amount: Money


@dataclass(frozen=True, slots=True)
class Quote:
    """The price of a choice of seats."""

    seats: tuple[SeatPrice, ...]
    fees: tuple[FeeLine, ...]
    total: Money

    def seat_totals(self) -> list[Money]:
        """The price of each seat plus its share of the fees. They add up to the total."""
        if not self.seats:
            return []
        fees = Money.total([fee.amount for fee in self.fees], self.total.currency)
        weights = [seat.price.minor for seat in self.seats]
        shares = fees.allocate(weights if any(weights) else [1] * len(weights))
        return [seat.price + share for seat, share in zip(self.seats, shares, strict=True)]


def quote(plan: Plan, event: Event, seats: Sequence[int]) -> Quote:
    """The price of these seats with every fee of the event."""
    prices = {tier.key: tier.price for tier in event.tiers}
    lines = tuple(
        SeatPrice(index, plan.seats[plan.check_index(index)].tier, prices[plan.seats[index].tier]) for index in seats
    )
    net = Money.total([line.price for line in lines], event.currency)
    fees = tuple(FeeLine(fee.name, _fee(fee, net, len(lines))) for fee in event.fees)
    return Quote(lines, fees, Money.total([net, *(fee.amount for fee in fees)], event.currency))


def _fee(fee: Fee, net: Money, seats: int) -> Money:
    if not seats:
        return Money.zero(net.currency)
    fixed = Money(fee.per_seat_minor * seats + fee.per_booking_minor, net.currency)
    return fixed + net.percent(fee.basis_points)
