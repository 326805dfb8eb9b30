"""The gate over HTTP: the bundle, a scan that the ledger decides, offline scans handed in, counts."""

import asyncio

import msgspec

from frontrow.boxoffice.gate.gate_bundle import Bundle, Revocations
from frontrow.boxoffice.gate.gate_check import Gate, GateVerdict
from frontrow.boxoffice.holds.model.bookings import booking_number
from frontrow.boxoffice.people.model.roles import Role
from frontrow.boxoffice.pricing.model.booking_choices import Reprice
from frontrow.boxoffice.pricing.model.prices import LineKind, PriceLine, decode_lines, encode_lines
from frontrow.boxoffice.tickets.signing_keys import TicketKeys
from frontrow.boxoffice.tickets.ticket_codes import Issuer
from tests.boxoffice.organiser.http import an_organiser_api
from tests.boxoffice.people.support import on_sale
from tests.support.signed_tickets import signed_tickets


async def test_b10_a_scan_is_answered_ok_duplicate_revoked_wrong_event_or_forged(tmp_path):
    async with an_organiser_api(tmp_path, Role.DOOR) as api:
        booking = await api.bought("S-A-1", "S-A-2", "S-A-3")
        codes = await api.codes(booking)
        path = f"/v1/door/events/{api.event}"

        async def scan(code, gate="north", **more):
            return await api.post(f"{path}/scan", json={"code": code, "gate": gate} | more)

        first = await scan(codes[0], scan="n-1")
        assert (first["verdict"], first["seat"], first["first"]) == ("ok", "S-A-1", None)
        assert (await scan(codes[0], scan="n-1"))["verdict"] == "ok"  # the same scan: its answer was lost
        second = await scan(codes[0], gate="south")
        assert (second["verdict"], second["first"]["gate"]) == ("duplicate", "north")
        await api.platform.box_office.refunds.override(booking.id, [1])
        assert (await scan(codes[1]))["verdict"] == "revoked"
        other = await on_sale(api.platform, id="evt_other")
        wrong = await api.post(f"/v1/door/events/{other}/scan", json={"code": codes[2], "gate": "n"})
        assert (wrong["verdict"], wrong["other"]["event"], wrong["other"]["name"]) == (
            "wrong_event",
            api.event,
            "Aurora",
        )
        (typed,) = [one.id for one in await signed_tickets(api.platform, booking.id) if one.code == codes[2]]
        wrong = await api.post(f"/v1/door/events/{other}/scan", json={"code": typed, "gate": "n"})
        assert (wrong["verdict"], wrong["other"]["event"]) == ("wrong_event", api.event), "a typed number too"
        strangers = await on_sale(api.platform, "org_other", id="evt_strangers")
        stranger = await api.as_(Role.DOOR, "org_other", "stranger")
        wrong = await stranger.post(f"/v1/door/events/{strangers}/scan", json={"code": codes[2], "gate": "n"})
        assert (wrong["verdict"], wrong["other"]) == ("wrong_event", None), "another organiser's events are not told"
        forged = Issuer(TicketKeys.fresh()).issue(booking)[2].code
        assert (await scan(forged))["verdict"] == "forged"
        flipped = codes[2][:-1] + ("A" if codes[2][-1] != "A" else "B")
        assert (await scan(flipped))["verdict"] == "unreadable"
        unsold = Issuer(api.platform.box_office.checkout.driver._issuer._keys).issue(
            msgspec.structs.replace(booking, seats=(40,))
        )
        assert (await scan(unsold[0].code))["verdict"] == "forged"  # signed by us, sold to nobody
        counts = await api.get(f"{path}/counts")
        assert (counts["tickets"], counts["inside"]) == (2, 1)
        assert [(one["gate"], one["scans"]) for one in counts["gates"]] == [("north", 1)]


