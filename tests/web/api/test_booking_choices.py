"""Ticket types, add-ons, discount codes and shared limits, from the organiser's page to the refund."""

import asyncio

from frontrow.boxoffice.events.model.event_changes import Change, Editor
from frontrow.boxoffice.people.model.people import csrf_of
from frontrow.boxoffice.people.model.roles import Role
from frontrow.boxoffice.pricing.model.sale_options import AddOn, Discount, SharedLimit, TicketType
from frontrow.web.http.cookies import SESSION_COOKIE
from tests.boxoffice.people.support import member
from tests.support.browser_headers import BROWSER, FORM
from tests.support.form_answers import submit
from tests.web.api.script import Buyer, a_buyer
from tests.web.api.support import EVENT_ID, a_client, a_platform, put_event

TYPES = (TicketType("adult", "Adult"), TicketType("child", "Child", 5_000, max_per_booking=2, note="Proof at the gate"))
OPTIONS = {
    "ticket_types": TYPES,
    "add_ons": (AddOn("parking", "Parking", 800, 3, 2),),
    "discounts": (Discount("TEN", 1_000, most_uses=1), Discount("BACK", amount_minor=500, tiers=("back",))),
    "limits": (SharedLimit("kids", "Children", 2, ("type:child",)),),
}


async def a_hold(client, *seats: str) -> tuple[Buyer, str]:
    buyer = await a_buyer(client)
    await buyer.enter(EVENT_ID)
    return buyer, (await buyer.hold(EVENT_ID, seats=list(seats)))["booking"]


async def test_a_choice_is_in_the_price_the_booking_and_the_refund_to_the_cent(tmp_path):
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        await put_event(platform, **OPTIONS)
        await platform.box_office.openings.refresh()
        buyer, booking = await a_hold(client, "S-A-1", "S-A-2")
        shown = (await buyer.call("get_event", event_id=EVENT_ID)).json()
        assert [one["prices"]["front"]["amount_minor"] for one in shown["ticket_types"]] == [5000, 2500]
        assert (shown["add_ons"][0]["key"], shown["takes_codes"]) == ("parking", True)
        assert "TEN" not in str(shown)
        wish = {"types": {"S-A-2": "child"}, "add_ons": {"parking": 1}, "code": "ten"}
        chosen = await buyer.call("choose", booking_id=booking, json=wish)
        assert chosen.status_code == 200, chosen.text
        lines = [(x["kind"], x["name"], x["quantity"], x["amount"]["amount_minor"]) for x in chosen.json()["lines"]]
        assert lines == [
            ("seat", "Front · Adult", 1, 5000),
            ("seat", "Front · Child", 1, 2500),
            ("discount", "TEN", 2, -750),
            ("add_on", "Parking", 1, 800),
        ]
        assert chosen.json()["amount"]["amount_minor"] == 7550
        for bad, code, field in (
            ({"types": {"S-Z-9": "child"}}, "invalid_input", "types"),
            ({"types": {"S-A-1": "dog"}}, "invalid_input", "types"),
            ({"add_ons": {"parking": 3}}, "invalid_input", "add_ons"),
            ({"code": "BACK"}, "discount_refused", "code"),
        ):
            refused = (await buyer.call("choose", booking_id=booking, json=bad)).json()
            assert (refused["code"], refused["param"]) == (code, field)
        # the last use is taken; who comes too late may have it once it is released
        late, second = await a_hold(client, "S-A-3")
        refused = await late.call("choose", booking_id=second, json={"code": "TEN"})
        assert (refused.status_code, refused.json()["reason"]) == (409, "used_up")
        paid = await buyer.pay(booking)
        assert paid["amount"]["amount_minor"] == 7550
        receipt = await platform.box_office.receipts.of(booking)
        assert [line.name for line in receipt.lines] == ["Front · Adult", "Front · Child", "TEN", "Parking"]
        assert receipt.total.minor == 7550
        sheets = await platform.box_office.renderer.sheets(booking)
        assert [(sheet.seat, sheet.type_name, str(sheet.price)) for sheet in sheets] == [
            ("S-A-1", "Adult", "50.00 EUR"),
            ("S-A-2", "Child", "25.00 EUR"),
        ]
        event, names = await platform.ledger.catalogue.event(EVENT_ID), platform.box_office.sales.get(EVENT_ID).plan
        exported = [
            "".join([part async for part in platform.organiser.exports.table(kind, event, names.seat_ids)])
            for kind in ("bookings", "tickets", "attendees")
        ]
        assert "1 Parking,TEN" in exported[0]
        assert all(",Adult" in table and ",Child" in table for table in exported[1:])
        gate = await a_buyer(client)
        gate.headers |= (await member(platform, Role.DOOR, "org_default")).bearer
        scanned = {"code": sheets[1].code, "gate": "north"}
        scan = (await gate.call("scan_ticket", event_id=EVENT_ID, json=scanned)).json()
        assert (scan["verdict"], scan["type"]) == ("ok", "Child")
        undone = Change(Editor("stf_door", "org_default"), "undo_scan", EVENT_ID, platform.clock())
        assert await platform.ledger.organiser.undo_admission(scan["scan"], sheets[1].ticket_id, undone)
        page = await client.get(f"/events/{EVENT_ID}", headers=BROWSER)
        assert "Child: €10 to €25 · Proof at the gate" in page.text
        pass_of = {"cookie": f"frontrow_pass={late.headers['Frontrow-Pass']}"}
        seats = await client.get(f"/events/{EVENT_ID}/seats", headers=BROWSER | pass_of)
        assert seats.text.count('Child <span class="num">€10 to €25</span>') == 2, "with a script and without"
        first = (await buyer.call("ask_refund", booking_id=booking, json={"seats": ["S-A-1"]})).json()
        rest = (await buyer.call("ask_refund", booking_id=booking, json={})).json()
        assert first["amount"]["amount_minor"] + rest["amount"]["amount_minor"] == 7550
        again = await late.call("choose", booking_id=second, json={"code": "TEN", "add_ons": {"parking": 2}})
        assert again.json()["amount"]["amount_minor"] == 4500 + 1600


