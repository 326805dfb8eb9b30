"""`LeasedLimiter`: one quota over many servers, decided at once. `check` never waits for the store.

Each process has a lease per key: a few units that it may admit before the store knows of them. Half of it is free. A
key that asks for less than that is never counted in the store, and that is nearly every key. A key that exceeds its
free units becomes busy. From then on every unit, including the free ones, is charged to the store in the background,
while the request is answered already. What does not fit into the quota stays owed, and is charged as soon as it fits.

When the store has nothing left, the key is used up: the process refuses it until the time that the store names, and
then asks before it admits anything. So all processes together admit over any time what the quota allows in that time,
and at most `processes × lease` besides: once, not once per period. Only what stays below the free units is not counted;
they come back within `FREE_AGAIN_PERIODS` periods. When the store is down, each process counts by itself.

Without a running event loop there is no background: then a busy key is charged at once, and its caller waits for that.
When a loop ends while it charges, the next caller charges what was left.
"""

import asyncio
import logging
from collections.abc import Callable, Generator
from itertools import islice
from typing import Any

from frontrow.core.background_tasks import start_task
from frontrow.core.clock import US_PER_S, Clock, SystemClock, steady
from frontrow.core.forks import begin_in_child
from frontrow.limits.lease_size import lease_of
from frontrow.limits.limiter import Limiter
from frontrow.limits.limiters_in_use import note_limiter
from frontrow.limits.options import LimiterOptions, check_options
from frontrow.limits.quota import MAX_PERIOD_US, Decision, InvalidQuota, Quota, Rule
from frontrow.limits.rules import RuleLike, to_rules
from frontrow.limits.stores.deadline import DEFAULT_DEADLINE_S

_new: Any = tuple.__new__  # builds a named tuple at half the cost of calling its class
log = logging.getLogger("frontrow.limits")
MAX_BUSY = 10_000  # keys; the one that has been busy for the longest time is forgotten first
FREE_AGAIN_PERIODS = 10  # free units come back slowly: a steady stream must not stay uncounted on any number of servers
AGAIN_US = 50_000  # what a caller is told that came while a whole lease was on its way to the store


_Question = tuple[str, int]  # to the shared store: the key and the cost of a check; a cost of 0 is a peek
_Questions = Generator[_Question, Decision, Any]


class _BusyKey:
    """What this process knows of a key that asks often."""

    __slots__ = ("alarm", "charging", "is_used_up", "left", "owed", "refused_until_us", "reset_at_us", "seen_us")

    def __init__(self, owed: int, left: int, now_us: int, reset_at_us: int) -> None:
        self.owed = owed  # admitted, and not yet charged: the store does not know of it, or had no room for it
        self.left = left  # what the store had left when it replied last
        self.charging = False
        self.is_used_up = False  # the store had nothing left when it replied last: ask it before admitting anything
        self.refused_until_us = 0
        self.reset_at_us = reset_at_us
        self.seen_us = now_us
        self.alarm: asyncio.TimerHandle | None = None  # asks the store when `refused_until_us` has come

    def wait_us(self, now_us: int) -> int:
        """How long the key is refused, as far as is known now."""
        return max(self.refused_until_us - now_us, AGAIN_US if self.is_used_up else 0)

    def forget_alarm(self) -> None:
        if self.alarm is not None:
            self.alarm.cancel()
            self.alarm = None


_OPTIONS = ("rule", "lease", "shared_key", "stats", *LimiterOptions.__annotations__)


