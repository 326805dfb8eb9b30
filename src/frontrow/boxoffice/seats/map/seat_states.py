"""Reads seat states for the map: from the claim store, and from the seats the organiser withholds."""

from collections.abc import Mapping, Sequence

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.holds.ports.seat_claims import SeatClaims
from frontrow.boxoffice.seats.model.map_format import SeatState
from frontrow.boxoffice.seats.ports.seat_map import OwnerCache
from frontrow.core.clock import Clock

BLOCKED = int(SeatState.BLOCKED)


class ClaimStates:
    """A `ReadStates` over the claim store. An expired hold is free at once, whether swept or not.

    While `owners` wants them, it gets the owners of the taken seats that are read.
    """

    def __init__(
        self,
        claims: SeatClaims,
        event: Event,
        seats: int,
        clock: Clock,
        owners: OwnerCache | None = None,
    ) -> None:
        self._owners = owners
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
        taken: Mapping[int, SeatState]
        if self._owners is not None and self._owners.wants_owners:
            owned = await self._claims.states(self._event.id, now_us, wanted)
            self._owners.add_owners(owned.values(), now_us)
            taken = {index: seat.state for index, seat in owned.items()}
        else:
            taken = await self._claims.map_states(self._event.id, now_us, wanted)
        withheld = self._event.withheld
        return bytes([taken.get(index) or (BLOCKED if index in withheld else 0) for index in indexes])
