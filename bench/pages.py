"""The pages' budgets (issue: bytes, CPU, frames), measured with Chromium: `python -m bench.pages [--quick] [--docs]`.

Stadiums of 20,000 and 50,000 seats are served on the loopback; each page is loaded by a phone with its CPU slowed down
four times over a slow 4G line (150 ms, 1.6 Mbit/s), and by a desktop. Then real fingers and a real mouse move the map
and pick seats. Scripts and styles are minified, as in a wheel. Every figure is the median of five runs (`--quick`:
one). Bytes and CPU are gates (exit 1), times are printed beside their targets: they belong to a quiet machine. `--docs`
takes those of the map over into docs/pages.md.
"""

import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from bench.seats_docs import DOCS, put
from frontrow.app.wiring import Platform
from frontrow.boxoffice.seats.formats.plan_generator import generate
from tests.browser.served import Site, put_hall
from tests.browser.staff import staff
from tests.browser.steps import EVENT_ID, enter, until
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


def loaded(browser: Browser, site: Site, path: str, cookies: Any, *, phone: bool) -> dict[str, float]:
    """One cold load of a page: bytes by kind, when it was painted, how long it was busy."""
    size = {"width": 390, "height": 844} if phone else {"width": 1280, "height": 800}
    context = browser.new_context(viewport=size, device_scale_factor=3 if phone else 1)  # type: ignore[arg-type]
    context.add_cookies(cookies)
    context.add_init_script(WATCH)
    page = context.new_page()
    tool = context.new_cdp_session(page)
    tool.send("Network.enable")
    tool.send("Performance.enable")
    if phone:
        tool.send("Network.emulateNetworkConditions", SLOW_4G)
        tool.send("Emulation.setCPUThrottlingRate", {"rate": 4})
    sizes: dict[str, int] = {}
    kinds: dict[str, str] = {}
    tool.on("Network.responseReceived", lambda e: kinds.__setitem__(e["requestId"], e["response"]["mimeType"]))
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
    context.close()
    return {
        "js_bytes": scripts + inline,
        "total_bytes": sum(sizes.values()) - fonts,  # the font is loaded once for all pages
        "font_bytes": fonts,
        "lcp_ms": seen["lcp"],
        "interactive_ms": mark,
        "blocked_ms": seen["blocked"],
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


def organiser(browser: Browser, site: Site) -> Any:
    """The cookies of a member of the team."""
    context = browser.new_context()
    page: Page = context.new_page()
    staff(page, site)
    cookies = context.cookies(site.url.replace("http://", "https://"))
    context.close()
    return cookies


def measure(runs: int) -> dict[str, Any]:
    found: dict[str, Any] = {"pages": {}, "map": {}}
    with tempfile.TemporaryDirectory() as folder, Site(Path(folder), put_stadiums) as site, sync_playwright() as tools:
        browser = launch(tools.chromium)
        team = organiser(browser, site)
        paths = {
            "events": "/",
            "event": f"/events/{EVENT_ID}",
            "room": f"/v1/events/{EVENT_ID}/room/",
            "seats": f"/events/{EVENT_ID}/seats",
            "live": f"/organiser/events/{EVENT_ID}/live",
        }
        for name, path in paths.items():
            for kind in ("phone", "desktop"):
                times = []
                for _ in range(runs):  # a visit ends soon after its page was closed, so each run is one of its own
                    mine = inside(browser, site, EVENT_ID) if name == "seats" else team if name == "live" else []
                    times.append(loaded(browser, site, path, mine, phone=kind == "phone"))
                found["pages"][f"{name}, {kind}"] = middle_run(times)
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
        browser.close()
    return found


def middle_run(runs: list[dict[str, float]]) -> dict[str, float]:
    return {key: round(statistics.median(run[key] for run in runs), 3) for key in runs[0]}


def gates(found: dict[str, Any]) -> list[str]:
    """What is over its budget: bytes and CPU only, never time."""
    pages, late = found["pages"], []
    limits = {
        "room": (8_000, 30_000),
        "seats": (34_000, 66_000),
        "events": (8_000, 60_000),
        "event": (8_000, 60_000),
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
    with tempfile.TemporaryDirectory() as folder, serving_built(Path(folder) / "web"):
        found = measure(1 if "--quick" in sys.argv else RUNS)
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
    print("1000 changes: " + "  ".join(f"{where} {spent:.1f} ms" for where, spent in found["changes"].items()))
    if "--docs" in sys.argv:
        put(DOCS / "pages.md", "map", map_table(found["map"]))
    late = gates(found)
    print("\n".join(late) or "every budget is kept")
    sys.exit(bool(late))


if __name__ == "__main__":
    main()
