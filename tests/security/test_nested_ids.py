"""Every route with two ids in its path, asked with one of mine and one of somebody else's: nothing is shown or changed.

The routes come from the route table, so a new one with two ids fails until its objects are made here.
"""

import contextlib
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import httpx
import msgspec
import pytest
import pytest_asyncio

from frontrow.app.wiring import Platform
from frontrow.boxoffice.events.model.event_changes import Editor
from frontrow.boxoffice.messages.model.buyer_messages import Audience, AudienceKind
from frontrow.boxoffice.messages.model.messages import Endpoint
from frontrow.boxoffice.people.model.people import csrf_of
from frontrow.boxoffice.people.model.roles import Role
from frontrow.web.http.cookies import SESSION_COOKIE
from tests.boxoffice.organiser.http import OrganiserApi, an_organiser_api
from tests.boxoffice.people.support import Person, fan, member, on_sale
from tests.security.route_table import Route, page_table, table
from tests.support.browser_headers import BROWSER, FORM
from tests.support.ledger_rows import Rows, read_all_rows

pytestmark = pytest.mark.asyncio(loop_scope="module")

OTHER_EVENT: Final = "evt_01JCQ3W2N4X7Z8Y9A0B1C2D3E5"
NOT_SOMEBODYS: Final = {"file", "name", "secret", "version", "path", "first"}  # they name no object of a person
WATCHED: Final = (
    "bookings", "booking_seats", "tickets", "ticket_transfers", "payments", "refunds", "returns", "invoices",
    "buyer_messages", "deliveries", "contacts", "changes", "outbox",
)  # fmt: skip
BODIES: Final = {
    "refund_booking": {},
    "reseat_booking": {"leave": ["S-A-1"], "to": ["S-D-1"]},
    "transfer_ticket": {"seat": "S-A-1", "email": "thief@example.org"},
    "change_buyer_email": {"email": "thief@example.org"},
    "issue_own_invoice": {"billed_to": "Thief"},
}
FIELDS: Final = {"seat": "S-A-1", "email": "thief@example.org", "to": "S-D-1", "name": "Thief", "billed_to": "Thief"}


class Owned(msgspec.Struct):
    """Somebody's objects, by the name that a path has for them."""

    ids: dict[str, str]


class Crossing(msgspec.Struct):
    """Two fans of one event and a third of another organiser's, each with one of everything."""

    platform: Platform
    client: httpx.AsyncClient
    owner: Person
    ada: Person
    mine: Owned
    neighbours: Owned
    foreign: Owned

    def rows(self) -> Rows:
        found = read_all_rows(self.platform.settings.ledger_url)
        return {name: found[name] for name in WATCHED}

    async def ask(self, route: Route, path: str, person: Person) -> httpx.Response:
        """As the person's program, or as their browser with a form that is their own."""
        if path.startswith("/v1/"):
            body = {"json": BODIES.get(route.name, route.sample())} if route.unsafe else {}
            return await self.client.request(route.method, path, headers=person.bearer, **body)
        headers = {"cookie": f"{SESSION_COOKIE}={person.session}", "origin": "https://test"}
        if not route.unsafe:
            return await self.client.get(path, headers=BROWSER | headers)
        fields = {"csrf": csrf_of(person.session), **FIELDS}
        return await self.client.request(route.method, path, data=fields, headers=FORM | headers)


