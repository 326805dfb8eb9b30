"""Whoever knows a ticket's booking, fence and seat (a friend, a member who only reads, a receiver of webhooks) cannot
make the ticket, and a number that is known admits nobody."""

import hashlib
import itertools
import json
from pathlib import Path
from typing import Any

import msgspec

from frontrow.boxoffice.facts.model import encode_fact
from frontrow.boxoffice.gate.gate_bundle import Bundle
from frontrow.boxoffice.gate.gate_check import Gate, GateVerdict
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.people.model.roles import Role
from frontrow.boxoffice.tickets.model.tickets import TICKET_ID_BYTES, NewTicket, ticket_id
from frontrow.boxoffice.tickets.signing_keys import TicketKeys
from frontrow.boxoffice.tickets.ticket_codes import UNSIGNED, Issuer, stored_body
from frontrow.web.http.access import booking_token
from tests.boxoffice.organiser.http import OrganiserApi, an_organiser_api
from tests.boxoffice.people.support import fan
from tests.boxoffice.tickets.samples import booking as a_booking
from tests.support.signed_tickets import signed_tickets

GRACE = "grace@example.org"


def computed(booking_id: str, fences: range, seats: range) -> list[str]:
    """The numbers that anybody can compute from booking, fence and seat, as tickets had them before."""
    texts = [f"{booking_id}|{fence}|{seat}" for fence, seat in itertools.product(fences, seats)]
    return [ticket_id(hashlib.blake2b(text.encode(), digest_size=TICKET_ID_BYTES).digest()) for text in texts]


def found_in(text: str, *secrets: str) -> list[str]:
    return [secret for secret in secrets if secret in text]


async def transferred(api: OrganiserApi) -> tuple[Any, Any, Any]:
    """Ada's booking of two seats, and the ticket that she sent to Grace."""
    booking = await api.bought("S-A-1", "S-A-2", fan="fan_ada", email="ada@example.org", name="Ada King")
    transfers = api.platform.box_office.transfers
    sent = await transfers.send(booking, booking.seats[0], GRACE, "en")
    return booking, sent, await transfers.accept(sent.id, "Grace Hopper", "en")


async def test_a_friend_with_one_ticket_learns_nothing_that_makes_the_others(tmp_path: Path) -> None:
    async with an_organiser_api(tmp_path, Role.DOOR) as api:
        booking, sent, _ = await transferred(api)
        grace = await fan(api.platform, GRACE)
        hers = await api.platform.box_office.renderer.calendar(
            booking.id, await api.platform.ledger.transfers.transfer(sent.id)
        )
        export = (await api.client.get("/v1/me/export", headers=grace.bearer)).text
        assert sent.id in export
        tickets = {one.seat_index: one for one in await api.platform.ledger.tickets.tickets_of(booking.id)}
        others = (tickets[booking.seats[1]].id, booking.id, "fan_ada", "ada@example.org")
        for text in (hers.decode(), export):
            assert found_in(text, *others, sent.ticket_id) == []
        guesses = computed(booking.id, range(booking.fence + 3), range(60))  # had she known the booking
        known = {one.id for one in tickets.values()}
        assert not known & set(guesses)
        for number in (tickets[booking.seats[1]].id, *guesses[:20]):
            answer = await api.post(f"/v1/door/events/{api.event}/scan", json={"code": number, "gate": "north"})
            assert answer["verdict"] != "ok"
        assert (await api.get(f"/v1/door/events/{api.event}/counts"))["inside"] == 0


async def test_a_calendar_that_is_shared_shows_no_ticket_number(tmp_path: Path) -> None:
    async with an_organiser_api(tmp_path, Role.DOOR) as api:
        booking = await api.bought("S-A-1", "S-A-2", fan="fan_ada", email="ada@example.org")
        token = {"frontrow-booking": booking_token(api.platform.secrets, booking.id)}
        shared = await api.client.get(f"/v1/bookings/{booking.id}/tickets.ics", headers=token)
        assert shared.status_code == 200
        assert "tkt_" not in shared.text.replace("\r\n ", "")


async def test_a_member_who_only_reads_cannot_make_tickets_from_lists_and_files(tmp_path: Path) -> None:
    async with an_organiser_api(tmp_path, Role.DOOR) as api:
        booking = await api.bought("S-A-1", "S-A-2", fan="fan_ada", email="ada@example.org")
        reader = await api.as_(Role.READ_ONLY)
        (listed,) = (await reader.get(f"/v1/organiser/events/{api.event}/bookings"))["bookings"]
        seats = range(60)
        guesses = set(computed(listed["booking"], range(listed["fence"] + 2), seats))
        tickets = await api.platform.ledger.tickets.tickets_of(booking.id)
        assert not guesses & {one.id for one in tickets}
        files = await reader.ask("GET", f"/organiser/events/{api.event}/exports/tickets.csv")
        assert "FR1" not in files.text, "no code leaves in a file"
        numbers = [word for word in files.text.replace("\r\n", ",").split(",") if word.startswith("tkt_")]
        assert sorted(numbers) == sorted(one.id for one in tickets)
        for number in numbers:  # what a member can read at all is looked up at the gate, not let in
            answer = await api.post(f"/v1/door/events/{api.event}/scan", json={"code": number, "gate": "north"})
            assert answer["verdict"] == "look_up"
        refused = await reader.ask(
            "POST", f"/v1/door/events/{api.event}/scan", json={"code": tickets[0].id, "gate": "north"}
        )
        assert refused.status_code == 403
        assert (await api.get(f"/v1/door/events/{api.event}/counts"))["inside"] == 0


