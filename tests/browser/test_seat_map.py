"""The seat map under a mouse, fingers and a keyboard: no frame is blank or stretched, nothing is lost or in the way."""

from typing import Any

import pytest
from playwright.sync_api import Browser, CDPSession, Page, expect

from frontrow.app.wiring import Platform
from frontrow.boxoffice.holds.model.holds import ShopPass
from tests.browser.served import Site
from tests.browser.steps import EVENT_ID, choose, enter, landed, until

# Composes what the canvases show and looks at the middle of each seat in sight, after every frame of a movement.
WATCH = """async ([move, frames]) => {
  const { map, model } = window.frontrow, { view } = map, canvases = [...map.querySelectorAll("canvas")];
  const box = map.getBoundingClientRect(), shot = document.createElement("canvas");
  shot.width = box.width; shot.height = box.height;
  const g = shot.getContext("2d", { willReadFrequently: true });
  g.fillStyle = view.theme.bg; g.fillRect(0, 0, 1, 1);
  const [r0, g0, b0] = g.getImageData(0, 0, 1, 1).data, seen = [];
  const look = () => {
    g.fillStyle = view.theme.bg; g.fillRect(0, 0, shot.width, shot.height);
    let stretched = 0, blank = 0, looked = 0;
    for (const canvas of canvases) {
      const at = canvas.getBoundingClientRect();
      stretched = Math.max(stretched, Math.abs(at.width * view.dpr - canvas.width));
      g.drawImage(canvas, at.left - box.left, at.top - box.top, at.width, at.height);
    }
    const { data } = g.getImageData(0, 0, shot.width, shot.height), { k, x, y } = view.camera;
    for (let i = 0; i < model.n; i++) {
      const sx = Math.round(model.x[i] * k + x), sy = Math.round(model.y[i] * k + y);
      if (sx < 20 || sy < 20 || sx > box.width - 20 || sy > box.height - 20) continue;
      const r = Math.round(2.2 * k), around = [[0, 0], [r, 0], [-r, 0], [0, r], [0, -r]];
      const empty = around.every(([dx, dy]) => {
        const p = 4 * ((sy + dy) * shot.width + sx + dx);
        return data[p] === r0 && data[p + 1] === g0 && data[p + 2] === b0;
      });
      looked++; blank += Number(empty);
    }
    seen.push({ stretched, blank: looked ? blank / looked : 0, looked });
  };
  const frame = () => new Promise((go) => requestAnimationFrame(() => setTimeout(go)));
  const go = { fly: () => map.flyTo(2), back: () => map.fit(), zoom: () => {}, pan: () => {} }[move];
  go();
  for (let n = 0; n < frames && (map.flying || move === "zoom" || move === "pan"); n++) {
    if (move === "zoom") map.zoom(n < frames / 2 ? 1.25 : 0.8);
    if (move === "pan") map.pan(n < frames / 2 ? 140 : -170, n < frames / 2 ? 90 : -60);
    await frame(); look();
  }
  return seen;
}"""
# Pushes the map by little steps while seats change, and compares what is seen with the same painted anew: how many
# pixels differ, how many of the pushed frames painted all seats again, and how many pixels the change was.
PUSH = """() => {
  const { map, model } = window.frontrow, { view } = map, { base } = view;
  const shot = () => new Uint32Array(view.g.getImageData(0, 0, base.width, base.height).data.buffer);
  const apart = (a, b) => a.reduce((n, one, at) => n + Number(one !== b[at]), 0);
  let full = 0;
  const put = view.dg.putImageData.bind(view.dg);
  view.dg.putImageData = (...how) => { full += Number(!how.length || how[5] > base.width / 2); put(...how); };
  for (let n = 0; n < 6; n++) {
    view.camera = { ...view.camera, x: view.camera.x + 5, y: view.camera.y - 3 };
    view.draw();
  }
  const { k, x, y } = view.camera, [mx, my] = view.middle, seat = model.hit((mx - x) / k, (my - y) / k, 200);
  const before = shot(), was = model.state[seat];
  model.state[seat] = 2; view.touch([seat]); view.draw();
  const kept = shot(), painted = full;
  view.invalidate(); view.draw();
  const fresh = shot();
  model.state[seat] = was;
  return { painted, differ: apart(kept, fresh), change: apart(before, kept), seats: view.showsSeats };
}"""
# The fewest seats in sight wherever the map is pushed to, from its corners to the empty middle of its rings.
FEWEST_IN_SIGHT = """() => {
  const { map, model } = window.frontrow, { view } = map, [x0, y0, x1, y1] = model.box, [mx, my] = view.middle;
  let fewest = Infinity;
  for (const zoom of [3, 6, 12])
    for (const wx of [x0, (x0 + x1) / 2, x1]) for (const wy of [y0, (y0 + y1) / 2, y1]) {
      const k = view.fit().k * zoom, at = view.keepInSight({ k, x: mx - wx * k, y: my - wy * k });
      let seen = 0;
      for (let i = 0; i < model.n; i++) {
        const px = model.x[i] * at.k + at.x, py = model.y[i] * at.k + at.y;
        seen += Number(px > 0 && px < view.w && py > 0 && py < view.h);
      }
      fewest = Math.min(fewest, seen);
    }
  return fewest;
}"""
# How far the middle of the view is inside the venue's four sides.
INSIDE = """() => {
  const { map, model } = window.frontrow, { k, x, y } = map.view.camera, [mx, my] = map.view.middle;
  const [x0, y0, x1, y1] = model.box, wx = (mx - x) / k, wy = (my - y) / k;
  return [wx - x0, x1 - wx, wy - y0, y1 - wy];
}"""
ON_SCREEN = """(i) => {
  const { map, model } = window.frontrow, { k, x, y } = map.view.camera, box = map.getBoundingClientRect();
  return [model.x[i] * k + x + box.left, model.y[i] * k + y + box.top];
}"""
COVERED = """() => {
  const legend = document.querySelector(".legend").getBoundingClientRect(), { map, model } = window.frontrow;
  return model.box[1] * map.view.camera.k + map.view.camera.y + map.getBoundingClientRect().top < legend.bottom;
}"""
# Pixels of the ring, and those of them that lie over names.
RINGED = """() => {
  const { view } = window.frontrow.map, { over, dpr } = view;
  const { data } = view.og.getImageData(0, 0, over.width, over.height);
  const seen = (x, y) => data[4 * (Math.round(y) * over.width + Math.round(x)) + 3] > 0;
  let ring = 0, hidden = 0;
  for (let at = 3; at < data.length; at += 4) ring += Number(data[at] > 0);
  for (const [x0, y0, x1, y1] of view.prints.boxes)
    for (let x = Math.max(0, Math.ceil(x0 * dpr) + 1); x < Math.min(over.width, x1 * dpr - 1); x++)
      for (let y = Math.max(0, Math.ceil(y0 * dpr) + 1); y < Math.min(over.height, y1 * dpr - 1); y++)
        hidden += Number(seen(x, y));
  return { ring, hidden };
}"""
# How many seats lie under the legend or the buttons: of a section, or of the venue.
UNDER_CONTROLS = """(s) => {
  const { map, model } = window.frontrow, { k, x, y } = map.view.camera, at = map.getBoundingClientRect();
  const boxes = [...document.querySelectorAll(".legend, .zoom")].map((one) => one.getBoundingClientRect());
  const from = s < 0 ? 0 : model.sections[s].base, to = s < 0 ? model.n : from + model.sections[s].n;
  let under = 0;
  for (let i = from; i < to; i++) {
    const sx = model.x[i] * k + x + at.left, sy = model.y[i] * k + y + at.top;
    under += Number(boxes.some((b) => sx > b.left && sx < b.right && sy > b.top && sy < b.bottom));
  }
  return under;
}"""
# Seats of the list that stick out of it to the side.
CUT = """() => {
  const { left, right } = document.querySelector("#scroll").getBoundingClientRect();
  return [...document.querySelectorAll("#grid [role=gridcell]")].map((one) => one.getBoundingClientRect())
    .filter((one) => one.width && (one.left < left || one.right > right)).length;
}"""
IN_THE_MIDDLE = """() => {
  const { map, model } = window.frontrow, { k, x, y } = map.view.camera, [mx, my] = map.view.middle;
  return model.hit((mx - x) / k, (my - y) / k, 200);
}"""
# As the page does with the colours that the server sends.
TIER_COLOUR = """([light, dark]) => {
  const { map } = window.frontrow;
  document.documentElement.style.setProperty("--tier-0", `light-dark(${light}, ${dark})`);
  map.view.readTheme();
  return map.view.theme.tiers[0];
}"""
# The names beside the sections in small type, for which there is room.
NAMED = """() => {
  const { map, model } = window.frontrow, [x0, y0, x1, y1] = model.box;
  for (const one of model.sections) one.name = `Terrace ${one.id}`;
  map.view.labels.choose([...model.sections.keys()], 1, [x0 - 500, y0 - 500, x1 + 500, y1 + 500], false);
  return map.view.labels.spots.filter(Boolean).map((one) => one.text);
}"""
NAMES = """(s) => {
  const { map, model } = window.frontrow, { labels } = map.view;
  let least = Infinity;
  for (const { x, y } of [...labels.spots.filter(Boolean), ...labels.rows(s)])
    for (let i = 0; i < model.n; i++) least = Math.min(least, Math.hypot(model.x[i] - x, model.y[i] - y));
  return { least, rows: labels.rows(s).map((one) => one.text) };
}"""


