"""A platform with a team and an event of its own, asked over HTTP; purchases by the real services."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx

from frontrow.app.wiring import Platform
from frontrow.boxoffice.checkout.checkout import CheckoutState
from frontrow.boxoffice.events.model.events import MAX_CARD_TRIES
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.holds.model.holds import ShopPass
from frontrow.boxoffice.messages.model.messages import Contact
from frontrow.boxoffice.people.model.roles import Role
from frontrow.core.clock import US_PER_S
from frontrow.shared.local_time import time_text
from tests.boxoffice.organiser.support import small_document
from tests.boxoffice.people.support import ORGANISER, Person, asking, member, on_sale, opened
from tests.support.signed_tickets import signed_tickets

EVENTS = "/v1/organiser/events"


class OrganiserApi:
    """The API as one member of a team calls it."""

    def __init__(self, platform: Platform, client: httpx.AsyncClient, person: Person, event: str = "") -> None:
        self.platform, self.client, self.person, self.event = platform, client, person, event

    async def ask(
        self, method: str, path: str, *, headers: dict[str, str] | None = None, **more: Any
    ) -> httpx.Response:
        return await self.client.request(method, path, headers=self.person.bearer | (headers or {}), **more)

    async def get(self, path: str, **more: Any) -> Any:
        answer = await self.ask("GET", path, **more)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def post(self, path: str, status: int = 200, **more: Any) -> Any:
        answer = await self.ask("POST", path, **more)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    async def as_(self, role: Role, organiser: str = ORGANISER, name: str = "") -> "OrganiserApi":
        person = await member(self.platform, role, organiser, name)
        return OrganiserApi(self.platform, self.client, person, self.event)

    async def bought(
        self, *seats: str, fan: str = "fan_eve", email: str = "", name: str = "", pay: str = "pm_card_visa"
    ) -> Booking:
        """Hold and pay by the services themselves."""
        platform = self.platform
        if email:
            await platform.ledger.messages.keep_buyer(Contact(fan, email, name=name), self.event, platform.clock())
        visit = ShopPass(self.event, fan, platform.clock() + 900 * US_PER_S)
        hold = await platform.box_office.holds.place(self.event, visit, list(seats))
        if pay:
            result = await platform.box_office.checkout.pay(hold.booking_id, hold.fence, pay)
            for _ in range(MAX_CARD_TRIES):
                if result.state is not CheckoutState.OPEN:
                    break
                result = await platform.box_office.checkout.pay(hold.booking_id, hold.fence, pay)  # declined: once more
            await platform.box_office.checkout.work()  # takes the money
            return result.booking
        held = await platform.ledger.booking(hold.booking_id)
        assert held is not None
        return held

    async def codes(self, booking: Booking) -> list[str]:
        return [ticket.code for ticket in await signed_tickets(self.platform, booking.id)]


@contextlib.asynccontextmanager
async def an_organiser_api(folder: Path, role: Role = Role.OWNER, **options: Any) -> AsyncIterator[OrganiserApi]:
    """A member of ORGANISER, whose event is on sale on this server."""
    async with opened(folder, **options) as platform, asking(platform) as client:
        person = await member(platform, role)
        yield OrganiserApi(platform, client, person, await on_sale(platform))


def a_venue_body(**changes: Any) -> dict[str, Any]:
    return {"name": "Small Hall", "city": "Vienna", "country": "AT", "plan": {"document": small_document()}} | changes


def an_event_body(venue: str, **changes: Any) -> dict[str, Any]:
    body = {
        "name": "Aurora",
        "venue": venue,
        "currency": "EUR",
        "starts_at": "2099-06-01T20:00:00+02:00",
        "sale_starts_at": "2020-01-01T10:00:00Z",
        "sale_ends_at": "2099-05-31T10:00:00Z",
        "tiers": [{"key": key, "amount_minor": 5000} for key in ("front", "back", "standing")],
    }
    return body | changes


def at(platform: Any, seconds: int) -> str:
    """A moment from now, as the API takes it."""
    return time_text(platform.clock() + seconds * 1_000_000)


async def draft(api: OrganiserApi, **changes: Any) -> str:
    venue = (await api.post("/v1/organiser/venues", 201, json=a_venue_body()))["venue"]
    made: dict[str, Any] = await api.post(EVENTS, 201, json=an_event_body(venue, **changes))
    return str(made["event"])


async def patched(api: OrganiserApi, event: str, status: int = 200, **changes: Any) -> Any:
    answer = await api.ask("PATCH", f"{EVENTS}/{event}", json=changes)
    assert answer.status_code == status, answer.text
    return answer.json()


async def join(api: OrganiserApi, event: str, headers: dict[str, str] | None = None, **body: Any) -> Any:
    return await api.client.post(f"/v1/events/{event}/room/join", json=body, headers=headers)