async def test_b10_a_group_without_codes_is_found_and_checked_in_together(tmp_path):
    async with an_organiser_api(tmp_path, Role.DOOR) as api:
        path = f"/v1/door/events/{api.event}"
        group = await api.bought("S-A-1", "S-A-2", "S-A-3", fan="fan_ada", email="ada@example.org", name="Ada King")
        await api.bought("S-B-1", fan="fan_bob", email="bob@king.example", name="Bob")
        await api.bought("S-C-1", fan="fan_hal", email="hal@king.example", pay="")

        async def found(text):
            return (await api.get(f"{path}/bookings", params={"q": text}))["bookings"]

        assert [one["name"] for one in await found("king")] == ["Bob", "Ada King"], "held seats have no tickets"
        number = booking_number(group.id)
        spoken = f"{number[:4]}-{number[4:]}".lower().replace("0", "o").replace("1", "l")
        for text in (
            "ada k",
            "ada@example.org",
            number,
            spoken,
            f"#{group.id}",
            "S-A-2",
            "Section Stalls, row A, seat 2",
        ):
            (ada,) = await found(text)
            assert (ada["booking"], ada["email"]) == (group.id, "a…@example.org"), text
        tickets = [one["ticket"] for one in ada["tickets"]]
        asked = {"booking": group.id, "gate": "north", "scan": "g-1", "tickets": tickets[:2]}
        for _ in range(2):  # the answer was lost: asking again changes nothing
            results = (await api.post(f"{path}/check-in", json=asked))["results"]
            assert [(one["verdict"], one["seat"]) for one in results] == [("ok", "S-A-1"), ("ok", "S-A-2")]
        (code, *_rest) = await api.codes(group)
        assert (await api.post(f"{path}/scan", json={"code": code, "gate": "south"}))["verdict"] == "duplicate"
        rest = (await api.post(f"{path}/check-in", json=asked | {"scan": "g-2", "tickets": []}))["results"]
        assert [one["verdict"] for one in rest] == ["duplicate", "duplicate", "ok"]
        assert (await api.get(f"{path}/counts"))["inside"] == 3
        owner = await api.as_(Role.OWNER)
        noted = [one for one in (await owner.get("/v1/organiser/audit"))["changes"] if one["act"] == "check_in"]
        assert [one["detail"]["booking"] for one in noted] == [group.id] * 2
        assert (await api.ask("POST", f"{path}/check-in", json=asked | {"booking": "bkg_x"})).status_code == 404


async def test_b10_people_leave_and_come_back_where_the_event_allows_it(tmp_path):
    async with an_organiser_api(tmp_path, Role.OWNER) as api:
        path = f"/v1/door/events/{api.event}"
        booking = await api.bought("S-A-1", "S-A-2")
        code, other = await api.codes(booking)

        async def ask(way, code=code, **more):
            return await api.ask("POST", f"{path}/{way}", json={"code": code, "gate": "north"} | more)

        refused = await ask("exit")
        assert (refused.status_code, refused.json()["code"]) == (409, "reentry_not_allowed")
        bundle = await api.ask("GET", f"{path}/bundle")
        assert (bundle.json()["reentry"], (await api.get(f"{path}/counts"))["reentry"]) == (False, False)
        changed = await api.ask("PATCH", f"/v1/organiser/events/{api.event}", json={"reentry": True})
        assert changed.json()["reentry"] is True
        newer = await api.ask("GET", f"{path}/bundle", headers={"if-none-match": bundle.headers["etag"]})
        assert (newer.json()["reentry"], (await api.get(f"{path}/counts"))["reentry"]) == (True, True)
        verdicts = [
            (await ask(way, **more)).json()["verdict"]
            for way, more in (
                ("exit", {}),
                ("scan", {"scan": "in-1"}),
                ("scan", {}),
                ("exit", {"scan": "out-1"}),
                ("exit", {"scan": "out-1"}),  # again, because the answer was lost
                ("exit", {}),
            )
        ]
        assert verdicts == ["not_inside", "ok", "duplicate", "left", "left", "not_inside"]
        counts = await api.get(f"{path}/counts")
        assert (counts["inside"], counts["outside"], counts["gates"][0]["exits"]) == (0, 1, 1)
        back = (await ask("scan", scan="in-2")).json()
        assert (back["verdict"], back["again"]) == ("ok", True)
        assert (await ask("scan", scan="in-2")).json()["verdict"] == "ok"
        assert (await ask("scan")).json()["verdict"] == "duplicate"
        assert (await api.get(f"{path}/duplicates"))["duplicates"] == []
        ways = [one["way"] for one in (await api.get(f"{path}/admissions"))["admissions"]]
        assert ways == ["in", "out", "in"]
        # two gates were offline: in and out at one of them, in at the other while the ticket was inside
        (ticket,) = [one for one in await signed_tickets(api.platform, booking.id) if one.code == other]
        at = [f"2020-01-01T20:0{n}:00Z" for n in range(4)]
        scans = [
            {"scan": f"o-{n}", "ticket": ticket.id, "gate": "x", "at": at[n], "way": way}
            for n, way in ((2, "in"), (0, "in"), (1, "out"))
        ]
        assert (await api.post(f"{path}/sync", json={"scans": scans}))["duplicates"] == []
        twice = [{"scan": "o-3", "ticket": ticket.id, "gate": "y", "at": at[3]}]
        (duplicate,) = (await api.post(f"{path}/sync", json={"scans": twice}))["duplicates"]
        assert [one["gate"] for one in duplicate["scans"]] == ["x", "x", "y"]
        assert len((await api.get(f"{path}/duplicates"))["duplicates"]) == 1


