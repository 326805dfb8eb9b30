"""Choosing other seats for a booking: which free seats cost the same, section by section."""

from typing import Any, Final

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.seats.model.venues import Plan
from frontrow.web.platform.platform import Platform
from frontrow.web.site.event_display import section_of

MAX_SHOWN: Final = 600  # seats of a section


async def choice_of(platform: Platform, event: Event, plan: Plan, leave: list[int], query: Any) -> dict[str, Any]:
    """The free seats of one section that cost what the seats to leave cost, and those chosen so far."""
    prices = {event.tier(plan.seats[seat].tier).price.minor for seat in leave}
    fits = {tier.key for tier in event.tiers if tier.price.minor in prices}
    sections = [
        one.id
        for base, one in zip(plan.bases, plan.sections, strict=True)
        if any(seat.tier in fits for seat in plan.seats[base : base + one.size])
    ]
    wanted = query.get("section", "")
    name = wanted if wanted in sections else plan.sections[plan.section_at(leave[0])].id
    return {
        "sections": sections,
        "section": name,
        "rows": await _rows(platform, event, plan, name, fits),
        "to": [seat for seat in query.getall("to", [])[:100] if len(seat) <= 100],
        "count": len(leave),
        "tiers": sorted(fits),
        "listed": "section" in query,
    }


async def _rows(
    platform: Platform, event: Event, plan: Plan, name: str, fits: set[str]
) -> list[tuple[str, list[tuple[str, str]]]]:
    """Row and its free seats (public id, number)."""
    found = section_of(plan, name)
    assert found is not None, name
    base, section = found
    seats = [
        seat
        for seat in range(base, base + min(section.size, MAX_SHOWN))
        if plan.seats[seat].tier in fits and seat not in event.withheld
    ]
    taken = set(await platform.ledger.organiser.taken_seats(event.id, seats, platform.clock()))
    rows: dict[str, list[tuple[str, str]]] = {}
    for seat in seats:
        if seat in taken:
            continue
        public = plan.seat_id(seat)
        row, _, number = public.removeprefix(f"{name}-").rpartition("-")
        rows.setdefault(row, []).append((public, number))
    return list(rows.items())
