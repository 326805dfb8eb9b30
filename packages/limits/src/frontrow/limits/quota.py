"""The limiter's values: `Quota` (how much), `Rule` (where it applies), `Decision` (the result), and its errors.

InvalidInput
├── InvalidQuota      the quota makes no sense: zero, negative, unknown unit or algorithm
├── InvalidKey        the key is missing, empty or of the wrong type
└── InvalidCost       the cost is not a positive whole number
    └── CostTooLarge  more than the quota could ever allow, so waiting would not help
Refused
└── Throttled         `acquire` ran out of time; carries the last decision
Unavailable
└── StoreDown         the store did not answer in time (`on_store_down` decides; `check` does not raise it)
"""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, NamedTuple, TypeVar

from frontrow.core.clock import US_PER_S
from frontrow.core.errors import InvalidInput, Refused, Unavailable
from frontrow.limits.given_flags import check_flag
from frontrow.limits.quota_mistakes import EXAMPLE, quota_mistake, thousands_mistake

T = TypeVar("T")
Names = tuple[str, ...] | list[str]  # not Sequence: a text is a sequence of texts too

Algorithm = Literal["fixed_window", "sliding_log", "sliding_counter", "token_bucket", "leaky_bucket", "leaky_queue"]
OnStoreDown = Literal["open", "closed", "local"]
WINDOWS: tuple[Algorithm, ...] = ("fixed_window", "sliding_log", "sliding_counter")
BUCKETS: tuple[Algorithm, ...] = ("token_bucket", "leaky_bucket", "leaky_queue")
ALGORITHMS: tuple[Algorithm, ...] = (*WINDOWS, *BUCKETS)
ON_STORE_DOWN: tuple[OnStoreDown, ...] = ("open", "closed", "local")

MAX_LIMIT = 1 << 31
DAY_US = 86_400 * US_PER_S
MIN_PERIOD_US, MAX_PERIOD_US = 1, 366 * DAY_US
LONGEST_MONTH_US = 31 * DAY_US
EXACT = 1 << 52  # Lua's doubles represent whole numbers below this exactly, with one bit to spare for an addition

_UNITS = {  # every way to write a unit -> its length in µs; 0 is a calendar month
    name: length_us
    for names, length_us in (
        ("us µs μs usec usecs microsecond microseconds", 1),
        ("ms msec msecs millisecond milliseconds", 1000),
        ("s sec secs second seconds", US_PER_S),
        ("m min mins minute minutes", 60 * US_PER_S),
        ("h hr hrs hour hours", 3600 * US_PER_S),
        ("d day days", DAY_US),
        ("w wk wks week weeks", 7 * DAY_US),
        ("mo month months", 0),
    )
    for name in names.split()
}
_QUOTA_TEXT = re.compile(
    r"(?P<limit>-?\d[\d_]*)\s*(?:/|per\b)\s*(?P<count>\d+)?\s*(?P<unit>[a-zµμ]+)"
    r"(?:(?:[\s,]+burst[\s:=]*(?P<burst>\d+))?(?:\s+(?P<algorithm>[a-z]+_[a-z]+))?"
    r"|\s+(?P<algorithm_first>[a-z]+_[a-z]+)[\s,]+burst[\s:=]*(?P<burst_last>\d+))",
    re.IGNORECASE,
)
_BETWEEN_QUOTAS = re.compile(r"[;,|\n](?!\s*burst\b)", re.IGNORECASE)


class InvalidQuota(InvalidInput):
    code = "invalid_quota"


class InvalidKey(InvalidInput):
    code = "invalid_key"


class InvalidCost(InvalidInput):
    code = "invalid_cost"


class CostTooLarge(InvalidCost):
    code = "cost_too_large"


class StoreDown(Unavailable):
    code = "limit_store_down"


