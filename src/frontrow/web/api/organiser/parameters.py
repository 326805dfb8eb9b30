"""Parameters and headers of the organisers' routes: pages, times, versions (ETag and If-Match)."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, TypeVar

import msgspec
from litestar import Response
from litestar.params import HeaderParameter, QueryParameter

from frontrow.core.errors import InvalidInput

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
