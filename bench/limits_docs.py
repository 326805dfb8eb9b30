"""`python -m bench.limits_docs` writes the figures of the last `make bench-limits` into docs/limits-performance.md.

The table stands between `<!-- figures: limits -->` and `<!-- end of figures -->`. Each row says who is ahead: a ratio
above 1.15 is ours, below 0.87 the peer's, and what lies between is even. Below it stand the targets that the run
missed with the reason and what would be needed, and how busy the machine was. The picture becomes
docs/img/limits-bench.png.
"""

import json
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.measure import OUT, options
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
NO_DEPENDENCY = "FastAPI: a dependency that does nothing"
FLOOR_OF_DEPENDENCY = "FastAPI: floor"
UNEXPLAINED = (
    "No reason is known. Measure it again on a quiet machine; if it is missed there too, mend it or say why here."
)
REASONS = {  # the beginning of a target: why it is missed, and what would be needed
    "memory, asyncio, leaky_bucket: × aiolimiter": """\
`aiolimiter` is one object for one client: it finds no key, keeps no lock and makes no decision, so there is less to
be faster at. The coroutine itself would have to cost nothing.""",
    "memory, 1M keys": """\
Two thirds of such a check are two reads of memory that no cache holds: the key that the caller gives and its entry.
A dictionary needs them too, so no peer can be left ten times behind that costs little more than its dictionaries.
The ratio would rise if the benchmark made each key just before it asks, as a server does; then the key is in a
cache for everybody.""",
    "memory, the docs' rules by parts": """\
The fastest way to ask `limits` is three fixed windows, one call each; sliding ones are behind by more. Ours must
read the parts of the mapping and pack two keys, which is half of the time. Other work on the machine moves this
ratio by a tenth.""",
    "memory, without a compiler": """\
In plain Python the lock and the `Decision` cost as much as the arithmetic. The wheels have the compiled store.""",
    "Redis stalled": """\
The deadline is kept by the caller's own process, so on a machine with more work than cores it waits for its turn as
well. `python -c "from bench.limits_redis import stalls; print(stalls())"` measures it alone.""",
    "route limit, FastAPI: Frontrow, Depends(limit)": """\
FastAPI takes about half of that for any dependency, and one that is written by hand, counts in a dictionary and
writes the same headers misses the target too (both figures are below). FastAPI would have to call dependencies at
less cost. `@limited` on the endpoint needs none and meets the target.""",
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
    for key, name in NAMES.items():
        aio = _of(memory["async_us"], key)
        if len(aio) > 2:
            yield (f"memory, without a compiler, asyncio, {name}", aio["Frontrow, no compiler"], *_best(aio))
    plain, by_form = "Frontrow, no compiler", _of(memory["by_form_us"], "mapping")
    yield ("memory, without a compiler, key as mapping", by_form[plain], *_best(by_form))
    three, parts = memory["three_rules_us"], memory["by_parts_us"]
    yield ("memory, without a compiler, three rules, one key", three[plain], *_best(three))
    yield ("memory, without a compiler, three rules by parts", parts[plain], *_best(parts))
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
    for framework in ("FastAPI", "Flask", "Django"):
        of_route = {
            who: us
            for name, us in results["route_limits"].items()
            if (who := name.removeprefix(f"{framework}: ")) != name and not who.startswith("a dependency")
        }
        for who, us in of_route.items():
            if who.startswith("Frontrow"):
                _, _, how = who.partition(", ")
                yield (f"{framework}, {how or 'limited'}, per request", us, *_best(of_route))


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


def missed(results: dict[str, Any]) -> str:
    """The targets that the run did not meet, and how busy the machine was."""
    machine, lines = results["machine"], []
    for target in results["targets"]:
        if not target["met"]:
            sign = "≥" if target["more_is_better"] else "≤"
            lines.append(f"| {target['what']} | {target['reached']:.2f} | {sign} {target['wanted']:g} |")
    busy = f"{machine['cpus']} cores, load {machine['load_before']:.1f} before and {machine['load_after']:.1f} after it"
    met = f"{len(results['targets']) - len(lines)} of {len(results['targets'])} targets were met"
    head = ["", "| missed | reached | wanted |", "|---|---|---|"] if lines else []
    return "\n".join([f"The run: {busy}. {met}.", *head, *lines, *explained(results["targets"])])


def explained(targets: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Why each missed target is missed, and what would be needed, once for each reason."""
    reasons: dict[str, list[str]] = {}
    for target in targets:
        if not target["met"]:
            name = next((name for name in REASONS if target["what"].startswith(name)), "")
            reasons.setdefault(REASONS.get(name, UNEXPLAINED), []).append(name or target["what"])
    if reasons:
        yield ""
    for reason, names in reasons.items():
        yield "\n".join(
            textwrap.wrap(f"- **{', '.join(dict.fromkeys(names))}.** {reason}", 118, subsequent_indent="  ")
        )


def sentences(results: dict[str, Any]) -> str:
    """What is no ratio of CPU times."""
    memory, redis, of_route = results["memory"], results["redis"], results["route_limits"]
    found_us, nothing_us = memory["million"]["floor: a dictionary's get"]["again_us"], of_route[NO_DEPENDENCY]
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
- Finding one of a million keys in a bare dictionary takes {found_us:.2f} µs: it is in no cache.
- A FastAPI dependency that does nothing costs {nothing_us:.1f} µs; `Depends(limit)` contains them. One that is written
  by hand, counts in a dictionary and writes the same headers costs {of_route[FLOOR_OF_DEPENDENCY]:.1f}.
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
    told = [table(results), missed(results), sentences(results)]
    put(page, "limits", "\n\n".join(told))
    shutil.copy(OUT / "limits.png", PICTURE)


if __name__ == "__main__":
    options(__doc__).parse_args()
    main()
