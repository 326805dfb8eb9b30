"""The organiser's team and API keys. Only members can change them: a key must not be able to make more keys."""

import re
from typing import Annotated, Any

import msgspec
from litestar import Response, delete, get, patch, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody

from frontrow.boxoffice.people.model.people import ApiKey, Invitation, Staff
from frontrow.boxoffice.people.model.roles import PERMISSIONS, Role
from frontrow.boxoffice.people.team import MAX_KEY_LIFE_S, Actor
from frontrow.shared.local_time import time_text
from frontrow.web.http.access import Access, Caller, actor
from frontrow.web.http.bodies.json_values import Time
from frontrow.web.http.bodies.sign_in import Email, Locale, Name, checked_locale, private
from frontrow.web.platform.injected import FromCaller, FromPlatform

_SCOPES = "|".join(map(re.escape, sorted(PERMISSIONS)))
Scope = Annotated[str, msgspec.Meta(pattern=f"^({_SCOPES})$", examples=["door:scan"])]


class MemberView(msgspec.Struct):
    id: str
    email: Email
    name: str
    role: Role
    second_factor: bool
    since: Time


class InvitationView(msgspec.Struct):
    """An open invitation. The link itself was sent by e-mail."""

    id: str
    email: Email
    role: Role
    ends_at: Time
    reset: bool


class TeamView(msgspec.Struct):
    members: list[MemberView]
    invitations: list[InvitationView]


class Invited(msgspec.Struct, forbid_unknown_fields=True):
    email: Email
    role: Role
    locale: Locale = "en"


class RoleChanged(msgspec.Struct, forbid_unknown_fields=True):
    role: Role


class ResetAsked(msgspec.Struct, forbid_unknown_fields=True):
    locale: Locale = "en"


class KeyAsked(msgspec.Struct, forbid_unknown_fields=True):
    """`scopes` are permissions that the member has."""

    name: Name
    scopes: Annotated[list[Scope], msgspec.Meta(min_length=1, max_length=50, examples=[["door:scan"]])]
    life_s: Annotated[int, msgspec.Meta(ge=60, le=MAX_KEY_LIFE_S)] | None = None


class KeyView(msgspec.Struct):
    id: str
    name: str
    scopes: list[str]
    made_by: str
    created_at: Time
    ends_at: Time | None
    used_at: Time | None


class KeyMade(KeyView):
    """`key` is shown once."""

    key: str = ""


class KeyList(msgspec.Struct):
    keys: list[KeyView]


@get(
    "/v1/organiser/team",
    operation_id="list_team",
    summary="The members of the team and open invitations",
    opt={"access": Access.staff("team:read")},
)
async def list_team(platform: FromPlatform, caller: FromCaller) -> TeamView:
    members, invitations = await platform.people.team.members(_reader(caller))
    return TeamView([_member(one) for one in members], [_invitation(one) for one in invitations])


@post(
    "/v1/organiser/team/invitations",
    operation_id="invite_member",
    summary="Invite somebody to the team by e-mail",
    status_code=201,
    opt={"access": Access.staff("team:write")},
)
async def invite_member(platform: FromPlatform, caller: FromCaller, data: JSONBody[Invited]) -> InvitationView:
    locale = checked_locale(data.locale)
    return _invitation(await platform.people.team.invite(actor(caller), data.email, data.role, locale))


@delete(
    "/v1/organiser/team/invitations/{invitation_id:str}",
    operation_id="withdraw_invitation",
    summary="Withdraw an open invitation",
    status_code=204,
    opt={"access": Access.staff("team:write")},
)
async def withdraw_invitation(platform: FromPlatform, caller: FromCaller, invitation_id: FromPath[str]) -> None:
    await platform.people.team.withdraw(actor(caller), invitation_id)


@patch(
    "/v1/organiser/team/{staff_id:str}",
    operation_id="change_member",
    summary="Give a member another role",
    opt={"access": Access.staff("team:write")},
)
async def change_member(
    platform: FromPlatform, caller: FromCaller, staff_id: FromPath[str], data: JSONBody[RoleChanged]
) -> MemberView:
    """The member is signed out everywhere."""
    return _member(await platform.people.team.change_role(actor(caller), staff_id, data.role))


@delete(
    "/v1/organiser/team/{staff_id:str}",
    operation_id="remove_member",
    summary="Remove a member; their API keys stop working",
    status_code=204,
    opt={"access": Access.staff("team:write")},
)
async def remove_member(platform: FromPlatform, caller: FromCaller, staff_id: FromPath[str]) -> None:
    await platform.people.team.remove(actor(caller), staff_id)


@post(
    "/v1/organiser/team/{staff_id:str}/reset",
    operation_id="reset_member",
    summary="Send a member a link for a new password",
    status_code=201,
    opt={"access": Access.staff("team:write")},
)
async def reset_member(
    platform: FromPlatform, caller: FromCaller, staff_id: FromPath[str], data: JSONBody[ResetAsked]
) -> InvitationView:
    locale = checked_locale(data.locale)
    return _invitation(await platform.people.team.reset(actor(caller), staff_id, locale))


@get(
    "/v1/organiser/keys",
    operation_id="list_api_keys",
    summary="The API keys of the organiser",
    opt={"access": Access.staff("keys:write")},
)
async def list_keys(platform: FromPlatform, caller: FromCaller) -> KeyList:
    return KeyList([KeyView(**_key(one)) for one in await platform.people.team.keys(actor(caller))])


@post(
    "/v1/organiser/keys",
    operation_id="make_api_key",
    summary="Make an API key; its secret is shown once, and again to a retry with the same Idempotency-Key",
    status_code=201,
    opt={"access": Access.staff("keys:write"), "idempotency": "sealed"},
)
async def make_key(platform: FromPlatform, caller: FromCaller, data: JSONBody[KeyAsked]) -> Response[KeyMade]:
    key, secret = await platform.people.team.make_key(actor(caller), data.name, data.scopes, data.life_s)
    return private(Response(KeyMade(**_key(key), key=secret), status_code=201))


@delete(
    "/v1/organiser/keys/{key_id:str}",
    operation_id="revoke_api_key",
    summary="Revoke an API key",
    status_code=204,
    opt={"access": Access.staff("keys:write")},
)
async def revoke_key(platform: FromPlatform, caller: FromCaller, key_id: FromPath[str]) -> None:
    await platform.people.team.revoke_key(actor(caller), key_id)


def _reader(caller: Caller) -> Actor:
    return Actor(caller.id, caller.organiser_id, Role(caller.role) if caller.role else Role.READ_ONLY)


def _member(one: Staff) -> MemberView:
    return MemberView(one.id, one.email, one.name, one.role, bool(one.totp_sealed), time_text(one.created_at_us))


def _invitation(one: Invitation) -> InvitationView:
    return InvitationView(one.id, one.email, one.role, time_text(one.ends_at_us), bool(one.staff_id))


def _key(one: ApiKey) -> dict[str, Any]:
    return {
        "id": one.id,
        "name": one.name,
        "scopes": list(one.scopes),
        "made_by": one.made_by,
        "created_at": time_text(one.created_at_us),
        "ends_at": time_text(one.ends_at_us) if one.ends_at_us else None,
        "used_at": time_text(one.used_at_us) if one.used_at_us else None,
    }


ROUTES: list[HTTPRouteHandler] = [
    list_team,
    invite_member,
    withdraw_invitation,
    change_member,
    remove_member,
    reset_member,
    list_keys,
    make_key,
    revoke_key,
]