async def test_b10_of_fifty_gates_that_scan_one_ticket_at_once_one_lets_it_in(tmp_path, redis_url, postgres_ledger_url):
    async with an_organiser_api(tmp_path, Role.DOOR, redis_url=redis_url, postgres_url=postgres_ledger_url) as api:
        (code,) = await api.codes(await api.bought("S-A-1"))
        asks = [api.post(f"/v1/door/events/{api.event}/scan", json={"code": code, "gate": f"g{n}"}) for n in range(50)]
        verdicts = [answer["verdict"] for answer in await asyncio.gather(*asks)]
        assert sorted(set(verdicts)) == ["duplicate", "ok"]
        assert verdicts.count("ok") == 1
        counts = await api.get(f"/v1/door/events/{api.event}/counts")
        assert (counts["inside"], sum(one["scans"] for one in counts["gates"])) == (1, 1)


async def test_b10_offline_scans_come_in_any_order_as_often_as_the_gate_likes(tmp_path):
    async with an_organiser_api(tmp_path, Role.DOOR) as api:
        booking = await api.bought("S-A-1", "S-A-2")
        tickets = [one.id for one in await api.platform.ledger.tickets.tickets_of(booking.id)]
        other = await on_sale(api.platform, id="evt_other")
        path = f"/v1/door/events/{api.event}"

        def a_scan(number, ticket, gate, minute):
            return {"scan": f"s{number}", "ticket": ticket, "gate": gate, "at": f"2026-01-15T19:{minute:02d}:00Z"}

        late = a_scan(2, tickets[0], "south", 30)
        first = await api.post(f"{path}/sync", json={"scans": [late, a_scan(3, "tkt_nobody", "south", 31)]})
        assert (first["taken"], first["duplicates"], first["unknown"]) == (1, [], ["tkt_nobody"])
        early = a_scan(1, tickets[0], "north", 10)
        second = await api.post(f"{path}/sync", json={"scans": [early, late, a_scan(4, tickets[1], "north", 11)]})
        assert [one["ticket"] for one in second["duplicates"]] == [tickets[0]]
        assert [one["gate"] for one in second["duplicates"][0]["scans"]] == ["north", "south"]
        again = await api.post(f"{path}/sync", json={"scans": [late, early]})
        assert again["duplicates"] == second["duplicates"]
        assert (await api.get(f"{path}/duplicates"))["duplicates"] == second["duplicates"]
        counts = await api.get(f"{path}/counts")
        assert (counts["inside"], {one["gate"]: one["scans"] for one in counts["gates"]}) == (
            2,
            {"north": 2, "south": 1},
        )
        strange = await api.post(f"/v1/door/events/{other}/sync", json={"scans": [early]})
        assert (strange["taken"], strange["unknown"]) == (0, [tickets[0]])
        online = await api.post(f"{path}/scan", json={"code": (await api.codes(booking))[1], "gate": "east"})
        assert (online["verdict"], online["first"]["gate"]) == ("duplicate", "north")
        bad = await api.ask("POST", f"{path}/sync", json={"scans": [late | {"at": "noon"}]})
        assert bad.status_code == 422


