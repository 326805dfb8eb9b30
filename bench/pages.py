"""The pages' budgets (bytes, LCP, INP, CLS, CPU, frames) in Chromium: `python -m bench.pages [--quick] [--docs]`.

Stadiums of 20,000 and 50,000 seats are served on the loopback; each page is loaded by a phone with its CPU slowed down
four times over a slow 4G line (150 ms, 1.6 Mbit/s), and by a desktop. Then real fingers and a real mouse move the map
and pick seats. Scripts and styles are minified, as in a wheel. Every figure is the median of five runs (`--quick`:
one). Bytes, what moves and CPU are gates (exit 1), times are printed beside their targets: they belong to a quiet
machine. `--pages` leaves the map out. `--docs` takes the figures over into docs/pages.md.
"""

import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from bench.measure import options
from bench.page_budgets import PAGES, acted, budget_table, late_pages
from bench.seats_docs import DOCS, put
from frontrow.app.wiring import Platform
from frontrow.boxoffice.seats.formats.plan_generator import generate
from tests.browser.served import Site, put_hall
from tests.browser.staff import staff
from tests.browser.steps import EVENT_ID, be_let_in, enter, hold_at_once, pay, until
from tests.support.built_files import serving_built
from tests.support.chromium import launch

OUT = Path("bench/out/pages.json")
SLOW_4G = {"offline": False, "latency": 150, "downloadThroughput": 1.6e6 / 8, "uploadThroughput": 750e3 / 8}
STADIUMS = {20_000: "evt_stadium20", 50_000: EVENT_ID}
RUNS = 5
MAX_FONT_BYTES = 40_000
TARGETS_MS = {"inp_ms": 200, "pan_p95_ms": 33, "pinch_p95_ms": 50, "blocked_ms": 300}
COLUMNS = {
    "inp_ms": "interaction to next paint, ms",
    "pan_p95_ms": "frame of a pan, p95 ms",
    "pinch_p95_ms": "frame of a pinch, p95 ms",
    "blocked_ms": "blocked while loading, ms",
}
WATCH = """window.seen = { lcp: 0, blocked: 0, moved: 0 };
delete Navigator.prototype.share;
new PerformanceObserver((l) => { for (const e of l.getEntries()) seen.lcp = e.startTime; }).observe({ type: "largest-contentful-paint", buffered: true });
new PerformanceObserver((l) => { for (const e of l.getEntries()) seen.blocked += e.duration - 50; }).observe({ type: "longtask", buffered: true });
new PerformanceObserver((l) => { for (const e of l.getEntries()) if (!e.hadRecentInput) seen.moved += e.value; }).observe({ type: "layout-shift", buffered: true });"""  # noqa: E501
# What one person's clicks, taps and keys took until the next picture: the longest is the interaction to next paint.
INTERACTIONS = """window.interactions = [0];
new PerformanceObserver((l) => { for (const e of l.getEntries()) if (e.interactionId) interactions.push(e.duration); })
  .observe({ type: "event", durationThreshold: 16, buffered: true });"""
RECORD = """() => {
  window.gaps = []; window.recording = true;
  let last = 0;
  const frame = (now) => { if (last) gaps.push(now - last); last = now; if (recording) requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
}"""
P95 = """() => {
  recording = false;
  const all = gaps.toSorted((a, b) => a - b);
  return all[Math.floor(all.length * 0.95)] ?? 0;
}"""
SEAT_AT = """(i) => {
  const { map, model } = window.frontrow, { k, x, y } = map.view.camera, box = map.getBoundingClientRect();
  return [model.x[i] * k + x + box.left, model.y[i] * k + y + box.top];
}"""
NEAREST = """() => {
  const { map, model } = window.frontrow, { k, x, y } = map.view.camera, [mx, my] = map.view.middle;
  return model.hit((mx - x) / k, (my - y) / k, 200);
}"""
CHANGES = """async () => {
  const { model, map } = window.frontrow, { view } = map, out = {};
  const frame = () => new Promise((go) => requestAnimationFrame(go)), rest = (ms) => new Promise((go) => setTimeout(go, ms));
  const frames = (seed) => {
    let s = seed, last = 0, text = "";
    const random = () => (s = (s * 1664525 + 1013904223) >>> 0) / 4294967296;
    for (const i of [...new Set(Array.from({ length: 1000 }, () => Math.floor(random() * model.n)))].sort((a, b) => a - b)) {
      let value = (i - last) * 4 + Math.floor(random() * 3); last = i;
      while (value > 127) { text += String.fromCharCode((value & 127) | 128); value = Math.floor(value / 128); }
      text += String.fromCharCode(value);
    }
    return btoa(text);
  };
  for (const where of ["overview", "seats"]) {
    if (where === "seats") { map.flyTo(20); await rest(900); }
    const times = [];
    for (let n = 1; n <= 15; n++) { const body = frames(n); await frame(); const began = performance.now(); map.update(model.applyFrame(body)); view.draw(); times.push(performance.now() - began); await frame(); }
    out[where] = times.toSorted((a, b) => a - b)[7];
  }
  return out;
}"""  # noqa: E501