@pytest.fixture(scope="module")
def let_in(browser: Browser, site: Site) -> Any:
    """What the browser of somebody who was let in keeps."""
    context = browser.new_context()
    enter(context.new_page(), site)
    kept = context.storage_state()
    context.close()
    return kept


@pytest.fixture
def open_map(profile: Any, site: Site, let_in: Any) -> Any:
    def make(width: int = 1280, height: int = 800, **more: Any) -> Page:
        page: Page = profile(width, height, storage_state=let_in, **more).new_page()
        page.goto(f"{site.url}/events/{EVENT_ID}/seats")
        until(page, "window.frontrow")
        return page

    return make


@pytest.fixture
def phone(open_map: Any) -> Page:
    page: Page = open_map(390, 844, has_touch=True, is_mobile=True)
    return page


def camera(page: Page) -> dict[str, float]:
    found: dict[str, float] = page.evaluate("({ ...window.frontrow.map.view.camera })")
    return found


def mine(page: Page) -> list[int]:
    found: list[int] = page.evaluate("[...window.frontrow.model.mine]")
    return found


def middle_of(page: Page) -> tuple[float, float]:
    box = page.locator("fr-seatmap").bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def on_screen(page: Page, seat: int) -> tuple[float, float]:
    x, y = page.evaluate(ON_SCREEN, seat)
    return x, y


