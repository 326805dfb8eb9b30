"""Sales by staff over HTTP: cash, card reader and free tickets; without the provider; totals per person."""

import asyncio

from frontrow.boxoffice.model.bookings import BookingState
from frontrow.boxoffice.model.desk_sales import PaidBy
from frontrow.boxoffice.model.event_changes import Editor
from frontrow.boxoffice.model.payments import PaymentState, RefundState
from frontrow.boxoffice.model.roles import Role
from tests.boxoffice.organising.http import EVENTS, a_desk
from tests.boxoffice.people.support import mails


async def test_the_desk_sells_for_cash_and_on_a_reader_and_gives_guests_their_tickets(tmp_path):
    async with a_desk(tmp_path, Role.BOX_OFFICE) as desk:
        platform, ledger = desk.platform, desk.platform.ledger
        path = f"{EVENTS}/{desk.event}/desk-sales"
        owner = await desk.as_(Role.OWNER)
        changed = await owner.ask("PATCH", f"{EVENTS}/{desk.event}", json={"withheld": ["S-A-3"]})
        assert changed.status_code == 200

        async def sell(status=201, who=desk, **body):
            return await who.post(path, status, json=body)

        cash = await sell(seats=["S-A-1", "S-A-2"], paid_by="cash")
        assert (cash["state"], cash["amount"]["amount_minor"]) == ("confirmed", 10000)
        reader = await sell(seats=["S-B-1"], paid_by="card_reader", name="Bob", email="bob@example.org")
        guest = await sell(seats=["S-A-3"], paid_by="free", name="Ada Lovelace", email="ada@example.org")
        assert (guest["amount"]["amount_minor"], guest["name"]) == (0, "Ada Lovelace"), "withheld seats can be given"
        (payment,) = await ledger.payments.payments_of(cash["booking"])
        assert (payment.provider, payment.method, payment.state) == ("external", "cash", PaymentState.CAPTURED)
        assert await ledger.payments.payments_of(guest["booking"]) == []
        assert len(await ledger.tickets.tickets_of(cash["booking"])) == 2
        for one in (guest, reader):
            await desk.post(f"{EVENTS}/{desk.event}/bookings/{one['booking']}/resend")
        await platform.messaging.notifier.worker().drain()
        for address in ("ada@example.org", "bob@example.org"):
            assert len(await mails(platform, address)) == 1, "with tickets, and a receipt of what was paid"
        taken = await desk.ask("POST", path, json={"seats": ["S-A-1"], "paid_by": "cash"})
        assert (taken.status_code, taken.json()["code"]) == (409, "seats_taken")
        for wrong in (
            {"seats": ["S-C-1"], "paid_by": "free", "name": "Nobody"},
            {"seats": ["S-C-1"], "paid_by": "free", "email": "x@example.org"},
            {"seats": ["S-C-1"], "paid_by": "cash", "email": "x"},
            {"seats": ["nowhere"], "paid_by": "cash"},
            {"seats": [], "paid_by": "cash"},
            {"seats": ["S-C-1"], "paid_by": "cheque"},
        ):
            assert (await desk.ask("POST", path, json=wrong)).status_code in (400, 422), wrong
        # a refund of a cash sale is given back by hand: it is done at once, and the provider is not asked
        refund = await desk.post(
            f"{EVENTS}/{desk.event}/bookings/{cash['booking']}/refunds", 201, json={"seats": ["S-A-2"]}
        )
        (owed,) = await ledger.payments.refunds_of(cash["booking"])
        await platform.box_office.refunds.payouts.pay_out(owed)
        (kept,) = await ledger.payments.refunds_of(cash["booking"])
        assert (kept.id, kept.state, kept.amount_minor) == (refund["refund"], RefundState.DONE, 5000)
        await owner.post(path, 201, json={"seats": ["S-C-1"], "paid_by": "cash"})
        totals = (await desk.get(f"{path}/totals"))["totals"]
        mine = {
            one["paid_by"]: (
                one["bookings"],
                one["seats"],
                one["taken"]["amount_minor"],
                one["refunded"]["amount_minor"],
            )
            for one in totals
            if one["staff"] == desk.person.id
        }
        assert mine == {"cash": (1, 1, 10000, 5000), "card_reader": (1, 1, 5000, 0), "free": (1, 1, 0, 0)}
        assert len([one for one in totals if one["staff"] != desk.person.id]) == 1
        assert (await desk.get(f"{path}/totals", params={"day": "2020-01-01"}))["totals"] == []
        acts = [one["act"] for one in (await owner.get("/v1/organiser/audit"))["changes"]]
        assert (acts.count("desk_sale"), acts.count("give_tickets")) == (3, 1)
        door = await desk.as_(Role.DOOR)
        assert (await door.ask("POST", path, json={"seats": ["S-C-2"], "paid_by": "cash"})).status_code == 403
        assert await platform.box_office.provider.page(0) == [], "the provider never heard of any of this"


