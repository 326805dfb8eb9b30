"""How long a request waits for its store, and the bounds of that time."""

from typing import Any

from frontrow.core.errors import ConfigError
from frontrow.limits.durations import is_seconds

DEFAULT_DEADLINE_S = 0.025

MIN_DEADLINE_S = 0.001
MAX_DEADLINE_S = 10.0  # while a store is down, each request may wait for so long


def check_deadline(deadline_s: Any) -> float:
    """Return `deadline_s` if it is a time that a request can wait for a store, else raise."""
    if not is_seconds(deadline_s) or not MIN_DEADLINE_S <= deadline_s <= MAX_DEADLINE_S:
        message = f"deadline_s must be from {MIN_DEADLINE_S} to {MAX_DEADLINE_S:g} seconds, not {deadline_s!r}"
        if is_seconds(deadline_s) and MAX_DEADLINE_S < deadline_s <= 1000 * MAX_DEADLINE_S:
            message += f"; {deadline_s:g} milliseconds are deadline_s={deadline_s / 1000:g}"
        raise ConfigError(message, param="deadline_s")
    return float(deadline_s)
