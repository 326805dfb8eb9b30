"""When a delivery that failed is tried again, and when it is given up. Pure."""

import zlib
from typing import Final

from frontrow.boxoffice.messages.model.messages import MAX_ERROR_CHARS, Delivery, DeliveryResult, DeliveryState, Outcome
from frontrow.core.clock import US_PER_S

FIRST_PAUSE_S: Final = 5
LONGEST_PAUSE_S: Final = 4 * 3600
OWN_PAUSE_S: Final = 1  # after an outage of our own stores


def apply_outcome(delivery: Delivery, outcome: Outcome, now_us: int, give_up_after_s: int) -> DeliveryResult:
    """The delivery after an attempt: sent, given up, or waiting for a pause that doubles each time.

    The pause is spread by a fifth, the same for the same delivery, so that receivers are not hit in step. While our own
    stores are away nothing is tried, so no attempt is counted and nothing is given up.
    """
    if not outcome.tried:
        next_at_us = now_us + OWN_PAUSE_S * US_PER_S
        reason = outcome.reason[:MAX_ERROR_CHARS]
        return DeliveryResult(delivery.number, DeliveryState.WAITING, delivery.attempts, next_at_us, reason)
    attempts = delivery.attempts + 1
    reason = outcome.reason[:MAX_ERROR_CHARS]
    if outcome.sent:
        return DeliveryResult(delivery.number, DeliveryState.SENT, attempts, now_us)
    pause_s = min(FIRST_PAUSE_S * 2 ** min(attempts - 1, 20), LONGEST_PAUSE_S)
    spread = zlib.crc32(f"{delivery.dedupe}:{attempts}".encode()) % 200
    next_at_us = now_us + pause_s * US_PER_S * (1000 + spread) // 1000
    if outcome.final or next_at_us >= delivery.created_at_us + give_up_after_s * US_PER_S:
        return DeliveryResult(delivery.number, DeliveryState.GIVEN_UP, attempts, now_us, reason)
    return DeliveryResult(delivery.number, DeliveryState.WAITING, attempts, next_at_us, reason)
