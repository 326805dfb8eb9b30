"""`frontrow storm` asks here before it sends any load. The token must be one of this platform's own."""

from typing import Annotated, Any

import msgspec
from litestar import Request, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import JSONBody

from frontrow.boxoffice.events.model.events import EventNotFound
from frontrow.core.clock import US_PER_S
from frontrow.shared.local_time import time_text
from frontrow.web.http.access import Access
from frontrow.web.http.bodies.json_values import Time
from frontrow.web.platform.access_check import client_ip
from frontrow.web.platform.injected import FromPlatform
from frontrow.web.platform.storm_consent import MAX_CHARS, read_consent


class StormAsked(msgspec.Struct, forbid_unknown_fields=True):
    token: Annotated[str, msgspec.Meta(max_length=MAX_CHARS, examples=["frt_evt_….1800000000.…"])]


class StormAllowed(msgspec.Struct):
    """What a storm must know before it begins."""

    event: str
    until: Time
    payments: Annotated[str, msgspec.Meta(description="`simulated`, or `real`: then a storm pays nothing")]
    human_check: Annotated[str, msgspec.Meta(description="what the room asks for, or `none`")]
    address: Annotated[str, msgspec.Meta(description="the address this request is counted under")]
    per_address: Annotated[str, msgspec.Meta(description="requests that one address may send", examples=["50/second"])]


@post(
    "/v1/storm",
    operation_id="ask_storm_consent",
    summary="Whether `frontrow storm` may load this server",
    status_code=200,
    opt={"access": Access.PUBLIC, "problems": (404,), "idempotency": "own"},
)
async def ask_storm_consent(
    request: Request[Any, Any, Any], platform: FromPlatform, data: JSONBody[StormAsked]
) -> StormAllowed:
    consent = read_consent(platform.secrets, data.token, platform.clock())
    event = platform.box_office.openings.events.get(consent.event_id)
    if event is None:
        raise EventNotFound(f"{consent.event_id} is not on sale here", event=consent.event_id)
    return StormAllowed(
        consent.event_id,
        time_text(consent.until_s * US_PER_S),
        "real" if platform.settings.stripe.key else "simulated",
        event.room.filled(platform.settings.room.rules()).human or "none",
        client_ip(platform, request),
        platform.settings.server.per_ip,
    )


ROUTES: list[HTTPRouteHandler] = [ask_storm_consent]
