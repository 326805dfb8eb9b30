"""What `bench.room_scale` found, as tables and a picture for docs/scaling.md, and the machines that follow from it.

Which figures were measured and which are arithmetic is said at each. `python -m bench.room_scale --only docs --docs`
writes them again from bench/out/room_scale.json.
"""

import itertools
import shutil
from collections.abc import Iterator, Sequence
from math import ceil
from pathlib import Path
from typing import Any

from bench.room_storms import SERVED_WITHIN_S
from bench.seats_docs import DOCS, put
from frontrow.rehearsal.sizing import USABLE_SHARE
from frontrow.waitingroom.model.poll_interval import poll_after_s

PAGE = DOCS / "scaling.md"
PICTURE = DOCS / "img" / "room-scale.png"
DRAWN = "![CPU per join and memory as people come, and how long a storm lasts](img/room-scale.png)\n"
PEOPLE, MINUTES = 10_000_000, 10
PEAK = 3  # as many people come in the busiest second as on average in so many
ADMITTED_PER_S = 500
ASKS = 2  # how often each asks for a status while they come: a reload, a second tab
HEARTBEAT_S = 5  # of a stream, `room.heartbeat_s`
MACHINE_CORES = 16
NEXT = {True: "yes", False: "**no**", None: "not all have joined yet"}
JOINS = (("joins", "in memory"), ("redis_joins", "with Redis"))
Row = Sequence[str]


def sections(found: dict[str, Any]) -> Iterator[str]:
    """Every table there are figures for, with the sentences that belong to it."""
    if any(part in found for part, _ in JOINS):
        yield from _joins(found)
    if "edge" in found:
        yield from _edge(found["edge"])
    if "streams" in found:
        yield from _streams(found["streams"])
    if all(part in found for part in ("redis_joins", "edge", "streams")):
        yield from _machines(found)


def write(found: dict[str, Any], picture: Path, page: Path = PAGE, kept: Path = PICTURE) -> None:
    """Put the figures and the picture into the docs."""
    put(page, "room-scale", "\n".join([DRAWN, *sections(found)]).strip())
    shutil.copy(picture, kept)


def _joins(found: dict[str, Any]) -> Iterator[str]:
    told = [(found[part], name) for part, name in JOINS if part in found]
    cells: list[tuple[str, list[str]]] = [
        ("people who joined", [_of_wanted(one) for one, _ in told]),
        ("sittings", [f"{one.get('sittings', 1)}" for one, _ in told]),
        ("server processes, connections", [f"{one['processes']}, {one['connections']:,}" for one, _ in told]),
        ("positions given: gaps, doubles", [f"{one['gaps']:,}, {one['doubles']:,}" for one, _ in told]),
        ("server CPU per join, µs", [f"{one['server_us']:.1f}" for one, _ in told]),
        ("joins/s for each core used", [f"{one['per_s_per_core']:,.0f}" for one, _ in told]),
        ("Redis CPU per join, µs", [f"{one['redis_us']:.1f}" if "redis_us" in one else "" for one, _ in told]),
        ("client CPU per join, µs", [f"{one['client_us']:.1f}" for one, _ in told]),
        ("joins/s in this run", [f"{one['per_s']:,.0f}" for one, _ in told]),
        ("cores the servers got in this run", [f"{one['cores_used']:.2f}" for one, _ in told]),
        ("memory of the servers before, MB", [f"{one['memory_before_bytes'] / 1e6:.0f}" for one, _ in told]),
        ("memory of the servers after, MB", [f"{one['memory_after_bytes'] / 1e6:.0f}" for one, _ in told]),
        ("audit on disk, MB", [f"{one['audit_bytes'] / 1e6:.1f}" for one, _ in told]),
        ("Redis, the room, bytes", [f"{one['redis_room_bytes']:,}" if "redis_us" in one else "" for one, _ in told]),
        ("Redis, all it has more, bytes", [f"{one['redis_bytes']:,}" if "redis_us" in one else "" for one, _ in told]),
        ("server restarted: away for, s", [f"{one['back_s']:.1f}" if "back_s" in one else "" for one, _ in told]),
        ("next person then behind all others", [NEXT[one.get("next_is_right")] for one, _ in told]),
    ]
    yield "### Joins (measured)\n"
    yield from _table(("", *(name for _, name in told)), [(what, *row) for what, row in cells])
    yield ""
    yield from (f"{name[0].upper() + name[1:]}: {_machine(one)}" for one, name in told)


