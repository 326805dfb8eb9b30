"""A whole purchase by a script that only knows the API's document (B18), and what can happen on its way (B5-B12)."""

import asyncio
from dataclasses import replace

import pytest

from frontrow.app.wiring import open_platform
from frontrow.boxoffice.events.model.event_changes import Change, Editor
from frontrow.boxoffice.events.model.events import Fee
from frontrow.boxoffice.gate.gate_check import Gate, GateVerdict
from frontrow.boxoffice.holds.model.bookings import Move
from frontrow.boxoffice.payments.model.payments import Payment, PaymentState
from frontrow.boxoffice.payments.model.provider_intents import IntentState
from frontrow.boxoffice.people.model.roles import Role
from frontrow.boxoffice.seats.model.map_format import read_snapshot
from frontrow.web.server.app import run_platform
from tests.boxoffice.people.support import member
from tests.support.booking_moves import decline_booking
from tests.support.eventually import eventually
from tests.support.form_answers import submit
from tests.web.api.script import a_buyer
from tests.web.api.support import EVENT_ID, a_client, a_platform, one_row, put_event, settings_for


@pytest.fixture(params=["embedded", "grown_up"])
def stores(request) -> dict[str, str]:
    """Nothing (embedded), or a Redis and a migrated PostgreSQL of this test's own."""
    if request.param == "embedded":
        return {}
    return {
        "redis_url": request.getfixturevalue("redis_url"),
        "postgres_url": request.getfixturevalue("postgres_ledger_url"),
    }


async def test_b18_from_the_line_to_the_gate_and_back_knowing_only_the_document(tmp_path, stores):
    async with a_platform(tmp_path, **stores) as platform, a_client(platform) as client:
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
        gate = Gate(await platform.box_office.gates.bundle(EVENT_ID, platform.clock()), "north")
        assert gate.check(tickets[0]["code"], platform.clock()).verdict is GateVerdict.WELCOME
        assert gate.check(tickets[0]["code"], platform.clock()).verdict is GateVerdict.ALREADY_IN
        doorkeeper = await a_buyer(client)
        doorkeeper.headers |= (await member(platform, Role.DOOR, "org_default")).bearer
        asked = {"code": tickets[0]["code"], "gate": "north"}
        scans = [(await doorkeeper.call("scan_ticket", event_id=EVENT_ID, json=asked)).json() for _ in range(2)]
        assert [scan["verdict"] for scan in scans] == ["ok", "duplicate"]
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
        inside = await buyer.call("cancel_booking", booking_id=held["booking"])
        assert (inside.status_code, inside.json()["code"]) == (409, "ticket_scanned"), "the seat would be sold twice"
        undone = Change(Editor("stf_door", "org_default"), "undo_scan", EVENT_ID, platform.clock())
        assert await platform.ledger.organiser.undo_admission(scans[0]["scan"], tickets[0]["ticket"], undone)
        await buyer.call("cancel_booking", booking_id=held["booking"])
        assert (await buyer.call("get_booking", booking_id=held["booking"])).json()["state"] == "refunded"
        refunds = (await buyer.call("list_refunds", booking_id=held["booking"])).json()["refunds"]
        assert sum(one["amount"]["amount_minor"] for one in refunds) == 10000


