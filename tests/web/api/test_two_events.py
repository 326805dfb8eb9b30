"""Two events of two organisations, and the n-th visitor of each: whatever they do, they never meet (ADR 0112).

Every room counts from 1, so Ada (event A) and Bob (event B) have the same place. Nothing of one may reach the other:
address, name, mails, messages, bookings, refunds, waitlist, caps, erasure, exports; also after both have signed in.
"""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontrow.app.wiring import Platform
from frontrow.boxoffice.people.model.roles import Role
from tests.boxoffice.people.support import fan, member
from tests.journeys.mailbox import folder_mailbox
from tests.web.api.script import Buyer, a_buyer
from tests.web.api.support import a_client, a_platform, one_row, put_event

A, B = "evt_concert", "evt_opera"
ORGANISERS = {A: "org_hall", B: "org_opera"}
ADA, BOB = "ada@example.org", "bob@example.org"
KEY = {"Idempotency-Key": "the same key for everybody"}


@pytest.fixture(params=["embedded", "grown_up"])
def stores(request: pytest.FixtureRequest) -> dict[str, str]:
    """Nothing (embedded), or a Redis and a migrated PostgreSQL of this test's own."""
    if request.param == "embedded":
        return {}
    return {
        "redis_url": request.getfixturevalue("redis_url"),
        "postgres_url": request.getfixturevalue("postgres_ledger_url"),
    }


async def put_both_on_sale(platform: Platform) -> None:
    for event, organiser in ORGANISERS.items():
        await platform.people.team.create_organiser(organiser, organiser)
        await put_event(platform, one_row(2), id=event, name=f"Show {event}", organiser_id=organiser, max_per_person=2)
    await platform.box_office.openings.refresh()


async def at_checkout(client: httpx.AsyncClient, event: str) -> tuple[Buyer, str]:
    """The next visitor of an event, who holds all its seats."""
    buyer = await a_buyer(client)
    await buyer.enter(event)
    held = await buyer.call("place_hold", event_id=event, json={"seats": ["S-A-1", "S-A-2"]}, headers=KEY)
    assert held.status_code == 201, held.text
    buyer.headers["Frontrow-Booking"] = held.json()["booking_token"]
    return buyer, held.json()["booking"]


async def page_of(client: httpx.AsyncClient, buyer: Buyer, path: str) -> str:
    """A page as the buyer's browser, which has cookies instead of headers."""
    cookie = f"frontrow_pass={buyer.headers['Frontrow-Pass']}; frontrow_bookings={buyer.headers['Frontrow-Booking']}"
    answer = await client.get(path, headers={"cookie": cookie})
    assert answer.status_code == 200, answer.text
    return answer.text


async def test_the_nth_visitors_of_two_events_never_meet(tmp_path: Path, stores: dict[str, str]) -> None:
    async with a_platform(tmp_path, **stores) as platform, a_client(platform) as client:
        await put_both_on_sale(platform)
        ada, concert = await at_checkout(client, A)
        bob, opera = await at_checkout(client, B)
        assert concert != opera
        for buyer, theirs, others in ((ada, concert, opera), (bob, opera, concert)):
            await owns_only(buyer, theirs, others)
        await pays(client, ada, concert, ADA, "Ada Lovelace")
        shown = await page_of(client, bob, f"/checkout/{opera}")
        assert "Ada" not in shown
        assert ADA not in shown
        await owns_only(bob, opera, concert)
        await pays(client, bob, opera, BOB, "Bob Byron")
        await tickets_are_mailed_to_their_own_buyers(platform)
        waiting = [await waits(client, event) for event in (A, B)]
        assert waiting[0]["entry"] != waiting[1]["entry"]
        signed = {email: await signed_in(platform, client, email) for email in (ADA, BOB)}
        await sees_only(signed[ADA], concert, opera, other=BOB)
        await sees_only(signed[BOB], opera, concert, other=ADA)
        await organisers_see_their_own(platform, client)
        erased = await signed[ADA].call("erase_my_data", json={"confirm": "erase my data"})
        assert erased.status_code == 204, erased.text
        await sees_only(signed[BOB], opera, concert, other=ADA)
        kept = await platform.ledger.booking(opera)
        assert kept is not None
        contact = await platform.ledger.messages.contact(kept.fan)
        assert contact is not None
        assert (contact.email, contact.name) == (BOB, "Bob Byron")
        gone = await platform.ledger.booking(concert)
        assert gone is not None
        assert await platform.ledger.messages.contact(gone.fan) is None
        assert await platform.ledger.organiser.bookings_by_name(A, ["lovelace"], 0, 10) == []
        assert len(await platform.ledger.organiser.waitlist_page(B, "", 0, 10)) == 1
        refund = await signed[BOB].call("ask_refund", booking_id=opera, json={"seats": ["S-A-2"]})
        assert refund.status_code == 201, refund.text


