"""`/v1/me` over HTTP: preferences, devices, messages, bookings, taking it along and being forgotten."""

import msgspec

from frontrow.boxoffice.facts.model import BookingConfirmed
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.holds.model.holds import NewHold
from frontrow.boxoffice.messages.model.messages import InAppMessage
from frontrow.boxoffice.waitlist.model.waitlist import EntryState, NewEntry
from tests.boxoffice.people.support import asking, fan, on_sale, opened
from tests.web.api.support import EVENT_ID

DEVICE = {"endpoint": "https://push.example.org/abc", "keys": {"p256dh": "key", "auth": "auth"}}


async def bought(platform, person: str, seat: int) -> str:
    """A confirmed booking of this person."""
    now_us = platform.clock()
    booking_id = platform.ids.new("bkg")
    hold = await platform.ledger.place_hold(
        NewHold(
            booking_id,
            EVENT_ID,
            person,
            (seat,),
            now_us=now_us,
            expires_at_us=now_us + 10**9,
            amount_minor=5000,
            currency="EUR",
        )
    )
    await platform.ledger.begin_payment(booking_id, hold.fence, now_us)
    await platform.ledger.confirm(booking_id, hold.fence, now_us)
    return booking_id


async def test_preferences_devices_and_messages(tmp_path):
    async with opened(tmp_path) as platform, asking(platform) as client:
        mine = await fan(platform, "fan@example.org")
        changes = {
            "locale": "de_AT",
            "phone": "+436641234567",
            "channels": ["email", "push", "push"],
            "name": " Ada\tLovelace",
        }
        me = (await client.patch("/v1/me/preferences", json=changes, headers=mine.bearer)).json()
        assert me["preferences"] == {
            "email": "fan@example.org",
            "phone": "+436641234567",
            "locale": "de-AT",
            "channels": ["email", "push"],
            "name": "Ada Lovelace",
            "phone_proven": False,  # a number that was only typed
        }
        for bad in ({"phone": "12"}, {"locale": "no locale"}, {"email": "other@example.org"}, {"channels": ["fax"]}):
            assert (await client.patch("/v1/me/preferences", json=bad, headers=mine.bearer)).status_code in (
                400,
                403,
                422,
            )
        added = (await client.post("/v1/me/push", json=DEVICE, headers=mine.bearer)).json()
        assert (await client.post("/v1/me/push", json=DEVICE, headers=mine.bearer)).json() == added
        me = (await client.get("/v1/me", headers=mine.bearer)).json()
        assert me["push"] == [added]
        assert "push.example.org" not in str(me)
        assert (await client.delete(f"/v1/me/push/{added['id']}", headers=mine.bearer)).status_code == 204
        assert (await client.delete(f"/v1/me/push/{added['id']}", headers=mine.bearer)).status_code == 404
        await platform.ledger.messages.put_in_app([InAppMessage("m1", mine.id, "Hello", "World", 1)], 1)
        told = (await client.get("/v1/me/messages", headers=mine.bearer)).json()
        assert [one["subject"] for one in told["messages"]] == ["Hello"]


async def test_a_purchase_is_told_in_words_by_the_api_and_in_the_export(tmp_path):
    """ADR 0171: the ledger has a notice; who reads it gets the text."""
    async with opened(tmp_path) as platform, asking(platform) as client:
        await on_sale(platform)
        mine = await fan(platform, "fan@example.org")
        booking = await platform.ledger.booking(await bought(platform, mine.id, 1))
        now_us, notifier = platform.clock(), platform.messaging.notifier
        fact = BookingConfirmed(booking.id, EVENT_ID, mine.id, booking.fence, (1,), now_us, 5000, "EUR")
        await platform.ledger.messages.once("notify", "1", await notifier.plan(1, fact), now_us)
        (told,) = (await client.get("/v1/me/messages", headers=mine.bearer)).json()["messages"]
        assert told["subject"].startswith("Your tickets for ")
        assert f"/bookings/{booking.id}" in told["body"]
        (kept,) = (await client.get("/v1/me/export", headers=mine.bearer)).json()["messages"]
        assert (kept["subject"], kept["body"]) == (told["subject"], told["body"])


async def test_a_guest_says_where_tickets_go(tmp_path):
    async with opened(tmp_path) as platform, asking(platform) as client:
        guest = await fan(platform)
        me = await client.patch("/v1/me/preferences", json={"email": "Guest@Example.org"}, headers=guest.bearer)
        assert (me.json()["guest"], me.json()["email"], me.json()["preferences"]["email"]) == (
            True,
            "",
            "guest@example.org",
        )


async def test_everything_can_be_taken_along_and_forgotten_and_the_money_stays(tmp_path):
    async with opened(tmp_path) as platform, asking(platform) as client:
        await on_sale(platform)
        mine, other = await fan(platform, "fan@example.org"), await fan(platform, "other@example.org")
        booking = await bought(platform, mine.id, 1)
        await bought(platform, other.id, 2)
        listed = (await client.get("/v1/me/bookings", headers=mine.bearer)).json()["bookings"]
        assert [(one["id"], one["state"], one["amount"]["amount_minor"]) for one in listed] == [
            (booking, "confirmed", 5000)
        ]
        kept = await client.get("/v1/me/export", headers=mine.bearer)
        assert kept.headers["content-disposition"].startswith("attachment")
        assert (kept.json()["fan"]["email"], [one["id"] for one in kept.json()["bookings"]]) == (
            "fan@example.org",
            [booking],
        )
        assert "other@example.org" not in kept.text
        assert "frs_" not in kept.text
        entry = await platform.ledger.waitlist.join_waitlist(NewEntry("wle_1", EVENT_ID, mine.id, 1), platform.clock())
        assert (await client.get("/v1/me/export", headers=mine.bearer)).json()["waitlist"][0]["id"] == entry.id
        refused = await client.post("/v1/me/erase", json={"confirm": "yes"}, headers=mine.bearer)
        assert refused.status_code == 422
        done = await client.post("/v1/me/erase", json={"confirm": "erase my data"}, headers=mine.bearer)
        assert done.status_code == 204
        assert (await client.get("/v1/me", headers=mine.bearer)).status_code == 401
        left = await platform.ledger.booking(booking)
        assert (left.state, left.amount_minor, left.fan) == (BookingState.CONFIRMED, 5000, mine.id)
        assert await platform.ledger.messages.contact(mine.id) is None
        assert (await platform.ledger.waitlist.entry(entry.id)).state is EntryState.LEFT, "nobody is offered a seat"
        assert b"fan@example.org" not in msgspec.json.encode(await platform.people.book.fan(mine.id))
        assert (await client.get("/v1/me", headers=other.bearer)).json()["email"] == "other@example.org"
