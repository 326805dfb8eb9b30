"""`python -m bench.limits_docs` writes the figures of the last `make bench-limits` into docs/limits-performance.md.

The table stands between `<!-- figures: limits -->` and `<!-- end of figures -->`. Each row says who is ahead: a ratio
above 1.15 is ours, below 0.87 the peer's, and what lies between is even. The picture becomes docs/img/limits-bench.png.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.measure import OUT
from bench.seats_docs import DOCS, put

EVEN_FROM, EVEN_TO = 0.87, 1.15
PICTURE = DOCS / "img" / "limits-bench.png"
NAMES = {
    "fixed_window": "fixed window",
    "sliding_counter": "sliding counter",
    "sliding_log": "sliding log",
    "token_bucket": "token bucket",
    "leaky_bucket": "leaky bucket",
}
Row = tuple[str, float, float, str]  # what is measured, our µs, the peer's µs, the peer


def rows(results: dict[str, Any]) -> Iterator[Row]:
    """Every comparison of a run: CPU per check, ours and that of the peer who is best at it."""
    memory, redis, added = results["memory"], results["redis"], results["middleware"]
    for key, name in NAMES.items():
        hot = _of(memory["hot_us"], key)
        yield (f"memory, {name}", hot["Frontrow"], *_best(hot))
    for key, name in NAMES.items():
        aio = _of(memory["async_us"], key)
        if len(aio) > 1:
            yield (f"memory, asyncio, {name}", aio["Frontrow"], *_best(aio))
    for key, name in NAMES.items():
        again = {who: told["again_us"] for who, told in _of(memory["million"], key).items()}
        again.pop("pyrate-limiter", None)  # a thread per client: measured with a thousand
        if len(again) > 1:
            yield (f"memory, a million keys, {name}", again["Frontrow"], *_best(again))
    for form in ("mapping", "number", "UUID"):
        of_form = _of(memory["by_form_us"], form)
        yield (f"memory, key as {form}", of_form["Frontrow"], *_best(of_form))
    yield ("memory, three rules, one key", memory["three_rules_us"]["Frontrow"], *_best(memory["three_rules_us"]))
    yield ("memory, three rules by parts", memory["by_parts_us"]["Frontrow"], *_best(memory["by_parts_us"]))
    for key, name in NAMES.items():
        hot = _of(memory["hot_us"], key)
        yield (f"memory, without a compiler, {name}", hot["Frontrow, no compiler"], *_best(hot))
    for group, name in (
        ("sequential_1", "Redis, blocking, one rule"),
        ("sequential_3", "Redis, blocking, three rules"),
        ("one_task_1", "Redis, one task, one rule"),
        ("one_task_3", "Redis, one task, three rules"),
        ("tasks_1", "Redis, 200 tasks, one rule"),
        ("tasks_3", "Redis, 200 tasks, three rules"),
    ):
        cpu = {who: told["cpu_us"] for who, told in redis[group].items()}
        yield (name, cpu["Frontrow"], *_best(cpu))
    yield ("middleware, per request", added["Frontrow"], *_best(added))


def _of(figures: dict[str, Any], algorithm: str) -> dict[str, Any]:
    return {
        name.removeprefix(f"{algorithm} "): told for name, told in figures.items() if name.startswith(f"{algorithm} ")
    }


def _best(figures: dict[str, float]) -> tuple[float, str]:
    """The fastest that is not ours and not a floor, and its name."""
    return min((cost, who) for who, cost in figures.items() if not who.startswith(("Frontrow", "floor")))


def verdict(ratio: float) -> str:
    if ratio > EVEN_TO:
        return "Frontrow"
    return "even" if ratio >= EVEN_FROM else "the peer"


def table(results: dict[str, Any]) -> str:
    """Every comparison as a line, with who is ahead."""
    lines = ["| one check, CPU in µs | Frontrow | fastest peer | ratio | ahead |", "|---|---|---|---|---|"]
    for what, ours, theirs, peer in rows(results):
        ratio = theirs / ours
        lines.append(f"| {what} | {ours:.2f} | {theirs:.2f} ({peer}) | {ratio:.1f} | {verdict(ratio)} |")
    return "\n".join(lines)


def sentences(memory: dict[str, Any], redis: dict[str, Any]) -> str:
    """What is no ratio of CPU times."""
    ours = [told for name, told in memory["million"].items() if name.endswith("Frontrow")]
    sizes = [told["bytes_per_key"] for name, told in memory["million"].items() if name.endswith("window Frontrow")]
    slowest_us = max(told["p999_us"] for told in ours)
    flood, stalled_ms = memory["flood"], redis["stalled"]["asyncio_200_tasks_ms"]
    rate, log = redis["one_task_1"]["Frontrow"]["per_s"], redis["long_log"]
    server = redis["server_us"]
    peers_us = min(cost for name, cost in server.items() if not name.startswith(("Frontrow", "floor")))
    peers_rate = max(told["per_s"] for name, told in redis["one_task_1"].items() if name != "Frontrow")
    return f"""\
- A key takes {max(sizes):.0f} bytes beside its name, a remembered request of the log
  {memory["log_bytes_per_request"]:.1f}. With a million keys, one check in a thousand takes {slowest_us:.0f} µs or more.
- At `max_keys` a newcomer's check takes {flood["cpu_us"]:.1f} µs. Refused newcomers: {flood["refused"]:.0f}.
- Redis, one task, one rule: {rate:,.0f} checks per second, the fastest peer {peers_rate:,.0f}.
- A busy Redis spends {server["Frontrow, busy"]:.1f} µs of its own on a check that comes alone; a script of nothing but
  TIME, GET and SETRANGE takes {server["floor, busy"]:.1f}. A Redis that sleeps between two checks wakes with cold
  caches and needs {server["Frontrow"]:.0f} µs (that script {server["floor"]:.0f}, the best peer's {peers_us:.0f}), or
  {log["check_us"]:.0f} if the check is of a log that holds 100,000 requests, and {log["refusal_us"]:.0f} if that log
  refuses it. A request takes {log["bytes_per_request"]:.0f} bytes there.
- A client known to be refused costs {redis["denied_us"]:.1f} µs and no round trip. With Redis stopped in mid-flight
  (SIGSTOP) the slowest of 200 answers came after {stalled_ms:.0f} ms; the deadline is 25."""


def main(page: Path = DOCS / "limits-performance.md") -> None:
    results = json.loads((OUT / "limits.json").read_text())
    put(page, "limits", table(results) + "\n\n" + sentences(results["memory"], results["redis"]))
    shutil.copy(OUT / "limits.png", PICTURE)


if __name__ == "__main__":
    main()
