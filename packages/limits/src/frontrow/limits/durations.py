"""Durations that people give, in seconds: what they may be, and what to say of one that is none."""

from typing import Any, Final

from frontrow.core.errors import ConfigError

LONGEST_S: Final = 366 * 86_400.0


def is_seconds(value: Any) -> bool:
    """Whether a value is a number of seconds. True is none, and neither is what is not a number (`nan`)."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def check_seconds(name: str, value: Any, low: float, high: float, *, example: float | None = None) -> float:
    """Return `value` if it is a number of seconds within these bounds, else raise and name the option."""
    if not is_seconds(value) or not low <= value <= high:
        like = "" if example is None else f", like {example:g}"
        message = f"{name} must be from {_plain(low)} to {_plain(high)} seconds{like}; not {value!r:.80}"
        raise ConfigError(message, param=name)
    return float(value)


def _plain(number: float) -> str:
    """Without an exponent, and without a fraction that says nothing."""
    return str(int(number)) if number == int(number) else str(number)
