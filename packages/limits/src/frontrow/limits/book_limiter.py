"""`BookLimiter`: a limiter whose rules are those of a rule book, also when it is replaced while running.

limiter = BookLimiter(shared.book, store="redis://…")
limiter.check({"user": "42"})
"""

from collections.abc import Callable
from typing import Any, Unpack

from frontrow.core.errors import ConfigError
from frontrow.core.forks import fork_safe_lock
from frontrow.limits.keys import Key
from frontrow.limits.limiter import Limiter
from frontrow.limits.options import LimiterOptions
from frontrow.limits.quota import Decision, Rule
from frontrow.limits.reservations import Reservation
from frontrow.limits.rules import RequestRule, RuleBook, RuleSet
from frontrow.limits.stats import Stats

MAX_RETIRED = 2  # replaced limiters that calls may still be using


class BookLimiter:
    """Each call is decided by the rules in force when it begins. The key is a mapping of the parts that rules count by.

    A rule that belongs to requests (`paths`, `methods`, `statuses`) cannot be taken, and then the old rules stay.
    """

    def __init__(
        self, book: RuleBook, *, tier_of: Callable[[Any], str | None] | None = None, **options: Unpack[LimiterOptions]
    ) -> None:
        self._options = options
        self._tier_of = tier_of
        self._lock = fork_safe_lock()
        self._retired: list[Limiter] = []
        self._past: dict[str, int] = {}
        self._limiter: Limiter
        book.follow(self._prepare)
        book.observe(self._shadow_refusals)

    def _prepare(self, rules: RuleSet) -> Callable[[], None]:
        limiter = Limiter([self._to_rule(rule) for rule in rules.rules], **self._options)

        def switch() -> None:
            with self._lock:
                replaced = getattr(self, "_limiter", None)
                self._limiter = limiter
                if replaced is not None:
                    self._retire(replaced)

        return switch

    def _retire(self, replaced: Limiter) -> None:
        self._retired.append(replaced)
        while len(self._retired) > MAX_RETIRED:
            old = self._retired.pop(0)
            for name, counts in old.stats.rules.items():
                self._past[name] = self._past.get(name, 0) + counts.shadow_refused
            old.close()

    def _to_rule(self, rule: RequestRule) -> Rule:
        if rule.methods or rule.paths or rule.except_paths or rule.statuses:
            message = f"rule {rule.name}: paths, methods and statuses belong to requests, not to a limiter"
            raise ConfigError(message, param="rules")
        if rule.tiers and self._tier_of is None:
            raise ConfigError(f"rule {rule.name} has tiers; say who is in which: tier_of=Tiers(…)", param="tier_of")
        tier_of = self._tier_of if rule.tiers else None
        more = {"shadow": rule.shadow, "lease": rule.lease, "on_store_down": rule.on_store_down}
        return Rule(rule.name, rule.quota, rule.key, rule.tiers, tier_of, **more)  # type: ignore[arg-type]

    def _shadow_refusals(self) -> dict[str, int]:
        with self._lock:
            total = dict(self._past)
            for limiter in (*self._retired, self._limiter):
                for name, counts in limiter.stats.rules.items():
                    total[name] = total.get(name, 0) + counts.shadow_refused
        return {name: refusals for name, refusals in total.items() if refusals}

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules in force."""
        return self._limiter.rules

    @property
    def stats(self) -> Stats:
        """The counters of the rules in force."""
        return self._limiter.stats

    def check(self, key: Key, cost: int = 1) -> Decision:
        """Charge `cost` to every rule in force, or to none if one of them refuses."""
        return self._limiter.check(key, cost)

    async def acheck(self, key: Key, cost: int = 1) -> Decision:
        """`check` for asyncio."""
        return await self._limiter.acheck(key, cost)

    def peek(self, key: Key, cost: int = 1) -> Decision:
        """What `check` would decide, without charging."""
        return self._limiter.peek(key, cost)

    async def apeek(self, key: Key, cost: int = 1) -> Decision:
        """`peek` for asyncio."""
        return await self._limiter.apeek(key, cost)

    def reserve(self, key: Key, cost: int) -> Reservation:
        """Charge an estimated cost. It is settled by the rules that charged it."""
        return self._limiter.reserve(key, cost)

    async def areserve(self, key: Key, cost: int) -> Reservation:
        """`reserve` for asyncio."""
        return await self._limiter.areserve(key, cost)

    def close(self) -> None:
        """Close the store's blocking connections."""
        for limiter in (*self._retired, self._limiter):
            limiter.close()

    async def aclose(self) -> None:
        """Close the store's connections, asyncio ones included."""
        for limiter in (*self._retired, self._limiter):
            await limiter.aclose()
