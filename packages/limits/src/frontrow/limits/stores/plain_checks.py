"""Common checks without the compiled kernel: known rules, and a key that is a text, a number, a UUID or a dictionary.

Each algorithm of algorithms.py is here a second time, as a function that keeps its quota's numbers at hand; what
that saves is written there. It covers time that moves forward. When the clock was set back it returns `None`, and the
specification decides. A differential test compares both.
"""

import threading
import time
from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from frontrow.core.clock import Clock, SystemClock
from frontrow.limits.keys import GLOBAL_KEY, MAX_KEY_CHARS, StoreKey, rule_key
from frontrow.limits.quota import EXACT, Decision, Quota, Rule
from frontrow.limits.stores.key_table import KeyTable
from frontrow.limits.stores.protocol import Check, QuotaSlot

Verdict = tuple[bool, int, int, int, int, Any]  # a RuleVerdict's fields, then the state to write (None: none)
Judge = Callable[[Any, int, int], Verdict | None]
MakeKey = Callable[[Any], StoreKey]

_new: Any = tuple.__new__  # builds a named tuple at half the cost of calling its class
_MOST = 1 << 63  # larger numbers are left to keys.py
MAX_PLANS = 256


def plain_check(
    slot: QuotaSlot, table: KeyTable, lock: threading.Lock, clock: Clock, counts: list[int], fallback: Check
) -> Check:
    """`Limiter.check` for one rule. `fallback` decides what is unusual."""
    judge = _no_judge if slot.quota.calendar_month else JUDGES[slot.quota.algorithm](slot.quota)
    name, capacity, shadow = slot.rule.name, slot.quota.capacity, slot.rule.shadow
    whole, make_key = slot.rule.per is None, key_maker(slot.rule)
    monotonic_ns = time.monotonic_ns
    offset_ns = clock.offset_ns if type(clock) is SystemClock else None

    def check(key: Any, cost: int = 1, now_us: int | None = None) -> Decision:
        if (
            type(cost) is not int
            or not 0 < cost <= capacity
            or (now_us is not None and (type(now_us) is not int or not 0 <= now_us < EXACT))
        ):
            return fallback(key, cost, now_us)
        stored = key if whole and type(key) is str and 0 < len(key) <= MAX_KEY_CHARS else make_key(key)
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
            state = young.get(stored)
            verdict = judge(table.old.states.get(stored) if state is None else state, now, cost)
            if verdict is not None:
                allowed, remaining, reset_us, retry_us, delay_us, after = verdict
                if not allowed:
                    counts[2 if shadow else 1] += 1
                elif state is None:
                    table.write(stored, after, now)
                else:
                    young[stored] = after
                counts[0] += allowed or shadow
        if verdict is None:
            return fallback(key, cost, now)
        if shadow:
            allowed, retry_us, delay_us = True, 0, 0
        return _new(Decision, (allowed, name, capacity, remaining, reset_us, retry_us, delay_us, "store"))  # type: ignore[no-any-return]

    return check


class PlainRule:
    """What `plain_checks` knows of one rule."""

    __slots__ = ("capacity", "commit", "counts", "has_delays", "judge", "make_key", "name", "per", "shadow", "table")

    def __init__(self, slot: QuotaSlot, table: KeyTable, counts: list[int]) -> None:
        quota, is_log = slot.quota, slot.quota.algorithm == "sliding_log"
        judges = {**JUDGES, "sliding_log": pending_log}
        self.judge = _no_judge if quota.calendar_month else judges[quota.algorithm](quota)
        self.commit = commit_log if is_log else None
        self.has_delays = quota.algorithm == "leaky_queue"
        self.make_key, self.per = key_maker(slot.rule), slot.rule.per
        self.name, self.capacity, self.shadow = slot.rule.name, quota.capacity, slot.rule.shadow
        self.table, self.counts = table, counts


def plain_checks(rules: Sequence[PlainRule], lock: threading.Lock, clock: Clock, fallback: Check) -> Check:
    """`Limiter.check` for several rules: all are charged, or none. `fallback` decides what is unusual."""
    capacity = min(rule.capacity for rule in rules)
    makers = {rule.per: rule.make_key for rule in reversed(rules)}  # rules that count by the same parts share a key
    steps = [(rule, rule.judge, rule.table, list(makers).index(rule.per)) for rule in rules]
    make_keys, has_shown = list(makers.values()), any(not rule.shadow for rule in rules)
    has_delays = any(rule.has_delays and not rule.shadow for rule in rules)
    monotonic_ns = time.monotonic_ns
    offset_ns = clock.offset_ns if type(clock) is SystemClock else None

    def check(key: Any, cost: int = 1, now_us: int | None = None) -> Decision:
        if (
            type(cost) is not int
            or not 0 < cost <= capacity
            or (now_us is not None and (type(now_us) is not int or not 0 <= now_us < EXACT))
        ):
            return fallback(key, cost, now_us)
        keys = [make(key) for make in make_keys]
        with lock:
            if now_us is not None:
                now = now_us
            elif offset_ns is not None:
                now = (monotonic_ns() + offset_ns) // 1000
            else:
                now = clock()
            found: list[_Found] = []
            refusal = tightest = None
            for rule, judge, table, at in steps:
                if not table.idle_from_us <= now < table.idle_until_us:
                    table.advance_generation(now)
                stored, young = keys[at], table.young.states
                state = young.get(stored)
                verdict = judge(table.old.states.get(stored) if state is None else state, now, cost)
                if verdict is None:
                    break
                found.append((verdict, rule, stored, None if state is None else young))
                if rule.shadow:
                    continue
                if not verdict[0]:
                    if refusal is None or verdict[3] > refusal[0][3]:
                        refusal = verdict, rule
                elif tightest is None or verdict[1] < tightest[0][1]:
                    tightest = verdict, rule
            else:
                chosen = refusal or tightest or (found[0][0], rules[0])
                _charge_all(found, now, refused=refusal is not None)
                chosen[1].counts[refusal is not None] += 1
        if len(found) < len(steps):
            return fallback(key, cost, now)
        (_, remaining, reset_us, retry_us, delay_us, _), of = chosen
        if refusal is not None:
            delay_us = 0
        elif not has_shown:
            retry_us = delay_us = 0
        elif has_delays:
            delay_us = max([verdict[4] for verdict, rule, _, _ in found if not rule.shadow])
        decided = (refusal is None, of.name, of.capacity, remaining, reset_us, retry_us, delay_us, "store")
        return _new(Decision, decided)  # type: ignore[no-any-return]

    return check


