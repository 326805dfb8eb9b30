"""The states of a booking and the table of moves between them (B5).

Each row is a state; each cell says where a move leads from it. `=` means that it is already so: a repeated or late
request succeeds and changes nothing. `-` means refused. A test walks every cell. The diagram in `docs/bookings.md` and
the conditional updates of the ledger are generated from this table.

`queued` (a place in the waiting room) and `selecting` (a pass) are proven by signed documents and have no row in the
ledger; `hold` creates the row. Holds end by predicate: `held` and `paying` are over from `hold_expires_at_us` on.
"""

import functools
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from frontrow.core.errors import NotFound, Refused

NUMBER_CHARS: Final = 8


class BookingState(StrEnum):
    """The state of a purchase."""

    QUEUED = "queued"
    SELECTING = "selecting"
    HELD = "held"
    PAYING = "paying"
    CONFIRMED = "confirmed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    REFUNDED = "refunded"


class Origin(StrEnum):
    """Where a booking was made."""

    SHOP = "shop"  # the fan chose the seats, during a visit or with a pass
    OFFER = "offer"  # the waitlist offered them
    BOX_OFFICE = "box_office"  # staff sold them or gave them away


class Move(StrEnum):
    """A requested change of a booking."""

    ADMIT = "admit"
    HOLD = "hold"
    EXTEND = "extend"
    BEGIN_PAYMENT = "begin_payment"
    STEP_BACK = "step_back"
    CONFIRM = "confirm"
    DECLINE = "decline"
    RELEASE = "release"
    WITHDRAW = "withdraw"
    EXPIRE = "expire"
    CANCEL = "cancel"
    REFUND = "refund"
    REFUND_SOME = "refund_some"


TABLE: Final = """
           admit      hold  extend  begin_payment  step_back  confirm    decline    release    withdraw   expire   cancel     refund    refund_some
queued     selecting  -     -       -              -          -          -          cancelled  -          expired  -          -         -
selecting  =          held  -       -              -          -          -          cancelled  -          expired  -          -         -
held       -          =     held    paying         =          -          -          cancelled  -          expired  -          -         -
paying     -          =     paying  =              held       confirmed  cancelled  -          cancelled  expired  -          -         -
confirmed  -          =     -       -              -          =          -          -          -          -        cancelled  refunded  confirmed
expired    -          -     -       -              -          -          -          =          =          =        -          -         -
cancelled  -          -     -       -              -          -          =          =          =          -        =          -         -
refunded   -          -     -       -              -          -          -          -          -          -        -          =         -
"""  # noqa: E501 - a table is read across

NEEDS_LIVE_HOLD: Final = frozenset({Move.EXTEND, Move.BEGIN_PAYMENT, Move.STEP_BACK, Move.CONFIRM})
HOLD_STATES: Final = frozenset({BookingState.HELD, BookingState.PAYING})  # end at hold_expires_at_us
LONGEST_HOLD_US: Final = 7_200 * 1_000_000  # MAX_HOLD_FACTOR times the longest hold time of an event
ACTIVE_STATES: Final = HOLD_STATES | {BookingState.CONFIRMED}  # nobody else can have their seats


class Cell(msgspec.Struct, frozen=True):
    """The effect of a move in a state: it leads to `to`, was already done (`repeat`), or is refused (`to` is None)."""

    to: BookingState | None
    repeat: bool = False


def _parse(table: str) -> dict[tuple[BookingState, Move], Cell]:
    head, *rows = (line.split() for line in table.strip().splitlines())
    cells: dict[tuple[BookingState, Move], Cell] = {}
    for name, *words in rows:
        state = BookingState(name)
        for move, word in zip(map(Move, head), words, strict=True):
            cells[state, move] = (
                Cell(None) if word == "-" else Cell(state, repeat=True) if word == "=" else Cell(BookingState(word))
            )
    return cells


MOVES: Final[Mapping[tuple[BookingState, Move], Cell]] = _parse(TABLE)


@functools.cache
def sources(move: Move) -> tuple[BookingState, ...]:
    """The states in which `move` is allowed and is not a repetition."""
    return tuple(s for s in BookingState if MOVES[s, move].to is not None and not MOVES[s, move].repeat)


class Booking(msgspec.Struct, frozen=True, gc=False):
    """One purchase as stored in the ledger. `seats` are sorted indexes in the event's plan.

    `visit_id` is the id of the pass that the seats were chosen with, or empty if the shop did not sell them. `sold_by`
    is the member of staff (or the API key) that sold them at the box office, or empty.
    """

    id: str
    event_id: str
    fan: str
    state: BookingState
    fence: int
    seats: tuple[int, ...]
    amount_minor: int
    currency: str
    visit_id: str
    created_at_us: int
    changed_at_us: int
    hold_expires_at_us: int
    confirmed_at_us: int | None = None
    price_lines: str = ""  # as sold; see pricing.model.prices.decode_lines
    origin: Origin = Origin.SHOP
    sold_by: str = ""
    payment_begun_at_us: int | None = None  # the last time it moved to `paying`; None: a hold has no payment yet

    @property
    def is_ordered(self) -> bool:
        """Whether its seats are held for longer than any hold lasts, because its money comes slowly: the fan has
        nothing left to do in the shop."""
        begun_at_us = self.payment_begun_at_us or self.created_at_us
        return self.state is BookingState.PAYING and self.hold_expires_at_us - begun_at_us > LONGEST_HOLD_US

    def live(self, now_us: int) -> bool:
        """Whether it still has its seats: sold, or held and `now_us < hold_expires_at_us`."""
        return self.state is BookingState.CONFIRMED or (self.state in HOLD_STATES and now_us < self.hold_expires_at_us)


def booking_number(booking_id: str) -> str:
    """The number that people read and say: the end of the id, 40 random bits. It opens nothing; a search finds both."""
    return booking_id[-NUMBER_CHARS:]


class BookingNotFound(NotFound):
    """There is no booking with this id."""

    code = "booking_not_found"

    def __init__(self, booking_id: str) -> None:
        super().__init__(f"there is no booking {booking_id}", booking=booking_id)
        self.booking_id = booking_id


class MoveRefused(Refused):
    """The booking's state does not allow this move (B5: no step can be skipped)."""

    code = "move_refused"

    def __init__(self, booking_id: str, state: BookingState, move: Move) -> None:
        super().__init__(f"booking {booking_id} is {state}; {move} is not possible", booking=booking_id, state=state)
        self.booking_id, self.state, self.move = booking_id, state, move


class SeatsNotInBooking(Refused):
    """These seats are not, or no longer, part of the booking."""

    code = "seats_not_in_booking"

    def __init__(self, booking_id: str, seats: Sequence[int]) -> None:
        super().__init__(f"these seats are not part of booking {booking_id}", booking=booking_id, seats=list(seats))
        self.booking_id, self.seats = booking_id, tuple(seats)


class StaleFence(Refused):
    """The fence belongs to an older hold or to another booking."""

    code = "stale_fence"

    def __init__(self, booking_id: str, fence: int) -> None:
        super().__init__(
            f"fence {fence} is not the fence of booking {booking_id}; place a new hold", booking=booking_id
        )
        self.booking_id, self.fence = booking_id, fence


class HoldEnded(Refused):
    """The hold expired before this move; its seats are back on sale."""

    code = "hold_ended"
    http_status = 410

    def __init__(self, booking_id: str, expired_at_us: int) -> None:
        super().__init__(
            f"the hold of booking {booking_id} has ended; choose seats again",
            booking=booking_id,
            expired_at_us=expired_at_us,
        )
        self.booking_id, self.expired_at_us = booking_id, expired_at_us
