"""The pages after buying: the order in people's words, used tickets, the amount of a refund before it is asked for."""

from pathlib import Path

from frontrow.boxoffice.gate.model.scans import Scan
from frontrow.boxoffice.holds.model.bookings import booking_number
from frontrow.boxoffice.messages.model.messages import Contact
from frontrow.boxoffice.refunds.model.refund_policy import RefundPolicy
from frontrow.core.clock import US_PER_S
from frontrow.testing.clock import ManualClock
from frontrow.web.http.access import booking_token
from tests.support.browser_headers import BROWSER, FORM
from tests.support.form_answers import submit
from tests.support.pdf_letters import core_texts
from tests.web.api.support import EVENT_ID, a_client, a_platform, put_event
from tests.web.site.purchases import NOW_US, STARTS_US, buy

KEEPS_A_FEE = RefundPolicy(fee_per_seat_minor=250, fee_basis_points=1_000)


async def test_an_order_is_written_as_people_say_it_and_a_used_ticket_says_so(tmp_path: Path) -> None:
    clock = ManualClock(NOW_US)
    async with a_platform(tmp_path, clock=clock) as platform, a_client(platform) as client:
        booking_id = await buy(platform, "S-A-1", "S-A-2")
        await platform.ledger.messages.put_contact(Contact("fan_ada", "ada@example.org"), NOW_US)
        client.cookies.set("frontrow_bookings", booking_token(platform.secrets, booking_id))
        page = (await client.get(f"/bookings/{booking_id}", headers=BROWSER)).text
        assert "Monday, 25 January 2027 at 09:00 (Vienna time)" in page
        assert "€100" in page
        assert "ada@example.org" in page
        assert page.count(">Valid<") == 2
        assert f"<bdi>{booking_number(booking_id)}</bdi>" in page  # as the organiser sees it, not the long id
        # the organiser's name of the section, wherever a fan reads it; its id is for machines
        assert page.count("Stalls") >= 2
        sheets = await platform.box_office.renderer.sheets(booking_id)
        assert sheets[0].parts == ("Stalls", "A", "1")
        assert {"Stalls", booking_number(booking_id)} <= set(
            core_texts(await platform.box_office.renderer.pdf(booking_id))
        )
        assert r"Stalls\, Row A\, Seat 1" in (await platform.box_office.renderer.calendar(booking_id)).decode()
        german = (await client.get(f"/bookings/{booking_id}", headers=BROWSER | {"accept-language": "de"})).text
        assert "Montag, 25. Januar 2027" in german
        entry = await client.get(f"/bookings/{booking_id}/tickets.ics", headers=BROWSER | {"accept-language": "de"})
        assert r"Stalls\, Reihe A\, Platz 1" in entry.text
        assert "100\xa0€" in german

        first, _ = await platform.ledger.tickets.tickets_of(booking_id)
        admitted_us = STARTS_US - 18 * 60 * US_PER_S
        await platform.ledger.organiser.admit(Scan("s1", EVENT_ID, first.id, "north", admitted_us))
        page = (await client.get(f"/bookings/{booking_id}", headers=BROWSER)).text
        assert page.count(">Valid<") == 1
        assert "Used at 08:42" in page
        assert page.count('type="checkbox" name="seat"') == 1  # only the other one can be returned


async def test_a_place_to_stand_has_no_row_wherever_a_fan_reads_it(tmp_path: Path) -> None:
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        booking_id = await buy(platform, "F-GA-1")
        client.cookies.set("frontrow_bookings", booking_token(platform.secrets, booking_id))
        sent = await client.post(
            f"/bookings/{booking_id}/transfers",
            data={"seat": "F-GA-1", "email": "grace@example.org"},
            headers=BROWSER | FORM,
        )
        assert sent.status_code == 303
        page = (await client.get(f"/bookings/{booking_id}", headers=BROWSER)).text
        receipt = (await client.get(f"/bookings/{booking_id}/receipt", headers=BROWSER)).text
        calendar = (await platform.box_office.renderer.calendar(booking_id)).decode()
        ((section, _, _),) = [sheet.parts for sheet in await platform.box_office.renderer.sheets(booking_id)]
        assert f"{section}, standing" in page
        assert f"{section}, standing: sent to grace@example.org" in page
        assert f"{section}, standing" in receipt
        assert rf"{section}\, standing" in calendar  # a comma is escaped in this format
        for shown in (page.replace('value="F-GA-1"', ""), receipt, calendar):
            assert not any(code in shown for code in ("F-GA-1", "Row GA", ">GA<"))


async def test_the_amount_is_shown_before_a_refund_and_another_one_is_never_paid(tmp_path: Path) -> None:
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        await put_event(platform, refunds=KEEPS_A_FEE)
        booking_id = await buy(platform, "S-A-1", "S-A-2")
        token = booking_token(platform.secrets, booking_id)
        client.cookies.set("frontrow_bookings", token)
        path = f"/bookings/{booking_id}"
        shown = (await client.get(f"{path}/return?seat=S-A-1&how=refund", headers=BROWSER)).text
        assert "€42.50" in shown
        assert "€7.50" in shown  # 2.50 per ticket and a tenth of 50.00
        quoted = await client.get(f"/v1{path}/refund-quote?seat=S-A-1", headers={"frontrow-booking": token})
        said = quoted.json()
        lines = [(line["kind"], line["seats"], line["amount"]["amount_minor"]) for line in said.pop("lines")]
        assert lines == [("seat", ["S-A-1"], 5000), ("refund_fee", [], -750)]
        assert said == {
            "seats": ["S-A-1"],
            "amount": {"amount_minor": 4250, "currency": "EUR"},
            "fee": {"amount_minor": 750, "currency": "EUR"},
            "kept": {"amount_minor": 5000, "currency": "EUR"},
            "number": 1,
        }
        ask = {"seat": "S-A-1", "how": "refund"}
        for amount in ("", "5000", "rubbish"):
            refused = await submit(client, f"{path}/give-back", ask | {"amount": amount})
            assert refused.status_code == 409
            assert "The amount has changed" in refused.text
        assert await platform.ledger.payments.refunds_of(booking_id) == []
        asked = await client.post(f"{path}/give-back", data=ask | {"amount": "4250"}, headers=FORM)
        assert asked.status_code == 303
        assert [one.amount_minor for one in await platform.ledger.payments.refunds_of(booking_id)] == [4250]
        resale = (await client.get(f"{path}/return?seat=S-A-2&how=pool", headers=BROWSER)).text
        assert "€50" in resale  # somebody pays the whole price for it
        assert (await client.get(f"{path}/return?seat=S-A-1&how=refund", headers=BROWSER)).status_code == 409
        assert (await client.get(f"{path}/return", headers=BROWSER)).status_code == 409


async def test_b17_the_pictures_of_a_page_do_not_use_up_the_limit_of_its_reader(tmp_path: Path) -> None:
    async with a_platform(tmp_path, per_person="3/hour") as platform, a_client(platform) as client:
        booking_id = await buy(platform, "S-A-1", "S-A-2")
        client.cookies.set("frontrow_bookings", booking_token(platform.secrets, booking_id))
        codes = [ticket.id for ticket in await platform.ledger.tickets.tickets_of(booking_id)]
        pictures = [await client.get(f"/bookings/{booking_id}/qr/{one}", headers=BROWSER) for one in codes * 5]
        pages = [await client.get(f"/bookings/{booking_id}", headers=BROWSER) for _ in range(4)]
        assert [answer.status_code for answer in pictures] == [200] * 10
        assert [answer.status_code for answer in pages] == [200, 200, 200, 429], "the page itself counts"