async def test_a_shared_limit_holds_for_everybody_also_for_those_who_choose_nothing(tmp_path):
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        limit = SharedLimit("front", "Front row", 2, ("tier:front",))
        await put_event(platform, **OPTIONS | {"limits": (*OPTIONS["limits"], limit)})
        await platform.box_office.openings.refresh()
        one, first = await a_hold(client, "S-A-1", "S-A-2")
        two, second = await a_hold(client, "S-A-3")
        assert (await one.pay(first))["state"] == "confirmed"
        refused = await two.call("pay", booking_id=second, json={"method": "pm_card_visa"})
        assert (refused.status_code, refused.json()["code"]) == (409, "none_left")
        assert (await two.call("get_booking", booking_id=second)).json()["state"] == "held"
        kids, third = await a_hold(client, "F-GA-1", "F-GA-2")
        both = {"types": {"F-GA-1": "child", "F-GA-2": "child"}}
        assert (await kids.call("choose", booking_id=third, json=both)).status_code == 200
        more, fourth = await a_hold(client, "F-GA-3")
        refused = await more.call("choose", booking_id=fourth, json={"types": {"F-GA-3": "child"}})
        assert (refused.json()["code"], refused.json()["left"]) == ("none_left", 0)


async def test_codes_cannot_be_guessed(tmp_path):
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        await put_event(platform, **OPTIONS)
        await platform.box_office.openings.refresh()
        buyer, booking = await a_hold(client, "S-A-1")
        tries = [await buyer.call("choose", booking_id=booking, json={"code": f"CODE{n}"}) for n in range(11)]
        assert [one.status_code for one in tries] == [409] * 10 + [429]
        assert (await buyer.call("choose", booking_id=booking, json={"add_ons": {"parking": 1}})).status_code == 200


async def test_two_fans_and_the_last_use_one_wins(tmp_path):
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        await put_event(platform, **OPTIONS)
        await platform.box_office.openings.refresh()
        pairs = [await a_hold(client, f"S-A-{n}") for n in range(1, 5)]
        answers = await asyncio.gather(
            *(buyer.call("choose", booking_id=booking, json={"code": "TEN"}) for buyer, booking in pairs)
        )
        assert sorted(one.status_code for one in answers) == [200, 409, 409, 409]


