"""The box office over HTTP (B12, B13): bookings found, refunded, moved; waitlist, room, codes and hooks."""

import asyncio
import base64
import binascii
import contextlib
import sqlite3
from dataclasses import dataclass
from typing import Any

import pytest

from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.ledger_url import sqlite_path
from frontrow.boxoffice.facts.model import BookingConfirmed
from frontrow.boxoffice.gate.gate_check import GateVerdict
from frontrow.boxoffice.holds.model.holds import ShopPass
from frontrow.boxoffice.messages.safe_http import SafeHttpClient
from frontrow.boxoffice.people.model.people import Fan
from frontrow.boxoffice.people.model.roles import Role
from frontrow.core.clock import US_PER_S
from frontrow.waitingroom.model.errors import CodeInvalid, CodeUsed
from tests.boxoffice.organiser.http import EVENTS, OrganiserApi, an_organiser_api
from tests.boxoffice.people.support import ORGANISER, on_sale, opened
from tests.support.signed_tickets import signed_tickets


async def test_b13_bookings_are_found_by_id_email_name_seat_and_state_page_by_page(tmp_path):
    async with an_organiser_api(tmp_path, Role.BOX_OFFICE) as api:
        path = f"{EVENTS}/{api.event}/bookings"
        ada = await api.bought("S-A-1", "S-A-2", fan="fan_ada", email="ada@example.org", name="Ada Lovelace")
        more = [await api.bought(f"S-B-{n}", fan=f"fan_{n}") for n in range(1, 5)]
        held = await api.bought("S-C-1", fan="fan_ada", pay="")

        async def found(**query):
            return [one["booking"] for one in (await api.get(path, params=query))["bookings"]]

        assert await found(email="Ada@Example.org") == [held.id, ada.id]
        assert await found(email="nobody@example.org") == []
        assert await found(name="lovel") == await found(name="ADA lace") == [held.id, ada.id]
        assert await found(name="eve") == await found(name="a") == []
        assert await found(seat="S-A-2") == [ada.id]
        assert await found(status="held") == [held.id]
        assert await found(booking=more[0].id) == [more[0].id]
        assert await found(booking="bkg_x") == []
        first = await api.get(path, params={"limit": 4})
        rest = await api.get(path, params={"limit": 4, "cursor": first["next"]})
        newest_first = [held.id, *(one.id for one in reversed(more)), ada.id]
        assert [one["booking"] for one in first["bookings"] + rest["bookings"]] == newest_first
        assert rest["next"] is None
        shown = await api.get(f"{path}/{ada.id}")
        assert (shown["email"], shown["name"]) == ("ada@example.org", "Ada Lovelace")
        assert shown["seats"] == ["S-A-1", "S-A-2"]
        for bad in ({"seat": "nowhere"}, {"cursor": "%%"}, {"email": "x", "seat": "S-A-1"}, {"status": "odd"}):
            assert (await api.ask("GET", path, params=bad)).status_code == 422, bad


async def test_b13_one_field_finds_by_part_of_a_name_an_address_a_number_or_by_a_seat(tmp_path):
    async with an_organiser_api(tmp_path, Role.BOX_OFFICE) as api:
        ada = await api.bought("S-A-1", fan="fan_ada", email="a.lovelace@math.example", name="Ada King")
        bob = await api.bought("S-B-2", fan="fan_bob", email="bob@king.example", name="Bob")
        path = f"{EVENTS}/{api.event}/bookings"

        async def found(text):
            return [one["booking"] for one in (await api.get(path, params={"q": text}))["bookings"]]

        for text in ("lovel", "LOVELACE@math", "a.lovelace@math.example", "ada kin", ada.id, ada.id[-8:], "#" + ada.id):
            assert await found(text) == [ada.id], text
        for text in ("S-B-2", "s b 2".upper(), "Section S, row B, seat 2", "Bereich S · Reihe B · Platz 2"):
            assert await found(text) == [bob.id], text
        assert await found("king") == [bob.id, ada.id], "in a name and in an address"
        for nothing in ("x", "%", "@", "nobody@example.org", "bkg_", "0" * 26, "a" * 200, "\x00", "S-Z-9"):
            assert await found(nothing) == [], nothing
        first = await api.get(path, params={"q": "king", "limit": 1})
        rest = await api.get(path, params={"q": "king", "limit": 1, "cursor": first["next"]})
        assert [one["booking"] for one in first["bookings"] + rest["bookings"]] == [bob.id, ada.id]


