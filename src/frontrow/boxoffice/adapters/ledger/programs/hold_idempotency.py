"""Idempotency keys of a batch of holds: a wish whose key is known is answered with the booking it made then.

Of several wishes with one key in a batch the first owns it; the others follow and get its answer. A refused wish
forgets its key, so it may be sent again.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from frontrow.boxoffice.adapters.ledger.programs.bookings import Program
from frontrow.boxoffice.adapters.ledger.programs.hold_replay import Placed, bookings_named, repeated
from frontrow.boxoffice.model.holds import IdempotencyMismatch, NewHold, PlacedHold
from frontrow.boxoffice.ports.queries import Query
from frontrow.core.errors import Overloaded

Key = tuple[str, str]
KEY_TRIES: Final = 3


class Keys:
    """The keys among the wishes of one transaction; `answers` (by a wish's place) is shared with the batch."""

    def __init__(self, wishes: Sequence[NewHold], answers: dict[int, Placed]) -> None:
        self.wishes = wishes
        self.answers = answers
        self.owners: dict[Key, int] = {}  # (fan, idempotency key) -> the wish that brought it first
        self.followers: list[tuple[int, int]] = []  # (wish, the owner of its key)

    def take(self) -> Program[set[int]]:
        """Remember the keys and answer the wishes whose key is known; which wishes follow another."""
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
        for key in missing:  # known when we tried to take it, forgotten when we looked, every time
            self.answers[self.owners.pop(key)] = Overloaded(
                "this request is being answered; try again", retry_after_s=0.1
            )
        return {at for at, _ in self.followers}

    def _answer_known(self, keys: list[Key]) -> Program[list[Key]]:
        """Answer wishes whose key is known; the keys that were forgotten in between are returned."""
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

    def settle(self) -> Program[None]:
        """A refused wish forgets its key; followers get their owner's answer."""
        lost = [key for key, at in self.owners.items() if isinstance(self.answers[at], BaseException)]
        if lost:
            yield Query("forget_keys", lost)
        for at, owner in self.followers:
            answer = self.answers[owner]
            if self.wishes[at].request_hash != self.wishes[owner].request_hash:
                answer = IdempotencyMismatch(self.wishes[at].idempotency_key or "")
            self.answers[at] = replace(answer, repeated=True) if isinstance(answer, PlacedHold) else answer
