"""When a call to the payment provider is tried again after an outage (B8). Pure."""

from typing import Final

RETRIES_S: Final = (5, 15, 45, 135)  # after an outage (B8)
WORK_CLAIM_S: Final = 30  # a driver that has saved nothing for this long is taken to be dead
MAX_RETRY_S: Final = 135  # then everything is retried at this pace: a fan's payment as long as the hold lasts


def retry_pause_s(tries: int) -> int:
    """How long to wait after outage number `tries`, counted from 0."""
    return RETRIES_S[tries] if tries < len(RETRIES_S) else MAX_RETRY_S