def drag(fingers: CDPSession, at: list[tuple[float, float]], by: list[tuple[float, float]], steps: int = 12) -> None:
    """Fingers come down, move a little `steps` times, and leave."""
    for step in range(steps + 1):
        points = [
            {"x": x + dx * step, "y": y + dy * step, "id": n}
            for n, ((x, y), (dx, dy)) in enumerate(zip(at, by, strict=True))
        ]
        kind = "touchMove" if step else "touchStart"
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    fingers.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_no_frame_of_a_movement_is_blank_or_stretched(open_map: Any) -> None:
    """On a slow computer: into a section, across it, back to everything, and through the zooms between."""
    page = open_map()
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": 6})
    page.evaluate("window.frontrow.feed.stop()")
    for move, frames in (("fly", 200), ("pan", 8), ("back", 200), ("zoom", 16)):
        seen = page.evaluate(WATCH, [move, frames])
        assert seen
        assert any(one["looked"] > 50 for one in seen), move
        assert max(one["stretched"] for one in seen) < 2, f"{move}: a picture was stretched"
        assert max(one["blank"] for one in seen) < 0.06, f"{move}: seats were missing (names cover a few)"


def test_a_pushed_map_moves_the_painted_seats_along_and_shows_the_same(open_map: Any) -> None:
    page = open_map()
    page.evaluate("window.frontrow.feed.stop()")
    page.evaluate("window.frontrow.map.flyTo(2)")
    landed(page)
    seen = page.evaluate(PUSH)
    assert seen["seats"]
    assert seen["painted"] <= 1, "the first step paints the seats around as well, the others none"
    assert seen["change"] > 20, "the seat that changed"
    assert seen["differ"] < 20, "at most at the rim of that seat"