async def test_b10_a_gate_works_offline_with_the_bundle_and_hears_when_it_changed(tmp_path):
    async with an_organiser_api(tmp_path, Role.DOOR) as api:
        booking = await api.bought("S-A-1", "S-A-2")
        codes = await api.codes(booking)
        path = f"/v1/door/events/{api.event}/bundle"
        answer = await api.ask("GET", path)
        bundle = msgspec.json.decode(answer.content, type=Bundle)
        gate = Gate(bundle, "north")
        assert gate.check(codes[0], api.platform.clock()).verdict is GateVerdict.WELCOME
        tag = {"if-none-match": answer.headers["etag"]}
        assert (await api.ask("GET", path, headers=tag)).status_code == 304
        await api.platform.box_office.refunds.override(booking.id, [1])
        newer = await api.ask("GET", path, headers=tag)
        assert newer.status_code == 200
        fresh = Gate(msgspec.json.decode(newer.content, type=Bundle), "north")
        assert fresh.check(codes[1], api.platform.clock()).verdict is GateVerdict.REVOKED
        # with ticket types the bundle knows each sold seat's, and each sale makes a new one
        owner, own = await api.as_(Role.OWNER), f"/v1/organiser/events/{api.event}"
        types = [{"key": "adult", "name": "Adult"}, {"key": "child", "name": "Child", "basis_points": 5000}]
        assert (await owner.ask("PATCH", own, json={"ticket_types": types})).status_code == 200
        typed = await api.ask("GET", path, headers={"if-none-match": newer.headers["etag"]})
        assert typed.json()["types"] == {"Adult": [0], "Child": []}
        wish = {"seats": ["S-B-1"], "paid_by": "cash", "types": {"S-B-1": "child"}}
        sold = await owner.post(f"{own}/desk-sales", 201, json=wish)
        late = await api.ask("GET", path, headers={"if-none-match": typed.headers["etag"]})
        gate = Gate(msgspec.json.decode(late.content, type=Bundle), "north")
        (ticket,) = await signed_tickets(api.platform, sold["booking"])
        assert gate.check(ticket.code, api.platform.clock()).type_name == "Child"
        assert gate.check(codes[0], api.platform.clock()).type_name == "Adult"


async def test_b10_a_gate_keeps_up_with_revocations_and_with_what_others_let_in(tmp_path):
    async with an_organiser_api(tmp_path, Role.DOOR) as api:
        booking = await api.bought("S-A-1", "S-A-2", "S-A-3")
        codes = await api.codes(booking)
        path = f"/v1/door/events/{api.event}"
        gate = Gate(await api.platform.box_office.gates.bundle(api.event, 1), "north")
        empty = await api.ask("GET", f"{path}/revocations")
        tag = {"if-none-match": empty.headers["etag"]}
        assert (await api.ask("GET", f"{path}/revocations", headers=tag)).status_code == 304
        await api.platform.box_office.refunds.override(booking.id, [1])
        newer = await api.ask("GET", f"{path}/revocations", headers=tag)
        assert newer.status_code == 200
        assert gate.revoke(msgspec.json.decode(newer.content, type=Revocations)) == 1
        refused = await api.post(f"{path}/scan", json={"code": codes[1], "gate": "north"})
        assert (refused["verdict"], refused["reason"]) == ("revoked", "refunded")
        assert await api.get(f"{path}/admissions") == {"admissions": [], "next": 0}
        for number in (0, 2):
            await api.post(f"{path}/scan", json={"code": codes[number], "gate": "north", "scan": f"n-{number}"})
        page = await api.get(f"{path}/admissions?limit=1")
        assert [(one["scan"], one["gate"]) for one in page["admissions"]] == [("n-0", "north")]
        rest = await api.get(f"{path}/admissions?after={page['next']}")
        assert [one["scan"] for one in rest["admissions"]] == ["n-2"]
        assert await api.get(f"{path}/admissions?after={rest['next']}") == {"admissions": [], "next": rest["next"]}
        other = await on_sale(api.platform, id="evt_other")
        assert (await api.get(f"/v1/door/events/{other}/admissions"))["admissions"] == []


