"""Reads seat states for the map: from the claim store, and from the seats the organiser withholds."""

from collections.abc import Callable, Iterable, Sequence

from frontrow.boxoffice.model.claims import ClaimKind, TakenSeat
from frontrow.boxoffice.model.events import Event
from frontrow.boxoffice.model.seats import SeatState
from frontrow.boxoffice.ports.seat_claims import SeatClaims
from frontrow.core.clock import Clock


class ClaimStates:
    """A `ReadStates` over the claim store. An expired hold is free at once, whether swept or not.

    `on_taken` is called with the owners of the taken seats that were read.
    """

    def __init__(
        self,
        claims: SeatClaims,
        event: Event,
        seats: int,
        clock: Clock,
        on_taken: Callable[[Iterable[TakenSeat], int], None] | None = None,
    ) -> None:
        self._on_taken = on_taken
        self._claims = claims
        self._event = event
        self._seats = seats
        self._clock = clock

    def update_event(self, event: Event) -> None:
        """Take over a change by the organiser: other seats may be withheld."""
        self._event = event

    async def __call__(self, indexes: Sequence[int]) -> bytes:
        """The state of each of `indexes`, which must be sorted."""
        wanted = None if len(indexes) == self._seats else indexes
        now_us = self._clock()
        taken = await self._claims.states(self._event.id, now_us, wanted)
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
