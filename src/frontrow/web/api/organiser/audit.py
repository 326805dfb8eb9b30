"""The audit log of an organiser: who changed what, newest first."""

from typing import Annotated, Any

import msgspec
from litestar import get
from litestar.handlers import HTTPRouteHandler
from litestar.params import QueryParameter

from frontrow.shared.local_time import time_text
from frontrow.web.api.organiser.parameters import Cursor, Limit
from frontrow.web.http.access import Access
from frontrow.web.http.bodies.json_values import Time
from frontrow.web.http.cursors import next_of, read_number
from frontrow.web.platform.injected import FromCaller, FromPlatform


class ChangeView(msgspec.Struct):
    """Who changed what, when."""

    number: int
    at: Time
    actor: str
    act: Annotated[str, msgspec.Meta(examples=["change_event"])]
    event: str
    detail: dict[str, Any]


class AuditPage(msgspec.Struct):
    """Newest first. The ledger's hash-chained log has the same entries (`frontrow ledger verify`)."""

    changes: list[ChangeView]
    next: str | None = None


@get(
    "/v1/organiser/audit",
    operation_id="list_changes",
    summary="Who changed what, newest first",
    opt={"access": Access.staff("audit:read")},
)
async def list_changes(
    platform: FromPlatform,
    caller: FromCaller,
    event: Annotated[str, QueryParameter(max_length=60, description="only of this event")] = "",
    cursor: Cursor = "",
    limit: Limit = 50,
) -> AuditPage:
    page = await platform.ledger.browsing.organiser.changes(caller.organiser_id, event, read_number(cursor), limit)
    views = [
        ChangeView(one.number, time_text(one.at_us), one.actor, one.act, one.event_id, msgspec.json.decode(one.detail))
        for one in page
    ]
    return AuditPage(views, next_of(page, limit, page[-1].number if page else None))


ROUTES: list[HTTPRouteHandler] = [list_changes]
