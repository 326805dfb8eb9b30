"""The refund policy of an event: until when a fan gets money back, in which steps, and what is kept. Pure.

Every event contains one, so this module knows no event. What a refund pays by it is in `refunds.model.refund_rules`.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from frontrow.core.clock import US_PER_S
from frontrow.core.errors import InvalidInput
from frontrow.shared.money import BASIS_POINTS, Money

MAX_REFUND_STEPS: Final = 6


@dataclass(frozen=True, slots=True)
class RefundStep:
    """Until `until_s` before the show, `basis_points` of what was paid are refunded."""

    until_s: int
    basis_points: int = 10_000

    def __str__(self) -> str:
        """As the audit shows it."""
        return f"{self.basis_points / 100:g} % until {self.until_s / 3600:g} h before"


@dataclass(frozen=True, slots=True)
class RefundPolicy:
    """What a fan is refunded (B12): until `window_s` before the show, less a fee. Organisers can override it.

    The fee is `fee_per_seat_minor` plus `fee_basis_points` of what is refunded, and never more than was paid. Fees that
    were paid with the price go back with their seat, or with the booking's last seat, unless they are kept. `steps`
    refund less as the show comes nearer; without them all is refunded until `window_s`, which is the first step's end.
    """

    allowed: bool = True
    window_s: int = 48 * 3600
    fee_per_seat_minor: int = 0
    fee_basis_points: int = 0
    keeps_seat_fees: bool = False
    keeps_booking_fees: bool = False
    steps: tuple[RefundStep, ...] = ()

    @property
    def all_steps(self) -> tuple[RefundStep, ...]:
        """The steps, the earliest first: at least one."""
        return self.steps or (RefundStep(self.window_s),)

    def step_at(self, starts_at_us: int, now_us: int) -> RefundStep | None:
        """The step that applies at `now_us`; None once the last one is over."""
        return next((step for step in self.all_steps if now_us < starts_at_us - step.until_s * US_PER_S), None)

    def fee_of(self, refunded: Money, seats: int) -> int:
        """The organiser's fee for a refund of this much and so many seats."""
        return self.fee_per_seat_minor * seats + refunded.percent(self.fee_basis_points).minor


DEFAULT_POLICY: Final = RefundPolicy()


def check_policy(policy: RefundPolicy) -> None:
    """Raise `InvalidInput` unless an event can have this policy."""
    if min(policy.window_s, policy.fee_per_seat_minor, policy.fee_basis_points) < 0 or policy.fee_basis_points > 10_000:
        raise InvalidInput("refunds: window and fees must be 0 or more, the fee at most 10000 points", param="refunds")
    _check_steps(policy)


def _check_steps(policy: RefundPolicy) -> None:
    """Each step ends later than the one before, and refunds less."""
    steps = policy.steps
    if len(steps) > MAX_REFUND_STEPS:
        raise InvalidInput(f"refunds: at most {MAX_REFUND_STEPS} steps", param="refunds")
    if any(one.until_s < 0 or not 1 <= one.basis_points <= BASIS_POINTS for one in steps):
        raise InvalidInput("refunds: a step refunds 1 to 10000 points, until 0 s or more before", param="refunds")
    for one, later in pairwise(steps):
        if later.until_s >= one.until_s or later.basis_points >= one.basis_points:
            raise InvalidInput("refunds: each step must end nearer to the show and refund less", param="refunds")
    if steps and policy.window_s != steps[0].until_s:
        raise InvalidInput("refunds: window_s must be the end of the first step", param="refunds")
