"""Before a sale: "Notify me when the sale opens", registration for a presale, and the links of their mails.

Everything is a plain form. A mailed link shows a page with one button, so that a mail scanner that opens links confirms
and ends nothing.
"""

from dataclasses import dataclass
from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.presale.model import Presale, PresaleState, Purpose, Signup, SignupNotFound, SignupState
from frontrow.core.errors import FrontrowError, Unavailable
from frontrow.web.http.access import Caller
from frontrow.web.platform.access_check import client_ip, proven_email
from frontrow.web.platform.event_access import shown_event
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.event_display import shown
from frontrow.web.site.fans.email_fields import BAD_EMAIL, email_problem
from frontrow.web.site.form_answers import tell, told
from frontrow.web.site.languages import N_
from frontrow.web.site.render import render, words_for
from frontrow.web.site.routes import FromForm, action, go_to, page

Asked = Request[Any, Any, Any]
REFUSALS: Final = {
    "too_many_tries": N_("Too many tries. Please wait a few minutes."),
    "notice_refused": N_("There is no upcoming sale to notify you about."),
    "registration_closed": N_("Registration for the presale is closed."),
    "presale_not_found": N_("Registration for the presale is closed."),
}
PATHS: Final = {Purpose.NOTICE: "notify", Purpose.PRESALE: "presale"}
TITLES: Final = {Purpose.NOTICE: N_("Notify me when the sale opens"), Purpose.PRESALE: N_("Register for the presale")}


@dataclass(frozen=True, slots=True)
class BeforeSale:
    """What an event's page offers before the general sale."""

    presale: Presale | None
    takes: bool  # registrations, now
    email: str  # the signed-in fan's own

    @property
    def is_drawn(self) -> bool:
        return self.presale is not None and self.presale.state is not PresaleState.OPEN


async def before_sale(platform: Platform, caller: Caller, event: Event, state: str) -> BeforeSale | None:
    """The sign-ups of an event whose general sale is still to come; None for any other."""
    if state not in ("soon", "presale"):
        return None
    presale = await platform.presale.presales.find(event.id)
    takes = presale is not None and presale.takes_registrations(platform.clock())
    return BeforeSale(presale, takes, await proven_email(platform, caller))


@page("/events/{event_id:str}/notify", "notice_asked")
async def notice_page(request: Asked, platform: FromPlatform, event_id: FromPath[str]) -> Response[bytes]:
    """What came of asking for a notice."""
    return await _signed_up(request, platform, event_id, Purpose.NOTICE)


@page("/events/{event_id:str}/presale", "presale_asked")
async def presale_page(request: Asked, platform: FromPlatform, event_id: FromPath[str]) -> Response[bytes]:
    """What came of registering for the presale."""
    return await _signed_up(request, platform, event_id, Purpose.PRESALE)


async def _signed_up(request: Asked, platform: Platform, event_id: str, purpose: Purpose) -> Response[bytes]:
    """The page after signing up; the form itself is on the event's page."""
    event, said = await shown_event(platform, event_id), told(request)
    if not said.says:
        return go_to(f"/events/{event.id}")
    email, problem = said.text("email"), said.text("problem")
    return await _page(
        request, platform, event, purpose, said.text("step"), email=email, problem=problem, status=said.status
    )