@dataclass(frozen=True, slots=True)
class Quota:
    """`limit` units per `period_us`, by one of six algorithms. Buckets hold `burst` units (default: `limit`).

    With `calendar_month` the windows are the months of the calendar in UTC, and `period_us` is the longest of them.
    """

    limit: int
    period_us: int
    algorithm: Algorithm = "sliding_counter"
    burst: int = 0  # 0 means the same as `limit`
    calendar_month: bool = False

    capacity: int = field(init=False, repr=False, compare=False)
    """The most that can be allowed at one instant. A higher cost can never fit."""
    grain_us: int = field(init=False, repr=False, compare=False)
    """The time resolution of the sliding counter: 1 µs unless `limit × period` would exceed exact arithmetic."""
    drip: tuple[int, int] = field(init=False, repr=False, compare=False)
    """A bucket's rate as whole numbers (leak, unit): each µs drains `leak`, one unit of cost weighs `unit`."""
    most_owed: int = field(init=False, repr=False, compare=False)
    """The most that a bucket can owe after a charge that did not fit: twice what it holds, if that is exact."""
    life_us: int = field(init=False, repr=False, compare=False)
    """After this long without a change, a key's state equals no state."""

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            choices = ", ".join(ALGORITHMS)
            raise InvalidQuota(f"algorithm {self.algorithm!r} is unknown; choose one of {choices}", param="algorithm")
        _whole("limit", self.limit, 1, MAX_LIMIT - 1, "10 for ten per period")
        _whole("period_us", self.period_us, MIN_PERIOD_US, MAX_PERIOD_US, "60_000_000 for a minute")
        if self.calendar_month and (self.algorithm != "fixed_window" or self.period_us != LONGEST_MONTH_US):
            message = f'a calendar month belongs to fixed_window, not {self.algorithm}; write "{self.limit}/30 days"'
            raise InvalidQuota(message, param="algorithm")
        if self.algorithm in WINDOWS and self.burst not in (0, self.limit):
            message = f"burst belongs to {', '.join(BUCKETS)}; {self.algorithm} has none, leave it out"
            raise InvalidQuota(message, param="burst")
        capacity = self.burst if self.burst else self.limit
        _whole("burst", capacity, 1, MAX_LIMIT - 1, "20 for twenty at once")
        drip = _drip(self.limit, self.period_us, capacity)
        if self.is_bucket and capacity * drip[1] > 2 * EXACT:
            message = f"a burst of {capacity} at {self.rate} would take centuries to drain"
            raise InvalidQuota(f"{message}; lower the burst or raise the rate, e.g. burst={self.limit}", param="burst")
        grain_us = _grain_us(self.limit, self.period_us)
        if self.algorithm == "sliding_counter" and self.period_us % grain_us:
            message = f"a limit of {self.limit} is too large for sliding_counter over {self.period_us} µs"
            raise InvalidQuota(f"{message}; take a multiple of {grain_us} µs, or fixed_window", param="period_us")
        for name, value in (
            ("capacity", capacity),
            ("grain_us", grain_us),
            ("drip", drip),
            ("most_owed", _most_owed(capacity * drip[1])),
            ("life_us", self._life_us(capacity, *drip)),
        ):
            object.__setattr__(self, name, value)

    def _life_us(self, capacity: int, leak: int, unit: int) -> int:
        if self.is_bucket:
            return -(-capacity * unit // leak)
        return 2 * self.period_us if self.algorithm == "sliding_counter" else self.period_us

    @classmethod
    def parse(cls, text: str, *, algorithm: Algorithm | None = None, burst: int | None = None) -> "Quota":
        """A quota from text like `100/minute`, `5/100ms`, `1000 per hour`, `10/s burst 20` or `5000/month`.

        Unless `algorithm` or the text names one, it is `sliding_counter`; with a burst, `token_bucket`; for a calendar
        month, `fixed_window`.
        """
        match = _QUOTA_TEXT.fullmatch(text.strip()) if isinstance(text, str) else None
        if match is None:
            _check_thousands(text)
            if isinstance(text, str) and len(_BETWEEN_QUOTAS.findall(text)):
                message = f"{text!r} holds several quotas where one belongs; give one, like {EXAMPLE}"
                raise InvalidQuota(message, param="quota")
            raise InvalidQuota(quota_mistake(text, ALGORITHMS), param="quota")
        period_us, calendar_month = _period_us(text, match["count"], match["unit"])
        written, named = match["burst"] or match["burst_last"], match["algorithm"] or match["algorithm_first"]
        burst = _one_of("burst", text, int(written) if written else None, burst)
        if burst is not None:
            _whole("burst", burst, 1, MAX_LIMIT - 1, "20 for twenty at once")
        chosen: Any = _one_of("algorithm", text, named.lower() if named else None, algorithm)
        fitting: Algorithm = (
            "fixed_window" if calendar_month else "token_bucket" if burst is not None else "sliding_counter"
        )
        return cls(int(match["limit"]), period_us, chosen or fitting, burst or 0, calendar_month)

    @classmethod
    def parse_all(
        cls, text: str, *, algorithm: Algorithm | None = None, burst: int | None = None
    ) -> "tuple[Quota, ...]":
        """The quotas of a text like `1/s; 100/h`, separated by semicolons, commas, bars or new lines."""
        _check_thousands(text)
        parts = [part for part in _BETWEEN_QUOTAS.split(text) if part.strip()] if isinstance(text, str) else []
        return tuple(cls.parse(part, algorithm=algorithm, burst=burst) for part in parts or [text])

    @property
    def period_s(self) -> float:
        return self.period_us / US_PER_S

    @property
    def is_bucket(self) -> bool:
        return self.algorithm in BUCKETS

    def check_cost(self, cost: int) -> int:
        """Return `cost` if it is a whole number that could ever fit, else raise."""
        if type(cost) is not int or cost < 1:
            raise InvalidCost(f"cost must be a whole number of at least 1, not {shown(cost)}", param="cost")
        if cost > self.capacity:
            message = (
                f"a cost of {cost} can never fit {self}: at most {self.capacity} at once; split it or raise the quota"
            )
            raise CostTooLarge(message, param="cost")
        return cost

    def __str__(self) -> str:
        """The text that `parse` reads as this quota."""
        return self.rate + (f" burst {self.burst}" if self.burst else "") + f" {self.algorithm}"

    @property
    def rate(self) -> str:
        """The limit and the period as text, like `5/100ms`."""
        if self.calendar_month:
            return f"{self.limit}/month"
        for length_us, unit in ((US_PER_S, "s"), (1000, "ms")):
            if self.period_us % length_us == 0:
                return f"{self.limit}/{self.period_us // length_us}{unit}"
        return f"{self.limit}/{self.period_us}us"


def _check_thousands(text: object) -> None:
    """`1,000/hour` would be read as two quotas."""
    mistake = thousands_mistake(text) if isinstance(text, str) else None
    if mistake is not None:
        raise InvalidQuota(mistake, param="quota")


def _period_us(text: str, count: str | None, unit: str) -> tuple[int, bool]:
    """The period that a text names, and whether it is a calendar month."""
    length_us = _UNITS.get(unit.lower())
    if length_us is None:
        units = "us, ms, s, minute, hour, day, week or month"
        raise InvalidQuota(f"{text!r}: {unit!r} is no unit of time; write {units}, like {EXAMPLE}", param="quota")
    if length_us:
        return int(count or 1) * length_us, False
    if int(count or 1) != 1:
        message = f'{text!r}: only one calendar month can be counted; write "/month", or days like "/90 days"'
        raise InvalidQuota(message, param="quota")
    return LONGEST_MONTH_US, True


def _one_of(name: str, text: str, written: T | None, given: T | None) -> T | None:
    """What the text says or what was given beside it. They may agree, not differ."""
    if written is not None and given is not None and written != given:
        raise InvalidQuota(f"{text!r} and {name}={given!r} differ; say the {name} once", param=name)
    return written if given is None else given


def _most_owed(full: int) -> int:
    return max(full, min(2 * full, 2 * EXACT - full))


def _grain_us(limit: int, period_us: int) -> int:
    grain = 1
    while 2 * limit * (period_us // grain) >= EXACT:
        grain *= 10
    return grain


def _drip(limit: int, period_us: int, capacity: int) -> tuple[int, int]:
    """Exactly `limit / period` if that fits exact arithmetic, else the nearest slower rate that does."""
    weight = Fraction(period_us, limit)
    most = EXACT // capacity
    if weight.numerator <= most:
        return weight.denominator, weight.numerator
    leak = max(1, int(most / weight) - 1)
    return leak, -((-weight.numerator * leak) // weight.denominator)


def _whole(name: str, value: object, low: int, high: int, example: str) -> None:
    if type(value) is not int or not low <= value <= high:
        raise InvalidQuota(
            f"{name} must be a whole number from {low} to {high}, not {value!r}; e.g. {example}", param=name
        )


def to_quota(given: object, where: str) -> Quota:
    """A quota from a quota or from the text of one."""
    if isinstance(given, Quota):
        return given
    if not isinstance(given, str):
        raise InvalidQuota(f"{where} must be like {EXAMPLE} or a Quota, not {given!r:.80}", param="quota")
    try:
        return Quota.parse(given)
    except InvalidQuota as error:
        raise InvalidQuota(f"{where}: {error.message}", param=error.param) from None


def shown(value: object) -> str:
    """A wrong value in an error message. Says what was forgotten: to await a coroutine, or to call a function."""
    if inspect.iscoroutine(value):
        value.close()  # or Python warns that it was never awaited
        return f"the coroutine of {value.__qualname__}; write await before it"
    if inspect.isroutine(value):
        return f"the function {value.__qualname__}; call it, like {value.__name__}(…)"
    return f"{value!r:.80}"


def set_fields(frozen: object, **fields: object) -> None:
    """Set the fields of a frozen object that is being made."""
    for name, value in fields.items():
        object.__setattr__(frozen, name, value)


@dataclass(frozen=True, slots=True, init=False)
class Rule:
    """A named quota and the parts of the key it counts by. Quotas may be texts: `Rule("burst", "10/second")`.

    `per=None` counts by the whole key, `per=("user", "endpoint")` by those parts of a mapping key, and `per=()` counts
    everybody together. `tiers` gives some keys another quota: `tier_of` returns the tier of a key (unknown tiers get
    `quota`). A `shadow` rule counts and reports but never refuses. `lease` > 1 charges that many units to a shared
    store at once and spends them in this process (for one hot global key). `on_store_down` overrides the limiter's
    policy. `namespace` keeps rules of one name apart in a shared store.
    """

    name: str
    quota: Quota
    per: tuple[str, ...] | None
    tiers: Mapping[str, Quota]
    tier_of: Callable[[Any], str | None] | None
    shadow: bool
    lease: int
    on_store_down: OnStoreDown | None
    namespace: str

    def __init__(
        self,
        name: str,
        quota: Quota | str,
        per: Names | None = None,
        tiers: Mapping[str, Quota | str] | None = None,
        tier_of: Callable[[Any], str | None] | None = None,
        shadow: bool = False,
        lease: int = 1,
        on_store_down: OnStoreDown | None = None,
        namespace: str = "",
    ) -> None:
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]{0,63}", name):
            wanted = "1 to 64 letters, digits, _ . or -, starting with a letter, like 'burst'"
            raise InvalidQuota(f"a rule's name is {wanted}; not {name!r}", param="name")
        parts: Any = per
        if isinstance(parts, str) or not all(isinstance(part, str) and part for part in parts or ()):
            raise InvalidQuota(f"rule {name}: per must be a tuple of part names like ('user',)", param="per")
        set_fields(
            self,
            name=name,
            quota=to_quota(quota, f"rule {name}: quota"),
            per=None if per is None else tuple(per),
            tiers={tier: to_quota(of_tier, f"rule {name}: tiers[{tier!r}]") for tier, of_tier in (tiers or {}).items()},
            tier_of=tier_of,
            shadow=shadow,
            lease=lease,
            on_store_down=on_store_down,
            namespace=namespace,
        )
        if self.on_store_down not in (None, *ON_STORE_DOWN):
            message = f"rule {self.name}: on_store_down must be one of {', '.join(ON_STORE_DOWN)}"
            raise InvalidQuota(message, param="on_store_down")
        if bool(self.tiers) != (self.tier_of is not None):
            raise InvalidQuota(f"rule {self.name}: tiers and tier_of come together", param="tiers")
        check_flag("shadow", shadow, f"rule {name}")
        self._check_lease()

    def _check_lease(self) -> None:
        if type(self.lease) is not int or self.lease < 1:
            raise InvalidQuota(f"rule {self.name}: lease must be a whole number of at least 1", param="lease")
        if self.lease > 1 and (self.quota.algorithm != "fixed_window" or self.tiers or self.shadow):
            message = (
                f"rule {self.name}: a lease needs algorithm fixed_window, no tiers, no shadow "
                "(see docs/limits-reference.md)"
            )
            raise InvalidQuota(message, param="lease")

    def variants(self) -> dict[str, Quota]:
        """Every quota that this rule may apply, by tier. The rule's own quota has the empty name."""
        return {"": self.quota, **self.tiers}


def check_time(now_us: int) -> int:
    """Return `now_us` if it is a time that every store counts with exactly, else raise."""
    if type(now_us) is not int or not 0 <= now_us < EXACT:
        message = "now_us must be a whole number of microseconds since 1970, like time.time_ns() // 1000"
        raise InvalidInput(f"{message}; not {now_us!r:.80}", param="now_us")
    return now_us


class Decision(NamedTuple):
    """The result of one check. With several rules it names the one that refused, or else the one with least left."""

    allowed: bool
    rule: str
    limit: int
    remaining: int
    reset_after_us: int
    retry_after_us: int
    delay_us: int = 0
    source: str = "store"  # "store", or "local", "open" or "closed" when the store was down

    def __bool__(self) -> bool:
        return self.allowed

    @property
    def reset_after_s(self) -> float:
        """Seconds until the whole quota is available again, if there are no requests meanwhile."""
        return self.reset_after_us / US_PER_S

    @property
    def retry_after_s(self) -> float:
        """Seconds until the same request would be allowed, or 0 if it was."""
        return self.retry_after_us / US_PER_S

    @property
    def delay_s(self) -> float:
        """Seconds to wait before doing the allowed work. Only `leaky_queue` gives more than 0."""
        return self.delay_us / US_PER_S


_UNKNOWN_DECISION = Decision(False, "unknown", 0, 0, 0, 0)


class Throttled(Refused):
    """`acquire` was not allowed in time. `decision` is the last one.

    Who keeps only an error's text, as Celery's JSON results do, builds it again without the decision.
    """

    code = "throttled"
    http_status = 429

    def __init__(self, message: str, decision: Decision = _UNKNOWN_DECISION) -> None:
        super().__init__(message, retry_after_s=decision.retry_after_s, rule=decision.rule)
        self.decision = decision

    def __reduce__(self) -> tuple[type["Throttled"], tuple[str, Decision]]:
        """What pickle needs to build the error again, in another process for example."""
        return type(self), (self.message, self.decision)
