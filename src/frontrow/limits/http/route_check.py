"""Some of a limiter's rules, asked in one step over the limiter's own store: a rule counts once, wherever it applies.

A route's rules, lines and the names inside their keys are known before the request comes, so only the values are packed
per request. The keys are the same bytes `keys.pack_parts` makes (a test holds them equal).
"""

from collections.abc import Callable, Mapping, Sequence

from frontrow.limits.keys import GLOBAL_KEY, MAX_KEY_CHARS, StoreKey, digest, pack_parts
from frontrow.limits.limiter import Limiter
from frontrow.limits.quota import Decision, Rule
from frontrow.limits.stores.protocol import CHECK, Ask

Pack = Callable[[Mapping[str, str]], StoreKey]


class Question:
    """The rules `names` of `limiter`, for keys that are mappings with every part those rules count by."""

    def __init__(self, limiter: Limiter, names: Sequence[str], constant: Mapping[str, str]) -> None:
        self._store = limiter._store
        self._stats = limiter.stats
        self._rules = [rule for rule in limiter.rules if rule.name in names]
        self._packs = [packer(rule, constant) for rule in self._rules]
        tiers = [limiter._line_of[limiter.rules.index(rule)] for rule in self._rules]
        self._lines_of = tiers if any(rule.tiers for rule in self._rules) else None
        self._lines = tuple(lines[""] for lines in tiers)
        self._tag_parts = self._store.tag_parts

    def check(self, key: Mapping[str, str], cost: int = 1) -> Decision:
        """Charge `cost` to every rule, or to none of them."""
        decision, shadowed = self._store.decide(self._ask(key, cost))
        self._stats.count(decision, [self._rules[at].name for at in shadowed] if shadowed else ())
        return decision

    async def acheck(self, key: Mapping[str, str], cost: int = 1) -> Decision:
        """`check` for asyncio."""
        decision, shadowed = await self._store.adecide(self._ask(key, cost))
        self._stats.count(decision, [self._rules[at].name for at in shadowed] if shadowed else ())
        return decision

    def _ask(self, key: Mapping[str, str], cost: int) -> Ask:
        keys = tuple([pack(key) for pack in self._packs])
        lines = self._lines if self._lines_of is None else self._tiered(key)
        tag = pack_parts(key, self._tag_parts, "tag") if self._tag_parts else keys[0]
        return Ask(lines, keys, cost, None, CHECK, tag)

    def _tiered(self, key: Mapping[str, str]) -> tuple[int, ...]:
        assert self._lines_of is not None
        tiers = [rule.tier_of(key) if rule.tier_of is not None else None for rule in self._rules]
        return tuple(lines.get(tier or "", lines[""]) for lines, tier in zip(self._lines_of, tiers, strict=True))

    def check_cost(self, cost: int) -> int:
        """`cost`, if every quota of these rules could ever allow it."""
        for rule in self._rules:
            for quota in rule.variants().values():
                quota.check_cost(cost)
        return cost


def packer(rule: Rule, constant: Mapping[str, str]) -> Pack:
    """What makes `rule`'s store key; made once when all its parts are constant."""
    parts = rule.per or ()
    if not parts:
        return lambda key: GLOBAL_KEY
    if all(part in constant for part in parts):
        made = pack_parts(constant, parts, rule.name)
        return lambda key: made
    heads = [(part, b"%d:%b" % (len(raw := part.encode("utf-8", "surrogatepass")), raw)) for part in parts]
    if len(heads) == 1:
        [(only, head)] = heads

        def pack_one(key: Mapping[str, str]) -> StoreKey:
            raw = key[only].encode("utf-8", "surrogatepass")
            packed = b"%b%d:%b" % (head, len(raw), raw)
            return packed if len(packed) <= MAX_KEY_CHARS else digest(packed)

        return pack_one

    def pack(key: Mapping[str, str]) -> StoreKey:
        packed = b""
        for part, head in heads:
            raw = key[part].encode("utf-8", "surrogatepass")
            packed += b"%b%d:%b" % (head, len(raw), raw)
        return packed if len(packed) <= MAX_KEY_CHARS else digest(packed)

    return pack
