"""The state of one client under every rule of a limiter or of a configuration file: to look at and to reset.

A client is named by one text (the key of a `Limiter`) or by parts like `user=42 ip=203.0.113.7` (the rules of a file).
A rule that counts by a part that is not given is left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from frontrow.core.errors import InvalidInput
from frontrow.limits.config import LimitsConfig
from frontrow.limits.http.caller_identity import secret_key
from frontrow.limits.http.client_address import ClientAddress
from frontrow.limits.http.rule_conversion import endpoint_part, limiter_rule, single_key_part
from frontrow.limits.keys import Key, pack_parts, rule_key
from frontrow.limits.limiter import Limiter
from frontrow.limits.quota import Decision, Rule, StoreDown
from frontrow.limits.rules import RequestRule
from frontrow.limits.stores.protocol import PEEK, RESET, QuotaSlot, StoreRequest


class KeyState(NamedTuple):
    """What one rule knows of a key. A rule with tiers has one state per tier."""

    slot: QuotaSlot
    decision: Decision


class KeyStates:
    """One client's key under each rule of a limiter, by the rule's name."""

    def __init__(self, limiter: Limiter, keys: Mapping[str, Key]) -> None:
        self._limiter = limiter
        self._keys = keys

    def read(self) -> list[KeyState]:
        """The states, without charging anything. `StoreDown` if the store does not answer."""
        return [self._ask(at, slot, 1, PEEK) for at, slot in self._slots()]

    def reset(self) -> list[KeyState]:
        """Forget what was counted. The states are those afterwards."""
        return [self._ask(at, slot, 1, RESET) for at, slot in self._slots()]

    def _slots(self) -> Iterator[tuple[int, QuotaSlot]]:
        return ((at, slot) for at, slot in enumerate(self._limiter._slots) if slot.rule.name in self._keys)

    def _ask(self, at: int, slot: QuotaSlot, cost: int, op: int) -> KeyState:
        key = self._keys[slot.rule.name]
        packed = rule_key(slot.rule, key)
        tag_parts = self._limiter._tag_parts
        tag = pack_parts(key, tag_parts, slot.rule.name) if tag_parts and isinstance(key, Mapping) else packed
        decision = self._limiter._store.decide(StoreRequest((at,), (packed,), cost, None, op, tag)).decision
        if decision.source != "store":
            reason = self._limiter.stats.store_error or "no reason known"
            raise StoreDown(f"the store did not answer ({reason}); check its URL, and that it runs")
        return KeyState(slot, decision)


def keys_of_limiter(rules: Sequence[Rule], words: Sequence[str]) -> dict[str, Key]:
    """The key by rule: one word is the whole key, several are the parts of a mapping."""
    key: Key = words[0] if len(words) == 1 else read_parts(words)
    return {rule.name: key for rule in rules}


def rules_of_config(config: LimitsConfig) -> list[Rule]:
    """The limiter's rules of a file, as the middleware makes them."""
    rules = config.book.current.rules
    return [limiter_rule(rule, single_key_part(rules) is not None) for rule in rules]


def keys_of_config(config: LimitsConfig, words: Sequence[str]) -> dict[str, Key]:
    """The key by rule, as the middleware would make it of a request with these parts."""
    parts = read_parts(words)
    if "ip" in parts:
        parts["ip"] = ClientAddress((), ipv6_prefix=config.settings.ipv6_prefix).direct(parts["ip"]) or parts["ip"]
    if "api_key" in parts and "api_key" not in config.identify:
        parts["api_key"] = secret_key(parts["api_key"]) or ""
    rules = config.book.current.rules
    only = single_key_part(rules)
    counted = [rule for rule in rules if all(part in parts for part in rule.key)]
    if not counted:
        needs = "; ".join(f"{rule.name}: {', '.join(rule.key)}" for rule in rules)
        raise InvalidInput(f"no rule counts by these parts alone; the rules count by {needs}", param="key")
    return {rule.name: parts[only] if only is not None else _key_of(rule, parts) for rule in counted}


def _key_of(rule: RequestRule, parts: Mapping[str, str]) -> dict[str, str]:
    return {endpoint_part(rule) if part == "endpoint" else part: parts[part] for part in rule.key}


def read_parts(words: Sequence[str]) -> dict[str, str]:
    """The parts that words like `user=42` name."""
    parts = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not (name and equals and value):
            raise InvalidInput(f"write the parts of the key like user=42 ip=203.0.113.7, not {word!r}", param="key")
        parts[name] = value
    return parts