async def pays(client: httpx.AsyncClient, buyer: Buyer, booking: str, email: str, name: str) -> None:
    body = {"method": "pm_card_visa", "email": email, "name": name}
    paid = await buyer.call("pay", booking_id=booking, json=body, headers=KEY)
    assert paid.status_code == 200, paid.text
    assert paid.json()["state"] == "confirmed"
    ticket = await page_of(client, buyer, f"/bookings/{booking}")
    assert name in ticket


async def tickets_are_mailed_to_their_own_buyers(platform: Platform) -> None:
    mailbox = folder_mailbox(Path(platform.settings.mail_url))
    for email, event in ((ADA, A), (BOB, B)):
        mail = await asyncio.to_thread(mailbox.wait_for, email)
        assert event in mail.subject + mail.text
        assert "tickets.pdf" in mail.attachments()
        assert len(mailbox.mails(email)) == 1
    assert len(mailbox.mails()) == 2


async def owns_only(buyer: Buyer, theirs: str, others: str) -> None:
    """By the pass alone: what a browser without booking tokens has."""
    by_pass = {"Frontrow-Booking": ""}
    assert (await buyer.call("get_booking", booking_id=theirs, headers=by_pass)).status_code == 200
    for call, body in (("get_booking", None), ("list_tickets", None), ("cancel_booking", {}), ("ask_refund", {})):
        more = {} if body is None else {"json": body}
        answer = await buyer.call(call, booking_id=others, headers=by_pass, **more)
        assert answer.status_code == 404, (call, answer.text)


async def waits(client: httpx.AsyncClient, event: str) -> dict[str, Any]:
    """The second visitor of a sold-out event joins its waitlist."""
    buyer = await a_buyer(client)
    await buyer.enter(event)
    before = await buyer.call("waitlist_position", event_id=event)
    assert before.status_code in (404, 409), "nobody waits as somebody of another event"
    joined = await buyer.call("join_waitlist", event_id=event, json={"count": 1}, headers=KEY)
    assert joined.status_code == 201, joined.text
    return dict(joined.json())


async def signed_in(platform: Platform, client: httpx.AsyncClient, email: str) -> Buyer:
    """On a device that bought nothing."""
    laptop = await a_buyer(client)
    laptop.headers |= (await fan(platform, email)).bearer
    return laptop


async def sees_only(laptop: Buyer, theirs: str, others: str, other: str) -> None:
    mine = (await laptop.call("list_my_bookings")).json()["bookings"]
    assert [one["id"] for one in mine] == [theirs]
    assert (await laptop.call("list_tickets", booking_id=theirs)).status_code == 200
    for call in ("get_booking", "list_tickets", "list_refunds"):
        assert (await laptop.call(call, booking_id=others)).status_code == 404
    for call in ("ask_refund", "return_tickets", "cancel_booking"):
        assert (await laptop.call(call, booking_id=others, json={})).status_code == 404
    for call in ("get_me", "list_my_messages", "export_my_data"):
        text = (await laptop.call(call)).text
        assert others not in text
        assert other not in text
    messages = (await laptop.call("list_my_messages")).json()["messages"]
    assert len(messages) == 1


async def organisers_see_their_own(platform: Platform, client: httpx.AsyncClient) -> None:
    for event, other, name, stranger in ((A, B, "lovelace", "byron"), (B, A, "byron", "lovelace")):
        as_owner = {"headers": (await member(platform, Role.OWNER, ORGANISERS[event])).bearer}
        path = f"/v1/organiser/events/{event}/bookings"
        found = (await client.get(path, params={"name": name}, **as_owner)).json()["bookings"]
        assert len(found) == 1
        assert (await client.get(path, params={"name": stranger}, **as_owner)).json()["bookings"] == []
        email = BOB if event == A else ADA
        assert (await client.get(path, params={"email": email}, **as_owner)).json()["bookings"] == []
        whole = (await client.get(path, **as_owner)).text
        assert stranger not in whole.lower()
        assert (await client.get(f"/v1/organiser/events/{other}/bookings", **as_owner)).status_code == 404