_Found = tuple[
    Verdict, PlainRule, StoreKey, "dict[StoreKey, Any] | None"
]  # the last: where its state stands, if it does


def _charge_all(found: Sequence[_Found], now_us: int, *, refused: bool) -> None:
    """Write what was decided, unless a rule refused, and count what shadow rules would have refused."""
    for verdict, rule, stored, young in found:
        if not verdict[0]:
            rule.counts[2] += rule.shadow
        elif not refused:
            after = verdict[5] if rule.commit is None else rule.commit(*verdict[5])
            if young is None:
                rule.table.write(stored, after, now_us)
            else:
                young[stored] = after


# -- keys --------------------------------------------------------------------------------------------------------------


def key_maker(rule: Rule) -> MakeKey:
    """The function that makes what keys.rule_key makes for `rule`, at less cost for plain keys."""
    parts = rule.per
    if parts == ():
        return lambda key: GLOBAL_KEY

    def part_key(key: Any) -> StoreKey:
        return (_packed(key, plan) if type(key) is dict else None) or rule_key(rule, key)

    def whole_key(key: Any) -> StoreKey:
        kind = type(key)
        if kind is str:
            if 0 < len(key) <= MAX_KEY_CHARS:
                return key  # type: ignore[no-any-return]
        elif kind is dict:
            names = tuple(key)
            return _packed(key, _plans.get(names) or _plan(names)) or rule_key(rule, key)
        elif kind is UUID or (kind is int and -_MOST < key < _MOST):
            return str(key)
        return rule_key(rule, key)

    if parts is None:
        return whole_key
    plan = [(name, f"{len(name)}:{name}") for name in parts]
    if len(parts) > 1:
        return part_key
    [(only, head)] = plan

    def one_part_key(key: Any) -> StoreKey:
        if type(key) is dict:
            value = key.get(only)
            if type(value) is str and 0 < len(value) <= MAX_KEY_CHARS and value.isascii():
                packed = f"{head}{len(value)}:{value}"
                if len(packed) <= MAX_KEY_CHARS:
                    return packed.encode()
        return part_key(key)

    return one_part_key


Plan = Sequence[tuple[str, str]]  # the names of a key's parts in the order of packing, each with its text
_plans: dict[tuple[Any, ...], Plan] = {}


def _plan(names: tuple[Any, ...]) -> Plan:
    """How to pack the parts of a mapping that is counted as a whole. A program has few such sets of names."""
    if not all(type(name) is str for name in names):
        return ()
    plan = [(name, f"{len(name)}:{name}") for name in sorted(names)]
    if len(_plans) < MAX_PLANS:
        _plans[names] = plan
    return plan


def _packed(key: dict[Any, Any], plan: Plan) -> bytes | None:
    """The parts as keys.pack_parts packs them. None: something in them is unusual."""
    text = ""
    for name, head in plan:
        value = key.get(name)
        if type(value) is not str:
            if type(value) is not UUID and (type(value) is not int or not -_MOST < value < _MOST):
                return None
            value = str(value)
        if not value:
            return None
        text += f"{head}{len(value)}:{value}"
    return text.encode() if 0 < len(text) <= MAX_KEY_CHARS and text.isascii() else None


# -- algorithms --------------------------------------------------------------------------------------------------------


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
    look = pending_log(quota)

    def judge(times: Any, now_us: int, cost: int) -> Verdict | None:
        verdict = look(times, now_us, cost)
        return (*verdict[:5], commit_log(*verdict[5])) if verdict is not None and verdict[0] else verdict

    return judge


def pending_log(quota: Quota) -> Judge:
    """`sliding_log` that leaves the log as it is. The state of its verdict is what `commit_log` needs to write it."""
    limit, period = quota.limit, quota.period_us

    def judge(times: Any, now_us: int, cost: int) -> Verdict | None:
        if not times:
            return True, limit - cost, period, 0, 0, (array("q"), 0, now_us, cost)
        back = times[-1] - now_us
        if back > 0:
            if back > period:
                return None
            now_us += back
        gone = bisect_right(times, now_us - period)
        left = limit - len(times) + gone
        if cost <= left:
            return True, left - cost, period, 0, 0, (times, gone, now_us, cost)
        last, opens = times[-1], times[gone + cost - left - 1]
        return False, left, last + period - now_us, opens + period - now_us, 0, None

    return judge


def commit_log(times: "array[int]", gone: int, now_us: int, cost: int) -> "array[int]":
    """Add `cost` units to a log, and drop what left its window if that is most of it."""
    if 2 * gone > len(times):  # now and then, so that a unit is moved less than once
        del times[:gone]
    if cost == 1:
        times.append(now_us)
    else:
        times.extend([now_us] * cost)
    return times


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
