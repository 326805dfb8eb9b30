"""A whole purchase by a script that only knows the API's document (B18), and what can happen on its way (B5-B12)."""

from frontrow.boxoffice.model.fsmap import read_snapshot
from frontrow.boxoffice.tickets.door import Gate, Verdict
from tests.api.script import a_buyer
from tests.api.support import EVENT_ID, a_client, a_platform


async def test_b18_from_the_line_to_the_door_and_back_knowing_only_the_document(tmp_path):
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        buyer = await a_buyer(client)
        await buyer.enter(EVENT_ID)
        event = (await buyer.call("get_event", event_id=EVENT_ID)).json()
        drawn = await client.get(event["map_url"])
        assert drawn.json()["v"] == "fsmap/1"
        assert "immutable" in drawn.headers["cache-control"]
        snapshot = await buyer.call("get_seats", event_id=EVENT_ID)
        assert set(read_snapshot(snapshot.content, event["seats"]).states) == {0}
        held = await buyer.hold(EVENT_ID, seats=["S-B-3", "S-B-4"])
        assert held["amount"] == {"amount_minor": 10000, "currency": "EUR"}
        paid = await buyer.pay(held["booking"])
        assert paid["checkout"]["state"] == paid["state"] == "confirmed"
        tickets = (await buyer.call("list_tickets", booking_id=held["booking"])).json()["tickets"]
        assert [ticket["seat"] for ticket in tickets] == ["S-B-3", "S-B-4"]
        gate = Gate(await platform.desk.bundle(EVENT_ID, platform.clock()), "north")
        assert gate.check(tickets[0]["code"], platform.clock()).verdict is Verdict.WELCOME
        assert gate.check(tickets[0]["code"], platform.clock()).verdict is Verdict.ALREADY_IN
        pdf = await buyer.call("tickets_pdf", booking_id=held["booking"])
        assert pdf.content.startswith(b"%PDF")
        ics = await buyer.call("tickets_ics", booking_id=held["booking"])
        assert b"BEGIN:VEVENT" in ics.content
        png = await buyer.call("ticket_qr", booking_id=held["booking"], ticket_id=tickets[0]["ticket"])
        assert png.content.startswith(b"\x89PNG")
        refund = await buyer.call("ask_refund", booking_id=held["booking"], json={"seats": ["S-B-4"]})
        assert refund.status_code == 201, refund.text
        assert refund.json()["amount"] == {"amount_minor": 5000, "currency": "EUR"}
        left = (await buyer.call("list_tickets", booking_id=held["booking"])).json()["tickets"]
        assert [ticket["seat"] for ticket in left] == ["S-B-3"]
        await buyer.call("cancel_booking", booking_id=held["booking"])
        assert (await buyer.call("get_booking", booking_id=held["booking"])).json()["state"] == "refunded"
        refunds = (await buyer.call("list_refunds", booking_id=held["booking"])).json()["refunds"]
        assert sum(one["amount"]["amount_minor"] for one in refunds) == 10000