async def put_stadiums(platform: Platform) -> None:
    for seats, event_id in STADIUMS.items():
        await put_hall(platform, generate("stadium", seats), id=event_id)


def loaded(browser: Browser, site: Site, path: str, cookies: Any, *, phone: bool, name: str = "") -> dict[str, float]:
    """One cold load of a page: bytes by kind, when it was painted, how busy it was; then what somebody does there."""
    size = {"width": 390, "height": 844} if phone else {"width": 1280, "height": 800}
    context = browser.new_context(
        viewport=size,  # type: ignore[arg-type]
        device_scale_factor=3 if phone else 1,
        has_touch=True,
        is_mobile=phone,
    )
    context.add_cookies(cookies)
    context.add_init_script(WATCH + INTERACTIONS)
    page = context.new_page()
    tool = context.new_cdp_session(page)
    tool.send("Network.enable")
    tool.send("Performance.enable")
    if phone:
        tool.send("Network.emulateNetworkConditions", SLOW_4G)
        tool.send("Emulation.setCPUThrottlingRate", {"rate": 4})
    sizes: dict[str, int] = {}
    kinds: dict[str, str] = {}
    pictures: set[str] = set()

    def heard(told: Any) -> None:
        kinds[told["requestId"]] = told["response"]["mimeType"]
        if "/pictures/" in told["response"]["url"]:
            pictures.add(told["requestId"])

    tool.on("Network.responseReceived", heard)
    tool.on("Network.loadingFinished", lambda e: sizes.__setitem__(e["requestId"], int(e["encodedDataLength"])))
    page.goto(site.url + path)
    if path.endswith("/seats"):
        until(page, "performance.getEntriesByName('seatmap-interactive').length > 0")
    page.wait_for_timeout(1200 if phone else 500)
    seen = page.evaluate("window.seen")
    told = {one["name"]: one["value"] for one in tool.send("Performance.getMetrics")["metrics"]}
    mark = page.evaluate("performance.getEntriesByName('seatmap-interactive')[0]?.startTime ?? 0")
    inline = page.evaluate("[...document.scripts].reduce((n, s) => n + (s.type === 'module' ? s.text.length : 0), 0)")
    scripts = sum(size for name, size in sizes.items() if "javascript" in kinds.get(name, ""))
    fonts = sum(size for name, size in sizes.items() if "font" in kinds.get(name, ""))
    seen_pictures = sum(size for name, size in sizes.items() if name in pictures)
    total = sum(sizes.values()) - fonts - seen_pictures  # the font is loaded once for all pages
    acted(page, name)
    page.wait_for_timeout(800)
    inp = page.evaluate("Math.max(...window.interactions)")
    context.close()
    return {
        "js_bytes": scripts + inline,
        "total_bytes": total,
        "picture_bytes": seen_pictures,
        "font_bytes": fonts,
        "lcp_ms": seen["lcp"],
        "interactive_ms": mark,
        "blocked_ms": seen["blocked"],
        "inp_ms": inp,
        "shift": seen["moved"],
        "script_cpu_ms": told["ScriptDuration"] * 1000,
        "all_cpu_ms": told["TaskDuration"] * 1000,
    }