async def test_b17_a_second_hold_of_a_visit_that_has_bought_is_refused_at_once(tmp_path, stores):
    """It was accepted for up to two seconds, until the servers knew that the visit had ended, and could then be neither
    paid nor extended. No job runs here: only the refusal itself ends the visit, so that the fan can come in again."""
    async with a_platform(tmp_path, **stores) as platform, a_client(platform) as client:
        buyer = await a_buyer(client)
        await buyer.enter(EVENT_ID)
        held = await buyer.hold(EVENT_ID, seats=["S-B-3"])
        key, asked = {"Idempotency-Key": "mine"}, {"event_id": EVENT_ID, "json": {"seats": ["S-B-4"]}}
        assert (await buyer.call("place_hold", headers=key, **asked)).is_success
        assert (await buyer.pay(held["booking"]))["state"] == "confirmed"
        for wish in ({"seats": ["S-A-1"]}, {"best": {"count": 2}}):
            again = await buyer.call("place_hold", event_id=EVENT_ID, json=wish)
            assert (again.status_code, again.json()["code"]) == (409, "visit_ended"), wish
            assert "join the waiting room again" in again.json()["detail"]
        repeated = await buyer.call("place_hold", headers=key, **asked)
        assert repeated.headers["idempotent-replayed"] == "true", "a hold from before the purchase keeps its visit"
        other = repeated.json()
        await platform.box_office.checkout.release(other["booking"], other["fence"])
        assert (await buyer.call("place_hold", **asked)).json()["code"] == "visit_ended"

        async def refusal() -> str:
            again = await buyer.call("place_hold", **asked)
            assert again.status_code == 409
            return again.json()["code"]

        await eventually(refusal, until=lambda code: code == "pass_ended")  # now the room knows it, too
        await buyer.enter(EVENT_ID)
        await buyer.hold(EVENT_ID, seats=["S-A-1"])


async def test_b17_the_page_says_that_the_visit_ended_with_the_purchase(tmp_path):
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        buyer = await a_buyer(client)
        text = await buyer.enter(EVENT_ID)
        held = await buyer.hold(EVENT_ID, seats=["S-B-3"])
        await buyer.pay(held["booking"])
        form = {"content-type": "application/x-www-form-urlencoded", "accept": "text/html", "origin": "http://test"}
        client.cookies.set("frontrow_pass", text)
        page = await submit(client, f"/events/{EVENT_ID}/hold", {"seat": "S-A-1"}, form)
        assert page.status_code == 409, page.text
        assert "Your visit ended with your purchase" in page.text
        page = await client.post(f"/events/{EVENT_ID}/hold", content="seat=S-A-1", headers=form)
        assert page.headers["location"].endswith("/room/"), "the next click leads in again"


async def test_b9_the_last_declined_card_frees_the_seats_at_once(tmp_path):
    """Three cards are the default (issue 26)."""
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        buyer = await a_buyer(client)
        await buyer.enter(EVENT_ID)
        held = await buyer.hold(EVENT_ID, seats=["S-A-1"])
        for left in (2, 1, 0):
            declined = await buyer.call("pay", booking_id=held["booking"], json={"method": "pm_card_declined"})
            assert (declined.status_code, declined.json()["code"]) == (402, "payment_declined")
            assert declined.json()["tries_left"] == left
        assert (await buyer.hold(EVENT_ID, seats=["S-A-1"]))["booking"] != held["booking"]


async def test_an_event_a_hold_and_a_booking_say_what_the_price_consists_of(tmp_path):
    """Issue 15: the price that an event shows is the price of the hold, with a line per fee and per tax."""
    fees = (Fee("Service", per_seat_minor=250), Fee("Order", per_booking_minor=199))
    async with open_platform(settings_for(tmp_path)) as platform:
        await put_event(platform, one_row(4), fees=fees, tax_basis_points=1300)
        async with run_platform(platform), a_client(platform) as client:
            buyer = await a_buyer(client)
            await buyer.enter(EVENT_ID)
            shown = (await buyer.call("get_event", event_id=EVENT_ID)).json()
            held = await buyer.hold(EVENT_ID, seats=["S-A-1", "S-A-2"])
            read = (await buyer.call("get_booking", booking_id=held["booking"])).json()
    (tier,) = shown["tiers"]
    assert (tier["price"]["amount_minor"], tier["fee"]["amount_minor"], shown["fees_shown"]) == (5250, 0, "included")
    assert shown["booking_fees"] == [{"name": "Order", "amount": {"amount_minor": 199, "currency": "EUR"}}]
    assert shown["from_price"]["amount_minor"] == 2250  # of another tier, also with the fee
    said = [(one["kind"], one["name"], one["amount"]["amount_minor"], one["included"]) for one in read["lines"]]
    assert said == [
        ("seat", "Front", 10500, False),
        ("fee", "Service", 500, True),
        ("fee", "Order", 199, False),
        ("tax", "", 1231, True),
    ]
    assert held["lines"] == read["lines"][:-1]
    assert held["lines"][0]["seats"] == held["seats"]
    assert held["lines"][0]["unit"] == tier["price"]
    assert held["amount"]["amount_minor"] == 10699