async def test_b13_a_mistyped_address_is_corrected_and_gets_the_tickets(tmp_path):
    async with an_organiser_api(tmp_path, Role.BOX_OFFICE) as api:
        ledger = api.platform.ledger
        guest = await api.bought("S-A-1", fan="place:x", email="typo@example.org", name="Ada")
        path = f"{EVENTS}/{api.event}/bookings/{guest.id}"
        waiting = await ledger.messages.delivery_counts("notification")
        assert (await api.post(f"{path}/email", json={"email": "Ada@Example.org"}))["email"] == "ada@example.org"
        sent = await ledger.messages.delivery_counts("notification")
        assert sum(sent.values()) == sum(waiting.values()) + 1
        assert [
            one["booking"]
            for one in (await api.get(f"{EVENTS}/{api.event}/bookings", params={"email": "ada@example.org"}))[
                "bookings"
            ]
        ]
        await api.post(f"{path}/email", json={"email": "ada@example.org"})
        assert await ledger.messages.delivery_counts("notification") == sent, "nothing to correct: no second mail"
        assert (await api.ask("POST", f"{path}/email", json={"email": "ada@"})).status_code == 422
        assert (await api.post(f"{path}/resend"))["sent"] is True
        proven = (await ledger.people.fan_of_address(Fan("fan_p", "p@example.org", api.platform.clock()))).id
        account = await api.bought("S-A-2", fan=proven)
        refused = await api.ask(
            "POST", f"{EVENTS}/{api.event}/bookings/{account.id}/email", json={"email": "x@example.org"}
        )
        assert (refused.status_code, refused.json()["code"]) == (409, "email_change_refused")
        other = await on_sale(api.platform, "org_other", id="evt_elsewhere")
        visit = ShopPass(other, "place:x", api.platform.clock() + 900 * US_PER_S)
        hold = await api.platform.box_office.holds.place(other, visit, ["S-A-1"])
        await api.platform.box_office.checkout.pay(hold.booking_id, hold.fence, "pm_card_visa")
        refused = await api.ask("POST", f"{path}/email", json={"email": "thief@example.org"})
        assert refused.json()["code"] == "email_change_refused", "it is the address for another organiser's tickets too"
        acts = [one["act"] for one in (await (await api.as_(Role.OWNER)).get("/v1/organiser/audit"))["changes"]]
        assert acts.count("change_email") == 1


async def test_b12_an_organiser_refunds_part_and_rest_whatever_the_policy_says(tmp_path):
    async with an_organiser_api(tmp_path, Role.BOX_OFFICE) as api:
        owner = await api.as_(Role.OWNER)
        await owner.ask(
            "PATCH", f"{EVENTS}/{api.event}", json={"refunds": {"allowed": False, "fee_basis_points": 1000}}
        )
        booking = await api.bought("S-A-1", "S-A-2", "S-A-3")
        path = f"{EVENTS}/{api.event}/bookings/{booking.id}/refunds"
        part = await api.post(path, 201, json={"seats": ["S-A-2"]})
        assert (part["amount"]["amount_minor"], part["fee"]["amount_minor"]) == (5000, 0)
        less_fee = await api.post(path, 201, json={"seats": ["S-A-1"], "keep_fee": True, "reason": "ill"})
        assert (less_fee["amount"]["amount_minor"], less_fee["fee"]["amount_minor"]) == (4500, 500)
        await api.post(path, 201, json={})
        shown = await api.get(f"{EVENTS}/{api.event}/bookings/{booking.id}")
        assert (shown["state"], len(shown["refunds"])) == ("refunded", 3)
        assert await api.bought("S-A-2", fan="fan_new")  # on sale again
        acts = (await owner.get("/v1/organiser/audit"))["changes"]
        assert [one["act"] for one in acts].count("refund") == 3
        await api.post(path, 201, json={"seats": ["S-A-1"]})  # asked again: told again, not noted again
        acts = (await owner.get("/v1/organiser/audit"))["changes"]
        assert [one["act"] for one in acts].count("refund") == 3
        unknown = await api.ask("POST", path, json={"seats": ["X-1-1"]})
        assert (unknown.status_code, unknown.json()["param"]) == (422, "seats")