async def own(api: OrganiserApi, event: str, fan_id: str, organiser: str, seats: tuple[str, ...]) -> Owned:
    """A booking with tickets, a transfer, a refund and an invoice; a message, a webhook and a delivery of its event."""
    platform, now_us = api.platform, api.platform.clock()
    buyer = OrganiserApi(platform, api.client, api.person, event)
    booking = await buyer.bought(*seats, fan=fan_id, email=f"{fan_id}@example.org", name="Ada")
    shop, ledger = platform.box_office, platform.ledger
    transfer = await shop.transfers.send(booking, booking.seats[0], f"friend.of.{fan_id}@example.org", "en")
    (invoice,) = await shop.invoices.issue(booking)
    refund = await shop.refunds.override(booking.id, [booking.seats[-1]])
    show, editor, letters = await ledger.catalogue.event(event), Editor("stf_1", organiser), platform.organiser.messages
    draft = await letters.write(editor, show, Audience(AudienceKind.ALL, ""), "Doors", "They open at seven.")
    message = await letters.send(editor, show, draft)
    endpoint = Endpoint(f"whk_{booking.id[4:]}", organiser, event, "https://hooks.example.org/", "s")
    await ledger.messages.put_endpoint(endpoint, now_us)
    assert await platform.messaging.webhooks.test(endpoint)
    (delivery,) = await ledger.organiser.endpoint_deliveries(endpoint, 0, 10)
    ticket = next(one for one in await ledger.tickets.tickets_of(booking.id) if one.seat_index == booking.seats[0])
    ids = {
        "event_id": event,
        "booking_id": booking.id,
        "ticket_id": ticket.id,
        "transfer_id": transfer.id,
        "refund_id": refund.id,
        "number": str(invoice.number),
        "message_id": message.id,
        "webhook_id": endpoint.id,
        "delivery_id": delivery.fact_id,
        "delivery": str(delivery.number),
    }
    return Owned(ids)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def crossing(tmp_path_factory) -> AsyncIterator[Crossing]:
    folder: Path = tmp_path_factory.mktemp("crossing")
    async with contextlib.AsyncExitStack() as stack:
        api = await stack.enter_async_context(an_organiser_api(folder))
        platform = api.platform
        ada, bob = await fan(platform, "ada@example.org"), await fan(platform, "bob@example.org")
        carl = await fan(platform, "carl@example.org")
        await member(platform, Role.OWNER, "org_other")
        await on_sale(platform, "org_other", id=OTHER_EVENT)
        yield Crossing(
            platform,
            api.client,
            api.person,
            ada,
            await own(api, api.event, ada.id, "org_hall", ("S-A-1", "S-A-2", "S-A-3")),
            await own(api, api.event, bob.id, "org_hall", ("S-B-1", "S-B-2", "S-B-3")),
            await own(api, OTHER_EVENT, carl.id, "org_other", ("S-A-1", "S-A-2", "S-A-3")),
        )


def nested() -> list[Route]:
    """The routes whose path names two objects or more."""
    return [route for route in (*table(), *page_table()) if len(route.parameters() - NOT_SOMEBODYS) > 1]


def mixtures(route: Route, mine: Owned, theirs: Owned) -> list[str]:
    """The route's path with every mixture of ids that has at least one of each. Organisers number their invoices from
    1, so a mixture may be the path of what is mine."""
    names = sorted(route.parameters())
    paths = []
    for who in itertools.product((mine, theirs), repeat=len(names)):
        if mine in who and theirs in who:
            paths.append(route.path(**{name: one.ids[name] for name, one in zip(names, who, strict=True)}))
    return [path for path in paths if path != route.path(**mine.ids)]


async def test_two_objects_that_do_not_belong_together_are_not_found_and_nothing_changes(crossing: Crossing) -> None:
    before, asked, wrong = crossing.rows(), 0, []
    for route in nested():
        is_staff = route.access.startswith("staff:")
        others = [crossing.foreign] if is_staff else [crossing.neighbours, crossing.foreign]
        for path in [path for theirs in others for path in mixtures(route, crossing.mine, theirs)]:
            reply = await crossing.ask(route, path, crossing.owner if is_staff else crossing.ada)
            asked += 1
            if reply.status_code != 404:
                wrong.append((route.name, path, reply.status_code, reply.text[:120]))
            if crossing.rows() != before:
                wrong.append((route.name, path, "changed something"))
                before = crossing.rows()
    assert wrong == []
    assert asked > 80


async def test_the_same_paths_with_ones_own_ids_are_found(crossing: Crossing) -> None:
    """Otherwise the test above would be content with routes that find nothing at all."""
    for route in nested():
        if not route.unsafe and "wallet" not in route.name:
            person = crossing.owner if route.access.startswith("staff:") else crossing.ada
            reply = await crossing.ask(route, route.path(**crossing.mine.ids), person)
            assert reply.status_code == 200, (route.name, reply.status_code, reply.text[:200])
