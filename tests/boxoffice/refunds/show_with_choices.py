"""A show with fees, ticket types, add-ons and a shared limit, and holds on it with choices."""

from frontrow.boxoffice.events.model.events import Event, Fee
from frontrow.boxoffice.pricing.model.booking_choices import BookingChoice, Reprice, price_choice
from frontrow.boxoffice.pricing.model.prices import encode_lines
from frontrow.boxoffice.pricing.model.sale_options import AddOn, SharedLimit, TicketType
from tests.boxoffice.checkout.till import EVENT, Till
from tests.boxoffice.shop import shop_event, shop_plan

CARD = "pm_card_visa"
PLAN = shop_plan()
SHOW = shop_event(
    id=EVENT,
    fees=(Fee("Service", per_seat_minor=100, per_booking_minor=199),),
    ticket_types=(TicketType("adult", "Adult"), TicketType("family", "Family", 5_000, min_per_booking=3)),
    add_ons=(AddOn("dinner", "Dinner", 20_000, stock=3), AddOn("parking", "Parking", 833, max_per_booking=5)),
    limits=(SharedLimit("families", "Families", 6, ("type:family",)),),
)


async def held(till: Till, *seats: int, family: bool = False, event: Event = SHOW, **add_ons: int) -> tuple[str, int]:
    """A hold with this choice."""
    hold = await till.hold(*seats)
    choice = BookingChoice(dict.fromkeys(seats, "family") if family else {}, add_ons)
    chosen = price_choice(event, PLAN, hold.seats, choice, till.clock())
    quote = chosen.quote
    await till.ledger.reprice(
        Reprice(
            hold.booking_id,
            hold.fence,
            till.clock(),
            hold.seats,
            quote.seat_totals_minor,
            quote.total_minor,
            encode_lines(quote.lines),
            chosen.uses,
        )
    )
    return hold.booking_id, hold.fence
