"""What visitors of a shop do, drawn from a plan: the same people for a rehearsal and for a storm."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from frontrow.rehearsal.sale_plan import SalePlan

BOT_S = 1.5  # how long a bot takes for what a person thinks about
LOOK_S = 12.0  # how long somebody looks at a sold-out map
SPREAD = 0.6  # of the log-normal times to choose and to pay

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class DrawnVisits:
    """Who leaves without buying, how long each looks, and how many seats each wants."""

    leaves: Bools
    browse_s: NDArray[np.float64]
    groups: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class DrawnPayments:
    """How long each takes to pay, who never does, and whose payment fails."""

    pay_s: NDArray[np.float64]
    abandons: Bools
    fails: Bools


def draw_reactions(plan: SalePlan, rng: np.random.Generator, bots: Bools) -> NDArray[np.float64]:
    """How long after their turn people come in, in seconds."""
    drawn: NDArray[np.float64] = rng.standard_exponential(bots.size) * np.where(bots, BOT_S, plan.reaction_s)
    return drawn


def draw_visits(plan: SalePlan, rng: np.random.Generator, bots: Bools) -> DrawnVisits:
    leaves = (rng.random(bots.size) < plan.leave_without_buying) & ~bots
    browse_s = np.where(bots, BOT_S, rng.lognormal(np.log(plan.browse_s), SPREAD, bots.size))
    browse_s = np.minimum(browse_s, plan.room.pass_ttl_s)
    weights = np.array(plan.group_weights[: plan.seats_per_booking])
    groups = rng.choice(np.arange(1, weights.size + 1), size=bots.size, p=weights / weights.sum())
    return DrawnVisits(leaves, browse_s, np.where(bots, plan.seats_per_booking, groups))


def draw_payments(plan: SalePlan, rng: np.random.Generator, bots: Bools) -> DrawnPayments:
    pay_s = np.where(bots, BOT_S, rng.lognormal(np.log(plan.payment_s), SPREAD, bots.size))
    draw = rng.random(bots.size)
    abandons = (draw < plan.abandon_hold) & ~bots
    return DrawnPayments(pay_s, abandons, ~abandons & (draw < plan.abandon_hold + plan.payment_fails))
