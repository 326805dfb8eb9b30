"""Checks that a history of seats is linearizable: some order of all calls explains every answer that anybody got.

**The law.** Each seat is one object with the states free, held by a booking, sold to a booking. A call takes effect in
one moment between its beginning and its answer:

| call | moves the seat | answered by |
|---|---|---|
| take | free -> held by b | a hold with this seat |
| drop | held by b -> free | the release of b |
| sell | held by b -> sold to b | the confirmation of b |
| refund | sold to b -> free | the refund of b |
| see | sold to b, and stays so | anybody who read that b is confirmed |

A call without an answer took effect once at any time after its beginning, or never. The system itself may end a hold
(held by b -> free) at any time from its expiry on, or never. A refusal has no effect and explains itself: the shop may
refuse a free seat (a stale map, a store that is away), but never grant a taken one.

A history is linearizable if for each seat one order of these moments exists that the table allows. Linearizability is
local (Herlihy and Wing 1990): a whole is linearizable exactly if each of its objects is. That a hold of several seats
takes all or none is not part of it; `frontrow.rehearsal.history` and the ledger's constraints check that.

The search is that of Wing and Gong with the memory of Lowe: depth first over the calls that may come next, and no
combination of calls done and state of the seat is tried twice. It decides or says that it did not: a seat that needs
more than `MOST_STEPS` counts as not proven.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

NEVER_US = 2**62
MOST_STEPS = 2_000_000


class Act(StrEnum):
    TAKE = "take"
    DROP = "drop"
    SELL = "sell"
    REFUND = "refund"
    SEE = "see"
    EXPIRE = "expire"  # by the system: it may happen from `began_us` on


@dataclass(frozen=True, slots=True)
class Call:
    """One call about one seat. `ended_us` is `NEVER_US` if nobody heard an answer: then it need not have happened."""

    act: Act
    seat: int
    booking: str
    began_us: int
    ended_us: int = NEVER_US


@dataclass(frozen=True, slots=True)
class Verdict:
    """`broken` are the seats that no order explains, `undecided` those that took too long."""

    calls: int
    seats: int
    broken: tuple[int, ...]
    undecided: tuple[int, ...]

    @property
    def holds(self) -> bool:
        return not self.broken and not self.undecided


State = tuple[str, bool] | None  # free, or whose it is and whether it is sold


def check(calls: Iterable[Call], *, most_steps: int = MOST_STEPS) -> Verdict:
    """The verdict over each seat of a history."""
    by_seat: dict[int, list[Call]] = defaultdict(list)
    for call in calls:
        by_seat[call.seat].append(call)
    found = {seat: explain(own, most_steps=most_steps) for seat, own in sorted(by_seat.items())}
    return Verdict(
        sum(map(len, by_seat.values())),
        len(by_seat),
        tuple(seat for seat, explained in found.items() if explained is False),
        tuple(seat for seat, explained in found.items() if explained is None),
    )


def explain(calls: Sequence[Call], *, most_steps: int = MOST_STEPS) -> bool | None:
    """Whether some order of these calls about one seat explains all answers; None if the search was cut off."""
    order = sorted(calls, key=lambda call: (call.began_us, call.ended_us))
    answered = sum(1 << number for number, call in enumerate(order) if call.ended_us < NEVER_US)
    stack: list[tuple[int, State]] = [(0, None)]
    tried = {stack[0]}
    while stack:
        done, state = stack.pop()
        if done & answered == answered:
            return True
        for number in _next_calls(order, done):
            after = _apply(order[number], state)
            if after is not _REFUSED:
                step = (done | 1 << number, after)
                if step not in tried:
                    if len(tried) >= most_steps:
                        return None
                    tried.add(step)  # type: ignore[arg-type]
                    stack.append(step)  # type: ignore[arg-type]
    return False


def _next_calls(order: Sequence[Call], done: int) -> list[int]:
    """The calls that may take effect next: those that began before every call still to come was answered. The one
    that began first is tried first."""
    found, first_end_us = [], NEVER_US
    for number, call in enumerate(order):
        if call.began_us > first_end_us:
            break
        if not done >> number & 1:
            found.append(number)
            first_end_us = min(first_end_us, call.ended_us)
    found = [number for number in found if order[number].began_us <= first_end_us]
    return found[::-1]


class _Refused:
    """The seat's state does not allow the call."""


_REFUSED = _Refused()


def _apply(call: Call, state: State) -> "State | _Refused":
    """The state after this call, if the state before allows it."""
    held, sold = (call.booking, False), (call.booking, True)
    match call.act:
        case Act.TAKE:
            return held if state is None else _REFUSED
        case Act.DROP | Act.EXPIRE:
            return None if state == held else _REFUSED
        case Act.SELL:
            return sold if state == held else _REFUSED
        case Act.REFUND:
            return None if state == sold else _REFUSED
        case Act.SEE:
            return state if state == sold else _REFUSED
