"""Turns a caller's key into one store key per rule. No two different keys ever share a store key.

A key and the parts of a mapping are texts, whole numbers (42 is the client "42") or objects whose class defines
`__str__`, like a UUID or an IP address: the same for every integration. A text is used as it is. A mapping's parts are
packed as bytes with their lengths, which no text can equal and no separator inside a part can fake (`user=1, item=23`
is not `user=12, item=3`). A key longer than 256 characters is replaced by its digest, so a megabyte sent as a name
costs 34 bytes.
"""

import inspect
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from ipaddress import IPv4Address, IPv6Address
from typing import Any
from uuid import UUID

from frontrow.limits.quota import InvalidKey, Rule, shown

MAX_KEY_CHARS = 256

KeyPart = str | int | UUID | IPv4Address | IPv6Address
Key = KeyPart | Mapping[str, KeyPart]
StoreKey = str | bytes

GLOBAL_KEY = b"*"


def rule_key(rule: Rule, key: object) -> StoreKey:
    """The key under which `rule` counts `key`."""
    if rule.per == ():
        return GLOBAL_KEY
    if isinstance(key, Mapping):
        if rule.per is None and not all(isinstance(name, str) for name in key):
            raise InvalidKey(f"the parts of a key have names, like {{'user': '42'}}; not {_shown(key)}", param="key")
        return pack_parts(key, tuple(sorted(key)) if rule.per is None else rule.per, rule.name)
    text = key_text(key)
    if text is None:
        wanted = "a text, a whole number or a mapping of parts, like 'user:42', 42 or {'user': '42'}"
        raise InvalidKey(f"a key is {wanted}; not {_shown(key)}", param="key")
    if rule.per is not None:
        needs = ", ".join(rule.per)
        raise InvalidKey(f"rule {rule.name} counts by {needs}: give a mapping with these parts", param="key")
    return _short_text(text)


def key_text(value: object) -> str | None:
    """The text of a key or of a part. None if `value` has no text of its own to count by."""
    if isinstance(value, str):
        return value
    if type(value) is int:
        return str(value)
    own_text = type(value).__str__ is not object.__str__ and not isinstance(value, bytes | bytearray | BaseException)
    return str(value) if own_text else None


def _shown(value: object) -> str:
    """`value` in an error message, with what to do about an object that has no text."""
    plain = value is None or isinstance(value, bytes | bool | float | list | tuple | set)
    if plain or inspect.iscoroutine(value) or inspect.isroutine(value):
        return shown(value)
    return f"{value!r:.80}, which has no __str__; pass its id"


def pack_parts(key: Mapping[str, Any], names: Sequence[str], rule_name: str) -> bytes:
    """The named parts as bytes, each with its length. Raises `InvalidKey` if one is missing or empty."""
    packed = bytearray()
    for name in names:
        value = key.get(name)
        if not isinstance(value, str):
            value = key_text(value)
        if not value:
            given = "missing" if key.get(name) is None else _shown(key[name])
            wanted = f"a text or a whole number in the key, like {{'{name}': '42'}}"
            raise InvalidKey(f"rule {rule_name} counts by {name!r}, {wanted}; it is {given}", param=name)
        for text in (name, value):
            raw = text.encode("utf-8", "surrogatepass")
            packed += b"%d:%b" % (len(raw), raw)
    if not packed:
        raise InvalidKey(
            f"rule {rule_name}: the key has no parts; give at least one, like {{'user': '42'}}", param="key"
        )
    return bytes(packed) if len(packed) <= MAX_KEY_CHARS else digest(bytes(packed))


def _short_text(key: str) -> StoreKey:
    if not key:
        raise InvalidKey("the key is empty; say who is limited, like 'user:42' or '203.0.113.7'", param="key")
    if type(key) is not str:  # a subclass may compare by its own rules
        key = str.__str__(key)
    return key if len(key) <= MAX_KEY_CHARS else digest(key.encode("utf-8", "surrogatepass"))


def digest(raw: bytes) -> bytes:
    """A fixed-size replacement for a long key. Packed keys start with a digit, so none starts with `#`."""
    return b"#" + blake2b(raw, digest_size=32).digest()