async def test_b9_an_event_may_let_a_buyer_try_several_cards(tmp_path):
    """One policy for page and API: declines are counted, typing errors are not, the last decline frees the seats."""
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        event = await platform.ledger.catalogue.event(EVENT_ID)
        await platform.ledger.catalogue.put_event(replace(event, card_tries=2), platform.clock())
        buyer = await a_buyer(client)
        await buyer.enter(EVENT_ID)
        held = await buyer.hold(EVENT_ID, seats=["S-A-1"])
        for card, code, left in (
            ("pm_card_declined", "payment_declined", 1),
            ("pm_card_incorrect_cvc", "card_mistyped", None),
        ):
            refused = await buyer.call("pay", booking_id=held["booking"], json={"method": card})
            assert (refused.status_code, refused.json()["code"]) == (402, code)
            assert refused.json().get("tries_left") == left
        stands = (await buyer.call("get_booking", booking_id=held["booking"])).json()
        assert (stands["state"], stands["checkout"]["state"], stands["checkout"]["tries_left"]) == ("paying", "open", 1)
        assert stands["checkout"]["problem"] == "incorrect_cvc"
        last = await buyer.call("pay", booking_id=held["booking"], json={"method": "pm_card_declined"})
        assert (last.status_code, last.json()["code"], last.json()["tries_left"]) == (402, "payment_declined", 0)
        assert (await buyer.hold(EVENT_ID, seats=["S-A-1"]))["booking"] != held["booking"]


async def test_a_hold_whose_payment_is_open_can_be_extended_and_given_back(tmp_path):
    """Issue 11: once the payment page was opened it was 409 for ever."""
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        buyer = await a_buyer(client)
        await buyer.enter(EVENT_ID)
        for give_back in ("release_hold", "cancel_booking"):
            held = await buyer.hold(EVENT_ID, seats=["S-A-1"])
            opened = await buyer.call("pay", booking_id=held["booking"], json={})
            assert (opened.json()["state"], opened.json()["checkout"]["state"]) == ("paying", "open")
            longer = await buyer.call("extend_hold", booking_id=held["booking"], json={"extend": True})
            assert longer.status_code == 200
            released = await buyer.call(give_back, booking_id=held["booking"])
            assert (released.status_code, released.json()["state"]) == (200, "cancelled")
        states = {intent.state for intent in await platform.box_office.provider.page(0)}
        assert states == {IntentState.VOID}


async def test_b6_three_d_secure_is_an_action_and_then_a_sale(tmp_path):
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        buyer = await a_buyer(client)
        await buyer.enter(EVENT_ID)
        held = await buyer.hold(EVENT_ID, seats=["S-A-1"])
        asked = await buyer.pay(held["booking"], "pm_card_3ds")
        assert asked["checkout"]["state"] == "action"
        assert asked["checkout"]["action_url"]
        answered = await buyer.call("answer_bank", booking_id=held["booking"])
        assert answered.json()["state"] == "confirmed"


async def test_b8_f2_while_the_provider_is_away_the_seats_are_kept(tmp_path):
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        buyer = await a_buyer(client)
        await buyer.enter(EVENT_ID)
        held = await buyer.hold(EVENT_ID, seats=["S-A-1"])
        platform.box_office.provider.inner.down = True
        waiting = await buyer.call("pay", booking_id=held["booking"], json={"method": "pm_card_visa"})
        assert (waiting.status_code, waiting.json()["checkout"]["state"]) == (202, "retrying")
        assert int(waiting.headers["retry-after"]) >= 1
        assert (await buyer.call("get_booking", booking_id=held["booking"])).json()["state"] == "paying"


