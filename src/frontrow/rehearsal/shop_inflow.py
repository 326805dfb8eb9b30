"""Simulates a shop that slows down under load, and the room that holds its p95 bound (`waitingroom.model.inflow`).

The shops differ in what makes them slow (people inside, or people arriving), how steep their latency is, and how long a
visit lasts. The best fixed rate is the highest one whose steady p95 is under the bound.
"""

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from frontrow.core.clock import US_PER_S
from frontrow.core.errors import ConfigError
from frontrow.waitingroom.model.config import RoomConfig
from frontrow.waitingroom.model.inflow import Inflow, ShopReport, next_inflow, permits_per_s

if TYPE_CHECKING:
    from rich.table import Table

REPORT_EVERY_S = 5
DRAW_EVERY_S = 20
NOISE = 0.03  # standard deviation of a reported p95, as a share of it


@dataclass(frozen=True, slots=True)
class Shop:
    """A shop whose p95 is `base_ms / (1 - load)`, raised to `steepness`. It doubles at `doubles_at` of the set rate."""

    name: str = "slow with people inside"
    base_ms: float = 200.0
    doubles_at: float = 0.6
    steepness: float = 1.0
    visit_s: int = 60
    by_arrivals: bool = False  # what slows it: people arriving per second, not people inside
    is_straight: bool = False  # the p95 grows in a straight line

    def p95_ms(self, share: float) -> float:
        """The p95 at this share of the set rate."""
        if self.is_straight:
            return self.base_ms * (1 + share / self.doubles_at)
        full = self.doubles_at / (1 - 0.5 ** (1 / self.steepness))
        return float(self.base_ms * max(0.001, 1 - share / full) ** -self.steepness)

    def best_share(self, bound_ms: float) -> float:
        """The largest share of the set rate with a p95 within the bound."""
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if self.p95_ms(middle) <= bound_ms else (low, middle)
        return low


SHOPS = (
    Shop(),
    Shop("steeper near its limit", steepness=0.5),
    Shop("slow with arrivals", by_arrivals=True),
    Shop("long visits", visit_s=300),
    Shop("short visits", visit_s=20),
    Shop("grows in a straight line", is_straight=True),
)


@dataclass(frozen=True, slots=True)
class InflowRun:
    """One simulated sale, by second."""

    shop: Shop
    p95_ms: tuple[float, ...]
    inside: tuple[int, ...]
    limits: tuple[int, ...]
    admitted: int
    best_admitted: float

    @property
    def share_of_best(self) -> float:
        """The admissions as a share of those at the best fixed rate."""
        return self.admitted / self.best_admitted


def run_shop(
    shop: Shop,
    *,
    bound_ms: int = 400,
    rate_per_s: int = 50,
    capacity: int = 0,
    length_s: int = 3_600,
    seed: int = 1,
    reporters: int = 1,
    liars: Sequence[int] = (),
    silent_from_s: int | None = None,
) -> InflowRun:
    """Let as many people in as the controller allows, with a long line outside. `liars`: the p95 in ms that further
    reporters always send. `silent_from_s`: from then on no report arrives."""
    chance = random.Random(seed)  # a simulation
    capacity = capacity or rate_per_s * shop.visit_s
    config = RoomConfig(capacity=capacity, rate_per_s=rate_per_s, burst=rate_per_s, max_p95_ms=bound_ms)
    leaving: dict[int, int] = {}
    inflow: Inflow | None = None
    inside = admitted = 0
    left_per_s = permits = 0.0
    reports = {f"shop-{i}": ShopReport(f"shop-{i}", 0, 0, 0, at_us=US_PER_S) for i in range(reporters)}
    p95s, people, limits = [], [], []
    recent: deque[float] = deque(maxlen=REPORT_EVERY_S)
    for second in range(1, length_s + 1):
        now_us, left = second * US_PER_S, leaving.pop(second, 0)
        inside -= left
        left_per_s += (left - left_per_s) / 30
        inflow = next_inflow(inflow, tuple(reports.values()), config, active=inside, waiting=1_000_000, now_us=now_us)
        limit = inflow.limit if inflow else capacity
        permits = min(
            rate_per_s, permits % 1 + min(rate_per_s, permits_per_s(inflow, left_per_s) if inflow else rate_per_s)
        )
        entering = max(0, min(int(permits), limit - inside))
        inside, admitted = inside + entering, admitted + entering
        for _ in range(entering):
            ends = second + max(1, round(shop.visit_s * chance.uniform(0.5, 1.5)))
            leaving[ends] = leaving.get(ends, 0) + 1
        recent.append(shop.p95_ms(entering / rate_per_s if shop.by_arrivals else inside / (rate_per_s * shop.visit_s)))
        p95s.append(sum(recent) / len(recent))
        people.append(inside)
        limits.append(limit)
        if second % REPORT_EVERY_S == 0 and (silent_from_s is None or second < silent_from_s):
            for index in range(reporters + len(liars)):
                p95 = p95s[-1] * chance.gauss(1, NOISE) if index < reporters else liars[index - reporters]
                name = f"shop-{index}"
                reports[name] = ShopReport(name, second, max(1, round(p95)), 1_000, at_us=now_us)
    best = shop.best_share(bound_ms) * rate_per_s * length_s
    return InflowRun(shop, tuple(p95s), tuple(people), tuple(limits), admitted, best)


