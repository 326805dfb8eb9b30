"""B10, B18: the gate in a browser. Camera, hand scanner and typed codes; every verdict; who may come; for everybody."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from frontrow.app.wiring import Platform
from frontrow.boxoffice.messages.model.messages import Contact
from tests.browser.gates import (
    CAMERA,
    OTHER,
    SHOW,
    TOMORROW,
    buy,
    comes_online,
    film,
    forged,
    goes_offline,
    inside,
    kept_offline,
    open_gate,
    patient,
    put_shows,
    refund,
    scan,
)
from tests.browser.looks import COLOURS, axe, bring_axe
from tests.browser.served import Site
from tests.browser.staff import staff
from tests.browser.steps import until
from tests.support.cable import Cable
from tests.support.chromium import launch

INSIDE = "() => Number(document.querySelector('#inside').textContent)"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("gate"), put_shows) as running:
        yield running


def listened(page: Page) -> list[str]:
    """What the console complains about from now on."""
    told: list[str] = []
    page.on("console", lambda one: told.append(one.text) if one.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: told.append(str(error)))
    return told


def test_b10_the_camera_reads_a_ticket_once_and_lets_it_in(browser: Browser, site: Site, tmp_path: Path) -> None:
    (ticket,) = buy(site)
    film(tmp_path / "ticket.y4m", ticket.code)
    before = inside(site)
    seen_file = f"--use-file-for-fake-video-capture={tmp_path / 'ticket.y4m'}"
    with Cable(site.port) as cable, launch(browser.browser_type, args=[*CAMERA, seen_file]) as watching:
        context = watching.new_context(viewport={"width": 390, "height": 844}, permissions=["camera"])
        page = context.new_page()
        told = listened(page)
        staff(page, site, role="door")
        open_gate(page, site, cable=cable)
        expect(page.locator("#verdict")).to_have_attribute("data-verdict", "ok")
        expect(page.locator("#verdict-heading")).to_have_text("Welcome")
        seen = page.evaluate("window.frontrow.gate.scanner.frames")
        until(page, "(seen) => window.frontrow.gate.scanner.frames > seen + 5", seen)
        page.evaluate("window.frontrow.gate.scanner._seen_ms -= 60_000")  # a slow phone: long between two frames
        until(page, "(seen) => window.frontrow.gate.scanner.frames > seen + 7", seen)
        assert page.evaluate("window.frontrow.gate.measured.scans") == 1, "a code that stays in view is told once"
        expect(page.locator("#no-camera")).to_be_hidden()
        assert inside(site) == before + 1
        assert not told
        kept_offline(page)
        goes_offline(page, cable)
        page.reload()  # page, worker and WebAssembly come from this device
        expect(page.locator("#verdict")).to_have_attribute("data-verdict", "duplicate")
        expect(page.locator("#state")).to_contain_text("Offline since")
        comes_online(page, cable)
        page.on("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Undo").click()
        expect(page.locator("#recent")).to_contain_text("Undone")
        goes_offline(page, cable)
        page.reload()  # the same code again, now admitted by the gate alone
        expect(page.locator("#verdict")).to_have_attribute("data-verdict", "ok")
        expect(page.locator("#verdict-detail")).to_have_text("Checked offline.")
        assert inside(site) == before
        comes_online(page, cable)
        expect(page.locator("#waiting")).to_be_hidden()
        until(page, "async () => !(await window.frontrow.gate.sync._store.countWaiting('evt_show'))")
        assert inside(site) == before + 1


def test_b10_every_verdict_of_a_typed_code_is_said_in_words_colour_and_for_listeners(
    gate_page: Page, site: Site
) -> None:
    told = listened(gate_page)
    tickets = buy(site, 3)
    refund(site, tickets[2])
    open_gate(gate_page, site)
    before = inside(site)  # the page may not have been told yet
    panel = gate_page.get_by_role("alert").locator("visible=true")
    scan(gate_page, tickets[0].code.lower(), "ok")
    expect(panel).to_contain_text("Welcome")
    expect(panel).to_contain_text(", standing")
    colours = {"ok": gate_page.locator("#verdict").evaluate("(one) => getComputedStyle(one).backgroundColor")}
    for code, verdict, words in (
        (tickets[0].code, "duplicate", "gate North"),
        (buy(site, 1, OTHER)[0].code, "wrong_event", "Late Night Comedy"),
        (buy(site, 1, TOMORROW)[0].code, "wrong_day", "Wrong day"),
        (tickets[2].code, "refunded", "This ticket was refunded"),
        (forged(tickets[1].booking_id, tickets[1].seat_index), "forged", "Not our ticket"),
        (tickets[1].code[:-1], "unreadable", "Incomplete ticket code"),
        ("https://example.org/a-menu", "unreadable", "Not readable"),
        ("tkt_" + "0" * 26, "unsure", "No ticket of this show has this number."),
    ):
        scan(gate_page, code, verdict)
        expect(panel).to_contain_text(words)
        colours[verdict] = gate_page.locator("#verdict").evaluate("(one) => getComputedStyle(one).backgroundColor")
    assert len({colours[one] for one in ("ok", "duplicate", "wrong_event", "refunded", "unreadable")}) == 5
    number = tickets[1].id.removeprefix("tkt_").lower()
    scan(gate_page, f"{number[:13]} {number[13:]}", "look_up")  # as printed, with a space, without its prefix
    expect(panel).to_contain_text("A number alone lets nobody in.")
    assert inside(site) == before + 1
    gate_page.keyboard.press("Enter")  # a hand scanner's
    expect(gate_page.locator("#found input")).to_have_count(1)
    gate_page.get_by_role("button", name="Check in 1 person").click()
    expect(gate_page.locator("#found-none")).to_have_text("1 person admitted.")
    until(
        gate_page, f"(wanted) => ({INSIDE})() >= wanted", before + 2
    )  # other gates of this file may still hand theirs in
    expect(gate_page.locator("#refused")).to_have_text("6")
    expect(gate_page.locator("#recent li")).to_have_count(11)
    assert not told


def test_b10_a_hand_scanner_types_wherever_the_focus_is(gate_page: Page, site: Site) -> None:
    first, second = buy(site, 2)
    open_gate(gate_page, site)
    gate_page.locator("body").click(position={"x": 5, "y": 5})
    gate_page.keyboard.type(first.code)
    gate_page.keyboard.press("Enter")
    expect(gate_page.locator("#verdict")).to_have_attribute("data-verdict", "ok")
    expect(gate_page.locator("#recent li")).to_have_count(1)
    gate_page.get_by_role("button", name="Undo").focus()
    gate_page.keyboard.type(second.code)
    gate_page.keyboard.press("Enter")
    expect(gate_page.locator("#recent li")).to_have_count(2)
    expect(gate_page.locator("#recent li").first).to_have_attribute("data-verdict", "ok")
    expect(gate_page.locator("#code")).to_have_value("")


def test_b10_a_mistaken_admission_is_taken_back(gate_page: Page, site: Site) -> None:
    (ticket,) = buy(site)
    open_gate(gate_page, site)
    before = inside(site)
    gate_page.on("dialog", lambda dialog: dialog.accept())
    scan(gate_page, ticket.code, "ok")
    assert inside(site) == before + 1
    gate_page.get_by_role("button", name="Undo").click()
    expect(gate_page.locator("#recent")).to_contain_text("Undone")
    assert inside(site) == before
    expect(gate_page.get_by_role("button", name="Undo")).to_have_count(0)
    scan(gate_page, ticket.code, "ok")
    goes_offline(gate_page)
    gate_page.get_by_role("button", name="Undo").click()
    expect(gate_page.locator("#verdict-detail")).to_have_text("This needs a connection.")
    assert inside(site) == before + 1


def test_b10_a_group_is_found_by_name_and_let_in_together(gate_page: Page, site: Site) -> None:
    tickets = buy(site, 3)

    async def named(platform: Platform) -> None:
        booking = await platform.ledger.booking(tickets[0].booking_id)
        assert booking is not None
        buyer = Contact(booking.fan, "ada@example.org", name="Ada Lovelace")
        await platform.ledger.messages.keep_buyer(buyer, SHOW, platform.clock())

    site.call(named)
    open_gate(gate_page, site)
    before = inside(site)
    gate_page.get_by_text("Find a booking").click()
    who = gate_page.get_by_label("Name, email, booking number or seat")
    who.fill("nobody at all")
    who.press("Enter")
    expect(gate_page.locator("#found-none")).to_have_text("No booking matches.")
    who.fill("lovel")
    who.press("Enter")
    expect(gate_page.locator("#found")).to_contain_text("Ada Lovelace")
    expect(gate_page.locator("#found")).to_contain_text("a…@example.org")
    gate_page.locator("#found input").nth(2).uncheck()
    gate_page.get_by_role("button", name="Check in 2 people").click()
    expect(gate_page.locator("#found-none")).to_have_text("2 people admitted.")
    expect(gate_page.locator("#found")).to_contain_text("Inside since")
    expect(gate_page.get_by_role("button", name="Check in 1 person")).to_be_visible()
    assert inside(site) == before + 2
    scan(gate_page, tickets[0].code, "duplicate")
    goes_offline(gate_page)
    scan(gate_page, tickets[1].code, "duplicate")  # the gate remembers whom it let in by name
    gate_page.get_by_role("button", name="Check in 1 person").click()
    expect(gate_page.locator("#found-none")).to_have_text("1 person admitted.")  # by the guest list
    scan(gate_page, tickets[2].code, "duplicate")


def test_the_gate_is_for_who_may_scan_and_for_their_own_events(profile: Any, site: Site) -> None:
    page = profile().new_page()
    patient(page)
    page.goto(f"{site.url}/door")
    assert "/organiser/sign-in" in page.url
    staff(page, site, role="read_only")
    assert page.goto(f"{site.url}/door").status == 403  # type: ignore[union-attr]
    assert page.goto(f"{site.url}/door/{SHOW}").status == 403  # type: ignore[union-attr]
    staff(page, site, role="door", organiser="org_elsewhere")
    assert page.goto(f"{site.url}/door/{SHOW}").status == 404  # type: ignore[union-attr]
    page.goto(f"{site.url}/door")
    expect(page.locator("#main")).to_contain_text("There are no shows")
    staff(page, site, role="door")
    page.goto(f"{site.url}/door")
    page.get_by_role("link", name="Late Night Comedy").click()
    expect(page.get_by_role("heading", name="Late Night Comedy")).to_be_visible()
    expect(page.locator(".note.warn").first).to_contain_text("not today")


def test_the_gate_can_be_installed_and_keeps_only_its_own_files(gate_page: Page, site: Site) -> None:
    told = listened(gate_page)
    open_gate(gate_page, site)
    kept_offline(gate_page)
    manifest = gate_page.evaluate("fetch(document.querySelector('link[rel=manifest]').href).then((one) => one.json())")
    assert (manifest["scope"], manifest["start_url"], manifest["display"]) == ("/door", "/door", "standalone")
    sizes = gate_page.evaluate(
        "(all) => Promise.all(all.map((src) => new Promise((go) => { const one = new Image();"
        " one.onload = () => go(`${one.naturalWidth}x${one.naturalHeight}`);"
        " one.onerror = () => go('broken'); one.src = src; })))",
        [one["src"] for one in manifest["icons"]],
    )
    assert sizes == [one["sizes"] for one in manifest["icons"]]
    scope = gate_page.evaluate("navigator.serviceWorker.ready.then((one) => new URL(one.scope).pathname)")
    assert scope == "/door"
    kept = gate_page.evaluate(
        "async () => { const all = []; for (const name of await caches.keys()) for (const one of await (await"
        " caches.open(name)).keys()) all.push(new URL(one.url).pathname); return all; }"
    )
    assert any(path.endswith("zxing_reader.wasm") for path in kept)
    assert all(path.startswith("/static/") or path == f"/door/{SHOW}" for path in kept)
    gate_page.goto(f"{site.url}/door")
    kept_offline(gate_page)
    gate_page.goto(f"{site.url}/door/{SHOW}")
    assert not told, "what the service worker has is not loaded ahead without it"
    gate_page.context.set_offline(True)
    gate_page.goto(f"{site.url}/door")
    gate_page.get_by_role("link", name="Aurora").first.click()
    expect(gate_page.locator("#state")).to_contain_text("Offline since")
    gate_page.context.set_offline(False)
    gate_page.context.clear_cookies()
    gate_page.goto(f"{site.url}/door")
    assert "/organiser/sign-in" in gate_page.url, "who is signed out is not shown the page from the device"


def test_the_gate_is_for_everybody_axe_finds_nothing_and_it_fits_320_pixels(profile: Any, site: Site) -> None:
    tickets = buy(site, 2)
    context = profile(bypass_csp=True, reduced_motion="reduce")
    bring_axe(context)
    page = context.new_page()
    patient(page)
    staff(page, site, role="door")
    found = list[str]()

    def read_booking_view(name: str, *, widths: tuple[int, ...] = (390, 1280)) -> None:
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            for width in widths:
                page.set_viewport_size({"width": width, "height": 844})
                page.evaluate("() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))")
                only = [] if scheme == "light" and len(widths) > 1 else COLOURS
                found.extend(f"{name} {scheme} {width}: {one}" for one in axe(page, only))
        page.set_viewport_size({"width": 320, "height": 640})
        wide = page.evaluate("document.documentElement.scrollWidth")
        found.extend([f"{name} is {wide} px wide at 320"] if wide > 320 else [])

    page.goto(f"{site.url}/door")
    read_booking_view("list")
    page.goto(f"{site.url}/door/{SHOW}")
    expect(page.locator("#state")).to_have_text("Online")
    read_booking_view("setup", widths=(390,))
    open_gate(page, site)
    for summary in page.locator("summary").all():
        summary.click()
    page.locator("#who").fill(tickets[0].booking_id)
    page.locator("#who").press("Enter")
    expect(page.locator("#found")).to_contain_text("Check in 2 people")
    for code, verdict in ((tickets[0].code, "ok"), (tickets[0].code, "duplicate"), ("x", "unreadable")):
        scan(page, code, verdict)
        read_booking_view(verdict, widths=(390,))
    scan(page, buy(site, 1, OTHER)[0].code, "wrong_event")
    read_booking_view("wrong event", widths=(390,))
    goes_offline(page)
    scan(page, forged("bkg_x", 1), "forged")
    read_booking_view("forged", widths=(390,))
    scan(page, tickets[1].code, "ok")
    refund(site, tickets[1])  # meanwhile
    context.set_offline(False)
    expect(page.locator("#conflicts")).to_contain_text("Admitted, but no longer valid:")
    read_booking_view("everything")
    assert not found, "\n".join(found)
