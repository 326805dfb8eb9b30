"""What fans do in a browser, step by step; and how a test looks at the map behind the page."""

from typing import Any

from playwright.sync_api import Error, Locator, Page, expect

from tests.browser.served import WAIT_S, Site
from tests.support.eventually import eventually_sync
from tests.web.api.support import EVENT_ID

__all__ = [
    "EVENT_ID",
    "GOOD_CODE",
    "GOOD_EXPIRY",
    "SHORT_ID",
    "be_let_in",
    "choose",
    "differing_seats",
    "enter",
    "fill_card_form",
    "fill_checkout",
    "get_tickets",
    "hold_at_once",
    "landed",
    "pay",
    "settled",
    "until",
]

POLL_S = 0.02
GOOD_EXPIRY, GOOD_CODE = "12 / 40", "123"
SHORT_ID = "evt_short"  # its holds last two seconds
DIFFERING = """async () => {
  const { model } = window.frontrow;
  for (let tries = 0; tries < 200; tries++) {
    const body = await (await fetch(`/v1/events/EVENT/seats.bin`, { cache: "no-store" }).catch(() => new Response())).arrayBuffer();
    if (body.byteLength > 24) {
      const view = new DataView(body), seq = Number(view.getBigUint64(8, true)), epoch = Number(view.getBigUint64(16, true));
      if (seq === model.seq && epoch === model.epoch) {
        const packed = new Uint8Array(body, 24);
        let differing = 0, free = 0;
        for (let i = 0; i < model.n; i++) { const state = (packed[i >> 2] >> ((i & 3) * 2)) & 3; differing += Number(state !== model.state[i]); free += Number(state === 0); }
        const counted = model.sections.reduce((sum, one) => sum + one.free, 0);
        if (differing === 0 && counted === free) return 0;
        if (tries > 150) return Math.max(differing, 1);
      }
    }
    await new Promise((go) => setTimeout(go, 100));
  }
  return -1;
}""".replace("EVENT", EVENT_ID)  # noqa: E501


def be_let_in(page: Page, url: str, event_id: str) -> None:
    """What the waiting room's page asks for, without any page: this browser gets a pass (`get_tickets` clicks)."""
    room, body = f"{url}/v1/events/{event_id}/room", {"page": True}
    _asked(page, f"{room}/join", body)
    eventually_sync(
        lambda: page.request.get(f"{room}/status").json()["state"], WAIT_S, until=lambda state: state == "active"
    )
    _asked(page, f"{room}/claim", body)


def hold_at_once(page: Page, url: str, event_id: str, count: int = 1) -> str:
    """What the seats' page asks for, without the page: the best seats are held; the booking's id."""
    return str(_asked(page, f"{url}/v1/events/{event_id}/holds", {"best": {"count": count}})["booking"])


def _asked(page: Page, address: str, body: Any) -> Any:
    """As a page of ours would ask, with this browser's cookies."""
    answer = page.request.post(address, data=body, headers={"sec-fetch-site": "same-origin"})
    assert answer.ok, answer.text()
    return answer.json()


def enter(page: Page, site: Site, event_id: str = EVENT_ID) -> None:
    """Let in, and in front of the seats."""
    be_let_in(page, site.url, event_id)
    page.goto(f"{site.url}/events/{event_id}/seats")
    until(page, "window.frontrow")


def get_tickets(page: Page) -> None:
    """Press the button of an event's page and come to the seats; nobody waits, so the room is not seen."""
    page.get_by_role("button", name="Get tickets").click()
    page.wait_for_url("**/seats")


def go_in_without_scripts(page: Page) -> None:
    """Join the line and go in when it is time. The page would refresh itself; a test need not wait for that."""
    page.get_by_role("button", name="Join the queue").click()
    enter_when_it_is_time(page)
    page.wait_for_url("**/seats")


def enter_when_it_is_time(page: Page) -> None:
    """Without scripts, in the line: load the page again until there is a button to go in, and press it."""
    button = page.get_by_role("button", name="Enter the sale", exact=True)
    reload_until(page, button)
    button.click()


