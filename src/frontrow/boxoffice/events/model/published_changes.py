"""What can still be changed once an event is published. `check_change` is the one place that decides it. Pure."""

from typing import Final

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.events.model.room_rules import RoomRules
from frontrow.core.errors import Refused

# what cannot be changed once an event is published -> why
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
