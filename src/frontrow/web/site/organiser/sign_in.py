"""Members of a team sign in: password, then a code; invitations are accepted here, and second factors set up.

What a link brings stands behind `#`, where no server sees it; a script (or the person) puts it into the form.
"""

import base64
from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler

from frontrow.boxoffice.attempt_limit import TooManyTries
from frontrow.boxoffice.people.model.people import LinkSpent, Session, Stage, SubjectKind, WrongCredentials
from frontrow.boxoffice.people.sessions import SignedIn
from frontrow.boxoffice.people.staff_sign_in import Enrolment
from frontrow.boxoffice.tickets import qr_code as qr
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import InvalidInput
from frontrow.shared.vault import SealBroken
from frontrow.web.http.access import Caller
from frontrow.web.http.bodies.sign_in import agent_of
from frontrow.web.http.cookies import cookie_header, removed_cookie, session_cookie
from frontrow.web.platform.access_check import client_ip
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.fans.account import back_of
from frontrow.web.site.form_answers import forget_told, tell, told
from frontrow.web.site.languages import N_
from frontrow.web.site.render import render
from frontrow.web.site.routes import FromForm, action, go_to, page

Asked = Request[Any, Any, Any]
HOME: Final = "/organiser"
SIGN_IN: Final = "/organiser/sign-in"
SECOND_FACTOR: Final = "/organiser/second-factor"
MOST_PASSWORD_CHARS: Final = 1_024
MAX_PENDING_CHARS: Final = 1_000
WRONG_PASSWORD: Final = N_("Wrong email address or password.")
WRONG_CODE: Final = N_("This code is wrong or was already used. Wait for the next one and enter it.")
TOO_MANY: Final = N_("Too many tries. Please wait a few minutes.")
SPENT: Final = N_("This invitation was used, was withdrawn or has expired. Ask for a new one.")
WEAK: Final = N_("Use at least 12 characters that are hard to guess. A sentence is fine.")
NO_NAME: Final = N_("Please enter your name.")


def staff_back(text: str) -> str:
    """Where to go after signing in: one of the team's own pages."""
    path = back_of(text, HOME)
    return path if path.startswith((HOME, "/door")) and path != SIGN_IN else HOME


def staff_session(caller: Caller) -> Session | None:
    """The session of a member, also one that is only half signed in."""
    session = caller.session
    return session if session is not None and session.kind is SubjectKind.STAFF else None


def entered(signed_in: SignedIn, path: str) -> Response[bytes]:
    """Redirect to a page, with the new session."""
    return go_to(path, {"set-cookie": _cookie_of(signed_in)})


def _cookie_of(signed_in: SignedIn) -> str:
    life_s = max(0, signed_in.session.ends_at_us - signed_in.session.created_at_us) // US_PER_S
    return cookie_header(session_cookie(signed_in.secret, life_s))


@page(SIGN_IN, "staff_sign_in")
async def sign_in(request: Asked, caller: FromCaller) -> Response[bytes]:
    """The next step of signing in: password, code, or setting up the second factor."""
    session, back = staff_session(caller), staff_back(request.query_params.get("back", ""))
    if session is not None and session.stage is Stage.FULL:
        return go_to(back)
    if session is not None and session.stage is Stage.ENROL:
        return go_to(SECOND_FACTOR)
    said = told(request)
    return render(
        request,
        "organiser/sign-in.html",
        status=said.status,
        step="code" if session is not None else "password",
        back=back,
        email=said.text("email"),
        problem=said.text("problem"),
    )


def _again(request: Asked, back: str, problem: str, status: int, email: str = "") -> Response[bytes]:
    return tell(request, f"{SIGN_IN}?back={back}", {"problem": problem, "email": email}, status=status)


@action(SIGN_IN, "staff_password")
async def password(request: Asked, platform: FromPlatform, caller: FromCaller, form: FromForm) -> Response[bytes]:
    """The first step."""
    back, email = staff_back(form.one("back")), form.one("email", 254)
    try:
        signed_in = await platform.people.staff.sign_in(
            email,
            form.secret("password", MOST_PASSWORD_CHARS),
            "",
            client_ip(platform, request),
            agent=agent_of(request),
            replaces=caller.session,
        )
    except WrongCredentials:
        return _again(request, back, WRONG_PASSWORD, 401, email)
    except TooManyTries:
        return _again(request, back, TOO_MANY, 429, email)
    return entered(signed_in, f"{SIGN_IN}?back={back}")


@action(f"{SIGN_IN}/code", "staff_code")
async def code(request: Asked, platform: FromPlatform, caller: FromCaller, form: FromForm) -> Response[bytes]:
    """The second step."""
    session, back = staff_session(caller), staff_back(form.one("back"))
    if session is None or session.stage is not Stage.TOTP:  # too slow: the half session has ended
        return go_to(f"{SIGN_IN}?back={back}")
    try:
        signed_in = await platform.people.staff.complete_second_step(session, form.one("code", 40))
    except WrongCredentials:
        return _again(request, back, WRONG_CODE, 401)
    except TooManyTries:
        return _again(request, back, TOO_MANY, 429)
    return entered(signed_in, back)


