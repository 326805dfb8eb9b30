"""What staff at the box office or at the gate type to find a booking, and what it can mean.

A seat is looked up in the event's plan, a whole e-mail address and a name in an index. A part of an address and the end
of a booking's number have no index: the ledger reads the newest bookings of the event, up to a bound.
"""

import re
from typing import Final

import msgspec

from frontrow.boxoffice.people.model.email_addresses import checked_email
from frontrow.boxoffice.people.model.person_names import search_words
from frontrow.boxoffice.seats.model.venues import Plan, UnknownSeats
from frontrow.core.errors import InvalidInput
from frontrow.shared.ids import ALPHABET, ID_CHARS

MAX_SEARCH_CHARS: Final = 254
MIN_EMAIL_PART: Final = 3
MIN_NUMBER_PART: Final = 4
MAX_SCANNED: Final = 300_000  # bookings that one search reads, newest first
_SPOKEN: Final = re.compile(r"[\s-]+")  # a number read out in groups
_MISREAD: Final = str.maketrans("OIL", "011")  # numbers have no letters that look like digits
_BETWEEN: Final = re.compile(r"[^\w.]+")


class BookingSearch(msgspec.Struct, frozen=True):
    """What a text can mean. Empty fields mean: not that."""

    booking_id: str = ""
    seat: int | None = None
    email: str = ""
    words: tuple[str, ...] = ()  # of a name, folded
    email_part: str = ""
    number_part: str = ""  # a part of a booking's number, without its prefix

    @property
    def needs_scan(self) -> bool:
        return bool(self.email_part or self.number_part)


def read_search(text: str, plan: Plan) -> BookingSearch:
    """What the text means in an event with this plan."""
    text = text[:MAX_SEARCH_CHARS].strip()
    number = _SPOKEN.sub("", text.removeprefix("#").upper()).removeprefix("BKG_").translate(_MISREAD)
    if len(number) == ID_CHARS and set(number) <= set(ALPHABET):
        return BookingSearch(booking_id=f"bkg_{number}")
    seat = find_seat(text, plan)
    if seat is not None:
        return BookingSearch(seat=seat)
    part = text.lower()
    fits_email = len(part) >= MIN_EMAIL_PART and part.isprintable() and " " not in part
    fits_number = MIN_NUMBER_PART <= len(number) < ID_CHARS and set(number) <= set(ALPHABET)
    return BookingSearch(
        email=_whole_email(text),
        words=tuple(search_words(text)) if "@" not in text else (),
        email_part=part if fits_email else "",
        number_part=number if fits_number else "",
    )


def ticket_number(text: str) -> str:
    """The number of a ticket as people read it out or type it from paper, `tkt_` or not; empty if it is none."""
    letters = _SPOKEN.sub("", text[:MAX_SEARCH_CHARS].strip().removeprefix("#").upper())
    number = letters.removeprefix("TKT").removeprefix("_").translate(_MISREAD)
    return f"tkt_{number}" if len(number) == ID_CHARS and set(number) <= set(ALPHABET) else ""


def find_seat(text: str, plan: Plan) -> int | None:
    """The seat that a text names: by its id, its parts, or in words ("Section 101, row A, seat 7")."""
    for section, name in plan.labels.sections.items():  # people read the name on their ticket
        if name.lower() in text.lower() and name != section:
            text = re.sub(re.escape(name), section, text, count=1, flags=re.IGNORECASE)
            break
    parts = [part for part in _BETWEEN.split(text) if part]
    for chosen in (parts, parts[1::2]) if 0 < len(parts) <= 8 else ():
        try:
            return plan.indexes(["-".join(chosen)])[0]
        except UnknownSeats:
            continue
    return None


def like_part(part: str) -> str:
    """A LIKE pattern (escape character `!`) for texts that contain the part; empty for an empty part."""
    escaped = part.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return f"%{escaped}%" if part else ""


def _whole_email(text: str) -> str:
    try:
        return checked_email(text) if "@" in text else ""
    except InvalidInput:
        return ""