def test_names_stand_beside_seats_and_rows_have_theirs(open_map: Any) -> None:
    page = open_map()
    theirs = page.evaluate(TIER_COLOUR, ["#0f766e", "#2dd4bf"])
    assert theirs == "rgb(15, 118, 110)", "the map draws a tier in the organiser's colour"
    for section in (2, 5):
        page.evaluate("(s) => window.frontrow.map.flyTo(s)", section)
        landed(page)
        until(page, "window.frontrow.map.view.labels.spots.length > 0")
        found = page.evaluate(NAMES, section)
        assert found["least"] > 5, "no name lies over a seat"
        assert {"A", "B"} <= set(found["rows"])
    narrow = page.evaluate("window.frontrow.model.sections.findIndex((one) => one.id === '102')")
    found = page.evaluate(NAMES, narrow)
    assert found["least"] > 5
    assert "".join(found["rows"]) == "ABCDEFG", "in a narrow aisle one side has the names of the rows"
    named = page.evaluate(NAMED)
    assert named, "some have room"
    assert all(name.startswith("Terrace ") for name in named), "the organiser's names, not the ids"


def test_two_fingers_zoom_and_one_moves_the_map(phone: Page) -> None:
    x, y = middle_of(phone)
    fingers = phone.context.new_cdp_session(phone)
    before = camera(phone)
    drag(fingers, [(x - 20, y), (x + 20, y)], [(-8, 0), (8, 0)])
    until(phone, "(k) => window.frontrow.map.view.camera.k > k * 2", before["k"])
    zoomed = camera(phone)
    assert sum(camera_shows(phone, (x, y), before)) == pytest.approx(sum(camera_shows(phone, (x, y), zoomed)), rel=0.1)
    drag(fingers, [(x, y)], [(6, 4)])
    until(phone, "(x) => window.frontrow.map.view.camera.x > x + 20", zoomed["x"])
    assert camera(phone)["k"] == zoomed["k"]
    assert not mine(phone), "neither gesture picked a seat"
    for _ in range(3):
        drag(fingers, [(x, y)], [(30, 30)])
    assert min(phone.evaluate(INSIDE)) > -40, "however far it is dragged, the venue stays in sight"
    assert phone.evaluate(FEWEST_IN_SIGHT) > 0, "and some of its seats do, also where the venue does not fill its box"


def camera_shows(page: Page, at: tuple[float, float], seen: dict[str, float]) -> tuple[float, float]:
    """The spot of the venue under a point of the screen."""
    left, top = page.evaluate("(({ left, top }) => [left, top])(window.frontrow.map.getBoundingClientRect())")
    return ((at[0] - left - seen["x"]) / seen["k"], (at[1] - top - seen["y"]) / seen["k"])


def test_on_a_phone_a_tap_opens_a_section_and_the_next_one_picks_a_seat(phone: Page) -> None:
    legend = phone.locator(".legend")
    expect(legend).to_be_visible()
    expect(legend).to_contain_text("€45")
    assert not phone.evaluate(COVERED), "the prices do not cover the venue"
    first = phone.evaluate("window.frontrow.model.sections[2].base + 40")
    phone.touchscreen.tap(*on_screen(phone, first))
    landed(phone)
    until(phone, "!document.querySelector('#gridbox').hidden")
    expect(phone.locator("#scroll")).to_be_hidden()
    assert phone.evaluate("window.frontrow.map.view.seatPx") >= 22
    seat = phone.evaluate(IN_THE_MIDDLE)
    phone.touchscreen.tap(*on_screen(phone, seat))
    expect(phone.get_by_role("button", name="Continue with 1 seat")).to_be_visible()
    assert mine(phone) == [seat], "the first tap on a seat of that size picks it"
    grip = phone.get_by_role("button", name="List of seats")
    expect(grip).to_have_attribute("aria-expanded", "false")
    grip.click()
    expect(phone.locator("#scroll")).to_be_visible()
    phone.get_by_role("button", name="Remove").click()
    phone.set_viewport_size({"width": 844, "height": 390})
    assert phone.evaluate("document.documentElement.scrollHeight <= innerHeight"), (
        "sideways there is nothing to scroll past"
    )


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 800), (1920, 1080)])
def test_neither_legend_nor_buttons_cover_a_seat(open_map: Any, width: int, height: int) -> None:
    page = open_map(width, height)
    assert page.evaluate(UNDER_CONTROLS, -1) == 0, "of the whole venue"
    page.evaluate("window.frontrow.map.flyTo(2)")
    landed(page)
    assert page.evaluate(UNDER_CONTROLS, 2) == 0, "of the section one looks at"


