"""Codes that change every 30 seconds, so that a screenshot of a ticket admits nobody, and which events use them."""

import base64
import hashlib
import hmac
from typing import Final

from frontrow.boxoffice.events.ports import Catalogue
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import NotFound

STEP_S: Final = 30
STEPS_TOLERATED: Final = 1  # in both directions: the clocks of phones and gates differ
MAC_CHARS: Final = 8
_MAC_BYTES: Final = 5
MAX_CACHED: Final = 10_000  # events


def ticket_secret(event_secret: bytes, short_id: bytes) -> bytes:
    """The secret of one ticket, for the device of its holder."""
    return hmac.digest(event_secret, short_id, hashlib.sha256)


def rotating_code(secret: bytes, now_us: int) -> str:
    """The 8 characters of this 30 s step."""
    return _mac(secret, now_us // (STEP_S * US_PER_S))


def is_rotating_code(secret: bytes, shown: str, now_us: int) -> bool:
    """Whether `shown` is the code of the current step or of one within the tolerated clock difference."""
    step = now_us // (STEP_S * US_PER_S)
    return any(
        hmac.compare_digest(_mac(secret, near).encode(), shown.encode("utf-8", "replace"))
        for near in range(step - STEPS_TOLERATED, step + STEPS_TOLERATED + 1)
    )


def _mac(secret: bytes, step: int) -> str:
    digest = hmac.digest(secret, max(step, 0).to_bytes(8), hashlib.sha256)
    return base64.b32encode(digest[:_MAC_BYTES]).decode()


class RotatingCodes:
    """Reads the setting of an event once and caches it: a published event cannot change it."""

    def __init__(self, events: Catalogue) -> None:
        self._events = events
        self._cached: dict[str, bool] = {}

    async def uses_rotating_codes(self, event_id: str) -> bool:
        """Whether the tickets of this event show a code that changes."""
        rotating = self._cached.get(event_id)
        if rotating is None:
            try:
                rotating = (await self._events.event(event_id)).rotating_codes
            except NotFound:  # sold without a catalogue: the default
                return False
            if len(self._cached) >= MAX_CACHED:
                self._cached.clear()
            self._cached[event_id] = rotating
        return rotating
