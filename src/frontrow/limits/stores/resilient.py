"""A shared store with what surrounds it: known refusals answered here, a breaker, and the policy when it is down."""

from collections.abc import Sequence
from typing import Any

from frontrow.core.breaker import Breaker
from frontrow.core.clock import Clock
from frontrow.core.errors import ConfigError
from frontrow.limits.quota import ON_STORE_DOWN, Decision, StoreDown
from frontrow.limits.refusal_cache import Denials
from frontrow.limits.stats import Stats
from frontrow.limits.stores.protocol import CHECK, REFUND, Answer, Ask, Line, Store
from frontrow.limits.stores.redis import RedisStore


class SharedStore:
    """Asks `remote` within its deadline; answers by each rule's policy while it is down."""

    def __init__(
        self, remote: Store, local: Store, lines: Sequence[Line], clock: Clock, stats: Stats, on_store_down: str
    ) -> None:
        self._remote = remote
        self._local = local
        self._lines = tuple(lines)
        self._all_lines = tuple(range(len(self._lines)))
        self._clock = clock
        self._stats = stats
        self._policy = [line.rule.on_store_down or on_store_down for line in self._lines]
        self.tag_parts = remote.tag_parts
        self.breaker = Breaker(clock)
        self.denials = Denials(clock, stats)

    def decide(self, ask: Ask) -> Answer:
        known = self._known(ask)
        if known is not None:
            return known
        if not self.breaker.permits():
            return self._while_down(ask)
        sent_at_us = self._clock()
        try:
            answer = self._remote.decide(ask)
        except StoreDown:
            return self._failed(ask)
        return self._learnt(ask, answer, sent_at_us)

    async def adecide(self, ask: Ask) -> Answer:
        if self.denials.known:
            known = self._known(ask)
            if known is not None:
                return known
        if not self.breaker.permits():
            return self._while_down(ask)
        sent_at_us = self._clock()
        try:
            answer = await self._remote.adecide(ask)
        except StoreDown:
            return self._failed(ask)
        if ask.op == CHECK and answer.decision.allowed:  # nearly always: nothing to learn
            self.breaker.succeeded()
            return answer
        return self._learnt(ask, answer, sent_at_us)

    def _known(self, ask: Ask) -> Answer | None:
        if not self.denials.known or ask.op != CHECK or ask.now_us is not None:
            return None
        known = self.denials.look(self._name(ask), ask.cost)
        return None if known is None else Answer(known)

    def _learnt(self, ask: Ask, answer: Answer, sent_at_us: int) -> Answer:
        self.breaker.succeeded()
        if not answer.decision.allowed:
            if ask.op == CHECK and ask.now_us is None:
                self.denials.learn(self._name(ask), ask.cost, sent_at_us, answer.decision)
        elif ask.op == REFUND:
            self.denials.forget(self._name(ask))
        return answer

    def _name(self, ask: Ask) -> Any:
        """What a denial is remembered by: the caller's own key when it stands for all rules, else the whole ask."""
        first = ask.keys[0]
        whole = isinstance(first, str) and ask.lines == self._all_lines and ask.keys.count(first) == len(ask.keys)
        return first if whole else (ask.lines, ask.keys)

    def _failed(self, ask: Ask) -> Answer:
        self._stats.store_errors += 1
        self.breaker.failed()
        return self._while_down(ask)

    def _while_down(self, ask: Ask) -> Answer:
        """Closed rules refuse, local ones are counted in this process, open ones let pass."""
        for at in ask.lines:
            if self._policy[at] == "closed" and not self._lines[at].rule.shadow:
                line, wait_us = self._lines[at], self.breaker.retry_after_us
                return Answer(Decision(False, line.rule.name, line.quota.capacity, 0, wait_us, wait_us, 0, "closed"))
        local = [i for i, at in enumerate(ask.lines) if self._policy[at] == "local"]
        if not local:
            line = self._lines[ask.lines[0]]
            return Answer(Decision(True, line.rule.name, line.quota.capacity, line.quota.capacity, 0, 0, 0, "open"))
        part = ask._replace(lines=tuple(ask.lines[i] for i in local), keys=tuple(ask.keys[i] for i in local))
        answer = self._local.decide(part)
        shadowed = tuple(local[i] for i in answer.shadowed)
        return Answer(answer.decision._replace(source="local"), shadowed)

    def close(self) -> None:
        self._remote.close()

    async def aclose(self) -> None:
        await self._remote.aclose()


def shared_store(
    url: str,
    lines: Sequence[Line],
    clock: Clock,
    stats: Stats,
    on_store_down: str,
    deadline_s: float,
    options: dict[str, Any],
) -> SharedStore:
    """A Redis store with its surroundings, checked."""
    from frontrow.limits.stores.from_url import memory_store

    if on_store_down not in ON_STORE_DOWN:
        message = f"on_store_down must be one of {', '.join(ON_STORE_DOWN)}, not {on_store_down!r}"
        raise ConfigError(message, param="on_store_down")
    if not 0.001 <= deadline_s <= 60:
        raise ConfigError(f"deadline_s must be from 0.001 to 60, not {deadline_s!r}", param="deadline_s")
    unknown = set(options) - {"prefix"}
    if unknown:
        raise ConfigError(f"a Redis store knows the option prefix, not {min(unknown)!r}", param=min(unknown))
    remote = RedisStore(url, lines, stats, deadline_s=deadline_s, **options)
    return SharedStore(remote, memory_store(lines, clock), lines, clock, stats, on_store_down)
