"""A refund: money to pay back for a part of a booking, and the table of its states (B12). Pure."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec
from msgspec.structs import replace

from frontrow.boxoffice.payments.model.payments import call_key
from frontrow.boxoffice.payments.model.retry_schedule import retry_pause_s


class RefundState(StrEnum):
    """`asked` includes the unknown outcome. `pending`: the provider accepted it, the bank has not. `moot`: nothing was
    captured. `failed`: the money is still owed, and a person tries again."""

    ASKED = "asked"
    PENDING = "pending"
    DONE = "done"
    MOOT = "moot"
    FAILED = "failed"


_REFUND_TABLE: Final = """
asked    pending done moot failed
pending  done failed
done     failed
moot     -
failed   asked pending done
"""  # a bank may return a refund that succeeded; a failed one may be tried again, or made by hand
NEXT_REFUND: Final[Mapping[RefundState, frozenset[RefundState]]] = {
    RefundState(words[0]): frozenset(RefundState(word) for word in words[1:] if word != "-")
    for words in (line.split() for line in _REFUND_TABLE.strip().splitlines())
}
UNFINISHED_REFUNDS: Final = frozenset({RefundState.ASKED, RefundState.PENDING})


class BookingSeen(msgspec.Struct, frozen=True):
    """The booking as it was when a refund was worked out. If it has changed, the refund is worked out again."""

    worth_minor: int
    used: tuple[tuple[str, int], ...] = ()  # add-ons that were redeemed, and how many


class Refund(msgspec.Struct, frozen=True, gc=False):
    """Money to refund for a part of a booking, less `fee_minor`, which the organiser keeps.

    `lines` say what for (refunds.model.refund_lines): `seats`, add-ons, or all that was left.
    """

    id: str
    booking_id: str
    payment_id: str
    number: int  # the booking's first refund is 1
    amount_minor: int
    currency: str
    seats: tuple[int, ...]
    fee_minor: int = 0
    state: RefundState = RefundState.ASKED
    ref: str = ""
    reason: str = ""
    call: int = 1
    tries: int = 0
    retry_at_us: int = 0
    version: int = 1
    created_at_us: int = 0
    changed_at_us: int = 0
    failure: str = ""  # why the provider could not refund
    lines: str = ""  # what the amount consists of; empty: made before lines were stored, or by another way

    def moved(self, state: RefundState, now_us: int, *, retry_at_us: int = 0, **changes: object) -> "Refund":
        """The next version in `state`; a step that is not in the table is a bug."""
        assert state is self.state or state in NEXT_REFUND[self.state], f"a {self.state} refund cannot become {state}"
        return replace(
            self, state=state, changed_at_us=now_us, retry_at_us=retry_at_us, version=self.version + 1, **changes
        )

    def retried(self, now_us: int) -> "Refund":
        """A failed refund, due again under a new key. With `tries` set, the provider is read before it is called."""
        return self.moved(RefundState.ASKED, now_us, retry_at_us=now_us, call=self.call + 1, tries=1)

    @property
    def worth_minor(self) -> int:
        """By how much the booking became worth less, fee included."""
        return self.amount_minor + self.fee_minor

    @property
    def promised_minor(self) -> int:
        """How much of the payment this refund uses, fee included. 0 if nothing was captured."""
        return 0 if self.state is RefundState.MOOT else self.worth_minor

    def retry_later(self, now_us: int, *, answered: bool) -> "Refund":
        """The next version after an outage, as for a payment."""
        return replace(
            self,
            tries=self.tries + 1,
            call=self.call + answered,
            retry_at_us=now_us + retry_pause_s(self.tries) * 1_000_000,
            changed_at_us=now_us,
            version=self.version + 1,
        )

    def key(self) -> str:
        return call_key(self.booking_id, "refund", self.number, self.call)
