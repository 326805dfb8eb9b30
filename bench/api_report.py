"""`python -m bench.api_report`: the figures of bench/out/api.json as tables, into docs/api-performance.md.

What stands between the two marks of the page is replaced; nothing in it is typed by hand.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.api_overload import WANTED, kept_text
from bench.api_sale import cores_text
from bench.measure import OUT, options

PAGE = Path(__file__).parent.parent / "docs" / "api-performance.md"
BEGIN, END = "<!-- figures: made by python -m bench.api_report -->", "<!-- end of figures -->"


def table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|---" + "|---:" * (len(head) - 1) + "|"
    yield from ("| " + " | ".join(row) + " |" for row in rows)
    yield ""


def targets(told: dict[str, Any]) -> Iterator[str]:
    yield "### Targets\n"
    rows = []
    for row in told["targets"]:
        sign = "≥" if row["more_is_better"] else "≤"
        met = "met" if row["met"] else "missed"
        rows.append([row["what"], f"{row['reached']:,.2f}", f"{sign} {row['wanted']:,.2f}", met])
    yield from table(["", "reached", "wanted", ""], rows)


def routes(told: dict[str, Any]) -> Iterator[str]:
    yield f"### Server CPU per request\n\nA bare ASGI hello costs {told['hello_us']:.1f} µs in this run.\n"
    rows = [
        [
            row["route"],
            f"{row['hot_us']:.0f}",
            f"{row['hot_ratio']:.2f}",
            f"{row['app_us']:.0f}",
            f"{row['app_ratio']:.2f}",
            f"{row['hot_per_s']:,.0f}",
            f"{row['app_per_s']:,.0f}",
        ]
        for row in told["routes"]
    ]
    head = [
        "route",
        "fast path µs",
        "× hello",
        "framework µs",
        "× hello",
        "fast path, requests/s",
        "framework, requests/s",
    ]
    yield from table(head, rows)
    yield f"Requests per second are those of `{told['generator']}`, which shares the machine with the server.\n"


def sales(told: dict[str, Any]) -> Iterator[str]:
    names = {
        "sale": "Frontrow, whole path",
        "sale_EdDSA": "the same, EdDSA passes",
        "textbook": "FastAPI textbook",
        "django": "Django textbook",
    }
    yield "### A stadium sold out over HTTP\n"
    rows = []
    for key, name in names.items():
        if key in told:
            one, cpu = told[key], told[key]["cpu_s"]
            steps = {step: row for step, row in one["steps"].items() if step in ("hold", "pay")}
            times = [f"{row['p50_ms']:.0f} / {row['p99_ms']:.0f}" for row in steps.values()]
            per = [f"{cpu.get(part, 0) / one['bookings'] * 1e6:,.0f}" for part in ("server", "postgres")]
            rows.append([name, f"{one['seats']:,}", f"{cpu['wall']:.0f}", *per, *times])
    head = [
        "",
        "seats",
        "s",
        "server CPU µs per booking",
        "PostgreSQL µs per booking",
        "hold p50 / p99 ms",
        "pay p50 / p99 ms",
    ]
    yield from table(head, rows)
    cpu = ", ".join(f"{part} {seconds:.1f} s" for part, seconds in told["sale"]["cpu_s"].items() if part != "wall")
    yield f"CPU of our sale: {cpu}. {cores_text(told['sale'])} Its steps:\n"
    steps = told["sale"]["steps"].items()
    rows = [[step, f"{row['count']:,}", f"{row['p50_ms']:.1f}", f"{row['p99_ms']:.1f}"] for step, row in steps]
    yield from table(["step", "asked", "p50 ms", "p99 ms"], rows)
    if "pretix" in told:
        yield f"pretix' cart in the same run: `{json.dumps(told['pretix'])}`.\n"


def overload(told: dict[str, Any]) -> Iterator[str]:
    found = told["overload"]
    peak, storm = found["peak"], found["storm"]
    yield f"### Ten times too much ({peak['callers']} callers, then {storm['callers']})\n"
    rows = []
    for name, cost_us in found["cost_us"].items():
        served, shed = storm["served"][name], storm["shed"][name]
        per_s = [served / storm["seconds"], shed / storm["seconds"]]
        rows.append(
            [
                name,
                f"{cost_us:.0f}",
                f"{peak['served'][name] / peak['seconds']:,.0f}",
                *(f"{one:,.0f}" for one in per_s),
            ]
        )
    yield from table(["class", "µs each", "served/s at the peak", "served/s in the storm", "shed/s"], rows)
    yield f"Goodput of the admitted, by CPU: **{kept_text(found)}** of the peak's (wanted {WANTED:.0%}).\n"


def streams(told: dict[str, Any]) -> Iterator[str]:
    found = told["streams"]
    yield f"### Live streams, {found['connections']:,} viewers\n"
    yield f"Load of the machine {found['load']:.1f}. The last column draws the line of memory further.\n"
    rows = [
        [
            kind,
            f"{row['bytes_each']:,.0f}",
            f"{row['cpu_us_each']:.1f}",
            f"{row['opened']:,}",
            f"{row['megabytes_at_50k']:,.0f}" if "megabytes_at_50k" in row else "",
        ]
        for kind, row in found.items()
        if isinstance(row, dict)
    ]
    titles = ["stream", "bytes per viewer", "CPU µs per viewer and broadcast", "opened", "MB of the process at 50,000"]
    yield from table(titles, rows)


def figures(told: dict[str, Any]) -> str:
    lines = [line for part in (targets, routes, sales, overload, streams) for line in part(told)]
    about = f"One run of {told['took_s']:.0f} s; load of the machine at its end {told['load']:.1f}."
    return "\n".join([BEGIN, "", about, "", *lines, END])


def main() -> None:
    arguments = options(__doc__)
    arguments.add_argument("source", nargs="?", type=Path, default=OUT / "api.json", help="(default: %(default)s)")
    source = arguments.parse_args().source
    page = PAGE.read_text()
    if BEGIN not in page or END not in page:
        raise SystemExit(f"{PAGE} has no place for figures")
    before, after = page.partition(BEGIN)[0], page.partition(END)[2]
    PAGE.write_text(before + figures(json.loads(source.read_text())) + after)
    print(f"written to {PAGE}")


if __name__ == "__main__":
    main()
