"""Takes the figures of the last `make bench-seats` over into docs/: `python -m bench.seats_docs`.

The tables stand between `<!-- figures: name -->` and `<!-- end of figures -->` in docs/holds.md and docs/ledger.md; the
picture becomes docs/img/seats-bench.png. What stands around them is written by people.
"""

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.measure import options

Line = tuple[str, str, str]

OUT = Path(__file__).parent / "out"
DOCS = Path(__file__).parent.parent / "docs"
ONE_PROCESS = ("1 processes, 1 shards", "1 processes, 2 shards", "1 processes, 3 shards")


def _met(ok: bool, target: str) -> str:
    return f"{target}: met" if ok else f"{target}: not met"


def _ms(told: dict[str, float]) -> str:
    return " / ".join(f"{told[name]:g}" for name in ("p50", "p99", "p99.9"))


def holds_table(report: dict[str, Any]) -> str:
    """The figures of docs/holds.md."""
    rows = [*_attempts(report["phases"]), *_late(report["late"]), *_sales(report["sale"])]
    waits = [*_wait_at_target(report.get("at_target", ())), *_waits(report["sustained"])]
    return _table(("what", "figure", "target"), [*rows, *waits, *_losses(report), *_pretix(report)])


def _attempts(phases: dict[str, Any]) -> Iterator[Line]:
    ways = [phases[name]["cpu_us"] for name in ("refused locally", "refused by claims", "won")]
    local, claims, won = (way["service"] for way in ways)
    redis, postgres = (", ".join(f"{way[who]:g}" for way in ways) for who in ("redis", "postgres"))
    yield (
        "CPU of the service per attempt: refused locally, by claims, won",
        f"{local:.1f}, {claims:.0f}, {won:.0f} µs (Redis {redis}; PostgreSQL {postgres})",
        "",
    )


def _late(late: dict[str, Any]) -> Iterator[Line]:
    for processes, (steady, most) in sorted(late.items(), reverse=True):
        yield (
            f"nearly sold out, processes: {processes}, 333,333 attempts/s arriving for 3 s",
            f"{steady['attempts_per_s']:,}/s; p50/p99/p99.9 {_ms(steady['all_ms'])} ms; at most "
            f"{most['attempts_per_s']:,}/s",
            _met(steady["attempts_per_s"] >= 0.99 * 333_333, "333,333 (within 1 %)"),
        )


def _sales(sales: dict[str, Any]) -> Iterator[Line]:
    best = max(told["attempts_per_s"] for told in sales.values())
    rates = " / ".join(f"{sales[name]['attempts_per_s']:,}" for name in ONE_PROCESS)
    held = " / ".join(f"{sales[name]['durable_holds_per_s']:,}" for name in ONE_PROCESS)
    yield (
        "a whole sale, 6.6 attempts per seat, one process, 1 / 2 / 3 Redis servers",
        f"{rates} attempts/s, {held} durable holds/s",
        _met(best >= 120_000, "120,000"),
    )
    two, spent = sales["2 processes, 1 shards"], sales[ONE_PROCESS[0]]["cpu_us"]
    figure = f"{two['attempts_per_s']:,} attempts/s, {two['durable_holds_per_s']:,} durable holds/s"
    yield "the same in two processes, one Redis", figure, ""
    figure = f"{spent['service']}, {spent['redis']}, {spent['postgres']} µs"
    yield "its CPU per attempt, one process: service, Redis, PostgreSQL", figure, ""