def reload_until(page: Page, wanted: Locator) -> None:
    """Reload the page, as people do, until something is on it."""
    page.wait_for_load_state()

    def is_there() -> bool:
        if not wanted.is_visible():
            page.reload()
        return wanted.is_visible()

    eventually_sync(is_there, WAIT_S)


def choose(page: Page, count: int = 1) -> list[int]:
    """Pick seats that are free, in the list of the first section; their indexes."""
    page.locator("#list button").first.click()
    for _ in range(count):
        page.locator("#grid button:not([aria-disabled=true]):not([aria-selected=true])").first.click()
    chosen: list[int] = page.evaluate("[...window.frontrow.model.mine]")
    assert len(chosen) == count
    return chosen


def pay(page: Page, card: str = "4242 4242 4242 4242") -> None:
    """Fill the checkout form in and press the button."""
    fill_checkout(page, card)
    page.get_by_role("button", name="Pay").click()


def fill_checkout(page: Page, card: str) -> None:
    """Who buys, and the card; nothing is sent yet."""
    page.wait_for_url("**/checkout/**")
    if page.locator("#email").count():  # not asked for again at a second purchase
        page.get_by_label("Name").fill("Ada Lovelace")
        page.get_by_label("Email for your tickets").fill("ada@example.org")
    fill_card_form(page, card)


def fill_card_form(page: Page, card: str) -> None:
    """Type a card into the form of the simulated provider."""
    page.locator("#card").fill(card)
    page.locator("#expiry").fill(GOOD_EXPIRY)
    page.locator("#cvc").fill(GOOD_CODE)


def until(page: Page, condition: str, argument: Any = None) -> None:
    """Wait until a condition holds in the page; what it asks about need not be there yet (a page on its way).

    Playwright's own waiting takes the promise of an `async` condition for its answer, so those are asked again here.
    """
    asked = condition if "=>" in condition else f"() => {condition}"
    if not asked.startswith("async"):
        tried = f"(argument) => {{ try {{ return ({asked})(argument); }} catch (error) {{ return false; }} }}"
        page.wait_for_function(tried, arg=argument)
        return
    eventually_sync(lambda: page.evaluate(asked, argument), WAIT_S, ignoring=Error)


def landed(page: Page) -> None:
    """Wait until the map's camera has arrived."""
    until(page, "!window.frontrow.map.flying")


# what a closed `details` holds is left out: the browser renders none of it, and its transitions never end
SETTLED = """async () => {
  const painted = () => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(go))));
  await painted();
  const ends = ({ effect }) => effect?.getComputedTiming().endTime !== Infinity;
  const shown = ({ effect }) => !effect?.target || effect.target.checkVisibility();
  const moving = document.getAnimations().filter((one) => ends(one) && shown(one));
  if (!moving.length) return;
  await Promise.all(moving.map((one) => one.finished.catch(() => null)));
  await painted();
}"""


def settled(page: Page) -> None:
    """Wait until the page has been painted as it is now, its transitions are over and it was told what moved."""
    page.evaluate(SETTLED)


def differing_seats(page: Page) -> int:
    """Seats whose state in the page is not the server's at the same position; waits for the position."""
    found: int = page.evaluate(DIFFERING)
    return found


def said(page: Page, text: str) -> None:
    """Wait until the page has told people who listen."""
    expect(page.locator("#say")).to_contain_text(text)


def click_seat(page: Page, seat_id: str) -> None:
    """Click a seat on the map of an organiser's page, zoomed in so far that seats can be picked."""
    at = page.evaluate(
        """(id) => {
          const map = document.querySelector("fr-seatmap"), { model, view } = map;
          let i = 0;
          while (model.seat(i).id !== id) i++;
          const k = Math.max(3, view.fit().k); // as people can: the venue stays in sight
          view.camera = view.keepInSight({ k, x: view.w / 2 - model.x[i] * k, y: view.h / 2 - model.y[i] * k });
          view.draw();
          map.scrollIntoView({ block: "center", behavior: "instant" });
          const box = map.getBoundingClientRect();
          const at = view.camera;
          return [box.left + at.x + model.x[i] * at.k, box.top + at.y + model.y[i] * at.k];
        }""",
        seat_id,
    )
    page.mouse.click(*at)
