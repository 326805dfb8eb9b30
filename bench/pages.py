"""The pages' budgets (issue: bytes, CPU, frames), measured with Chromium: `python -m bench.pages`.

A stadium of 50,000 seats is served on the loopback; each page is loaded by a phone with its CPU slowed down four times
over a slow 4G line (150 ms, 1.6 Mbit/s), and by a desktop. Bytes and CPU are gates (exit 1), times are reported.
"""

import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from frontrow.app.wiring import Platform
from frontrow.boxoffice.plans.plan_generator import generate
from tests.browser.served import Site, put_hall
from tests.browser.staff import staff
from tests.browser.steps import EVENT_ID, enter, until
from tests.support.chromium import launch

OUT = Path("bench/out/pages.json")
SLOW_4G = {"offline": False, "latency": 150, "downloadThroughput": 1.6e6 / 8, "uploadThroughput": 750e3 / 8}
SEATS = 50_000
RUNS = 3
WATCH = """window.seen = { lcp: 0, blocked: 0, moved: 0 };
new PerformanceObserver((l) => { for (const e of l.getEntries()) seen.lcp = e.startTime; }).observe({ type: "largest-contentful-paint", buffered: true });
new PerformanceObserver((l) => { for (const e of l.getEntries()) seen.blocked += e.duration - 50; }).observe({ type: "longtask", buffered: true });
new PerformanceObserver((l) => { for (const e of l.getEntries()) if (!e.hadRecentInput) seen.moved += e.value; }).observe({ type: "layout-shift", buffered: true });"""  # noqa: E501
FRAMES = """async () => {
  const { model, map } = window.frontrow, { view } = map, out = {};
  const frame = () => new Promise((go) => requestAnimationFrame(go)), rest = (ms) => new Promise((go) => setTimeout(go, ms));
  const sorted = (all) => all.toSorted((a, b) => a - b), at = (all, part) => sorted(all)[Math.min(all.length - 1, Math.floor(all.length * part))];
  const run = async (name, move, many = 60) => {
    const gaps = [], paints = [];
    let last = await frame();
    for (let i = 0; i < many; i++) { move(i); const now = await frame(); gaps.push(now - last); paints.push(view.paint_ms); last = now; }
    out[name] = { frame_p50: at(gaps, 0.5), frame_p95: at(gaps, 0.95), paint_p95: at(paints, 0.95) };
  };
  await run("pan overview", (i) => map.pan(6 * Math.sin(i / 6), 4));
  map.flyTo(20); await rest(900);
  await run("pan seats", (i) => map.pan(14, 9 * Math.sin(i / 5)));
  map.fit(); await rest(900);
  await run("zoom", (i) => map.zoom(i < 30 ? 1.08 : 1 / 1.08)); await rest(400);
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
    for (let n = 1; n <= 15; n++) { const body = frames(n); await frame(); const began = performance.now(); const changed = model.applyFrame(body); view.touch(changed); times.push(performance.now() - began); await frame(); }
    out[`1000 changes, ${where}`] = { apply_p50: at(times, 0.5), apply_max: Math.max(...times) };
  }
  return out;
}"""  # noqa: E501


async def put_stadium(platform: Platform) -> None:
    await put_hall(platform, generate("stadium", SEATS))


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
    context.close()
    return {
        "js_bytes": scripts + inline,
        "total_bytes": sum(sizes.values()),
        "lcp_ms": seen["lcp"],
        "interactive_ms": mark,
        "blocked_ms": seen["blocked"],
        "shift": seen["moved"],
        "script_cpu_ms": told["ScriptDuration"] * 1000,
        "all_cpu_ms": told["TaskDuration"] * 1000,
    }


def frames(browser: Browser, site: Site, cookies: Any, *, phone: bool) -> Any:
    size = {"width": 390, "height": 844} if phone else {"width": 1280, "height": 800}
    context = browser.new_context(viewport=size, device_scale_factor=3 if phone else 1)  # type: ignore[arg-type]
    context.add_cookies(cookies)
    page = context.new_page()
    if phone:
        context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": 4})
    page.goto(f"{site.url}/events/{EVENT_ID}/seats")
    until(page, "window.frontrow")
    page.wait_for_timeout(1500)
    page.evaluate("window.frontrow.feed.stop()")
    found = page.evaluate(FRAMES)
    context.close()
    return found


def inside(browser: Browser, site: Site) -> Any:
    """The cookies of somebody who was let in."""
    context = browser.new_context()
    page: Page = context.new_page()
    enter(page, site)
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


def measure() -> dict[str, Any]:
    found: dict[str, Any] = {"pages": {}, "frames": {}}
    with tempfile.TemporaryDirectory() as folder, Site(Path(folder), put_stadium) as site, sync_playwright() as tools:
        browser = launch(tools.chromium)
        cookies, team = inside(browser, site), organiser(browser, site)
        paths = {
            "events": "/",
            "event": f"/events/{EVENT_ID}",
            "room": f"/v1/events/{EVENT_ID}/room/",
            "seats": f"/events/{EVENT_ID}/seats",
            "live": f"/organiser/events/{EVENT_ID}/live",
        }
        for name, path in paths.items():
            for kind in ("phone", "desktop"):
                mine = {"seats": cookies, "live": team}.get(name, [])
                runs = [loaded(browser, site, path, mine, phone=kind == "phone") for _ in range(RUNS)]
                found["pages"][f"{name}, {kind}"] = {
                    key: round(statistics.median(run[key] for run in runs), 3) for key in runs[0]
                }
        for kind in ("phone", "desktop"):
            found["frames"][kind] = frames(browser, site, cookies, phone=kind == "phone")
        browser.close()
    return found


def gates(found: dict[str, Any]) -> list[str]:
    """What is over its budget: bytes and CPU only, never time."""
    pages, late = found["pages"], []
    limits = {
        "room": (8_000, 30_000),
        "seats": (25_000, 60_000),
        "events": (8_000, 60_000),
        "event": (8_000, 60_000),
        "live": (80_000, 160_000),
    }
    for name, (scripts, total) in limits.items():
        row = pages[f"{name}, desktop"]
        if row["js_bytes"] > scripts:
            late.append(f"{name}: {row['js_bytes']} bytes of scripts, {scripts} allowed")
        if row["total_bytes"] > total:
            late.append(f"{name}: {row['total_bytes']} bytes, {total} allowed")
    for where in ("overview", "seats"):
        spent = found["frames"]["desktop"][f"1000 changes, {where}"]["apply_p50"]
        if spent > 8:
            late.append(f"1000 changes in {where}: {spent:.1f} ms of CPU, 8 allowed")
    return late


def main() -> None:
    found = measure()
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(found, indent=1))
    for name, row in found["pages"].items():
        print(
            f"{name:18s}"
            + "  ".join(f"{key} {value:,.0f}" if key != "shift" else f"shift {value:.3f}" for key, value in row.items())
        )
    for kind, rows in found["frames"].items():
        for name, row in rows.items():
            print(f"{kind:8s} {name:24s}" + "  ".join(f"{key} {value:.2f} ms" for key, value in row.items()))
    late = gates(found)
    print("\n".join(late) or "every budget is kept")
    sys.exit(bool(late))


if __name__ == "__main__":
    main()