async def test_an_organiser_sets_it_up_on_one_page_and_a_fan_chooses_at_checkout(tmp_path):
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        owner = await member(platform, Role.OWNER, "org_default")
        cookie = {"cookie": f"{SESSION_COOKIE}={owner.session}"}
        path = f"/organiser/events/{EVENT_ID}/options"
        empty = await client.get(path, headers=BROWSER | cookie)
        assert empty.status_code == 200
        typed = {
            "csrf": csrf_of(owner.session),
            "tname0": "Adult",
            "tname1": "Child",
            "tpercent1": "50",
            "tprice1-0": "19.90",
            "tnote1": "Proof at the gate",
            "aname0": "Parking",
            "aprice0": "8",
            "astock0": "3",
            "dcode0": "early 10",
            "dpercent0": "10",
            "duses0": "1",
            "dfrom0": "2020-01-01T10:00",
            "duntil0": "2099-01-01T10:00",
        }
        bad = await submit(client, path, typed | {"damount0": "5"}, cookie)
        assert bad.status_code == 422
        assert "Enter a percentage or an amount, not both." in bad.text
        assert 'value="early 10"' in bad.text
        saved = await client.post(path, data=typed, headers=FORM | cookie)
        assert (saved.status_code, saved.headers["location"]) == (303, f"/organiser/events/{EVENT_ID}?done=saved")
        more = typed | {"tkey0": "adult", "tkey1": "child", "akey0": "parking", "lname0": "Cars", "lmost0": "2"}
        assert (await client.post(path, data=more | {"lcount0-2": "1"}, headers=FORM | cookie)).status_code == 303
        event = platform.box_office.openings.events[EVENT_ID]
        front = event.tiers[0].key
        assert event.ticket_types[1] == TicketType("child", "Child", 5_000, ((front, 1990),), note="Proof at the gate")
        assert (event.discounts[0].code, event.discounts[0].most_uses) == ("EARLY10", 1)
        assert event.limits == (SharedLimit("cars", "Cars", 2, ("add_on:parking",)),)
        hub = await client.get(f"/organiser/events/{EVENT_ID}", headers=BROWSER | cookie)
        assert "Types: 2 · add-ons: 1 · codes: 1" in hub.text
        acts = await platform.ledger.organiser.changes("org_default", EVENT_ID, 0, 10)
        assert '"limits"' in acts[0].detail
        # the fan, by pages alone
        buyer, booking = await a_hold(client, "S-A-1", "S-A-2")
        mine = buyer.headers
        cookie = {"cookie": f"frontrow_pass={mine['Frontrow-Pass']}; frontrow_bookings={mine['Frontrow-Booking']}"}
        fan = BROWSER | cookie
        sale = platform.box_office.sales.get(EVENT_ID)
        seat = sale.index_of["S-A-2"]
        page = await client.get(f"/checkout/{booking}", headers=fan)
        assert page.status_code == 200, page.text
        assert "Who are the tickets for?" in page.text
        assert "Proof at the gate" in page.text
        assert "Discount code" in page.text
        form = FORM | cookie
        choice = {f"type{seat}": "child", "add-parking": "1", "code": "nope", "email": "ada@example.org", "name": "Ada"}
        wrong = await submit(client, f"/checkout/{booking}/choice", choice, cookie)
        assert wrong.status_code == 422
        assert "This is not a code for this event." in wrong.text
        assert 'value="nope"' in wrong.text
        right = await client.post(f"/checkout/{booking}/choice", data=choice | {"code": "early10"}, headers=form)
        assert right.status_code == 303
        page = await client.get(f"/checkout/{booking}", headers=fan)
        assert "The code is valid." in page.text
        assert "ada@example.org" in page.text
        assert "−€6.99" in page.text.replace("-€", "−€")
        assert "€70.91" in page.text  # 50 + 19.90 - 6.99 + 8
        many = await submit(client, f"/checkout/{booking}/choice", choice | {"code": "", "add-parking": "3"}, cookie)
        assert "Cars: only 2 left." in many.text
        plain = await client.get(f"/v1/events/{EVENT_ID}/room/", headers=BROWSER)
        assert "Verified-fan code" not in plain.text


MEMBER = TicketType("member", "Member of the club", 4_000, hidden=True)
LOCKED = OPTIONS | {
    "ticket_types": (*TYPES, MEMBER),
    "discounts": (
        Discount("CLUB", unlocks=("member",), most_uses=1),
        Discount("OLD", unlocks=("member",), ends_at_us=1),
        Discount("TEN", 1_000),
    ),
}


