"""The pages are for everybody: axe-core finds nothing, text reflows at 320 px, nothing jumps, a clean console."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from frontrow.bootstrap import Platform
from frontrow.boxoffice.model.events import EventStatus
from tests.browser.served import Site, put_hall
from tests.browser.steps import EVENT_ID, choose, enter, pay, until

AXE = Path(__file__).parents[1] / "node" / "node_modules" / "axe-core" / "axe.min.js"
EVERYTHING = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
COLOURS = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}  # all that a scheme can change
STATES = ("soon", "paused", "sold_out", "cancelled")
CLS = """new PerformanceObserver((list) => { for (const e of list.getEntries()) if (!e.hadRecentInput) window.moved = (window.moved || 0) + e.value; }).observe({ type: "layout-shift", buffered: true })"""  # noqa: E501


async def put_all(platform: Platform) -> None:
    """The show on sale, and one in each other state."""
    day_us = 86_400_000_000
    now_us = platform.clock()
    await put_hall(platform)
    await put_hall(platform, id="evt_soon", name="Winter Philharmonic", sale_starts_at_us=now_us + day_us)
    await put_hall(platform, id="evt_paused", name="Late Night Comedy", paused=True)
    await put_hall(platform, id="evt_sold_out", name="Harbour City v Northgate", withheld=frozenset(range(1_500)))
    await put_hall(platform, id="evt_cancelled", name="Open Air", status=EventStatus.CANCELLED)


@pytest.fixture(scope="module")
def full_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("full"), put_all) as running:
        yield running


def sign_in(page: Page, site: Site) -> None:
    """By the link in the mail."""
    before = mails_of(site)  # of others who signed in here: their links are spent
    page.goto(f"{site.url}/sign-in")
    page.get_by_label("E-mail").fill("ada@example.org")
    page.get_by_role("button", name="Send me a link").click()
    expect(page.get_by_role("heading", name="Look into your mail")).to_be_visible()
    page.goto(newest_link(site, page, before))
    page.wait_for_url("**/tickets")


def mails_of(site: Site) -> frozenset[Path]:
    """Every mail that came so far."""
    return frozenset(Path(site.platform.settings.mail_url).rglob("*.eml"))


def newest_link(site: Site, page: Page, before: frozenset[Path] = frozenset()) -> str:
    """The link in the newest mail of the outbox that was not there before."""
    import email
    import email.policy
    import re

    for _ in range(400):
        mails = sorted(mails_of(site) - before, key=lambda one: one.stat().st_mtime_ns)
        for mail in reversed(mails):
            text = email.message_from_bytes(mail.read_bytes(), policy=email.policy.default)
            body = text.get_body(("plain",))
            found = re.search(r"http\S+/sign-in#\S+", body.get_content() if body else "")
            if found:
                return found[0]
        page.wait_for_timeout(50)
    raise AssertionError("no mail came")


def every_page(context: BrowserContext, site: Site) -> Iterator[tuple[str, Page]]:
    """Walks through all pages of fans, in the order a fan meets them; the page is ready when it is yielded."""
    page = context.new_page()
    for name, path in (
        ("events", "/"),
        ("nothing found", "/?q=zzz"),
        ("event", f"/events/{EVENT_ID}"),
        *((f"event {state}", f"/events/evt_{state}") for state in STATES),
        ("waitlist, nobody", "/events/evt_sold_out/waitlist"),
        ("ready", "/ready"),
        ("tickets, none", "/tickets"),
        ("sign in", "/sign-in"),
        ("not found", "/no-such-page"),
        ("maintenance", "/maintenance"),
        ("style guide", "/style-guide"),
        ("room", f"/v1/events/{EVENT_ID}/room/"),
        ("pre-queue", "/v1/events/evt_soon/room/"),
    ):
        page.goto(site.url + path)
        yield name, page
    page.get_by_role("button", name="Join the line").click()
    page.wait_for_selector("#wait:not([hidden])")
    yield "room, in the draw", page
    yield from _buying(page, site)
    yield from _signed_in(page, site)


def _buying(page: Page, site: Site) -> Iterator[tuple[str, Page]]:
    for card, ending in (("4000000000000002", "declined"), ("4000002760003184", "bank"), ("4242424242424242", "")):
        if not ending:
            enter_again(page, site)
            yield "seats", page
            choose(page, 2)
            page.wait_for_timeout(400)
            yield "seats of a section", page
            page.get_by_role("button", name="List only").click()
            yield "seats, list only", page
            page.get_by_role("button", name="List only").click()
        else:
            enter_again(page, site)
            choose(page, 1)
        page.locator("#go").click()
        page.wait_for_url("**/checkout/**")
        if not ending:
            yield "checkout", page
            page.get_by_role("button", name="Pay").click()
            page.wait_for_selector(".field-err")
            yield "checkout with errors", page
        pay(page, card)
        page.wait_for_selector(f"#outcome[data-kind={ending}]" if ending else ".ticket")
        yield ending or "tickets of a booking", page
        if ending == "bank":
            page.get_by_role("button", name="Demo bank: yes, it is me").click()
            page.wait_for_selector(".ticket")
    page.goto(f"{site.url}/tickets")
    yield "my tickets", page


def enter_again(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/events/{EVENT_ID}/seats")
    if "/room" in page.url:
        enter(page, site)
    page.evaluate("localStorage.clear()")
    until(page, "window.frontrow")


def _signed_in(page: Page, site: Site) -> Iterator[tuple[str, Page]]:
    sign_in(page, site)
    page.goto(f"{site.url}/account")
    yield "account", page
    page.goto(f"{site.url}/events/evt_sold_out/waitlist")
    yield "waitlist, signed in", page


def test_axe_finds_nothing_on_any_page_light_and_dark_small_and_large_and_text_reflows(
    profile: Any, full_site: Site
) -> None:
    context = profile(bypass_csp=True, reduced_motion="reduce")
    script, found, names = AXE.read_text(), [], []
    for name, page in every_page(context, full_site):
        names.append(name)
        page.evaluate(script)
        for scheme in ("light", "dark"):
            for width in (390, 1280):
                page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
                page.set_viewport_size({"width": width, "height": 844 if width < 500 else 800})
                page.evaluate("() => new Promise((go) => requestAnimationFrame(() => setTimeout(go, 30)))")
                found += [
                    f"{name} {scheme} {width}: {problem}"
                    for problem in axe(page, EVERYTHING if scheme == "light" else COLOURS)
                ]
        page.set_viewport_size({"width": 320, "height": 640})
        wide = page.evaluate("document.documentElement.scrollWidth")
        found += [f"{name} is {wide} px wide at 320"] if wide > 320 else []
        page.set_viewport_size({"width": 1280, "height": 800})
    assert len(names) >= 28
    assert not found, f"{len(found)}\n" + "\n".join(found)


def axe(page: Page, only: dict[str, Any]) -> list[str]:
    """What axe-core finds wrong with a page as it is now."""
    told = page.evaluate("(only) => axe.run(document, { runOnly: only, resultTypes: ['violations'] })", only)
    return [
        f"{one['id']} {one['nodes'][0]['html'][:150]} {one['nodes'][0]['failureSummary'][:200]}"
        for one in told["violations"]
    ]


def test_the_console_stays_clean_under_the_policy_and_nothing_jumps(profile: Any, full_site: Site) -> None:
    context = profile()
    context.add_init_script(CLS)
    told: list[str] = []
    context.on("console", lambda message: told.append(message.text) if message.type in ("error", "warning") else None)
    context.on("weberror", lambda error: told.append(str(error.error)))
    for name, page in every_page(context, full_site):
        page.wait_for_timeout(60)
        moved = page.evaluate("window.moved || 0")
        assert moved <= 0.05, f"{name} jumps by {moved}"
        answers = [text for text in told if "status of 4" not in text]  # the page's own 402, 404, 422
        assert not answers, f"{name}: {answers}"


def test_arabic_reads_from_right_to_left_and_fits(profile: Any, full_site: Site) -> None:
    page = profile(390, 844, locale="ar").new_page()
    for path in ("/", f"/events/{EVENT_ID}", f"/v1/events/{EVENT_ID}/room/", "/sign-in"):
        page.goto(full_site.url + path)
        assert page.evaluate("document.documentElement.dir") == "rtl"
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.goto(f"{full_site.url}/language/de?back=/tickets")
    expect(page.get_by_role("heading", name="Meine Tickets")).to_be_visible()


def test_who_wants_no_motion_gets_none_and_forced_colours_show_every_state(profile: Any, full_site: Site) -> None:
    page = profile(reduced_motion="reduce", forced_colors="active").new_page()
    enter(page, full_site)
    choose(page, 1)
    camera = page.evaluate("JSON.stringify(window.frontrow.map.view.camera)")
    page.wait_for_timeout(120)
    assert page.evaluate("JSON.stringify(window.frontrow.map.view.camera)") == camera, "it was there at once"
    chosen = page.locator("#grid [aria-selected=true]")
    free = page.locator("#grid [aria-disabled=false][aria-selected=false]").first
    paint = "(one) => getComputedStyle(one).backgroundColor"
    assert chosen.evaluate(paint) != free.evaluate(paint)


def test_the_hold_timer_is_announced_at_120_60_and_20_seconds(profile: Any, full_site: Site) -> None:
    page = profile().new_page()
    enter(page, full_site)
    choose(page, 1)
    page.locator("#go").click()
    page.wait_for_url("**/checkout/**")
    expect(page.get_by_role("button", name="I need more time")).to_be_hidden()
    page.evaluate(
        "() => { window.heard = []; const say = document.querySelector('#say');"
        " new MutationObserver(() => { const text = say.textContent; if (text) window.heard.push(text); })"
        ".observe(say, { childList: true, characterData: true, subtree: true }); }"
    )
    for left_s in (121, 120, 119, 61, 60, 59, 21, 20, 19):
        page.evaluate(
            "(left) => { const timer = document.querySelector('fr-timer');"
            " const skew = Number(document.documentElement.dataset.now) - performance.timeOrigin - performance.getEntriesByType('navigation')[0].responseStart;"  # noqa: E501
            " timer.setAttribute('until', new Date(Date.now() + skew + left * 1000 - 30).toISOString());"
            " timer.tick(); }",
            left_s,
        )
        page.wait_for_timeout(60)
    assert page.evaluate("window.heard") == [f"{left_s} seconds left on your seats." for left_s in (120, 60, 20)]
    expect(page.get_by_role("button", name="I need more time")).to_be_visible()
    page.reload()
    page.evaluate("document.querySelector('#extend').hidden = false")
    before = page.locator("fr-timer").get_attribute("until")
    page.get_by_role("button", name="I need more time").click()
    page.wait_for_load_state()
    assert page.locator("fr-timer").get_attribute("until") > before  # type: ignore[operator]
