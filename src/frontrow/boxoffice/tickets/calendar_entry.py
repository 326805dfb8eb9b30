"""The calendar entry of a booking (iCalendar): one entry for all its seats. The same booking gives the same file.

Calendars are shared, so the entry names seats but no ticket numbers. That of a transferred ticket does not name the
booking of the person who sent it.
"""

from collections.abc import Sequence
from datetime import UTC

from frontrow.boxoffice.tickets.model.tickets import Sheet
from frontrow.shared.local_time import local_time


def calendar_entry(sheets: Sequence[Sheet], language: str = "en") -> bytes:
    """An .ics file, with the seats in a language."""
    from icalendar import Calendar, Event, vText  # not at the start of a server: it takes a tenth of a second

    first = sheets[0]
    entry = Event()
    entry.add("uid", f"{first.transfer_id or first.booking_id}@frontrow")
    entry.add("dtstamp", local_time(first.issued_at_us, "UTC"))
    entry.add("dtstart", first.starts_at.astimezone(UTC))
    entry.add("dtend", first.ends_at.astimezone(UTC))
    entry.add("summary", first.event_name)
    entry.add("description", "\n".join(sheet.seat_text(language) for sheet in sheets))
    entry.add("sequence", 0)
    entry.add("status", "CONFIRMED")
    if first.place:
        entry["location"] = vText(first.place)
    calendar = Calendar()
    calendar.add("prodid", "-//Frontrow//Tickets//EN")
    calendar.add("version", "2.0")
    calendar.add("method", "PUBLISH")
    calendar.add_component(entry)
    return bytes(calendar.to_ical())
