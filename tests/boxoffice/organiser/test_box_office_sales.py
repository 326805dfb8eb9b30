"""Sales by staff over HTTP: cash, card reader and free tickets; without the provider; totals per person."""

import asyncio
from dataclasses import dataclass, replace
from typing import Any

import pytest

from frontrow.boxoffice.events.model.event_changes import Editor
from frontrow.boxoffice.events.model.events import EventStatus, NotOnSale
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.holds.model.claims import ClaimedSeats, SeatClaim
from frontrow.boxoffice.holds.model.holds import IdempotencyMismatch, NewHold, SeatsTaken
from frontrow.boxoffice.organiser.model.box_office_sales import (
    MAX_SEATS_PER_SALE,
    BoxOfficeWish,
    PaidBy,
)
from frontrow.boxoffice.payments.model.payments import PaymentState
from frontrow.boxoffice.people.model.roles import Role
from frontrow.boxoffice.refunds.model.refund_rules import PaidAtBoxOffice
from frontrow.boxoffice.refunds.model.refunds import RefundState
from frontrow.core.errors import InvalidInput
from frontrow.web.http.access import booking_token
from tests.boxoffice.organiser.http import EVENTS, OrganiserApi, an_organiser_api
from tests.boxoffice.people.support import mails


@dataclass
class BoxOffice:
    """A member who sells at the box office, and the owner of the team. The seat S-A-3 is withheld."""

    api: OrganiserApi
    owner: OrganiserApi

    @property
    def path(self) -> str:
        return f"{EVENTS}/{self.api.event}/desk-sales"

    async def sell(self, *seats: str, paid_by: str = "cash", **more: str) -> dict[str, Any]:
        return await self.api.post(self.path, 201, json={"seats": seats, "paid_by": paid_by} | more)

    async def refund(self, booking: str, *seats: str) -> dict[str, Any]:
        """Refund seats and let the worker pay the money out."""
        made = await self.api.post(f"{EVENTS}/{self.api.event}/bookings/{booking}/refunds", 201, json={"seats": seats})
        (owed,) = await self.api.platform.ledger.payments.refunds_of(booking)
        await self.api.platform.box_office.refunds.payouts.pay_out(owed)
        return made


@pytest.fixture
async def office(tmp_path):
    async with an_organiser_api(tmp_path, Role.BOX_OFFICE) as api:
        owner = await api.as_(Role.OWNER)
        changed = await owner.ask("PATCH", f"{EVENTS}/{api.event}", json={"withheld": ["S-A-3"]})
        assert changed.status_code == 200
        yield BoxOffice(api, owner)
        assert await api.platform.box_office.provider.page(0) == [], "the provider never heard of any of this"


async def test_the_box_office_sells_for_cash(office):
    ledger = office.api.platform.ledger
    cash = await office.sell("S-A-1", "S-A-2")
    assert (cash["state"], cash["amount"]["amount_minor"]) == ("confirmed", 10000)
    (payment,) = await ledger.payments.payments_of(cash["booking"])
    assert (payment.provider, payment.method, payment.state) == ("external", "cash", PaymentState.CAPTURED)
    assert len(await ledger.tickets.tickets_of(cash["booking"])) == 2
    taken = await office.api.ask("POST", office.path, json={"seats": ["S-A-1"], "paid_by": "cash"})
    assert (taken.status_code, taken.json()["code"]) == (409, "seats_taken")


async def test_a_guest_gets_a_withheld_seat_without_a_payment(office):
    guest = await office.sell("S-A-3", paid_by="free", name="Ada Lovelace", email="ada@example.org")
    assert (guest["amount"]["amount_minor"], guest["name"]) == (0, "Ada Lovelace")
    assert await office.api.platform.ledger.payments.payments_of(guest["booking"]) == []


@pytest.mark.parametrize("paid_by", ["free", "card_reader"])
async def test_who_left_an_address_gets_the_tickets_by_mail(office, paid_by):
    platform, event = office.api.platform, office.api.event
    sale = await office.sell("S-B-1", paid_by=paid_by, name="Bob", email="bob@example.org")
    await office.api.post(f"{EVENTS}/{event}/bookings/{sale['booking']}/resend")
    await platform.messaging.notifier.worker().drain()
    assert len(await mails(platform, "bob@example.org")) == 1, "with tickets, and a receipt of what was paid"


