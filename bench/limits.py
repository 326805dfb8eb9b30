"""`make bench-limits`: Frontrow's limiter beside limits, throttled-py, pyrate-limiter, aiolimiter, slowapi and floors.

Prints every figure with its target and writes bench/out/limits.json and limits.png. `python -m bench.limits --docs` (or
later `python -m bench.limits_docs`) takes the figures over into docs/limits-performance.md. A ratio compares CPU per
operation with a peer of the same run, so it holds on a busy machine too.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench import limits_docs, limits_memory, limits_redis, route_limits
from bench.measure import OUT, Target, bar_plot, options, report

PEERS = ("limits", "throttled-py", "pyrate-limiter")
THREE_RULES, ASYNCIO = 25, 15  # how many times as fast as every peer, whatever it returns; not lowered for one of them
GROUPS = {
    "blocking, 1 rule": "sequential_1",
    "blocking, 3 rules": "sequential_3",
    "one task, 1 rule": "one_task_1",
    "one task, 3 rules": "one_task_3",
    "200 tasks, 1 rule": "tasks_1",
    "200 tasks, 3 rules": "tasks_3",
}


def of_peers(figures: dict[str, float], algorithm: str, peers: Sequence[str] = PEERS) -> dict[str, float]:
    """The peers' figures for an algorithm, by peer."""
    found = {name.removeprefix(f"{algorithm} "): cost for name, cost in figures.items() if name.startswith(algorithm)}
    return {name: cost for name, cost in found.items() if name in peers}


def targets_in_memory(memory: dict[str, Any]) -> list[Target]:
    hot = [*_hot_targets(memory), *_form_targets(memory)]
    return [*hot, *_asyncio_targets(memory), *_plain_targets(memory), *_size_targets(memory)]


def _hot_targets(memory: dict[str, Any]) -> Iterator[Target]:
    hot, three, parts = memory["hot_us"], memory["three_rules_us"], memory["by_parts_us"]
    for algorithm in limits_memory.ALGORITHMS:
        ours = hot[f"{algorithm} Frontrow"]
        for peer, cost in of_peers(hot, algorithm).items():
            says = "yes or no" if peer in limits_memory.BOOL_ONLY else "a decision"
            wanted = 5 if peer in limits_memory.BOOL_ONLY else 20
            yield Target(f"memory, hot key, {algorithm}: × {peer} (returns {says})", cost / ours, wanted)
    bucket = hot["token_bucket token-bucket"] / hot["token_bucket Frontrow"]
    yield Target("memory, hot key, token_bucket: × token-bucket (yes or no, no lock, no expiry)", bucket, 1)
    yield Target("memory, three rules at once: × the best peer", best_other(three) / three["Frontrow"], THREE_RULES)
    by_parts = best_other(parts) / parts["Frontrow"]
    yield Target("memory, the docs' rules by parts of a mapping: × the best peer", by_parts, THREE_RULES)


def _form_targets(memory: dict[str, Any]) -> Iterator[Target]:
    by_form = memory["by_form_us"]
    for form in limits_memory.FORMS:
        ours, plain = by_form[f"{form} Frontrow"], by_form[f"{form} Frontrow, no compiler"]
        theirs, bare = by_form[f"{form} throttled-py"], by_form[f"{form} limits"]
        yield Target(f"memory, key as {form}: × throttled-py (returns a decision)", theirs / ours, 20)
        yield Target(f"memory, key as {form}: × limits (returns yes or no)", bare / ours, 5)
        yield Target(f"memory, without a compiler, key as {form}: × limits", bare / plain, 1.5)


def best_other(figures: dict[str, float]) -> float:
    return min(cost for name, cost in figures.items() if not name.startswith("Frontrow"))


def _asyncio_targets(memory: dict[str, Any]) -> Iterator[Target]:
    figures = memory["async_us"]
    for algorithm in limits_memory.ALGORITHMS:
        ours = figures[f"{algorithm} Frontrow"]
        for peer, cost in of_peers(figures, algorithm, ("limits.aio", "throttled-py")).items():
            yield Target(f"memory, asyncio, {algorithm}: × {peer}", cost / ours, ASYNCIO)
    waits = figures["leaky_bucket aiolimiter"] / figures["leaky_bucket Frontrow"]
    yield Target(
        "memory, asyncio, leaky_bucket: × aiolimiter (waits, no decision, one object per client)", waits, ASYNCIO
    )


