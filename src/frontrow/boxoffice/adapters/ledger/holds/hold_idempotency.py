"""Idempotency keys of a batch of holds: a request with a known key is answered with the booking it made before.

Of several requests with one key in a batch, the first owns the key. The others follow it and get its answer. The key of
a refused request is forgotten, so the request may be sent again.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import Program
from frontrow.boxoffice.adapters.ledger.holds.hold_replay import Placed, bookings_named, repeated
from frontrow.boxoffice.holds.model.holds import IdempotencyMismatch, NewHold, PlacedHold
from frontrow.core.errors import Overloaded

Key = tuple[str, str]
KEY_TRIES: Final = 3


class HoldKeys:
    """The keys of the requests of one transaction. `answers`, by position, is shared with the batch."""

    def __init__(self, wishes: Sequence[NewHold], answers: dict[int, Placed]) -> None:
        self.wishes = wishes
        self.answers = answers
        self.owners: dict[Key, int] = {}  # (fan, idempotency key) -> the first request with it
        self.followers: list[tuple[int, int]] = []  # (request, the owner of its key)

    def take(self) -> Program[set[int]]:
        """Remember the keys and answer requests with a known key. Returns the requests that follow another."""
        for at, wish in enumerate(self.wishes):
            if wish.idempotency_key is not None:
                owner = self.owners.setdefault((wish.fan, wish.idempotency_key), at)
                if owner != at:
                    self.followers.append((at, owner))
        missing = list(self.owners)
        for _ in range(KEY_TRIES):
            if not missing:
                break
            rows = [
                (fan, key, self.wishes[at].request_hash, self.wishes[at].booking_id, self.wishes[at].now_us)
                for (fan, key), at in sorted((key, self.owners[key]) for key in missing)
            ]
            fresh = {(row[0], row[1]) for row in (yield Query("take_keys", rows))}
            missing = yield from self._answer_known([key for key in missing if key not in fresh])
        for key in missing:  # each time known when we tried to take it, and forgotten when we read it
            self.answers[self.owners.pop(key)] = Overloaded(
                "this request is being answered; try again", retry_after_s=0.1
            )
        return {at for at, _ in self.followers}

    def _answer_known(self, keys: list[Key]) -> Program[list[Key]]:
        """Answer requests with a known key. Returns the keys that were forgotten in between."""
        if not keys:
            return []
        rows = yield Query("known_keys", keys)
        bookings = yield from bookings_named({row[3] for row in rows})
        for fan, key, request_hash, booking_id in rows:
            at = self.owners.pop((fan, key))
            if request_hash != self.wishes[at].request_hash:
                self.answers[at] = IdempotencyMismatch(key)
            elif booking_id in bookings:
                self.answers[at] = repeated(self.wishes[at], bookings[booking_id], same_request=True)
        return [key for key in keys if key in self.owners]

    def finish(self) -> Program[None]:
        """Forget the keys of refused requests; give followers their owner's answer."""
        refused = [key for key, at in self.owners.items() if isinstance(self.answers[at], BaseException)]
        if refused:
            yield Query("forget_keys", refused)
        for at, owner in self.followers:
            answer, first = self.answers[owner], self.wishes[owner]
            if self.wishes[at].request_hash != first.request_hash:
                answer = IdempotencyMismatch(self.wishes[at].idempotency_key or "")
            elif isinstance(answer, PlacedHold) and not answer.repeated:
                price = {"amount_minor": first.amount_minor, "price_lines": first.price_lines}
                answer = replace(answer, repeated=True, **price)
            self.answers[at] = answer
