"""How many at once: pure rules that turn a limit and what was seen under it into the next limit.

A `LoadSample` sums up a window, a time in which the limit did not change. Three controllers read it:

`GradientLimit` compares latency with a baseline, the latency without a queue. It shrinks the limit while latency stands
above the baseline, and lets it grow while it does not. A dependency that has become slower looks like a queue at first.
The rule that tells them apart is Little's law: if fewer at once make a request faster, there was a queue. If they do
not, the dependency is slow, and its latency is the new baseline.

`AimdLimit` adds one per window and takes a tenth away when requests fail or take too long. It needs no baseline.

`DelayPressure` is for servers whose requests are answered in one turn of the event loop, so that none is in flight: it
turns a standing delay into a pressure that sheds classes from the bottom. The platform's overload gate uses it.
"""

import math
from dataclasses import dataclass, replace
from typing import Final, Protocol

from frontrow.core.errors import ConfigError

MOST: Final = 1_000_000.0
SHARPEST: Final = 0.5  # the most that one window takes away
SEARCH: Final = 1.5  # growth per window until latency rises for the first time
DOUBLED: Final = 2.0  # slowness that is looked into at once
SLOW_COUNTS: Final = 5  # a slow window brings the next probe nearer by so many
STILL_QUEUED: Final = 1.15  # latency fell with the load up to this factor: even half the limit has a queue
WEIGHT: Final = 50  # a window of so many requests moves a baseline by half the difference
ENOUGH: Final = 20  # requests of a class whose mean latency is a baseline
DROPS_MATTER: Final = 0.01  # of the requests of a window


@dataclass(frozen=True, slots=True)
class LoadSample:
    """What was seen in a window, a time in which the limit did not change."""

    counts: tuple[int, ...]  # requests that ended well, by class
    latencies_s: tuple[float, ...]  # their mean latency, by class
    in_flight: float  # how many there were at once, on average
    shed: int = 0  # requests that found no room
    drops: int = 0  # requests that failed by a rule: timeouts, refused connections, 503
    noise: float = 0.0  # the relative standard error of the mean latency: smaller differences mean nothing

    @property
    def ended(self) -> int:
        return sum(self.counts)

    @property
    def drop_share(self) -> float:
        return self.drops / max(1, self.drops + self.ended)


@dataclass(frozen=True, slots=True)
class LimitState:
    """What a controller knows. `limit` is what it allows now; the rest is its own."""

    limit: float
    baselines_s: tuple[float, ...] = ()  # by class; 0: not known yet
    searching: bool = True  # grow fast until latency rises for the first time
    anchor: tuple[float, float] | None = None  # requests in flight and slowness before a probe
    unproven: int = 0  # windows since the baseline was last measured without a queue
    kept: float = 0.0  # the limit to return to after a probe; 0: no probe


class Controller(Protocol):
    """A rule for the limit. It has no clock and keeps nothing: the state is passed in and a new one comes out."""

    def start(self, classes: int) -> LimitState:
        """The state before anything was seen."""

    def next(self, state: LimitState, sample: LoadSample) -> LimitState:
        """The state after a sample."""


def _check(**given: tuple[float, float, float]) -> None:
    for name, (value, low, high) in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise ConfigError(f"{name} must be a number from {low:g} to {high:g}, not {value!r}", param=name)


@dataclass(frozen=True, slots=True)
class AimdLimit:
    """One more per window while all is well; a tenth less when requests are dropped or slower than `timeout_s`."""

    initial: float = 20
    least: float = 4
    most: float = 1000
    backoff: float = 0.9
    timeout_s: float = 5.0

    def __post_init__(self) -> None:
        _check(least=(self.least, 1, MOST), most=(self.most, self.least, MOST))
        _check(initial=(self.initial, self.least, self.most), backoff=(self.backoff, 0.1, 0.99))
        _check(timeout_s=(self.timeout_s, 0.001, 3600))

    def start(self, classes: int) -> LimitState:
        return LimitState(self.initial, (0.0,) * classes)

    def next(self, state: LimitState, sample: LoadSample) -> LimitState:
        limit, late = state.limit, max(sample.latencies_s, default=0.0) > self.timeout_s
        if sample.drops or late:
            limit *= self.backoff
        elif sample.ended and sample.in_flight >= limit / 2:
            limit += 1
        return replace(state, limit=min(self.most, max(self.least, limit)))


