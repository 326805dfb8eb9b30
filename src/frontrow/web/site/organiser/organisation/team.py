"""The team (who is in it, who is invited, which keys programs have), by the same services as the API."""

from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.people.model.roles import Role
from frontrow.core.errors import FrontrowError, InvalidInput, Unavailable
from frontrow.web.http.access import Access, Caller, actor
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.form_answers import show_once
from frontrow.web.site.languages import N_
from frontrow.web.site.organiser.organisation.change_log import ROLE_WORDS, names_of_team
from frontrow.web.site.render import render, words_for
from frontrow.web.site.routes import FromForm, action, go_to, page

Asked = Request[Any, Any, Any]
TEAM: Final = "/organiser/team"
DAY_S: Final = 86_400
LIVES: Final = {"": N_("Until revoked"), "30": N_("30 days"), "365": N_("A year")}
# what a role may do, as `boxoffice/people/model/roles.py` grants it
ROLE_TEXTS: Final = {
    Role.OWNER: N_("Everything, including the team and its API keys."),
    Role.MANAGER: N_(
        "Sets events up, publishes, pauses and cancels, refunds, writes to buyers. Cannot change the team."
    ),
    Role.BOX_OFFICE: N_("Sells and gives tickets, helps buyers, refunds, makes codes, scans. Cannot change events."),
    Role.DOOR: N_("Scans tickets at the gate and finds bookings there. Sees no sales figures."),
    Role.READ_ONLY: N_("Sees events, bookings, figures, the team and the audit log. Changes nothing."),
}
SCOPES: Final = {
    "events:read": N_("See events that are not public yet"),
    "events:write": N_("Create and change venues, events, prices and dates"),
    "sales:control": N_("Publish, pause and cancel sales, and control the waiting room"),
    "bookings:read": N_("See bookings and who made them"),
    "refunds:write": N_("Refund; sell and give tickets at the box office"),
    "messages:write": N_("Write to buyers"),
    "codes:write": N_("Make presale and priority codes"),
    "webhooks:write": N_("Set webhooks up"),
    "figures:read": N_("See sales figures"),
    "door:scan": N_("Check tickets at the gate"),
    "audit:read": N_("See who changed what"),
    "team:read": N_("See who is in the team"),
    "team:write": N_("Invite, change and remove members"),
    "keys:write": N_("Create and revoke API keys"),
}
DONE: Final = {
    "invited": N_("Invited. The link is sent by email."),
    "withdrawn": N_("The invitation is withdrawn."),
    "role": N_("The role is changed. The member signs in again."),
    "removed": N_("Removed. Their keys have stopped working."),
    "reset": N_("A link for a new password is on its way."),
    "revoked": N_("The key is revoked."),
}
REFUSALS: Final = {
    "already_member": N_("This address already has an account."),
    "last_owner": N_("A team needs an owner. Make someone else an owner first."),
    "not_allowed": N_("You cannot grant permissions that you do not have."),
    "invalid_input": N_("Please check what you entered."),
}
REFUSED: Final = N_("That was not possible. Nothing was changed.")


@page(TEAM, "team", Access.staff("team:read"))
async def team(request: Asked, platform: FromPlatform, caller: FromCaller) -> Response[bytes]:
    """Members, open invitations, keys."""
    return await _team(request, platform, caller)


async def _team(
    request: Asked, platform: Platform, caller: Caller, *, refusal: str = "", secret: str = ""
) -> Response[bytes]:
    who = actor(caller)
    members, invitations = await platform.people.team.members(who)
    keys = await platform.people.team.keys(who) if "keys:write" in caller.permissions else []
    return render(
        request,
        "organiser/team.html",
        script="js/organiser/dialogs.js",
        status=422 if refusal else 200,
        members=members,
        invitations=invitations,
        keys=keys,
        names=await names_of_team(platform, caller),
        roles=ROLE_WORDS,
        role_texts=ROLE_TEXTS,
        scopes=SCOPES,
        lives=LIVES,
        secret=secret,
        refusal=refusal,
        done=DONE.get(request.query_params.get("done", ""), ""),
        write="team:write" in caller.permissions,
        make="keys:write" in caller.permissions,
    )


