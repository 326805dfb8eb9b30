"""What can still be changed once an event is published. This is the one place that decides it. Pure.

`check_editable` looks at what an edit asks for, before anything is loaded for it. `check_change` compares the event
with the edited one.
"""

from typing import Final

from frontrow.boxoffice.events.model.events import Event, EventStatus
from frontrow.boxoffice.events.model.room_rules import RoomRules
from frontrow.core.errors import Refused

FINAL: Final = frozenset({EventStatus.COMPLETED, EventStatus.CANCELLED})  # nothing can be changed any more
# what cannot be changed once an event is published, besides its venue and its currency -> why
FIXED: Final = {
    "rotating_codes": "tickets that people have already would behave differently at the gate",
    "one_place_per_person": "people in the line joined under the other rule",
    "lanes": "people wait in them and codes lead to them; a lane can be added and its share changed",
    "presale": "people may be waiting already, with or without a code; its times can be moved",
    "presale_starts_at": "the presale has begun",
}


class FixedOncePublished(Refused):
    """This cannot change any more: people have bought by it."""

    code = "fixed_once_published"


def check_editable(event: Event, *, venue_id: str | None, currency: str | None) -> None:
    """Refuse every edit of an event that is over, and another venue or currency of one that is published."""
    if event.status in FINAL:
        raise FixedOncePublished(f"an event that is {event.status.value} cannot be changed")
    if event.status is EventStatus.DRAFT:
        return
    for param, wanted, now in (("venue", venue_id, event.venue_id), ("currency", currency, event.currency)):
        if wanted not in (None, now):
            raise FixedOncePublished(f"{param} is fixed once the event is published", param=param)


def check_change(was: Event, now: Event, defaults: RoomRules, at_us: int) -> None:
    """Refuse what a published event can no longer change, with the reason (`FIXED`)."""
    presale = bool(was.presale_starts_at_us)
    before, after = was.room.filled(defaults, presale=presale), now.room.filled(defaults, presale=presale)
    assert before.lanes is not None
    assert after.lanes is not None
    if now.rotating_codes != was.rotating_codes:
        _refuse("rotating_codes")
    if after.one_place_per_person != before.one_place_per_person:
        _refuse("one_place_per_person")
    if [lane.name for lane in after.lanes[: len(before.lanes)]] != [lane.name for lane in before.lanes]:
        _refuse("lanes")
    if bool(now.presale_starts_at_us) != presale:
        _refuse("presale", "presale_starts_at")
    if presale and now.presale_starts_at_us != was.presale_starts_at_us and was.presale_starts_at_us <= at_us:
        _refuse("presale_starts_at")


def _refuse(what: str, param: str = "") -> None:
    raise FixedOncePublished(f"{what} is fixed once the event is published: {FIXED[what]}", param=param or what)
