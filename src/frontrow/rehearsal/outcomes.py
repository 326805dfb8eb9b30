"""What became of everybody in a rehearsed sale: each person is counted once, and the counts add up to the crowd."""

from dataclasses import astuple, dataclass

import numpy as np

from frontrow.rehearsal.simulation import Simulation


@dataclass(frozen=True, slots=True)
class Outcomes:
    """How many people ended each way. The sale ends when it is sold out, or when nobody is left."""

    bought: int
    payments_failed: int
    holds_expired: int  # held seats and did not pay in time
    found_nothing: int
    looked_and_left: int
    choosing: int  # in the shop when the sale ended
    coming: int  # admitted, and not in the shop yet when the sale ended
    places_expired: int  # came after their place had expired
    gave_up: int
    waiting: int  # in the line when the sale ended
    not_come: int  # would have come after the end
    stopped: int  # bots that the human check kept out

    @property
    def everybody(self) -> int:
        return sum(astuple(self))


LABELS = {
    "bought": "bought tickets",
    "payments_failed": "had a payment that failed",
    "holds_expired": "held seats and did not pay in time",
    "found_nothing": "came in and found nothing",
    "looked_and_left": "looked and left",
    "choosing": "were choosing seats when the sale ended",
    "coming": "were about to come in when the sale ended",
    "places_expired": "came after their place had expired",
    "gave_up": "gave up waiting",
    "waiting": "were still in the line when the sale ended",
    "not_come": "would have come later",
    "stopped": "were bots that the human check stopped",
}


def count_outcomes(simulation: Simulation) -> Outcomes:
    """Where everybody is at the end of a sale that has run."""
    history, crowd = simulation.history, simulation.crowd
    joined, admitted = history.joined[-1], history.admitted[-1]
    gone_at = np.ceil(crowd.leaves_line_s[crowd.line[admitted:joined]] / np.float32(simulation.step_s))
    gone = int(np.count_nonzero(gone_at <= len(history.time_s) - 1))
    return Outcomes(
        bought=history.bookings,
        payments_failed=history.payments_failed,
        holds_expired=history.holds_expired,
        found_nothing=history.refused_holds,
        looked_and_left=history.looked_and_left,
        choosing=simulation.choosing,
        coming=simulation.coming,
        places_expired=history.places_expired,
        gave_up=history.gone_before_turn + gone,
        waiting=joined - admitted - gone,
        not_come=int(crowd.arrives_s.size) - joined,
        stopped=simulation.plan.people - int(crowd.arrives_s.size),
    )


def list_outcomes(outcomes: Outcomes) -> list[tuple[str, str, str]]:
    """Rows of (what became of them, people, share), and the sum. What happened to nobody is left out."""
    everybody = outcomes.everybody
    counts = {label: getattr(outcomes, name) for name, label in LABELS.items()}
    rows = [(label, f"{count:,}", f"{count / everybody:.1%}") for label, count in counts.items() if count]
    return [*rows, ("everybody", f"{everybody:,}", f"{1:.1%}")]
