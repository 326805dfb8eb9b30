"""Checks the rules of one route in one step over the limiter's store, so a rule has one count wherever it applies.

A route's rules, slots and the names inside their keys are known before a request arrives. Only the values are packed
per request. The keys are the same bytes that `keys.pack_parts` makes; a test compares them.
"""

import functools
from collections.abc import Callable, Mapping, Sequence

from frontrow.limits.keys import GLOBAL_KEY, MAX_KEY_CHARS, StoreKey, digest, pack_parts
from frontrow.limits.limiter import Limiter
from frontrow.limits.quota import Decision, Rule
from frontrow.limits.stores.protocol import CHECK, REFUND, StoreRequest

Pack = Callable[[Mapping[str, str]], StoreKey]


class RouteCheck:
    """The rules `names` of `limiter`. Keys are mappings with every part that those rules count by.

    `plain`: they are all the rules of the limiter, and the key is the value of the one part they count by.
    """

    def __init__(
        self, limiter: Limiter, names: Sequence[str], constant: Mapping[str, str], plain: bool = False
    ) -> None:
        self._limiter = limiter if plain else None
        self._store = limiter._store
        self._stats = limiter.stats
        self._rules = [rule for rule in limiter.rules if rule.name in names]
        self._packs = [packer(rule, constant) for rule in self._rules]
        tiers = [limiter._slot_of_tier[limiter.rules.index(rule)] for rule in self._rules]
        self._slots_of_tier = tiers if any(rule.tiers for rule in self._rules) else None
        self._slots = tuple(slots[""] for slots in tiers)
        self._tag_parts = self._store.tag_parts
        prepare = getattr(self._store, "prepare_check", None)
        if prepare is not None and self._slots_of_tier is None:
            prepared = prepare(self._slots, self._rules, functools.partial(RouteCheck.check, self))
            if prepared is not None:
                vars(self).update(check=prepared.check, acheck=prepared.acheck)

    def check(self, key: Mapping[str, str], cost: int = 1, _now_us: None = None) -> Decision:
        """Charge `cost` to every rule, or to none if one of them refuses."""
        decision, shadowed = self._store.decide(self._request(key, cost))
        self._stats.count(decision, [self._rules[at].name for at in shadowed] if shadowed else ())
        return decision

    async def acheck(self, key: Mapping[str, str], cost: int = 1) -> Decision:
        """`check` for asyncio."""
        decision, shadowed = await self._store.adecide(self._request(key, cost))
        self._stats.count(decision, [self._rules[at].name for at in shadowed] if shadowed else ())
        return decision

    def refund(self, key: Mapping[str, str], cost: int, names: Sequence[str]) -> Decision:
        """Return what `check` charged to the rules `names`. The decision is that of a `peek` at them afterwards."""
        return self._store.decide(self._refund_request(key, cost, names)).decision

    async def arefund(self, key: Mapping[str, str], cost: int, names: Sequence[str]) -> Decision:
        """`refund` for asyncio."""
        return (await self._store.adecide(self._refund_request(key, cost, names))).decision

    def _request(self, key: Mapping[str, str], cost: int) -> StoreRequest:
        if self._limiter is not None:
            return self._limiter._request(key, cost, None, CHECK)
        if cost != 1 or type(cost) is not int:
            self.check_cost(cost)
        keys = tuple([pack(key) for pack in self._packs])
        slots = self._slots if self._slots_of_tier is None else self._slots_for(key)
        tag = pack_parts(key, self._tag_parts, "tag") if self._tag_parts else keys[0]
        return StoreRequest(slots, keys, cost, None, CHECK, tag)

    def _refund_request(self, key: Mapping[str, str], cost: int, names: Sequence[str]) -> StoreRequest:
        whole = self._request(key, cost)
        at = [index for index, rule in enumerate(self._rules) if rule.name in names]
        slots, keys = tuple(whole.slots[index] for index in at), tuple(whole.keys[index] for index in at)
        return whole._replace(slots=slots, keys=keys, op=REFUND)

    def _slots_for(self, key: Mapping[str, str]) -> tuple[int, ...]:
        assert self._slots_of_tier is not None
        tiers = [rule.tier_of(key) if rule.tier_of is not None else None for rule in self._rules]
        return tuple(slots.get(tier or "", slots[""]) for slots, tier in zip(self._slots_of_tier, tiers, strict=True))

    def check_cost(self, cost: int) -> int:
        """Return `cost` if every quota of these rules could ever allow it, else raise."""
        for rule in self._rules:
            for quota in rule.variants().values():
                quota.check_cost(cost)
        return cost


def packer(rule: Rule, constant: Mapping[str, str]) -> Pack:
    """The function that makes `rule`'s store key. The key is made once if all its parts are constant."""
    parts = rule.per or ()
    if not parts:
        return lambda key: GLOBAL_KEY
    if all(part in constant for part in parts):
        packed_once = pack_parts(constant, parts, rule.name)
        return lambda key: packed_once
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
