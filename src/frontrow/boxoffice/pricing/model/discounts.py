"""Which discount a code means, and what it takes off the price of the seats. Pure."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.pricing.model.prices import DIFFERENT, LineKind, PriceLine, Quote, TierPrice
from frontrow.boxoffice.pricing.model.sale_options import Discount, fold_code
from frontrow.core.errors import Refused
from frontrow.shared.money import Money, share_out


class DiscountRefused(Refused):
    """The code changes nothing here. `reason`: unknown, not_yet, expired, used_up, used_by_you, not_for_these_seats."""

    code = "discount_refused"

    def __init__(self, reason: str, name: str) -> None:
        super().__init__(_WHY_NO_DISCOUNT[reason].format(name), param="code", reason=reason)
        self.reason = reason


_WHY_NO_DISCOUNT: Final = {
    "unknown": "{} is not a code of this event",
    "not_yet": "{} is not valid yet",
    "expired": "{} has expired",
    "used_up": "{} has been used as often as it can be",
    "used_by_you": "you have used {} as often as you can",
    "not_for_these_seats": "{} is not valid for these seats",
}


def discount_of(event: Event, code: str) -> Discount | None:
    """The event's discount of exactly this code."""
    return next((one for one in event.discounts if one.code == code), None)


def find_discount(event: Event, typed: str, now_us: int) -> Discount:
    """The discount that a fan means with what they typed. Raises `DiscountRefused`."""
    code = fold_code(typed)[:60]
    found = discount_of(event, code)
    if found is None:
        raise DiscountRefused("unknown", code)
    if now_us < found.starts_at_us:
        raise DiscountRefused("not_yet", code)
    if found.ends_at_us and now_us >= found.ends_at_us:
        raise DiscountRefused("expired", code)
    return found


def discounted_seat_minor(price: TierPrice, discount: Discount | None, tier: str, currency: str) -> int:
    """What one seat costs with a discount per seat. A discount per booking does not depend on the ticket type."""
    if discount is None or (discount.tiers and tier not in discount.tiers):
        return price.each_minor
    if discount.amount_minor:
        return price.each_minor - (0 if discount.per_booking else min(discount.amount_minor, price.shown_minor))
    return price.each_minor - Money(price.shown_minor, currency).percent(discount.basis_points).minor


def apply_discount(quote: Quote, discount: Discount, tiers: Sequence[str], shown: Sequence[int]) -> Quote:
    """The quote less the discount, with the code in its lines. No seat becomes cheaper than its fees."""
    meant = [not discount.tiers or tier in discount.tiers for tier in tiers]
    bases = [price if fits else 0 for price, fits in zip(shown, meant, strict=True)]
    if discount.per_booking and discount.amount_minor:
        off = min(discount.amount_minor, sum(bases))
        parts = share_out(off, bases) if off else [0] * len(bases)
    elif discount.amount_minor:
        parts = [min(discount.amount_minor, base) for base in bases]
    else:
        parts = [Money(base, quote.currency).percent(discount.basis_points).minor for base in bases]
    off = sum(parts)
    if discount.unlocks:
        lines = [replace(line, code=discount.code) if line.kind is LineKind.SEAT else line for line in quote.lines]
        quote = replace(quote, lines=tuple(lines))
    if not off:
        if discount.unlocks:
            return quote
        raise DiscountRefused("not_for_these_seats", discount.code)
    cheaper = [part for part in parts if part]
    once = discount.per_booking and bool(discount.amount_minor)
    count = 1 if once else len(cheaper)
    unit = -off if once else -cheaper[0] if len(set(cheaper)) == 1 else DIFFERENT
    line = PriceLine(LineKind.DISCOUNT, discount.code, count, unit, -off, key=discount.code)
    totals = tuple(total - part for total, part in zip(quote.seat_totals_minor, parts, strict=True))
    return Quote((*quote.lines, line), totals, quote.total_minor - off, quote.currency)


def discount_counter(event_id: str, code: str) -> str:
    """The name of the counter of a discount code."""
    return f"code:{event_id}:{code}"
