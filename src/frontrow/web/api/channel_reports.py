"""What providers of mail and SMS report: bounces, complaints, STOP and START. Each is verified and handled once."""

from typing import Any, Final

from litestar import Request, Response, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.core.errors import NotFound
from frontrow.web.http.access import Access
from frontrow.web.platform.injected import FromPlatform

KINDS: Final = ("application/json", "text/plain", "application/x-www-form-urlencoded")  # SNS sends JSON as plain text


@post(
    "/v1/channels/{provider:str}",
    operation_id="channel_report",
    summary="What Twilio and SES (through SNS) report of messages, signed as they sign it",
    status_code=200,
    opt={
        "access": Access.PUBLIC,
        "idempotency": "own",
        "problems": (401, 404),
        "raw_body": "application/json",
        "accepts": KINDS,
    },
)
async def channel_report(
    platform: FromPlatform, request: Request[Any, Any, Any], provider: FromPath[str]
) -> Response[str]:
    """The answer is empty TwiML: Twilio reads it and answers the person nothing more."""
    reports = platform.messaging.reports
    if reports is None:
        raise NotFound("this process takes no reports")
    headers = {name.lower(): value for name, value in request.headers.items()}
    query = f"?{request.url.query}" if request.url.query else ""
    url = f"{platform.settings.public_url.rstrip('/')}{request.url.path}{query}"
    await reports.handle(provider, url, await request.body(), headers)
    return Response("<Response></Response>", media_type="text/xml")


ROUTES: list[HTTPRouteHandler] = [channel_report]
