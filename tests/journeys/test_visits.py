"""J6: a guest leaves (buys, gives back, closes the tab, falls asleep): the next in line is let in within seconds.

The shop has room for one. Ada is inside, Bob waits in a browser of his own.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from frontrow.core.errors import Unavailable
from frontrow.settings.room import RoomSettings
from tests.browser.steps import enter_when_it_is_time
from tests.browser.tour import instead
from tests.journeys.conftest import Visitor
from tests.journeys.stack import Stack
from tests.journeys.steps import GOOD_CARD, come_to_seats, enter_shop, fill_buyer, hold_seats, pay_by_card
from tests.support.eventually import eventually_sync

LEAVE_S, IDLE_S, STEP_S = 10, 120, 20
MOMENT_MS = 250  # long enough for most; who was slower is looked for again


@pytest.fixture(scope="module")
def stack_options() -> dict[str, Any]:
    return {
        "room": RoomSettings(capacity=1, window_size=100, interval_s=0.05, idle_s=IDLE_S, leave_s=LEAVE_S, human="none")
    }


def wait_in_line(page: Page, stack: Stack, event_name: str) -> None:
    """The shop is full: the button of the event's page leads into the line, with a place that only this browser has."""
    page.goto(stack.event_url(event_name))
    page.get_by_role("button", name="Get tickets").click()
    page.wait_for_url("**/room/")
    expect(page.get_by_role("heading", name="You’re in the queue")).to_be_visible()
    expect(page.locator("body")).to_have_attribute("data-ath", re.compile(".+"))


def people_inside(stack: Stack, event_id: str) -> int:
    async def look(platform: Any) -> int:
        state = await platform.room.service.store.snapshot(event_id)
        return int(state.active)

    return int(stack.call(look))


def still_inside(page: Page, stack: Stack, event_id: str) -> None:
    """The page's visitor may go on choosing after the time in which a visit that was left would have ended."""
    stack.let_pass(LEAVE_S + 1)
    assert people_inside(stack, event_id) == 1
    answer = page.request.get(f"{stack.url}/v1/events/{event_id}/room/pass")
    assert answer.status == 204


