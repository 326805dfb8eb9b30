"""A ticket goes to somebody else: sent and accepted by pages and mails, the old code refused at every gate."""

from pathlib import Path
from urllib.parse import urlsplit

import httpx

from frontrow.app.wiring import Platform
from frontrow.boxoffice.gate.gate_check import Gate, GateVerdict
from frontrow.boxoffice.messages.model.messages import Contact
from frontrow.boxoffice.people.model.roles import Role
from frontrow.web.http.access import booking_token
from tests.boxoffice.people.support import api_key, fan, member
from tests.journeys.mailbox import Mail
from tests.support.browser_headers import BROWSER, FORM
from tests.support.eventually import eventually
from tests.support.form_answers import submit
from tests.support.signed_tickets import signed_tickets
from tests.web.api.support import EVENT_ID, a_client, a_platform, put_event
from tests.web.site.purchases import buy

GRACE = "grace@example.org"


async def mail_to(platform: Platform, address: str, subject: str) -> Mail:
    """The mail with this subject, once the platform has sent it."""

    def wanted(mails: list[Mail]) -> list[Mail]:
        return [mail for mail in mails if mail.to == address and subject in mail.subject]

    return wanted(await eventually(lambda: _mails(platform), until=wanted))[0]


def _mails(platform: Platform) -> list[Mail]:
    return [Mail(path.read_bytes()) for path in Path(platform.settings.mail_url).rglob("*.eml")]


def key_of(mail: Mail) -> str:
    """What stands behind the `#` of the mail's link."""
    return next(urlsplit(link).fragment for link in mail.links() if "#" in link)


async def open_link(client: httpx.AsyncClient, mail: Mail) -> str:
    answer = await client.post("/open", data={"link": key_of(mail)}, headers=FORM)
    return str(answer.headers["location"])


async def test_a_ticket_is_sent_accepted_and_only_the_new_code_is_admitted(tmp_path: Path) -> None:
    async with a_platform(tmp_path) as platform, a_client(platform) as ada, a_client(platform) as grace:
        booking_id = await buy(platform, "S-A-1", "S-A-2")
        await platform.ledger.messages.put_contact(Contact("fan_ada", "ada@example.org", name="Ada"), platform.clock())
        ada.cookies.set("frontrow_bookings", booking_token(platform.secrets, booking_id))
        old = (await signed_tickets(platform, booking_id))[0]
        path = f"/bookings/{booking_id}"
        refused = await submit(ada, f"{path}/transfers", {"seat": "S-A-1", "email": "grace"})
        assert (refused.status_code, "does not look like an email" in refused.text) == (409, True)
        for _ in range(2):  # two clicks
            sent = await ada.post(f"{path}/transfers", data={"seat": "S-A-1", "email": GRACE}, headers=FORM)
            assert sent.status_code == 303
        page = (await ada.get(path, headers=BROWSER)).text
        assert f"Stalls, Row A, Seat 1: sent to {GRACE}, not accepted yet" in page
        assert page.count('class="qr"') == 2  # it is hers until it is accepted

        asked = await mail_to(platform, GRACE, "A ticket for Aurora is waiting for you")
        assert "Ada sends you a ticket." in asked.text
        assert "Stalls, Row A, Seat 1" in asked.text
        where = await open_link(grace, asked)
        shown = await grace.get(where, headers=BROWSER)
        assert (shown.status_code, "Accept the ticket" in shown.text, old.id in shown.text) == (200, True, False)
        assert (await grace.get(f"{where}/qr", headers=BROWSER)).status_code == 404
        assert (await ada.get(where, headers=BROWSER)).status_code == 404  # the link went to somebody else
        accepted = await grace.post(f"{where}/accept", data={"name": "Grace Hopper"}, headers=FORM)
        assert accepted.status_code == 303
        again = await grace.post("/v1/transfers/accept", json={"link": asked.links()[0], "name": "Somebody"})
        ticket = again.json()
        assert (again.status_code, ticket["seat"]) == (200, "S-A-1")
        hers = (await grace.get(where, headers=BROWSER)).text
        assert "Grace Hopper" in hers
        assert ticket["ticket"] in hers
        assert (await grace.get(f"{where}/qr", headers=BROWSER)).headers["content-type"] == "image/png"
        assert b"BEGIN:VEVENT" in (await grace.get(f"{where}/ticket.ics", headers=BROWSER)).content
        assert (await grace.get(path, headers=BROWSER)).status_code == 404

        page = (await ada.get(path, headers=BROWSER)).text
        assert f"Stalls, Row A, Seat 1: transferred to {GRACE}." in page
        assert ticket["ticket"] not in page
        assert page.count('class="qr"') == 1
        for code in (old.id, ticket["ticket"]):
            assert (await ada.get(f"{path}/qr/{code}", headers=BROWSER)).status_code == 404
        listed = await ada.get(f"/v1{path}/tickets", headers={"frontrow-booking": ada.cookies["frontrow_bookings"]})
        assert [one["seat"] for one in listed.json()["tickets"]] == ["S-A-2"]
        returned = {"seat": "S-A-1", "how": "refund", "amount": "5000"}
        assert (await submit(ada, f"{path}/give-back", returned)).status_code == 409
        assert await platform.ledger.payments.refunds_of(booking_id) == []

        gate = Gate(await platform.box_office.gates.bundle(EVENT_ID, platform.clock()), "north")
        stale = Gate(await platform.box_office.gates.bundle(EVENT_ID, platform.clock()), "south")
        stale._revoked.clear()  # a gate that was offline when the ticket changed hands
        assert gate.check(old.code, platform.clock()).verdict is GateVerdict.REVOKED
        for one in (gate, stale):
            assert one.check(ticket["code"], platform.clock()).verdict is GateVerdict.WELCOME
        assert stale.check(old.code, platform.clock()).verdict is GateVerdict.REPLACED
        staff = await member(platform, Role.OWNER, "org_default")
        scanner = {"authorization": f"Bearer {await api_key(platform, staff, ['door:scan'])}"}
        for code, verdict in ((old.code, "revoked"), (old.id, "revoked"), (ticket["code"], "ok")):
            scanned = await ada.post(
                f"/v1/door/events/{EVENT_ID}/scan", json={"code": code, "gate": "north"}, headers=scanner
            )
            assert scanned.json()["verdict"] == verdict
            assert scanned.json()["reason"] == ("transferred" if verdict == "revoked" else "")

        told = await mail_to(platform, "ada@example.org", "Your ticket for Aurora was accepted")
        assert f"{GRACE} accepted your ticket: Stalls, Row A, Seat 1." in told.text
        mailed = await mail_to(platform, GRACE, "Your ticket for Aurora")
        assert {"tickets.pdf", "event.ics"} <= mailed.attachments().keys()
        assert ticket["ticket"] in mailed.text


