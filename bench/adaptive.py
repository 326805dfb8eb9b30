"""`python -m bench.adaptive`: a FastAPI service whose dependency becomes ten times slower, with and without a limit.

Callers of three classes arrive at random, whether or not they are served, and leave after two seconds. The dependency
is healthy, then ten times slower for a while, then healthy again. Beside each other: no limit, a fixed one, and the
adaptive limit with nothing configured but which path is which class. Real sockets on loopback, a process per server.

A dependency that is ten times slower answers nobody sooner, so latency is compared with that of the critical class
alone on the same slow dependency, measured in the same round. The figures are medians of the rounds' ratios.
"""

import argparse
import asyncio
import contextlib
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp

from bench.adaptive_servers import FIXED, ROUTES, SERVICE_S, TIMES, WORKERS
from bench.measure import OUT, Target, report

PER_SECOND = {"critical": 20, "normal": 100, "background": 80}
HEALTHY_S, SLOW_S, AFTER_S = 8, 20, 12
ALONE_S = 10
PATIENCE_S = 2.0
KINDS = ("none", "fixed", "adaptive")
NAMES = {"none": "no limit", "fixed": f"fixed, {FIXED} at once", "adaptive": "Frontrow, adaptive"}
PICTURE = Path("docs/img/adaptive-bench.png")

Answer = tuple[float, str, float, bool]  # when it was asked for, class, how long it took, whether it was served in time


@contextlib.contextmanager
def server(*words: str) -> Iterator[str]:
    """Run a server; its address."""
    command = [sys.executable, "-m", "bench.adaptive_servers", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()  # a service without a limit has thousands of requests left, and nobody waits for them
        process.wait()
        process.stdout.close()


async def ask(session: aiohttp.ClientSession, url: str, name: str, began_s: float, answers: list[Answer]) -> None:
    asked_s = time.perf_counter()
    try:
        async with asyncio.timeout(PATIENCE_S), session.get(url + ROUTES[name]) as response:
            await response.read()
            served = response.status == 200
    except (TimeoutError, aiohttp.ClientError):
        served = False
    answers.append((asked_s - began_s, name, time.perf_counter() - asked_s, served))


async def crowd(url: str, names: tuple[str, ...], seconds: float, marks: dict[float, Any], seed: int) -> list[Answer]:
    """Callers arrive for so many seconds. `marks`: what to call at which second."""
    dice, answers, tasks = random.Random(seed), list[Answer](), set[asyncio.Task[None]]()
    times = sorted((at_s, name) for name in names for at_s in arrivals(dice, PER_SECOND[name], seconds))
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        began_s = time.perf_counter()
        pending = sorted(marks.items())
        for at_s, name in times:
            await asyncio.sleep(max(0.0, began_s + at_s - time.perf_counter()))
            while pending and pending[0][0] <= at_s:
                await pending.pop(0)[1](session)
            task = asyncio.create_task(ask(session, url, name, began_s, answers))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)
    return answers


def arrivals(dice: random.Random, rate: float, seconds: float) -> Iterator[float]:
    at_s = dice.expovariate(rate)
    while at_s < seconds:
        yield at_s
        at_s += dice.expovariate(rate)


def set_times(dependency: str, times: float) -> Any:
    async def tell(session: aiohttp.ClientSession) -> None:
        async with session.post(f"{dependency}/times/{times}") as response:
            response.raise_for_status()

    return tell


def run_kind(kind: str, seed: int) -> list[Answer]:
    with server("dependency") as dependency, server(kind, dependency) as url:
        marks = {HEALTHY_S: set_times(dependency, TIMES), HEALTHY_S + SLOW_S: set_times(dependency, 1)}
        return asyncio.run(crowd(url, tuple(PER_SECOND), HEALTHY_S + SLOW_S + AFTER_S, marks, seed))


def run_alone(seed: int) -> float:
    """The 99th percentile of the critical class alone on the slow dependency."""
    with server("dependency") as dependency, server("none", dependency) as url:
        answers = asyncio.run(crowd(url, ("critical",), ALONE_S, {0.0: set_times(dependency, TIMES)}, seed))
    return p99_s([took for _, _, took, served in answers if served])


def p99_s(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.99)] if times else PATIENCE_S


def of_phase(answers: list[Answer], from_s: float, to_s: float, name: str | None = None) -> tuple[float, float]:
    """Served in time per second, and the 99th percentile of their latency."""
    took = [one for at, cls, one, served in answers if served and from_s <= at < to_s and name in (None, cls)]
    return len(took) / (to_s - from_s), p99_s(took)


def served_share(answers: list[Answer], from_s: float, to_s: float, name: str) -> float:
    """Of those who asked in this time, how many were served in time."""
    asked = [served for at, cls, _, served in answers if from_s <= at < to_s and cls == name]
    return sum(asked) / max(1, len(asked))


def recovery_s(answers: list[Answer], best: float) -> float:
    """Seconds after the slow time until, second after second, nine tenths of the best are served."""
    end = HEALTHY_S + SLOW_S
    for second in range(AFTER_S):
        asked = [served for at, _, _, served in answers if end + second <= at < end + AFTER_S]
        first = [served for at, _, _, served in answers if end + second <= at < end + second + 1]
        if first and sum(first) >= 0.9 * len(first) and sum(asked) >= 0.9 * len(asked):
            return float(second)
    return float("inf") if best else 0.0


