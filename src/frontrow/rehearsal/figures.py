"""The figures of a rehearsed sale: waits, fairness, bots, cost, and what limited it, with advice in words."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frontrow.rehearsal.cpu_costs import Costs, Load, price_load
from frontrow.rehearsal.outcomes import Outcomes, count_outcomes
from frontrow.rehearsal.simulation import Simulation
from frontrow.rehearsal.sizing import cores_needed

ARRIVAL_BINS = 24
DRAW_BINS = 10
MAX_POINTS = 600
MANY_GAVE_UP = 0.2
MANY_BOT_SEATS = 0.05
MANY_IN_VAIN = 0.3


@dataclass(frozen=True, slots=True)
class ArrivalGroup:
    """People (not bots) who came in one stretch of time: how many, how many were admitted, and their waits."""

    from_s: float
    to_s: float
    people: int
    admitted: int
    median_s: float | None
    p90_s: float | None


@dataclass(frozen=True, slots=True)
class SaleFigures:
    """One rehearsed sale in figures."""

    people: int  # the whole crowd; `outcomes` says what became of each
    seats: int
    seats_sold: int
    all_taken_s: float | None  # when every seat was sold or held for the first time
    sold_out_s: float | None
    bookings: int
    admitted: int
    gave_up: int
    most_waiting: int
    in_vain: int
    payments_failed: int
    holds_expired: int
    wait_median_s: float | None
    wait_p90_s: float | None
    visit_s: float
    drawn: int
    draw_spread: float  # how far the luckiest tenth of the pre-queue is from the mean, by hour of arrival
    bots_in_line: float
    bots_of_seats: float
    bottleneck: str
    bound_share: dict[str, float]
    peak_cores: float
    servers: int
    cpu_s: float
    redis_cpu_s: float
    postgres_cpu_s: float
    outcomes: Outcomes
    arrivals: tuple[ArrivalGroup, ...]
    series: dict[str, list[float]]
    advice: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def read_figures(simulation: Simulation, costs: Costs) -> SaleFigures:
    """Everything worth saying about a sale that has run."""
    history, crowd, plan = simulation.history, simulation.crowd, simulation.plan
    admitted_people, waits_s, was_here = _waits(simulation)
    human = ~crowd.is_bot[admitted_people]
    own = waits_s[human & was_here]
    load = _load(simulation, costs)
    outcomes = count_outcomes(simulation)
    bound_share = _bound_share(simulation)
    sold = history.sold[-1]
    figures = SaleFigures(
        people=plan.people,
        seats=plan.seats,
        seats_sold=sold,
        all_taken_s=history.all_taken_s,
        sold_out_s=history.sold_out_s,
        bookings=history.bookings,
        admitted=history.admitted[-1],
        gave_up=outcomes.gave_up,
        most_waiting=max(history.waiting),
        in_vain=history.refused_holds,
        payments_failed=history.payments_failed,
        holds_expired=history.holds_expired,
        wait_median_s=_quantile(own, 0.5),
        wait_p90_s=_quantile(own, 0.9),
        visit_s=history.visit_s / max(1, history.visits),
        drawn=crowd.drawn,
        draw_spread=_draw_spread(simulation),
        bots_in_line=float(crowd.is_bot.mean()) if crowd.is_bot.size else 0.0,
        bots_of_seats=history.bot_seats / max(1, sold),
        bottleneck=max(bound_share, key=lambda name: bound_share[name]) if bound_share else "line",
        bound_share=bound_share,
        peak_cores=load.peak_cores("server"),
        servers=cores_needed(load, "server"),
        cpu_s=load.cpu_s("server"),
        redis_cpu_s=load.cpu_s("redis"),
        postgres_cpu_s=load.cpu_s("postgres"),
        outcomes=outcomes,
        arrivals=_arrival_groups(simulation, admitted_people, waits_s, was_here),
        series=_series(simulation, load),
        advice=(),
    )
    return _with_advice(figures, simulation)


def _waits(simulation: Simulation) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.bool_]]:
    """Who was admitted, how long each had waited, and whether they were still there."""
    history, crowd = simulation.history, simulation.crowd
    admitted = history.admitted[-1]
    people = crowd.line[:admitted]
    his = np.array(history.admitted, dtype=np.int64)
    turn_s = np.array(history.time_s, dtype=np.float32)[np.searchsorted(his, np.arange(1, admitted + 1))]
    arrived_s = np.maximum(crowd.arrives_s[people], 0)
    return people, turn_s - arrived_s, crowd.leaves_line_s[people] > turn_s


def _quantile(values: NDArray[np.float32], share: float) -> float | None:
    return float(np.quantile(values, share)) if values.size else None


def _arrival_groups(
    simulation: Simulation, people: NDArray[np.int32], waits_s: NDArray[np.float32], was_here: NDArray[np.bool_]
) -> tuple[ArrivalGroup, ...]:
    crowd, human = simulation.crowd, ~simulation.crowd.is_bot[people]
    end_s = min(float(crowd.arrives_s[-1]), simulation.history.time_s[-1])
    edges = np.linspace(float(crowd.arrives_s[0]), max(end_s, float(crowd.arrives_s[0]) + 1.0), ARRIVAL_BINS + 1)
    counts = np.diff(np.searchsorted(crowd.arrives_s[~crowd.is_bot], edges.astype(np.float32)))
    group_of = np.clip(np.searchsorted(edges, crowd.arrives_s[people], side="right") - 1, 0, ARRIVAL_BINS - 1)
    groups = []
    for index in range(ARRIVAL_BINS):
        mine = was_here & human & (group_of == index)
        own = waits_s[mine]
        low, high = float(edges[index]), float(edges[index + 1])
        admitted = int(np.count_nonzero(mine))
        groups.append(ArrivalGroup(low, high, int(counts[index]), admitted, _quantile(own, 0.5), _quantile(own, 0.9)))
    return tuple(groups)


def _draw_spread(simulation: Simulation) -> float:
    """Coming early to the pre-queue must not help: how uneven its tenths (by arrival) were admitted."""
    drawn, admitted = simulation.crowd.drawn, simulation.history.admitted[-1]
    lucky = simulation.crowd.line[: min(drawn, admitted)]
    if lucky.size < DRAW_BINS or lucky.size == drawn:
        return 0.0
    tenths = np.bincount(lucky.astype(np.int64) * DRAW_BINS // drawn, minlength=DRAW_BINS) / (lucky.size / DRAW_BINS)
    return float(np.abs(tenths - 1).max())


def _bound_share(simulation: Simulation) -> dict[str, float]:
    total = sum(simulation.history.bounds.values()) or 1
    return {name: count / total for name, count in simulation.history.bounds.items()}


def _load(simulation: Simulation, costs: Costs) -> Load:
    history, step_s = simulation.history, simulation.step_s
    per_s = 1.0 / step_s
    joined = np.array(history.joined, dtype=np.float64)
    entered = np.diff(np.array(history.admitted, dtype=np.float64), prepend=0.0)
    sold = np.diff(np.array(history.sold, dtype=np.float64), prepend=0.0)
    seats_each = history.sold[-1] / max(1, history.bookings)
    return price_load(
        costs,
        step_s,
        joins=np.diff(joined, prepend=joined[0] if joined.size else 0.0) * per_s,
        polls=np.array(history.waiting, dtype=np.float64) / simulation.plan.poll_s,
        visits=entered * per_s,
        bookings=sold * per_s / max(1.0, seats_each),
    )


def _series(simulation: Simulation, load: Load) -> dict[str, list[float]]:
    """The curves of the report, thinned to what a plot can show."""
    history = simulation.history
    every = max(1, len(history.time_s) // MAX_POINTS)
    admitted = np.array(history.admitted, dtype=np.float64)
    rates = np.zeros(admitted.size)
    window = max(1, round(10 / simulation.step_s))
    if admitted.size > window:
        rates[window:] = (admitted[window:] - admitted[:-window]) / (window * simulation.step_s)
    columns: dict[str, Any] = {
        "time_s": history.time_s,
        "joined": history.joined,
        "waiting": history.waiting,
        "admitted": history.admitted,
        "admitted_per_s": rates.tolist(),
        "active": history.active,
        "held": history.held,
        "sold": history.sold,
        "cores": load.cores["server"].tolist(),
    }
    return {name: [round(float(value), 3) for value in values[::every]] for name, values in columns.items()}


def _with_advice(figures: SaleFigures, simulation: Simulation) -> SaleFigures:
    values = {name: getattr(figures, name) for name in SaleFigures.__dataclass_fields__}
    return SaleFigures(**{**values, "advice": tuple(_advise(figures, simulation))})


def _advise(figures: SaleFigures, simulation: Simulation) -> list[str]:
    plan, history = simulation.plan, simulation.history
    lines = [_name_bottleneck(figures, simulation)]
    if figures.sold_out_s is None:
        left = figures.seats - figures.seats_sold
        lines.append(f"{left:,} seats are left when the last person leaves: this crowd does not sell the event out.")
    elif history.all_taken_s is not None and figures.sold_out_s - history.all_taken_s > plan.hold_s:
        lines.append(
            f"Every seat is taken after {say_duration(history.all_taken_s)}; the rest of the sale waits for holds that "
            f"nobody pays (hold_s is {plan.hold_s:.0f}). Shorter holds end it sooner."
        )
    if figures.in_vain > MANY_IN_VAIN * figures.admitted:
        lines.append(
            f"{figures.in_vain:,} people come in while every seat is sold or held and find nothing. "
            "Pause the room then, and let the waitlist catch them."
        )
    if figures.gave_up > MANY_GAVE_UP * figures.people:
        lines.append(
            f"{figures.gave_up / figures.people:.0%} give up in the line. Say on the page how likely a seat still is."
        )
    if figures.bots_of_seats > MANY_BOT_SEATS:
        lines.append(
            f"Bots get {figures.bots_of_seats:.0%} of the seats. "
            "Set room.human, one place per person, and fewer seats per booking."
        )
    if plan.provider_outage.length_s > plan.hold_s:
        lines.append("The payment provider is away for longer than a hold lasts: extend the holds of who is paying.")
    lines.append(
        f"At its peak the sale needs {figures.peak_cores:.1f} cores: "
        f"{_servers(figures.servers)} with one core each at 60 % use."
    )
    return lines


def _name_bottleneck(figures: SaleFigures, simulation: Simulation) -> str:
    """What limited the sale while there were seats, and what to set."""
    room = simulation.plan.room
    full_per_s = room.capacity / max(1.0, figures.visit_s)
    if figures.bottleneck == "capacity":
        return (
            f"room.capacity ({room.capacity:,}) is the bottleneck: a visit takes {figures.visit_s:.0f} s, so about "
            f"{full_per_s:,.0f} people per second can come in. Twice the capacity sells about twice as fast, "
            f"if {_servers(figures.servers * 2)} carry it."
        )
    if figures.bottleneck == "window":
        needed = max(round(full_per_s * room.interval_us / 1e6), room.window_size + 1)
        return (
            f"room.window_size ({room.window_size:,} every {room.interval_us / 1e6:g} s) is the bottleneck. "
            f"{needed:,} would keep the shop full."
        )
    if figures.bottleneck == "rate":
        return f"room.rate_per_s ({room.rate_per_s:,}) is the bottleneck. {full_per_s:,.0f} would keep the shop full."
    return "Nobody has to wait for long: the room is wide enough for this crowd."


def say_duration(seconds: float | None) -> str:
    """Seconds as people say them: 42 s, 12 min 5 s, 1 h 3 min."""
    if seconds is None:
        return "nobody was admitted"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _servers(count: int) -> str:
    return f"{count:,} server process" + ("" if count == 1 else "es")
