"""Who may use the console, the keys of programs, and the log of changes."""

from typing import Final

from litestar import Response
from litestar.handlers import HTTPRouteHandler

from frontrow.core.errors import InvalidInput
from frontrow.waitingroom.console.model.owners import OwnerRole, Right, Scope
from frontrow.web.site.console.console import Asked
from frontrow.web.site.console.form_pages import PageCall, form_page
from frontrow.web.site.console.render import render
from frontrow.web.site.console.routes import FromConsole, FromOwner, page
from frontrow.web.site.languages import N_
from frontrow.web.site.routes import Form

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


@form_page("/console/people", right=Right.PEOPLE)
async def people_page(call: PageCall, link: str = "") -> Response[bytes]:
    """Everybody who may sign in. `link` is a new one, shown once."""
    return call.render(
        "console/people.html",
        people=sorted(await call.console.access.owners(), key=lambda one: one.email),
        roles=ROLE_WORDS,
        link=link,
        email=call.form.one("email", 254) if call.form is not None else "",
    )


@people_page.form("/console/people", right=Right.PEOPLE)
async def invite(call: PageCall, form: Form) -> Response[bytes]:
    """Make a one-time link for somebody: a new person, or a new password."""
    role = form.one("role", 20)
    if role not in list(OwnerRole):
        raise InvalidInput("there is no such role", param="role")
    secret = await call.console.access.invite(call.owner, form.one("email", 254), OwnerRole(role))
    url = call.request.url
    base = call.console.settings.public_url.rstrip("/") or f"{url.scheme}://{url.netloc}"
    return await people_page.show(call, f"{base}/console/begin#{secret}")


@people_page.form("/console/people/{person:str}/remove", right=Right.PEOPLE)
async def remove_person(call: PageCall, form: Form) -> None:
    """Take the account and its sessions away."""
    await call.console.access.remove(call.owner, call.path("person"))


@form_page("/console/keys", right=Right.SET_UP)
async def keys_page(call: PageCall, secret: str = "") -> Response[bytes]:
    """The keys of programs. `secret` is a new key's, shown once."""
    return call.render(
        "console/keys.html",
        keys=[one for one in await call.console.access.keys() if not one.revoked_at_us],
        scopes=SCOPE_WORDS,
        rooms=sorted(call.console.rooms.plans),
        secret=secret,
        name=call.form.one("name", 200) if call.form is not None else "",
    )


@keys_page.form("/console/keys", right=Right.SET_UP)
async def make_key(call: PageCall, form: Form) -> Response[bytes]:
    """A key, whose secret is shown once."""
    scopes = [scope for scope in Scope if scope.value in form.all("scope")]
    rooms = [room for room in form.all("room") if room in call.console.rooms.plans]
    _, secret = await call.console.access.make_key(call.owner, form.one("name", 200), scopes, rooms)
    return await keys_page.show(call, secret)


@keys_page.form("/console/keys/{key:str}/revoke", right=Right.SET_UP)
async def revoke_key(call: PageCall, form: Form) -> None:
    """Refuse the key from now on."""
    await call.console.access.revoke_key(call.owner, call.path("key"))


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
    people_page.route,
    invite,
    remove_person,
    keys_page.route,
    make_key,
    revoke_key,
    log_page,
]
