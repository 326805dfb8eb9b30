"""Response headers: `X-RateLimit-*` and the IETF `RateLimit` and `RateLimit-Policy`. Also RFC 9457 bodies.

The IETF draft still changes, so its dialect is a setting:

    draft-11  RateLimit-Policy: "burst";q=100;w=60      RateLimit: "burst";r=50;t=30
    draft-07  RateLimit-Policy: 100;w=60                RateLimit: limit=100, remaining=50, reset=30
    draft-06  RateLimit-Policy: 100;w=60                RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset
    none      only X-RateLimit-*

Seconds are rounded up, so a client that follows them is never early. Whatever does not change between requests is built
once.
"""

import json
import time
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any, Literal, NamedTuple

from frontrow.core.clock import US_PER_S
from frontrow.core.errors import ConfigError
from frontrow.limits.quota import Decision, Quota

Field = tuple[bytes, bytes]

Dialect = Literal["draft-11", "draft-07", "draft-06", "none"]
ResetForm = Literal["epoch", "delta"]
DIALECTS: tuple[Dialect, ...] = ("draft-11", "draft-07", "draft-06", "none")
RESETS: tuple[ResetForm, ...] = ("epoch", "delta")
FIELDS = "frontrow.limits.fields"
"""The key, in an ASGI scope or WSGI environ, of the headers that the outermost middleware will write."""
ROUTE_FIELDS = "frontrow.limits.route_fields"
"""The key of the headers of decorators and dependencies, which write them themselves if there is no middleware."""
NS_PER_S = 1_000_000_000
QUOTA_EXCEEDED = "https://iana.org/assignments/http-problem-types#quota-exceeded"
REDUCED_CAPACITY = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
_INTS = tuple(b"%d" % number for number in range(4096))
_UNTIL = tuple(b";t=" + number for number in _INTS)
_KNOWN = len(_INTS)


