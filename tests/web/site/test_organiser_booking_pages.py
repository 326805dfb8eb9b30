"""The organiser's pages without a browser (B12, B13): who sees what, what every form does, and the byte budget."""

import re
from pathlib import Path

from frontrow.boxoffice.events.model.event_changes import Change, Editor
from frontrow.boxoffice.holds.model.bookings import BookingState, booking_number
from frontrow.boxoffice.people.model.roles import Role
from frontrow.boxoffice.tickets.model.ticket_transfers import TransferState
from frontrow.web.site.assets import Assets, site_assets
from tests.boxoffice.organiser.http import a_venue_body
from tests.boxoffice.organiser.site import a_site
from tests.support.browser_headers import BROWSER
from tests.support.built_files import built_web

PARKING = {"key": "parking", "name": "Parking", "price_minor": 1200}
LIVE_SCRIPT_BYTES = 80 * 1024
ABOUT_EVENT = ("live", "reports", "reports/report.xlsx", "bookings", "waitlist", "exports", "exports/bookings.csv")
ABOUT_ORGANISER = ("/organiser/team", "/organiser/audit", "/organiser/webhooks")
RUBBISH = (
    "after=%00",
    "after=zzz",
    "q=%F0%9F%92%A9",
    "q=a@",
    "state=nope",
    "do=refund&seat=x",
    "do=move&to=x",
    "done=zz",
)


def test_the_scripts_of_the_live_page_keep_their_budget(tmp_path: Path) -> None:
    assets = Assets(built_web(tmp_path) / "static")
    files = [*assets.with_imports("js/organiser/live.js"), "js/organiser/language.js", "vendor/uplot/uPlot.iife.min.js"]
    sent = {path: len(assets.files[path].gzipped or assets.files[path].body) for path in files}
    assert len(sent) == 10
    assert sum(sent.values()) <= LIVE_SCRIPT_BYTES, sent


async def test_b13_each_page_is_for_who_may_and_for_the_own_organiser_only(tmp_path: Path) -> None:
    async with a_site(tmp_path) as owner:
        paths = [*(f"{owner.base}/{page}" for page in ABOUT_EVENT), *ABOUT_ORGANISER]
        for path in paths:
            await owner.get(path)
            nobody = await owner.api.client.get(path, headers=BROWSER)
            assert nobody.headers["location"] == f"/organiser/sign-in?back={path}"
        gatekeeper = await owner.as_(Role.DOOR)
        for path in paths:
            assert "Your role does not allow this" in await gatekeeper.get(path, 403)
        stranger = await owner.as_(Role.OWNER, "org_other", "stranger")
        for page in ABOUT_EVENT:
            await stranger.get(f"{owner.base}/{page}", 404)
        reader = await owner.as_(Role.READ_ONLY)
        shown = await reader.get(f"{owner.base}/live")
        assert "data-opens" not in shown  # looks, but has no levers
        assert "Waiting now" in shown


async def test_b16_the_audit_says_what_was_changed_from_what_to_what(tmp_path: Path) -> None:
    async with a_site(tmp_path) as owner:
        path = f"/v1/organiser/events/{owner.api.event}"
        answer = await owner.api.ask("PATCH", path, json={"name": "Borealis", "max_per_person": 3})
        assert answer.status_code == 200, answer.text
        text = await owner.get("/organiser/audit")
        assert "Name: from Aurora to Borealis" in text
        assert re.search(r"Seats per person: from \d+ to 3", text)
        fees = [{"name": "Service", "per_seat_minor": 250, "per_booking_minor": 100, "basis_points": 500}]
        answer = await owner.api.ask("PATCH", path, json={"fees": fees, "add_ons": [PARKING], "reentry": True})
        assert answer.status_code == 200, answer.text
        text = await owner.get("/organiser/audit")
        assert "Fees: from – to Service 2.50 EUR per seat 1.00 EUR per booking 5 %" in text
        assert re.search(r"Add-ons: from – to [^<]*Parking 12.00 EUR", text)
        assert "Exit and re-entry: from no to yes" in text


async def test_b16_an_audit_without_entries_says_so_and_a_search_leads_back_to_all(tmp_path: Path) -> None:
    async with a_site(tmp_path) as owner:
        nothing, no_match = "No changes yet. What your team changes is listed here.", "No entries match."
        text = await owner.get("/organiser/audit")
        assert nothing in text
        assert "Show all entries" not in text
        searched = await owner.get("/organiser/audit?act=refund")
        assert no_match in searched
        assert "Show all entries" in searched
        assert nothing not in searched
        path = f"/v1/organiser/events/{owner.api.event}"
        assert (await owner.api.ask("PATCH", path, json={"name": "Borealis"})).status_code == 200
        changed = await owner.get("/organiser/audit")
        assert nothing not in changed
        assert no_match not in changed


