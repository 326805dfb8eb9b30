"""A tour of every page of fans, in the order a fan meets them, for tests that look at all of them."""

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final

from msgspec.structs import replace
from playwright.sync_api import BrowserContext, Page

from frontrow.app.wiring import Platform
from frontrow.boxoffice.adapters.payments.simulated import Fault
from frontrow.boxoffice.events.model.event_changes import Change, Editor
from frontrow.boxoffice.events.model.events import USUAL_CARD_TRIES, EventStatus
from frontrow.boxoffice.holds.model.bookings import HoldEnded
from frontrow.boxoffice.messages.mail_links import LinkPurpose
from frontrow.boxoffice.payments.model.payment_rules import PaymentRules
from frontrow.boxoffice.tickets.model.wallets import Wallet, WalletKeys
from frontrow.core.errors import Forbidden, Unavailable
from frontrow.waitingroom.entrance.person_and_address_limits import TooManyRequests
from tests.browser.mails import sign_in
from tests.browser.served import Site, put_hall
from tests.browser.steps import EVENT_ID, SHORT_ID, be_let_in, choose, enter, fill_checkout, hold_at_once, landed, pay
from tests.support.pictures import a_logo

SLOW_ID: Final = "evt_slow_money"
STATES: Final = ("soon", "paused", "sold_out", "cancelled")
DECLINED, ASKS_FIRST, PAYS = "4000000000000002", "4000002760003184", "4242424242424242"
PLAIN: Final = {
    "events": "/",
    "nothing found": "/?q=zzz",
    "event": f"/events/{EVENT_ID}",
    **{f"event {state}": f"/events/evt_{state}" for state in STATES},
    "waitlist, nobody": "/events/evt_sold_out/waitlist",
    "ready": "/ready",
    "tickets, none": "/tickets",
    "sign in": "/sign-in",
    "a message's link": "/open",
    "not found": "/no-such-page",
    "maintenance": "/maintenance",
    "style guide": "/style-guide",
    "overflow": f"/v1/events/{EVENT_ID}/room/overflow",
    "room": f"/v1/events/{EVENT_ID}/room/",
    "pre-queue": "/v1/events/evt_soon/room/",
}
ERRORS: Final = {
    "too fast": TooManyRequests("slowly", retry_after_s=5.0),
    "forbidden": Forbidden("not you"),
    "over": HoldEnded("gone", 0),
    "our fault": RuntimeError("a made-up bug"),
    "back in a moment": Unavailable("away", retry_after_s=5.0),
}
# a page that looks again by itself after a while stays as it is, so that it can be looked at
STAYS: Final = """for (const [name, most] of [["setTimeout", 2500], ["setInterval", 10000]]) {
  const real = window[name].bind(window);
  window[name] = (what, ms, ...more) => (ms >= most ? 0 : real(what, ms, ...more));
}"""
Pages = Iterator[tuple[str, Page]]


async def put_all(platform: Platform) -> None:
    """The show on sale, one in each other state, and one whose holds last two seconds."""
    day_us = 86_400_000_000
    now_us = platform.clock()
    await put_hall(platform, organiser_id="org_brand")
    await put_brand(platform)
    await put_hall(platform, id="evt_soon", name="Winter Philharmonic", sale_starts_at_us=now_us + day_us)
    await put_hall(platform, id="evt_paused", name="Late Night Comedy", paused=True)
    await put_hall(platform, id="evt_sold_out", name="Harbour City v Northgate", withheld=frozenset(range(1_500)))
    await put_hall(platform, id="evt_cancelled", name="Open Air", status=EventStatus.CANCELLED)
    keys = WalletKeys("org_brand", Wallet.APPLE, "pass.org.example", "A1B2C3D4E5", 0, "sealed", now_us)
    change = Change(Editor("stf_1", "org_brand"), "change_wallet", "", now_us)
    for one in (keys, replace(keys, wallet=Wallet.GOOGLE)):  # tickets have the buttons of both
        await platform.ledger.wallets.put(one, change)
    await put_hall(platform, id=SHORT_ID, name="A short hold", hold_ttl_s=2)
    await put_slow_money(platform)


async def put_slow_money(platform: Platform, **changes: Any) -> None:
    """A show in two months that one can pay by bank transfer."""
    starts_us = platform.clock() + 60 * 86_400_000_000
    given: dict[str, Any] = {"starts_at_us": starts_us, "payments": PaymentRules(pay_days=5)} | changes
    await put_hall(platform, id=SLOW_ID, name="Next spring", **given)


async def put_brand(platform: Platform) -> None:
    """The show on sale has a brand of its own: a colour that nobody could read on white, and a transparent logo."""
    editor = Editor("stf_brand", "org_brand")
    await platform.brands.change_colour(editor, "#ffd400")
    await platform.brands.put_logo(editor, a_logo("#7a0000"))


def pages_of(part: str, context: BrowserContext, site: Site, address: str) -> Pages:
    """One part of the tour; each can be made alone."""
    page = context.new_page()
    yield from PARTS[part](page, site, address)
    page.close()


def _plain(page: Page, site: Site, address: str) -> Pages:
    for name, path in PLAIN.items():
        page.goto(site.url + path)
        yield name, page
    page.get_by_role("button", name="Join the queue").click()
    page.wait_for_selector("#wait:not([hidden])")
    yield "room, in the draw", page


