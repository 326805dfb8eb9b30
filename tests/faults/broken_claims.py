"""A claim store that refuses nobody."""

from frontrow.boxoffice.adapters.claims.memory import MemoryClaims
from frontrow.boxoffice.holds.model.claims import ClaimedSeats, SeatClaim


class YesClaims(MemoryClaims):
    """Grants every claim."""

    async def claim(self, wish: SeatClaim, now_us: int) -> ClaimedSeats:
        return ClaimedSeats(wish.seats)