def _of_wanted(told: dict[str, Any]) -> str:
    people, wanted = told["people"], told["wanted"]
    return f"{people:,}" if people == wanted else f"{people:,} (of {wanted:,}: not all have joined yet)"


def _edge(edge: dict[str, Any]) -> Iterator[str]:
    rows = [
        (
            name,
            f"{row['requests']:,}",
            f"{row['at_origin']:,}",
            f"{row['per_s']:,.0f}",
            f"{row['at_origin_per_s']:,.1f}",
            f"{row['nginx_us']:.1f}" if name.endswith("nginx") else "",
            f"{1e6 / row['nginx_us']:,.0f}" if name.endswith("nginx") and row["nginx_us"] else "",
            f"{row['origin_us']:.1f}",
            f"{row['client_us']:.1f}",
        )
        for name, row in edge.items()
        if name != "machine"
    ]
    head = (
        "",
        "requests",
        "at the origin",
        "requests/s",
        "at the origin/s",
        "nginx, µs",
        "requests/s for each core of nginx",
        "origin, µs",
        "client, µs",
    )
    yield "\n### Behind nginx (measured)\n"
    yield from _table(head, rows)
    yield "\n" + _machine(edge)


def _streams(told: dict[str, Any]) -> Iterator[str]:
    yield "\n### Streams and storms (measured)\n"
    yield (
        f"One server process, which may have {told['files_allowed']:,} files open, with {told['streams']:,} open "
        f"streams: {told['bytes_each']:,.0f} bytes\nof its memory each (the kernel's are not counted), opened in "
        f"{told['opened_s']:.1f} s with {told['open_cpu_us']:.0f} µs of CPU each. A frame costs\n"
        f"{told['frame_us']:.1f} µs of CPU for each viewer. In all storms {told['worse']} places got worse, and "
        f"{told['set_back']} windows went back.\n"
    )
    rows = [
        (
            storm["kind"],
            *(f"{storm[name]:.1f}" for name in ("first_s", "half_s", "last_s", "cpu_s")),
            f"{storm['memory_bytes'] / 1e6:.0f}",
            f"{storm['tries_that_failed']:,}",
            f"{storm['unserved']:,}",
        )
        for storm in told["storms"]
    ]
    head = (
        "storm",
        "first served after, s",
        "half, s",
        "all, s",
        "server CPU, s",
        "its memory then, MB",
        "tries that failed",
        f"not served within {SERVED_WITHIN_S:g} s",
    )
    yield from _table(head, rows)
    yield "\n" + _machine(told)


