"""The gate's page measured: `python -m bench.gate`. Bytes of a first visit, from a camera's frame to the verdict.

A camera made of one ticket's picture is read by zxing-wasm in its worker; the server answers on the loopback. Bytes are
a gate (exit 1), times are reported.
"""

import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from bench.measure import options
from frontrow.web.site.assets import site_assets
from frontrow.web.site.gate.pages import OTHERS, SCRIPT
from tests.browser.gates import CAMERA, SHOW, buy, film, open_gate, put_shows
from tests.browser.served import Site
from tests.browser.staff import staff
from tests.browser.steps import until
from tests.support.chromium import launch

OUT = Path("bench/out/gate.json")
SCANS = 30
MAX_SCRIPT_BYTES = 40 * 1024  # our modules and zxing's, compressed
MAX_ALL_BYTES = 520 * 1024
ALONE = """async ([code, rounds]) => {
  const { sync, link } = window.frontrow.gate, times = [];
  for (let n = 0; n < rounds; n++) {
    const began = performance.now();
    await sync.gate.verify(code, link.now_ms() * 1000);
    times.push(performance.now() - began);
  }
  return times;
}"""


def sizes() -> dict[str, int]:
    """Compressed bytes of everything the gate's page keeps on the device."""
    assets = site_assets()
    paths = dict.fromkeys((*assets.with_imports(SCRIPT), *OTHERS))
    sent = {path: len(assets.files[path].gzipped or assets.files[path].body) for path in paths}
    scripts = sum(size for path, size in sent.items() if path.endswith(".js"))
    own = sum(size for path, size in sent.items() if path.startswith("js/"))
    wasm = sum(size for path, size in sent.items() if path.endswith(".wasm"))
    return {"own_scripts": own, "scripts": scripts, "wasm": wasm, "all": sum(sent.values())}


def camera_scans(page: Page) -> tuple[list[float], float]:
    """Milliseconds from the frame that shows the code to the verdict; and of decoding alone."""
    found = []
    for number in range(SCANS):
        until(page, "(number) => window.frontrow.gate.measured.scans > number", number)
        found.append(float(page.evaluate("window.frontrow.gate.measured.last_ms")))
        page.evaluate("() => { window.frontrow.gate.scanner._last = ''; }")  # as if the next person came
    told: float = page.evaluate("window.frontrow.gate.scanner.decode_ms / window.frontrow.gate.scanner.frames")
    return found, told


def told(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {"p50": round(statistics.median(ordered), 1), "p95": round(ordered[int(len(ordered) * 0.95)], 1)}


def measured() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as kept, Site(Path(kept), put_shows) as site, sync_playwright() as tools:
        (ticket,) = buy(site)
        film(Path(kept) / "ticket.y4m", ticket.code)
        args = [*CAMERA, f"--use-file-for-fake-video-capture={Path(kept) / 'ticket.y4m'}"]
        browser = launch(tools.chromium, args=args)
        context = browser.new_context(viewport={"width": 390, "height": 844}, permissions=["camera"])
        page = context.new_page()
        staff(page, site, role="door")
        open_gate(page, site, event_id=SHOW)
        online, decode_ms = camera_scans(page)
        alone = page.evaluate(ALONE, [ticket.code, 100])
        browser.close()
    return {
        "bytes": sizes(),
        "frame_to_verdict_ms": told(online),
        "decode_ms": round(decode_ms, 1),
        "verify_alone_ms": told(alone),
    }


def main() -> None:
    options(__doc__).parse_args()
    found = measured()
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(found, indent=1))
    print(json.dumps(found, indent=1))
    if found["bytes"]["scripts"] > MAX_SCRIPT_BYTES or found["bytes"]["all"] > MAX_ALL_BYTES:
        sys.exit("the gate's page exceeds its budget")


if __name__ == "__main__":
    main()