@pytest.mark.parametrize(
    "wrong",
    [
        {"paid_by": "free", "name": "Nobody"},
        {"paid_by": "free", "email": "x@example.org"},
        {"email": "x"},
        {"seats": ["nowhere"]},
        {"seats": []},
        {"paid_by": "cheque"},
    ],
)
async def test_a_sale_at_the_box_office_that_makes_no_sense_is_refused(office, wrong):
    refused = await office.api.ask("POST", office.path, json={"seats": ["S-C-1"], "paid_by": "cash"} | wrong)
    assert refused.status_code in (400, 422), refused.text


async def test_a_refund_of_a_cash_sale_is_given_back_by_hand(office):
    """It is done at once, and the provider is not asked."""
    ledger = office.api.platform.ledger
    cash = await office.sell("S-A-1", "S-A-2")
    refund = await office.refund(cash["booking"], "S-A-2")
    (kept,) = await ledger.payments.refunds_of(cash["booking"])
    assert (kept.id, kept.state, kept.amount_minor) == (refund["refund"], RefundState.DONE, 5000)


async def test_the_totals_of_the_day_are_by_member_and_way_of_paying(office):
    api = office.api
    cash = await office.sell("S-A-1", "S-A-2")
    await office.sell("S-B-1", paid_by="card_reader")
    await office.sell("S-A-3", paid_by="free", name="Ada Lovelace", email="ada@example.org")
    await office.refund(cash["booking"], "S-A-2")
    await office.owner.post(office.path, 201, json={"seats": ["S-C-1"], "paid_by": "cash"})
    totals = (await api.get(f"{office.path}/totals"))["totals"]
    mine = {
        one["paid_by"]: (one["bookings"], one["seats"], one["taken"]["amount_minor"], one["refunded"]["amount_minor"])
        for one in totals
        if one["staff"] == api.person.id
    }
    assert mine == {"cash": (1, 1, 10000, 5000), "card_reader": (1, 1, 5000, 0), "free": (1, 1, 0, 0)}
    assert len([one for one in totals if one["staff"] != api.person.id]) == 1
    assert (await api.get(f"{office.path}/totals", params={"day": "2020-01-01"}))["totals"] == []


async def test_the_audit_log_tells_sales_from_given_tickets(office):
    await office.sell("S-A-1")
    await office.sell("S-B-1", paid_by="card_reader")
    await office.sell("S-A-3", paid_by="free", name="Ada Lovelace", email="ada@example.org")
    acts = [one["act"] for one in (await office.owner.get("/v1/organiser/audit"))["changes"]]
    assert (acts.count("desk_sale"), acts.count("give_tickets")) == (2, 1)


async def test_a_gatekeeper_sells_nothing(office):
    gatekeeper = await office.api.as_(Role.DOOR)
    assert (await gatekeeper.ask("POST", office.path, json={"seats": ["S-C-2"], "paid_by": "cash"})).status_code == 403


async def test_of_fifty_who_sell_one_seat_at_once_one_does_and_a_form_sent_twice_sells_once(
    tmp_path, redis_url, postgres_ledger_url
):
    async with an_organiser_api(
        tmp_path, Role.BOX_OFFICE, redis_url=redis_url, postgres_url=postgres_ledger_url
    ) as api:
        path = f"{EVENTS}/{api.event}/desk-sales"
        asks = [api.ask("POST", path, json={"seats": ["S-A-1"], "paid_by": "cash"}) for _ in range(50)]
        codes = [answer.status_code for answer in await asyncio.gather(*asks)]
        assert (codes.count(201), codes.count(409)) == (1, 49)
        service, ledger = api.platform.organiser.box_office_sales, api.platform.ledger
        event = await ledger.catalogue.event(api.event)
        editor = Editor(api.person.id, event.organiser_id)
        number = service.new_booking_id()
        for _ in range(2):
            sold = await service.sell(editor, event, ["S-B-1"], PaidBy.CASH, booking_id=number)
            assert (sold.id, sold.state) == (number, BookingState.CONFIRMED)
        assert len(await ledger.payments.payments_of(number)) == 1
        (total,) = (await api.get(f"{path}/totals"))["totals"]
        assert (total["paid_by"], total["bookings"], total["seats"]) == ("cash", 2, 2)


