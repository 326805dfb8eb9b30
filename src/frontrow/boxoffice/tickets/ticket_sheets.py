"""A sheet per ticket with everything a person needs (event, venue, time, seat, code). PDF and calendar use it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from frontrow.boxoffice.seats.model.seat_labels import AREA_ROW, seat_parts, seat_text
from frontrow.core.clock import US_PER_S
from frontrow.shared.local_time import local_time
from frontrow.shared.money import Money


@dataclass(frozen=True, slots=True)
class Sheet:
    """One ticket as its holder sees it."""

    ticket_id: str
    code: str
    seat: str
    event_id: str
    event_name: str
    venue_name: str
    city: str
    time_zone: str
    starts_at_us: int
    ends_at_us: int
    booking_id: str
    issued_at_us: int
    rotating: bool = False
    name: str = ""  # of the buyer
    scanned_at_us: int | None = None  # when it was admitted at the door
    type_name: str = ""  # of the ticket type, such as Child
    price: Money | None = None  # with its fees, as the buyer paid it
    named: tuple[str, str, str] | None = None  # section, row and number as the organiser calls them
    transfer_id: str = ""  # the transfer by which its holder got it; empty: the holder is the buyer

    @property
    def place(self) -> str:
        return ", ".join(part for part in (self.venue_name, self.city) if part)

    @property
    def parts(self) -> tuple[str, str, str]:
        """Section, row and number of the seat, by their names."""
        return self.named or seat_parts(self.seat)

    @property
    def seat_text(self) -> str:
        """The seat in a list."""
        return seat_text(self.parts)

    def seat_words(self, words: Mapping[str, str]) -> list[tuple[str, str]]:
        """Section, row and seat with their labels. Parts that the seat name does not have are left out."""
        section, row, number = self.parts
        if row == AREA_ROW:
            return [(words["section"], section), (words["standing_place"], number)]
        parts = zip(("section", "row", "seat"), (section, row, number), strict=True)
        return [(words[label], part) for label, part in parts if part]

    @property
    def starts_at(self) -> datetime:
        return local_time(self.starts_at_us, self.time_zone)

    @property
    def ends_at(self) -> datetime:
        """The end of the show, or three hours after its start when no end is set."""
        return local_time(self.ends_at_us or self.starts_at_us + 3 * 3600 * US_PER_S, self.time_zone)