async def test_b12_a_refund_and_the_note_of_who_gave_it_are_one_transaction(tmp_path):
    """A ledger that cannot write the note gives no money back."""
    async with an_organiser_api(tmp_path, Role.BOX_OFFICE) as api:
        booking = await api.bought("S-A-1")
        path = f"{EVENTS}/{api.event}/bookings/{booking.id}"
        ledger = sqlite3.connect(tmp_path / "ledger.db")
        ledger.execute("CREATE TRIGGER no_notes BEFORE INSERT ON changes BEGIN SELECT RAISE(ABORT, 'no'); END")
        ledger.close()
        assert (await api.ask("POST", f"{path}/refunds", json={})).status_code >= 500
        shown = await api.get(path)
        assert (shown["state"], shown["refunds"]) == ("confirmed", [])


async def test_b13_a_booking_moves_to_other_seats_of_the_same_price_with_new_tickets(tmp_path):
    async with an_organiser_api(tmp_path, Role.BOX_OFFICE) as api:
        booking, other = await api.bought("S-A-1", "S-A-2"), await api.bought("S-B-5", fan="fan_other")
        platform, path = api.platform, f"{EVENTS}/{api.event}/bookings/{booking.id}/reseat"
        old_codes = await api.codes(booking)
        taken = await api.ask("POST", path, json={"leave": ["S-A-1"], "to": ["S-B-5"]})
        assert (taken.status_code, taken.json()["code"]) == (409, "seats_taken")
        dearer = await api.ask("POST", path, json={"leave": ["S-A-1"], "to": ["B-A-1"]})
        assert (dearer.status_code, dearer.json()["code"]) == (409, "reseat_refused")
        for bad in ({"leave": ["S-A-1"], "to": ["S-C-1", "S-C-2"]}, {"leave": ["S-B-5"], "to": ["S-C-1"]}):
            assert (await api.ask("POST", path, json=bad)).status_code == 409
        moved = await api.post(path, json={"leave": ["S-A-1", "S-A-2"], "to": ["S-C-1", "S-C-2"]})
        assert (moved["seats"], moved["amount"]["amount_minor"]) == (["S-C-1", "S-C-2"], 10000)
        again = await api.post(path, json={"leave": ["S-A-1", "S-A-2"], "to": ["S-C-1", "S-C-2"]})
        assert again["seats"] == moved["seats"]
        tickets = await platform.ledger.tickets.tickets_of(booking.id)
        assert [one.state.value for one in tickets] == ["revoked", "revoked", "valid", "valid"]
        scan_url = f"/v1/door/events/{api.event}/scan"
        assert (await api.post(scan_url, json={"code": old_codes[0], "gate": "n"}))["verdict"] == "revoked"
        new_code = (await signed_tickets(platform, booking.id))[2].code
        assert (await api.post(scan_url, json={"code": new_code, "gate": "n"}))["verdict"] == "ok"
        assert platform.box_office.gates.verify(api.event, new_code, platform.clock())[0] is GateVerdict.WELCOME
        freed = await api.bought("S-A-1", fan="fan_next")
        assert freed.state.value == "confirmed"
        back = await api.ask("POST", path, json={"leave": ["S-C-1"], "to": ["S-A-2"]})
        assert (back.status_code, back.json()["code"]) == (409, "reseat_refused")  # its ticket of that seat is dead
        assert not await platform.ledger.store.read(Query("seats_sold_twice", params=(10,)))
        assert not await platform.ledger.store.read(Query("bookings_out_of_step", params=(10,)))
        assert other.id != freed.id