async def test_b16_the_audit_shows_names_and_numbers_and_no_ids(tmp_path: Path) -> None:
    async with a_site(tmp_path) as owner:
        booking, path = await owner.api.bought("S-A-1"), f"/v1/organiser/events/{owner.api.event}"
        ledger, clock = owner.api.platform.ledger, owner.api.platform.clock
        venue = await owner.api.post("/v1/organiser/venues", 201, json=a_venue_body(name="The Blue Room"))
        rules = {"lanes": [{"name": "general"}, {"name": "members", "weight": 3}], "human": "none"}
        await owner.api.ask("PATCH", path, json={"room": rules})
        hooked = {"url": "https://example.org/hook", "event": owner.api.event}
        hook = await owner.api.post("/v1/organiser/webhooks", 201, json=hooked)
        editor = Editor("stf_ada", "org_hall")
        for act, detail in (
            ("create_event", {"venue": venue["venue"], "like": owner.api.event}),
            ("publish_event", {"status": "on_sale", "paused": False}),
            ("refund", {"booking": booking.id, "refund": f"rfd_{booking.id}_1", "amount_minor": 500}),
            ("desk_sale", {"booking": booking.id, "paid_by": "card_reader", "seats": 2}),
            ("test_webhook", {"webhook": hook["webhook"]}),
            ("change_event", {"fields": ["picture"], "changes": {"picture": ["", "6e003724f301"]}}),
        ):
            await ledger.organiser.note(Change(editor, act, owner.api.event, clock(), detail))
        text = await owner.get("/organiser/audit")
        said = [re.sub(r"<[^>]+>", "", one).strip() for one in re.findall(r"<li>(.*?)</li>", text, re.DOTALL)]
        said = [" ".join(one.split()) for one in said if ":" in one]
        for line in (
            "Venue: The Blue Room",
            "Copied from: Aurora",
            "State: On sale now",
            f"Booking: {booking_number(booking.id)}",
            "Paid by: Card reader",
            "Changed: Picture",
            "Webhook: https://example.org/hook",
            "Waiting room: from – to general (share 1), members (share 3)",
        ):
            assert line in said, f"{line}: {said}"
        assert not [one for one in said if re.search(r"(evt|ven|bkg|rfd|msg|whk)_|[0-9a-f]{12}", one)]


async def test_b13_the_set_up_is_summed_up_in_words(tmp_path: Path) -> None:
    async with a_site(tmp_path) as owner:
        path = f"/v1/organiser/events/{owner.api.event}"
        await owner.api.ask("PATCH", path, json={"description": "# A night\n\n**Three** players"})
        text = await owner.get(owner.base)
        assert "A night Three players" in text
        assert "One queue for everyone" in text
        assert f'href="/events/{owner.api.event}"' in text, "the page that fans see is one click away"
        written = await owner.get(f"{owner.base}/messages?booking=bkg_01M7KNYTF4C1F75WQMMRN854WF")
        assert "One booking: MRN854WF" in written


async def test_dates_of_one_show_are_told_apart_where_an_event_is_chosen(tmp_path: Path) -> None:
    async with a_site(tmp_path) as owner:
        dates = {"dates": ["2040-05-07T19:30:00", "2040-05-08T19:30:00"]}
        added = await owner.api.ask("POST", f"/v1/organiser/events/{owner.api.event}/dates", json=dates)
        assert added.status_code < 300, added.text
        for path in ("/organiser/webhooks", "/organiser/audit"):
            options = re.findall(r"<option [^>]*>([^<]*Aurora[^<]*)</option>", await owner.get(path))
            assert len(options) == len(set(options)) == 3, options


def test_one_small_font_for_western_letters_with_the_measures_of_its_fallback() -> None:
    assets = site_assets()
    assert len(assets.files["vendor/inter/inter.woff2"].body) <= 40 * 1024
    sheet = assets.files["css/site.css"].body.decode()
    assert "../vendor/inter/inter.woff2" in sheet
    assert "ascent-override" in sheet
    assert "size-adjust" in sheet
    assert "SIL OPEN FONT LICENSE" in assets.files["vendor/inter/LICENSE.txt"].body.decode().upper()


