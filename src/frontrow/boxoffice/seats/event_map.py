"""The document that viewers of an event get: its plan with the prices as they are shown."""

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.pricing.model.prices import PriceList
from frontrow.boxoffice.seats.formats.plan_document import to_bytes, to_document
from frontrow.boxoffice.seats.model.venues import Plan


def map_bytes(plan: Plan, event: Event) -> bytes:
    """The document for viewers of `event`: the plan without imported ids, its tiers with prices as they are shown.

    `fee` is what a seat costs on top, if the event shows fees beside its prices.
    """
    shown = PriceList(event).tiers
    prices = {
        tier.key: {
            "name": shown[tier.key].name,
            "price": shown[tier.key].shown_minor,
            "cur": tier.price.currency,
            **({"fee": shown[tier.key].beside_minor} if shown[tier.key].beside_minor else {}),
            **({"colour": tier.colour} if tier.colour else {}),
        }
        for tier in event.tiers
    }
    return to_bytes(to_document(plan, prices=prices, refs=False))
