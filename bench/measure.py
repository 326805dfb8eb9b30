"""Measuring CPU per operation, telling it as a table, JSON and a plot, and the command line of every benchmark."""

import argparse
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

OUT = Path(__file__).parent / "out"


def options(doc: str | None) -> argparse.ArgumentParser:
    """The command line of a benchmark. Parse it before anything else: `--help` only prints."""
    return argparse.ArgumentParser(description=" ".join((doc or "").partition("\n\n")[0].split()))


@dataclass(frozen=True)
class Target:
    """One figure against its target; `reached` and `wanted` are ratios or sizes, as `what` says."""

    what: str
    reached: float
    wanted: float
    more_is_better: bool = True

    @property
    def met(self) -> bool:
        return self.reached >= self.wanted if self.more_is_better else self.reached <= self.wanted


def cpu_us(run: Callable[[int], object], *, batch: int, rounds: int = 5) -> float:
    """CPU microseconds per operation of `run(n)`, which does n operations: the best of several rounds."""
    run(max(1, batch // 10))
    best = float("inf")
    for _ in range(rounds):
        started = time.process_time()
        run(batch)
        best = min(best, (time.process_time() - started) / batch)
    return best * 1e6


async def cpu_us_async(run: Callable[[int], Awaitable[object]], *, batch: int, rounds: int = 4) -> tuple[float, float]:
    """CPU microseconds and operations a second of an asyncio workload: the best of several rounds."""
    await run(max(1, batch // 10))
    best_cpu, best_rate = float("inf"), 0.0
    for _ in range(rounds):
        cpu, wall = time.process_time(), time.perf_counter()
        await run(batch)
        best_cpu = min(best_cpu, (time.process_time() - cpu) / batch)
        best_rate = max(best_rate, batch / (time.perf_counter() - wall))
    return best_cpu * 1e6, best_rate


def report(name: str, results: dict[str, Any], targets: list[Target]) -> bool:
    """Print the targets, write bench/out/<name>.json, and say whether all were met."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{name}: targets of this run")
    for column in ("what", "reached", "wanted", ""):
        table.add_column(column, justify="left" if column in ("what", "") else "right")
    for target in targets:
        sign = "≥" if target.more_is_better else "≤"
        mark = "[green]met" if target.met else "[red]missed"
        table.add_row(target.what, f"{target.reached:,.2f}", f"{sign} {target.wanted:,.2f}", mark)
    Console(width=120).print(table)
    OUT.mkdir(exist_ok=True)
    told = results | {"targets": [asdict(target) | {"met": target.met} for target in targets]}
    (OUT / f"{name}.json").write_text(json.dumps(told, indent=2) + "\n")
    return all(target.met for target in targets)


LOG_FROM = 200  # bars that differ by more than this factor are drawn on a logarithmic axis


def bar_plot(name: str, title: str, groups: dict[str, dict[str, float]], unit: str) -> Path:
    """Horizontal bars, one panel a group, written as bench/out/<name>.png."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        len(groups),
        1,
        figsize=(9, 0.9 + sum(0.32 * len(bars) + 0.6 for bars in groups.values())),
        squeeze=False,
        gridspec_kw={"height_ratios": [len(bars) + 1 for bars in groups.values()]},
    )
    for axis, (label, bars) in zip(axes[:, 0], groups.items(), strict=True):
        names, values = list(bars), list(bars.values())
        colours = ["#c2410c" if each.startswith("Frontrow") else "#94a3b8" for each in names]
        drawn = axis.barh(names, values, color=colours)
        axis.bar_label(drawn, [f"{value:,.2f}" for value in values], padding=3, fontsize=8)
        if max(values) > LOG_FROM * min(values):
            axis.set_xscale("log")
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_formatter("")
        axis.invert_yaxis()
        axis.set_title(label, loc="left", fontsize=9)
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(x=0.15)
    axes[-1, 0].set_xlabel(unit, fontsize=8)
    figure.suptitle(title, fontsize=11)
    figure.tight_layout()
    OUT.mkdir(exist_ok=True)
    path = OUT / f"{name}.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path
