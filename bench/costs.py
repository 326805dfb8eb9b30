"""`python -m bench.costs`: what a sale costs, from the last `make bench-api` (bench/out/api.json) and the last
`python -m bench.work` (bench/out/work.json), into the package.

`frontrow rehearse` and `frontrow size` read src/frontrow/rehearsal/costs.json. Nothing in it is typed by hand.
"""

import json
from pathlib import Path

from bench.measure import OUT, options

COSTS = Path(__file__).parent.parent / "src" / "frontrow" / "rehearsal" / "costs.json"


def main() -> None:
    options(__doc__).parse_args()
    api, work = (json.loads((OUT / name).read_text()) for name in ("api.json", "work.json"))
    poll_us = next(row["hot_us"] for row in api["routes"] if row["route"] == "seats poll")
    costs = {
        "made_by": "python -m bench.costs",
        "work_us": work["work_us"] | {"seat_poll": {"server": round(poll_us, 1), "redis": 0.0, "postgres": 0.0}},
        "sent_bytes": work["sent_bytes"],
        "static_bytes": work["static_bytes"],
        "redis_bytes_per_buyer": work["redis_bytes_per_buyer"],
        "stream_bytes": round(api["streams"]["room"]["bytes_each"]),
    }
    COSTS.write_text(json.dumps(costs, indent=2) + "\n")
    print(f"written: {COSTS}")


if __name__ == "__main__":
    main()