def _wait_at_target(rounds: Sequence[dict[str, Any]]) -> Iterator[Line]:
    """The median of the rounds, which are sorted by their p99."""
    if rounds:
        middle, p99s = rounds[len(rounds) // 2], [one["won_ms"]["p99"] for one in rounds]
        what = f"holds, p50/p99/p99.9 from intended send time, at {middle['rate_per_s']:,} attempts/s, median round"
        figure = f"{_ms(middle['won_ms'])} ms; p99 of {len(rounds)} rounds {p99s[0]:g} to {p99s[-1]:g} ms"
        yield what, figure, _met(middle["won_ms"]["p99"] <= 50, "p99 50 ms")


def _waits(sustained: list[dict[str, Any]]) -> Iterator[Line]:
    for told in reversed(sustained):
        met = _met(told["won_ms"]["p99"] < 50, "p99 50 ms")
        what = f"holds, p50/p99/p99.9 from intended send time, at {told['rate_per_s']:,} attempts/s"
        yield what, f"{_ms(told['won_ms'])} ms", met


def _losses(report: dict[str, Any]) -> Iterator[Line]:
    wrong = max(report["wrong_refusals"], report["sustained"][-1]["wrong_refusals"])
    flushed_s, rebuilt_s = report["back_after_flush_s"], report["rebuild_100k_s"]
    yield "local refusals of free seats", f"{wrong:.2%}", _met(wrong <= 0.001, "0.1 %")
    yield "selling again after FLUSHALL in a half-sold sale", f"{flushed_s} s", _met(flushed_s <= 5, "5 s")
    yield "rebuild of 100,000 sold seats", f"{rebuilt_s} s", _met(rebuilt_s <= 5, "5 s")


def _pretix(report: dict[str, Any]) -> Iterator[Line]:
    if "pretix" in report:
        theirs, cpu_ms = report["pretix"], report["phases"]["won"]["cpu_us"]["service"] / 1e3
        times = report["sale"][ONE_PROCESS[0]]["durable_holds_per_s"] / theirs["holds_per_s"]
        yield (
            "pretix 2026.8, its CartManager on PostgreSQL, one process, in the same run",
            f"{theirs['holds_per_s']} holds/s, {theirs['cpu_ms']} ms CPU per hold",
            f"ours {times:,.0f} times, CPU 1/{theirs['cpu_ms'] / cpu_ms:,.0f}",
        )


def ledger_table(results: dict[str, Any]) -> str:
    """The figures of docs/ledger.md."""
    rows = []
    for store, name, peers in (
        ("postgresql", "PostgreSQL, synchronous_commit=on", ("asyncpg", "sqlalchemy")),
        ("sqlite", "SQLite, synchronous=FULL", ("aiosqlite",)),
    ):
        ours = results[f"{store} frontrow"]
        hold, confirm = ours["hold"], ours["confirm"]
        beside = "; ".join(
            f"{peer}: {theirs:,} ({hold['per_s'] / theirs:.1f} times)"
            for peer in peers
            for theirs in (results[f"{store} {peer}"]["hold"]["per_s"],)
        )
        met = all(told["per_s"] >= 20_000 for told in (hold, confirm))
        cpu = f"{hold['client_cpu_us']:.0f} / {hold['server_cpu_us']:.0f} µs"
        rows.append((name, f"{hold['per_s']:,}", f"{confirm['per_s']:,}", cpu, beside, _met(met, "20,000/s of each")))
    head = (
        "store",
        "holds/s",
        "confirms/s",
        "CPU per hold, client / server",
        "one transaction each, holds/s",
        "target",
    )
    return _table(head, rows)


def _table(head: tuple[str, ...], rows: list[Any]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)


def put(path: Path, name: str, table: str) -> None:
    """Replace the figures called `name` in a page."""
    text = path.read_text("utf-8")
    mark, end = f"<!-- figures: {name} -->", "<!-- end of figures -->"
    made, count = re.subn(
        f"{re.escape(mark)}.*?{re.escape(end)}", lambda _: f"{mark}\n\n{table}\n\n{end}", text, flags=re.S
    )
    if count != 1:
        raise ValueError(f"{path.name} has {count} places for the figures {name}")
    path.write_text(made, "utf-8")


def main() -> None:
    options(__doc__).parse_args()
    report = json.loads((OUT / "seats.json").read_text())
    put(DOCS / "holds.md", "seats", holds_table(report))
    put(DOCS / "ledger.md", "ledger", ledger_table(report["ledger"]))
    shutil.copy(OUT / "seats.png", DOCS / "img" / "seats-bench.png")


if __name__ == "__main__":
    main()