def _plain_targets(memory: dict[str, Any]) -> Iterator[Target]:
    hot = memory["hot_us"]
    for algorithm in limits_memory.ALGORITHMS:
        theirs = algorithm if f"{algorithm} limits" in hot else "fixed_window"
        ratio = hot[f"{theirs} limits"] / hot[f"{algorithm} Frontrow, no compiler"]
        which = "limits" if theirs == algorithm else "limits' fixed window (it has no bucket)"
        yield Target(f"memory, without a compiler, {algorithm}: × {which}", ratio, 1.5)
    waits, again = memory["async_us"], {name: told["again_us"] for name, told in memory["million"].items()}
    for algorithm in limits_memory.ALGORITHMS:
        theirs = algorithm if f"{algorithm} limits" in hot else "fixed_window"
        which = "limits" if theirs == algorithm else "limits' fixed window"
        ratio = waits[f"{theirs} limits.aio"] / waits[f"{algorithm} Frontrow, no compiler"]
        yield Target(f"memory, without a compiler, asyncio, {algorithm}: × {which}", ratio, 1.5)
        ratio = again[f"{theirs} limits"] / again[f"{algorithm} Frontrow, no compiler"]
        yield Target(f"memory, without a compiler, 1M keys, {algorithm}: × {which}", ratio, 1.5)
    three, parts = memory["three_rules_us"], memory["by_parts_us"]
    for name, theirs in (("Frontrow, no compiler", "limits"), ("Frontrow fixed, no compiler", "limits fixed")):
        what = f"memory, without a compiler, three rules: × {theirs} (charges the others if one refuses)"
        yield Target(what, three[theirs] / three[name], 1.5)
    for theirs in ("limits", "limits fixed"):
        ratio = parts[theirs] / parts["Frontrow, no compiler"]
        yield Target(f"memory, without a compiler, rules by parts of a mapping: × {theirs}", ratio, 1.5)
    flood = memory["flood_no_compiler"]["cpu_us"]
    yield Target("memory, without a compiler, at max_keys: a newcomer's check, µs", flood, 10, False)


def _size_targets(memory: dict[str, Any]) -> Iterator[Target]:
    million = memory["million"]
    again = {name: figures["again_us"] for name, figures in million.items()}
    for algorithm in limits_memory.ALGORITHMS:
        peers = of_peers(again, algorithm, ("limits", "throttled-py"))  # pyrate-limiter cannot hold so many keys
        ratio = min(peers.values()) / again[f"{algorithm} Frontrow"]
        yield Target(f"memory, 1M keys, {algorithm}: × the best peer", ratio, 10)
    ours = {name: figures for name, figures in million.items() if name.endswith("Frontrow")}
    constant = [figures["bytes_per_key"] for name, figures in ours.items() if not name.startswith("sliding_log")]
    yield Target("memory, bytes per key (worst constant-size algorithm)", max(constant), 80, False)
    yield Target("memory, log: bytes per remembered request", memory["log_bytes_per_request"], 10, False)
    slowest = max(figures["p999_us"] for figures in ours.values())
    yield Target("memory, 1M keys: p99.9 of a check, µs", slowest, 50, False)
    yield Target("memory, 1M keys aging out: p99.99 of a check, µs", memory["aging"]["p9999_us"], 5000, False)
    yield Target("memory, at max_keys: newcomers refused their first request", memory["flood"]["refused"], 0, False)
    yield Target("memory, at max_keys: p99.9 of a newcomer's check, µs", memory["flood"]["p999_us"], 50, False)


def targets_on_redis(redis: dict[str, Any]) -> list[Target]:
    def ratio(group: str, figure: str = "cpu_us") -> float:
        """Against the best peer. By CPU per check, which holds when the machine is busy, or by checks per second."""
        ours = redis[group]["Frontrow"][figure]
        theirs = [each[figure] for name, each in redis[group].items() if name != "Frontrow"]
        return float(min(theirs) / ours if figure == "cpu_us" else ours / max(theirs))

    log, server = redis["long_log"], redis["server_us"]
    return [
        Target("Redis, one task, one rule: CPU per check × the best peer", ratio("one_task_1"), 1.7),
        Target("Redis, one task, one rule: checks per second × the best peer", ratio("one_task_1", "per_s"), 1),
        Target("Redis, blocking, one rule: CPU per check × the best peer", ratio("sequential_1"), 1.5),
        Target("Redis, blocking, one rule: checks per second × the best peer", ratio("sequential_1", "per_s"), 1),
        Target("Redis, blocking, three rules: CPU per check × the best peer", ratio("sequential_3"), 2),
        Target("Redis, 200 tasks, one rule: CPU per check × the best peer", ratio("tasks_1"), 9),
        Target("Redis, 200 tasks, three rules: CPU per check × the best peer", ratio("tasks_3"), 16),
        Target("Redis, the server's time per check at batch size 1, µs", server["Frontrow, busy"], 12, False),
        Target("Redis, the same × the floor", server["Frontrow, busy"] / server["floor, busy"], 2, False),
        Target("Redis, the same if the server sleeps between checks, µs", server["Frontrow"], 12, False),
        Target("Redis, the same if it sleeps × the floor", server["Frontrow"] / server["floor"], 2, False),
        Target("Redis, log of 100,000 requests: the server's time per check, µs", log["check_us"], 30, False),
        Target("Redis, log of 100,000 requests: per check of cost 100, µs", log["cost_100_us"], 60, False),
        Target("Redis, log of 100,000 requests: per refusal, µs", log["refusal_us"], 60, False),
        Target("Redis, log: bytes per remembered request", log["bytes_per_request"], 48, False),
        Target("Redis, a known refusal: µs, no round trip", redis["denied_us"], 2, False),
        Target("Redis stalled: slowest blocking answer, ms (deadline 25)", redis["stalled"]["blocking_ms"], 35, False),
        Target("Redis stalled: slowest of 200 tasks, ms", redis["stalled"]["asyncio_200_tasks_ms"], 35, False),
    ]


