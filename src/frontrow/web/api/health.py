"""Liveness, readiness, and the public keys that verify passes."""

import asyncio
from typing import Annotated, Any

import msgspec
from litestar import Response, get
from litestar.handlers import HTTPRouteHandler

from frontrow.core.errors import FrontrowError, Unavailable
from frontrow.web.http.access import Access
from frontrow.web.observability.job_health import failed_jobs
from frontrow.web.platform.injected import FromPlatform
from frontrow.web.platform.platform import Platform

READY_WITHIN_S = 2.0
MAX_CLOCK_ERROR_S = 30.0  # like the doctor's


class HealthView(msgspec.Struct, omit_defaults=True):
    ok: bool
    events: Annotated[int, msgspec.Meta(description="events sold by this process")]
    replica: Annotated[
        str | None, msgspec.Meta(examples=["used"], description="used, or why lists and figures read the primary")
    ] = None
    failing: Annotated[
        list[str], msgspec.Meta(examples=[["relay"]], description="background jobs that fail again and again")
    ] = []
    failures: Annotated[
        dict[str, int],
        msgspec.Meta(examples=[{"relay": 3}], description="failures of background jobs since this server began"),
    ] = {}


class JwksView(msgspec.Struct):
    keys: list[dict[str, str]]


class NotReady(Unavailable):
    code = "not_ready"


def _health(platform: Platform) -> HealthView:
    replica = platform.stores.ledger.replica
    said = None if replica is None else replica.why_away or ("used" if replica.is_used else "it is too far behind")
    return HealthView(True, len(platform.box_office.openings.events), said)


@get("/healthz", operation_id="healthz", summary="Is this process alive?", opt={"access": Access.PUBLIC})
async def healthz(platform: FromPlatform) -> HealthView:
    return _health(platform)


@get(
    "/readyz",
    operation_id="readyz",
    summary="Whether this process can sell: its stores answer; which background jobs fail",
    opt={"access": Access.PUBLIC, "problems": (503,)},
)
async def readyz(platform: FromPlatform) -> HealthView:
    try:
        async with asyncio.timeout(READY_WITHIN_S):
            await platform.ledger.time_us()
            for event_id in list(platform.box_office.openings.events)[:1]:
                await platform.stores.claims.lost(event_id)
    except (FrontrowError, TimeoutError):
        raise NotReady("a store does not answer", retry_after_s=1.0) from None
    if platform.box_office.openings.follower.unreachable:
        raise NotReady("events are not open yet: a store did not answer", retry_after_s=1.0)
    ahead_s = platform.wall_ahead_s
    if abs(ahead_s) > MAX_CLOCK_ERROR_S:
        raise NotReady(f"this server's clock is off by {abs(ahead_s):.0f} s; set it by NTP", retry_after_s=10.0)
    if platform.server.draining.is_set():
        raise NotReady("this server is stopping", retry_after_s=1.0)
    health, telemetry = _health(platform), platform.server.telemetry
    health.failing, health.failures = failed_jobs(telemetry.board, telemetry.failures)
    return health


@get(
    "/.well-known/jwks.json",
    operation_id="jwks",
    summary="The public keys that verify passes",
    opt={"access": Access.PUBLIC},
)
async def jwks(platform: FromPlatform) -> Response[JwksView]:
    keys: list[dict[str, Any]] = platform.room.service.jwks()["keys"]
    return Response(JwksView(keys), headers={"cache-control": "public, max-age=60"})


ROUTES: list[HTTPRouteHandler] = [healthz, readyz, jwks]
