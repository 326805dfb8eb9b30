"""The season of `frontrow serve --demo`: each kind of event that a fan may meet, in five cities.

A play with numbered seats, extras and a reduced price; a queue (`app/busy_event.py`); a stadium; an arena with a pit to
stand in; a club without seats; a show with three dates; one that is sold out, one that opens soon and one that is free.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from frontrow.app.ledger_tools import opened_ledger
from frontrow.boxoffice.events.model.events import Event, EventStatus, Fee, PriceTier, check_event
from frontrow.boxoffice.events.model.room_rules import RoomRules
from frontrow.boxoffice.payments.model.payment_rules import PaymentRules
from frontrow.boxoffice.pricing.model.sale_options import AddOn, TicketType
from frontrow.boxoffice.seats.formats.plan_document import digest, plan_bytes
from frontrow.boxoffice.seats.formats.plan_generator import generate
from frontrow.boxoffice.seats.model.plan_shapes import AreaShape, Decor
from frontrow.boxoffice.seats.model.venues import Plan, Venue, area
from frontrow.core.clock import US_PER_S, SystemClock
from frontrow.shared.money import Money

DAY_US: Final = 86_400 * US_PER_S
FIRST_IN_DAYS: Final = 60  # the example event; all others are later, so that it comes first in every list
SOON_IN_S: Final = 900  # until the sale that has not begun opens
HOLD_S: Final = 600
EVERY_METHOD: Final = PaymentRules(pay_days=5, days_before_show=5)  # slow ones, too
EXAMPLE_ID, BUSY_ID, SOON_ID = "evt_example", "evt_busy", "evt_night_garden"
NAME, BUSY_NAME = "Aurora: the one night", "Solstice: everybody wants in"


@dataclass(frozen=True, slots=True)
class Hall:
    """A venue of the season: how its plan is made, and where it stands."""

    id: str
    name: str
    kind: str
    places: int
    city: str
    country: str
    zone: str
    currency: str = "EUR"

    @property
    def plan(self) -> Plan:
        return _club(self.places) if self.kind == "club" else generate(self.kind, self.places)


@dataclass(frozen=True, slots=True)
class Show:
    """An event of the season. `prices` are in minor units, by tier, the cheapest first."""

    id: str
    name: str
    hall: Hall
    prices: tuple[tuple[str, int], ...]
    in_days: int
    hour: int = 20
    description: str = ""
    line_up: tuple[str, ...] = ()
    more: tuple[tuple[str, Any], ...] = ()  # further fields of the event
    sold_out: bool = False
    opens_in_s: int = 0


def _club(places: int) -> Plan:
    """One floor to stand on, in front of a stage."""
    floor = area("Floor", places, tier="floor", shape=AreaShape(60, 110, 480, 300))
    return Plan("Club", (floor,), 600, 450, (Decor("rect", 180, 20, 240, 60, "STAGE"),))


THEATRE = Hall("ven_demo", "Frontrow Theatre", "theatre", 1_200, "Vienna", "AT", "Europe/Vienna")
HARBOUR = Hall("ven_harbour", "Harbour Ground", "stadium", 8_000, "London", "GB", "Europe/London", "GBP")
DOME = Hall("ven_dome", "Spree Dome", "arena", 6_000, "Berlin", "DE", "Europe/Berlin")
CELLAR = Hall("ven_cellar", "Kellerwerk", "club", 700, "Berlin", "DE", "Europe/Berlin")
PLAYHOUSE = Hall("ven_playhouse", "Petit Théâtre", "theatre", 240, "Paris", "FR", "Europe/Paris")
GARDEN = Hall("ven_garden", "Moss Garden Stage", "theatre", 400, "Kyoto", "JP", "Asia/Tokyo", "JPY")

HOUSE: Final = (("balcony", 4_900), ("circle", 8_900), ("stalls", 12_900))
SMALL: Final = (("balcony", 1_800), ("circle", 2_600), ("stalls", 3_400))
NOTHING: Final = (("balcony", 0), ("circle", 0), ("stalls", 0))
REDUCED: Final = TicketType("reduced", "Reduced", 7_000, note="under 27 or with a pass, shown at the gate")
TYPES: Final = ("ticket_types", (TicketType("full", "Full price"), REDUCED))
EXTRAS: Final = (
    "add_ons",
    (AddOn("programme", "Programme", 900), AddOn("parking", "Parking", 1_400, stock=80, max_per_booking=2)),
)
SEASON: Final = (
    Show(
        EXAMPLE_ID,
        NAME,
        THEATRE,
        HOUSE,
        FIRST_IN_DAYS,
        description=(
            "For one evening the northern lights come indoors: **forty musicians**, one singer and a sky made of "
            "light, in three acts.\n\nDoors open at 19:00. There is one interval."
        ),
        line_up=("Ingrid Solheim", "Aurora Chamber Orchestra", "Light by Studio Nord"),
        more=(TYPES, EXTRAS),
    ),
    Show(BUSY_ID, BUSY_NAME, THEATRE, HOUSE, FIRST_IN_DAYS + 1, more=(("room", RoomRules(human="none")),)),
    Show(
        "evt_match",
        "Harbour City v Northgate",
        HARBOUR,
        (("upper", 1_800), ("lower", 3_200), ("club", 5_600), ("floor", 7_500)),
        FIRST_IN_DAYS + 3,
        15,
        description="The derby. Home supporters sit in the lower ring.",
        more=(
            ("ticket_types", (TicketType("adult", "Adult"), TicketType("child", "Child under 14", 5_000))),
            ("fees", (Fee("Stadium fee", per_seat_minor=150),)),
        ),
    ),
    Show(
        "evt_arena",
        "Meridian: the world tour",
        DOME,
        (("upper", 5_500), ("lower", 7_900), ("pit", 8_900), ("floor", 11_900)),
        FIRST_IN_DAYS + 10,
        description="Stand in the pit, or sit and see it all. Both fit into one basket.",
        line_up=("Meridian", "Paper Lanterns"),
    ),
    Show(
        "evt_late",
        "Late Shift with Nova Ray",
        CELLAR,
        (("floor", 2_400),),
        FIRST_IN_DAYS + 11,
        23,
        line_up=("Nova Ray", "Kilo & Watt", "DJ Umlaut"),
        more=(("add_ons", (AddOn("cloakroom", "Cloakroom", 200),)),),
    ),
    *(
        Show(
            f"evt_play_{number}",
            "The Quick and the Slow",
            PLAYHOUSE,
            SMALL,
            FIRST_IN_DAYS + 20 + number,
            more=(("show_id", "shw_play"),),
        )
        for number in (1, 2, 3)
    ),
    Show("evt_philharmonic", "Winter Philharmonic", PLAYHOUSE, SMALL, FIRST_IN_DAYS + 30, 19, sold_out=True),
    Show(
        SOON_ID,
        "Night Garden",
        GARDEN,
        (("balcony", 4_800), ("circle", 6_800), ("stalls", 9_800)),
        FIRST_IN_DAYS + 40,
        19,
        description="Lanterns, a river and a very slow dance.",
        opens_in_s=SOON_IN_S,
    ),
    Show("evt_rehearsal", "Open rehearsal", THEATRE, NOTHING, FIRST_IN_DAYS + 45, 11),
)


async def put_season(ledger_url: str) -> None:
    """Write all of it into the ledger. Servers that run open the sales by themselves."""
    now_us = SystemClock()()
    async with opened_ledger(ledger_url, auto_migrate=None) as ledger:
        for hall, shows in _by_hall():
            plan = hall.plan
            body = plan_bytes(plan)
            await ledger.catalogue.put_plan(digest(body), plan, body.decode(), now_us)
            venue = Venue(hall.id, hall.name, digest(body), hall.city, hall.country, hall.zone)
            await ledger.catalogue.put_venue(venue, now_us)
            for show in shows:
                await ledger.catalogue.put_event(_event_of(show, plan, digest(body), now_us), now_us)


def _by_hall() -> Iterator[tuple[Hall, list[Show]]]:
    for hall in dict.fromkeys(show.hall for show in SEASON):
        yield hall, [show for show in SEASON if show.hall == hall]


def _event_of(show: Show, plan: Plan, plan_hash: str, now_us: int) -> Event:
    currency = show.hall.currency
    made = Event(
        show.id,
        show.name,
        show.hall.id,
        plan_hash,
        currency,
        starts_us(now_us, show),
        now_us + show.opens_in_s * US_PER_S - US_PER_S,
        now_us + (show.in_days - 1) * DAY_US,
        tuple(PriceTier(key, Money(price, currency), key.capitalize()) for key, price in show.prices),
        EventStatus.SOLD_OUT if show.sold_out else EventStatus.ON_SALE,
        withheld=frozenset(range(plan.size)) if show.sold_out else frozenset(),
        hold_ttl_s=HOLD_S,
        payments=EVERY_METHOD,
        description=show.description,
        line_up=show.line_up,
        **dict(show.more),
    )
    return check_event(made, plan)


def starts_us(now_us: int, show: Show) -> int:
    """When the show begins: at its hour, by the clock at the venue."""
    day = datetime.fromtimestamp((now_us + show.in_days * DAY_US) / US_PER_S, ZoneInfo(show.hall.zone))
    return int(day.replace(hour=show.hour, minute=0, second=0, microsecond=0).timestamp()) * US_PER_S
