"""Who may use the console, the keys of programs, and the log of changes."""

from typing import Any, Final

from litestar import Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.core.errors import FrontrowError, InvalidInput
from frontrow.waitingroom.console.model.owners import OwnerRole, Right, Scope
from frontrow.web.site.console.console import Asked, Console
from frontrow.web.site.console.refusals import sentence_of
from frontrow.web.site.console.render import render
from frontrow.web.site.console.routes import FromConsole, FromForm, FromOwner, action, go_to, page
from frontrow.web.site.languages import N_

ROLE_WORDS: Final = {
    OwnerRole.OWNER: (N_("Owner"), N_("Does everything, and invites others.")),
    OwnerRole.OPERATOR: (
        N_("Operator"),
        N_("Runs rooms: opens, pauses and closes them, changes their numbers and the message."),
    ),
    OwnerRole.VIEWER: (N_("Viewer"), N_("Sees rooms and figures.")),
}
SCOPE_WORDS: Final = {
    Scope.ROOM_READ: N_("See a room"),
    Scope.ROOM_WRITE: N_("Run a room: phase, settings, message, codes"),
    Scope.FIGURES_READ: N_("Read figures"),
    Scope.RULES_READ: N_("Read the rules (for connectors)"),
}
ACT_WORDS: Final = {
    "first_link": N_("Made a link for the first owner"),
    "join_console": N_("Joined the console"),
    "new_password": N_("Set a new password"),
    "sign_in": N_("Signed in"),
    "invite": N_("Invited"),
    "remove_person": N_("Removed a person"),
    "make_key": N_("Created an API key"),
    "revoke_key": N_("Revoked an API key"),
    "create_room": N_("Created the room"),
    "delete_room": N_("Deleted the room"),
    "open": N_("Opened the room"),
    "pause": N_("Paused the room"),
    "resume": N_("Resumed the room"),
    "queue_all": N_("Made everyone wait"),
    "close": N_("Closed the room"),
    "change_settings": N_("Changed settings"),
    "change_by_key": N_("Changed the room by API"),
    "set_message": N_("Changed the message"),
    "set_schedule": N_("Changed the schedule"),
    "set_rules": N_("Changed the rules"),
    "set_page": N_("Changed the page"),
    "step_prequeue": N_("Schedule: began the pre-queue"),
    "step_open": N_("Schedule: opened the room"),
    "step_close": N_("Schedule: closed the room"),
}
LINES: Final = 50


@page("/console/people", right=Right.PEOPLE)
async def people_page(request: Asked, console: FromConsole, owner: FromOwner) -> Response[bytes]:
    """Everybody who may sign in."""
    return await _people_page(request, console, owner)


async def _people_page(
    request: Asked,
    console: Console,
    owner: Any,
    problem: FrontrowError | None = None,
    link: str = "",
    typed: str = "",
) -> Response[bytes]:
    if problem is not None and problem.http_status >= 500:
        raise problem
    return render(
        request,
        "console/people.html",
        owner,
        status=200 if problem is None else problem.http_status,
        people=sorted(await console.access.owners(), key=lambda one: one.email),
        roles=ROLE_WORDS,
        link=link,
        email=typed,
        problem=sentence_of(problem) if problem is not None else "",
    )


@action("/console/people", right=Right.PEOPLE)
async def invite(request: Asked, console: FromConsole, owner: FromOwner, form: FromForm) -> Response[bytes]:
    """Make a one-time link for somebody: a new person, or a new password."""
    email = form.one("email", 254)
    try:
        role = form.one("role", 20)
        if role not in list(OwnerRole):
            raise InvalidInput("there is no such role", param="role")
        secret = await console.access.invite(owner, email, OwnerRole(role))
    except FrontrowError as error:
        return await _people_page(request, console, owner, error, typed=email)
    base = console.settings.public_url.rstrip("/") or f"{request.url.scheme}://{request.url.netloc}"
    return await _people_page(request, console, owner, link=f"{base}/console/begin#{secret}")


@action("/console/people/{person:str}/remove", right=Right.PEOPLE)
async def remove_person(
    request: Asked, console: FromConsole, owner: FromOwner, form: FromForm, person: FromPath[str]
) -> Response[bytes]:
    """Take the account and its sessions away."""
    try:
        await console.access.remove(owner, person)
    except FrontrowError as error:
        return await _people_page(request, console, owner, error)
    return go_to("/console/people?done=saved")


@page("/console/keys", right=Right.SET_UP)
async def keys_page(request: Asked, console: FromConsole, owner: FromOwner) -> Response[bytes]:
    """The keys of programs."""
    return await _keys_page(request, console, owner)


async def _keys_page(
    request: Asked,
    console: Console,
    owner: Any,
    problem: FrontrowError | None = None,
    secret: str = "",
    typed: str = "",
) -> Response[bytes]:
    if problem is not None and problem.http_status >= 500:
        raise problem
    return render(
        request,
        "console/keys.html",
        owner,
        status=200 if problem is None else problem.http_status,
        keys=[one for one in await console.access.keys() if not one.revoked_at_us],
        scopes=SCOPE_WORDS,
        rooms=sorted(console.rooms.plans),
        secret=secret,
        name=typed,
        problem=sentence_of(problem) if problem is not None else "",
    )


@action("/console/keys", right=Right.SET_UP)
async def make_key(request: Asked, console: FromConsole, owner: FromOwner, form: FromForm) -> Response[bytes]:
    """A key, whose secret is shown once."""
    name = form.one("name", 200)
    try:
        scopes = [scope for scope in Scope if scope.value in form.all("scope")]
        rooms = [room for room in form.all("room") if room in console.rooms.plans]
        _, secret = await console.access.make_key(owner, name, scopes, rooms)
    except FrontrowError as error:
        return await _keys_page(request, console, owner, error, typed=name)
    return await _keys_page(request, console, owner, secret=secret)


@action("/console/keys/{key:str}/revoke", right=Right.SET_UP)
async def revoke_key(console: FromConsole, owner: FromOwner, form: FromForm, key: FromPath[str]) -> Response[bytes]:
    """Refuse the key from now on."""
    await console.access.revoke_key(owner, key)
    return go_to("/console/keys?done=saved")


@page("/console/log", right=Right.SET_UP)
async def log_page(request: Asked, console: FromConsole, owner: FromOwner) -> Response[bytes]:
    """Who changed what."""
    room = request.query_params.get("room", "")[:40]
    before = request.query_params.get("before", "")
    lines = await console.rooms.log_lines(room, int(before) if before.isascii() and before.isdigit() else 0, LINES)
    return render(
        request,
        "console/log.html",
        owner,
        lines=lines,
        acts=ACT_WORDS,
        room=room,
        older=lines[-1].number if len(lines) == LINES else 0,
    )


CONSOLE_ROUTES: list[HTTPRouteHandler] = [
    people_page,
    invite,
    remove_person,
    keys_page,
    make_key,
    revoke_key,
    log_page,
]