async def test_a_receiver_of_webhooks_cannot_make_tickets_from_facts(tmp_path: Path) -> None:
    async with an_organiser_api(tmp_path, Role.DOOR) as api:
        booking = await api.bought("S-A-1", "S-A-2", fan="fan_ada", email="ada@example.org")
        claimed = await api.platform.ledger.claim_facts(api.platform.clock(), 1, 1_000)
        sent = [encode_fact(one.fact) for one in claimed]  # what a webhook's body carries
        facts = [one for one in map(json.loads, sent) if one["booking_id"] == booking.id]
        assert facts, "the receiver heard of the booking"
        tickets = {one.id for one in await api.platform.ledger.tickets.tickets_of(booking.id)}
        assert found_in("".join(sent), *tickets) == []
        for fact in facts:
            assert not tickets & set(computed(fact["booking_id"], range(fact["fence"] + 2), range(60)))


class OldIssuer(Issuer):
    """Issues tickets as the version before did: their numbers can be computed."""

    def prepare(self, booking: Booking, *, rotating: bool = False) -> tuple[NewTicket, ...]:
        made = []
        for one in super().prepare(booking, rotating=rotating):
            body = stored_body(one.code)
            text = f"{booking.id}|{booking.fence}|{one.seat_index}".encode()
            short = hashlib.blake2b(text, digest_size=TICKET_ID_BYTES).digest()
            made.append(NewTicket(ticket_id(short), one.seat_index, UNSIGNED + (body[:13] + short + body[29:]).hex()))
        return tuple(made)


async def test_tickets_sold_before_the_upgrade_are_let_in_by_their_codes_alone(tmp_path: Path) -> None:
    """The ledger has tickets of both versions: an old server confirmed some while a new one was already there."""
    async with an_organiser_api(tmp_path, Role.DOOR) as api:
        platform = api.platform
        keys = platform.box_office.checkout.driver._issuer._keys
        new = await api.bought("S-A-3")
        platform.box_office.checkout.driver._issuer = OldIssuer(keys)  # type: ignore[assignment]
        old = await api.bought("S-A-1", "S-A-2", fan="fan_ada")
        tickets = await signed_tickets(platform, old.id)
        assert {one.id for one in tickets} <= set(computed(old.id, range(old.fence + 1), range(60)))
        path = f"/v1/door/events/{api.event}"
        assert (await api.post(f"{path}/scan", json={"code": tickets[0].id, "gate": "n"}))["verdict"] == "look_up"
        gate = Gate(msgspec.json.decode((await api.ask("GET", f"{path}/bundle")).content, type=Bundle), "north")
        assert gate.check(tickets[0].id, platform.clock()).verdict is GateVerdict.MISREAD, "offline a number is nothing"
        for ticket in (*tickets, *await signed_tickets(platform, new.id)):
            assert gate.check(ticket.code, platform.clock()).verdict is GateVerdict.WELCOME
            assert (await api.post(f"{path}/scan", json={"code": ticket.code, "gate": "n"}))["verdict"] == "ok"


async def test_at_the_gate_a_transferred_ticket_has_the_name_of_who_has_it(tmp_path: Path) -> None:
    async with an_organiser_api(tmp_path, Role.DOOR) as api:
        _, _, accepted = await transferred(api)
        found = await api.get(f"/v1/door/events/{api.event}/bookings?q={accepted.new_ticket_id}")
        ((name, email),) = [(one["name"], one["email"]) for one in found["bookings"]]
        assert (name, email) == ("Grace Hopper", "g…@example.org")


async def test_a_buyer_does_not_come_in_with_a_ticket_that_they_sent_away(tmp_path: Path) -> None:
    async with an_organiser_api(tmp_path, Role.DOOR) as api:
        booking, _, accepted = await transferred(api)
        path, gate = f"/v1/door/events/{api.event}", {"booking": booking.id, "gate": "north"}
        found = (await api.get(f"{path}/bookings?q=Ada King"))["bookings"]
        assert [one["name"] for one in found] == ["Ada King", "Grace Hopper"]
        valid = [[one["ticket"] for one in card["tickets"] if one["valid"]] for card in found]
        assert valid[1] == [accepted.new_ticket_id]
        assert len(valid[0]) == 1
        together = await api.post(f"{path}/check-in", json={**gate, "scan": "ada-all"})
        assert [(one["verdict"], one["ticket"]) for one in together["results"]] == [("ok", valid[0][0])]
        hers = await api.post(f"{path}/check-in", json={**gate, "scan": "grace", "tickets": valid[1]})
        assert [(one["verdict"], one["ticket"]) for one in hers["results"]] == [("ok", accepted.new_ticket_id)]


def test_the_same_booking_has_the_same_numbers_and_another_ring_has_others() -> None:
    first, again, other = (
        [one.id for one in Issuer(TicketKeys(seed * 32)).prepare(a_booking(1, 2))] for seed in (b"k", b"k", b"o")
    )
    assert first == again
    assert not set(first) & set(other)