def be_quiet(stack: Stack, event_id: str, seconds: int) -> None:
    """Nobody does anything for so long; the store knows before that who was heard last."""
    look = lambda platform: platform.room.service.loops.tick(event_id)  # noqa: E731
    stack.call(look)
    for _ in range(seconds // STEP_S):
        stack.let_pass(STEP_S)
        stack.call(look)


def is_in(page: Page) -> None:
    page.wait_for_url("**/seats")
    expect(page.locator("#list")).to_be_visible()


def is_in_after_a_while(page: Page, stack: Stack) -> None:
    """The next is let in when the time after a departure is over; the server may hear of the departure late."""
    for _ in range(8):
        stack.let_pass(LEAVE_S + 1)
        if is_soon(page.locator("#list")):
            break
    is_in(page)


def is_soon(seen: Locator) -> bool:
    """Whether it is to be seen after a moment."""
    try:
        expect(seen).to_be_visible(timeout=MOMENT_MS)
    except AssertionError:
        return False
    return True


def heard(page: Page) -> Any:
    return page.expect_response(lambda answer: answer.url.endswith("/heartbeat") and answer.ok)


def heard_twice(page: Page, act: Callable[[], Any]) -> None:
    """Do it and wait for the page's second beat: what the page before said on leaving has arrived by then."""
    beats: list[Any] = []
    page.on("framenavigated", lambda _: beats.clear())  # those of the page before do not count
    page.on("response", lambda answer: beats.append(answer) if answer.url.endswith("/heartbeat") else None)
    act()
    while len(beats) < 2:  # each wait has the usual bound
        page.wait_for_event("response")


def test_the_next_is_let_in_when_somebody_has_bought(stack: Stack, visitor: Visitor) -> None:
    stack.put_on_sale("Bought", seats=6)
    ada, bob = visitor(), visitor()
    enter_shop(ada, stack, "Bought")
    wait_in_line(bob, stack, "Bought")
    booking_id = hold_seats(ada)
    fill_buyer(ada, "Ada Lovelace", "ada@example.org")
    pay_by_card(ada)
    ada.wait_for_url("**/bookings/**")
    is_in(bob)
    assert stack.paid(booking_id) > 0


def test_the_next_is_let_in_when_somebody_gave_the_seats_back_and_left(stack: Stack, visitor: Visitor) -> None:
    event = stack.put_on_sale("Changed her mind", seats=6)
    ada, bob = visitor(), visitor()
    come_to_seats(ada, stack, "Changed her mind")
    wait_in_line(bob, stack, "Changed her mind")
    hold_seats(ada)
    heard_twice(ada, ada.get_by_role("button", name="Release these seats and choose others").click)
    assert ada.url.endswith("/seats")
    still_inside(ada, stack, event.id)
    ada.goto("about:blank")
    is_in_after_a_while(bob, stack)


def test_the_next_is_let_in_when_the_last_tab_is_closed_and_not_before(stack: Stack, visitor: Visitor) -> None:
    event = stack.put_on_sale("Two tabs", seats=6)
    ada, bob = visitor(), visitor()
    come_to_seats(ada, stack, "Two tabs")
    wait_in_line(bob, stack, "Two tabs")
    second = ada.context.new_page()
    with heard(second):
        second.goto(ada.url)
    heard_twice(second, ada.close)
    still_inside(second, stack, event.id)
    second.close()
    is_in_after_a_while(bob, stack)


def test_reloading_and_going_back_do_not_end_the_visit(stack: Stack, visitor: Visitor) -> None:
    event = stack.put_on_sale("Restless", seats=6)
    ada = visitor()
    with heard(ada):
        come_to_seats(ada, stack, "Restless")
    heard_twice(ada, ada.reload)
    still_inside(ada, stack, event.id)
    hold_seats(ada)
    with heard(ada):
        ada.get_by_role("button", name="Release these seats and choose others").click()
    ada.wait_for_url("**/seats")
    with heard(ada):
        ada.goto(f"{stack.url}/events/{event.id}/seats?again")
    heard_twice(ada, ada.go_back)
    still_inside(ada, stack, event.id)


def test_who_falls_asleep_is_asked_first_and_then_makes_room(stack: Stack, visitor: Visitor) -> None:
    stack.put_on_sale("Lullaby", seats=6)
    ada, bob = visitor(), visitor()
    ada.clock.install()
    come_to_seats(ada, stack, "Lullaby")
    wait_in_line(bob, stack, "Lullaby")
    problems: list[str] = []
    problems_from = ("error", "warning")
    ada.on(
        "console",
        lambda said: problems.append(f"{said.text} {said.location['url']}") if said.type in problems_from else None,
    )
    asked = ada.get_by_role("region", name="Are you still there?")
    typing = ada.get_by_label("Seats together").first
    typing.focus()
    expect(ada.get_by_text("Time left for your visit")).to_be_visible()

    def sleep_until(seen: Locator, step_s: int) -> None:
        """Time passes for server and page; what the mouse did last may count as being there for a while."""
        for _ in range(20):
            if is_soon(seen):
                return
            stack.let_pass(step_s)
            ada.clock.fast_forward(step_s * 1000)
        expect(seen).to_be_visible()

    sleep_until(asked, STEP_S)
    expect(typing).to_be_focused()
    with heard(ada):
        asked.get_by_role("button", name="I’m still here").click()
    expect(asked).to_be_hidden()
    expect(typing).to_be_focused()
    assert ada.url.endswith("/seats")
    sleep_until(asked, STEP_S)
    over = ada.get_by_role("alertdialog", name="Your visit has ended")
    sleep_until(over, LEAVE_S + 1)
    is_in(bob)
    sleep_until(over.get_by_text("Your place went to the next person in the queue."), 3)
    over.get_by_role("link", name="Enter the waiting room").click()
    expect(ada.get_by_role("button", name="Join the queue")).to_be_visible()
    about_visit = [one for one in problems if not one.endswith("/claim")]
    assert about_visit == [], "that a visit has ended is no error of the page that reports it"


def test_while_nobody_waits_nobody_is_asked_and_nobody_is_sent_away(stack: Stack, visitor: Visitor) -> None:
    """Before: after two minutes the page said that the place went to the next person, and there was none."""
    event = stack.put_on_sale("Alone", seats=6)
    ada = visitor()
    ada.clock.install()
    come_to_seats(ada, stack, "Alone")
    problems: list[str] = []
    ada.on("console", lambda said: problems.append(said.text) if said.type in ("error", "warning") else None)
    for _ in range(20):
        be_quiet(stack, event.id, STEP_S)
        ada.clock.fast_forward(STEP_S * 1000)
    expect(ada.get_by_role("region", name="Are you still there?")).to_be_hidden()
    assert people_inside(stack, event.id) == 1
    assert ada.request.get(f"{stack.url}/v1/events/{event.id}/room/pass").status == 204
    assert problems == []


def test_the_event_page_belongs_to_the_visit_and_shows_its_time(stack: Stack, visitor: Visitor) -> None:
    """Before: reading about the event again ended the visit after ten seconds."""
    event = stack.put_on_sale("Read again", seats=6)
    ada = visitor()
    come_to_seats(ada, stack, "Read again")
    heard_twice(ada, lambda: ada.goto(stack.event_url("Read again")))
    expect(ada.locator("#visit .clock")).to_have_text(re.compile(r"^1[345]:\d\d$"))
    still_inside(ada, stack, event.id)
    ada.get_by_role("link", name="Choose seats").click()
    is_in(ada)
    hold_seats(ada)
    expect(ada.locator("#visit .clock")).to_be_visible()
    expect(ada.get_by_role("timer", name="Time left on your seats")).to_be_visible()


def test_moving_inside_the_site_keeps_the_visit_and_every_page_shows_its_time(stack: Stack, visitor: Visitor) -> None:
    """Before: the visit ended ten seconds after Events, My tickets or Sign in was opened, and nothing said so."""
    event = stack.put_on_sale("Walks around", seats=6)
    ada, bob = visitor(), visitor()
    left: list[str] = []
    ada.on("request", lambda asked: left.append(asked.url) if asked.url.endswith("/left") else None)
    come_to_seats(ada, stack, "Walks around")
    ada.goto(stack.event_url("Walks around"))
    wait_in_line(bob, stack, "Walks around")
    left.clear()
    for name, heading in (("My tickets", "My tickets"), ("Events", ""), ("Sign in", "Sign in")):
        ada.get_by_role("navigation", name="Main").get_by_role("link", name=name).click()
        if heading:
            expect(ada.get_by_role("heading", name=heading, level=1)).to_be_visible()
        expect(ada.locator("#visit .clock")).to_have_text(re.compile(r"^1[345]:\d\d$"))
        expect(ada.locator("#visit")).to_contain_text("Walks around")
        still_inside(ada, stack, event.id)
    ada.get_by_role("link", name="Back to your visit").click()
    is_in(ada)
    booking_id = hold_seats(ada)
    fill_buyer(ada, "Ada Lovelace", "ada@example.org")
    pay_by_card(ada)
    ada.wait_for_url("**/bookings/**")
    expect(ada.locator("#visit")).to_have_count(0)
    assert stack.paid(booking_id) > 0
    assert left == [], "nobody said that she left"
    is_in(bob)


def test_a_tab_beside_the_shop_keeps_the_visit_and_goes_on_after_its_end(stack: Stack, visitor: Visitor) -> None:
    event = stack.put_on_sale("Beside", seats=6)
    ada = visitor()
    ada.clock.install()
    come_to_seats(ada, stack, "Beside")
    second = ada.context.new_page()
    second.clock.install()
    with heard(second):
        second.goto(f"{stack.url}/tickets")
    heard_twice(second, ada.close)
    still_inside(second, stack, event.id)
    text = next(one["value"] for one in second.context.cookies() if "pass" in one["name"])
    shown = {"Authorization": f"Bearer {text}"}
    assert second.request.post(f"{stack.url}/v1/events/{event.id}/room/give-back", headers=shown).ok
    second.clock.fast_forward(15 * 60_000)  # its time is over by this clock: the page asks
    expect(second.locator("#visit")).to_contain_text("Your visit has ended")
    expect(second.locator("#visit").get_by_role("link", name="Enter the waiting room")).to_be_visible()
    expect(second.get_by_role("alertdialog")).to_have_count(0)
    expect(second.get_by_role("heading", name="My tickets", level=1)).to_be_visible()
    second.reload()
    expect(second.locator("#visit")).to_have_count(0)


def test_without_scripts_every_page_says_how_long_the_visit_lasts_and_counts(stack: Stack, visitor: Visitor) -> None:
    event = stack.put_on_sale("Plain walk", seats=6)
    ada, bob = visitor(java_script_enabled=False), visitor()
    come_to_seats(ada, stack, "Plain walk")
    wait_in_line(bob, stack, "Plain walk")
    for path in ("/", "/tickets", "/sign-in", "/no-such-page"):
        be_quiet(stack, event.id, IDLE_S * 2 // 3)
        ada.goto(f"{stack.url}{path}")
        expect(ada.get_by_text(re.compile(r"Your visit lasts \d+ more minutes?\."))).to_be_visible()
        ada.get_by_role("link", name="Back to your visit").click()
        expect(ada).to_have_url(re.compile("/seats$"))


def test_pages_beside_the_shop_come_although_the_store_of_the_room_is_away(stack: Stack, visitor: Visitor) -> None:
    """The pass itself says when the visit ends."""
    stack.put_on_sale("No store", seats=6)
    ada = visitor()
    come_to_seats(ada, stack, "No store")

    async def away(*_: object) -> None:
        raise Unavailable("the store is away")

    with instead(stack.site.platform.room.service.store, "visit", away):
        for path in ("/", "/tickets", "/account", "/sign-in"):
            ada.goto(f"{stack.url}{path}")
            expect(ada.get_by_role("heading", level=1)).to_be_visible()
            expect(ada.locator("#visit .clock")).to_have_text(re.compile(r"^1[345]:\d\d$"))


def test_a_live_hold_keeps_the_visit_beyond_fifteen_minutes_until_it_is_paid(stack: Stack, visitor: Visitor) -> None:
    event = stack.put_on_sale("Slow payer", seats=6, hold_ttl_s=1_200)
    ada, bob = visitor(), visitor()
    come_to_seats(ada, stack, "Slow payer")
    wait_in_line(bob, stack, "Slow payer")
    booking_id = hold_seats(ada)
    expect(ada.locator("#card")).to_be_visible()
    ada.goto("about:blank")  # at the bank, say
    stack.let_pass(16 * 60)
    assert people_inside(stack, event.id) == 1
    ada.goto(f"{stack.url}/checkout/{booking_id}")
    fill_buyer(ada, "Ada Lovelace", "ada@example.org")
    pay_by_card(ada, GOOD_CARD)
    ada.wait_for_url("**/bookings/**")
    is_in(bob)


def test_without_scripts_the_server_ends_an_idle_visit(stack: Stack, visitor: Visitor) -> None:
    event = stack.put_on_sale("Plain", seats=6)
    ada, bob = visitor(java_script_enabled=False), visitor()
    ada.goto(f"{stack.url}/v1/events/{event.id}/room/")
    ada.get_by_role("button", name="Join the queue").click()
    enter_when_it_is_time(ada)
    ada.wait_for_url("**/seats")
    expect(ada.get_by_text("If others are waiting, it ends after 2 minutes without activity.")).to_be_visible()
    wait_in_line(bob, stack, "Plain")
    be_quiet(stack, event.id, IDLE_S * 2 // 3)
    ada.get_by_role("link", name="I’m still here").click()
    be_quiet(stack, event.id, IDLE_S * 2 // 3)
    ada.reload()
    assert ada.url.endswith("/seats")
    be_quiet(stack, event.id, IDLE_S * 2)  # long enough for her place, too
    is_in(bob)
    ada.reload()
    assert "/room/" in ada.url
    expect(ada.get_by_role("button", name="Join the queue")).to_be_visible()


def test_a_pass_given_back_is_refused_by_another_server_and_after_a_restart(stack: Stack, visitor: Visitor) -> None:
    event = stack.put_on_sale("Two servers", seats=6)
    ada = visitor()
    come_to_seats(ada, stack, "Two servers")
    room = f"/v1/events/{event.id}/room"
    urls = [stack.url]
    if stack.form == "clustered":
        other = stack.add_server()
        other.ahead_s = stack.site.ahead_s
        urls.append(other.url)
    text = next(one["value"] for one in ada.context.cookies() if "pass" in one["name"])
    shown = {"Authorization": f"Bearer {text}"}
    ada.goto("about:blank")

    def status(url: str) -> int:
        """Another server opens the event first."""
        asked = f"{url}{room}/pass"
        return eventually_sync(
            lambda: ada.request.get(asked, headers=shown).status, until=lambda status: status in (204, 403)
        )

    assert [status(url) for url in urls] == [204] * len(urls)
    assert ada.request.post(f"{stack.url}{room}/give-back", headers=shown).json() == {"ended": True}
    assert status(stack.url) == 403
    for url in urls:
        eventually_sync(lambda url=url: status(url), until=lambda now: now == 403)
    stack.site.stop()
    stack.site.start()
    assert status(stack.url) == 403
