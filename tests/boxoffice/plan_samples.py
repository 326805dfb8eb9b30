"""Small plans and events that the box-office tests share."""

from dataclasses import replace
from typing import Any

from frontrow.boxoffice.events.model.events import Event, EventStatus, PriceTier
from frontrow.boxoffice.seats.model.venues import AREA_ROW, Plan, Row, Seat, SeatFlag, Section, area
from frontrow.shared.money import Money

__all__ = ["AREA_ROW", "an_event", "small_plan"]


def small_plan(rows: int = 3, seats: int = 10, aisle_after: int = 0) -> Plan:
    """Section S of `rows` x `seats` (row A: step-free 1, companion 2), section B with a poor view, area F of 20."""

    def flags(row: int, seat: int) -> int:
        marks = SeatFlag.GAP_AFTER if seat + 1 == aisle_after else SeatFlag.NONE
        if row == 0 and seat < 2:
            marks |= SeatFlag.STEP_FREE if seat == 0 else SeatFlag.STEP_FREE | SeatFlag.COMPANION
        return int(marks)

    front = tuple(
        Row(chr(65 + r), tuple(Seat(str(s + 1), 10.0 * s, 12.0 * r, "front", flags(r, s)) for s in range(seats)), r)
        for r in range(rows)
    )
    back = tuple(Seat(str(s + 1), 10.0 * s, 90.0, "back", int(SeatFlag.RESTRICTED_VIEW)) for s in range(6))
    return Plan(
        "Small Hall",
        (Section("S", front, "Stalls"), Section("B", (Row("A", back),), "Balcony", rank=1), area("F", 20)),
        200.0,
        120.0,
    )


def an_event(**changes: Any) -> Event:
    event = Event(
        id="evt_1",
        name="Aurora",
        venue_id="ven_1",
        plan_hash="0" * 64,
        currency="EUR",
        starts_at_us=10_000_000,
        sale_starts_at_us=1_000_000,
        sale_ends_at_us=9_000_000,
        tiers=(
            PriceTier("front", Money(5000, "EUR")),
            PriceTier("back", Money(2000, "EUR")),
            PriceTier("standing", Money(3000, "EUR")),
        ),
        status=EventStatus.ON_SALE,
    )
    return replace(event, **changes)
