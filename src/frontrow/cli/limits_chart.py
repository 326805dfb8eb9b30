"""Runs the same bursty traffic through every algorithm in simulated time, as numbers, a chart or bars in the terminal.

The traffic shows how the algorithms differ: a full burst just before a window's boundary and another just after it, a
long stretch of steady overload, and quiet between them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from frontrow.core.clock import US_PER_S
from frontrow.core.errors import ConfigError
from frontrow.limits.limiter import Limiter
from frontrow.limits.quota import Algorithm, Quota

if TYPE_CHECKING:
    from rich.table import Table

ALGORITHMS = {
    "fixed_window": "simple; up to twice the limit around a boundary",
    "sliding_log": "exact; remembers every request",
    "sliding_counter": "nearly exact in constant space (the default)",
    "token_bucket": "allows a burst, then the steady rate",
    "leaky_bucket": "a meter that refuses when full",
    "leaky_queue": "a shaper: work leaves at a constant rate",
}
START_US = 1_700_000_040 * US_PER_S  # a whole minute, so that windows begin at 0
LENGTH_S = 240
BIN_S = 6
_BARS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Curve:
    """What one algorithm accepted: requests per bin, by the time their work starts."""

    algorithm: str
    accepted: tuple[int, ...]
    total: int
    worst_minute: int


def make_traffic(limit: int = 100) -> list[int]:
    """Arrival times in microseconds from the start: bursts at a boundary, overload, quiet. The same every time."""
    arrivals: list[int] = []
    for start_s, length_s, number in (
        (55, 4, limit),
        (61, 4, limit),
        (80, 40, limit // 5),
        (130, 45, limit * 2),
    ):
        step_us = length_s * US_PER_S // max(number, 1)
        arrivals += [start_s * US_PER_S + index * step_us for index in range(number)]
    return sorted(arrivals)


def run_algorithm(algorithm: str, quota_text: str = "100/minute") -> Curve:
    """Run the traffic through one algorithm."""
    quota = Quota.parse(quota_text, algorithm=cast(Algorithm, algorithm))
    limiter = Limiter(quota)
    starts: list[int] = []
    for at_us in make_traffic(quota.limit):
        decision = limiter.check("everybody", now_us=START_US + at_us)
        if decision.allowed:
            starts.append(at_us + round(decision.delay_s * US_PER_S))
    return Curve(algorithm, tuple(count_per_bin(starts)), len(starts), _worst_minute(sorted(starts)))


def count_per_bin(times_us: Iterable[int]) -> list[int]:
    """How many times fall into each bin of `BIN_S` seconds."""
    bins = [0] * (LENGTH_S // BIN_S)
    for at_us in times_us:
        bins[min(at_us // (BIN_S * US_PER_S), len(bins) - 1)] += 1
    return bins


def _worst_minute(times_us: Sequence[int]) -> int:
    """The most that was accepted in any 60 seconds."""
    worst = first = 0
    for last, at_us in enumerate(times_us):
        while times_us[first] <= at_us - 60 * US_PER_S:
            first += 1
        worst = max(worst, last - first + 1)
    return worst


def run_all(quota_text: str = "100/minute") -> list[Curve]:
    return [run_algorithm(algorithm, quota_text) for algorithm in ALGORITHMS]


def draw_bars(values: Sequence[int], top: int) -> str:
    """One character per bin."""
    return "".join(_BARS[min(len(_BARS) - 1, -(-value * (len(_BARS) - 1) // max(top, 1)))] for value in values)


def build_table(quota_text: str = "100/minute") -> "Table":
    """The curves as a rich table."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    limit = Quota.parse(quota_text).limit
    offered = count_per_bin(make_traffic(limit))
    top = max(offered)
    title = f"{quota_text}: accepted every {BIN_S} s of the same {LENGTH_S} s"
    table = Table(title=title, box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("algorithm", "accepted over time", "total", "worst 60s"):
        table.add_column(heading, no_wrap=True, justify="right" if heading[0] in "tw" else "left")
    table.add_row(
        "(offered)", draw_bars(offered, top), str(sum(offered)), str(_worst_minute(make_traffic(limit))), style="dim"
    )
    for curve in run_all(quota_text):
        table.add_row(curve.algorithm, draw_bars(curve.accepted, top), str(curve.total), str(curve.worst_minute))
    return table


def draw_chart(path: str | Path, quota_text: str = "100/minute") -> Path:
    """Write the chart. The file's ending (.png, .svg, .pdf) selects the format."""
    try:
        import matplotlib
    except ImportError:
        raise ConfigError("the chart needs matplotlib: pip install 'frontrow[plot]'") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    target = Path(path)
    quota = Quota.parse(quota_text)
    offered = count_per_bin(make_traffic(quota.limit))
    edges = [index * BIN_S for index in range(len(offered) + 1)]
    steady = quota.limit * BIN_S / quota.period_s
    with plt.rc_context({"svg.hashsalt": "frontrow", "svg.fonttype": "none", "font.size": 9}):
        figure, rows = plt.subplots(len(ALGORITHMS), 1, figsize=(9, 11), sharex=True, sharey=True)
        for axis, curve in zip(rows, run_all(quota_text), strict=True):
            axis.stairs(offered, edges, fill=True, color="#d9dde3", label="offered")
            axis.stairs(curve.accepted, edges, fill=True, color="#2a6fb0", label="accepted")
            axis.axhline(steady, color="#b04a2a", linewidth=1, linestyle="--", label="steady rate")
            note = f"{curve.total} accepted, worst 60 s: {curve.worst_minute}"
            axis.set_title(f"{curve.algorithm}: {ALGORITHMS[curve.algorithm]} ({note})", loc="left", fontsize=9)
            axis.set_ylabel(f"per {BIN_S} s")
        rows[0].legend(loc="upper right", ncols=3, fontsize=8)
        rows[-1].set_xlabel("seconds")
        figure.suptitle(f"{quota_text} under the same traffic")
        figure.tight_layout()
        metadata = {"Date": None} if target.suffix == ".svg" else {}
        figure.savefig(target, metadata=metadata, dpi=120)
        plt.close(figure)
    return target