async def test_b9_paying_after_the_end_of_the_hold_is_gone(tmp_path):
    async with a_platform(tmp_path, hold_ttl_s=1) as platform, a_client(platform) as client:
        buyer = await a_buyer(client)
        await buyer.enter(EVENT_ID)
        held = await buyer.hold(EVENT_ID, seats=["S-A-1"])
        await eventually(
            lambda: buyer.call("get_booking", booking_id=held["booking"]),
            until=lambda answer: answer.json()["state"] == "expired",
        )
        late = await buyer.call("pay", booking_id=held["booking"], json={"method": "pm_card_visa"})
        assert late.status_code == 410, late.text
        assert late.json()["code"] == "hold_ended"


async def test_b3_a_hold_is_extended_within_its_bound_and_given_back(tmp_path):
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        buyer = await a_buyer(client)
        await buyer.enter(EVENT_ID)
        held = await buyer.hold(EVENT_ID, seats=["S-A-1"])
        longer = await buyer.call("extend_hold", booking_id=held["booking"], json={"extend": True})
        assert longer.json()["hold_expires_at"] > held["expires_at"]
        stale = await buyer.call("extend_hold", booking_id=held["booking"], json={"extend": True, "fence": 999999})
        assert (stale.status_code, stale.json()["code"]) == (409, "stale_fence")
        released = await buyer.call("release_hold", booking_id=held["booking"])
        assert (released.status_code, released.json()["state"]) == (200, "cancelled")


async def test_who_chooses_again_changes_the_hold_instead_of_making_a_second(tmp_path, stores):
    """Two tabs, a conflict, the best seats, an open payment: one hold, and never without seats."""
    async with a_platform(tmp_path, **stores) as platform, a_client(platform) as client:
        buyer, other = await a_buyer(client), await a_buyer(client)
        await buyer.enter(EVENT_ID)
        await other.enter(EVENT_ID)

        async def choose(status: int = 201, **wish) -> dict:
            answer = await buyer.call("place_hold", event_id=EVENT_ID, json={"replace": True, **wish})
            assert answer.status_code == status, answer.text
            return answer.json()

        async def free() -> set[str]:
            plan = platform.box_office.sales.get(EVENT_ID).plan
            taken = await platform.box_office.holds._claims.states(EVENT_ID, platform.clock())
            return set(plan.seat_ids) - {plan.seat_ids[seat] for seat in taken}

        tabs = await asyncio.gather(*(choose(seats=[f"S-A-{1 + n % 5}", "S-B-1"]) for n in range(50)))
        assert len({tab["booking"] for tab in tabs}) == 1, "fifty tabs at once, one hold"
        first = await choose(seats=["S-B-1", "S-B-2"])
        assert first["seats"] == ["S-B-1", "S-B-2"]
        await other.hold(EVENT_ID, seats=["S-B-4"])
        lost = await choose(409, seats=["S-B-2", "S-B-4"])
        assert (lost["code"], lost["seats"]) == ("seats_taken", ["S-B-4"])
        buyer.headers["Frontrow-Booking"] = first["booking_token"]
        kept = (await buyer.call("get_booking", booking_id=first["booking"])).json()
        assert (kept["state"], kept["seats"]) == ("held", ["S-B-1", "S-B-2"]), "refused: the old hold stays"
        assert await free() >= {"S-A-1", "S-A-2", "S-B-3"}
        opened = await buyer.call("pay", booking_id=first["booking"], json={})
        assert opened.json()["state"] == "paying"
        patched = await buyer.call("extend_hold", booking_id=first["booking"], json={"seats": ["S-B-2", "S-B-3"]})
        assert patched.status_code == 200, patched.text
        assert (patched.json()["state"], patched.json()["seats"]) == ("held", ["S-B-2", "S-B-3"])
        assert patched.json()["hold_expires_at"] == kept["hold_expires_at"], "changing wins no time"
        best = await choose(best={"count": 1})
        assert (best["booking"], len(best["seats"])) == (first["booking"], 1)
        assert await free() >= {"S-B-1", "S-B-2", "S-B-3"} - set(best["seats"])
        assert (await buyer.pay(best["booking"]))["seats"] == best["seats"]
        again = await buyer.call("place_hold", event_id=EVENT_ID, json={"replace": True, "seats": ["S-B-1"]})
        assert again.status_code == 409
        assert again.json()["code"] in ("visit_ended", "pass_ended"), "the ledger or the room knows that it has bought"
        await buyer.enter(EVENT_ID)
        again = await buyer.call("place_hold", event_id=EVENT_ID, json={"replace": True, "seats": ["S-B-1"]})
        second = again.json()
        assert second["booking"] != best["booking"], "what is bought stays bought"
        buyer.headers["Frontrow-Booking"] = second["booking_token"]
        for body in ({}, {"extend": True, "seats": ["S-B-1"]}):
            refused = await buyer.call("extend_hold", booking_id=second["booking"], json=body)
            assert refused.status_code == 422


