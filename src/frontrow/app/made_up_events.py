"""Made-up events: a stadium on sale now, for the demo and for storms."""

from frontrow.app.ledger_tools import opened_ledger
from frontrow.boxoffice.model.events import Event, EventStatus, PriceTier
from frontrow.boxoffice.model.venues import Venue
from frontrow.boxoffice.plans.plan_document import digest, plan_bytes
from frontrow.boxoffice.plans.plan_generator import generate
from frontrow.core.clock import US_PER_S, SystemClock
from frontrow.core.money import Money

DAY_US = 86_400 * US_PER_S
HOLD_S = 120


async def put_on_sale(ledger_url: str, event_id: str, name: str, seats: int) -> None:
    """Write venue, plan and event into the ledger. Servers that run open the sale by themselves."""
    plan = generate("stadium", seats)
    body, now_us = plan_bytes(plan), SystemClock()()
    async with opened_ledger(ledger_url, auto_migrate=None) as ledger:
        await ledger.catalogue.put_plan(digest(body), plan, body.decode(), now_us)
        await ledger.catalogue.put_venue(
            Venue("ven_demo", "Frontrow Stadium", digest(body), "Vienna", "AT", "Europe/Vienna"), now_us
        )
        prices = {key: 4_900 + 4_000 * number for number, key in enumerate(reversed(plan.tiers))}
        event = Event(
            event_id,
            name,
            "ven_demo",
            digest(body),
            "EUR",
            now_us + 60 * DAY_US,
            now_us - US_PER_S,
            now_us + 59 * DAY_US,
            tuple(PriceTier(key, Money(price, "EUR")) for key, price in prices.items()),
            EventStatus.ON_SALE,
            lonely_rule_until_percent=0,
            hold_ttl_s=HOLD_S,
        )
        await ledger.catalogue.put_event(event, now_us)