async def test_a_limit_holds_at_the_box_office_and_a_refused_sale_frees_its_seats_at_once(tmp_path):
    async with an_organiser_api(tmp_path, Role.OWNER) as api:
        platform, path = api.platform, f"{EVENTS}/{api.event}/desk-sales"
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
        assert (await api.ask("PATCH", f"{EVENTS}/{api.event}", json=options)).status_code == 200
        wish = {
            "types": {"S-A-1": "child", "S-A-2": "child", "S-A-3": "crew"},
            "add_ons": {"parking": 1},
            "code": "ten",
        }
        sold = await api.post(path, 201, json={"seats": ["S-A-1", "S-A-2", "S-A-3"], "paid_by": "cash", **wish})
        # bounds per booking and hidden types are for fans; 25 + 25 + 5, less a tenth, and parking
        assert sold["amount"]["amount_minor"] == 4950 + 800
        guest = {"name": "Ada", "email": "ada@example.org", "paid_by": "free"}
        given = {"seats": ["S-A-4"], "types": {"S-A-4": "child"}, "add_ons": {"parking": 1}}
        comp = await api.post(path, 201, json=guest | given)
        assert comp["amount"]["amount_minor"] == 0
        for booking, names in ((sold, ["Child", "Child", "Crew"]), (comp, ["Child"])):
            sheets = await platform.box_office.renderer.sheets(booking["booking"])
            assert [sheet.type_name for sheet in sheets] == names
        for more, name in (
            ({"types": {"S-B-1": "child"}}, "Children"),
            ({"add_ons": {"parking": 1}}, "Parking"),
        ):
            for how in ({"paid_by": "cash"}, guest):
                refused = await api.ask("POST", path, json={"seats": ["S-B-1"], **how, **more})
                assert (refused.status_code, refused.json()["code"], refused.json()["left"]) == (409, "none_left", 0)
                assert name in refused.json()["detail"]
        # the limit of the tier counts seats without a choice too; of five who want the last three, three get one
        seats = [f"S-B-{n}" for n in range(1, 6)]
        asks = [api.ask("POST", path, json={"seats": [seat], "paid_by": "cash"}) for seat in seats]
        codes = [one.status_code for one in await asyncio.gather(*asks)]
        assert sorted(codes) == [201, 201, 201, 409, 409]
        free = seats[codes.index(409)]
        assert (await api.ask("PATCH", f"{EVENTS}/{api.event}", json={"limits": []})).status_code == 200
        await api.post(path, 201, json={"seats": [free], "paid_by": "cash"})
        for wrong, param in (
            ({"types": {"S-C-1": "dog"}}, "types"),
            ({"types": {"S-C-2": "child"}}, "types"),
            ({"add_ons": {"boat": 1}}, "add_ons"),
            ({"code": "NO"}, "code"),
        ):
            refused = await api.ask("POST", path, json={"seats": ["S-C-1"], "paid_by": "cash", **wrong})
            assert refused.json()["param"] == param
        coded = await api.ask("POST", path, json=guest | {"seats": ["S-C-1"], "code": "TEN"})
        assert coded.json()["param"] == "code", "free tickets do not become cheaper"


async def test_a_sale_and_the_note_of_who_sold_are_written_together(tmp_path, monkeypatch):
    """A process that died between the two writes left a sale that the audit log did not have."""
    async with an_organiser_api(tmp_path, Role.OWNER) as api:
        service, ledger = api.platform.organiser.box_office_sales, api.platform.ledger
        event = await ledger.catalogue.event(api.event)
        editor = Editor(api.person.id, event.organiser_id)
        for paid_by, seat, act in ((PaidBy.CASH, "S-A-1", "desk_sale"), (PaidBy.FREE, "S-A-2", "give_tickets")):
            submit, number = ledger.line.submit, service.new_booking_id()

            async def dies(operation, submit=submit, number=number):
                answer = await submit(operation)
                booking = await ledger.booking(number)
                if booking is not None and booking.state is BookingState.CONFIRMED:
                    raise SystemExit  # with the write that sold
                return answer

            buyer = {"name": "Ada", "email": "ada@example.org"}
            monkeypatch.setattr(ledger.line, "submit", dies)
            with pytest.raises(SystemExit):
                await service.sell(editor, event, [seat], paid_by, booking_id=number, **buyer)
            monkeypatch.setattr(ledger.line, "submit", submit)
            for _ in range(2):  # sent again: the same sale, and noted once
                noted = await ledger.organiser.changes(event.organiser_id, event.id, 0, 50, booking_id=number)
                assert [(one.act, one.actor) for one in noted] == [(act, api.person.id)]
                again = await service.sell(editor, event, [seat], paid_by, booking_id=number, **buyer)
                assert again.id == number