async def test_nobody_sees_or_changes_somebody_elses_booking(tmp_path):
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        owner, other = await a_buyer(client), await a_buyer(client)
        await owner.enter(EVENT_ID)
        await other.enter(EVENT_ID)
        held = await owner.hold(EVENT_ID, seats=["S-A-1"])
        other.headers["Frontrow-Booking"] = held["booking_token"][:-2] + "xx"
        for name, body in (
            ("get_booking", None),
            ("pay", {"method": "pm_card_visa"}),
            ("release_hold", None),
            ("cancel_booking", None),
            ("ask_refund", {}),
            ("list_refunds", None),
            ("list_tickets", None),
            ("tickets_pdf", None),
            ("return_tickets", {}),
            ("priority_pass", None),
            ("answer_bank", None),
        ):
            more = {} if body is None else {"json": body}
            answer = await other.call(name, booking_id=held["booking"], **more)
            assert (answer.status_code, answer.json()["code"]) == (404, "booking_not_found"), name
        without_pass = await a_buyer(client)
        without_pass.headers["Frontrow-Booking"] = held["booking_token"]
        assert (await without_pass.call("get_booking", booking_id=held["booking"])).status_code == 200
        refused = await without_pass.call("pay", booking_id=held["booking"], json={"method": "pm_card_visa"})
        assert refused.status_code == 401, "B17: paying is a shop call"


async def test_b8_a_priority_pass_is_given_once(tmp_path):
    """Fetched again it is the same pass; when that has run out there is no other."""
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        ttl_s = platform.room.service.control.view(EVENT_ID).state.config.pass_ttl_s
        for seat, fetched_before_s in (("S-A-1", 120), ("S-A-3", ttl_s + 60)):
            buyer = await a_buyer(client)
            await buyer.enter(EVENT_ID)
            held = await buyer.hold(EVENT_ID, seats=[seat])
            now_us = platform.clock()
            over = Payment(
                f"pay_{held['booking'][4:]}_1",
                held["booking"],
                1,
                "simulated",
                5000,
                "EUR",
                PaymentState.VOIDED,
                reason="provider_unavailable",
                changed_at_us=now_us,
            )
            await platform.ledger.payments.save_payment(
                over, now_us=now_us, move=Move.BEGIN_PAYMENT, fence=held["fence"]
            )
            await decline_booking(platform.ledger, held["booking"], held["fence"], now_us)
            first_us = now_us - fetched_before_s * 1_000_000
            assert await platform.ledger.messages.first_seen("priority", held["booking"], first_us) == first_us
            assert await platform.ledger.messages.first_seen("priority", held["booking"], now_us) == first_us
            answers = [await buyer.call("priority_pass", booking_id=held["booking"]) for _ in range(2)]
            assert answers[0].json() == answers[1].json() or fetched_before_s > ttl_s
            if fetched_before_s > ttl_s:
                assert (answers[0].status_code, answers[0].json()["code"]) == (409, "no_priority")
            else:
                assert answers[0].json()["expires_at_s"] <= first_us // 1_000_000 + ttl_s + 60


