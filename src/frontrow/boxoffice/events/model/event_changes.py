"""Changes by organisers, as values: who edits, what is recorded about it, how far a cancellation is. Pure.

No edit overwrites another: whatever two people could change at once has a tag of its version (HTTP's ETag), and an edit
of an older version is refused (`ChangedMeanwhile`, 412).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from enum import StrEnum
from typing import Any, Final

import msgspec

from frontrow.boxoffice.events.model.events import PriceTier
from frontrow.boxoffice.events.model.room_rules import RoomRules
from frontrow.boxoffice.pricing.model.sale_options import AddOn, Discount, SharedLimit, TicketType
from frontrow.core.errors import Refused
from frontrow.shared.money import Money

TAG_BYTES: Final = 12
MAX_SHOWN_CHARS: Final = 120


class Editor(msgspec.Struct, frozen=True):
    """Who changes something for an organiser: a team member or an API key."""

    id: str
    organiser_id: str


class Change(msgspec.Struct, frozen=True):
    """One change to record. `detail` is small, public and without secrets."""

    editor: Editor
    act: str
    event_id: str
    at_us: int
    detail: dict[str, Any] = {}


def describe_changes(before: Any, after: Any, fields: Sequence[str]) -> dict[str, list[Any]]:
    """What changed, as field -> [from, to] in short values; fields that stayed the same are left out. `before` and
    `after` are the same kind of record. Amounts are in units of the record's currency."""
    found, currency = {}, str(getattr(after, "currency", ""))
    for name in fields:
        was, now = getattr(before, name, None), getattr(after, name, None)
        if was != now:
            found[name] = [_short_value(was, currency), _short_value(now, currency)]
    return found


def _short_value(value: Any, currency: str) -> Any:
    """A number, a truth or a short text. Times stay numbers; sets of seats become their count."""
    match value:
        case None:
            return ""
        case StrEnum():
            return value.value
        case bool() | int():
            return value
        case frozenset() | set():
            return len(value)
        case Money() | TicketType():
            return str(value)
        case Discount() if not value.amount_minor or not currency:
            return str(value)
        case PriceTier():
            return f"{value.name or value.key} {value.price}"
        case AddOn():
            stock = "" if value.stock is None else f", {value.stock} in stock"
            return f"{value.name} {Money(value.price_minor, currency)}{stock}" if currency else value.name
        case SharedLimit():
            return f"{value.name} at most {value.most}"
        case RoomRules():
            return _room_text(value)
        case tuple() | list():
            text = ", ".join(str(_short_value(each, currency)) for each in value)
        case _ if is_dataclass(value):
            parts = {each.name: getattr(value, each.name) for each in dataclass_fields(value)}
            text = " ".join(_part_text(name, part, currency) for name, part in parts.items() if part)
        case msgspec.Struct():
            parts = {name: getattr(value, name) for name in value.__struct_fields__}
            text = " ".join(_part_text(name, part, currency) for name, part in parts.items() if part)
        case _:
            text = str(value)
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[: MAX_SHOWN_CHARS - 1]}…"


def _room_text(rules: RoomRules) -> str:
    """The rules of a waiting room that were chosen: its lanes with their shares, its depth, its checks."""
    lanes = rules.lanes or ()
    found = [f"{lane.name} (share {lane.weight})" for lane in lanes] if len(lanes) > 1 else ["one queue"] * len(lanes)
    found += [f"at most {rules.depth_cap} waiting"] if rules.depth_cap else []
    found += [f"check {rules.human}"] if rules.human and rules.human != "none" else []
    found += ["one place per person"] if rules.one_place_per_person else []
    return ", ".join(found)


def _part_text(name: str, value: Any, currency: str) -> str:
    """A part of a setting with its unit: 2.50 EUR per seat, 5 %, 48 h before the show."""
    if isinstance(value, bool):
        return name.replace("_", " ")
    if isinstance(value, int):
        if name.endswith("_minor") and currency:
            what = name.removesuffix("_minor").removeprefix("price").removeprefix("amount").replace("_", " ")
            return f"{Money(value, currency)} {what}".rstrip()
        if name.endswith("basis_points"):
            what = name.removesuffix("basis_points").replace("_", " ").strip()
            return f"{value / 100:g} % {what}".rstrip()
        if name.endswith("window_s"):
            return f"{value / 3600:g} h before"
    return str(_short_value(value, currency))


class NotedChange(msgspec.Struct, frozen=True):
    """A row of the organiser's audit log."""

    number: int
    at_us: int
    actor: str
    act: str
    event_id: str
    detail: str  # JSON


class Cancellation(msgspec.Struct, frozen=True):
    """How far the cancellation of an event is. `failed` bookings of the last round are tried again."""

    event_id: str
    state: str
    refunded: int
    released: int
    stopped: int
    failed: int
    started_at_us: int
    changed_at_us: int
    returned: int = 0  # seats that had been returned for resale


class ChangedMeanwhile(Refused):
    """Somebody else changed it since you read it: read it again, then decide."""

    code = "changed_meanwhile"
    http_status = 412


def tag_of(document: str | bytes) -> str:
    """The tag of a version of something kept as a document."""
    body = document.encode() if isinstance(document, str) else document
    return hashlib.blake2b(body, digest_size=TAG_BYTES).hexdigest()


def check_tag(given: str | None, tag: str) -> None:
    """Raise `ChangedMeanwhile` unless the edit was made from this version or names none."""
    if given is None or given.strip() == "*":
        return
    tags = [part.strip().removeprefix("W/").strip('"') for part in given.split(",")]
    if tag not in tags:
        raise ChangedMeanwhile("somebody else changed this since you read it; read it again", param="If-Match")
