"""Whole purchases with our own client over a real socket (B18): from the line to the gate and back, both clients."""

import asyncio
import inspect

import httpx
import pytest

from frontrow.boxoffice.people.model.roles import Role
from frontrow.client import AsyncClient, Client, NotAllowed, NotFound, NotSignedIn, SeatsTaken, calls, staff_calls
from frontrow.client.call_engine import Call
from frontrow.web.server.app import routes
from tests.boxoffice.people.support import api_key, member
from tests.web.api.support import EVENT_ID, a_server

SCOPES = ["figures:read", "door:scan", "bookings:read", "sales:control"]


def buy(address: str) -> tuple[str, str]:
    """A buyer without asyncio: (booking, the code of the ticket)."""
    with Client(address) as shop:
        page = shop.send(calls.list_events("aurora"))
        event = shop.send(calls.get_event(page.events[0].id))
        assert event.seats > 0
        assert shop.send(calls.get_map(event.map_url))["v"] == "fsmap/1"
        with pytest.raises(NotSignedIn):
            shop.hold(event.id, ["S-A-1"])
        shop.enter(event.id, most_wait_s=30, most_pause_s=0.1)
        assert shop.send(calls.get_seats(event.id))
        hold = shop.hold(event.id, ["S-B-3", "S-B-4"])
        shop.send(calls.extend_hold(hold.booking, hold.fence))
        paid = shop.pay(hold.booking, "pm_card_visa", email="fan@example.org")
        assert paid.state == "confirmed"
        assert shop.pay(hold.booking, "pm_card_visa").state == "confirmed", "paying again changes nothing"
        tickets = shop.tickets(hold.booking)
        assert [ticket.seat for ticket in tickets] == ["S-B-3", "S-B-4"]
        assert shop.send(calls.tickets_pdf(hold.booking)).startswith(b"%PDF")
        refund = shop.send(calls.ask_refund(hold.booking, ["S-B-4"]))
        assert refund.amount.amount_minor == 5000
        assert len(shop.send(calls.list_refunds(hold.booking)).refunds) == 1
        return hold.booking, tickets[0].code


async def test_b18_a_purchase_from_the_line_to_the_gate(tmp_path):
    async with a_server(tmp_path) as (platform, address):
        booking, code = await asyncio.to_thread(buy, address)
        owner = await member(platform, Role.OWNER, "org_default")
        key = await api_key(platform, owner, SCOPES)
        async with AsyncClient(address, key) as staff:
            first = await staff.send(staff_calls.scan(EVENT_ID, code, "north"))
            again = await staff.send(staff_calls.scan(EVENT_ID, code, "south"))
            assert (first.verdict, again.verdict) == ("ok", "duplicate")
            assert (await staff.send(staff_calls.door_counts(EVENT_ID))).inside == 1
            assert "seats" in await staff.send(staff_calls.get_figures(EVENT_ID))
            assert await staff.send(staff_calls.figures_csv(EVENT_ID))
            assert (await staff.send(staff_calls.pause_sale(EVENT_ID)))["paused"] is True
            with pytest.raises(NotAllowed):
                await staff.send(staff_calls.list_team())
        async with AsyncClient(address) as stranger:
            with pytest.raises(NotFound):
                await stranger.send(calls.get_booking(booking))


async def test_b4_fifty_clients_want_the_same_seat_and_one_gets_it(tmp_path):
    async with a_server(tmp_path) as (_, address), httpx.AsyncClient(base_url=address, timeout=60) as http:

        async def want() -> bool:
            shop = AsyncClient(address, http=http)
            await shop.enter(EVENT_ID, most_wait_s=60, most_pause_s=0.2)
            try:
                hold = await shop.hold(EVENT_ID, ["S-A-1"])
            except SeatsTaken:
                return False
            assert (await shop.pay(hold.booking, "pm_card_visa")).state == "confirmed"
            return True

        assert sum(await asyncio.gather(*(want() for _ in range(50)))) == 1


def test_every_call_of_the_client_is_a_route_of_the_server():
    """Made from the route table, so that a path that changes is noticed."""
    known = {
        (method, "/".join("{}" if part.startswith("{") else part for part in path.split("/")))
        for handler in routes()
        for path in handler.paths
        for method in handler.http_methods
    }
    checked = 0
    for module in (calls, staff_calls):
        for name, make in inspect.getmembers(module, inspect.isfunction):
            if make.__module__ != module.__name__ or name == "get_map":
                continue
            needed = [one for one in inspect.signature(make).parameters.values() if one.default is one.empty]
            given = {"count": 2, "seats": ["A"], "scans": []}
            plain = [one for one in needed if one.kind is one.POSITIONAL_OR_KEYWORD]
            call = make(*(given.get(one.name, {} if "Body" in str(one.annotation) else "ID") for one in plain))
            assert isinstance(call, Call)
            assert (call.method, call.path.replace("ID", "{}")) in known, name
            checked += 1
    assert checked > 45