def show(console: Console, results: dict[str, Any]) -> None:
    memory, redis = results["memory"], results["redis"]
    rows = []
    for name, cost in memory["hot_us"].items():
        big = memory["million"].get(name)
        cells = [f"{big[k]:,.2f}" for k in ("again_us", "bytes_per_key", "p999_us")] if big else ["", "", ""]
        rows.append((name, f"{cost:,.3f}", *cells))
    rows += [(f"asyncio {name}", f"{cost:,.3f}", "", "", "") for name, cost in memory["async_us"].items()]
    rows += [(f"three rules {name}", f"{cost:,.3f}", "", "", "") for name, cost in memory["three_rules_us"].items()]
    rows += [(f"key as {name}", f"{cost:,.3f}", "", "", "") for name, cost in memory["by_form_us"].items()]
    rows += [(f"rules by parts {name}", f"{cost:,.3f}", "", "", "") for name, cost in memory["by_parts_us"].items()]
    _print(console, "in memory, CPU µs per check", ("", "hot key", "1M keys", "bytes/key", "p99.9 µs"), rows)
    rows = []
    for name in redis["tasks_1"]:
        told = [redis[group][name] for group in GROUPS.values()]
        rows.append((name, *(f"{each['per_s']:,.0f} ({each['cpu_us']:,.1f})" for each in told)))
    _print(console, "Redis: checks/s and client CPU µs per check", ("", *GROUPS), rows)
    rows = [(name, f"{cost:,.1f}") for name, cost in redis["server_us"].items()]
    _print(console, "Redis: the server's time per check, one check per call", ("", "µs"), rows)
    rows = [(name, f"{cost:,.2f}") for name, cost in results["middleware"].items()]
    _print(console, "middleware: CPU µs added per request", ("", "µs"), rows)
    rows = [(name, f"{cost:,.2f}") for name, cost in results["route_limits"].items()]
    _print(console, "limits of single routes: CPU µs added per request", ("", "µs"), rows)


def _print(console: Console, title: str, columns: Sequence[str], rows: Sequence[tuple[str, ...]]) -> None:
    table = Table(title=title)
    for column in columns:
        table.add_column(column, justify="left" if not column else "right")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def main() -> int:
    arguments = options(__doc__)
    arguments.add_argument(
        "--quick", action="store_true", help="a tenth of the keys and a fifth of the checks in memory"
    )
    arguments.add_argument("--docs", action="store_true", help="take the figures over into docs/limits-performance.md")
    chosen = arguments.parse_args()
    console = Console(width=120)
    results: dict[str, Any] = {"machine": {"cpus": os.cpu_count(), "load_before": os.getloadavg()[0]}}
    spinner = Progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console)
    with spinner as progress:
        task = progress.add_task("starting", total=None)

        def tell(what: str) -> None:
            progress.update(task, description=what)

        results["memory"] = limits_memory.run(tell, quick=chosen.quick)
        results["redis"] = limits_redis.run(tell)
        from bench import middleware

        tell("middleware")
        results["middleware"] = middleware.run()["added_us"]
        tell("limits of single routes")
        results["route_limits"] = limits_memory.in_child("run()['added_us']", "bench.route_limits")
    results["machine"]["load_after"] = os.getloadavg()[0]
    show(console, results)
    targets = targets_in_memory(results["memory"]) + targets_on_redis(results["redis"])
    targets.append(Target("middleware with all headers: added µs", results["middleware"]["Frontrow"], 4, False))
    targets += route_limits.targets(results["route_limits"])
    hot = results["memory"]["hot_us"]
    groups = {
        algorithm: {name.removeprefix(f"{algorithm} "): hot[name] for name in hot if name.startswith(algorithm)}
        for algorithm in limits_memory.ALGORITHMS
    }
    bar_plot("limits", "One check in memory: CPU time", groups, "µs of CPU per check")
    met = report("limits", results, targets)
    console.print(f"Written: {OUT.name}/limits.json and {OUT.name}/limits.png")
    if chosen.docs:
        limits_docs.main()
        console.print("Taken over into docs/limits-performance.md")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
