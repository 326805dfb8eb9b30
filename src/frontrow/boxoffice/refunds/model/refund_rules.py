"""How much is refunded (B12): the lines of a refund, less what the event's policy keeps (ADR 0180, 0181)."""

from collections.abc import Sequence

import msgspec

from frontrow.boxoffice.events.model.events import Event, EventStatus
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.payments.model.payments import EXTERNAL, Payment
from frontrow.boxoffice.refunds.model.refund_lines import (
    PaidFor,
    RefundChoice,
    RefundLine,
    RefundLineKind,
    complete_choice,
    refund_lines,
    seat_fees,
)
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import NotFound, Refused
from frontrow.shared.money import Money


class RefundRefused(Refused):
    """The event's policy does not allow it. The organiser still can."""

    code = "refund_refused"


class PaidAtBoxOffice(RefundRefused):
    """The money is in the till of the box office. Nobody would hand it out because of a click."""

    code = "paid_at_box_office"


def check_paid_online(payments: Sequence[Payment]) -> None:
    """Raise `PaidAtBoxOffice` if the buyer paid staff, in cash or on a card reader. Staff gives it back, too."""
    if any(one.provider == EXTERNAL for one in payments):
        raise PaidAtBoxOffice(
            "these tickets were paid at the box office; return them there", booking=payments[0].booking_id
        )


class RefundNotFound(NotFound):
    code = "refund_not_found"


class RefundSum(msgspec.Struct, frozen=True):
    """What goes back and what the organiser keeps. `lines` add up to `amount_minor`. `fees_left` are the fees per
    booking that stay paid until the last seat goes: name and amount."""

    choice: RefundChoice
    lines: tuple[RefundLine, ...]
    amount_minor: int
    fee_minor: int
    fees_left: tuple[tuple[str, int], ...] = ()
    used: tuple[tuple[str, int, int], ...] = ()  # add-ons that were redeemed and stay paid: name, quantity and amount

    @property
    def worth_minor(self) -> int:
        """By how much the booking is worth less afterwards."""
        return self.amount_minor + self.fee_minor


def check_window(event: Event, now_us: int) -> None:
    """Raise `RefundRefused` unless a fan may return something at `now_us` (before the last step ends)."""
    if event.status is EventStatus.CANCELLED:
        return
    policy = event.refunds
    if not policy.allowed:
        raise RefundRefused(f"tickets of {event.name} cannot be refunded", event=event.id)
    if policy.step_at(event.starts_at_us, now_us) is None:
        last_s = policy.all_steps[-1].until_s
        raise RefundRefused(
            f"tickets of {event.name} could be refunded until {last_s // 3600} h before the show",
            event=event.id,
            closed_at_us=event.starts_at_us - last_s * US_PER_S,
        )


def refund_sum(
    event: Event,
    booking: Booking,
    paid: PaidFor,
    choice: RefundChoice,
    now_us: int,
    *,
    by_policy: bool,
    left_minor: int | None = None,
) -> RefundSum:
    """What a refund of this choice pays. `left_minor`: what is left of the payment, if less may be left than was paid
    for what the booking has.

    In full (not `by_policy`), the kept seats stay as cheap as they were, whatever group they needed.
    """
    by_policy = by_policy and event.status is not EventStatus.CANCELLED
    choice = complete_choice(booking, paid, choice)
    lines = list(refund_lines(booking, paid, choice, recheck_group=by_policy))
    if left_minor is not None and sum(line.amount_minor for line in lines) > left_minor:
        less = left_minor - sum(line.amount_minor for line in lines)
        lines.append(RefundLine(RefundLineKind.REFUNDED_BEFORE, "", 1, less))
    worth = sum(line.amount_minor for line in lines)
    if by_policy:
        lines += _kept_lines(event, booking, paid, choice, worth, now_us)
    amount = sum(line.amount_minor for line in lines)
    if _ends(booking, choice):  # what was redeemed stays with the organiser
        most = paid.used_minor if left_minor is None else min(paid.used_minor, left_minor - worth)
        return RefundSum(choice, tuple(lines), amount, worth - amount + most, (), paid.used)
    return RefundSum(choice, tuple(lines), amount, worth - amount, paid.fees)


def resale_sum(booking: Booking, paid: PaidFor, seats: Sequence[int]) -> RefundSum:
    """What seats that are returned for resale bring back once they are resold."""
    choice = complete_choice(booking, paid, RefundChoice(tuple(seats)))
    lines = refund_lines(booking, paid, choice)
    amount, ends = sum(line.amount_minor for line in lines), _ends(booking, choice)
    return RefundSum(choice, lines, amount, 0, () if ends else paid.fees, paid.used if ends else ())


def _ends(booking: Booking, choice: RefundChoice) -> bool:
    return set(choice.seats) == set(booking.seats)


def _kept_lines(
    event: Event, booking: Booking, paid: PaidFor, choice: RefundChoice, worth_minor: int, now_us: int
) -> list[RefundLine]:
    """What the policy keeps, as lines with negative amounts. Together never more than the refund is worth."""
    policy, left, found = event.refunds, worth_minor, list[RefundLine]()

    def keep(kind: RefundLineKind, amount: int, count: int = 1) -> None:
        nonlocal left
        amount = min(amount, left)
        if amount:
            left -= amount
            found.append(RefundLine(kind, "", count, -amount))

    if policy.keeps_seat_fees and choice.seats:
        fees = seat_fees(booking)
        kept = sum(min(fees.get(seat, 0), paid.seats[seat]) for seat in choice.seats)
        keep(RefundLineKind.SEAT_FEES_KEPT, kept, len(choice.seats))
    if policy.keeps_booking_fees and set(choice.seats) == set(booking.seats):
        keep(RefundLineKind.BOOKING_FEES_KEPT, paid.fees_minor)
    step = policy.step_at(event.starts_at_us, now_us) or policy.all_steps[-1]
    keep(RefundLineKind.SHARE_KEPT, left - Money(left, booking.currency).percent(step.basis_points).minor)
    keep(RefundLineKind.REFUND_FEE, policy.fee_of(Money(left, booking.currency), len(choice.seats)))
    return found
