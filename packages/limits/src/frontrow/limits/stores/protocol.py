"""The port of the limiter's stores: `Store`, the requests it gets and the results it returns.

A `QuotaSlot` is one quota that the limiter's rules may apply. A `StoreRequest` names one slot and one key per rule.
A store decides a request in one atomic step over all its rules: all of them are charged, or none.
"""

import re
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from frontrow.core.errors import ConfigError
from frontrow.core.redis_url import EXAMPLE, SCHEMES, mask_password
from frontrow.limits.algorithms import RuleVerdict
from frontrow.limits.keys import StoreKey
from frontrow.limits.quota import Decision, Quota, Rule

CHECK, PEEK, REFUND = 0, 1, 2
CHARGE, RESET = 5, 6
"""CHARGE charges units whether or not they fit. RESET forgets what was charged. Both result in a PEEK afterwards."""
DEFAULT_PREFIX = "frl"  # of every key in a shared store
SQLITE_SCHEMES = ("sqlite",)
SQL_SCHEMES = ("postgresql", "postgres", *SQLITE_SCHEMES)
RESERVE, TAKE_BACK = 3, 4
"""Only a Redis store knows these, for rules that it cannot decide in one step. RESERVE is a CHECK that results in a
`ReserveResult`. TAKE_BACK (with its time as `now_us`) undoes it as far as it still counts."""

Check = Callable[..., Decision]  # (key, cost=1, now_us=None), as `Limiter.check`


@dataclass(frozen=True, slots=True)
class QuotaSlot:
    """One quota of one rule. A rule has one slot per tier."""

    rule: Rule
    tier: str
    quota: Quota


class StoreRequest(NamedTuple):
    """One request to a store: one slot and one key per rule, in rule order."""

    slots: tuple[int, ...]
    keys: tuple[StoreKey, ...]
    cost: int = 1
    now_us: int | None = None
    op: int = CHECK
    tag: StoreKey = (
        ""  # what all the keys have in common; only a Redis Cluster needs it, to put them into one hash slot
    )


class StoreResult(NamedTuple):
    """The decision, and the positions (in `StoreRequest.slots`) of shadow rules that would have refused."""

    decision: Decision
    shadowed: tuple[int, ...] = ()


class ReserveResult(NamedTuple):
    """The result of a RESERVE, and when it was charged by the store's clock."""

    result: StoreResult
    charged_us: int


class Store(Protocol):
    """Decides requests over the slots it was created with. Blocking and asyncio callers get the same results."""

    @property
    def tag_parts(self) -> tuple[str, ...] | None:
        """The key parts that a request must carry as `tag`. `None`: no tag is needed. Empty: the whole key."""

    def decide(self, request: StoreRequest) -> StoreResult: ...

    def adecide(self, request: StoreRequest) -> Awaitable[StoreResult]: ...

    def close(self) -> None: ...

    async def aclose(self) -> None: ...


class PreparedCheck(Protocol):
    """`Limiter.check` and `acheck` for known rules, decided by a store directly (see `prepare_check` of the stores)."""

    @property
    def check(self) -> Check: ...

    def acheck(self, key: Any, cost: int = 1, now_us: int | None = None) -> Coroutine[Any, Any, Decision]: ...


def check_prefix(prefix: Any) -> str:
    """Return `prefix` if keys of a shared store may begin with it, else raise."""
    if not isinstance(prefix, str) or not re.fullmatch(r"[A-Za-z0-9_.:-]{1,64}", prefix):
        raise ConfigError(f"prefix must be 1 to 64 letters, digits, _ . : or -, not {prefix!r}", param="prefix")
    return prefix


def names_memory(given: Any) -> bool:
    """Whether what was given as store is this process's memory. Raises for a URL of no store."""
    if not isinstance(given, str):
        return False
    scheme, separator, _ = given.partition("://")
    known = ("memory", *SCHEMES, *SQL_SCHEMES)
    if not separator or scheme not in known:
        schemes = ", ".join(f"{name}://" for name in known)
        message = f"store {mask_password(given)!r} is unknown; it starts with one of {schemes}, like {EXAMPLE}"
        raise ConfigError(message, param="store")
    return scheme == "memory"


def names_sql(given: Any) -> bool:
    """Whether what was given as store is a SQL database."""
    return isinstance(given, str) and given.partition("://")[0] in SQL_SCHEMES


def combine_verdicts(slots: Sequence[QuotaSlot], verdicts: Sequence[RuleVerdict]) -> StoreResult:
    """One decision from several rules' verdicts: the refusal with the longest wait, or else the one with least left."""
    shadowed = tuple(i for i, v in enumerate(verdicts) if slots[i].rule.shadow and not v.allowed)
    judged = [i for i, slot in enumerate(slots) if not slot.rule.shadow]
    if not judged:  # shadow rules only: report the figures of the first and allow
        first = verdicts[0]
        decision = Decision(True, slots[0].rule.name, slots[0].quota.capacity, first.remaining, first.reset_after_us, 0)
        return StoreResult(decision, shadowed)
    refused = [i for i in judged if not verdicts[i].allowed]
    if refused:
        at = max(refused, key=lambda i: verdicts[i].retry_after_us)
    else:
        at = min(judged, key=lambda i: verdicts[i].remaining)
    verdict, slot = verdicts[at], slots[at]
    delay_us = 0 if refused else max(verdicts[i].delay_us for i in judged)
    decision = Decision(
        not refused,
        slot.rule.name,
        slot.quota.capacity,
        verdict.remaining,
        verdict.reset_after_us,
        verdict.retry_after_us,
        delay_us,
    )
    return StoreResult(decision, shadowed)