def used(browser: Browser, site: Site, event_id: str, cookies: Any, *, phone: bool) -> dict[str, float]:
    """One visit to the seats on a slow CPU: zoom, pan, open a section, pick, filter, go back; what it took."""
    size = {"width": 390, "height": 844} if phone else {"width": 1280, "height": 800}
    context = browser.new_context(
        viewport=size,  # type: ignore[arg-type]
        device_scale_factor=3 if phone else 1,
        has_touch=True,
        is_mobile=phone,
    )
    context.add_cookies(cookies)
    context.add_init_script(INTERACTIONS)
    page = context.new_page()
    tool = context.new_cdp_session(page)
    tool.send("Emulation.setCPUThrottlingRate", {"rate": 4})
    page.goto(f"{site.url}/events/{event_id}/seats")
    until(page, "window.frontrow")
    page.wait_for_timeout(1500)
    page.evaluate("window.frontrow.feed.stop()")
    box = page.locator("fr-seatmap").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    pinch = recorded(page, lambda: drag(tool, [(x - 20, y), (x + 20, y)], [(-1.2, 0), (1.2, 0)], 60))
    pan = recorded(page, lambda: drag(tool, [(x, y)], [(2, 1)], 60))
    page.evaluate("window.frontrow.map.fit()")
    page.wait_for_timeout(800)
    tap(page, page.evaluate("window.frontrow.model.sections[20].base + 60"), phone=phone)
    page.wait_for_timeout(1000)
    pan = max(pan, recorded(page, lambda: drag(tool, [(x, y)], [(1.5, 1)], 60)))
    for _ in range(2):
        tap(page, page.evaluate(NEAREST), phone=phone)
        page.wait_for_timeout(400)
        page.evaluate("window.frontrow.map.pan(40, 0)")
    if phone:
        page.locator("#grip").tap()
        page.wait_for_timeout(400)
    page.locator("#back").click()
    page.wait_for_timeout(800)
    page.locator("#step-free").check()
    page.wait_for_timeout(400)
    page.locator("#step-free").uncheck()
    page.wait_for_timeout(400)
    page.locator("#list button").nth(2).click()
    page.wait_for_timeout(1000)
    page.locator("fr-seatmap").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(400)
    inp = page.evaluate("Math.max(...window.interactions)")
    context.close()
    return {"inp_ms": inp, "pan_p95_ms": pan, "pinch_p95_ms": pinch}


def recorded(page: Page, work: Callable[[], None]) -> float:
    """The 95th percentile of the time between two frames while `work` is done."""
    page.evaluate(RECORD)
    work()
    return float(page.evaluate(P95))


def drag(tool: CDPSession, at: list[tuple[float, float]], by: list[tuple[float, float]], steps: int) -> None:
    """Fingers come down, move a little `steps` times, and leave."""
    for step in range(steps + 1):
        points = [
            {"x": x + dx * step, "y": y + dy * step, "id": n}
            for n, ((x, y), (dx, dy)) in enumerate(zip(at, by, strict=True))
        ]
        tool.send("Input.dispatchTouchEvent", {"type": "touchMove" if step else "touchStart", "touchPoints": points})
    tool.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def tap(page: Page, seat: int, *, phone: bool) -> None:
    x, y = page.evaluate(SEAT_AT, seat)
    if phone:
        page.touchscreen.tap(x, y)
    else:
        page.mouse.click(x, y)