async def test_b10_a_printed_number_admits_nobody_until_a_person_confirms_it(tmp_path):
    async with an_organiser_api(tmp_path, Role.DOOR) as api:
        booking = await api.bought("S-A-1", "S-A-2", fan="fan_ada", email="ada@example.org", name="Ada King")
        tickets = [one.id for one in await api.platform.ledger.tickets.tickets_of(booking.id)]
        path = f"/v1/door/events/{api.event}"
        asked = await api.post(f"{path}/scan", json={"code": tickets[0], "gate": "north", "scan": "n-1"})
        assert (asked["verdict"], asked["seat"], asked["ticket"]) == ("look_up", "S-A-1", tickets[0])
        assert (asked["booking"], asked["scan"]) == (booking.id, "")
        assert (await api.get(f"{path}/counts"))["inside"] == 0
        assert (await api.post(f"{path}/scan", json={"code": "tkt_nobody", "gate": "north"}))["verdict"] == "forged"
        number = tickets[0].removeprefix("tkt_").lower()
        for text in (tickets[0], number, f"{number[:13]} {number[13:]}".replace("0", "o"), f"#TKT-{number}"):
            (found,) = (await api.get(f"{path}/bookings", params={"q": text}))["bookings"]
            assert (found["booking"], found["name"], found["email"]) == (booking.id, "Ada King", "a…@example.org"), text
            assert [one["ticket"] for one in found["tickets"]] == [tickets[0]], "that ticket alone"
        assert (await api.get(f"{path}/bookings?q=tkt_{'0' * 26}"))["bookings"] == []
        confirmed = {"booking": asked["booking"], "gate": "north", "scan": "n-2", "tickets": [asked["ticket"]]}
        (let_in,) = (await api.post(f"{path}/check-in", json=confirmed))["results"]
        assert (let_in["verdict"], let_in["seat"]) == ("ok", "S-A-1")
        assert (await api.get(f"{path}/counts"))["inside"] == 1
        owner = await api.as_(Role.OWNER)
        acts = [one["actor"] for one in (await owner.get("/v1/organiser/audit"))["changes"] if one["act"] == "check_in"]
        assert acts == [api.person.id], "who confirmed it is noted"
        other = await on_sale(api.platform, id="evt_other")
        wrong = await api.post(f"/v1/door/events/{other}/scan", json={"code": tickets[1], "gate": "north"})
        assert wrong["verdict"] == "wrong_event"
        assert (await api.get(f"/v1/door/events/{other}/bookings?q={tickets[1]}"))["bookings"] == []


async def test_b10_the_number_of_a_ticket_with_a_rotating_code_lets_nobody_in(tmp_path):
    async with an_organiser_api(tmp_path, Role.DOOR) as api:
        keys = api.platform.box_office.checkout.driver._issuer._keys
        api.platform.box_office.checkout.driver._issuer = Issuer(keys, rotating=True)
        booking = await api.bought("S-A-1")
        (ticket,) = await signed_tickets(api.platform, booking.id)
        path = f"/v1/door/events/{api.event}/scan"
        assert (await api.post(path, json={"code": ticket.id, "gate": "north"}))["verdict"] == "look_up"
        assert (await api.post(path, json={"code": ticket.code, "gate": "north"}))["verdict"] == "old_code"
        live = await api.platform.box_office.renderer.shown_code(ticket.id, api.platform.clock())
        assert (await api.post(path, json={"code": live, "gate": "north"}))["verdict"] == "ok"


async def test_b10_at_the_exit_too_a_number_needs_a_person(tmp_path):
    async with an_organiser_api(tmp_path, Role.OWNER) as api:
        booking = await api.bought("S-A-1")
        (ticket,) = await signed_tickets(api.platform, booking.id)
        path = f"/v1/door/events/{api.event}"
        asked = {"booking": booking.id, "gate": "north", "scan": "x-1", "way": "out"}
        refused = await api.ask("POST", f"{path}/check-in", json=asked)
        assert (refused.status_code, refused.json()["code"]) == (409, "reentry_not_allowed")
        await api.ask("PATCH", f"/v1/organiser/events/{api.event}", json={"reentry": True})
        outside = (await api.post(f"{path}/check-in", json=asked))["results"]
        assert [one["verdict"] for one in outside] == ["not_inside"]
        assert (await api.post(f"{path}/scan", json={"code": ticket.code, "gate": "north"}))["verdict"] == "ok"
        number = {"code": ticket.id, "gate": "north"}
        assert (await api.post(f"{path}/exit", json=number))["verdict"] == "look_up"
        assert (await api.get(f"{path}/counts"))["inside"] == 1
        for _ in range(2):  # the answer was lost: asking again changes nothing
            (left,) = (await api.post(f"{path}/check-in", json=asked))["results"]
            assert left["verdict"] == "left"
        counts = await api.get(f"{path}/counts")
        assert (counts["inside"], counts["outside"]) == (0, 1)
        acts = [one["act"] for one in (await api.get("/v1/organiser/audit"))["changes"]]
        assert acts.count("check_out") == 1
        back = (await api.post(f"{path}/check-in", json=asked | {"way": "in", "scan": "x-2"}))["results"]
        assert [(one["verdict"], one["again"]) for one in back] == [("ok", True)]