class LeasedLimiter:
    """One rule for all processes at a shared store. Create it once per process. Its callers share an event loop."""

    def __init__(
        self,
        rule: RuleLike,
        *,
        store: Any,
        lease: int | None = None,
        clock: Clock | None = None,
        deadline_s: float = DEFAULT_DEADLINE_S,
        shared_key: Callable[[str], str] = str,
        **options: Any,
    ) -> None:
        """`shared_key` makes the key in the store, for those that must not stand there, like addresses."""
        check_options("a leased limiter", options, _OPTIONS)
        rules = to_rules(rule)
        if len(rules) > 1:
            raise InvalidQuota(f"a leased limiter has one rule, not {len(rules)}; make one for each", param="rule")
        rule = rules[0]
        quota = rule.quota
        self.lease = lease_of(quota) if lease is None else quota.check_cost(lease)
        self._rule = rule
        self._shared_key = shared_key
        self._capacity = quota.capacity
        self._life_us = quota.life_us
        self._clock = steady(clock or SystemClock())
        self._free_units = max(1, self.lease // 2)
        self._period_us = quota.period_us
        free_again_us = min(MAX_PERIOD_US, quota.period_us * FREE_AGAIN_PERIODS)
        free = Quota(self._free_units, free_again_us, "token_bucket")
        self._free = Limiter(Rule(rule.name, free), clock=clock)
        self._check_free = self._free.check
        self.shared = Limiter(rule, store=store, clock=clock, deadline_s=deadline_s, **options)
        begin_in_child(self._begin)
        self._begin()
        note_limiter(self)

    def switch(self, clock: Clock | None) -> Callable[[], None]:
        """For tests: count in memory, from nothing, on this clock; None: allow everything. The result switches back."""
        before = dict(vars(self))
        backs = [self._free.switch(clock), self.shared.switch(clock)]
        self._check_free = self._free.check
        self._clock = self._clock if clock is None else steady(clock)
        self._begin()

        def switch_back() -> None:
            for back in backs:
                back()
            vars(self).update(before)

        return switch_back

    def _begin(self) -> None:
        """Begin without busy keys. What they owe in a forked child's copy, the parent charges."""
        self._busy: dict[str, _BusyKey] = {}
        self._due: dict[str, _BusyKey] = {}
        self._charging: asyncio.Task[None] | None = None

    def check(self, key: str) -> Decision:
        """Count one request of `key`. The decision's figures are those of the whole quota, as far as they are known."""
        busy = self._busy.get(key) if self._busy else None
        if busy is None:
            allowed, name, _, left, reset_us, _, _, source = self._check_free(key)
            if allowed:
                left += self._capacity - self._free_units
                if reset_us > self._period_us:
                    reset_us = self._period_us
                return _new(Decision, (True, name, self._capacity, left, reset_us, 0, 0, source))  # type: ignore[no-any-return]
            busy = self._note_busy(key, reset_us)
        return self._check_busy(key, busy)

    def _note_busy(self, key: str, reset_us: int) -> _BusyKey:
        """The key has used up what is free. It owes that to the store."""
        if len(self._busy) >= MAX_BUSY:
            self._busy.pop(next(iter(self._busy))).forget_alarm()
        now_us = self._clock()
        busy = self._busy[key] = _BusyKey(self._free_units, self._capacity, now_us, now_us + reset_us)
        return busy

    def _check_busy(self, key: str, busy: _BusyKey) -> Decision:
        now_us = busy.seen_us = self._clock()
        reset_us = max(0, busy.reset_at_us - now_us)
        wait_us = busy.refused_until_us - now_us
        if wait_us <= 0 and busy.charging and self._is_abandoned():
            self._abandon()
        if wait_us <= 0 and busy.is_used_up:
            wait_us = busy.wait_us(now_us) if self._charge_soon(key, busy) else AGAIN_US
        elif wait_us <= 0 and busy.charging and busy.owed >= min(self.lease, max(1, busy.left)):
            wait_us = AGAIN_US
        if wait_us > 0:
            return Decision(False, self._rule.name, self._capacity, 0, max(reset_us, wait_us), wait_us)
        busy.owed += 1
        self._charge_soon(key, busy)
        return Decision(True, self._rule.name, self._capacity, max(0, busy.left - busy.owed), reset_us, 0)

    # -- charging the store ------------------------------------------------------------------------------------------

    def _charge_soon(self, key: str, busy: _BusyKey) -> bool:
        """Charge the key in the background, or at once if there is no event loop. Returns whether it is charged."""
        if busy.charging:
            self._due[key] = busy
            return False  # whoever charges it now looks again afterwards
        if self._charging is None or self._is_abandoned():
            self._abandon()
            if not _has_loop():
                self._charge_at_once(key, busy)
                return True
            self._charging = start_task(self._charge_all(), "limit charges")
            self._charging.add_done_callback(self._note_ended)
        self._due[key] = busy
        busy.charging = True
        return False

    def _is_abandoned(self) -> bool:
        """Whether nobody charges any more: the loop that did has ended, or stands still."""
        charging = self._charging
        return charging is None or charging.done() or not charging.get_loop().is_running()

    def _abandon(self) -> None:
        """Begin to charge anew. Who has begun before, and may still go on one day, changes nothing any more."""
        if self._charging is not None:
            self._charging = None
            for busy in self._busy.values():
                busy.charging = False

    def _note_ended(self, task: "asyncio.Task[None]") -> None:
        if self._charging is task:  # cancelled before it began: the next request of a key charges it
            self._abandon()

    async def _charge_all(self) -> None:
        """Charge what is owed until nothing is. Keys of the same moment share a round trip."""
        me = asyncio.current_task()
        try:
            while self._due and self._charging is me:
                due, self._due = self._due, {}
                await asyncio.gather(*(self._charge(me, key, busy) for key, busy in due.items()))
                if self._charging is not me:
                    return
                for key, busy in due.items():
                    busy.charging = key in self._due
                self._forget_idle(2 * len(due))
        finally:
            if self._charging is me:  # also when cancelled in the middle: the next request of the key charges it
                self._abandon()

    async def _charge(self, charging: "asyncio.Task[Any] | None", key: str, busy: _BusyKey) -> None:
        """Charge one key, as long as `charging` is the task that charges."""
        questions = self._charge_key(key, busy)
        answer: Decision | Exception | None = None
        while (question := _next(questions, answer)) is not None:
            shared_key, cost = question
            try:
                answer = await (self.shared.acheck(shared_key, cost) if cost else self.shared.apeek(shared_key))
            except Exception as error:
                answer = error
            if self._charging is not charging:
                return

    def _charge_at_once(self, key: str, busy: _BusyKey) -> None:
        busy.charging = True
        try:
            questions = self._charge_key(key, busy)
            answer: Decision | Exception | None = None
            while (question := _next(questions, answer)) is not None:
                shared_key, cost = question
                try:
                    answer = self.shared.check(shared_key, cost) if cost else self.shared.peek(shared_key)
                except Exception as error:
                    answer = error
        finally:
            busy.charging = False

    def _charge_key(self, key: str, busy: _BusyKey) -> _Questions:
        """Charge what the key owes, as far as it fits, and learn what is left."""
        busy.forget_alarm()
        units, sent_us = busy.owed, self._clock()
        try:
            shared_key = self._shared_key(key)
            charged, decision = yield from _charge_what_fits(shared_key, units)
            if charged < units or not decision.remaining:
                decision = yield shared_key, 0  # when does the next unit fit?
        except Exception:
            log.exception("%d units of rule %s were not charged", units, self._rule.name)
            busy.owed -= units
            busy.is_used_up = False
            return
        busy.owed -= charged
        busy.left = 0 if charged < units else decision.remaining
        busy.is_used_up = charged < units or not decision.allowed
        busy.reset_at_us = sent_us + decision.reset_after_us
        busy.refused_until_us = 0 if decision.allowed else sent_us + decision.retry_after_us
        if not decision.allowed and _has_loop():
            after_s = (busy.refused_until_us - self._clock()) / US_PER_S
            busy.alarm = asyncio.get_running_loop().call_later(after_s, self._ask_when_due, key, busy)

    def _ask_when_due(self, key: str, busy: _BusyKey) -> None:
        """The promised time has come: know what is left before the key asks again, if it still does."""
        busy.alarm = None
        if self._busy.get(key) is busy and self._clock() - busy.seen_us <= self._life_us:
            self._charge_soon(key, busy)

    def _forget_idle(self, most: int) -> None:
        """Look at the keys that were looked at longest ago. Forget those who have not asked until all was back, as soon
        as they owe nothing."""
        now_us = self._clock()
        for key in list(islice(self._busy, most)):
            busy = self._busy.pop(key)
            if busy.owed or now_us - busy.seen_us <= self._life_us:
                self._busy[key] = busy
                if now_us - busy.seen_us > self._life_us and now_us >= busy.refused_until_us:
                    self._charge_soon(key, busy)
            else:
                busy.forget_alarm()

    async def settle(self) -> None:
        """Wait until what is owed now has been charged, for a second at most."""
        if self._charging is not None:
            await asyncio.wait([self._charging], timeout=1.0)

    async def aclose(self) -> None:
        """Charge what is owed, then close the store's connections."""
        await self.settle()
        for busy in self._busy.values():
            busy.forget_alarm()
        await self.shared.aclose()


def _charge_what_fits(shared_key: str, units: int) -> _Questions:
    """Charge these units, or as many of them as the store has left. How many, and its last reply."""
    if not units:
        return 0, (yield shared_key, 0)
    decision = yield shared_key, units
    if decision.allowed:
        return units, decision
    fitting = min(units - 1, decision.remaining)
    if fitting > 0:
        decision = yield shared_key, fitting
    return (fitting, decision) if decision.allowed else (0, decision)


def _next(questions: _Questions, answer: Decision | Exception | None) -> _Question | None:
    """The next question after this answer, or `None` if there is none."""
    try:
        return questions.throw(answer) if isinstance(answer, Exception) else questions.send(answer)  # type: ignore[arg-type]
    except StopIteration:
        return None


def _has_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