@pytest.mark.parametrize("width", [390, 1280])
def test_no_seat_of_the_list_is_cut(open_map: Any, width: int) -> None:
    """Before: a row ended at seat 9 on a laptop."""
    page = open_map(width)
    if width < 500:
        page.get_by_role("button", name="List only").click()
    page.locator("#list button").first.click()
    seats = page.locator("#grid [role=row]").first.get_by_role("gridcell")
    expect(seats.nth(9)).to_be_visible()
    assert page.evaluate(CUT) == 0


def test_the_keyboard_shows_where_it_is(open_map: Any) -> None:
    page = open_map()
    box = page.locator("fr-seatmap").bounding_box()
    assert box is not None
    edge = {"x": box["x"], "y": box["y"] + 40, "width": 4, "height": 200}
    before = page.screenshot(clip=edge)
    page.keyboard.press("Tab")
    while not page.evaluate("document.activeElement?.localName === 'fr-seatmap'"):
        page.keyboard.press("Tab")
    assert page.screenshot(clip=edge) != before, "a ring around the map"
    assert page.evaluate("window.frontrow.map.view.options.focusSection") >= 0, "and around a section of it"


def test_the_ring_around_a_section_hides_no_name_of_a_row(open_map: Any) -> None:
    """Before: the ring was painted over the letters at the edge of the section."""
    page = open_map()
    page.evaluate("window.frontrow.map.flyTo(2)")
    landed(page)
    until(page, "window.frontrow.map.view.prints.boxes.length > 4")
    assert page.evaluate(RINGED)["ring"] > 100, "there is a ring"
    until(page, f"() => ({RINGED})().hidden === 0")


def test_a_tip_goes_with_what_it_describes(open_map: Any, site: Site) -> None:
    page = open_map()
    tip = page.locator("#tip")
    seat = page.evaluate("window.frontrow.model.sections[2].base + 3")
    page.mouse.move(*on_screen(page, seat))
    expect(tip).to_be_visible()
    page.evaluate("window.frontrow.map.flyTo(2)")
    expect(tip).to_be_hidden()
    landed(page)
    page.mouse.move(*on_screen(page, seat + 1))
    page.mouse.move(*on_screen(page, seat))
    expect(tip).to_contain_text("free")
    page.mouse.click(*on_screen(page, seat))
    expect(tip).to_contain_text("chosen by you")
    page.mouse.click(*on_screen(page, seat))
    expect(tip).to_contain_text("free")
    site.call(lambda platform: take(platform, seat))
    expect(tip).to_contain_text("held by someone")
    page.keyboard.press("Tab")
    page.locator("fr-seatmap").focus()
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    page.mouse.move(*on_screen(page, seat + 1))
    expect(tip).to_be_visible()
    page.mouse.wheel(0, -200)
    expect(tip).to_be_hidden()


async def take(platform: Platform, seat: int, who: str = "faster") -> None:
    visit = ShopPass(EVENT_ID, f"place:{who}", platform.clock() + 600_000_000, who)
    name = platform.box_office.sales.get(EVENT_ID).plan.seat_ids[seat]
    await platform.box_office.holds.place(EVENT_ID, visit, [name])