async def test_who_received_a_ticket_sends_it_on_only_with_the_proven_address(tmp_path: Path) -> None:
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        booking_id = await buy(platform, "S-A-1")
        booking = await platform.ledger.booking(booking_id)
        assert booking is not None
        signed_in = await fan(platform, GRACE)
        transfers = platform.box_office.transfers
        sent = await transfers.send(booking, booking.seats[0], GRACE, "en")
        await transfers.accept(sent.id, "Grace", "en")
        await open_link(client, await mail_to(platform, GRACE, "A ticket for Aurora"))
        wish = {"email": "joan@example.org"}
        assert (await client.post(f"/transfers/{sent.id}/send", data=wish, headers=FORM)).status_code == 404
        assert "/send" not in (await client.get(f"/transfers/{sent.id}", headers=BROWSER)).text
        session = {"cookie": f"__Host-frontrow-session={signed_in.session}"}
        listed = (await client.get("/tickets", headers=BROWSER | session)).text
        assert f"/transfers/{sent.id}" in listed
        assert "/send" in (await client.get(f"/transfers/{sent.id}", headers=BROWSER | session)).text
        exported = await platform.people.fans.export(signed_in.id)
        assert [one["id"] for one in exported["tickets_received"]] == [sent.id]

        await put_event(platform, transfers_allowed=False)
        token = {"frontrow-booking": booking_token(platform.secrets, booking_id)}
        wish = {"seat": "S-A-1", "email": "joan@example.org"}
        refused = await client.post(f"/v1/bookings/{booking_id}/transfers", json=wish, headers=token)
        assert (refused.status_code, refused.json()["code"]) == (409, "transfer_refused")
        await platform.box_office.refunds.override(booking_id)  # for the organiser
        await mail_to(platform, GRACE, "Your ticket for Aurora is no longer valid")
        assert "This ticket is no longer valid." in (await client.get(f"/transfers/{sent.id}", headers=BROWSER)).text
        await platform.people.fans.erase(signed_in.id)
        forgotten = await platform.ledger.transfers.transfer(sent.id)
        assert forgotten is not None
        assert (forgotten.email, forgotten.name) == ("", "")