def build_table(runs: Sequence[InflowRun], bound_ms: int = 400) -> "Table":
    """The runs as a rich table."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=f"a p95 of {bound_ms} ms held for an hour", box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("shop", "visit", "highest p95", "time above", "admitted", "of the best fixed rate"):
        table.add_column(heading, justify="left" if heading == "shop" else "right")
    for run in runs:
        above = sum(p95 > bound_ms for p95 in run.p95_ms) / len(run.p95_ms)
        figures = (f"{run.shop.visit_s} s", f"{max(run.p95_ms):.0f} ms", f"{above:.1%}", f"{run.admitted:,}")
        table.add_row(run.shop.name, *figures, f"{run.share_of_best:.1%}")
    return table


def draw_chart(path: str | Path, runs: Sequence[InflowRun], bound_ms: int = 400) -> Path:
    """Write the chart: p95 and people inside of each shop. The file's ending (.png, .svg, .pdf) selects the format."""
    try:
        import matplotlib
    except ImportError:
        raise ConfigError("the chart needs matplotlib: pip install 'frontrow[plot]'") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    target = Path(path)
    with plt.rc_context({"svg.hashsalt": "frontrow", "svg.fonttype": "none", "font.size": 9}):
        figure, rows = plt.subplots(len(runs), 1, figsize=(9, 2 * len(runs)), sharex=True)
        for axis, run in zip(rows, runs, strict=True):
            minutes = [second / 60 for second in range(0, len(run.p95_ms), DRAW_EVERY_S)]
            axis.plot(minutes, run.p95_ms[::DRAW_EVERY_S], color="#2a6fb0", linewidth=1, label="p95 (ms)")
            axis.axhline(bound_ms, color="#b04a2a", linewidth=1, linestyle="--", label="bound")
            axis.set_ylim(0, max(bound_ms * 1.6, max(run.p95_ms) * 1.05))
            people = axis.twinx()
            people.plot(minutes, run.inside[::DRAW_EVERY_S], color="#7a8794", linewidth=1, label="people inside")
            people.set_ylim(bottom=0)
            axis.set_title(f"{run.shop.name}: {run.share_of_best:.0%} of the best fixed rate", loc="left", fontsize=9)
        rows[0].legend(loc="lower right", ncols=2, fontsize=8)
        rows[-1].set_xlabel("minutes")
        figure.suptitle("blue: the shop's p95; dashed: its bound; grey: people inside")
        figure.tight_layout()
        metadata = {"Date": None} if target.suffix == ".svg" else {}
        figure.savefig(target, metadata=metadata, dpi=120)
        plt.close(figure)
    return target