def changes(browser: Browser, site: Site, cookies: Any) -> dict[str, float]:
    """The CPU that a thousand changed seats take on a desktop until they are painted."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.add_cookies(cookies)
    page = context.new_page()
    page.goto(f"{site.url}/events/{EVENT_ID}/seats")
    until(page, "window.frontrow")
    page.wait_for_timeout(1500)
    page.evaluate("window.frontrow.feed.stop()")
    found: dict[str, float] = page.evaluate(CHANGES)
    context.close()
    return found


def inside(browser: Browser, site: Site, event_id: str) -> Any:
    """The cookies of somebody who was let in."""
    context = browser.new_context()
    page: Page = context.new_page()
    enter(page, site, event_id)
    cookies = context.cookies()
    context.close()
    return cookies


def arrived(browser: Browser, site: Site, name: str) -> tuple[str, Any]:
    """Where a page is, and the cookies of somebody who has come as far as it."""
    context = browser.new_context()
    page: Page = context.new_page()
    path = f"/events/{EVENT_ID}"
    match name:
        case "events":
            path = "/"
        case "room":
            path = f"/v1/events/{EVENT_ID}/room/"
        case "seats":
            enter(page, site)
            path += "/seats"
        case "live":
            staff(page, site)
            path = f"/organiser{path}/live"
        case "checkout" | "going" | "tickets":
            be_let_in(page, site.url, EVENT_ID)
            path = f"/checkout/{hold_at_once(page, site.url, EVENT_ID, 2)}"
            if name != "checkout":
                page.goto(site.url + path)
                pay(page)
                page.wait_for_url("**/bookings/**")
                path = "/tickets" if name == "tickets" else page.url.removeprefix(site.url)
    cookies = context.cookies([site.url, site.url.replace("http://", "https://")])
    context.close()
    return path, cookies


def measure(runs: int, *, with_map: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"pages": {}, "map": {}, "changes": {}}
    with tempfile.TemporaryDirectory() as folder, Site(Path(folder), put_stadiums) as site, sync_playwright() as tools:
        browser = launch(tools.chromium)
        for name in (*PAGES, "room"):
            for kind in ("phone", "desktop"):
                times = []
                for _ in range(runs):  # a visit ends soon after its page was closed, so each run is one of its own
                    path, mine = arrived(browser, site, name)
                    times.append(loaded(browser, site, path, mine, phone=kind == "phone", name=name))
                found["pages"][f"{name}, {kind}"] = middle_run(times)
        if with_map:
            measure_map(browser, site, runs, found)
        browser.close()
    return found


def measure_map(browser: Browser, site: Site, runs: int, found: dict[str, Any]) -> None:
    """What the map takes, by stadium and device."""
    for seats, event_id in STADIUMS.items():
        for kind in ("phone", "desktop"):
            took, loads = [], []
            for _ in range(runs):
                mine = inside(browser, site, event_id)
                took.append(used(browser, site, event_id, mine, phone=kind == "phone"))
                mine = inside(browser, site, event_id)
                loads.append(loaded(browser, site, f"/events/{event_id}/seats", mine, phone=kind == "phone"))
            found["map"][f"{seats:,} seats, {kind}"] = {
                **middle_run(took),
                "blocked_ms": middle_run(loads)["blocked_ms"],
            }
    found["changes"] = changes(browser, site, inside(browser, site, EVENT_ID))


def middle_run(runs: list[dict[str, float]]) -> dict[str, float]:
    return {key: round(statistics.median(run[key] for run in runs), 3) for key in runs[0]}


def gates(found: dict[str, Any]) -> list[str]:
    """What is over its budget: bytes, what moves and CPU, never time."""
    pages, late = found["pages"], late_pages(found["pages"])
    limits = {
        "room": (8_000, 30_000),
        "seats": (40_000, 72_000),  # the map, the basket, best seats and the time of the visit
        "events": (8_000, 60_000),
        "event": (8_000, 60_000),
        "checkout": (20_000, 60_000),
        "going": (8_000, 60_000),
        "tickets": (8_000, 60_000),
        "live": (80_000, 160_000),
    }
    font = max(row["font_bytes"] for row in pages.values())
    if font > MAX_FONT_BYTES:
        late.append(f"the font: {font} bytes, {MAX_FONT_BYTES} allowed")
    for name, (scripts, total) in limits.items():
        row = pages[f"{name}, desktop"]
        if row["js_bytes"] > scripts:
            late.append(f"{name}: {row['js_bytes']} bytes of scripts, {scripts} allowed")
        if row["total_bytes"] > total:
            late.append(f"{name}: {row['total_bytes']} bytes, {total} allowed")
    for where, spent in found["changes"].items():
        if spent > 8:
            late.append(f"1000 changes in {where}: {spent:.1f} ms of CPU, 8 allowed")
    return late


def map_table(rows: dict[str, dict[str, float]]) -> str:
    """The figures of docs/pages.md."""
    head = ("map", *(f"{what} (target {TARGETS_MS[key]})" for key, what in COLUMNS.items()))
    lines = [head, ("---", *("---:" for _ in COLUMNS))]
    lines += [(name, *(f"{row[key]:,.0f}" for key in COLUMNS)) for name, row in rows.items()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    arguments = options(__doc__)
    arguments.add_argument("--quick", action="store_true", help=f"one run instead of {RUNS}")
    arguments.add_argument("--pages", action="store_true", help="the pages only, without the map")
    arguments.add_argument("--docs", action="store_true", help="take the figures over into docs/pages.md")
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder, serving_built(Path(folder) / "web"):
        found = measure(1 if chosen.quick else RUNS, with_map=not chosen.pages)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(found, indent=1))
    for name, row in found["pages"].items():
        print(
            f"{name:18s}"
            + "  ".join(f"{key} {value:,.0f}" if key != "shift" else f"shift {value:.3f}" for key, value in row.items())
        )
    for name, row in found["map"].items():
        told = (
            f"{key} {value:,.0f} (target {TARGETS_MS[key]}{'' if round(value) <= TARGETS_MS[key] else ', OVER'})"
            for key, value in row.items()
        )
        print(f"{name:24s}" + "  ".join(told))
    if found["changes"]:
        print("1000 changes: " + "  ".join(f"{where} {spent:.1f} ms" for where, spent in found["changes"].items()))
    print(budget_table(found["pages"]))
    if chosen.docs:
        put(DOCS / "pages.md", "pages", budget_table(found["pages"]))
    if chosen.docs and found["map"]:
        put(DOCS / "pages.md", "map", map_table(found["map"]))
    late = gates(found)
    print("\n".join(late) or "every budget is kept")
    sys.exit(bool(late))


if __name__ == "__main__":
    main()
