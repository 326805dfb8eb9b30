"""Pauses for payments and refunds whose worker met an unexpected error, twice as long each time.

The money may be reserved or owed, so nothing is dropped. It is tried for as long as it is not finished, in the end once
per hour, and every failure is counted, logged and shown (`frontrow_payments_stuck`). A version of the software that
fixes the error finds it due.
"""

from collections import OrderedDict
from typing import Final

from frontrow.boxoffice.payments.model.payments import Payment
from frontrow.boxoffice.payments.model.retry_schedule import WORK_CLAIM_S
from frontrow.boxoffice.refunds.model.refunds import Refund
from frontrow.core.clock import US_PER_S

LONGEST_REST_S: Final = 3600
MAX_REMEMBERED: Final = 10_000


def rest_s(tries: int) -> int:
    """How long a payment is paused after this many failed tries."""
    return min(WORK_CLAIM_S << min(tries, 20), LONGEST_REST_S)


class RestingPayments:
    """Stores until when payments or refunds are paused. The oldest entries are evicted."""

    def __init__(self) -> None:
        self._until_us: OrderedDict[str, tuple[int, int]] = OrderedDict()  # its id -> until when, and failures so far

    def rest(self, payment: Payment | Refund, now_us: int) -> int:
        """Pause this one, and return for how many seconds."""
        failures = self._until_us.pop(payment.id, (0, 0))[1]
        pause_s = rest_s(max(failures, payment.tries))
        self._until_us[payment.id] = (now_us + pause_s * US_PER_S, failures + 1)
        if len(self._until_us) > MAX_REMEMBERED:
            self._until_us.popitem(last=False)
        return pause_s

    def rests(self, id_: str, now_us: int) -> bool:
        """Whether it is paused now."""
        return now_us < self._until_us.get(id_, (0, 0))[0]

    def forget(self, id_: str) -> None:
        """End its pause."""
        self._until_us.pop(id_, None)
