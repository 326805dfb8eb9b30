"""`make bench-limits`: Frontrow's limiter beside limits, throttled-py, pyrate-limiter, slowapi, Litestar and floors."""

import sys
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench import limits_memory, limits_redis
from bench.measure import OUT, Target, bar_plot, report

PEERS = ("limits", "throttled-py", "pyrate-limiter")


def best_peer(figures: dict[str, float], algorithm: str) -> float:
    return min(cost for name, cost in figures.items() if name.startswith(algorithm) and name.endswith(PEERS))


def targets_in_memory(memory: dict[str, Any]) -> list[Target]:
    hot, million, three = memory["hot_us"], memory["million"], memory["three_rules_us"]
    told = []
    for algorithm in ("fixed_window", "sliding_counter", "sliding_log", "token_bucket", "leaky_bucket"):
        ratio = best_peer(hot, algorithm) / hot[f"{algorithm} Frontrow"]
        told.append(Target(f"memory, hot key, {algorithm}: × the best peer", ratio, 5))
    for algorithm in ("fixed_window", "sliding_counter", "token_bucket", "leaky_bucket"):
        again = {name: figures["again_us"] for name, figures in million.items()}
        ratio = best_peer(again, algorithm) / again[f"{algorithm} Frontrow"]
        told.append(Target(f"memory, 1M keys, {algorithm}: × the best peer", ratio, 5))
    told.append(
        Target(
            "memory, three rules at once: × the best peer",
            min(three["limits"], three["throttled-py"]) / three["Frontrow"],
            10,
        )
    )
    ours = {name: figures for name, figures in million.items() if name.endswith("Frontrow")}
    constant = [figures["bytes_per_key"] for name, figures in ours.items() if not name.startswith("sliding_log")]
    told.append(Target("memory, bytes per key (worst constant-size algorithm)", max(constant), 80, False))
    told.append(Target("memory, log: bytes per remembered request", memory["log_bytes_per_request"], 10, False))
    slowest = max(figures["p999_us"] for figures in ours.values())
    told.append(Target("memory, 1M keys: p99.9 of a check, µs", slowest, 50, False))
    told.append(Target("memory, 1M keys aging out: p99.99 of a check, µs", memory["aging"]["p9999_us"], 5000, False))
    return told


def targets_on_redis(redis: dict[str, Any]) -> list[Target]:
    def ratio(group: str) -> float:
        """By client CPU per check: it holds when the machine is busy, which checks a second do not."""
        figures = redis[group]
        best = min(each["cpu_us"] for name, each in figures.items() if name != "Frontrow")
        return float(best / figures["Frontrow"]["cpu_us"])

    return [
        Target("Redis, 200 tasks, one rule: CPU per check × the best peer", ratio("tasks_1"), 7),
        Target("Redis, 200 tasks, three rules: CPU per check × the best peer", ratio("tasks_3"), 12),
        Target("Redis, sequential, three rules: CPU per check × the best peer", ratio("sequential_3"), 2),
        Target("Redis, a known refusal: µs, no round trip", redis["denied_us"], 2, False),
        Target("Redis stalled: slowest blocking answer, ms (deadline 25)", redis["stalled"]["blocking_ms"], 35, False),
        Target("Redis stalled: slowest of 200 tasks, ms", redis["stalled"]["asyncio_200_tasks_ms"], 35, False),
    ]


def show(console: Console, results: dict[str, Any]) -> None:
    memory, redis = results["memory"], results["redis"]
    table = Table(title="in memory, CPU µs per check")
    for column in ("", "hot key", "1M keys", "bytes/key", "p99.9 µs"):
        table.add_column(column, justify="left" if not column else "right")
    for name, cost in memory["hot_us"].items():
        big = memory["million"].get(name)
        cells = [f"{big[k]:,.2f}" for k in ("again_us", "bytes_per_key", "p999_us")] if big else ["", "", ""]
        table.add_row(name, f"{cost:,.3f}", *cells)
    for name, cost in memory["three_rules_us"].items():
        table.add_row(f"three rules {name}", f"{cost:,.3f}", "", "", "")
    console.print(table)
    table = Table(title="Redis: checks/s and client CPU µs per check")
    for column in ("", "sequential 1", "sequential 3", "200 tasks 1", "200 tasks 3"):
        table.add_column(column, justify="left" if not column else "right")
    for name in redis["tasks_1"]:
        groups = ("sequential_1", "sequential_3", "tasks_1", "tasks_3")
        table.add_row(name, *(f"{redis[g][name]['per_s']:,.0f} ({redis[g][name]['cpu_us']:,.1f})" for g in groups))
    console.print(table)
    if "middleware" in results:
        table = Table(title="middleware: CPU µs added per request")
        table.add_column("")
        table.add_column("µs", justify="right")
        for name, cost in results["middleware"].items():
            table.add_row(name, f"{cost:,.2f}")
        console.print(table)


def main() -> int:
    console = Console(width=120)
    results: dict[str, Any] = {}
    spinner = Progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console)
    with spinner as progress:
        task = progress.add_task("starting", total=None)

        def tell(what: str) -> None:
            progress.update(task, description=what)

        results["memory"] = limits_memory.run(tell)
        results["redis"] = limits_redis.run(tell)
        from bench import middleware

        tell("middleware")
        results["middleware"] = middleware.run()["added_us"]
    show(console, results)
    targets = targets_in_memory(results["memory"]) + targets_on_redis(results["redis"])
    targets.append(Target("middleware with all headers: added µs", results["middleware"]["Frontrow"], 5, False))
    hot = results["memory"]["hot_us"]
    groups = {
        algorithm: {name.removeprefix(f"{algorithm} "): hot[name] for name in hot if name.startswith(algorithm)}
        for algorithm in ("fixed_window", "sliding_counter", "sliding_log", "token_bucket", "leaky_bucket")
    }
    bar_plot("limits", "One check in memory: CPU time", groups, "µs of CPU per check")
    met = report("limits", results, targets)
    console.print(f"Written: {OUT.name}/limits.json and {OUT.name}/limits.png")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
