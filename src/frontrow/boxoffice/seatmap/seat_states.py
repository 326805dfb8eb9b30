"""The truth behind the map: what the claim store says of seats now, and what the organiser keeps back."""

from collections.abc import Callable, Iterable, Sequence

from frontrow.boxoffice.model.claims import ClaimKind, TakenSeat
from frontrow.boxoffice.model.events import Event
from frontrow.boxoffice.model.seats import SeatState
from frontrow.boxoffice.ports.seat_claims import SeatClaims
from frontrow.core.clock import Clock


class ClaimsTruth:
    """A `SeatTruth` over the claim store; a hold that ran out is free at once, whether swept or not.

    `on_taken` hears who has which of the seats that were asked about.
    """

    def __init__(
        self, claims: SeatClaims, event: Event, seats: int, clock: Clock,
        on_taken: Callable[[Iterable[TakenSeat], int], None] | None = None,
    ) -> None:  # fmt: skip
        self._on_taken = on_taken
        self._claims = claims
        self._event = event
        self._seats = seats
        self._clock = clock

    def changed(self, event: Event) -> None:
        """The organiser changed the event: other seats may be kept back."""
        self._event = event

    async def __call__(self, indexes: Sequence[int]) -> bytes:
        """The state of each of `indexes`, which must rise."""
        asked = None if len(indexes) == self._seats else indexes
        now_us = self._clock()
        taken = await self._claims.states(self._event.id, now_us, asked)
        if self._on_taken is not None:
            self._on_taken(taken.values(), now_us)
        states = bytearray(len(indexes))
        for position, index in enumerate(indexes):
            seat = taken.get(index)
            if seat is not None:
                states[position] = SeatState.SOLD if seat.kind is ClaimKind.SOLD else SeatState.HELD
            elif index in self._event.withheld:
                states[position] = SeatState.BLOCKED
        return bytes(states)