async def test_rubbish_in_the_address_breaks_no_page(tmp_path: Path) -> None:
    async with a_site(tmp_path) as owner:
        booking = await owner.api.bought("S-A-1")
        about = (f"{owner.base}/{page}" for page in ("live", "bookings", f"bookings/{booking.id}", "waitlist"))
        for path in (*about, *ABOUT_ORGANISER):
            for query in RUBBISH:
                await owner.get(f"{path}?{query}")
        await owner.get(f"{owner.base}/bookings/bkg_nothing", 404)
        await owner.get(f"{owner.base}/exports/people.csv", 404)


async def test_b13_bookings_are_found_by_address_number_seat_and_state(tmp_path: Path) -> None:
    async with a_site(tmp_path) as owner:
        eve = await owner.api.bought("S-A-1", email="eve@example.org")
        bob = await owner.api.bought("B-A-1", fan="fan_bob", email="bob@example.org", pay="")
        for query, found, missed in (
            ("q=EVE@example.org", eve, bob),
            (f"q={bob.id}", bob, eve),
            ("q=S+A+1", eve, bob),
            ("q=B-A-1", bob, eve),
            ("state=confirmed", eve, bob),
            ("state=held", bob, eve),
        ):
            text = await owner.get(f"{owner.base}/bookings?{query}")
            assert (f"/bookings/{found.id}" in text, f"/bookings/{missed.id}" in text) == (True, False), query


async def test_b12_a_refund_shows_its_amount_first_needs_a_reason_in_full_and_is_noted(tmp_path: Path) -> None:
    async with a_site(tmp_path) as owner:
        booking = await owner.api.bought("S-A-1", "S-A-2")
        one = f"{owner.base}/bookings/{booking.id}"
        assert "€50" in await owner.get(f"{one}?do=refund&seat=S-A-1")
        refused = await owner.post(f"{one}/refund", 409, how="full", seat=["S-A-1"])
        assert "Enter a reason" in refused.text
        assert await owner.api.platform.ledger.payments.refunds_of(booking.id) == []
        await owner.post(f"{one}/refund", how="full", seat=["S-A-1"], reason="ill")
        (refund,) = await owner.api.platform.ledger.payments.refunds_of(booking.id)
        assert (refund.amount_minor, refund.reason) == (5000, "organiser:ill")
        assert "Refund" in await owner.get("/organiser/audit?act=refund")
        reader = await owner.as_(Role.READ_ONLY)
        await reader.post(f"{one}/refund", 403, how="full", seat=["S-A-2"], reason="greed")
        await owner.post(f"{one}/refund", 409, how="policy", seat=["B-A-1"])  # not a seat of this booking
        assert len(await owner.api.platform.ledger.payments.refunds_of(booking.id)) == 1


async def test_b13_a_booking_moves_is_sent_again_and_a_hold_is_cancelled(tmp_path: Path) -> None:
    async with a_site(tmp_path) as owner:
        ledger = owner.api.platform.ledger
        booking = await owner.api.bought("S-A-1", email="eve@example.org")
        one = f"{owner.base}/bookings/{booking.id}"
        free = await owner.get(f"{one}?do=reseat&seat=S-A-1&section=S")
        assert 'value="S-A-3"' in free
        assert 'name="to" value="S-A-1"' not in free
        assert "S-A-3" in await owner.get(f"{one}?do=move&seat=S-A-1&to=S-A-3")
        await owner.post(f"{one}/reseat", seat=["S-A-1"], to=["S-A-3"])
        plan = await owner.api.platform.organiser.organise.venues.plan(
            (await ledger.catalogue.event(owner.api.event)).plan_hash
        )
        moved = await ledger.booking(booking.id)
        assert moved is not None
        assert [plan.seat_id(seat) for seat in moved.seats] == ["S-A-3"]
        await owner.post(f"{one}/reseat", 409, seat=["S-A-3"], to=["S-A-4", "S-A-5"])
        assert (await owner.post(f"{one}/resend")).headers["location"].endswith("done=resend")
        await owner.post(f"{one}/cancel", 409)  # it is paid: that would be a refund
        held = await owner.api.bought("B-A-1", fan="fan_b", pay="")
        await owner.post(f"{owner.base}/bookings/{held.id}/cancel")
        ended = await ledger.booking(held.id)
        assert ended is not None
        assert ended.state is BookingState.CANCELLED


