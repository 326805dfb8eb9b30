"""`Limiter`: asks its store about every rule at once and says what happens when the store is down.

    limiter = Limiter(Quota.parse("100/minute"))
    if not limiter.check("user:42"): ...

Each question exists twice, blocking (`check`) and for asyncio (`acheck`), and both are one line around the same `Ask`.
"""

import asyncio
import functools
import inspect
import time
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any, Self

from frontrow.core.clock import US_PER_S, Clock, SystemClock, steady
from frontrow.limits.keys import Key, pack_parts, rule_key
from frontrow.limits.quota import Decision, InvalidQuota, Quota, Rule, Throttled
from frontrow.limits.refusal_cache import Denials
from frontrow.limits.stats import Stats
from frontrow.limits.stores.from_url import open_store
from frontrow.limits.stores.protocol import CHECK, PEEK, REFUND, Answer, Ask, Line, Store

DEFAULT_DEADLINE_S = 0.025
_new: Any = tuple.__new__
MAX_RULES = 32
MAX_ATTEMPTS = 10_000  # of one acquire; each waits for the promised moment, so this is never reached by time passing


class Limiter:
    """Rules over a store. Make it once and share it: it is safe for threads and for event loops."""

    def __init__(
        self,
        rules: Quota | str | Rule | Sequence[Rule],
        *,
        store: str | Store = "memory://",
        clock: Clock | None = None,
        on_store_down: str = "local",
        deadline_s: float = DEFAULT_DEADLINE_S,
        stats: Stats | None = None,
        **store_options: Any,
    ) -> None:
        self.rules = _as_rules(rules)
        self.stats = stats or Stats([rule.name for rule in self.rules])
        self._raw_clock: Clock = clock or SystemClock()
        self._clock = steady(self._raw_clock)
        self._lines: list[Line] = []
        self._line_of: list[dict[str, int]] = []
        for rule in self.rules:
            first = len(self._lines)
            variants = rule.variants()
            self._line_of.append({tier: first + at for at, tier in enumerate(variants)})
            self._lines += [Line(rule, tier, quota) for tier, quota in variants.items()]
        self._plain = all(rule.per is None and not rule.tiers for rule in self.rules)
        self._default_lines = tuple(of[""] for of in self._line_of)
        self._store: Store = (
            open_store(store, self._lines, self._clock, self.stats, on_store_down, deadline_s, store_options)
            if isinstance(store, str)
            else store
        )
        self._tag_parts = self._store.tag_parts
        self._denials: Denials | None = getattr(self._store, "denials", None) if self._plain else None
        self._denied_keys = self._denials.known if self._denials is not None else None
        self._install_fast_path()

    # -- the questions -------------------------------------------------------------------------------------------

    def check(self, key: Key, cost: int = 1, now_us: int | None = None) -> Decision:
        """Charge `cost` to every rule, or to none of them, and say which it was."""
        if self._denied_keys and now_us is None and (denied := self._denied(key, cost)) is not None:
            return denied
        return self._told(self._store.decide(self._ask(key, cost, now_us, CHECK)))

    async def acheck(self, key: Key, cost: int = 1, now_us: int | None = None) -> Decision:
        """`check` for asyncio."""
        if self._denied_keys and now_us is None and (denied := self._denied(key, cost)) is not None:
            return denied
        return self._told(await self._store.adecide(self._ask(key, cost, now_us, CHECK)))

    def peek(self, key: Key, cost: int = 1, now_us: int | None = None) -> Decision:
        """What `check` would answer, without charging; `remaining` is what is there now."""
        return self._store.decide(self._ask(key, cost, now_us, PEEK)).decision

    async def apeek(self, key: Key, cost: int = 1, now_us: int | None = None) -> Decision:
        """`peek` for asyncio."""
        return (await self._store.adecide(self._ask(key, cost, now_us, PEEK))).decision

    def refund(self, key: Key, cost: int = 1, now_us: int | None = None) -> Decision:
        """Give back `cost` units that were charged and not used; answers as `peek` does afterwards."""
        return self._store.decide(self._ask(key, cost, now_us, REFUND)).decision

    async def arefund(self, key: Key, cost: int = 1, now_us: int | None = None) -> Decision:
        """`refund` for asyncio."""
        return (await self._store.adecide(self._ask(key, cost, now_us, REFUND))).decision

    def acquire(self, key: Key, cost: int = 1, timeout_s: float | None = None) -> Decision:
        """Wait until `cost` is allowed (for `leaky_queue` also until it is time); `Throttled` if it takes too long."""
        sleep = getattr(self._raw_clock, "sleep", time.sleep)
        deadline_us = _deadline_us(self._clock, timeout_s)
        for _ in range(MAX_ATTEMPTS):
            wait_s, decision = self._patience(self.check(key, cost), deadline_us)
            if wait_s:
                sleep(wait_s)
            if decision.allowed:
                return decision
        raise Throttled(f"rule {decision.rule}: refused {MAX_ATTEMPTS} times in a row", decision)

    async def aacquire(self, key: Key, cost: int = 1, timeout_s: float | None = None) -> Decision:
        """`acquire` for asyncio."""
        sleep: Callable[[float], Awaitable[None] | None] = getattr(self._raw_clock, "sleep", asyncio.sleep)
        deadline_us = _deadline_us(self._clock, timeout_s)
        for _ in range(MAX_ATTEMPTS):
            wait_s, decision = self._patience(await self.acheck(key, cost), deadline_us)
            if wait_s and inspect.isawaitable(waiting := sleep(wait_s)):
                await waiting
            if decision.allowed:
                return decision
        raise Throttled(f"rule {decision.rule}: refused {MAX_ATTEMPTS} times in a row", decision)

    # -- closing -------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the store's blocking connections."""
        self._store.close()

    async def aclose(self) -> None:
        """Close the store's connections, asyncio ones included."""
        await self._store.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.aclose()

    # -- inside --------------------------------------------------------------------------------------------------

    def _ask(self, key: Key, cost: int, now_us: int | None, op: int) -> Ask:
        lines = self._default_lines
        if self._plain:
            keys = (rule_key(self.rules[0], key),) * len(lines)
        else:
            keys = tuple([rule_key(rule, key) for rule in self.rules])
            lines = tuple([self._line(at, rule, key) for at, rule in enumerate(self.rules)])
        if cost != 1 or type(cost) is not int:
            for at in lines:
                self._lines[at].quota.check_cost(cost)
        tag = keys[0]
        if self._tag_parts and not isinstance(key, str):
            tag = pack_parts(key, self._tag_parts, self.rules[0].name)
        return _new(Ask, (lines, keys, cost, now_us, op, tag))  # type: ignore[no-any-return]

    def _denied(self, key: Key, cost: int) -> Decision | None:
        """A refusal of this key that still holds."""
        if type(key) is not str or self._denials is None:
            return None
        decision = self._denials.look(key, cost)
        if decision is not None:
            self.stats.count(decision)
        return decision

    def _line(self, at: int, rule: Rule, key: Key) -> int:
        lines = self._line_of[at]
        tier = rule.tier_of(key) if rule.tier_of is not None else None
        return lines.get(tier or "", lines[""])

    def _told(self, answer: Answer) -> Decision:
        """Count what was answered."""
        decision, shadowed = answer
        self.stats.count(decision, [self.rules[at].name for at in shadowed] if shadowed else ())
        return decision

    def _patience(self, decision: Decision, deadline_us: int | None) -> tuple[float, Decision]:
        """How long to wait after `decision`; `Throttled` when that is past the deadline."""
        wait_us = decision.delay_us if decision.allowed else max(1, decision.retry_after_us)
        if deadline_us is not None and not decision.allowed and self._clock() + wait_us > deadline_us:
            raise Throttled(f"rule {decision.rule}: free again in {decision.retry_after_s:.3f} s", decision)
        return wait_us / US_PER_S, decision

    def _install_fast_path(self) -> None:
        """Let the compiled store answer plain checks directly; it comes back here for everything unusual."""
        direct = getattr(self._store, "check", None)
        if direct is not None and self._plain:
            self._store.on_unusual(functools.partial(Limiter.check, self))  # type: ignore[attr-defined]
            self.stats.follow(self._store.counts)  # type: ignore[attr-defined]
            setattr(self, "check", direct)  # noqa: B010  # mypy forbids assigning to a method


def _deadline_us(clock: Clock, timeout_s: float | None) -> int | None:
    return None if timeout_s is None else clock() + round(timeout_s * US_PER_S)


def _as_rules(rules: Quota | str | Rule | Sequence[Rule]) -> tuple[Rule, ...]:
    if isinstance(rules, str):
        rules = Quota.parse(rules)
    if isinstance(rules, Quota):
        return (Rule("default", rules),)
    if isinstance(rules, Rule):
        return (rules,)
    listed = tuple(rules)
    if len(listed) > MAX_RULES:
        raise InvalidQuota(f"a limiter takes at most {MAX_RULES} rules, not {len(listed)}; use several limiters")
    if not listed or not all(isinstance(rule, Rule) for rule in listed):
        raise InvalidQuota('a limiter needs a quota or a list of rules, like [Rule("burst", Quota.parse("10/second"))]')
    names = [rule.name for rule in listed]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise InvalidQuota(f"two rules are called {min(twice)!r}; give each its own name", param="name")
    return listed