async def test_b13_staff_transfer_a_ticket_for_whoever_has_it_once_per_key(tmp_path):
    async with an_organiser_api(tmp_path, Role.BOX_OFFICE) as api:
        booking, platform = await api.bought("S-A-1", "S-A-2"), api.platform
        path = f"{EVENTS}/{api.event}/bookings/{booking.id}/transfers"
        for field, bad in (("seat", {"seat": "X-1-1"}), ("email", {"email": "no address"})):
            wrong = await api.ask("POST", path, json={"seat": "S-A-2", "email": "bob@example.org"} | bad)
            assert (wrong.status_code, wrong.json()["param"]) == (422, field)
        to_bob, key = {"seat": "S-A-2", "email": "bob@example.org"}, {"Idempotency-Key": "to-bob"}
        sent = await api.ask("POST", path, json=to_bob, headers=key)
        assert sent.status_code == 201, sent.text
        first = sent.json()
        assert (first["seat"], first["email"], first["state"]) == ("S-A-2", "bob@example.org", "sent")
        again = await api.ask("POST", path, json=to_bob, headers=key)
        assert (again.status_code, again.json(), again.headers["idempotent-replayed"]) == (201, first, "true")
        assert len(await platform.ledger.transfers.transfers_of(booking.id)) == 1
        to_cleo = {"seat": "S-A-2", "email": "cleo@example.org", "locale": "de"}
        refused = await api.ask("POST", path, json=to_cleo)
        body = refused.json()
        assert (refused.status_code, body["code"], body["reason"]) == (409, "transfer_refused", "sent")
        await platform.box_office.transfers.accept(first["transfer"], "Bob", "en")
        await api.post(path, 201, json=to_cleo)
        onward = (await platform.ledger.transfers.transfers_of(booking.id))[-1]
        assert (onward.from_transfer, onward.locale) == (first["transfer"], "de"), "Bob has it, and it goes on from him"
        owner = await api.as_(Role.OWNER)
        acts = [one["act"] for one in (await owner.get("/v1/organiser/audit"))["changes"]]
        assert acts.count("transfer_ticket") == 2
        await owner.ask("PATCH", f"{EVENTS}/{api.event}", json={"transfers_allowed": False})
        forbidden = await api.ask("POST", path, json={"seat": "S-A-1", "email": "bob@example.org"})
        assert (forbidden.status_code, forbidden.json()["reason"]) == (409, "forbidden")
        stranger = await api.as_(Role.OWNER, "org_other")
        assert (await stranger.ask("POST", path, json=to_bob)).status_code == 404


async def test_b13_of_fifty_bookings_moved_to_one_seat_at_once_one_gets_it(tmp_path, redis_url, postgres_ledger_url):
    """N4: nobody is double-sold, and everybody who was refused keeps the old seat."""
    async with an_organiser_api(tmp_path, redis_url=redis_url, postgres_url=postgres_ledger_url) as api:
        seats = [f"S-{row}-{n}" for row in "ABC" for n in range(1, 11)][:25]
        bookings = [await api.bought(seat, fan=f"fan_{seat}") for seat in seats]
        target = "S-C-10"
        asks = [
            api.ask("POST", f"{EVENTS}/{api.event}/bookings/{one.id}/reseat", json={"leave": [seat], "to": [target]})
            for one, seat in zip(bookings, seats, strict=True)
            for _ in range(2)
        ]
        statuses = [answer.status_code for answer in await asyncio.gather(*asks)]
        assert len(statuses) == 50
        assert set(statuses) <= {200, 409}
        now = [await api.platform.ledger.booking(one.id) for one in bookings]
        plan = api.platform.box_office.sales.get(api.event).plan
        have = [plan.seat_id(one.seats[0]) for one in now]
        assert have.count(target) == 1
        assert sum(1 for seat, was in zip(have, seats, strict=True) if seat == was) == 24
        assert not await api.platform.ledger.store.read(Query("seats_sold_twice", params=(10,)))
        assert not await api.platform.ledger.store.read(Query("bookings_out_of_step", params=(10,)))


