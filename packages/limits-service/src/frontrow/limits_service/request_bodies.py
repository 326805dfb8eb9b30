"""The JSON bodies of the HTTP interface, and what they ask of the stores.

A key is a text, a whole number or a mapping of parts. A rule that counts by one part takes a text for that part. Rules
are those that the request names, or those that fit its path and method, or all of the file. A request may bring a quota
of its own in place of rules.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import msgspec

from frontrow.core.errors import Forbidden, InvalidInput, NotFound
from frontrow.limits.http.rule_conversion import endpoint_part
from frontrow.limits.keys import GLOBAL_KEY, Key, StoreKey, rule_key
from frontrow.limits.quota import InvalidKey, Quota, Rule
from frontrow.limits.rules import Match, RequestRule, RuleSet
from frontrow.limits.tiers import Tiers
from frontrow.limits_service.limit_stores import Charge, LimitStore, QuotaStores
from frontrow.limits_service.settings import MAX_RULES

MAX_PARTS = 16
MAX_PATH_CHARS = 8192
INLINE = "inline"  # the rule of a caller's own quota
JsonKey = str | int | dict[str, str | int]
Body = TypeVar("Body")
_WHOLE = Rule(INLINE, "1/second")  # makes keys of callers' own quotas


class UnknownRule(NotFound):
    code = "unknown_rule"
    http_status = 422


class InlineQuotasOff(Forbidden):
    code = "inline_quotas_off"


class BadBody(InvalidInput):
    code = "bad_body"
    http_status = 400


class CheckBody(msgspec.Struct, forbid_unknown_fields=True):
    """Who is limited (`key`, or several `keys`), by which rules, and how much is asked for."""

    key: JsonKey | None = None
    keys: list[JsonKey] | None = None
    rules: list[str] | None = None
    quota: str | None = None
    cost: int = 1
    tier: str | None = None
    path: str | None = None
    method: str = "GET"


class BatchBody(msgspec.Struct, forbid_unknown_fields=True):
    """Checks that are decided each on its own."""

    checks: list[CheckBody]


class LeaseBody(CheckBody, forbid_unknown_fields=True):
    """A check whose units are spent later. `at_least` accepts fewer than `cost` if no more are left."""

    ttl_s: float = 10.0
    at_least: int | None = None


class ReturnBody(msgspec.Struct, forbid_unknown_fields=True):
    """How many units of a lease were used."""

    used: int


def reader(kind: type[Body]) -> "msgspec.json.Decoder[Body]":
    return msgspec.json.Decoder(kind)


def read_body(decoder: "msgspec.json.Decoder[Body]", raw: bytes) -> Body:
    """The body, or an error that names the field."""
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadBody(f"the body is not what this route takes: {error}", param="body") from None


class _Chosen(NamedTuple):
    """A rule that applies, and the endpoint that it matched, if the request names a path."""

    rule: RequestRule
    endpoint: str = ""


class BodyReader:
    """Turns bodies into charges."""

    def __init__(
        self,
        requests: RuleSet,
        plain_part: str | None,
        store: LimitStore,
        quotas: QuotaStores | None,
        tiers: Tiers | None,
        max_key_chars: int,
    ) -> None:
        self._requests = requests
        self._by_name = {rule.name: rule for rule in requests.rules}
        self._all = tuple(_Chosen(rule) for rule in requests.rules)
        self._plain_part = plain_part
        self._store = store
        self._quotas = quotas
        self._tiers = tiers if any(rule.tiers for rule in requests.rules) else None
        self._max_key_chars = max_key_chars
        self._quick_slots = self._slots_for_texts()

    def charge(self, body: CheckBody) -> Charge:
        """What a body asks for. Raises with one sentence if it is not clear."""
        key, cost = body.key, body.cost
        if type(key) is str and self._quick_slots and body.rules is None and cost == 1 and _is_plain(body):
            self._check_key(key)
            text = rule_key(_WHOLE, key)
            return Charge(self._store, self._quick_slots, (text,) * len(self._quick_slots), 1)
        keys = self._keys(body)
        if body.quota is not None:
            return self._own_quota(body, body.quota, keys)
        chosen = self._choose(body)
        slots: list[int] = []
        store_keys: list[StoreKey] = []
        for each in keys:
            for rule, endpoint in chosen:
                parts = self._parts(rule, endpoint, each, body.path)
                tier = body.tier if body.tier is not None else self._tier(parts)
                slots.append(self._store.find_slot(rule.name, tier))
                store_keys.append(self._store_key(rule, parts))
        return _checked(Charge(self._store, tuple(slots), tuple(store_keys), cost))

    def _slots_for_texts(self) -> tuple[int, ...]:
        """The slots of a request that has nothing but a text as key, if all rules count by that text."""
        if self._plain_part is None or self._tiers is not None or len(self._all) > MAX_RULES:
            return ()
        return tuple(self._store.find_slot(rule.name) for rule in self._requests.rules)

    def _keys(self, body: CheckBody) -> Sequence[Key]:
        if (body.key is None) == (body.keys is None):
            raise InvalidKey('give "key", like "user:42", or "keys" with several', param="key")
        keys: Sequence[JsonKey] = body.keys if body.keys is not None else [body.key]  # type: ignore[list-item]
        if not 1 <= len(keys) <= MAX_RULES:
            raise InvalidKey(f"keys must be 1 to {MAX_RULES}, not {len(keys)}", param="keys")
        for key in keys:
            self._check_key(key)
        return keys

    def _check_key(self, key: Any) -> None:
        texts = [text for pair in key.items() for text in pair] if isinstance(key, dict) else [key]
        if len(texts) > 2 * MAX_PARTS:
            raise InvalidKey(f"a key has at most {MAX_PARTS} parts, not {len(key)}", param="key")
        for text in texts:
            if len(text if type(text) is str else str(text)) > self._max_key_chars:
                raise InvalidKey(f"a key or a part of it has at most {self._max_key_chars} characters", param="key")

    def _own_quota(self, body: CheckBody, text: str, keys: Sequence[Key]) -> Charge:
        if self._quotas is None:
            raise InlineQuotasOff("this service takes no quotas of callers; name its rules", param="quota")
        if body.rules is not None or body.path is not None:
            raise BadBody("give rules, a path or a quota, not several of them", param="quota")
        store = self._quotas.of(INLINE, _parse_quotas(text))
        slots = tuple(range(len(store.slots))) * len(keys)
        each_key = [rule_key(_WHOLE, key) for key in keys]
        return _checked(Charge(store, slots, tuple(key for key in each_key for _ in store.slots), body.cost))

    def _choose(self, body: CheckBody) -> Sequence[_Chosen]:
        if body.rules is not None:
            if body.path is not None:
                raise BadBody("give rules or a path, not both", param="rules")
            return [self._named(name) for name in body.rules]
        if body.path is not None:
            if not body.path.startswith("/") or len(body.path) > MAX_PATH_CHARS:
                raise BadBody(f"path must begin with / and have at most {MAX_PATH_CHARS} characters", param="path")
            found: tuple[Match, ...] = self._requests.matching(body.method[:16], body.path)
            return [_Chosen(match.rule, match.endpoint) for match in found]
        return self._all

    def _named(self, name: str) -> _Chosen:
        rule = self._by_name.get(name)
        if rule is None:
            known = ", ".join(list(self._by_name)[:20]) or "none; send a quota"
            raise UnknownRule(f"there is no rule {name[:64]!r}; the rules are {known}", param="rules")
        return _Chosen(rule)

    def _parts(self, rule: RequestRule, endpoint: str, key: Key, path: str | None) -> Mapping[str, Any]:
        if not isinstance(key, Mapping):
            if len(rule.key) > 1:
                needs = ", ".join(rule.key)
                raise InvalidKey(f"rule {rule.name} counts by {needs}: give a mapping with these parts", param="key")
            return dict.fromkeys(rule.key, key)
        if path is None or not {"endpoint", "path"} & set(rule.key):
            return key
        return {**key, "endpoint": endpoint, "path": path}

    def _tier(self, parts: Mapping[str, Any]) -> str | None:
        return self._tiers({name: str(value) for name, value in parts.items()}) if self._tiers is not None else None

    def _store_key(self, rule: RequestRule, parts: Mapping[str, Any]) -> StoreKey:
        """The key that a middleware with the same rules would count by."""
        if not rule.key:
            return GLOBAL_KEY
        if self._plain_part is not None:
            if self._plain_part not in parts:
                raise InvalidKey(f"rule {rule.name} counts by {self._plain_part!r}; the key lacks it", param="key")
            return rule_key(_WHOLE, parts[self._plain_part])
        of_limiter = self._store.slots[self._store.find_slot(rule.name)].rule
        if "endpoint" in parts:
            parts = {**parts, endpoint_part(rule): parts["endpoint"]}
        return rule_key(of_limiter, parts)


def _is_plain(body: CheckBody) -> bool:
    return body.keys is None and body.quota is None and body.tier is None and body.path is None


@lru_cache(maxsize=1024)
def _parse_quotas(text: str) -> tuple[Quota, ...]:
    if len(text) > 256:
        raise BadBody("a quota has at most 256 characters, like 100/minute", param="quota")
    return Quota.parse_all(text)


def _checked(charge: Charge) -> Charge:
    """The charge, if it is not too large. The same rule and key twice would be counted once."""
    if not charge.slots:
        raise UnknownRule("no rule applies to this request; name rules, a path that a rule has, or a quota")
    if len(charge.slots) > MAX_RULES:
        message = f"rules times keys are at most {MAX_RULES} in one request, not {len(charge.slots)}"
        raise BadBody(message, param="rules")
    if len(set(zip(charge.slots, charge.keys, strict=True))) < len(charge.slots):
        raise BadBody("a rule and a key are there twice; use cost for more than one unit", param="keys")
    for slot in charge.slots:
        charge.of.slots[slot].quota.check_cost(charge.cost)
    return charge