async def test_a_hidden_ticket_type_is_nowhere_until_its_code_is_given_and_counts_when_it_is_bought(tmp_path):
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        await put_event(platform, **LOCKED)
        await platform.box_office.openings.refresh()
        buyer, booking = await a_hold(client, "S-A-1", "S-A-2")
        cookies = (
            f"frontrow_pass={buyer.headers['Frontrow-Pass']}; frontrow_bookings={buyer.headers['Frontrow-Booking']}"
        )
        fan, form = BROWSER | {"cookie": cookies}, FORM | {"cookie": cookies}
        shown = (await buyer.call("get_event", event_id=EVENT_ID)).json()
        assert [one["key"] for one in shown["ticket_types"]] == ["adult", "child"]
        for path in (f"/v1/events/{EVENT_ID}", f"/events/{EVENT_ID}", f"/checkout/{booking}", "/v1/events"):
            answer = await client.get(path, headers=fan)
            assert answer.status_code == 200
            assert not [word for word in ("member", "Member", "CLUB") if word in answer.text], path
        # without the code it does not exist
        wish = {"types": {"S-A-1": "member"}}
        for code, answer in (("", "invalid_input"), ("TEN", "invalid_input"), ("GUESS", "discount_refused")):
            refused = (await buyer.call("choose", booking_id=booking, json=wish | {"code": code})).json()
            assert refused["code"] == answer
            assert "Member" not in str(refused)
        assert (await buyer.call("choose", booking_id=booking, json=wish | {"code": "OLD"})).json()[
            "reason"
        ] == "expired"
        # with it the type can be chosen; a code of which nothing is bought is not used up
        given = (await buyer.call("choose", booking_id=booking, json={"code": "club"})).json()
        assert [one["key"] for one in given["ticket_types"]] == ["adult", "child", "member"]
        assert given["amount"]["amount_minor"] == 10_000
        page = await client.get(f"/checkout/{booking}", headers=fan)
        assert "The code unlocks: Member of the club" in page.text
        # whoever empties the field of the code loses what it unlocked, and pays the usual price
        seat = platform.box_office.sales.get(EVENT_ID).index_of["S-A-1"]
        for code, total in (("club", "€70"), ("", "€100"), ("club", "€70")):
            typed = {f"type{seat}": "member", "code": code}
            sent = await client.post(f"/checkout/{booking}/choice", data=typed, headers=form)
            assert sent.status_code == 303
            assert f"Pay {total}" in (await client.get(f"/checkout/{booking}", headers=fan)).text
        assert (await buyer.call("choose", booking_id=booking, json={"code": "club"})).status_code == 200
        late, second = await a_hold(client, "S-A-3")
        both = {"types": {"S-A-3": "member"}, "code": "CLUB"}
        assert (await late.call("choose", booking_id=second, json=both)).json()["reason"] == "used_up"
        assert (await buyer.pay(booking))["amount"]["amount_minor"] == 10_000
        assert (await late.call("choose", booking_id=second, json=both)).json()["amount"]["amount_minor"] == 2_000
        assert (await late.pay(second))["state"] == "confirmed"
        sheets = await platform.box_office.renderer.sheets(second)
        assert sheets[0].type_name == "Member of the club"
        third, last = await a_hold(client, "F-GA-1")
        assert (await third.call("choose", booking_id=last, json={"code": "CLUB"})).json()["reason"] == "used_up"


async def test_an_organiser_hides_a_type_and_makes_its_code_on_the_page_and_over_the_api(tmp_path):
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        owner = await member(platform, Role.OWNER, "org_default")
        cookie, path = {"cookie": f"{SESSION_COOKIE}={owner.session}"}, f"/organiser/events/{EVENT_ID}/options"
        typed = {"csrf": csrf_of(owner.session), "tname0": "Adult", "tname1": "Member", "thidden1": "1"}
        nothing = await submit(client, path, typed | {"dcode0": "CLUB"}, cookie)
        assert "Enter a percentage, an amount or a hidden ticket type to unlock." in nothing.text
        assert (await client.post(path, data=typed, headers=FORM | cookie)).status_code == 303
        page = await client.get(path, headers=BROWSER | cookie)
        assert 'name="dunlock0-member"' in page.text
        coded = typed | {"dcode0": "club", "dunlock0-member": "1", "duses0": "20"}
        assert (await client.post(path, data=coded, headers=FORM | cookie)).status_code == 303
        log = await client.get(f"/organiser/audit?event={EVENT_ID}", headers=BROWSER | cookie)
        assert "Discount and access codes" in log.text
        assert "CLUB unlocks member ×20" in log.text
        api = await a_buyer(client)
        api.headers |= owner.bearer
        own = (await api.call("get_own_event", event_id=EVENT_ID)).json()
        assert [(one["key"], one["hidden"]) for one in own["ticket_types"]] == [("adult", False), ("member", True)]
        assert (own["discounts"][0]["code"], own["discounts"][0]["unlocks"]) == ("CLUB", ["member"])
        for change in (
            {"ticket_types": [{"key": "adult", "name": "Adult", "hidden": True}], "discounts": []},
            {"discounts": [{"code": "CLUB", "unlocks": ["adult"]}]},
            {"discounts": [{"code": "CLUB"}]},
        ):
            refused = await api.call("change_event", event_id=EVENT_ID, json=change)
            assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input"), refused.text