async def test_w6_the_room_is_steered_and_every_act_is_noted(tmp_path):
    async with an_organiser_api(tmp_path) as api:
        path = f"{EVENTS}/{api.event}/room"
        assert (await api.get(path))["phase"] == "open"
        for body, field, value in (
            ({"action": "pause"}, "phase", "paused"),
            ({"action": "queue_all", "message": "Back soon"}, "message", "Back soon"),
            ({"action": "resume", "rate_per_s": 7, "burst": 9, "capacity": 11}, "capacity", 11),
        ):
            changed = await api.ask("PATCH", path, json=body)
            assert (changed.status_code, changed.json()[field]) == (200, value), changed.text
        assert (await api.get(path))["rate_per_s"] == 7
        alone = await api.ask("PATCH", path, json={"burst": 5})
        assert (alone.status_code, alone.json()["param"]) == (422, "burst")
        notes = (await api.get("/v1/organiser/audit"))["changes"]
        assert [one["detail"] for one in notes if one["act"] == "steer_room"][-1] == {"action": "pause"}


async def test_w6_every_setting_of_a_rooms_windows_is_changed_by_its_name_and_outlives_a_look_at_the_event(tmp_path):
    """Before: the platform's rooms kept the windows that the server's settings gave them when they were made."""
    async with an_organiser_api(tmp_path) as api:
        path = f"{EVENTS}/{api.event}/room"
        wanted = {"window_size": 40, "interval_us": 500_000, "min_slide": 4, "active_windows": 2}
        wanted |= {"grace_us": 90_000_000, "catch_up_us": 2_000_000}
        for name, value in wanted.items():
            changed = await api.ask("PATCH", path, json={name: value})
            assert (changed.status_code, changed.json()[name]) == (200, value), changed.text
        await api.platform.box_office.openings.refresh()
        found = await api.get(path)
        assert {name: found[name] for name in wanted} == wanted
        for name, value in (("active_windows", 65), ("interval_us", 1), ("min_slide", 0), ("window_size", 0)):
            refused = await api.ask("PATCH", path, json={name: value})
            assert (refused.status_code, refused.json()["param"]) == (422, name)
        notes = (await api.get("/v1/organiser/audit"))["changes"]
        told = [one["detail"]["changes"] for one in notes if one["act"] == "steer_room"]
        assert {name for one in told for name in one} == set(wanted)


async def test_b11_the_waitlist_is_seen_and_its_rules_are_set_once(tmp_path):
    async with an_organiser_api(tmp_path) as api:
        path = f"{EVENTS}/{api.event}/waitlist"
        drawn = await api.ask("PUT", f"{path}/rules", json={"order": "lottery"})
        assert (drawn.status_code, len(drawn.json()["seed_hash"])) == (200, 64)
        again = await api.ask("PUT", f"{path}/rules", json={"order": "lottery"})
        assert again.json() == drawn.json()
        other = await api.ask("PUT", f"{path}/rules", json={"order": "fifo"})
        assert (other.status_code, other.json()["code"]) == (409, "rules_are_set")
        await api.bought(*[f"B-A-{n}" for n in range(1, 7)])
        entry = await api.platform.box_office.waitlist.join(api.event, "fan_late", 2, sections=["B"])
        seen = await api.get(path)
        assert [one["entry"] for one in seen["entries"]] == [entry.id]
        assert seen["counts"] == [{"state": "waiting", "entries": 1, "seats": 2}]
        assert (await api.get(path, params={"status": "served"}))["entries"] == []