def polls_per_s(people: int, admitted_per_s: int) -> float:
    """How often all who wait ask who is served, in one second: who is near their turn asks more often."""
    total, step = 0.0, admitted_per_s * 10  # people whose waits differ by ten seconds
    for first in range(0, people, step):
        many = min(step, people - first)
        total += many / poll_after_s((first + many // 2) // admitted_per_s)
    return total


def _machines(found: dict[str, Any]) -> Iterator[str]:
    joins, edge, streams = found["redis_joins"], found["edge"], found["streams"]
    coming = PEOPLE / (MINUTES * 60) * PEAK
    polls, statuses = polls_per_s(PEOPLE, ADMITTED_PER_S), coming * ASKS
    passed_on, cached = edge["status, nginx"], edge["now-serving, nginx"]
    loads = [
        ("server: joins", coming, joins["server_us"]),
        ("server: statuses", statuses, edge["status, direct"]["origin_us"]),
        ("Redis: joins", coming, joins["redis_us"]),
        ("nginx: joins and statuses, passed on", coming + statuses, passed_on["nginx_us"]),
        ("nginx: now-serving, from its cache", polls, cached["nginx_us"]),
    ]
    cores = [per_s * each_us / 1e6 / USABLE_SHARE for _, per_s, each_us in loads]
    rows = [
        (what, f"{per_s:,.0f}", f"{each_us:.1f}", f"{needed:.1f}")
        for (what, per_s, each_us), needed in zip(loads, cores, strict=True)
    ]
    whole, shards, frames = sum(cores), ceil(cores[2]), PEOPLE / HEARTBEAT_S
    yield f"\n### The machines for {PEOPLE:,} people in {MINUTES} minutes (arithmetic)\n"
    yield from _table(("", "per second at the peak", "CPU each, µs (measured)", "cores"), rows)
    yield (
        f"\nTogether {whole:.1f} cores: {ceil(whole / MACHINE_CORES)} machines of {MACHINE_CORES}, and one more so "
        f"that one may fail. One Redis uses one core, so there are\n{shards} of it (`room.shards` if more than one).\n"
    )
    yield (
        f"If every page kept a stream instead of asking: {frames:,.0f} frames/s are "
        f"{frames * streams['frame_us'] / 1e6 / USABLE_SHARE:,.0f} cores, "
        f"{PEOPLE * streams['bytes_each'] / 1e9:,.1f} GB\n"
        f"and {ceil(PEOPLE / streams['streams']):,} processes of {streams['streams']:,} streams. `room.max_streams` "
        "bounds them, and the others ask.\n"
    )
    yield (
        f"Assumed: in the busiest second {PEAK} times as many come as on average; {ADMITTED_PER_S} people are admitted "
        "per second, which says how often a\npage asks (after a quarter of its wait, 5 to 300 s); each person asks for "
        f"the status {ASKS} times while they come; a core is used to {USABLE_SHARE:.0%}.\nRequests come over "
        "connections that are open already: TLS, new connections and the network are not in these costs."
    )


def _machine(told: dict[str, Any]) -> str:
    machine = told["machine"]
    return (
        f"run of {machine['began'][:10]} on {machine['cpus']} cores, which others used too: load "
        f"{machine['load_before']:.1f} before it and {machine['load_after']:.1f} after it."
    )


def _table(head: Row, rows: Sequence[Row]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |".replace("|  |", "| |")
    yield "|---|" + "---:|" * (len(head) - 1)
    for row in rows:
        yield f"| {' | '.join(row)} |".replace("|  |", "| |")


def plot(found: dict[str, Any], path: Path) -> None:
    """The cost of a join and the server's memory as people come, and how long each storm lasted."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.6))
    for (part, label), colour in zip(JOINS, ("#c2410c", "#0f766e"), strict=True):
        points = found[part]["samples"]
        steps = [(at, now) for at, now in itertools.pairwise(points) if now[0] > at[0]]
        left.plot(
            [now[0] / 1e6 for _, now in steps],
            [(now[2] - at[2]) / (now[0] - at[0]) * 1e6 for at, now in steps],
            color=colour,
            label=f"{label}, µs per join",
        )
    points = found["joins"]["samples"]
    left.plot(
        [one[0] / 1e6 for one in points], [one[3] / 1e6 for one in points], color="#94a3b8", label="in memory, MB"
    )
    left.set_ylim(bottom=0)
    left.set_xlabel("million people who have joined")
    left.set_title("A join costs the same, however many came before", fontsize=9, loc="left")
    left.legend(frameon=False, fontsize=8)
    storms = found["streams"]["storms"]
    for key, colour, label in (
        ("last_s", "#c2410c", "all served"),
        ("half_s", "#fb923c", "half"),
        ("first_s", "#94a3b8", "first"),
    ):
        right.barh(range(len(storms)), [storm[key] for storm in storms], color=colour, label=label)
    right.set_yticks(range(len(storms)), [storm["kind"] for storm in storms], fontsize=8)
    right.invert_yaxis()
    right.set_xlabel("seconds after the storm began")
    right.set_title(f"{found['streams']['streams']:,} streams come back", fontsize=9, loc="left")
    right.legend(frameon=False, fontsize=8)
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