async def test_b13_staff_transfer_a_ticket_for_whoever_has_it(tmp_path: Path) -> None:
    async with a_site(tmp_path) as owner:
        platform = owner.api.platform
        transfers, book = platform.box_office.transfers, platform.ledger.transfers
        booking = await owner.api.bought("S-A-1", "S-A-2", email="eve@example.org")
        one = f"{owner.base}/bookings/{booking.id}"
        assert 'value="S-A-2"' in (await owner.get(one)).partition('id="d-transfer"')[2]
        await owner.post(f"{one}/transfer", 409, seat="S-A-2", email="no address")
        sent = await owner.post(f"{one}/transfer", seat="S-A-2", email="bob@example.org")
        assert sent.headers["location"].endswith("done=transfer")
        (first,) = await book.transfers_of(booking.id)
        assert (first.email, first.from_transfer, first.state) == ("bob@example.org", "", TransferState.SENT)
        refused = await owner.post(f"{one}/transfer", 409, seat="S-A-2", email="cleo@example.org")
        assert "already on its way to somebody" in refused.text
        await transfers.accept(first.id, "Bob", "en")
        await owner.post(f"{one}/transfer", seat="S-A-2", email="cleo@example.org")
        second = (await book.transfers_of(booking.id))[-1]
        assert second.from_transfer == first.id, "Bob has it, and it goes on from him"
        assert "Ticket sent to someone else" in await owner.get("/organiser/audit?act=transfer_ticket")
        reader = await owner.as_(Role.READ_ONLY)
        assert "d-transfer" not in await reader.get(one)
        await reader.post(f"{one}/transfer", 403, seat="S-A-1", email="greed@example.org")
        path = f"/v1/organiser/events/{owner.api.event}"
        assert (await owner.api.ask("PATCH", path, json={"transfers_allowed": False})).status_code == 200
        assert "d-transfer" not in await owner.get(one)


async def test_a_form_without_the_sessions_word_does_nothing(tmp_path: Path) -> None:
    async with a_site(tmp_path) as owner:
        booking = await owner.api.bought("S-A-1")
        paths = [
            f"{owner.base}/bookings/{booking.id}/{act}" for act in ("refund", "reseat", "cancel", "resend", "transfer")
        ]
        for path in (*paths, "/organiser/team/invite", "/organiser/team/keys", "/organiser/webhooks"):
            await owner.post(path, 403, csrf="wrong")
        assert await owner.api.platform.ledger.payments.refunds_of(booking.id) == []


async def test_b13_the_team_is_invited_changed_removed_and_keys_are_told_once(tmp_path: Path) -> None:
    async with a_site(tmp_path) as owner:
        await owner.post("/organiser/team/invite", email="new@example.org", role="door")
        assert "new@example.org" in await owner.get("/organiser/team")
        taken = await owner.post(
            "/organiser/team/invite",
            422,
            email=owner.api.person.staff.email,
            role="door",  # type: ignore[union-attr]
        )
        assert "already has an account" in taken.text
        colleague = await owner.as_(Role.BOX_OFFICE)
        member = f"/organiser/team/members/{colleague.api.person.id}"
        await owner.post(f"{member}/role", role="manager")
        await owner.post(f"{member}/reset")
        await owner.post(f"{member}/remove")
        await owner.post(f"/organiser/team/members/{owner.api.person.id}/remove", 422)  # the last owner
        made = await owner.post("/organiser/team/keys", 200, name="Door app", scope=["door:scan"], life="30")
        secret = made.text.partition('id="secret">')[2].partition("<")[0]
        assert secret.startswith("frk_")
        assert await owner.api.platform.people.sessions.find_key(secret) is not None
        listed = await owner.get("/organiser/team")
        assert secret not in listed
        key = listed.partition("/organiser/team/keys/")[2].partition("/")[0]
        await owner.post(f"/organiser/team/keys/{key}/revoke")
        assert await owner.api.platform.people.sessions.find_key(secret) is None
        await owner.post("/organiser/team/keys", 422, name="Nothing")  # no scope