@dataclass(frozen=True, slots=True)
class GradientLimit:
    """The limit at which latency begins to rise. The default; nothing has to be configured.

    A probe runs one window at half the limit and compares. It comes when latency has doubled, when it has stood above
    the baseline for some windows, and now and then under load, because a baseline may have been learnt in a queue.
    """

    initial: float = 20
    least: float = 4
    most: float = 1000
    tolerance: float = 1.2  # slower than the baseline by this factor is a queue
    probe_every: int = 50  # windows under load without a probe; slow ones count five times

    def __post_init__(self) -> None:
        _check(least=(self.least, 1, MOST), most=(self.most, self.least, MOST))
        _check(initial=(self.initial, self.least, self.most), tolerance=(self.tolerance, 1.01, 100))
        _check(probe_every=(self.probe_every, 2, 1_000_000))

    def start(self, classes: int) -> LimitState:
        return LimitState(self.initial, (0.0,) * classes, unproven=self.probe_every - 2)  # the first probe comes soon

    def next(self, state: LimitState, sample: LoadSample) -> LimitState:
        if sample.drop_share > DROPS_MATTER:
            kept = max(SHARPEST, min(0.9, 1 - sample.drop_share))
            return self._bounded(replace(state, searching=False, kept=0.0), state.limit * kept)
        if not sample.ended:
            return state
        if state.kept:
            return self._probed(state, sample)
        is_free = sample.in_flight < state.limit / 2 and not sample.shed
        baselines = _learn(state.baselines_s, sample, is_free)
        slowness = _slowness(baselines, sample)
        is_slow = slowness > self.tolerance * (1 + sample.noise)
        unproven = 0 if is_free else state.unproven + (SLOW_COUNTS if is_slow else 1)
        state = replace(state, baselines_s=baselines, unproven=unproven)
        if is_free:
            return state
        if unproven >= self.probe_every or slowness > DOUBLED * (1 + sample.noise):
            return self._probe(state, sample, slowness)
        return self._step(state, slowness, is_slow)

    def _step(self, state: LimitState, slowness: float, is_slow: bool) -> LimitState:
        """Shrink a little while latency stands above the baseline, grow while it does not."""
        headroom = max(1.0, math.sqrt(state.limit) / 2)
        if is_slow:
            smaller = state.limit * max(SHARPEST, self.tolerance / slowness) + headroom
            return self._bounded(replace(state, searching=False), min(smaller, state.limit))
        return self._bounded(state, state.limit * SEARCH if state.searching else state.limit + headroom)

    def _probe(self, state: LimitState, sample: LoadSample, slowness: float) -> LimitState:
        """The next window runs at half the limit."""
        half = max(self.least, state.limit / 2)
        anchor = sample.in_flight, slowness
        return replace(state, kept=state.limit, limit=half, anchor=anchor, unproven=0)

    def _probed(self, state: LimitState, sample: LoadSample) -> LimitState:
        """Compare with the window before the probe, and choose the limit and the baseline."""
        then, was = state.anchor or (sample.in_flight, 1.0)
        slowness = _slowness(state.baselines_s, sample)
        of_queue = was * min(1.0, sample.in_flight / max(then, 1e-9))  # what Little's law expects if all was a queue
        after = replace(state, kept=0.0, anchor=None, baselines_s=_relearn(state.baselines_s, sample, slowness))
        if (
            state.limit <= self.least or slowness * (1 + sample.noise) >= (was + of_queue) / 2
        ):  # fewer at once did not help
            return self._bounded(replace(after, searching=state.searching or slowness > self.tolerance), state.kept)
        after = replace(after, searching=False)
        if slowness * (1 + sample.noise) <= of_queue * STILL_QUEUED:
            return self._probe(after, sample, 1.0)
        return self._bounded(after, max(state.limit, state.kept * slowness / was))  # the limit at which no queue stands

    def _bounded(self, state: LimitState, limit: float) -> LimitState:
        return replace(state, limit=min(self.most, max(self.least, limit)))


def _learn(baselines_s: tuple[float, ...], sample: LoadSample, is_free: bool) -> tuple[float, ...]:
    """The baselines after a sample. Under load they only fall, because what rises may be a queue."""
    learnt = []
    for old_s, latency_s, count in zip(baselines_s, sample.latencies_s, sample.counts, strict=True):
        if not old_s or not count:
            learnt.append(latency_s if count else old_s)
        elif is_free or latency_s * (1 + sample.noise) < old_s:
            learnt.append(old_s + (latency_s - old_s) * count / (count + WEIGHT))
        else:
            learnt.append(old_s)
    return tuple(learnt)


def _slowness(baselines_s: tuple[float, ...], sample: LoadSample) -> float:
    """Latency as a multiple of the baseline. By class: shedding changes how many of each are served."""
    rows = zip(baselines_s, sample.latencies_s, sample.counts, strict=True)
    return sum(count * latency / max(base, 1e-9) for base, latency, count in rows if count) / sample.ended


def _relearn(baselines_s: tuple[float, ...], sample: LoadSample, slowness: float) -> tuple[float, ...]:
    """The baselines after a probe: what was measured, or the common change where too few were measured."""
    rows = zip(baselines_s, sample.latencies_s, sample.counts, strict=True)
    return tuple(latency if count >= ENOUGH else base * slowness for base, latency, count in rows)


@dataclass(frozen=True, slots=True)
class DelayPressure:
    """Grows by half a class per interval while a delay stands above its bound, and shrinks by a tenth when none does.

    Pressure 1.5 sheds all of the lowest class and every second request of the next (`ClassShares.admits`).
    """

    highest: float  # what is shed at full pressure: every class below this number
    grow: float = 0.5
    shrink: float = 0.1

    def next(self, pressure: float, excess: float) -> float:
        """The pressure after an interval. `excess` is the delay that stood in it, as a multiple of its bound."""
        if excess > 1:
            return min(self.highest, pressure + self.grow * min(1.0, excess - 0.5))
        return max(0.0, pressure - self.shrink)