@pytest.mark.parametrize("died", [BookingState.HELD, BookingState.PAYING])
@pytest.mark.parametrize("add_ons", [{}, {"parking": 1}])
async def test_a_sale_that_was_interrupted_is_repeated_at_its_price_or_refused(tmp_path, monkeypatch, died, add_ons):
    """With an add-on it was refused until its hold had ended. At another ticket type the first price was taken."""
    async with an_organiser_api(tmp_path, Role.OWNER) as api:
        options = {
            "ticket_types": [
                {"key": "adult", "name": "Adult"},
                {"key": "child", "name": "Child", "basis_points": 5000},
            ],
            "add_ons": [{"key": "parking", "name": "Parking", "price_minor": 800, "stock": 1}],
        }
        assert (await api.ask("PATCH", f"{EVENTS}/{api.event}", json=options)).status_code == 200
        service, ledger = api.platform.organiser.box_office_sales, api.platform.ledger
        event = await ledger.catalogue.event(api.event)
        editor, number = Editor(api.person.id, event.organiser_id), service.new_booking_id()
        submit = ledger.line.submit

        async def dies(operation):
            answer = await submit(operation)
            booking = await ledger.booking(number)
            if booking is not None and booking.state is died:
                raise SystemExit
            return answer

        async def sell(**wish):
            return await service.sell(
                editor, event, ["S-A-1"], PaidBy.CASH, booking_id=number, wish=BoxOfficeWish(add_ons=add_ons, **wish)
            )

        monkeypatch.setattr(ledger.line, "submit", dies)
        with pytest.raises(SystemExit):
            await sell()
        monkeypatch.setattr(ledger.line, "submit", submit)
        assert (await ledger.booking(number)).state is died
        with pytest.raises(IdempotencyMismatch):
            await sell(types={"S-A-1": "child"})
        sold = await sell()
        price = 5000 + 800 * len(add_ons)
        assert (sold.id, sold.state, sold.amount_minor) == (number, BookingState.CONFIRMED, price)
        assert [one.amount_minor for one in await ledger.payments.payments_of(number)] == [price]


@pytest.mark.parametrize("add_ons", [{}, {"parking": 1}])
async def test_a_sale_that_is_sent_twice_at_the_same_time_is_one_sale_and_keeps_its_seat(tmp_path, add_ons):
    """The second one was refused, and freed the claim of the seat that the first one had sold."""
    async with an_organiser_api(tmp_path, Role.OWNER) as api:
        options = {"add_ons": [{"key": "parking", "name": "Parking", "price_minor": 800}]}
        assert (await api.ask("PATCH", f"{EVENTS}/{api.event}", json=options)).status_code == 200
        service, ledger = api.platform.organiser.box_office_sales, api.platform.ledger
        event = await ledger.catalogue.event(api.event)
        editor, wish = Editor(api.person.id, event.organiser_id), BoxOfficeWish(add_ons=add_ons)

        async def sell(seat, number, turns):
            for _ in range(turns):
                await asyncio.sleep(0)
            return await service.sell(editor, event, [seat], PaidBy.CASH, booking_id=number, wish=wish)

        for turns in range(0, 40, 4):
            number, seat = service.new_booking_id(), f"S-{'AB'[turns // 20]}-{turns // 4 % 5 + 1}"
            first, second = await asyncio.gather(sell(seat, number, 0), sell(seat, number, turns))
            assert (first.id, first.state, second.id) == (number, BookingState.CONFIRMED, number)
            assert len(await ledger.payments.payments_of(number)) == 1
            claim = SeatClaim(event.id, first.seats, "fan_x", f"bkg_x{turns}", api.platform.clock() + 10_000_000)
            with pytest.raises(SeatsTaken):
                await service._claim(claim, api.platform.clock())