def _errors(page: Page, site: Site, address: str) -> Pages:
    """Each kind of trouble, made where the list of events is read."""
    for name, error in ERRORS.items():
        with instead(site.platform.box_office.browse, "search", _raising(error)):
            page.goto(site.url)
        yield name, page


def _raising(error: Exception) -> Callable[..., Coroutine[Any, Any, None]]:
    async def fail(*_: object, **__: object) -> None:
        raise error

    return fail


@contextmanager
def instead(owner: Any, name: str, other: Any) -> Iterator[None]:
    """`owner.name` is another for a while."""
    before = getattr(owner, name)
    setattr(owner, name, other)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _choosing(page: Page, site: Site, address: str) -> Pages:
    enter(page, site)
    yield "seats", page
    choose(page, 2)
    landed(page)
    yield "seats of a section", page
    page.get_by_role("button", name="List only").click()
    yield "seats, list only", page
    page.get_by_role("button", name="List only").click()
    page.locator("#go").click()
    page.wait_for_url("**/checkout/**")
    yield "checkout", page
    page.get_by_role("button", name="Pay").click()
    page.wait_for_selector(".field-err")
    yield "checkout with errors", page
    pay(page, PAYS)
    page.wait_for_selector(".ticket")
    yield "tickets of a booking", page
    booking_id = page.url.rpartition("/")[2]
    page.get_by_text("Return tickets", exact=True).click()
    page.locator("input[name=seat]").first.check()
    page.get_by_role("button", name="See the refund").click()
    page.wait_for_url("**/return?**")
    yield "tickets to return", page
    page.goto(f"{site.url}/tickets")
    yield "my tickets", page
    page.goto(_sent_ticket(site, booking_id))
    page.wait_for_url("**/transfers/**")
    yield "a ticket that somebody sent", page


def _sent_ticket(site: Site, booking_id: str) -> str:
    """The link of the mail to somebody who was sent a ticket."""

    async def sent(platform: Platform) -> str:
        booking = await platform.ledger.booking(booking_id)
        assert booking is not None
        transfer = await platform.box_office.transfers.send(booking, booking.seats[0], "grace@example.org", "en")
        return platform.messaging.links.url(LinkPurpose.TRANSFER, transfer.id, transfer.expires_at_us)

    return str(site.call(sent))


def _endings(page: Page, site: Site, address: str) -> Pages:
    """Every other way a checkout can end."""
    be_let_in(page, site.url, EVENT_ID)
    _hold(page, site)
    for left in range(USUAL_CARD_TRIES - 1, 0, -1):
        pay(page, DECLINED)
        page.get_by_text(f"You can try {left} more time").wait_for()
    yield "checkout after declined cards", page
    pay(page, DECLINED)
    yield from _ended(page, "declined")
    _hold(page, site)
    pay(page, ASKS_FIRST)
    yield from _ended(page, "bank")
    be_let_in(page, site.url, SLOW_ID)
    for method, kind in (("bank_transfer", "awaited"), ("ideal", "bank")):
        _hold(page, site, SLOW_ID)
        if page.locator("#email").count():  # not asked for again
            page.locator("#email").fill("ada@example.org")
        page.get_by_text("More ways to pay").click()
        page.locator(f"#methods [value={method}]").check()
        if method == "bank_transfer":
            yield "checkout by bank transfer", page
        page.locator("#go").click()
        page.wait_for_selector(f"#outcome[data-kind={kind}]")
        yield f"outcome {method}", page
        page.get_by_role("button", name="Pay another way").click()
        page.get_by_role("button", name="Release these seats").click()
        page.wait_for_url("**/seats")
    be_let_in(page, site.url, EVENT_ID)
    booking = _hold(page, site)
    page.get_by_role("button", name="Release these seats").click()
    page.wait_for_url("**/seats")
    page.goto(booking)
    yield from _ended(page, "released")
    _hold(page, site)
    with instead(site.platform.box_office.provider.inner, "script", lambda *_: Fault.LOST_REQUEST):  # type: ignore[attr-defined]
        pay(page, PAYS)
        page.wait_for_selector("#outcome[data-kind=retrying]")
    yield from _ended(page, "retrying")
    _hold(page, site)
    fill_checkout(page, PAYS)
    page.context.clear_cookies(name="frontrow_pass")  # the page soon notices, and its dialog covers the button
    page.get_by_role("button", name="Pay").click()
    yield from _ended(page, "visit_over")
    be_let_in(page, site.url, SHORT_ID)
    _hold(page, site, SHORT_ID)
    yield from _ended(page, "expired")


def _ended(page: Page, kind: str) -> Pages:
    page.wait_for_selector(f"#outcome[data-kind={kind}]")
    yield f"outcome {kind}", page


def _hold(page: Page, site: Site, event_id: str = EVENT_ID) -> str:
    """One seat held; where it is paid for."""
    page.goto(f"{site.url}/checkout/{hold_at_once(page, site.url, event_id)}")
    return page.url


def _signed_in(page: Page, site: Site, address: str) -> Pages:
    sign_in(page, site, address)
    page.goto(f"{site.url}/account")
    yield "account", page
    page.goto(f"{site.url}/events/evt_sold_out/waitlist")
    yield "waitlist, signed in", page
    page.get_by_role("button", name="Join the waitlist").click()
    page.wait_for_selector("text=Your place on the waitlist")
    yield "waitlist, in the line", page


PARTS: Final = {
    "errors": _errors,
    "plain": _plain,
    "choosing": _choosing,
    "endings": _endings,
    "signed in": _signed_in,
}
