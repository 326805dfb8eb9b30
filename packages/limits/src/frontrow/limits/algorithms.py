"""The algorithms as pure functions: (quota, state, now_us, cost) -> (RuleVerdict, new state or None).

They are the specification, and SQLite is decided by them. Five other places compute the same, and differential tests
compare them all (tests/limits/test_differential.py). `python -m bench.limits_shortcuts` measures what each is needed
for, in µs per check with a sliding counter:

| where | needed for | costs | without it |
|---|---|---|---|
| algorithms.py | every operation, every case: the meaning of the others | 1.30 | |
| stores/_kernel.pyx | checks in memory, if there was a C compiler | 0.09 | 0.73 (plain checks) |
| stores/plain_checks.py | the same without a compiler | 0.73 | 1.30; a log is copied at each check |
| stores/sql/postgresql.sql | decisions in PostgreSQL, atomic for all servers | bench.limits_sql | three round trips |
| stores/lua | decisions in Redis, atomic for all servers | 4.13 of the server | a lock and two round trips |
| stores/lua/fast | the check that nearly every check is | 2.47 of the server | 4.13 of the server |

All arithmetic uses whole numbers below 2^53, which Lua's doubles represent exactly. A state is a short tuple (for the
log, an array of times). `None` is a key that was never seen. A refusal returns no new state: it writes nothing and
charges nothing.

Two quotas may count in one state while servers are replaced one by one (`carry_over`). Together they never admit what
the looser of them alone would not have admitted.

Clocks: when time goes back by less than the life of a state, it stands still. When it goes back further, the clock was
set, and the state moves along with it. Neither case grants units, burns units or locks anybody out.
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from math import ceil, floor
from typing import NamedTuple, Protocol

from frontrow.limits.quota import DAY_US, EXACT, Quota

State = Sequence[int]

PARTS = 1 << 20  # of one unit, in which a bucket's total is counted
MOST_TOTAL = PARTS << 31
DAYS_BEFORE_1970 = 719_468  # since 1 March of the year 0


class RuleVerdict(NamedTuple):
    """What one rule says: units left afterwards, and in µs the time until a full reset, until a retry, and to wait."""

    allowed: bool
    remaining: int
    reset_after_us: int
    retry_after_us: int = 0
    delay_us: int = 0


VerdictAndState = tuple[RuleVerdict, State | None]
Algorithm = Callable[[Quota, State | None, int, int], VerdictAndState]


def fixed_window(quota: Quota, state: State | None, now_us: int, cost: int) -> VerdictAndState:
    """Counts per aligned window, or per month of the calendar. State: (window start, count)."""
    period = quota.period_us
    start = month_start_us(now_us) if quota.calendar_month else now_us - now_us % period
    then, count = state or (start, 0)
    moved = then - start > period  # the clock was set back, so the count moves along
    if then > start and not moved:
        start = now_us = then
    elif then < start:
        count = 0
    end = month_start_us(start + period) if quota.calendar_month else start + period
    reset = end - now_us
    used = count + cost
    if used <= quota.limit or not cost:
        return RuleVerdict(True, max(0, quota.limit - used), reset if used else 0), (start, used)
    return RuleVerdict(False, max(0, quota.limit - count), reset, reset), (start, count) if moved else None


def month_start_us(now_us: int) -> int:
    """The start of the calendar month of `now_us`, in UTC. Years are counted from March: a leap day is the last day."""
    day = now_us // DAY_US
    day_of_400_years = (day + DAYS_BEFORE_1970) % 146_097
    year = day_of_400_years - day_of_400_years // 1460 + day_of_400_years // 36_524 - day_of_400_years // 146_096
    year //= 365
    day_of_year = day_of_400_years - (365 * year + year // 4 - year // 100)
    month = (5 * day_of_year + 2) // 153
    return (day - day_of_year + (153 * month + 2) // 5) * DAY_US


def sliding_counter(quota: Quota, state: State | None, now_us: int, cost: int) -> VerdictAndState:
    """Counts per aligned window and adds the share of the previous one still inside. State: (start, prev, cur).

    A count above the limit comes from servers whose limit is higher. It means that the limit is used up.
    """
    grain = quota.grain_us
    period = quota.period_us
    start = now_us - now_us % period
    then, prev, cur = state or (start, 0, 0)
    moved = then - start > 2 * period
    if then > start and not moved:
        start = now_us = then
    elif then < start:
        prev, cur = (cur if start - then == period else 0), 0
    width, into, limit = period // grain, (now_us - start) // grain, quota.limit
    before, used = prev if prev < limit else limit, cur if cur < limit else limit
    left = max(0, (limit * width - before * (width - into)) // width - used)
    if cost <= left:
        cur += cost
        return RuleVerdict(True, left - cost, _counter_reset(quota, prev, cur, now_us - start)), (start, prev, cur)
    room = limit - used - cost
    if room >= 0:  # enough of the previous window leaves before this one ends
        opens = width - room * width // before
    else:  # only after this window has become the previous one
        opens = 2 * width - (limit - cost) * width // used
    verdict = RuleVerdict(False, left, _counter_reset(quota, prev, cur, now_us - start), start + opens * grain - now_us)
    return verdict, (start, prev, cur) if moved else None


def _counter_reset(quota: Quota, prev: int, cur: int, into_us: int) -> int:
    windows = 2 if cur else 1 if prev else 0
    return windows * quota.period_us - into_us if windows else 0


def sliding_log(quota: Quota, state: State | None, now_us: int, cost: int) -> VerdictAndState:
    """Remembers the time of every unit inside the window. State: the times as an array, oldest first."""
    period = quota.period_us
    times = array("q", state or ())
    back = times[-1] - now_us if times else 0
    moved = back > period
    if moved:
        times = array("q", (time - back for time in times))
    elif back > 0:
        now_us += back
    times = times[bisect_right(times, now_us - period) :]
    left = quota.limit - len(times)
    if cost <= left or not cost:
        times.extend([now_us] * cost)
        return RuleVerdict(True, max(0, left - cost), times[-1] + period - now_us if times else 0), times
    retry = times[cost - left - 1] + period - now_us
    return RuleVerdict(False, max(0, left), times[-1] + period - now_us, retry), times if moved else None


def token_bucket(quota: Quota, state: State | None, now_us: int, cost: int) -> VerdictAndState:
    """A debt that drains at the quota's rate and must fit. State: (time, debt) or (time, debt, total, since).

    The total is there while servers with a larger bucket count in the same state. It is what they owed at `since`, more
    than this bucket holds, and what was charged after that, in parts of a unit. It is kept for them.
    """
    if state is not None and len(state) > 2:
        return _bucket_with_total(quota, state, now_us, cost)
    leak, unit = quota.drip
    full = quota.capacity * unit
    then, debt = state or (now_us, 0)
    moved = then - now_us > quota.life_us
    if then > now_us and not moved:
        now_us = then
    elif then < now_us:
        debt = max(0, debt - (now_us - then) * leak)
    owed = debt + cost * unit
    if owed <= full or not cost:
        return RuleVerdict(True, max(0, (full - owed) // unit), -(-owed // leak), 0), (now_us, owed)
    verdict = RuleVerdict(False, max(0, (full - debt) // unit), -(-debt // leak), -((full - owed) // leak))
    return verdict, (now_us, debt) if moved else None


def _bucket_with_total(quota: Quota, state: State, now_us: int, cost: int) -> VerdictAndState:
    then, debt, total, since = state
    verdict, after = token_bucket(quota, (then, debt), now_us, cost)
    if after is None:
        return verdict, None
    at_us, owed = after
    total += cost * PARTS if verdict.allowed else 0
    return verdict, _with_total(quota, at_us, owed, total, since + min(0, at_us - then))


def _with_total(quota: Quota, at_us: int, owed: int, total: int, since: int) -> State:
    """A state with its total, unless that says no more than the debt."""
    left = total - drained_parts(quota, at_us - since)
    if left <= _parts(owed, quota.drip[1], floor):
        return (at_us, owed)
    return (at_us, owed, total, since) if total < MOST_TOTAL else (at_us, owed, left, at_us)


def drained_parts(quota: Quota, elapsed_us: int) -> int:
    """What drains of a bucket's total in some time."""
    leak, unit = quota.drip
    return _parts(min(elapsed_us, 2 * EXACT // leak) * leak, unit, floor)


def _parts(weight: int, unit: int, rounded: Callable[[float], int]) -> int:
    """A weight in parts of a unit."""
    whole, part = divmod(weight, unit)
    return min(whole, 1 << 32) * PARTS + rounded(part / unit * PARTS)


def leaky_queue(quota: Quota, state: State | None, now_us: int, cost: int) -> VerdictAndState:
    """The bucket as a shaper: allowed work leaves at a constant rate, so the verdict says how long to wait first."""
    verdict, after = token_bucket(quota, state, now_us, cost)
    if verdict.allowed and after is not None:
        leak, unit = quota.drip
        verdict = verdict._replace(delay_us=-(-(after[1] - cost * unit) // leak))
    return verdict, after


SPECIFICATION: dict[str, Algorithm] = {
    "fixed_window": fixed_window,
    "sliding_counter": sliding_counter,
    "sliding_log": sliding_log,
    "token_bucket": token_bucket,
    "leaky_bucket": token_bucket,  # the meter: the same arithmetic seen from the other side
    "leaky_queue": leaky_queue,
}


def peek_verdict(quota: Quota, state: State | None, now_us: int, cost: int) -> RuleVerdict:
    """The verdict for `cost` without charging it. The figures are those before the charge."""
    verdict, after = SPECIFICATION[quota.algorithm](quota, state, now_us, cost)
    if not verdict.allowed or after is None:
        return verdict
    as_is, _ = SPECIFICATION[quota.algorithm](quota, state, now_us, 0)
    return as_is._replace(delay_us=verdict.delay_us)


def return_units(quota: Quota, state: State | None, now_us: int, cost: int) -> State | None:
    """The state after `cost` units were returned, never below zero used; `None` if there is nothing to return."""
    if state is None:
        return None
    _, current = SPECIFICATION[quota.algorithm](quota, state, now_us, 0)
    assert current is not None, "a cost of nothing is always allowed"
    match quota.algorithm:
        case "fixed_window":
            return (current[0], max(0, current[1] - cost))
        case "sliding_counter":
            start, prev, cur = current
            return (start, max(0, prev - max(0, cost - cur)), max(0, cur - cost))
        case "sliding_log":
            return current[: max(0, len(current) - cost)]
        case _:
            then, debt, *more = current
            return (then, max(0, debt - cost * quota.drip[1]), *_add_to_total(more, -cost))


def charge_units(quota: Quota, state: State | None, now_us: int, cost: int) -> State:
    """The state after `cost` units were charged whether or not they fit.

    A bucket may then owe up to `most_owed`, more than it holds. A window is at most used up, because it has no debt.
    """
    as_is, current = SPECIFICATION[quota.algorithm](quota, state, now_us, 0)
    if not quota.is_bucket:
        _, current = SPECIFICATION[quota.algorithm](quota, state, now_us, min(cost, as_is.remaining))
    assert current is not None, "what is left is always allowed"
    if not quota.is_bucket:
        return current
    then, debt, *more = current
    return (then, max(debt, min(debt + cost * quota.drip[1], quota.most_owed)), *_add_to_total(more, cost))


def _add_to_total(total_and_since: Sequence[int], units: int) -> Sequence[int]:
    if not total_and_since:
        return ()
    total, since = total_and_since
    return (max(0, total + units * PARTS), since)


class BucketQuota(Protocol):
    """What the state of a bucket depends on: how much it holds, and its drip (leak, unit)."""

    @property
    def capacity(self) -> int: ...

    @property
    def drip(self) -> tuple[int, int]: ...


def carry_over(quota: Quota, written_under: BucketQuota, state: State) -> State:
    """What a state means under another quota of the same kind of algorithm and the same period.

    A window's counts and a log's times mean the same under any limit. The units a bucket owes stay owed. What a smaller
    bucket does not hold stays in the total, so that a larger one owes it again: at its own rate since then, and at
    least what the smaller one owes.
    """
    (_, old_unit), (_, unit) = written_under.drip, quota.drip
    if not quota.is_bucket or (old_unit, written_under.capacity) == (unit, quota.capacity):
        return state
    then, debt, *more = state
    full, (whole, part) = quota.capacity * unit, divmod(debt, old_unit)
    owed = whole * unit + min(unit, ceil(part / old_unit * unit))
    if owed <= full and not more:
        return (then, owed)
    total, since = more or (0, then)
    if owed > full:
        owed, total, since = full, max(total, _parts(debt, old_unit, ceil)), then
    left = total - drained_parts(quota, then - since)
    if left > 0:
        whole, part = divmod(left, PARTS)
        owed = max(owed, min(full, whole * unit + ceil(part / PARTS * unit)))
    return _with_total(quota, then, owed, total, since)