async def test_of_fifty_who_sell_one_seat_at_once_one_does_and_a_form_sent_twice_sells_once(
    tmp_path, redis_url, postgres_ledger_url
):
    async with a_desk(tmp_path, Role.BOX_OFFICE, redis_url=redis_url, postgres_url=postgres_ledger_url) as desk:
        path = f"{EVENTS}/{desk.event}/desk-sales"
        asks = [desk.ask("POST", path, json={"seats": ["S-A-1"], "paid_by": "cash"}) for _ in range(50)]
        codes = [answer.status_code for answer in await asyncio.gather(*asks)]
        assert (codes.count(201), codes.count(409)) == (1, 49)
        service, ledger = desk.platform.organiser.desk, desk.platform.ledger
        event = await ledger.catalogue.event(desk.event)
        editor = Editor(desk.person.id, event.organiser_id)
        number = service.new_booking_id()
        for _ in range(2):
            sold = await service.sell(editor, event, ["S-B-1"], PaidBy.CASH, booking_id=number)
            assert (sold.id, sold.state) == (number, BookingState.CONFIRMED)
        assert len(await ledger.payments.payments_of(number)) == 1
        (total,) = (await desk.get(f"{path}/totals"))["totals"]
        assert (total["paid_by"], total["bookings"], total["seats"]) == ("cash", 2, 2)


async def test_a_limit_holds_at_the_desk_and_a_refused_sale_frees_its_seats_at_once(tmp_path):
    async with a_desk(tmp_path, Role.OWNER) as desk:
        platform, path = desk.platform, f"{EVENTS}/{desk.event}/desk-sales"
        options = {
            "ticket_types": [
                {"key": "adult", "name": "Adult"},
                {"key": "child", "name": "Child", "basis_points": 5000, "max_per_booking": 1},
                {"key": "crew", "name": "Crew", "basis_points": 1000, "hidden": True},
            ],
            "add_ons": [{"key": "parking", "name": "Parking", "price_minor": 800, "stock": 2}],
            "discounts": [{"code": "TEN", "basis_points": 1000}],
            "limits": [
                {"key": "kids", "name": "Children", "most": 3, "counts": ["type:child"]},
                {"key": "front", "name": "Front", "most": 7, "counts": ["tier:front"]},
            ],
        }
        assert (await desk.ask("PATCH", f"{EVENTS}/{desk.event}", json=options)).status_code == 200
        wish = {
            "types": {"S-A-1": "child", "S-A-2": "child", "S-A-3": "crew"},
            "add_ons": {"parking": 1},
            "code": "ten",
        }
        sold = await desk.post(path, 201, json={"seats": ["S-A-1", "S-A-2", "S-A-3"], "paid_by": "cash", **wish})
        # bounds per booking and hidden types are for fans; 25 + 25 + 5, less a tenth, and parking
        assert sold["amount"]["amount_minor"] == 4950 + 800
        guest = {"name": "Ada", "email": "ada@example.org", "paid_by": "free"}
        given = {"seats": ["S-A-4"], "types": {"S-A-4": "child"}, "add_ons": {"parking": 1}}
        comp = await desk.post(path, 201, json=guest | given)
        assert comp["amount"]["amount_minor"] == 0
        for booking, names in ((sold, ["Child", "Child", "Crew"]), (comp, ["Child"])):
            sheets = await platform.box_office.desk.sheets(booking["booking"])
            assert [sheet.type_name for sheet in sheets] == names
        for more, name in (
            ({"types": {"S-B-1": "child"}}, "Children"),
            ({"add_ons": {"parking": 1}}, "Parking"),
        ):
            for how in ({"paid_by": "cash"}, guest):
                refused = await desk.ask("POST", path, json={"seats": ["S-B-1"], **how, **more})
                assert (refused.status_code, refused.json()["code"], refused.json()["left"]) == (409, "none_left", 0)
                assert name in refused.json()["detail"]
        # the limit of the tier counts seats without a choice too; of five who want the last three, three get one
        seats = [f"S-B-{n}" for n in range(1, 6)]
        asks = [desk.ask("POST", path, json={"seats": [seat], "paid_by": "cash"}) for seat in seats]
        codes = [one.status_code for one in await asyncio.gather(*asks)]
        assert sorted(codes) == [201, 201, 201, 409, 409]
        free = seats[codes.index(409)]
        assert (await desk.ask("PATCH", f"{EVENTS}/{desk.event}", json={"limits": []})).status_code == 200
        await desk.post(path, 201, json={"seats": [free], "paid_by": "cash"})
        for wrong, param in (
            ({"types": {"S-C-1": "dog"}}, "types"),
            ({"types": {"S-C-2": "child"}}, "types"),
            ({"add_ons": {"boat": 1}}, "add_ons"),
            ({"code": "NO"}, "code"),
        ):
            refused = await desk.ask("POST", path, json={"seats": ["S-C-1"], "paid_by": "cash", **wrong})
            assert refused.json()["param"] == param
        coded = await desk.ask("POST", path, json=guest | {"seats": ["S-C-1"], "code": "TEN"})
        assert coded.json()["param"] == "code", "free tickets do not become cheaper"