def figures(answers: list[Answer], alone_s: float) -> dict[str, float]:
    """One run in numbers. The slow time counts whole, the change included."""
    healthy, slow = (1.0, float(HEALTHY_S)), (float(HEALTHY_S), float(HEALTHY_S + SLOW_S))
    settled = (HEALTHY_S + 2.0, slow[1])
    best, before_p99_s = of_phase(answers, *healthy, "critical")
    if not best:
        raise SystemExit(
            "Nobody was served in time while the dependency was fast: this machine is too busy to measure."
        )
    capacity = WORKERS / (SERVICE_S * TIMES)
    return {
        "critical healthy/s": best,
        "critical healthy p99 ms": before_p99_s * 1000,
        "critical slow/s": of_phase(answers, *slow, "critical")[0],
        "critical slow p99 ms": of_phase(answers, *slow, "critical")[1] * 1000,
        "all slow/s": of_phase(answers, *slow)[0],
        "critical kept": served_share(answers, *slow, "critical") / served_share(answers, *healthy, "critical"),
        "p99 beside alone": of_phase(answers, *settled, "critical")[1] / alone_s,
        "p99 beside alone, change included": of_phase(answers, *slow, "critical")[1] / alone_s,
        "of what the slow dependency can": of_phase(answers, *settled)[0] / capacity,
        "recovery s": recovery_s(answers, best),
    }


def draw(runs: dict[str, list[Answer]]) -> None:
    """Served per second, and the latency of the critical class, second by second."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, len(KINDS), figsize=(11, 5), sharex=True, sharey="row")
    seconds = range(HEALTHY_S + SLOW_S + AFTER_S)
    for column, kind in enumerate(KINDS):
        top, bottom = axes[0, column], axes[1, column]
        for name, colour in (("background", "#cbd5e1"), ("normal", "#64748b"), ("critical", "#c2410c")):
            top.plot(seconds, [of_phase(runs[kind], at, at + 1, name)[0] for at in seconds], color=colour, label=name)
        critical = [(at, took) for at, name, took, served in runs[kind] if served and name == "critical"]
        times = [[took for at, took in critical if second <= at < second + 1] for second in seconds]
        bottom.plot(seconds, [max(one) if one else None for one in times], color="#c2410c", label="critical, slowest")
        for axis in (top, bottom):
            axis.axvspan(HEALTHY_S, HEALTHY_S + SLOW_S, color="#fef3c7", zorder=0)
            axis.spines[["top", "right"]].set_visible(False)
            axis.tick_params(labelsize=8)
        top.set_title(NAMES[kind], fontsize=10)
        bottom.set_xlabel("seconds (shaded: the dependency is ten times slower)", fontsize=7)
    axes[0, 0].set_ylabel("served in time per second", fontsize=8)
    axes[1, 0].set_ylabel("latency, s", fontsize=8)
    axes[0, -1].legend(fontsize=8, loc="lower right")
    figure.tight_layout()
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / "adaptive.png", dpi=110)
    plt.close(figure)


def show(medians: dict[str, dict[str, float]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="a dependency that becomes ten times slower (medians of the rounds)")
    table.add_column("")
    for kind in KINDS:
        table.add_column(NAMES[kind], justify="right")
    for what in medians["none"]:
        table.add_row(what, *(f"{medians[kind][what]:,.2f}" for kind in KINDS))
    Console(width=120).print(table)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--rounds", type=int, default=3, choices=range(1, 21), metavar="1-20")
    options.add_argument("--docs", action="store_true", help="take the picture over into docs/img")
    given = options.parse_args()
    rounds: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
    runs: dict[str, list[Answer]] = {}
    for number in range(given.rounds):
        alone_s = run_alone(number)
        for kind in KINDS:
            runs[kind] = run_kind(kind, number)
            rounds[kind].append(figures(runs[kind], alone_s))
            print(f"round {number + 1} of {given.rounds}, {NAMES[kind]}: measured", flush=True)
    medians = {
        kind: {what: statistics.median(one[what] for one in rows) for what in rows[0]} for kind, rows in rounds.items()
    }
    show(medians)
    draw(runs)
    ours = medians["adaptive"]
    targets = [
        Target("critical: served of its best while the dependency is slow", ours["critical kept"], 0.9),
        Target("critical: p99 beside that of the class alone", ours["p99 beside alone"], 2.0, False),
        Target("all: served of what the slow dependency can", ours["of what the slow dependency can"], 0.9),
        Target("seconds until everybody is served again", ours["recovery s"], 10, False),
    ]
    met = report("adaptive", {"medians": medians, "rounds": rounds}, targets)
    print(f"Written: {OUT.name}/adaptive.json and {OUT.name}/adaptive.png")
    if given.docs:
        shutil.copy(OUT / "adaptive.png", PICTURE)
        print(f"Taken over into {PICTURE}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
