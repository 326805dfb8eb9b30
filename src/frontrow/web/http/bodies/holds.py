"""The bodies of holds: seats by name, or what the best seats should be like."""

from typing import Annotated

import msgspec

from frontrow.boxoffice.holds.model.requested_seats import MAX_SEATS_PER_REQUEST, Wish
from frontrow.web.http.bodies.json_values import MoneyView, PriceLineView, Time

SeatName = Annotated[str, msgspec.Meta(min_length=1, max_length=60, examples=["S-A-14"])]
SectionName = Annotated[str, msgspec.Meta(min_length=1, max_length=40)]
Minor = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]


class BestWish(msgspec.Struct, forbid_unknown_fields=True):
    """What "best available" should find."""

    count: Annotated[int, msgspec.Meta(ge=1, le=MAX_SEATS_PER_REQUEST, examples=[2])]
    sections: Annotated[list[SectionName], msgspec.Meta(max_length=50)] = []
    min_price_minor: Minor = 0
    max_price_minor: Minor | None = None
    step_free: bool = False
    restricted_view_ok: bool = False
    standing: bool = False
    apart_ok: bool = False

    def wish(self) -> Wish:
        return Wish(
            self.count,
            tuple(self.sections),
            self.min_price_minor,
            self.max_price_minor,
            self.step_free,
            self.restricted_view_ok,
            self.standing,
            self.apart_ok,
        )


class HoldBody(msgspec.Struct, forbid_unknown_fields=True):
    """Either the seats, or what the best seats should be like.

    `replace`: instead of the seats that this visitor holds already, in one step. If that is refused, they keep those.
    """

    seats: Annotated[
        list[SeatName], msgspec.Meta(max_length=MAX_SEATS_PER_REQUEST, examples=[["S-A-14", "S-A-15"]])
    ] = []
    best: BestWish | None = None
    replace: bool = False


class HoldView(msgspec.Struct):
    """A hold as its fan sees it; `booking_token` is the key to everything about this booking."""

    booking: Annotated[str, msgspec.Meta(examples=["bkg_01JCQ3W2N4X7Z8Y9A0B1C2D3E4"])]
    event: str
    seats: list[str]
    amount: MoneyView
    expires_at: Time
    fence: int
    booking_token: str
    repeated: bool = False
    lines: list[PriceLineView] = []
