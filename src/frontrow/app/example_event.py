"""An event to try things with: a generated venue, prices per tier, on sale at once.

`frontrow demo` sells a stadium of it, and `frontrow serve --demo` has a small one where nothing is on sale yet.
"""

from collections.abc import Sequence
from typing import Final

from frontrow.app.command_services import open_people
from frontrow.app.ledger_tools import opened_ledger
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.model.events import Event, EventStatus, PriceTier
from frontrow.boxoffice.model.people import DEFAULT_ORGANISER
from frontrow.boxoffice.model.roles import Role
from frontrow.boxoffice.model.venues import Plan, Venue
from frontrow.boxoffice.plans.plan_document import digest, plan_bytes
from frontrow.boxoffice.plans.plan_generator import generate
from frontrow.core.clock import US_PER_S, SystemClock
from frontrow.core.money import Money
from frontrow.settings.deployment import Deployment

DAY_US: Final = 86_400 * US_PER_S
EXAMPLE_ID: Final = "evt_example"
EXAMPLE_SEATS: Final = 1_200
OWNER: Final = "owner@demo.example"


async def offer_example(deployment: Deployment) -> list[str]:
    """Put a theatre on sale if the ledger has no event at all. Returns the lines that say how to look at it."""
    async with opened_ledger(deployment.ledger_url, auto_migrate=None) as ledger:
        if await ledger.catalogue.events(limit=1):
            return []
        await put_event_on_sale(ledger, EXAMPLE_ID, generate("theatre", EXAMPLE_SEATS), "Frontrow Theatre")
    url = deployment.public_url
    return ways_in(url, EXAMPLE_ID, await invite_organiser(deployment))


async def put_event_on_sale(ledger: SqlLedger, event_id: str, plan: Plan, venue: str) -> None:
    """Write venue, plan and event into the ledger."""
    body, now_us = plan_bytes(plan), SystemClock()()
    await ledger.catalogue.put_plan(digest(body), plan, body.decode(), now_us)
    hall = Venue(f"ven_{event_id.removeprefix('evt_')}", venue, digest(body), "Vienna", "AT", "Europe/Vienna")
    await ledger.catalogue.put_venue(hall, now_us)
    event = Event(
        event_id,
        "Aurora: the one night",
        hall.id,
        digest(body),
        "EUR",
        now_us + 60 * DAY_US,
        now_us - US_PER_S,
        now_us + 59 * DAY_US,
        _prices(plan.tiers),
        EventStatus.ON_SALE,
        lonely_rule_until_percent=0,
        hold_ttl_s=120,
    )
    await ledger.catalogue.put_event(event, now_us)


def _prices(tiers: Sequence[str]) -> tuple[PriceTier, ...]:
    """The last tier costs 49.00, each one before it 40.00 more."""
    return tuple(PriceTier(key, Money(4_900 + 4_000 * number, "EUR")) for number, key in enumerate(reversed(tiers)))


async def invite_organiser(deployment: Deployment) -> str:
    """A one-time link that makes an owner, so that the organiser's pages can be seen."""
    async with open_people(deployment) as people:
        link: str = await people.team.create_invitation_link(DEFAULT_ORGANISER, OWNER, Role.OWNER)
    return link


def ways_in(url: str, event_id: str, invitation: str) -> list[str]:
    """What to open to watch the sale."""
    return [
        f"  a fan's page         {url}/events/{event_id}",
        f"  become the organiser {invitation}",
        f"  its live sale        {url}/organiser/events/{event_id}/live",
        f"  the API's document   {url}/docs",
    ]