@page(SECOND_FACTOR, "second_factor")
async def second_factor(request: Asked, platform: FromPlatform, caller: FromCaller) -> Response[bytes]:
    """A secret for the authenticator app, as a picture and as letters; then, once, the recovery codes."""
    session, said = staff_session(caller), told(request)
    if said.texts("codes"):
        return _recovery_codes(request, platform, said.texts("codes"))
    if session is None or session.stage is not Stage.ENROL:
        return go_to(SIGN_IN)
    if not said.text("pending"):
        return _enrol(request, await platform.people.staff.begin_enrolment(session, ""))
    try:
        begun = await platform.people.staff.reload_enrolment(session, said.text("pending"))
    except SealBroken:
        return go_to(SECOND_FACTOR)
    return _enrol(request, begun, said.text("problem"))


def _enrol(request: Asked, begun: Enrolment, problem: str = "") -> Response[bytes]:
    picture = base64.b64encode(qr.svg(begun.uri).encode()).decode()
    groups = [begun.secret[at : at + 4] for at in range(0, len(begun.secret), 4)]
    return render(
        request,
        "organiser/second-factor.html",
        status=401 if problem else 200,
        begun=begun,
        picture=picture,
        groups=groups,
        problem=problem,
        codes=[],
    )


@action(SECOND_FACTOR, "confirm_second_factor")
async def confirm(request: Asked, platform: FromPlatform, caller: FromCaller, form: FromForm) -> Response[bytes]:
    """The first code proves the set-up; recovery codes are shown once."""
    session, staff, pending = staff_session(caller), platform.people.staff, form.one("pending", MAX_PENDING_CHARS)
    if session is None or session.stage is not Stage.ENROL:
        return go_to(SIGN_IN)
    try:
        signed_in, codes = await staff.finish_enrolment(session, pending, form.one("code", 40))
    except SealBroken:  # it ran out: begin again
        return go_to(SECOND_FACTOR)
    except WrongCredentials:
        return tell(request, SECOND_FACTOR, {"pending": pending, "problem": WRONG_CODE})
    except TooManyTries:
        return tell(request, SECOND_FACTOR, {"pending": pending, "problem": TOO_MANY})
    return tell(request, SECOND_FACTOR, {"codes": list(codes)}, headers={"set-cookie": _cookie_of(signed_in)})


def _recovery_codes(request: Asked, platform: Platform, codes: list[str]) -> Response[bytes]:
    shown = render(request, "organiser/second-factor.html", codes=codes, begun=None, picture="", groups=[], problem="")
    forget_told(platform, shown)
    return shown


@page("/invitation", "invitation")
async def invitation(request: Asked) -> Response[bytes]:
    """Where the link of an invitation leads."""
    said = told(request)
    return render(
        request,
        "organiser/invitation.html",
        status=said.status,
        script="js/organiser/invitation.js",
        problem=said.text("problem"),
        link=said.text("link"),
        name=said.text("name"),
        field=said.text("field"),
    )


def _invited(request: Asked, problem: str, status: int, **typed: str) -> Response[bytes]:
    return tell(request, "/invitation", {"problem": problem, **typed}, status=status)


@action("/invitation", "accept_invitation")
async def accept(request: Asked, platform: FromPlatform, caller: FromCaller, form: FromForm) -> Response[bytes]:
    """A member with a password of their own, signed in so far that the second factor can be set up."""
    link, name = form.one("link", 400).rpartition("#")[2], form.one("name", 200)
    secret, ip = form.secret("password", MOST_PASSWORD_CHARS), client_ip(platform, request)
    try:
        await platform.people.sign_in_limits.ip.count_attempt(ip)
        member = await platform.people.team.accept(link, name, secret)
        signed_in = await platform.people.staff.sign_in(
            member.email, secret, "", ip, agent=agent_of(request), replaces=caller.session
        )
    except TooManyTries:
        return _invited(request, TOO_MANY, 429, link=link, name=name)
    except LinkSpent:
        return _invited(request, SPENT, 404, name=name, field="link")
    except InvalidInput as error:
        wrong = NO_NAME if error.param == "name" else WEAK
        return _invited(request, wrong, 422, link=link, name=name, field=error.param or "")
    return entered(signed_in, SIGN_IN)


@action("/organiser/sign-out", "staff_sign_out")
async def sign_out(platform: FromPlatform, caller: FromCaller, form: FromForm) -> Response[bytes]:
    """End this session."""
    if caller.session is not None:
        await platform.people.sessions.end(caller.session.subject, caller.session.id)
    return go_to(SIGN_IN, {"set-cookie": cookie_header(removed_cookie())})


ROUTES: list[HTTPRouteHandler] = [
    sign_in,
    password,
    code,
    second_factor,
    confirm,
    invitation,
    accept,
    sign_out,
]
