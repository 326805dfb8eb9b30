"""`python -m bench.costs`: what a request costs, from the last `make bench-api` (bench/out/api.json) into the package.

`frontrow rehearse` and `frontrow size` read src/frontrow/rehearsal/costs.json. Nothing in it is typed by hand.
"""

import json
from pathlib import Path

from bench.measure import OUT

COSTS = Path(__file__).parent.parent / "src" / "frontrow" / "rehearsal" / "costs.json"
ROUTES = {
    "now-serving": "now_serving", "status": "status", "join": "join", "seats.bin": "seat_states",
    "seats poll": "seat_poll",
    "event": "event", "map drawing": "map", "hold": "hold", "pay": "pay", "booking": "booking",
}  # fmt: skip


def main() -> None:
    figures = json.loads((OUT / "api.json").read_text())
    cpu_us = {ROUTES[row["route"]]: round(row["hot_us"], 1) for row in figures["routes"] if row["route"] in ROUTES}
    sale = figures["sale"]
    costs = {
        "made_by": "python -m bench.costs",
        "cpu_us": cpu_us,
        "hello_us": round(figures["hello_us"], 1),
        "booking_us": {
            name: round(sale["cpu_s"][name] / sale["bookings"] * 1e6) for name in ("server", "postgres", "redis")
        },
        "stream_bytes": round(figures["streams"]["room"]["bytes_each"]),
    }
    COSTS.write_text(json.dumps(costs, indent=2) + "\n")
    print(f"written: {COSTS}")


if __name__ == "__main__":
    main()