async def test_b10_a_mistaken_admission_is_taken_back_once_with_a_note(tmp_path):
    async with an_organiser_api(tmp_path, Role.DOOR) as api:
        booking = await api.bought("S-A-1")
        (code,) = await api.codes(booking)
        path = f"/v1/door/events/{api.event}"
        let_in = await api.post(f"{path}/scan", json={"code": code, "gate": "north"})
        asked = {"scan": let_in["scan"], "ticket": let_in["ticket"]}
        other = await on_sale(api.platform, id="evt_other")
        for where, body in (
            (other, asked),
            (api.event, asked | {"scan": "guess"}),
            (api.event, asked | {"ticket": "t"}),
        ):
            assert await api.post(f"/v1/door/events/{where}/undo", json=body) == {"undone": False}
        assert (await api.get(f"{path}/counts"))["inside"] == 1
        assert await api.post(f"{path}/undo", json=asked) == {"undone": True}
        assert await api.post(f"{path}/undo", json=asked) == {"undone": False}
        counts = await api.get(f"{path}/counts")
        assert (counts["inside"], counts["gates"]) == (0, [])
        assert (await api.post(f"{path}/scan", json={"code": code, "gate": "south"}))["verdict"] == "ok"
        owner = await api.as_(Role.OWNER)
        acts = [(one["act"], one["actor"]) for one in (await owner.get("/v1/organiser/audit"))["changes"]]
        assert acts.count(("undo_scan", api.person.id)) == 1


async def test_b10_of_two_scans_of_a_ticket_one_can_be_taken_back(tmp_path, postgres_ledger_url, redis_url):
    async with an_organiser_api(tmp_path, Role.DOOR, redis_url=redis_url, postgres_url=postgres_ledger_url) as api:
        booking = await api.bought("S-A-1")
        (ticket,) = await signed_tickets(api.platform, booking.id)
        path = f"/v1/door/events/{api.event}"
        scans = [
            {"scan": f"s-{gate}", "ticket": ticket.id, "gate": gate, "at": f"2026-01-15T19:{minute}:00Z"}
            for gate, minute in (("north", 10), ("south", 30))
        ]
        await api.post(f"{path}/sync", json={"scans": scans})
        assert (await api.post(f"{path}/undo", json={"scan": "s-north", "ticket": ticket.id})) == {"undone": True}
        assert (await api.get(f"{path}/counts"))["inside"] == 1
        assert (await api.get(f"{path}/duplicates"))["duplicates"] == []
        again = await api.post(f"{path}/scan", json={"code": ticket.code, "gate": "east"})
        assert (again["verdict"], again["first"]["gate"]) == ("duplicate", "south")


async def test_a_scan_of_one_way_is_no_repeated_scan_of_the_other(tmp_path):
    """A gate that gives an exit the number of an entry is not told that somebody left, nor the other way round."""
    async with an_organiser_api(tmp_path, Role.OWNER) as api:
        path = f"/v1/door/events/{api.event}"
        await api.ask("PATCH", f"/v1/organiser/events/{api.event}", json={"reentry": True})
        booking = await api.bought("S-A-1", "S-A-2")
        code, _ = await api.codes(booking)

        async def ask(way, scan):
            return (await api.ask("POST", f"{path}/{way}", json={"code": code, "gate": "n", "scan": scan})).json()

        assert (await ask("scan", "one"))["verdict"] == "ok"
        refused = await ask("exit", "one")
        assert (refused["status"], refused["param"]) == (422, "scan")
        assert (await ask("exit", "two"))["verdict"] == "left"
        refused = await ask("scan", "two")
        assert (refused["status"], refused["param"]) == (422, "scan")
        together = {"booking": booking.id, "gate": "n", "scan": "all"}
        admitted = await api.post(f"{path}/check-in", json=together)
        assert [one["verdict"] for one in admitted["results"]] == ["ok", "ok"]
        refused = await api.ask("POST", f"{path}/check-in", json=together | {"way": "out"})
        assert (refused.status_code, refused.json()["param"]) == (422, "scan")
        noted = (await api.get("/v1/organiser/audit"))["changes"]
        assert [one["act"] for one in noted if one["act"].startswith("check_")] == ["check_in"]
        assert (await api.get(f"{path}/counts"))["inside"] == 2


