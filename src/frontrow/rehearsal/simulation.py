"""Simulates a whole sale in steps of one slide: arrivals, the line, the shop, seats and payments.

Millions of people are arrays; the room decides by the server's own code (`SimulatedRoom`). What each person will do is
drawn when they come in, so only people who reach the shop cost anything.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from frontrow.rehearsal.sale_plan import ArrivalShape, SalePlan
from frontrow.rehearsal.simulated_room import SimulatedRoom
from frontrow.rehearsal.visit_draws import LOOK_S, draw_payments, draw_reactions, draw_visits

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
FADE = 6.0  # a spike of arrivals fades with a sixth of its length
PURCHASE_ENDS_VISIT_S = 1.0  # the leader looks at holds and bookings once per second
OPENED_AT_US = 1_000_000_000_000_000  # any moment; the room's arithmetic is in microseconds
MAX_STEPS = 200_000


@dataclass(slots=True)
class SimulatedCrowd:
    """Everybody who joins, in order of arrival."""

    arrives_s: Floats
    is_bot: NDArray[np.bool_]
    leaves_line_s: Floats  # when somebody who still waits gives up
    line: NDArray[np.int32]  # position in the line (from 0) -> person
    drawn: int  # how many came before the opening


@dataclass(slots=True)
class SaleHistory:
    """What happened at each step, and the totals at the end."""

    step_s: float
    time_s: list[float] = field(default_factory=list)
    joined: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    admitted: list[int] = field(default_factory=list)
    active: list[int] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    sold: list[int] = field(default_factory=list)
    bounds: dict[str, int] = field(
        default_factory=lambda: defaultdict(int)
    )  # what limited a slide, until all seats were taken
    visits: int = 0
    visit_s: float = 0.0
    holds: int = 0
    refused_holds: int = 0
    bookings: int = 0
    bot_seats: int = 0
    payments_failed: int = 0
    holds_expired: int = 0
    looked_and_left: int = 0
    places_expired: int = 0  # of people who came too late
    gone_before_turn: int = 0  # admitted, but they had given up
    all_taken_s: float | None = None  # when every seat was sold or held for the first time
    sold_out_s: float | None = None

    def record(self, now_s: float, room: SimulatedRoom, waiting: int, held: int, sold: int, free: int) -> None:
        self.time_s.append(now_s)
        self.joined.append(room.issued)
        self.admitted.append(room.hi)
        self.active.append(room.active)
        self.waiting.append(waiting)
        self.held.append(held)
        self.sold.append(sold)
        if not free and self.all_taken_s is None:
            self.all_taken_s = now_s
        if room.bound and self.all_taken_s is None:
            self.bounds[room.bound] += 1


def gather_crowd(plan: SalePlan, rng: np.random.Generator) -> SimulatedCrowd:
    """Draw when everybody comes, how patient they are, and the order of the line."""
    identities = plan.people
    bots = round(identities * plan.bots * (1 - plan.bots_stopped))
    humans = identities - round(identities * plan.bots)
    arrives_s = np.concatenate([_human_arrivals(plan, humans, rng), _bot_arrivals(plan, bots, rng)])
    order = np.argsort(arrives_s, kind="stable")
    is_bot = order >= humans
    arrives_s = arrives_s[order]
    del order
    drawn = int(np.searchsorted(arrives_s, 0.0))
    line = np.arange(arrives_s.size, dtype=np.int32)
    rng.shuffle(line[:drawn])  # the server's draw is a keyed permutation; any fair one behaves alike
    leaves_s = rng.standard_exponential(arrives_s.size, dtype=np.float32)
    leaves_s *= np.float32(plan.patience_s / np.log(2))
    leaves_s += np.maximum(arrives_s, 0)
    leaves_s[is_bot] = np.inf
    return SimulatedCrowd(arrives_s, is_bot, leaves_s, line, drawn)


def _human_arrivals(plan: SalePlan, humans: int, rng: np.random.Generator) -> Floats:
    if plan.arrivals == ArrivalShape.STEADY:
        return _uniform(rng, humans, 0.0, plan.after_s)
    early = round(humans * plan.early_share) if plan.before_s else 0
    before = rng.standard_exponential(early, dtype=np.float32)
    before *= np.float32(-plan.before_s / FADE)
    np.maximum(before, np.float32(-plan.before_s), out=before)
    after = rng.standard_exponential(humans - early, dtype=np.float32)
    after *= np.float32(plan.after_s / FADE)
    np.minimum(after, np.float32(plan.after_s), out=after)
    return np.concatenate([before, after])


def _bot_arrivals(plan: SalePlan, bots: int, rng: np.random.Generator) -> Floats:
    """Bots come at the opening, or all before it where that puts them into the draw."""
    if plan.arrivals == ArrivalShape.BOTS and plan.before_s:
        return _uniform(rng, bots, -plan.before_s, 0.0)
    return _uniform(rng, bots, 0.0, 2.0)


def _uniform(rng: np.random.Generator, people: int, low: float, high: float) -> Floats:
    values = rng.random(people, dtype=np.float32)
    values *= np.float32(high - low)
    values += np.float32(low)
    return values


class Simulation:
    """One sale. `run` goes through it; `history` and `crowd` say what happened."""

    def __init__(self, plan: SalePlan) -> None:
        self.plan = plan
        self.rng = np.random.default_rng(plan.seed)
        self.crowd = gather_crowd(plan, self.rng)
        self.step_s = plan.room.interval_us / 1e6
        self.room = SimulatedRoom(plan.room, OPENED_AT_US, self.crowd.drawn)
        self.history = SaleHistory(self.step_s)
        self.free = plan.seats
        self.held = self.sold = 0
        self._turns: dict[int, list[Ints]] = defaultdict(list)  # step -> places (from 0) whose people come then
        self._knockers: list[Ints] = []  # people before a full shop, in order
        self._choices: dict[int, list[NDArray[np.int64]]] = defaultdict(list)  # step -> rows (seats, is_bot)
        self._paid: dict[int, list[tuple[int, int]]] = defaultdict(list)  # step -> (seats, seats of bots)
        self._returned: dict[int, int] = defaultdict(int)  # step -> seats that become free again
        self._ended: dict[int, int] = defaultdict(int)  # step -> visits that end
        self._gone_at = self._give_up_steps()
        self._gone_in_line = 0

    def run(self, progress: Callable[[float], None] | None = None) -> SaleHistory:
        """Until the sale is sold out, or nobody is left."""
        last_s = self.plan.after_s if self.plan.arrivals == ArrivalShape.STEADY else float(self.crowd.arrives_s[-1])
        for step in range(MAX_STEPS):
            self._run_step(step)
            if progress is not None and step % 50 == 0:
                progress(max(self.sold / self.plan.seats, 0.0))
            if self.sold >= self.plan.seats:
                self.history.sold_out_s = step * self.step_s
                break
            waits = self.room.hi < self.room.issued
            if step * self.step_s > last_s and not waits and not self.room.active and not self._turns:
                break
        if progress is not None:
            progress(1.0)
        return self.history

    @property
    def choosing(self) -> int:
        """People in the shop who have not chosen seats yet."""
        return sum(len(rows) for some in self._choices.values() for rows in some)

    @property
    def coming(self) -> int:
        """People who were admitted and are not in the shop yet, those before a full shop included."""
        turns = [places for some in self._turns.values() for places in some]
        return sum(int(places.size) for places in [*turns, *self._knockers])

    def _run_step(self, step: int) -> None:
        now_s = step * self.step_s
        self.room.leave(self._ended.pop(step, 0))
        self._take_back(step)
        self._complete_payments(step)
        self._place_holds(step)
        serving = not _inside(self.plan.server_outage.start_s, self.plan.server_outage.end_s, now_s)
        if serving:
            self._let_in(step)
        self.room.issued = int(np.searchsorted(self.crowd.arrives_s, np.float32(now_s), side="right"))
        if serving:
            before = self.room.hi
            self.room.slide(OPENED_AT_US + round(now_s * 1e6))
            self._admit(step, before, self.room.hi)
        if step < self._gone_at.size:
            self._gone_in_line += int(self._gone_at[step])
        waiting = max(0, self.room.issued - self.room.hi - max(0, self._gone_in_line))
        self.history.record(now_s, self.room, waiting, self.held, self.sold, self.free)

    # -- the line ------------------------------------------------------------------------------------------------

    def _give_up_steps(self) -> Ints:
        """How many people give up at each step, wherever they stand."""
        last = round((self.plan.after_s + 2 * self.plan.patience_s) / self.step_s)
        steps = np.ceil(self.crowd.leaves_line_s / np.float32(self.step_s))
        steps = steps[steps < last].astype(np.int64)
        return np.bincount(steps, minlength=last)

    def _admit(self, step: int, before: int, after: int) -> None:
        """Places `before` to `after` may come in: those who are still there do, after a moment."""
        if after <= before:
            return
        places = np.arange(before, after, dtype=np.int64)
        people = self.crowd.line[before:after]
        gives_up = np.ceil(self.crowd.leaves_line_s[people] / np.float32(self.step_s))
        here = gives_up > step
        gone = int(np.count_nonzero(~here))
        self._gone_in_line -= gone
        self.history.gone_before_turn += gone
        later = gives_up[here]
        later = later[later < self._gone_at.size].astype(np.int64)
        np.subtract.at(self._gone_at, later, 1)  # they are not in the line any more when they would give up
        places = places[here]
        delay_s = draw_reactions(self.plan, self.rng, self.crowd.is_bot[self.crowd.line[places]])
        steps = self._later(step, delay_s)
        for at in np.unique(steps).tolist():
            self._turns[at].append(places[steps == at])

    def _let_in(self, step: int) -> None:
        """People whose turn it is come in, as far as the shop has room."""
        due = [self._turns.pop(at) for at in sorted(at for at in self._turns if at <= step)]
        arrived = np.concatenate([places for some in due for places in some]) if due else np.empty(0, dtype=np.int64)
        still_active = self.room.still_active(arrived + 1)
        self.history.places_expired += int(np.count_nonzero(~still_active))
        arrived = arrived[still_active]
        knockers = np.concatenate(self._knockers) if self._knockers else np.empty(0, dtype=np.int64)
        entered = self.room.claim(arrived + 1, int(knockers.size))
        everybody = np.concatenate([knockers, arrived])
        self._knockers = [everybody[entered:]] if entered < everybody.size else []
        self._visit(step, everybody[:entered])

    # -- the shop ------------------------------------------------------------------------------------------------

    def _visit(self, step: int, places: Ints) -> None:
        """Draw what these visitors do: look and leave, or choose seats after a while."""
        if not places.size:
            return
        bots = self.crowd.is_bot[self.crowd.line[places]]
        self.history.visits += int(places.size)
        drawn = draw_visits(self.plan, self.rng, bots)
        leaves = drawn.leaves
        steps = self._later(step, drawn.browse_s)
        self.history.visit_s += float(drawn.browse_s.sum())
        self._end_visits(steps[leaves], self.plan.room.leave_s)
        self.history.looked_and_left += int(np.count_nonzero(leaves))
        rows = np.stack([drawn.groups, bots.astype(np.int64)], axis=1)[~leaves]
        steps = steps[~leaves]
        for at in np.unique(steps).tolist():
            self._choices[at].append(rows[steps == at])

    def _place_holds(self, step: int) -> None:
        """Visitors hold the seats they chose, as long as there are enough."""
        some = self._choices.pop(step, None)
        if not some:
            return
        rows = np.concatenate(some)
        wanted = np.cumsum(rows[:, 0])
        fits = wanted <= self.free
        if not fits.all():
            fits = self._fit_one_by_one(rows[:, 0])
        refused = int(np.count_nonzero(~fits))
        if refused:
            self.history.refused_holds += refused
            self.history.visit_s += refused * LOOK_S
            looked = self._later(step, np.full(refused, LOOK_S))
            self._end_visits(looked, self.plan.room.leave_s)
        self._start_payments(step, rows[fits])

    def _fit_one_by_one(self, groups: Ints) -> NDArray[np.bool_]:
        left, fits = self.free, np.zeros(groups.size, dtype=np.bool_)
        for index, group in enumerate(groups.tolist()):
            if group <= left:
                left -= group
                fits[index] = True
        return fits

    def _start_payments(self, step: int, rows: NDArray[np.int64]) -> None:
        if not len(rows):
            return
        plan, rng, now_s = self.plan, self.rng, step * self.step_s
        groups, bots = rows[:, 0], rows[:, 1] > 0
        seats = int(groups.sum())
        self.free -= seats
        self.held += seats
        self.history.holds += len(rows)
        drawn = draw_payments(plan, rng, bots)
        pay_s = drawn.pay_s
        outage = plan.provider_outage
        if outage.length_s:  # who pays then waits until the provider is back
            during = (now_s + pay_s >= outage.start_s) & (now_s + pay_s < outage.end_s)
            pay_s = np.where(during, outage.end_s - now_s + rng.random(len(rows)) * 5.0, pay_s)
        abandons = drawn.abandons | (pay_s > plan.hold_s)
        fails = drawn.fails & ~abandons
        stays_s = np.where(abandons, plan.hold_s, pay_s)  # a hold keeps its visit, even if its owner has gone
        self.history.visit_s += float(stays_s.sum())
        self.history.holds_expired += int(np.count_nonzero(abandons))
        self.history.payments_failed += int(np.count_nonzero(fails))
        ends = self._later(step, stays_s)
        expires = int(self._later(step, np.array([plan.hold_s]))[0])
        buys = ~abandons & ~fails
        self._end_visits(ends[buys], PURCHASE_ENDS_VISIT_S)
        self._end_visits(ends[fails], plan.room.leave_s)
        self._end_visits(ends[abandons], 0.0)
        for at in np.unique(ends).tolist():
            here = ends == at
            bought = here & buys
            if bought.any():
                self._paid[at].append((int(groups[bought].sum()), int(groups[bought & bots].sum())))
                self.history.bookings += int(np.count_nonzero(bought))
            self._returned[at] += int(groups[here & fails].sum())
        self._returned[expires] += int(groups[abandons].sum())

    def _later(self, step: int, seconds: NDArray[np.float64]) -> Ints:
        """The steps nearest to so many seconds after this one; the next one at the earliest."""
        return step + np.maximum(1, np.rint(seconds / self.step_s)).astype(np.int64)

    def _end_visits(self, steps: Ints, later_s: float) -> None:
        """The room notices these departures so much later, as the server does, and only then has a free slot."""
        self.history.visit_s += later_s * steps.size
        for at, count in zip(*np.unique(steps + round(later_s / self.step_s), return_counts=True), strict=True):
            self._ended[int(at)] += int(count)

    def _complete_payments(self, step: int) -> None:
        for seats, of_bots in self._paid.pop(step, ()):
            self.held -= seats
            self.sold += seats
            self.history.bot_seats += of_bots

    def _take_back(self, step: int) -> None:
        seats = self._returned.pop(step, 0)
        self.held -= seats
        self.free += seats


def _inside(start_s: float, end_s: float, now_s: float) -> bool:
    return start_s <= now_s < end_s
