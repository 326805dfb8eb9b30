"""Pure: how many people may be in the shop at once so that its p95 latency stays under a bound.

Shops report their latency and errors. From the median of the fresh reports the controller moves a limit on the people
in the shop: it grows while the shop has room to spare and people wait, slower the nearer the p95 is to the bound, and
it shrinks while the p95 is beyond its target. It steers the number of people inside and not the rate, because the room
knows that number at every moment: a rate acts only a whole visit later. The limit is never above the capacity set by
hand and never below `min_capacity`. Without a fresh report it stays as it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import median_high

import msgspec

from frontrow.waitingroom.model.config import RoomConfig

KIND, VERSION = "p95", 1
REPORT_TTL_US = 300_000_000  # then a report makes room for another reporter
FRESH_US = 30_000_000  # older reports do not count
MAX_REPORTERS = 64
MAX_P95_MS = 600_000
TARGET = 0.98  # share of the bound that the controller holds
START_SHARE = 0.25  # of the capacity, when the first report arrives before anybody is in the shop
BINDING_SHARE = 0.8  # the limit grows only while so much of it is used: an unused limit is not tested
GAIN_PER_S = 0.02
MAX_UP_PER_S = 0.015  # doubles within a minute
MAX_DOWN_PER_S = 0.04
SMOOTH_S = 12.0
LEAD_S = 12.0  # how far ahead the trend is followed
CALM_SHARE = 0.12  # of the gain, near the target: there most of what is reported is chance
FAR = 0.2  # so far from the target (in logarithms) the whole gain counts
CROSSED = log(1.05)  # the bound was crossed, not only touched
MAX_CROSSINGS = 4.0
FORGET_CROSSINGS_S = 900.0
FILL_S = 30.0  # a limit is filled in this time at the earliest
PACE = 1.25  # or so many people enter per person who leaves
MAX_STEP_S = 10.0  # a longer gap between reports counts as this much
LEAST_LOAD = 0.01


@dataclass(frozen=True, slots=True)
class ShopReport:
    """What one reporter measured since its last report. `number` grows with each report; `at_us` is the store's time
    when it came."""

    reporter: str
    number: int
    p95_ms: int
    requests: int
    errors: int = 0
    at_us: int = 0


class Inflow(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the controller remembers. `limit_milli` is the limit in thousandths of a person."""

    kind: str = KIND
    version: int = VERSION
    limit_milli: int = 0
    heard_us: int = 0  # the newest report used
    log_load: float = 0.0  # of the smoothed load
    trend: float = 0.0  # its growth per second
    crossings: float = 0.0  # how often the bound was crossed lately: the limit then grows slower
    p95_ms: int = 0  # as last reported
    reporters: int = 0  # with a fresh report

    @property
    def is_ours(self) -> bool:
        """Whether this version of the controller wrote it."""
        return self.kind == KIND and self.version == VERSION

    @property
    def limit(self) -> int:
        return self.limit_milli // 1000


@dataclass(frozen=True, slots=True)
class ShopHealth:
    """What the fresh reports say together: the median p95, and the load as a share of what is allowed (1: at it)."""

    p95_ms: int
    load: float | None  # None: no reporter had requests
    reporters: int
    at_us: int


def judge_reports(reports: Sequence[ShopReport], config: RoomConfig, now_us: int) -> ShopHealth | None:
    """The health of the shop; None without a fresh report. One wrong reporter of three or more decides nothing."""
    fresh = [report for report in reports if now_us - report.at_us < FRESH_US]
    if not fresh:
        return None
    newest, busy = max(report.at_us for report in fresh), [report for report in fresh if report.requests]
    if not busy:
        return ShopHealth(0, None, len(fresh), newest)
    loads = [_load(report, config) for report in busy]
    return ShopHealth(median_high(report.p95_ms for report in busy), median_high(loads), len(fresh), newest)


def _load(report: ShopReport, config: RoomConfig) -> float:
    errors = 100 * report.errors / report.requests / config.max_error_percent
    return max(report.p95_ms / config.max_p95_ms, errors, LEAST_LOAD)


def next_inflow(
    old: Inflow | None,
    reports: Sequence[ShopReport],
    config: RoomConfig,
    *,
    active: int,
    waiting: int,
    now_us: int,
) -> Inflow | None:
    """The limit after these reports. None while there is none: no bound is set, or no report has come yet."""
    if not config.max_p95_ms:
        return None
    if old is not None and not old.is_ours:
        old = None
    health = judge_reports(reports, config, now_us)
    if old is None:
        if health is None:
            return None
        old = Inflow(limit_milli=1000 * max(active, int(config.capacity * START_SHARE)))
    if health is None:
        return _within(msgspec.structs.replace(old, reporters=0), config)
    if health.load is None or health.at_us <= old.heard_us:
        return _within(msgspec.structs.replace(old, reporters=health.reporters), config)
    return _within(_follow(old, health, health.load, active, waiting), config)


def _follow(old: Inflow, health: ShopHealth, load: float, active: int, waiting: int) -> Inflow:
    """The limit after a new report."""
    gap_s = min(MAX_STEP_S, (health.at_us - old.heard_us) / 1e6)
    blend = 1.0 - exp(-gap_s / SMOOTH_S)
    log_load, trend = log(load), 0.0
    if old.heard_us:
        log_load = old.log_load + (log_load - old.log_load) * blend
        trend = old.trend + ((log_load - old.log_load) / gap_s - old.trend) * blend
    crossed = log_load > CROSSED >= old.log_load and old.heard_us > 0
    crossings = min(MAX_CROSSINGS, old.crossings + 1) if crossed else old.crossings * exp(-gap_s / FORGET_CROSSINGS_S)
    room = log(TARGET) - log_load - LEAD_S * trend
    limit = old.limit_milli
    if log_load > 0:
        limit = min(limit, 1000 * active)
    if room > 0 and (not waiting or active * 1000 < limit * BINDING_SHARE):
        room = 0.0
    gain = GAIN_PER_S * min(1.0, CALM_SHARE + abs(room) / FAR)
    if log_load < CROSSED:
        gain *= 0.5**crossings
    limit = round(limit * exp(max(-MAX_DOWN_PER_S, min(MAX_UP_PER_S, gain * room)) * gap_s))
    return Inflow(
        limit_milli=limit,
        heard_us=health.at_us,
        log_load=log_load,
        trend=trend,
        crossings=crossings,
        p95_ms=health.p95_ms,
        reporters=health.reporters,
    )


def permits_per_s(inflow: Inflow, release_per_s: float) -> int:
    """The most people to admit per second, so that a larger limit is not filled at once: the shop would stumble over
    their first pages before it reports anything."""
    return max(1, round(max(inflow.limit / FILL_S, PACE * release_per_s)))


def _within(inflow: Inflow, config: RoomConfig) -> Inflow:
    """The bounds set by hand win."""
    floor = min(config.min_capacity, config.capacity)
    limit = max(1000 * floor, min(1000 * config.capacity, inflow.limit_milli))
    return msgspec.structs.replace(inflow, limit_milli=limit)
