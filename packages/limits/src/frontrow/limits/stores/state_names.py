"""What the states of a shared store are called, the same in Redis and SQL.

The name says what the state is: the rule, the algorithm and the period (`frl|api|counter:60s|user:42`). So states that
cannot be read as each other never meet.
"""

import re
from hashlib import blake2b

from frontrow.core.clock import US_PER_S
from frontrow.limits.keys import StoreKey
from frontrow.limits.quota import Quota
from frontrow.limits.stores.protocol import QuotaSlot

SPARE_US = US_PER_S  # a state lives this much longer than it matters
_SAFE = re.compile(r"[A-Za-z0-9_.:@/-]{1,128}").fullmatch
_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,64}").fullmatch
_UNNAMED = re.compile(r"default|rule[0-9]+").fullmatch


def key_start(prefix: str, slot: QuotaSlot) -> str:
    """What every key of a slot starts with."""
    return f"{prefix}|{state_name(slot)}|"


def state_of(quota: Quota) -> str:
    """The kind of state this quota keeps. The three buckets keep the same."""
    return "bucket" if quota.is_bucket else "calendar_month" if quota.calendar_month else quota.algorithm


def state_name(slot: QuotaSlot) -> str:
    """The part of a state's key that says what the state is: the rule, and by what algorithm and period it counts.

    A rule without a name of its own is known by its whole quota, so two of them share a state only if they are equal.
    """
    rule, quota = slot.rule, slot.quota
    name = rule.name + (f"={quota.limit}+{quota.capacity}" if _UNNAMED(rule.name) and not rule.namespace else "")
    tier = f"~{_plain(slot.tier)}" if slot.tier else ""
    namespace = f"@{_plain(rule.namespace)}" if rule.namespace else ""
    period_s, rest_us = divmod(quota.period_us, US_PER_S)
    period = f"{quota.period_us}us" if rest_us else f"{period_s}s"
    kind = state_of(quota).removeprefix("sliding_").removesuffix("_window")
    return f"{name}{tier}{namespace}|{kind}:{period}"


def _plain(text: str) -> str:
    return text if _PLAIN(text) else "!" + blake2b(text.encode("utf-8", "surrogatepass"), digest_size=10).hexdigest()


def stored_key(key: StoreKey) -> str:
    """`key` in the name of a state: itself when it is harmless, else a digest that no harmless key can equal."""
    if isinstance(key, str):
        if _SAFE(key):
            return key
        return "~" + blake2b(key.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()
    return "=" + blake2b(key, digest_size=20).hexdigest()