@action("/events/{event_id:str}/notify", "ask_notice")
async def ask_notice(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Notify this address when the sale opens, once it is confirmed."""
    return await _sign_up(request, platform, caller, event_id, Purpose.NOTICE, form.one("email", 254))


@action("/events/{event_id:str}/presale", "register_presale")
async def register(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Register this address for the presale, once it is confirmed."""
    return await _sign_up(request, platform, caller, event_id, Purpose.PRESALE, form.one("email", 254))


async def _sign_up(
    request: Asked, platform: Platform, caller: Caller, event_id: str, purpose: Purpose, email: str
) -> Response[bytes]:
    event, language = await shown_event(platform, event_id), words_for(request).language
    own = await proven_email(platform, caller)
    page = f"/events/{event.id}/{PATHS[purpose]}"
    if not own and (problem := email_problem(email)):
        return tell(request, page, {"step": "ask", "problem": problem, "email": email}, status=422)
    try:
        if own:
            await platform.presale.signups.sign_up_fan(event, purpose, own, language)
            return tell(request, page, {"step": "confirmed", "email": own})
        await platform.presale.signups.request(event, purpose, email, client_ip(platform, request), language)
    except Unavailable:
        raise
    except FrontrowError as error:
        problem = REFUSALS.get(error.code, BAD_EMAIL)
        says = {"step": "ask", "problem": problem, "email": email}
        return tell(request, page, says, status=error.http_status)
    return tell(request, page, {"step": "asked", "email": email})


@page("/sign-ups/confirm/{token:str}", "confirm_sign_up")
async def ask_confirm(request: Asked, platform: FromPlatform, token: FromPath[str]) -> Response[bytes]:
    """A button that confirms the address."""
    signup = await platform.presale.signups.find("confirm", token)
    step, said = "confirm" if signup.state is SignupState.ASKED else "confirmed", told(request)
    if said.says:
        return await _of_signup(request, platform, signup, "ask", token, said.text("problem"), said.status)
    return await _of_signup(request, platform, signup, step, token)


@action("/sign-ups/confirm/{token:str}", "do_confirm_sign_up")
async def confirm(request: Asked, platform: FromPlatform, token: FromPath[str], form: FromForm) -> Response[bytes]:
    """Confirm the address."""
    page = f"/sign-ups/confirm/{token}"
    try:
        await platform.presale.signups.confirm(token)
    except SignupNotFound:
        raise
    except FrontrowError as error:
        problem = REFUSALS.get(error.code, N_("That did not work. Please try again."))
        return tell(request, page, {"problem": problem}, status=error.http_status)
    return go_to(page)


@page("/sign-ups/end/{token:str}", "end_sign_up")
async def ask_end(request: Asked, platform: FromPlatform, token: FromPath[str]) -> Response[bytes]:
    """A button that stops the emails."""
    said = told(request)
    if said.says:
        event = await shown_event(platform, said.text("event"))
        purpose = Purpose(said.text("purpose"))
        return await _page(request, platform, event, purpose, "ended", token=token, email=said.text("email"))
    try:
        signup = await platform.presale.signups.find("end", token)
    except SignupNotFound:
        return render(request, "signup.html", step="ended", one=None, title=N_("Emails about this sale"))
    return await _of_signup(request, platform, signup, "end", token)


@action("/sign-ups/end/{token:str}", "do_end_sign_up")
async def end(request: Asked, platform: FromPlatform, token: FromPath[str], form: FromForm) -> Response[bytes]:
    """Stop the emails to this address."""
    try:
        signup = await platform.presale.signups.end(token)
    except SignupNotFound:
        return go_to(f"/sign-ups/end/{token}")
    about = {"event": signup.event_id, "purpose": signup.purpose.value, "email": signup.email}
    return tell(request, f"/sign-ups/end/{token}", about)


async def _of_signup(
    request: Asked, platform: Platform, signup: Signup, step: str, token: str, problem: str = "", status: int = 200
) -> Response[bytes]:
    event = await shown_event(platform, signup.event_id)
    return await _page(
        request, platform, event, signup.purpose, step, token=token, email=signup.email, problem=problem, status=status
    )


async def _page(
    request: Asked,
    platform: Platform,
    event: Event,
    purpose: Purpose,
    step: str,
    *,
    email: str = "",
    problem: str = "",
    token: str = "",
    status: int = 200,
) -> Response[bytes]:
    one = shown(platform, event, await platform.ledger.catalogue.venue(event.venue_id))
    presale = await platform.presale.presales.find(event.id) if purpose is Purpose.PRESALE else None
    return render(
        request,
        "signup.html",
        status=status,
        step=step,
        one=one,
        title=TITLES[purpose],
        purpose=purpose.value,
        presale=presale,
        email=email,
        problem=problem,
        token=token,
    )


ROUTES: list[HTTPRouteHandler] = [
    notice_page,
    presale_page,
    ask_notice,
    register,
    ask_confirm,
    confirm,
    ask_end,
    end,
]