async def test_w12_imported_codes_work_on_every_server_and_only_their_digests_are_kept(
    tmp_path, redis_url, postgres_ledger_url
):
    stores = {"redis_url": redis_url, "postgres_url": postgres_ledger_url}
    async with an_organiser_api(tmp_path / "one", **stores) as api, opened(tmp_path / "two", **stores) as other:
        await other.box_office.openings.refresh()
        path = f"{EVENTS}/{api.event}/codes"
        csv = "code,lane\n" + "".join(f"SPRING-{n:04d},general\n" for n in range(300))
        made = await api.post(path, 201, json={"csv": csv})
        assert made == {"imported": 300, "lanes": [{"lane": "general", "codes": 300}], "used": 0}
        for room, code in ((api.platform.room.service, "spring-0007"), (other.room.service, "SPRING-0299")):
            assert (await room.joins.join(api.event, code=code)).fresh
            with pytest.raises(CodeUsed):
                await room.joins.join(api.event, code=code)
        for text in (
            "code,lane\nab,general\n",
            "code,lane\nSPRING-1,vip\n",
            "code,lane\nAAAA,general\nAAAA,general\n",
            "x",
        ):
            bad = await api.ask("POST", path, json={"csv": text})
            assert (bad.status_code, bad.json()["param"]) == (422, "csv"), bad.text
        assert await other.room.service.audit.imported_counts(api.event) == {0: 300}
        assert (await api.get(path))["used"] == 2
        with pytest.raises(CodeInvalid):
            await other.room.service.joins.join(api.event, code="WINTER-0001")


def tables_of(url: str) -> bytes:
    """Everything that the ledger holds, decoded where it is base64."""
    found = b""
    with contextlib.closing(sqlite3.connect(sqlite_path(url))) as connection:
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for row in connection.execute(f"SELECT * FROM {table}"):
                for value in row:
                    text = str(value).encode()
                    found += text + b"\n"
                    with contextlib.suppress(binascii.Error):
                        found += base64.b64decode(text) + b"\n"
    return found


HOOKS = "/v1/organiser/webhooks"


@dataclass
class Webhook:
    """A registered webhook of an event."""

    api: OrganiserApi
    body: dict[str, Any]
    made: dict[str, Any]  # what the API answered

    @property
    def path(self) -> str:
        return f"{HOOKS}/{self.made['webhook']}"


@pytest.fixture
async def webhook(tmp_path):
    async with an_organiser_api(tmp_path) as api:
        api.platform.messaging.webhooks._outgoing = SafeHttpClient()  # as outside the demo
        body = {"event": api.event, "url": "https://hooks.example.org/x", "facts": ["BookingConfirmed"]}
        yield Webhook(api, body, await api.post(HOOKS, 201, json=body, headers={"idempotency-key": "once"}))


async def test_b15_a_webhook_is_registered_once_and_listed_without_its_secret(webhook):
    made, api = webhook.made, webhook.api
    assert made["secret"].startswith("whsec_")
    again = await api.post(HOOKS, 201, json=webhook.body, headers={"idempotency-key": "once"})
    assert again == made, "the same key shows the same secret again"
    listed = (await api.get(HOOKS))["webhooks"]
    assert listed == [{key: made[key] for key in ("webhook", "event", "url", "facts")}]


async def test_b15_a_webhooks_secret_is_rotated_and_stored_nowhere_in_the_clear(webhook):
    api, made = webhook.api, webhook.made
    rotated = await api.post(f"{webhook.path}/rotate", headers={"idempotency-key": "again"})
    assert rotated["secret"] != made["secret"]
    kept = tables_of(api.platform.settings.ledger_url)
    audit = await api.ask("GET", "/v1/organiser/audit")
    for answer in (made, rotated):
        assert answer["secret"].encode() not in kept
        assert answer["secret"] not in audit.text
    assert b"hooks.example.org" in kept, "the tables were really read"