async def test_a_repeated_sale_with_something_else_to_sell_is_refused(tmp_path):
    """It was answered with the sale that had been made: staff took money for seats that nobody got."""
    async with an_organiser_api(tmp_path, Role.OWNER) as api:
        options = {"add_ons": [{"key": "parking", "name": "Parking", "price_minor": 800, "stock": 2}]}
        assert (await api.ask("PATCH", f"{EVENTS}/{api.event}", json=options)).status_code == 200
        service, ledger = api.platform.organiser.box_office_sales, api.platform.ledger
        event = await ledger.catalogue.event(api.event)
        editor, buyer = Editor(api.person.id, event.organiser_id), {"name": "Ada", "email": "ada@example.org"}
        number, gift = service.new_booking_id(), service.new_booking_id()
        wish = BoxOfficeWish(add_ons={"parking": 1})
        await service.sell(editor, event, ["S-A-1"], PaidBy.CASH, booking_id=number, wish=wish)
        await service.sell(editor, event, ["S-A-2"], PaidBy.FREE, booking_id=gift, **buyer)
        for seats, paid_by, asked, booking_id in (
            (["S-A-3"], PaidBy.CASH, wish, number),
            (["S-A-1", "S-A-3"], PaidBy.CASH, wish, number),
            (["S-A-1"], PaidBy.CARD_READER, wish, number),
            (["S-A-1"], PaidBy.FREE, wish, number),
            (["S-A-1"], PaidBy.CASH, BoxOfficeWish(), number),
            (["S-A-1"], PaidBy.CASH, BoxOfficeWish(add_ons={"parking": 2}), number),
            (["S-A-2"], PaidBy.CASH, BoxOfficeWish(), gift),
        ):
            with pytest.raises(IdempotencyMismatch):
                await service.sell(editor, event, seats, paid_by, booking_id=booking_id, wish=asked, **buyer)
        same = await service.sell(editor, event, ["S-A-1"], PaidBy.CASH, booking_id=number, wish=wish)
        assert (same.id, same.seats) == (number, (0,))
        assert (await service.sell(editor, event, ["S-A-2"], PaidBy.FREE, booking_id=gift, **buyer)).id == gift


async def test_a_repeated_sale_at_another_price_is_refused(tmp_path):
    """A ticket type that was not named again, or another code, was answered with the sale that had been made."""
    async with an_organiser_api(tmp_path, Role.OWNER) as api:
        options = {
            "ticket_types": [
                {"key": "adult", "name": "Adult"},
                {"key": "child", "name": "Child", "basis_points": 5000},
            ],
            "discounts": [{"code": "TEN", "basis_points": 1000}],
        }
        assert (await api.ask("PATCH", f"{EVENTS}/{api.event}", json=options)).status_code == 200
        service, ledger = api.platform.organiser.box_office_sales, api.platform.ledger
        event = await ledger.catalogue.event(api.event)
        editor, child = Editor(api.person.id, event.organiser_id), {"S-A-1": "child"}
        number, other = service.new_booking_id(), service.new_booking_id()
        sales = {number: BoxOfficeWish(types=child, code="ten"), other: BoxOfficeWish()}
        for at, (booking_id, wish) in enumerate(sales.items(), start=1):
            await service.sell(editor, event, [f"S-A-{at}"], PaidBy.CASH, booking_id=booking_id, wish=wish)
        for at, booking_id, asked in (
            (1, number, BoxOfficeWish(code="TEN")),
            (1, number, BoxOfficeWish(types=child)),
            (1, number, BoxOfficeWish(types={"S-A-1": "adult"}, code="TEN")),
            (2, other, BoxOfficeWish(code="TEN")),
            (2, other, BoxOfficeWish(types={"S-A-2": "child"})),
        ):
            with pytest.raises(IdempotencyMismatch):
                await service.sell(editor, event, [f"S-A-{at}"], PaidBy.CASH, booking_id=booking_id, wish=asked)
        for at, (booking_id, wish) in enumerate(sales.items(), start=1):
            again = await service.sell(editor, event, [f"S-A-{at}"], PaidBy.CASH, booking_id=booking_id, wish=wish)
            assert again.id == booking_id
        named = BoxOfficeWish(types={"S-A-2": "adult"})
        assert (await service.sell(editor, event, ["S-A-2"], PaidBy.CASH, booking_id=other, wish=named)).id == other