async def test_add_ons_are_on_the_verdict_and_redeemed_once_undone_and_handed_in(tmp_path):
    async with an_organiser_api(tmp_path, Role.DOOR) as api:
        path = f"/v1/door/events/{api.event}"
        booking = await bought_with_parking(api, 2)
        (code,) = await api.codes(booking)
        verdict = await api.post(f"{path}/scan", json={"code": code, "gate": "north", "scan": "s-1"})
        assert (verdict["verdict"], verdict["name"], verdict["booking"]) == ("ok", "Ada King", booking.id)
        assert verdict["add_ons"] == [{"key": "parking", "name": "Parking", "bought": 2, "used": 0}]
        asked = {"booking": booking.id, "add_on": "parking", "gate": "north"}

        async def redeem(name, **more):
            return await api.post(f"{path}/redeem", json=asked | {"redemption": name} | more)

        told = await asyncio.gather(*(redeem(f"r-{n}", gate=f"gate {n}") for n in range(50)))
        assert sorted(one["answer"] for one in told) == ["ok"] * 2 + ["used_up"] * 48
        won = [n for n, one in enumerate(told) if one["answer"] == "ok"]
        assert (await redeem(f"r-{won[0]}"))["answer"] == "ok", "the same redemption: its answer was lost"
        refused = await redeem("r-late")
        assert refused["last"]["gate"] in {f"gate {n}" for n in won}
        assert (await redeem("r-dinner", add_on="dinner"))["answer"] == "not_bought"
        undone = await api.post(f"{path}/redeem/undo", json={"redemption": f"r-{won[0]}"})
        assert undone == {"undone": True}
        late = {"redemption": "off-1", "booking": booking.id, "add_on": "parking", "gate": "south"}
        at = "2026-07-03T18:00:00Z"
        handed = {"redemptions": [late | {"at": at}, late | {"redemption": "off-2", "at": at}]}
        for _ in range(2):  # its answer was lost
            uploaded = await api.post(f"{path}/redeem/sync", json=handed)
            assert (uploaded["taken"], [one["redemption"] for one in uploaded["conflicts"]]) == (2, ["off-2"])
        found = (await api.get(f"{path}/bookings", params={"q": "ada"}))["bookings"]
        assert [one["used"] for one in found[0]["add_ons"]] == [2]


async def test_the_guest_list_has_names_only_if_the_organiser_allows_them(tmp_path):
    async with an_organiser_api(tmp_path, Role.OWNER) as api:
        path = f"/v1/door/events/{api.event}/guests"
        booking = await bought_with_parking(api, 1)
        tickets = await api.platform.ledger.tickets.tickets_of(booking.id)
        listed = await api.ask("GET", path)
        assert (listed.json()["names"], "Ada" in listed.text, "example.org" in listed.text) == (False, False, False)
        (guest,) = listed.json()["guests"]
        assert guest["tickets"] == [[tickets[0].id, tickets[0].seat_index]]
        assert guest["add_ons"] == [{"key": "parking", "name": "Parking", "bought": 1, "used": 0}]
        same = await api.ask("GET", path, headers={"if-none-match": listed.headers["etag"]})
        assert same.status_code == 304
        await api.ask("PATCH", f"/v1/organiser/events/{api.event}", json={"names_at_gates": True})
        named = await api.ask("GET", path, headers={"if-none-match": listed.headers["etag"]})
        (guest,) = named.json()["guests"]
        assert (guest["name"], guest["email"]) == ("Ada King", "a…@example.org")


async def bought_with_parking(api, count):
    """A paid booking of Ada with a seat and so many parking places."""
    held = await api.bought("S-A-1", fan="fan_ada", email="ada@example.org", name="Ada King", pay="")
    lines = [
        *decode_lines(held.price_lines),
        PriceLine(LineKind.ADD_ON, "Parking", count, 800, 800 * count, key="parking"),
    ]
    ledger, checkout = api.platform.ledger, api.platform.box_office.checkout
    prices = tuple((await ledger.payments.seat_prices(held.id)).values())
    total = held.amount_minor + 800 * count
    now_us = api.platform.clock()
    await ledger.reprice(Reprice(held.id, held.fence, now_us, held.seats, prices, total, encode_lines(lines), ()))
    await checkout.pay(held.id, held.fence, "pm_card_visa")
    await checkout.work()
    return await ledger.booking(held.id)
