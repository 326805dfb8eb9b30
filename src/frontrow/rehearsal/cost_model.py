"""What a sale costs in CPU, from figures measured by our own benchmarks (`python -m bench.costs` writes costs.json)."""

import json
from dataclasses import dataclass
from importlib import resources
from math import ceil

import numpy as np
from numpy.typing import NDArray

USABLE_SHARE = 0.6  # of a core: the rest is for peaks, kernels and garbage
MAP_READS_PER_VISIT = 1.0
POLLS_PER_VISIT = 8.0  # of the seat map, while somebody looks at it


@dataclass(frozen=True, slots=True)
class Costs:
    """CPU microseconds per request of each route, and per booking of each process."""

    cpu_us: dict[str, float]
    booking_us: dict[str, float]
    stream_bytes: float

    @property
    def visit_us(self) -> float:
        """What somebody costs who comes in, looks and leaves."""
        return (
            self.cpu_us["event"] + self.cpu_us["map"] * MAP_READS_PER_VISIT + self.cpu_us["seat_poll"] * POLLS_PER_VISIT
        )


def read_costs() -> Costs:
    table = json.loads(resources.files("frontrow.rehearsal").joinpath("costs.json").read_text())
    return Costs(table["cpu_us"], table["booking_us"], table["stream_bytes"])


@dataclass(frozen=True, slots=True)
class Load:
    """Server CPU per second over the sale, and what it needs at its peak."""

    cores: NDArray[np.float64]  # CPU seconds per second, at each step
    peak_cores: float
    servers: int  # processes of one core each, at 60 % use
    cpu_s: float
    redis_cpu_s: float
    postgres_cpu_s: float


def price_load(
    costs: Costs,
    step_s: float,
    *,
    joins: NDArray[np.float64],
    polls: NDArray[np.float64],
    visits: NDArray[np.float64],
    bookings: NDArray[np.float64],
) -> Load:
    """The CPU of the servers, from events per second at each step."""
    booking_us = costs.booking_us["server"]
    cores = (
        joins * costs.cpu_us["join"] + polls * costs.cpu_us["status"] + visits * costs.visit_us + bookings * booking_us
    ) / 1e6
    peak = float(cores.max()) if cores.size else 0.0
    total_bookings = float(bookings.sum()) * step_s
    return Load(
        cores,
        peak,
        max(1, ceil(peak / USABLE_SHARE)),
        float(cores.sum()) * step_s,
        total_bookings * costs.booking_us["redis"] / 1e6,
        total_bookings * costs.booking_us["postgres"] / 1e6,
    )
