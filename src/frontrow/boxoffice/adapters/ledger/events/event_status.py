"""Counts an event's free seats and moves its status automatically: sold out, on sale again, completed.

Counting and moving are one transaction. The first read takes no lock, because nearly always no move is due. A move is
decided again over the locked row of the event. Seats that change at the same moment produce facts, after which the
event is counted again, so a wrong status does not last longer than that.
"""

from dataclasses import replace
from typing import Final

import msgspec

from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import Program
from frontrow.boxoffice.events.model.event_search import LISTED
from frontrow.boxoffice.events.model.event_status import EventStatusChange
from frontrow.boxoffice.events.model.events import Event, EventMove, EventStatus, next_status, over_at_us
from frontrow.boxoffice.facts.model import EventCompleted, EventReopened, EventSoldOut, Fact

ACTOR: Final = "Frontrow"  # the actor of automatic changes
_FACTS: Final[dict[EventStatus, type[EventSoldOut] | type[EventReopened] | type[EventCompleted]]] = {
    EventStatus.SOLD_OUT: EventSoldOut,
    EventStatus.ON_SALE: EventReopened,
    EventStatus.COMPLETED: EventCompleted,
}


def update_event_status(event_id: str, now_us: int, facts: list[Fact]) -> Program[EventStatusChange | None]:
    """Count the seats and move the event's status if that is due. None if there is no such event."""
    rows = yield Query("events_by_id", [(event_id,)])
    if not rows:
        return None
    event = msgspec.json.decode(rows[0][1], type=Event)
    free = yield from _count(event)
    if free is not None:
        yield Query("put_free_seats", [(event_id, free, now_us)])
    if (yield from _due_move(event, free, now_us)) is None:
        return EventStatusChange(event, free)
    rows = yield Query("locked_event", params=(event_id,))
    was = str(rows[0][0])
    event = msgspec.json.decode(was, type=Event)
    free = yield from _count(event)
    move = yield from _due_move(event, free, now_us)
    if move is None:
        return EventStatusChange(event, free)
    moved = replace(event, status=next_status(event.status, move))
    document = msgspec.json.encode(moved).decode()
    yield Query("swap_event", [(event_id, was, document, moved.status.value, now_us)])
    detail = msgspec.json.encode({"status": moved.status}).decode()
    yield Query("add_changes", [(event.organiser_id, event_id, ACTOR, f"{move.value}_event", detail, now_us)])
    facts.extend(status_facts(moved, now_us))
    return EventStatusChange(moved, free, move)


def status_facts(event: Event, now_us: int) -> tuple[Fact, ...]:
    """The facts of an automatic change of status."""
    kind = _FACTS.get(event.status)
    return () if kind is None else (kind("", event.id, "", 0, (), now_us),)


def _count(event: Event) -> Program[int | None]:
    """Seats that are neither held, sold nor withheld. A dead hold counts as held until it is swept."""
    rows = yield Query("count_active_seats", params=(event.id, event.plan_hash))
    size, active = rows[0]
    if size is None:
        return None
    withheld = len(event.withheld)
    if withheld and active:
        seats = [(event.id, seat) for seat in sorted(event.withheld)]
        withheld -= len((yield Query("seats_in_the_way", seats)))
    return int(size) - int(active) - withheld


def _due_move(event: Event, free: int | None, now_us: int) -> Program[EventMove | None]:
    if event.status not in LISTED:
        return None
    if over_at_us(event) <= now_us:
        return EventMove.COMPLETE
    if free is None:
        return None
    if event.status is EventStatus.ON_SALE and free <= 0 and (yield Query("any_sold", params=(event.id,))):
        held = yield Query("any_hold", params=(event.id,))  # a held seat may become free again
        return None if held else EventMove.SELL_OUT
    if event.status is EventStatus.SOLD_OUT and free > 0:
        waiting = yield Query("any_waiting", params=(event.id,))  # people on the waitlist come first
        return None if waiting else EventMove.REOPEN
    return None
