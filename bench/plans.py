"""CPU time of plans, best available and the map's encodings. `python -m bench.plans` prints one table."""

import gzip
import random
import time
from collections.abc import Callable
from typing import Any

from bench.measure import options
from frontrow.boxoffice.events.model.events import Event, PriceTier
from frontrow.boxoffice.holds.model.requested_seats import Wish, masks_for
from frontrow.boxoffice.seats.event_map import map_bytes
from frontrow.boxoffice.seats.formats.plan_document import plan_bytes
from frontrow.boxoffice.seats.formats.plan_generator import generate
from frontrow.boxoffice.seats.formats.plan_reader import decode_plan
from frontrow.boxoffice.seats.formats.pretix_format import from_pretix, to_pretix
from frontrow.boxoffice.seats.map.map_ring import MapRing
from frontrow.boxoffice.seats.model.best_seats import best_available, layouts
from frontrow.boxoffice.seats.model.map_format import Frame, Snapshot, decode_changes, encode_changes, write_snapshot
from frontrow.boxoffice.seats.plan_svg import to_svg
from frontrow.shared.money import Money

SEATS = 50_000


def cpu_s(work: Callable[[], Any], times: int = 1) -> tuple[float, Any]:
    """CPU seconds of one call, and its result."""
    began = time.process_time()
    for _ in range(times):
        result = work()
    return (time.process_time() - began) / times, result


def main() -> None:
    options(__doc__).parse_args()
    rows: list[tuple[str, str]] = []
    spent, plan = cpu_s(lambda: generate("stadium", SEATS))
    rows.append((f"generate a stadium of {SEATS:,}", f"{spent:.2f} s"))
    spent, body = cpu_s(lambda: plan_bytes(plan))
    rows.append(
        ("write its plan document", f"{spent * 1e3:.0f} ms, {len(body):,} B, gz {len(gzip.compress(body)):,} B")
    )
    spent, _ = cpu_s(lambda: decode_plan(body))
    rows.append(("read it back", f"{spent * 1e3:.0f} ms"))
    spent, document = cpu_s(lambda: to_pretix(plan))
    rows.append(("export to pretix", f"{spent:.2f} s"))
    spent, _ = cpu_s(lambda: from_pretix(document))
    rows.append(("import from pretix, checked", f"{spent:.2f} s"))
    spent, svg = cpu_s(lambda: to_svg(plan))
    rows.append(("draw", f"{spent:.2f} s, {len(svg):,} B"))
    tiers = tuple(PriceTier(key, Money(5000, "EUR")) for key in plan.tiers)
    event = Event("evt_1", "Aurora", "ven_1", "", "EUR", 9, 0, 8, tiers)
    spent, geometry = cpu_s(lambda: map_bytes(plan, event))
    rows.append(("geometry document", f"{spent * 1e3:.0f} ms, gz {len(gzip.compress(geometry)):,} B"))
    rows += best_rows(plan, event) + map_rows()
    width = max(len(name) for name, _ in rows)
    for name, figure in rows:
        print(f"{name:<{width}}  {figure}")


def best_rows(plan: Any, event: Event) -> list[tuple[str, str]]:
    """Selling the whole stadium, group after group."""
    sections = layouts(plan)
    masks_s, masks = cpu_s(lambda: masks_for(plan, sections, event, Wish(2)), 20)
    rnd, states, sold, calls = random.Random(1), bytearray(plan.size), 0, 0
    began = time.process_time()
    while calls < 3000:
        choice = best_available(sections, states, masks, rnd.choice((1, 2, 2, 2, 3, 4)))
        calls += 1
        if choice is None:
            break
        for index in choice.seats:
            states[index] = 1
        sold += len(choice.seats)
    each_us = (time.process_time() - began) / calls * 1e6
    return [
        ("masks of a wish, whole plan", f"{masks_s * 1e3:.2f} ms"),
        (f"best available, first {calls:,} groups", f"{each_us:.0f} us each, {sold:,} seats"),
    ]


def map_rows() -> list[tuple[str, str]]:
    rnd = random.Random(2)
    states = bytes(rnd.choice((0, 0, 1, 2, 2)) for _ in range(SEATS))
    snapshot_s, body = cpu_s(lambda: write_snapshot(Snapshot(states, 1, 1)), 50)
    changes = {rnd.randrange(SEATS): rnd.randrange(4) for _ in range(1000)}
    encode_s, frame = cpu_s(lambda: encode_changes(changes), 50)
    decode_s, _ = cpu_s(lambda: decode_changes(frame, SEATS), 50)
    ring = MapRing(SEATS)
    ring.reset(bytes(SEATS), 1, 0)
    for seq in range(100):
        ring.apply(Frame(1, seq, seq + 1, frame))
    since_s, _ = cpu_s(lambda: ring.since(1, 99), 2000)
    return [
        ("snapshot", f"{snapshot_s * 1e3:.2f} ms, {len(body):,} B, gz {len(gzip.compress(body)):,} B"),
        ("1,000 changes: encode / decode", f"{encode_s * 1e3:.2f} / {decode_s * 1e3:.2f} ms, {len(frame):,} B"),
        ("a viewer's next frame", f"{since_s * 1e6:.2f} us"),
    ]


if __name__ == "__main__":
    main()
