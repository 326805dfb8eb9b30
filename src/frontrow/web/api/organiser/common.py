"""Shared by the organisers' routes: the editor, cursors, times, versions (ETag and If-Match)."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, TypeVar

import msgspec
from litestar import Response
from litestar.params import HeaderParameter, QueryParameter

from frontrow.boxoffice.events.model.event_changes import Editor
from frontrow.core.errors import InvalidInput
from frontrow.web.api.access import Caller

T = TypeVar("T")
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MAX_PAGE: Final = 100
NO_STORE: Final = {"cache-control": "no-store"}

Moment = Annotated[datetime, msgspec.Meta(tz=True, description="RFC 3339 with an offset")]
IfMatch = Annotated[
    str | None,
    HeaderParameter(name="If-Match", max_length=200, description="the ETag you read; 412 if it has changed since"),
]
Cursor = Annotated[str, QueryParameter(max_length=200, description="`next` of the previous page")]
Limit = Annotated[int, QueryParameter(ge=1, le=MAX_PAGE)]


def editor_of(caller: Caller) -> Editor:
    """The editor of a change, for the audit."""
    return Editor(caller.id, caller.organiser_id)


def moment_us(moment: datetime | None, param: str) -> int | None:
    """Microseconds since 1970; None stays None."""
    if moment is None:
        return None
    at_us = (moment - EPOCH) // timedelta(microseconds=1)
    if at_us <= 0:
        raise InvalidInput(f"{param} must be after 1970", param=param)
    return at_us


def tagged(view: T, tag: str, status: int = 200) -> Response[T]:
    """A response with the ETag of the version it shows."""
    return Response(view, status_code=status, headers={"etag": f'"{tag}"', **NO_STORE})


def cursor_of(value: int | str | None) -> str | None:
    """An opaque cursor; None when there is no next page."""
    return None if value is None else base64.urlsafe_b64encode(str(value).encode()).decode()


def read_cursor(cursor: str) -> str:
    try:
        return base64.b64decode(cursor.encode(), altchars=b"-_", validate=True).decode()
    except ValueError:
        raise InvalidInput("this cursor is not valid; start without one", param="cursor") from None


def read_number(cursor: str) -> int:
    """The number in a cursor; 0 without one."""
    text = read_cursor(cursor)
    if not text:
        return 0
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise InvalidInput("this cursor is not valid; start without one", param="cursor")
    return int(text)


def next_of(rows: list[Any], limit: int, last: Any) -> str | None:
    """The cursor of the next page; None after the last page."""
    return cursor_of(last) if len(rows) >= limit else None