async def test_a_join_cannot_say_whose_place_it_is(tmp_path):
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        taken = await client.post(f"/v1/events/{EVENT_ID}/room/join", json={"person": "fan_victim"})
        assert (taken.status_code, taken.json()["param"]) == (422, "person")


async def test_b11_a_seat_given_back_is_offered_claimed_and_paid(tmp_path):
    async with a_platform(tmp_path, one_row(2)) as platform, a_client(platform) as client:
        first, second = await a_buyer(client), await a_buyer(client)
        await first.enter(EVENT_ID)
        await second.enter(EVENT_ID)
        early = await second.call("join_waitlist", event_id=EVENT_ID, json={"count": 1})
        assert (early.status_code, early.json()["code"]) == (409, "seats_still_free")
        held = await first.hold(EVENT_ID, seats=["S-A-1", "S-A-2"])
        await first.pay(held["booking"])
        await platform.box_office.checkout.work()  # takes the money
        platform.box_office.waitlist._free_seats.clear()
        line = await second.call("join_waitlist", event_id=EVENT_ID, json={"count": 1})
        assert (line.status_code, line.json()["position"]) == (201, 1), line.text
        returned = await first.call("return_tickets", booking_id=held["booking"], json={"seats": ["S-A-2"]})
        assert returned.json()["returns"] == [{"seat": "S-A-2", "state": "listed"}]
        offered = await eventually(
            lambda: second.call("list_offers", event_id=EVENT_ID), until=lambda answer: answer.json()["offers"]
        )
        offer_id = offered.json()["offers"][0]["offer"]
        claimed = await second.call("claim_offer", offer_id=offer_id)
        assert claimed.status_code == 201, claimed.text
        second.headers["Frontrow-Booking"] = claimed.json()["booking_token"]
        second.headers["Frontrow-Pass"] = claimed.json()["pass"]["pass"]
        paid = await second.pay(claimed.json()["booking"]["booking"])
        assert (paid["state"], paid["seats"]) == ("confirmed", ["S-A-2"])
        foreign = await first.call("decline_offer", offer_id=offer_id)
        assert (foreign.status_code, foreign.json()["code"]) == (404, "offer_not_found")


async def test_a_hold_that_is_paid_where_it_was_placed_is_not_read_again(tmp_path, monkeypatch):
    """Only for who sends its token and a live pass: of anybody else it must be looked up whose it is."""
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        buyer = await a_buyer(client)
        await buyer.enter(EVENT_ID)
        read, booking = [], platform.ledger.booking

        async def counted(booking_id):
            read.append(booking_id)
            return await booking(booking_id)

        held = await buyer.hold(EVENT_ID, seats=["S-B-3"])
        monkeypatch.setattr(platform.ledger, "booking", counted)
        stranger = await a_buyer(client)
        assert (await stranger.call("pay", booking_id=held["booking"], json={"method": "pm_card_visa"})).is_error
        no_pass = {"Frontrow-Booking": buyer.headers["Frontrow-Booking"], "Frontrow-Pass": ""}
        assert (await buyer.call("pay", booking_id=held["booking"], json={"method": "pm"}, headers=no_pass)).is_error
        assert read == [held["booking"]] * 2
        assert (await buyer.pay(held["booking"]))["state"] == "confirmed"
        assert read == [held["booking"]] * 2
        assert (await buyer.pay(held["booking"]))["state"] == "confirmed", "asked again: it reads"
        assert read == [held["booking"]] * 3
