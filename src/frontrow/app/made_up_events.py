"""Made-up events that are on sale now: a stadium for `frontrow demo` and for storms, and what `frontrow serve --demo`
offers (`app/demo_season.py`) with the lines that say what to open."""

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from frontrow.app.command_services import open_people
from frontrow.app.demo_season import BUSY_ID, EXAMPLE_ID, put_season
from frontrow.app.ledger_tools import opened_ledger
from frontrow.boxoffice.events.model.events import Event, EventStatus, PriceTier
from frontrow.boxoffice.events.model.room_rules import RoomRules
from frontrow.boxoffice.payments.model.payment_rules import PaymentRules
from frontrow.boxoffice.people.model.people import DEFAULT_ORGANISER
from frontrow.boxoffice.people.model.roles import Role
from frontrow.boxoffice.seats.formats.plan_document import digest, plan_bytes
from frontrow.boxoffice.seats.formats.plan_generator import generate
from frontrow.boxoffice.seats.model.venues import Venue
from frontrow.core.clock import US_PER_S, SystemClock
from frontrow.settings.deployment import Deployment
from frontrow.shared.money import Money

DAY_US = 86_400 * US_PER_S
SHOW_IN_DAYS = 60
CITY, COUNTRY, ZONE = "Vienna", "AT", "Europe/Vienna"
SHOW_HOUR = 20  # at the venue
HOLD_S = 120
OWNER = "owner@demo.example"


async def offer_example(deployment: Deployment) -> list[str]:
    """Put a season on sale if the ledger has no event. Returns the lines that say what to open.

    They are about one organiser: the demo's own, or whose events there are.
    """
    async with opened_ledger(deployment.ledger_url, auto_migrate=None) as ledger:
        ours = await ledger.catalogue.events_of_organiser(DEFAULT_ORGANISER)
        others = await ledger.catalogue.live_events((-1, ""), 1) or await ledger.catalogue.events(limit=1)
    if not ours and not others:
        await put_season(deployment.ledger_url)
        return ways_in(deployment, EXAMPLE_ID, await invite_organiser(deployment), busy=True)
    if not ours:
        return ways_in(deployment, others[0].id, "")
    shown = min(ours, key=lambda event: (event.id != EXAMPLE_ID, event.status is not EventStatus.ON_SALE))
    busy = any(event.id == BUSY_ID and event.status is EventStatus.ON_SALE for event in ours)
    return ways_in(deployment, shown.id, await invite_organiser(deployment), busy=busy)


async def invite_organiser(deployment: Deployment) -> str:
    """A one-time link that makes an owner, to see the organiser's pages; if there is one, where to sign in."""
    async with open_people(deployment) as people:
        if await people.book.staff_by_email(OWNER):
            return f"{deployment.public_url}/organiser/sign-in as {OWNER}"
        link: str = await people.team.create_invitation_link(DEFAULT_ORGANISER, OWNER, Role.OWNER)
    return link


def ways_in(deployment: Deployment, event_id: str, invitation: str, *, busy: bool = False) -> list[str]:
    """What to open to watch the sale. Without an `invitation` the event is another organiser's, who signs in."""
    url = deployment.public_url
    lines = [f"  a fan's page         {url}/events/{event_id}"]
    if busy:
        lines.append(f"  a waiting room       {url}/events/{BUSY_ID} (simulated people are before you)")
    if invitation:
        lines.append(f"  become the organiser {invitation}")
        lines.append(f"  its live sale        {url}/organiser/events/{event_id}/live")
    else:
        lines.append(f"  its organiser        {url}/organiser/sign-in")
    lines.append(f"  the API's document   {url}/docs")
    lines.append(f"  what to look at      {url}/demo")
    folder = f"{url}/demo/mails (files in {Path(deployment.mail_url).resolve()})"
    mails = "sent, as mail.url says" if "://" in deployment.mail_url else folder
    return [*lines, f"  mails                {mails}"]


def evening_us(at_us: int) -> int:
    """When shows begin on that day at the venue."""
    day = datetime.fromtimestamp(at_us / US_PER_S, ZoneInfo(ZONE))
    return int(day.replace(hour=SHOW_HOUR, minute=0, second=0, microsecond=0).timestamp()) * US_PER_S


async def put_on_sale(ledger_url: str, event_id: str, name: str, seats: int) -> None:
    """Write a stadium and an event into the ledger. Servers that run open the sale by themselves."""
    plan = generate("stadium", seats)
    body, now_us = plan_bytes(plan), SystemClock()()
    async with opened_ledger(ledger_url, auto_migrate=None) as ledger:
        await ledger.catalogue.put_plan(digest(body), plan, body.decode(), now_us)
        await ledger.catalogue.put_venue(
            Venue("ven_demo", "Frontrow Stadium", digest(body), CITY, COUNTRY, ZONE), now_us
        )
        prices = {key: 4_900 + 4_000 * number for number, key in enumerate(reversed(plan.tiers))}
        event = Event(
            event_id,
            name,
            "ven_demo",
            digest(body),
            "EUR",
            evening_us(now_us + SHOW_IN_DAYS * DAY_US),
            now_us - US_PER_S,
            now_us + (SHOW_IN_DAYS - 1) * DAY_US,
            tuple(PriceTier(key, Money(price, "EUR"), key.capitalize()) for key, price in prices.items()),
            EventStatus.ON_SALE,
            lonely_rule_until_percent=0,
            hold_ttl_s=HOLD_S,
            payments=PaymentRules(pay_days=5),
            room=RoomRules(human="none"),  # its fans are programs
        )
        await ledger.catalogue.put_event(event, now_us)
