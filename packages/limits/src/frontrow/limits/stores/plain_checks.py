"""The most common check without the compiled kernel: one rule, a short string key.

Each algorithm of algorithms.py is here a second time, as a function that keeps its quota's numbers at hand; what
that saves is written there. It covers time that moves forward. When the clock was set back it returns `None`, and the
specification decides. A differential test compares both.
"""

import threading
import time
from array import array
from bisect import bisect_right
from collections.abc import Callable
from typing import Any

from frontrow.core.clock import Clock, SystemClock
from frontrow.limits.keys import MAX_KEY_CHARS
from frontrow.limits.quota import EXACT, Decision, Quota
from frontrow.limits.stores.key_table import KeyTable
from frontrow.limits.stores.protocol import Check, QuotaSlot

Verdict = tuple[bool, int, int, int, int, Any]  # a RuleVerdict's fields, then the state to write (None: none)
Judge = Callable[[Any, int, int], Verdict | None]

_new: Any = tuple.__new__  # builds a named tuple at half the cost of calling its class


def plain_check(
    slot: QuotaSlot, table: KeyTable, lock: threading.Lock, clock: Clock, counts: list[int], fallback: Check
) -> Check:
    """`Limiter.check` for one rule that counts by the whole key. `fallback` decides what is unusual."""
    judge = _no_judge if slot.quota.calendar_month else JUDGES[slot.quota.algorithm](slot.quota)
    name, capacity, shadow = slot.rule.name, slot.quota.capacity, slot.rule.shadow
    monotonic_ns = time.monotonic_ns
    offset_ns = clock.offset_ns if type(clock) is SystemClock else None

    def check(key: Any, cost: int = 1, now_us: int | None = None) -> Decision:
        if (
            type(key) is not str
            or not 0 < len(key) <= MAX_KEY_CHARS
            or type(cost) is not int
            or not 0 < cost <= capacity
            or (now_us is not None and (type(now_us) is not int or not 0 <= now_us < EXACT))
        ):
            return fallback(key, cost, now_us)
        with lock:
            if now_us is not None:
                now = now_us
            elif offset_ns is not None:
                now = (monotonic_ns() + offset_ns) // 1000
            else:
                now = clock()
            if not table.idle_from_us <= now < table.idle_until_us:
                table.advance_generation(now)
            young = table.young.states
            state = young.get(key)
            verdict = judge(table.old.states.get(key) if state is None else state, now, cost)
            if verdict is not None:
                allowed, remaining, reset_us, retry_us, delay_us, after = verdict
                if not allowed:
                    counts[2 if shadow else 1] += 1
                elif state is None:
                    table.write(key, after, now)
                else:
                    young[key] = after
                counts[0] += allowed or shadow
        if verdict is None:
            return fallback(key, cost, now)
        if shadow:
            allowed, retry_us, delay_us = True, 0, 0
        return _new(Decision, (allowed, name, capacity, remaining, reset_us, retry_us, delay_us, "store"))  # type: ignore[no-any-return]

    return check


def _no_judge(state: Any, now_us: int, cost: int) -> Verdict | None:
    """Months of the calendar are left to the specification."""
    return None


def fixed_window(quota: Quota) -> Judge:
    limit, period = quota.limit, quota.period_us

    def judge(state: Any, now_us: int, cost: int) -> Verdict | None:
        start = now_us - now_us % period
        count = 0
        if state is not None:
            then, count = state
            if then != start:
                if then > start:
                    return None
                count = 0
        reset = start + period - now_us
        used = count + cost
        if used <= limit:
            return True, limit - used, reset, 0, 0, (start, used)
        return False, limit - count, reset, reset, 0, None

    return judge


def sliding_counter(quota: Quota) -> Judge:
    limit, period, grain = quota.limit, quota.period_us, quota.grain_us
    width = period // grain

    def judge(state: Any, now_us: int, cost: int) -> Verdict | None:
        into = now_us % period
        start = now_us - into
        prev = cur = 0
        if state is not None:
            then, prev, cur = state
            if then != start:
                if then > start:
                    return None
                prev, cur = (cur if start - then == period else 0), 0
        left = limit - cur
        if prev:
            left = (limit * width - prev * (width - into // grain)) // width - cur
        if left < 0:
            left = 0
        if cost <= left:
            return True, left - cost, 2 * period - into, 0, 0, (start, prev, cur + cost)
        room = limit - cur - cost
        opens = width - room * width // prev if room >= 0 else 2 * width - (limit - cost) * width // cur
        reset = (2 if cur else 1) * period - into
        return False, left, reset, opens * grain - into, 0, None

    return judge


def sliding_log(quota: Quota) -> Judge:
    limit, period = quota.limit, quota.period_us

    def judge(times: Any, now_us: int, cost: int) -> Verdict | None:
        if not times:
            return True, limit - cost, period, 0, 0, array("q", [now_us]) * cost
        back = times[-1] - now_us
        if back > 0:
            if back > period:
                return None
            now_us += back
        gone = bisect_right(times, now_us - period)
        left = limit - len(times) + gone
        if cost <= left:
            if 2 * gone > len(times):  # now and then, so that a unit is moved less than once
                del times[:gone]
            if cost == 1:
                times.append(now_us)
            else:
                times.extend([now_us] * cost)
            return True, left - cost, period, 0, 0, times
        last, opens = times[-1], times[gone + cost - left - 1]
        return False, left, last + period - now_us, opens + period - now_us, 0, None

    return judge


def bucket(quota: Quota) -> Judge:
    leak, unit = quota.drip
    full, life = quota.capacity * unit, 2 * quota.life_us  # twice: it may owe two buckets
    is_queue = quota.algorithm == "leaky_queue"

    def judge(state: Any, now_us: int, cost: int) -> Verdict | None:
        debt = 0
        if state is not None:
            then, debt = state
            if then < now_us:
                debt = 0 if now_us - then >= life else debt - (now_us - then) * leak
                if debt < 0:
                    debt = 0
            elif then > now_us:
                return None
        owed = debt + cost * unit
        if owed <= full:
            delay = -(-debt // leak) if is_queue else 0
            return True, (full - owed) // unit, -(-owed // leak), 0, delay, (now_us, owed)
        return False, max(0, (full - debt) // unit), -(-debt // leak), -((full - owed) // leak), 0, None

    return judge


JUDGES: dict[str, Callable[[Quota], Judge]] = {
    "fixed_window": fixed_window,
    "sliding_counter": sliding_counter,
    "sliding_log": sliding_log,
    "token_bucket": bucket,
    "leaky_bucket": bucket,
    "leaky_queue": bucket,
}