async def test_b15_a_webhook_is_made_tested_sent_again_and_removed(tmp_path: Path) -> None:
    async with a_site(tmp_path) as owner:
        url = "https://hooks.example.org/frontrow"
        made = await owner.post("/organiser/webhooks", 200, url=url, event=owner.api.event, fact=["BookingConfirmed"])
        assert 'id="secret">whsec_' in made.text
        listed = await owner.get("/organiser/webhooks")
        assert "whsec_" not in listed
        hook = f"/organiser/webhooks/{listed.partition('/organiser/webhooks/whk_')[2].partition(chr(34))[0]}"
        hook = hook.replace("/webhooks/", "/webhooks/whk_")
        await owner.post(f"{hook}/test")
        shown = await owner.get(hook)
        assert "fct_test-" in shown
        again = shown.partition(f"{hook}/deliveries/")[2].partition('"')[0]
        await owner.post(f"{hook}/deliveries/{again}")
        assert 'id="secret">whsec_' in (await owner.post(f"{hook}/rotate", 200)).text
        bad = await owner.post("/organiser/webhooks", 422, url="http://10.0.0.1/x", event=owner.api.event)
        assert "cannot be used" in bad.text
        stranger = await owner.as_(Role.OWNER, "org_other", "stranger")
        await stranger.get(hook, 404)
        await owner.post(f"{hook}/remove")
        await owner.get(hook, 404)


async def test_the_audit_says_that_the_chain_is_whole_and_notes_every_download(tmp_path: Path) -> None:
    async with a_site(tmp_path) as owner:
        await owner.api.bought("S-A-1", email="eve@example.org")
        assert (await owner.get(f"{owner.base}/exports/attendees.csv")).startswith("\ufeffemail,seat,")
        text = await owner.get("/organiser/audit")
        assert "Chain verified" in text
        assert "Table exported" in text
        assert "eve@example.org" not in text
        assert "Table exported · " not in await owner.get(f"/organiser/audit?event={owner.api.event}&act=refund")
        await owner.post("/organiser/audit/check")


async def test_b11_the_waitlists_rule_is_set_once(tmp_path: Path) -> None:
    async with a_site(tmp_path) as owner:
        path = f"{owner.base}/waitlist"
        assert (await owner.post(f"{path}/rules", order="lottery")).headers["location"].endswith("done=rules")
        assert "Published hash of the lot" in await owner.get(path)
        assert (await owner.post(f"{path}/rules", order="fifo")).headers["location"].endswith("refused=1")
        await owner.post(f"{path}/rules", 422, order="by name")


async def test_the_box_office_sells_picked_seats_says_what_is_wrong_and_shows_the_day(tmp_path: Path) -> None:
    async with a_site(tmp_path) as owner:
        path = f"{owner.base}/sell"
        shown = await owner.get(path)
        assert "Nothing was sold here today" in shown
        number = shown.partition('name="booking" value="')[2].partition('"')[0]
        assert "€100" in await owner.get(f"{path}/price.json?seats=S-A-1%20S-A-2")
        sale: dict[str, str | list[str]] = {"seats": "S-A-1 S-A-2", "paid_by": "cash", "booking": number}
        where = [(await owner.post(path, **sale)).headers["location"] for _ in range(2)]  # pressed twice: sold once
        assert where == [f"{owner.base}/bookings/{number}?done=sold"] * 2
        sold = await owner.get(where[0])
        assert "Sold. The seats are booked." in sold
        assert "Cash" in sold
        assert "Give the money back in cash." in await owner.get(f"{owner.base}/bookings/{number}?do=refund&seat=S-A-1")
        pdf = await owner.api.client.get(f"{owner.base}/bookings/{number}/tickets.pdf", headers=owner.headers)
        assert pdf.content.startswith(b"%PDF")
        assert "€100" in await owner.get(path)
        for wrong, words in (
            ({"seats": "S-A-1", "paid_by": "cash"}, "Someone was faster"),
            ({"seats": "", "paid_by": "cash"}, "Choose at least one seat"),
            ({"seats": "S-B-1", "paid_by": "free", "name": "Ada"}, "Enter the email address"),
            ({"seats": "S-B-1", "paid_by": "free", "email": "a@example.org"}, "Free tickets need the guest"),
            ({"seats": "S-Z-99", "paid_by": "cash"}, "no such seat"),
        ):
            refused = await owner.post(path, 409, booking="", **wrong)
            assert words in refused.text, wrong
        options = {
            "ticket_types": [
                {"key": "adult", "name": "Adult"},
                {"key": "child", "name": "Child", "basis_points": 5000},
            ],
            "add_ons": [{"key": "parking", "name": "Parking", "price_minor": 800, "stock": 1}],
            "discounts": [{"code": "TEN", "basis_points": 1000}],
        }
        own = f"/v1/organiser/events/{owner.api.event}"
        assert (await owner.api.ask("PATCH", own, json=options)).status_code == 200
        assert 'name="add-parking" value=""' in await owner.get(path)
        wish: dict[str, str | list[str]] = {"seats": "S-B-1 S-B-2", "type-S-B-2": "child", "add-parking": "1"}
        asked = f"{path}/price.json?seats=S-B-1%20S-B-2&type-S-B-2=child&add-parking=1"
        assert "€83" in await owner.get(asked)
        assert "€0" in await owner.get(f"{asked}&paid_by=free")
        assert "not a code for this event" in await owner.get(f"{asked}&code=NO")
        assert "not a code for this event" in (await owner.post(path, 409, booking="", code="NO", **wish)).text
        await owner.post(path, booking="", **wish)
        again = await owner.post(
            path, 409, **wish | {"seats": "S-B-3", "booking": "", "type-S-B-2": "", "add-parking": "1"}
        )
        assert "Parking: none left." in again.text
        reader = await owner.as_(Role.READ_ONLY)
        await reader.get(path, 403)