def test_back_reload_and_another_tab_find_the_hold_and_change_it(fan: Page, site: Site) -> None:
    """One person, two tabs: the seats are held once, changed in one step, and the total is that of the new ones."""
    enter(fan, site)
    first, second = choose(fan, 2)
    fan.get_by_role("button", name="Continue with 2 seats").click()
    fan.wait_for_url("**/checkout/**")
    checkout = fan.url
    fan.go_back()
    until(fan, "window.frontrow")
    banner = fan.locator("#held")
    expect(banner).to_contain_text("2 seats held")
    expect(banner.get_by_role("timer")).to_contain_text(":")
    assert mine(fan) == [first, second]
    other = fan.context.new_page()
    other.goto(f"{site.url}/events/{EVENT_ID}/seats")
    until(other, "window.frontrow")
    expect(other.locator("#held")).to_contain_text("2 seats held")
    other.evaluate("(seats) => { for (const i of seats) window.frontrow.pick(i); }", [first, second + 1, second + 2])
    assert mine(other) == [second, second + 1, second + 2]
    other.get_by_role("button", name="Continue with 3 seats").click()
    other.wait_for_url("**/checkout/**")
    assert other.url == checkout, "the same hold"
    until(fan, "(i) => window.frontrow.model.state[i] === 0", first)
    fan.reload()
    until(fan, "window.frontrow")
    expect(fan.locator("#held")).to_contain_text("3 seats held")
    assert mine(fan) == [second, second + 1, second + 2]
    fan.set_viewport_size({"width": 390, "height": 844})
    expect(fan.get_by_role("button", name="Continue to checkout")).to_be_in_viewport()
    fan.evaluate("(i) => window.frontrow.pick(i)", second)
    expect(fan.get_by_role("button", name="Continue with 2 seats")).to_be_in_viewport()
    fan.evaluate("(i) => window.frontrow.pick(i)", second)
    fan.get_by_role("button", name="Continue to checkout").click()
    fan.wait_for_url(checkout)
    fan.go_back()
    fan.locator("#held").get_by_role("button", name="Release").click()
    until(fan, "window.frontrow && !document.querySelector('#held')")
    assert mine(fan) == []


def test_a_conflict_keeps_the_rest_and_offers_the_seat_beside_it_with_its_price(open_map: Any, site: Site) -> None:
    page = open_map()
    base = page.evaluate("window.frontrow.model.sections[4].base + 1")
    page.evaluate("(base) => { for (let j = 0; j < 3; j++) window.frontrow.pick(base + j); }", base)
    site.call(lambda platform: take(platform, base + 2, "faster too"))
    expect(page.locator("#notes")).to_contain_text("Someone was faster")
    expect(page.locator("#instead")).to_contain_text("€")
    assert mine(page) == [base, base + 1]
    page.locator("#instead").click()
    first, second, other = mine(page)
    assert (first, second) == (base, base + 1), "what was chosen stays chosen"
    assert other not in (base, base + 1, base + 2)
    near = "([a, b]) => { const { x, y } = window.frontrow.model; return Math.hypot(x[a] - x[b], y[a] - y[b]); }"
    assert min(page.evaluate(near, [seat, other]) for seat in (first, second)) < 20, "beside it"
    assert page.evaluate("(i) => window.frontrow.model.state[i]", other) == 0


def test_filters_count_and_colour_alike_and_say_when_nothing_is_left(open_map: Any) -> None:
    page = open_map()
    page.evaluate("window.frontrow.feed.stop()")
    page.locator("#step-free").check()
    counted = page.evaluate(
        """() => { const { model } = window.frontrow; let free = 0, own = 0;
        for (let i = 0; i < model.n; i++) own += Number(model.state[i] === 0 && (model.flags[i] & 1) > 0);
        for (const one of model.sections) free += one.fit;
        return [free, own]; }"""
    )
    assert counted[0] == counted[1] > 0
    expect(page.locator("#count-free")).to_have_text(f"{counted[0]} seats free")
    names = page.locator("#list strong").all_inner_texts()
    assert names == sorted(names), "in the order of their names, not of what is left in them"
    listed = page.locator("#list button").count()
    assert listed == page.evaluate("window.frontrow.model.sections.filter((one) => one.fit).length")
    lose = """(all) => { const { model, map } = window.frontrow;
      for (let i = 0; i < model.n; i++) if (all || model.flags[i] & 1) model.lose(i); map.view.invalidate(); }"""
    page.evaluate(lose, False)
    page.locator("#step-free").uncheck()
    page.locator("#step-free").check()
    expect(page.get_by_text("No free seats match")).to_be_visible()
    assert page.locator("#list button").count() == 0
    page.get_by_role("button", name="Show all free seats").click()
    expect(page.get_by_text("No free seats match")).to_be_hidden()
    assert page.locator("#list button").count() > listed
    page.evaluate(lose, True)
    page.locator("#step-free").dispatch_event("change")
    waitlist = page.get_by_role("link", name="Join the waitlist")
    expect(page.locator("#choosing, #nothing").filter(visible=True)).to_have_count(0)
    expect(waitlist).to_have_attribute("href", f"/events/{EVENT_ID}/waitlist")