class QuotaPolicy(NamedTuple):
    """What the headers say about one rule: its name, how many requests, in how many seconds."""

    rule: str
    limit: int
    window_s: int

    @classmethod
    def of(cls, rule: str, quota: Quota) -> "QuotaPolicy":
        """A bucket is described by its capacity and the time to refill it: the same rate, and r never exceeds q."""
        return cls(rule, quota.capacity, ceil_s(quota.period_us * quota.capacity // quota.limit))


def whole(number: int) -> bytes:
    """A non-negative integer as bytes. Small ones are precomputed."""
    return _INTS[number] if 0 <= number < _KNOWN else b"%d" % number


def quoted(name: str) -> bytes:
    """A structured-field string. Characters other than printable ASCII become `?`."""
    plain = "".join(char if " " <= char <= "~" else "?" for char in name)
    return b'"' + plain.replace("\\", "\\\\").replace('"', '\\"').encode() + b'"'


class HeaderBuilder:
    """Builds the headers for one set of rules. Only `of(decision)` runs per request.

    The policies of `unannounced` (shadow) rules are not sent, but a decision can name one when the store is down.
    """

    def __init__(
        self,
        policies: Sequence[QuotaPolicy],
        unannounced: Sequence[QuotaPolicy] = (),
        *,
        dialect: Dialect = "draft-11",
        reset: ResetForm = "epoch",
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        if dialect not in DIALECTS:
            raise ConfigError(f"dialect must be one of {', '.join(DIALECTS)}, not {dialect!r}", param="dialect")
        if reset not in RESETS:
            raise ConfigError(f"reset must be one of {', '.join(RESETS)}, not {reset!r}", param="reset")
        self._wall_ns = wall_ns if reset == "epoch" else None
        self._ready = {policy.rule: _ready(policy) for policy in (*unannounced, *policies)}
        self._cached_reset: tuple[int, int, Field] = (0, 0, (b"", b""))  # from, to (ns), and the header of that second
        self._policy = (b"ratelimit-policy", b", ".join(_policy(policy, dialect) for policy in policies))
        self.of: Callable[[Decision], list[Field]] = {
            "draft-11": self._of_11,
            "draft-07": self._of_07,
            "draft-06": self._of_06,
            "none": self._of_x,
        }[dialect]

    def _of_11(self, decision: Decision) -> list[Field]:
        _, rule, _, left, reset_us, retry_us, _, _ = decision
        limit, start = self._ready[rule]
        remaining = _INTS[left] if left < _KNOWN else b"%d" % left
        # the draft forbids a Retry-After before the end of t, so a refusal gives the same time in both
        until_s = -(-(retry_us or reset_us) // US_PER_S)
        until = _UNTIL[until_s] if until_s < _KNOWN else b";t=%d" % until_s
        reset_ns = reset_us * 1000 if self._wall_ns is None else reset_us * 1000 + self._wall_ns()
        from_ns, to_ns, reset = self._cached_reset
        if not from_ns < reset_ns <= to_ns:  # many requests of one second share the same reset time
            reset_s = -(-reset_ns // NS_PER_S)
            reset = (b"x-ratelimit-reset", b"%d" % reset_s)
            self._cached_reset = ((reset_s - 1) * NS_PER_S, reset_s * NS_PER_S, reset)
        return [
            limit,
            (b"x-ratelimit-remaining", remaining),
            reset,
            (b"ratelimit", start + remaining + until),
            self._policy,
        ]

    def _reset_s(self, reset_us: int) -> int:
        return -(-(reset_us * 1000 + (self._wall_ns() if self._wall_ns is not None else 0)) // NS_PER_S)

    def _of_x(self, decision: Decision) -> list[Field]:
        return [
            (b"x-ratelimit-limit", whole(decision.limit)),
            (b"x-ratelimit-remaining", whole(decision.remaining)),
            (b"x-ratelimit-reset", whole(self._reset_s(decision.reset_after_us))),
        ]

    def _of_07(self, decision: Decision) -> list[Field]:
        figures = (decision.limit, decision.remaining, _until_s(decision))
        return [*self._of_x(decision), (b"ratelimit", b"limit=%d, remaining=%d, reset=%d" % figures), self._policy]

    def _of_06(self, decision: Decision) -> list[Field]:
        return [
            *self._of_x(decision),
            (b"ratelimit-limit", whole(decision.limit)),
            (b"ratelimit-remaining", whole(decision.remaining)),
            (b"ratelimit-reset", whole(_until_s(decision))),
            self._policy,
        ]


def _ready(policy: QuotaPolicy) -> tuple[Field, bytes]:
    """What never changes about a rule: the header with its limit, and the start of its `RateLimit`."""
    return (b"x-ratelimit-limit", whole(policy.limit)), quoted(policy.rule) + b";r="


class ToldFields:
    """The headers of one limit among those of all limits that a request passes. The tightest are written, once.

    `state` is the ASGI scope or WSGI environ of the request. `key` is `FIELDS` for a middleware.
    """

    def __init__(self, state: MutableMapping[str, Any], fields: list[Field], key: str = ROUTE_FIELDS) -> None:
        self._is_inside = FIELDS in state
        self._all: list[list[Field]] = state.setdefault(FIELDS if self._is_inside else key, [])
        self._all.append(fields)
        self._at = len(self._all) - 1

    @classmethod
    def at(cls, all_fields: list[list[Field]], place: int) -> "ToldFields":
        """The headers that stand at a place already."""
        told = cls.__new__(cls)
        told._is_inside, told._all, told._at = False, all_fields, place
        return told

    def replace(self, fields: list[Field]) -> None:
        """Take other headers in place of this limit's."""
        self._all[self._at] = fields

    def to_write(self) -> list[Field]:
        """The headers to write now: none, if a middleware outside this limit writes them."""
        return [] if self._is_inside else tightest(self._all)


def tightest(told: Sequence[list[Field]]) -> list[Field]:
    """The headers of the limit with least left. Every dialect puts `X-RateLimit-Remaining` second."""
    return told[0] if len(told) == 1 else min(told, key=lambda fields: int(fields[1][1]))


def ceil_s(us: int) -> int:
    """Whole seconds, rounded up."""
    return -(-us // US_PER_S)


def retry_s(decision: Decision) -> int:
    """Seconds until a refused request may come again, for people and for `Retry-After`."""
    return max(1, ceil_s(decision.retry_after_us))  # 0 would invite the client back at once


def _until_s(decision: Decision) -> int:
    return ceil_s(decision.retry_after_us or decision.reset_after_us)


def _policy(policy: QuotaPolicy, dialect: str) -> bytes:
    if dialect == "draft-11":
        return b"%b;q=%d;w=%d" % (quoted(policy.rule), policy.limit, policy.window_s)
    return b"%d;w=%d" % (policy.limit, policy.window_s)


def as_text(fields: Sequence[Field]) -> list[tuple[str, str]]:
    """Headers as WSGI and most frameworks want them."""
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in fields]


def problem(status: int, kind: str, title: str, detail: str, more: Mapping[str, object] | None = None) -> bytes:
    """An RFC 9457 body."""
    return json.dumps({"type": kind, "title": title, "status": status, "detail": detail, **(more or {})}).encode()