async def test_a_sale_is_opened_now_by_one_button_and_its_presale_is_not_overtaken(tmp_path: Path) -> None:
    async with a_site(tmp_path) as owner:
        platform, event = owner.api.platform, owner.api.event
        later = "2098-01-01T10:00:00Z"
        moved = {"sale_starts_at": later, "sale_ends_at": "2098-06-01T10:00:00Z", "starts_at": "2098-07-01T10:00:00Z"}
        own = f"/v1/organiser/events/{event}"
        assert (await owner.api.ask("PATCH", own, json=moved)).status_code == 200
        assert "Put on sale now" in await owner.get(owner.base)
        assert (await owner.post(f"{owner.base}/open-now")).headers["location"].endswith("?done=opened")
        opened = await platform.ledger.catalogue.event(event)
        assert opened.sale_starts_at_us <= platform.clock()
        assert "Put on sale now" not in await owner.get(owner.base)
        await owner.post(f"{owner.base}/open-now")  # open already: nothing changes
        assert await platform.ledger.catalogue.event(event) == opened
        copied = (await owner.post(f"{owner.base}/copy", name="Again")).headers["location"].split("/")[3]
        draft = f"/v1/organiser/events/{copied}"
        presale = {"presale_starts_at": "2097-01-01T10:00:00Z", "sale_starts_at": later}
        assert (await owner.api.ask("PATCH", draft, json=presale)).status_code == 200
        refused = await owner.api.ask("POST", f"{draft}/open")
        assert (refused.status_code, refused.json()["code"]) == (409, "event_move_refused")
        assert (await owner.api.ask("PATCH", draft, json={"presale_starts_at": None})).status_code == 200
        page = f"/organiser/events/{copied}"
        assert "Publish and put on sale now" in await owner.get(f"{page}/preview")
        await owner.post(f"{page}/publish", now="1", capacity="100", rate="10")
        assert (await platform.ledger.catalogue.event(copied)).sale_starts_at_us <= platform.clock()
        assert "Sale opened early" in await owner.get("/organiser/audit")


async def test_a_venue_has_the_zone_it_names_or_that_of_its_city_and_none_is_guessed(tmp_path: Path) -> None:
    async with a_site(tmp_path) as owner:
        fields = {"name": "Hall", "country": "", "source": "template", "shape": "theatre", "seats": "200", "keep": "1"}

        async def zone(city: str, named: str = "") -> str:
            made = await owner.post("/organiser/venues/new", **fields, city=city, time_zone=named)
            venue_id = made.headers["location"].split("/")[3].partition("?")[0]
            venue = await owner.api.platform.ledger.catalogue.venue(venue_id)
            assert venue is not None
            return venue.time_zone

        assert await zone("Vienna") == "Europe/Vienna"
        assert await zone(" são paulo ") == "America/Sao_Paulo"
        assert await zone("New York") == "America/New_York"
        assert await zone("Vienna", "Asia/Tokyo") == "Asia/Tokyo"
        for city in ("Linz", ""):
            refused = await owner.post("/organiser/venues/new", 422, **fields, city=city, time_zone="")
            assert "Choose a time zone" in refused.text, city
        api, body = "/v1/organiser/venues", {"name": "Hall", "plan": {"generate": "theatre", "seats": 200}}
        assert (await owner.api.post(api, 201, json=body | {"city": "Vienna"}))["time_zone"] == "Europe/Vienna"
        refused_body = await owner.api.post(api, 422, json=body | {"city": "Linz"})
        assert refused_body["param"] == "time_zone"
        assert 'name="time_zone" value=""' in await owner.get("/organiser/venues/new")