@pytest.mark.parametrize(
    "url", ["http://example.org/", "https://127.0.0.1/", "https://[::1]/", "https://10.0.0.8/", "https://a@b.org/"]
)
async def test_b15_a_webhook_with_an_unsafe_address_is_refused(webhook, url):
    refused = await webhook.api.ask("POST", HOOKS, json=webhook.body | {"url": url})
    assert (refused.status_code, refused.json()["code"]) == (422, "unsafe_address")


async def test_b15_a_webhook_for_unknown_facts_is_refused(webhook):
    refused = await webhook.api.ask("POST", HOOKS, json=webhook.body | {"facts": ["Gossip"]})
    assert refused.json()["param"] == "facts"


async def test_b15_deliveries_of_a_webhook_are_listed_and_sent_again(webhook):
    api, platform = webhook.api, webhook.api.platform
    fact = BookingConfirmed("bkg_1", api.event, "fan_1", 1, (1,), platform.clock())
    planned = await platform.messaging.webhooks.plan(41, fact)
    assert await platform.ledger.messages.once("test", "41", planned, platform.clock())
    path = f"{webhook.path}/deliveries"
    (delivery,) = (await api.get(path))["deliveries"]
    assert (delivery["fact"], delivery["state"], delivery["attempts"]) == ("fct_41", "waiting", 0)
    assert (await api.ask("POST", f"{path}/{delivery['delivery']}/redeliver")).status_code == 202
    assert (await api.ask("POST", f"{path}/999/redeliver")).status_code == 404


async def test_b15_only_its_owner_changes_and_removes_a_webhook(webhook):
    stranger = await webhook.api.as_(Role.OWNER, "org_other")
    for method, at in (("POST", f"{webhook.path}/rotate"), ("DELETE", webhook.path)):
        assert (await stranger.ask(method, at)).status_code == 404
    assert (await webhook.api.ask("DELETE", webhook.path)).status_code == 204
    assert (await webhook.api.get(HOOKS))["webhooks"] == []


async def test_b12_a_refund_that_failed_is_on_the_organisers_pages_and_is_tried_again(tmp_path):
    """H4: in the API, on the event's page and the booking's; trying again is a button and stands in the audit."""
    async with an_organiser_api(tmp_path, Role.OWNER) as api:
        booking = await api.bought("S-A-1", "S-A-2", pay="pm_card_refund_fails")
        path = f"{EVENTS}/{api.event}/bookings/{booking.id}"
        asked = await api.post(f"{path}/refunds", 201, json={"seats": ["S-A-1"]})
        await api.platform.box_office.refunds.work()
        (shown,) = (await api.get(path))["refunds"]
        assert (shown["refund"], shown["state"], shown["failure"]) == (asked["refund"], "failed", "lost_or_stolen_card")
        (listed,) = (await api.get(f"{EVENTS}/{api.event}/failed-refunds"))["refunds"]
        assert listed == shown
        again = await api.post(f"{path}/refunds/{asked['refund']}/retry")
        assert (again["state"], again["failure"]) == ("asked", "")
        await api.platform.box_office.refunds.work()
        assert (await api.get(path))["refunds"][0]["state"] == "done"
        refused = await api.ask("POST", f"{path}/refunds/{asked['refund']}/retry")
        assert (refused.status_code, refused.json()["code"]) == (409, "refund_refused")
        missing = await api.ask("POST", f"{path}/refunds/rfd_none/retry")
        assert (missing.status_code, missing.json()["code"]) == (404, "refund_not_found")
        changes = await api.platform.ledger.organiser.changes(ORGANISER, api.event, 0, 3)
        assert [one.act for one in changes][:2] == ["retry_refund", "refund"]
        (given,) = [one for one in api.platform.box_office.provider.inner.refunds.values() if one["status"] != "failed"]
        assert given["amount"] == 5000
