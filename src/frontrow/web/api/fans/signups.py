"""Before a sale: a notification when it opens, or registration for its presale (W12). One sign-up per address."""

from typing import Annotated, Any

import msgspec
from litestar import Request, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody

from frontrow.boxoffice.presale.model import Purpose, Signup
from frontrow.core.errors import Unauthorised
from frontrow.shared.local_time import time_text
from frontrow.web.http.access import Access, Caller
from frontrow.web.http.bodies.json_values import Time
from frontrow.web.http.bodies.sign_in import checked_locale
from frontrow.web.platform.access_check import client_ip, proven_email
from frontrow.web.platform.event_access import shown_event
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform

ASK = {"access": Access.PUBLIC, "problems": (401, 404, 409), "idempotency": "own"}


class SignupAsked(msgspec.Struct, forbid_unknown_fields=True):
    """The address to write to. Without one, the signed-in fan's address is used, which needs no confirmation."""

    email: Annotated[str, msgspec.Meta(max_length=254, examples=["ada@example.org"])] = ""
    locale: Annotated[str, msgspec.Meta(max_length=35, examples=["en"])] = "en"


class SignupView(msgspec.Struct):
    """`asked`: a link that proves the address was mailed. `confirmed`: the address is proven."""

    event: str
    purpose: Annotated[str, msgspec.Meta(examples=["notice"])]
    state: Annotated[str, msgspec.Meta(examples=["asked"])]
    registration: str | None = None


class TokenGiven(msgspec.Struct, forbid_unknown_fields=True):
    """The last part of a mailed link's address."""

    token: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class PresaleView(msgspec.Struct):
    """A presale to register for. The seed is published after the draw; its hash, the `commitment`, from the beginning.

    A lottery can be checked: the rank of a registration is the SHA-256 of seed, beacon, event and registration id,
    joined by line feeds, in hexadecimal; those up to `last_rank` were chosen.
    """

    event: str
    opens_at: Time
    closes_at: Time
    takes_registrations: bool
    order: str
    codes: int
    state: str
    commitment: str
    registrations: int | None = None
    chosen: int | None = None
    seed: str | None = None
    beacon: str | None = None
    last_rank: str | None = None


def _sign_up_route(path: str, operation_id: str, summary: str, purpose: Purpose) -> HTTPRouteHandler:
    """A route that signs an address up for `purpose`."""

    @post(path, operation_id=operation_id, summary=summary, status_code=202, opt=ASK)
    async def sign_up(
        request: Request[Any, Any, Any],
        platform: FromPlatform,
        caller: FromCaller,
        event_id: FromPath[str],
        data: JSONBody[SignupAsked],
    ) -> SignupView:
        return await _sign_up(request, platform, caller, event_id, purpose, data)

    return sign_up


ask_notice = _sign_up_route(
    "/v1/events/{event_id:str}/notices",
    "ask_sale_notice",
    "Get an email when the sale opens",
    Purpose.NOTICE,
)
register = _sign_up_route(
    "/v1/events/{event_id:str}/presale/registrations",
    "register_for_presale",
    "Register for the presale",
    Purpose.PRESALE,
)


async def _sign_up(
    request: Request[Any, Any, Any],
    platform: Platform,
    caller: Caller,
    event_id: str,
    purpose: Purpose,
    data: SignupAsked,
) -> SignupView:
    event, locale = await shown_event(platform, event_id), checked_locale(data.locale)
    if not data.email:
        own = await proven_email(platform, caller)
        if not own:
            raise Unauthorised("sign in, or give an e-mail address", param="email")
        return view_of(await platform.presale.signups.sign_up_fan(event, purpose, own, locale))
    await platform.presale.signups.request(event, purpose, data.email, client_ip(platform, request), locale)
    return SignupView(event.id, purpose.value, "asked")


@post(
    "/v1/sign-ups/confirm",
    operation_id="confirm_sign_up",
    summary="Prove the address of a sign-up by its mailed link",
    status_code=200,
    opt=ASK,
)
async def confirm(platform: FromPlatform, data: JSONBody[TokenGiven]) -> SignupView:
    return view_of(await platform.presale.signups.confirm(data.token))


@post(
    "/v1/sign-ups/end",
    operation_id="end_sign_up",
    summary="End the e-mails, by the link in one of them",
    status_code=204,
    opt=ASK,
)
async def end(platform: FromPlatform, data: JSONBody[TokenGiven]) -> None:
    await platform.presale.signups.end(data.token)


@get(
    "/v1/events/{event_id:str}/presale",
    operation_id="get_presale",
    summary="The presale's registration and the record of its draw",
    opt={"access": Access.PUBLIC, "problems": (404,)},
)
async def get_presale(platform: FromPlatform, event_id: FromPath[str]) -> PresaleView:
    event = await shown_event(platform, event_id)
    presale = await platform.presale.presales.get(event.id)
    record = presale.record(await platform.presale.presales.counts(event.id))
    return PresaleView(
        event=event.id,
        opens_at=time_text(presale.opens_at_us),
        closes_at=time_text(presale.closes_at_us),
        takes_registrations=presale.takes_registrations(platform.clock()),
        **record,
    )


def view_of(signup: Signup) -> SignupView:
    registration = signup.id if signup.purpose is Purpose.PRESALE else None
    return SignupView(signup.event_id, signup.purpose.value, signup.state.value, registration)


ROUTES: list[HTTPRouteHandler] = [ask_notice, register, confirm, end, get_presale]
