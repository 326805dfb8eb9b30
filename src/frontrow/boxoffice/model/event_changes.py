"""What organisers do, as values: who edits, what is noted about it, how far a cancellation is. Pure.

An edit is never lost in another's: whatever two people could change at once carries a tag of the version it was made
from (HTTP's ETag), and an edit of an older version is refused (`ChangedMeanwhile`, 412).
"""

import hashlib
from typing import Any, Final

import msgspec

from frontrow.boxoffice.model.venues import Venue
from frontrow.core.errors import NotFound, Refused

TAG_BYTES: Final = 12


class Editor(msgspec.Struct, frozen=True):
    """Whoever changes something: a member of the team or an API key, for an organiser."""

    id: str
    organiser_id: str


class Change(msgspec.Struct, frozen=True):
    """One change about to be noted; `detail` is small, public and without secrets."""

    editor: Editor
    act: str
    event_id: str
    at_us: int
    detail: dict[str, Any] = {}


class NotedChange(msgspec.Struct, frozen=True):
    """A row of the organiser's audit."""

    number: int
    at_us: int
    actor: str
    act: str
    event_id: str
    detail: str  # JSON


class OwnVenue(msgspec.Struct, frozen=True):
    """An organiser's venue; `changed_at_us` is its version."""

    venue: Venue
    changed_at_us: int
    seat_count: int

    @property
    def tag(self) -> str:
        return f"v{self.changed_at_us:x}"


class Cancellation(msgspec.Struct, frozen=True):
    """How far the cancellation of an event is. `failed` are bookings of the last round that are tried again."""

    event_id: str
    state: str
    refunded: int
    released: int
    stopped: int
    failed: int
    started_at_us: int
    changed_at_us: int
    returned: int = 0  # seats that had been given back to the pool


class ChangedMeanwhile(Refused):
    """Somebody else changed it since you read it: read it again, then decide."""

    code = "changed_meanwhile"
    http_status = 412


class VenueNotFound(NotFound):
    code = "venue_not_found"


class EndpointNotFound(NotFound):
    code = "webhook_not_found"


class DeliveryNotFound(NotFound):
    code = "delivery_not_found"


class ReseatRefused(Refused):
    """The booking cannot move to those seats."""

    code = "reseat_refused"


def tag_of(document: str | bytes) -> str:
    """The tag of a version of something kept as a document."""
    body = document.encode() if isinstance(document, str) else document
    return hashlib.blake2b(body, digest_size=TAG_BYTES).hexdigest()


def check_tag(given: str | None, tag: str) -> None:
    """Nothing if the edit was made from this version (or says nothing about it), else ChangedMeanwhile."""
    if given is None or given.strip() == "*":
        return
    known = [part.strip().removeprefix("W/").strip('"') for part in given.split(",")]
    if tag not in known:
        raise ChangedMeanwhile("somebody else changed this since you read it; read it again", param="If-Match")
