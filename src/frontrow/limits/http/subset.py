"""Some of a limiter's rules as a limiter of their own, over the same store: a rule counts once, wherever it applies."""

from collections.abc import Sequence

from frontrow.core.clock import Clock
from frontrow.limits.limiter import Limiter
from frontrow.limits.stats import Stats
from frontrow.limits.stores.base import Answer, Ask, Store


class SubsetStore:
    """Passes questions about some rules on to the store of all of them."""

    def __init__(self, store: Store, lines: Sequence[int]) -> None:
        self._store = store
        self._lines = tuple(lines)  # line of the subset -> line of the whole

    @classmethod
    def limiter(cls, whole: Limiter, names: Sequence[str], stats: Stats, clock: Clock) -> Limiter:
        """A limiter of the rules `names` out of `whole`, counting in its store."""
        rules = [rule for rule in whole.rules if rule.name in names]
        lines = [at for at, line in enumerate(whole._lines) if line.rule.name in names]
        return Limiter(rules, store=cls(whole._store, lines), clock=clock, stats=stats)

    def _whole(self, ask: Ask) -> Ask:
        return ask._replace(lines=tuple(self._lines[at] for at in ask.lines))

    def decide(self, ask: Ask) -> Answer:
        return self._store.decide(self._whole(ask))

    async def adecide(self, ask: Ask) -> Answer:
        return await self._store.adecide(self._whole(ask))

    def close(self) -> None:
        """The whole limiter closes it."""

    async def aclose(self) -> None:
        """The whole limiter closes it."""