async def test_nothing_is_sold_of_an_event_that_is_over_and_no_more_than_a_sale_may_have(tmp_path):
    async with an_organiser_api(tmp_path, Role.OWNER) as desk:
        service, ledger = desk.platform.organiser.box_office_sales, desk.platform.ledger
        event = await ledger.catalogue.event(desk.event)
        editor = Editor(desk.person.id, event.organiser_id)
        for status in (EventStatus.DRAFT, EventStatus.COMPLETED, EventStatus.CANCELLED):
            with pytest.raises(NotOnSale) as refused:
                await service.sell(editor, replace(event, status=status), ["S-A-1"], PaidBy.CASH)
            assert refused.value.about["reason"] == status.value
        seats = [f"S-A-{number}" for number in range(MAX_SEATS_PER_SALE + 1)]
        for many in ([], seats):
            with pytest.raises(InvalidInput, match="sell 1 to 50 seats"):
                await service.sell(editor, event, many, PaidBy.CASH)
        sold_out = replace(event, status=EventStatus.SOLD_OUT)
        assert (await service.sell(editor, sold_out, ["S-A-1"], PaidBy.CASH)).state is BookingState.CONFIRMED


async def test_a_sale_that_the_ledger_refuses_leaves_no_claim(tmp_path):
    """The claim store did not know of a hold. The seat is free for others as soon as that hold ends."""
    async with an_organiser_api(tmp_path, Role.OWNER) as desk:
        platform = desk.platform
        event = await platform.ledger.catalogue.event(desk.event)
        now_us = platform.clock()
        await platform.ledger.place_hold(NewHold(f"bkg_{1:026d}", event.id, "fan", (0,), now_us, now_us + 10**8))
        editor = Editor(desk.person.id, event.organiser_id)
        with pytest.raises(SeatsTaken):
            await platform.organiser.box_office_sales.sell(editor, event, ["S-A-1"], PaidBy.CASH)
        claim = SeatClaim(event.id, (0,), "fan", f"bkg_{1:026d}", now_us + 10**8)
        assert isinstance(await platform.organiser.box_office_sales._claims.claim(claim, now_us), ClaimedSeats)


async def test_what_was_paid_at_the_box_office_is_not_refunded_by_the_buyers_click(tmp_path):
    """It was "refunded" at once, and nobody handed out any cash. Staff still can, and hands it out."""
    async with an_organiser_api(tmp_path, Role.OWNER) as api:
        path, platform = f"{EVENTS}/{api.event}/desk-sales", api.platform
        for seat, paid_by in (("S-A-1", "cash"), ("S-A-2", "card_reader")):
            made = await api.post(path, 201, json={"seats": [seat], "paid_by": paid_by, "email": "ada@example.org"})
            own = {"frontrow-booking": booking_token(platform.secrets, made["booking"])}
            address = f"/v1/bookings/{made['booking']}"
            for ask in (
                api.client.post(f"{address}/cancel", headers=own),
                api.client.post(f"{address}/refunds", json={"seats": [seat]}, headers=own),
                api.client.post(f"{address}/returns", json={"seats": [seat]}, headers=own),
                api.client.get(f"{address}/refund-quote", headers=own),
            ):
                answer = await ask
                assert (answer.status_code, answer.json()["code"]) == (409, "paid_at_box_office")
            api.client.cookies.set("frontrow_bookings", own["frontrow-booking"])
            page = await api.client.get(f"/bookings/{made['booking']}", headers={"accept": "text/html"})
            assert "paid at the box office" in page.text
            assert "Which tickets?" not in page.text
            api.client.cookies.delete("frontrow_bookings")
            booking = await platform.ledger.booking(made["booking"])
            assert booking.state is BookingState.CONFIRMED
            with pytest.raises(PaidAtBoxOffice):
                await platform.box_office.refunds.refund(booking.id, booking.fence)
            refund = await api.post(f"{EVENTS}/{api.event}/bookings/{booking.id}/refunds", 201, json={})
            await platform.box_office.refunds.work()
            (done,) = await platform.ledger.payments.refunds_of(booking.id)
            assert (done.id, done.state) == (refund["refund"], RefundState.DONE)
        guest = await api.post(
            path, 201, json={"seats": ["S-A-3"], "paid_by": "free", "name": "Bob", "email": "bob@example.org"}
        )
        own = {"frontrow-booking": booking_token(platform.secrets, guest["booking"])}
        freed = await api.client.post(f"/v1/bookings/{guest['booking']}/cancel", headers=own)
        assert freed.status_code in (200, 201), "free tickets can be given back: there is no money in it"