async def _done(request: Asked, platform: Platform, caller: Caller, work: Any, said: str) -> Response[bytes]:
    """Do it and redirect back; a refusal is shown on the page."""
    try:
        await work
    except Unavailable:
        raise
    except FrontrowError as error:
        return await _team(request, platform, caller, refusal=REFUSALS.get(error.code, REFUSED))
    return go_to(f"{TEAM}?done={said}")


def _role(text: str) -> Role:
    if text not in [one.value for one in Role]:
        raise InvalidInput("there is no such role", param="role")
    return Role(text)


@action(f"{TEAM}/invite", "team_invite", Access.staff("team:write"))
async def invite(request: Asked, platform: FromPlatform, caller: FromCaller, form: FromForm) -> Response[bytes]:
    """Invite a member by email, with a role."""
    role, language = _role(form.one("role")), words_for(request).language
    work = platform.people.team.invite(actor(caller), form.one("email", 254), role, language)
    return await _done(request, platform, caller, work, "invited")


@action(f"{TEAM}/invitations/{{invitation_id:str}}/withdraw", "team_withdraw", Access.staff("team:write"))
async def withdraw(
    request: Asked, platform: FromPlatform, caller: FromCaller, invitation_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    work = platform.people.team.withdraw(actor(caller), invitation_id)
    return await _done(request, platform, caller, work, "withdrawn")


@action(f"{TEAM}/members/{{staff_id:str}}/role", "team_role", Access.staff("team:write"))
async def change_role(
    request: Asked, platform: FromPlatform, caller: FromCaller, staff_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    work = platform.people.team.change_role(actor(caller), staff_id, _role(form.one("role")))
    return await _done(request, platform, caller, work, "role")


@action(f"{TEAM}/members/{{staff_id:str}}/remove", "team_remove", Access.staff("team:write"))
async def remove(
    request: Asked, platform: FromPlatform, caller: FromCaller, staff_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    work = platform.people.team.remove(actor(caller), staff_id)
    return await _done(request, platform, caller, work, "removed")


@action(f"{TEAM}/members/{{staff_id:str}}/reset", "team_reset", Access.staff("team:write"))
async def reset(
    request: Asked, platform: FromPlatform, caller: FromCaller, staff_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    work = platform.people.team.reset(actor(caller), staff_id, words_for(request).language)
    return await _done(request, platform, caller, work, "reset")


@action(f"{TEAM}/keys", "team_make_key", Access.staff("keys:write"))
async def make_key(request: Asked, platform: FromPlatform, caller: FromCaller, form: FromForm) -> Response[bytes]:
    """The page with the key, which is shown only once."""
    life = form.one("life", 4)
    life_s = int(life) * DAY_S if life in LIVES and life else None
    try:
        _, secret = await platform.people.team.make_key(
            actor(caller), form.one("name", 200), form.all("scope")[:50], life_s
        )
    except Unavailable:
        raise
    except FrontrowError as error:
        return await _team(request, platform, caller, refusal=REFUSALS.get(error.code, REFUSED))
    return show_once(await _team(request, platform, caller, secret=secret))


@action(f"{TEAM}/keys/{{key_id:str}}/revoke", "team_revoke_key", Access.staff("keys:write"))
async def revoke_key(
    request: Asked, platform: FromPlatform, caller: FromCaller, key_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    work = platform.people.team.revoke_key(actor(caller), key_id)
    return await _done(request, platform, caller, work, "revoked")


ROUTES: list[HTTPRouteHandler] = [team, invite, withdraw, change_role, remove, reset, make_key, revoke_key]
