"""Reads how long a server asks a client to wait: `Retry-After`, and the `RateLimit` fields of several drafts.

Only whole, sensible numbers are believed. What cannot be read is ignored, and the next field is tried.
"""

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

EPOCH_FROM_S = 1_000_000_000  # a reset above this is a time, not a duration
MAX_PAUSE_S = 366 * 86_400.0
_NUMBER = re.compile(r"\d{1,300}(?:\.\d{1,9})?")
_RESETS = (re.compile(r"(?:^|[;,\s])t=(\d{1,12})\b"), re.compile(r"(?:^|[;,\s])reset=(\d{1,12})\b"))


def read_pause_s(headers: Mapping[str, str], now_s: float) -> float | None:
    """Seconds to wait before the next request, or None if the headers do not say. `headers` ignores case."""
    asked_s = _retry_after_s(headers.get("retry-after"), now_s)
    if asked_s is None:
        asked_s = _rate_limit_s(headers.get("ratelimit"))
    for name in ("ratelimit-reset", "x-ratelimit-reset"):
        if asked_s is None:
            asked_s = _reset_s(headers.get(name), now_s)
    return None if asked_s is None else min(max(0.0, asked_s), MAX_PAUSE_S)


def _retry_after_s(text: str | None, now_s: float) -> float | None:
    """A number of seconds or a date."""
    if text is None:
        return None
    if _NUMBER.fullmatch(text.strip()):
        return float(text)
    try:
        return parsedate_to_datetime(text).timestamp() - now_s
    except (ValueError, OverflowError):
        return None


def _rate_limit_s(text: str | None) -> float | None:
    """The longest of `"burst";r=0;t=30, "daily";r=0;t=600` or `limit=100, remaining=0, reset=30`."""
    found = [int(number) for pattern in _RESETS for number in pattern.findall(text or "")]
    return float(max(found)) if found else None


def _reset_s(text: str | None, now_s: float) -> float | None:
    """Seconds from now, or a time in seconds since 1970."""
    if text is None or not _NUMBER.fullmatch(text.strip()):
        return None
    number = float(text)
    return number - now_s if number >= EPOCH_FROM_S else number
