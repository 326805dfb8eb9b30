"""`make bench-scale`: a very large crowd at the real servers of a room, over real sockets on loopback.

Four parts, each with its own servers: joins at one server in memory, joins at servers that share a Redis, status and
now-serving directly and through deploy/'s nginx, and open streams with storms of reconnecting. What a part found is
written to bench/out/room_scale.json when it ends, so after an interruption `--only` measures what is missing. The joins
in memory end in order at the first Ctrl-C, SIGTERM or `--within-s`, and go on from there when they are asked for again.
`--docs` writes the figures of the file into docs/scaling.md; with `--only docs` nothing is measured before.
"""

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from bench import room_scale_docs
from bench.measure import OUT, options
from bench.room_edge import measure_edge
from bench.room_joins import MOST, measure_joins, measure_redis_joins
from bench.room_storms import SERVED_WITHIN_S, STORMS, measure_storms

NAME = "room_scale.json"
Tell = Callable[[int], None]
Part = tuple[int, Callable[[Tell], dict[str, Any]]]  # how much there is to do, and what does it


def read_found(folder: Path) -> dict[str, Any]:
    """What all parts found when they ran last."""
    file = folder / NAME
    return dict(json.loads(file.read_text())) if file.exists() else {}


def keep(folder: Path, part: str, told: dict[str, Any]) -> None:
    """Put what one part found beside what the others found earlier."""
    folder.mkdir(parents=True, exist_ok=True)
    whole = read_found(folder) | {part: told}
    fresh = folder / f"{NAME}.new"
    fresh.write_text(json.dumps(whole, indent=1) + "\n")
    fresh.replace(folder / NAME)


def problems(part: str, told: dict[str, Any]) -> list[str]:
    """What must hold, whatever the machine, and did not."""
    wrong = []
    if part in ("joins", "redis_joins"):
        if not told["exact"]:
            counts = ", ".join(f"{name} {told[name]:,}" for name in ("gaps", "doubles", "beyond", "refused"))
            wrong.append(f"{part}: the positions are not 1 to {told['people']:,}: {counts}. {told['odd']}")
        if not told.get("next_is_right", True):
            wrong.append(f"{part}: after a restart the next person was not behind all others")
    if part == "streams":
        if told["worse"] or told["set_back"]:
            wrong.append(f"streams: {told['worse']} places got worse, {told['set_back']} windows went back")
        if told["unserved"]:
            wrong.append(f"streams: {told['unserved']} viewers were not served again within {SERVED_WITHIN_S:g} s")
        if not told["exact"]:
            wrong.append("streams: after a storm the next person was not behind all others")
    return wrong


class Stop:
    """Ends joins in order at the first signal or when the time is up. A second signal, or in another part, ends now."""

    def __init__(self, within_s: float) -> None:
        self._within_s = within_s
        self.asked = self.joining = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._hear)

    def _hear(self, number: int, _: object) -> None:
        if self.asked or not self.joining:
            sys.exit(128 + number)  # the servers are stopped on the way out
        self.asked = True

    def begin(self, *, joining: bool) -> None:
        self.joining, self._until_s = joining, time.monotonic() + self._within_s

    def __call__(self) -> bool:
        return self.asked or time.monotonic() > self._until_s


def parts_of(chosen: argparse.Namespace, stop: Stop) -> dict[str, Part]:
    people, others = chosen.people, chosen.redis_people
    return {
        "joins": (people, lambda tell: measure_joins(people, tell, stop, kept=chosen.folder / "room_joins")),
        "redis_joins": (others, lambda tell: measure_redis_joins(others, tell, stop, workers=chosen.workers)),
        "edge": (4 * chosen.requests, lambda tell: measure_edge(chosen.requests, tell)),
        "streams": (
            len(STORMS) * chosen.storms + 1,
            lambda tell: measure_storms(chosen.streams, chosen.storms, tell),
        ),
    }


def main(arguments: list[str] | None = None) -> int:
    parser = options(__doc__)
    parser.add_argument("--people", type=int, default=14_000_000, help="joins at the server in memory (%(default)s)")
    parser.add_argument("--redis-people", type=int, default=1_000_000, help="joins at those with Redis (%(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="server processes with Redis (%(default)s)")
    parser.add_argument("--requests", type=int, default=100_000, help="of each row, through nginx or not (%(default)s)")
    parser.add_argument("--streams", type=int, default=18_000, help="as far as files may be open (%(default)s)")
    parser.add_argument("--storms", type=int, default=2, help="of each kind (%(default)s)")
    parser.add_argument("--within-s", type=float, default=3_600.0, help="nobody joins after so long (%(default)s)")
    parser.add_argument(
        "--only",
        action="append",
        choices=("joins", "redis_joins", "edge", "streams", "docs"),
        help="one part; may be repeated",
    )
    parser.add_argument("--docs", action="store_true", help="write the figures into docs/scaling.md")
    parser.add_argument("--folder", type=Path, default=OUT, help="where the figures go (%(default)s)")
    chosen = parser.parse_args(arguments)
    if not 0 < max(chosen.people, chosen.redis_people) <= MOST:
        parser.error(f"there are addresses for at most {MOST:,} people")
    stop, wrong = Stop(chosen.within_s), list[str]()
    parts = parts_of(chosen, stop)
    columns = (TextColumn("{task.description:12}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, TimeRemainingColumn(), console=console) as bar:
        for part in [name for name in parts if not chosen.only or name in chosen.only]:
            total, measure = parts[part]
            task = bar.add_task(part, total=total)

            def tell(done: int, task: Any = task) -> None:
                bar.update(task, completed=done)

            began, load = datetime.now(UTC).isoformat(timespec="seconds"), os.getloadavg()[0]
            stop.begin(joining=part.endswith("joins"))
            told = measure(tell)
            machine = {"cpus": os.cpu_count(), "load_before": load, "load_after": os.getloadavg()[0], "began": began}
            keep(chosen.folder, part, told | {"machine": machine})
            wrong += problems(part, told)
            if stop.asked:
                break
    found = read_found(chosen.folder)
    for line in room_scale_docs.sections(found):
        print(line)
    missing = [name for name in parts if name not in found or found[name].get("people") != found[name].get("wanted")]
    if missing:
        print(f"\nnot measured to the end yet: {', '.join(missing)}")
    else:
        room_scale_docs.plot(found, chosen.folder / "room_scale.png")
        if chosen.docs:
            room_scale_docs.write(found, chosen.folder / "room_scale.png")
    for one in wrong:
        print(f"WRONG: {one}")
    return 1 if wrong or (chosen.docs and missing) else 0


if __name__ == "__main__":
    sys.exit(main())
