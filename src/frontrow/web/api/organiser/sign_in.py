"""Sign-in of staff: password and TOTP, set-up of the second factor, password change, invitations."""

from typing import Annotated, Any

import msgspec
from litestar import Request, Response, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import JSONBody

from frontrow.boxoffice.people.model.people import NotAllowed
from frontrow.web.api.fans.sign_in import full_session, read_new_session
from frontrow.web.http.access import Access
from frontrow.web.http.bodies.sign_in import (
    Code,
    Deliver,
    Email,
    Name,
    Password,
    Secret,
    SessionView,
    agent_of,
    private,
    signed_in,
)
from frontrow.web.platform.access_check import client_ip
from frontrow.web.platform.injected import FromCaller, FromPlatform

OWN = {"idempotency": "own"}  # their responses hold secrets, which are not stored


class StaffSignIn(msgspec.Struct, forbid_unknown_fields=True):
    """With `code` the second step is not needed."""

    email: Annotated[str, msgspec.Meta(max_length=254, examples=["ada@example.org"])]
    password: Password
    code: Code = ""
    deliver: Deliver = "cookie"


class CodeGiven(msgspec.Struct, forbid_unknown_fields=True):
    """Six digits from the authenticator app, or a recovery code."""

    code: Code
    deliver: Deliver = "cookie"


class EnrolmentAsked(msgspec.Struct, forbid_unknown_fields=True):
    """The password is needed when the caller is fully signed in."""

    password: Password = ""


class EnrolmentView(msgspec.Struct):
    """For the authenticator app. `pending` is sent back with the first code."""

    secret: str
    uri: Annotated[str, msgspec.Meta(examples=["otpauth://totp/Frontrow:ada@example.org?secret=…"])]
    pending: str


class EnrolmentConfirmed(msgspec.Struct, forbid_unknown_fields=True):
    pending: Annotated[str, msgspec.Meta(max_length=1_000)]
    code: Code
    deliver: Deliver = "cookie"


class EnrolledView(SessionView):
    """A full session, and the recovery codes, which are shown once."""

    recovery_codes: list[str] = msgspec.field(default_factory=list)


class PasswordChanged(msgspec.Struct, forbid_unknown_fields=True):
    old: Password
    new: Password
    deliver: Deliver = "cookie"


class InvitationAccepted(msgspec.Struct, forbid_unknown_fields=True):
    """The part of the link after `#`, a name and a password."""

    invitation: Secret
    name: Name
    password: Password


class AcceptedView(msgspec.Struct):
    id: str
    email: Email
    role: str


@post(
    "/v1/auth/staff/login",
    operation_id="staff_sign_in",
    summary="Sign in with password (and code)",
    status_code=200,
    opt={"access": Access.PUBLIC, "problems": (401,), **OWN},
)
async def staff_sign_in(
    request: Request[Any, Any, Any], platform: FromPlatform, caller: FromCaller, data: JSONBody[StaffSignIn]
) -> Response[SessionView]:
    """Without a code the session's stage is `totp` (send it to `…/code`) or `enrol` (set one up first)."""
    created = await platform.people.staff.sign_in(
        data.email,
        data.password,
        data.code,
        client_ip(platform, request),
        agent=agent_of(request),
        replaces=caller.session,
    )
    return signed_in(created, await read_new_session(platform, created), data.deliver)


@post(
    "/v1/auth/staff/code",
    operation_id="staff_second_step",
    summary="Complete the sign-in with a code",
    status_code=200,
    opt={"access": Access.SESSION, **OWN},
)
async def staff_second_step(
    platform: FromPlatform, caller: FromCaller, data: JSONBody[CodeGiven]
) -> Response[SessionView]:
    assert caller.session is not None
    created = await platform.people.staff.complete_second_step(caller.session, data.code)
    return signed_in(created, await read_new_session(platform, created), data.deliver)


@post(
    "/v1/auth/staff/totp",
    operation_id="begin_totp_enrolment",
    summary="Start to set up the second factor",
    status_code=200,
    opt={"access": Access.SESSION, **OWN},
)
async def begin_enrolment(
    platform: FromPlatform, caller: FromCaller, data: JSONBody[EnrolmentAsked]
) -> Response[EnrolmentView]:
    assert caller.session is not None
    begun = await platform.people.staff.begin_enrolment(caller.session, data.password)
    return private(Response(EnrolmentView(begun.secret, begun.uri, begun.pending)))


@post(
    "/v1/auth/staff/totp/confirm",
    operation_id="confirm_totp_enrolment",
    summary="Set up the second factor with its first code",
    status_code=200,
    opt={"access": Access.SESSION, **OWN},
)
async def confirm_enrolment(
    platform: FromPlatform, caller: FromCaller, data: JSONBody[EnrolmentConfirmed]
) -> Response[EnrolledView]:
    assert caller.session is not None
    created, codes = await platform.people.staff.finish_enrolment(caller.session, data.pending, data.code)
    answer = signed_in(created, await read_new_session(platform, created), data.deliver)
    fields = {name: getattr(answer.content, name) for name in answer.content.__struct_fields__}
    return private(Response(EnrolledView(**fields, recovery_codes=codes), cookies=answer.cookies))


@post(
    "/v1/auth/staff/password",
    operation_id="change_password",
    summary="Change your own password",
    status_code=200,
    opt={"access": Access.SESSION, **OWN},
)
async def change_password(
    platform: FromPlatform, caller: FromCaller, data: JSONBody[PasswordChanged]
) -> Response[SessionView]:
    """Every other session of the caller ends. This one continues under a new secret."""
    session = full_session(caller.session)
    if caller.kind != "staff":
        raise NotAllowed("only members of a team have a password")
    created = await platform.people.staff.change_password(session, data.old, data.new)
    return signed_in(created, await read_new_session(platform, created), data.deliver)


@post(
    "/v1/auth/invitation",
    operation_id="accept_invitation",
    summary="Accept an invitation, or choose a new password",
    status_code=201,
    opt={"access": Access.PUBLIC, "problems": (404,), **OWN},
)
async def accept_invitation(
    request: Request[Any, Any, Any], platform: FromPlatform, data: JSONBody[InvitationAccepted]
) -> Response[AcceptedView]:
    """Sign in afterwards. The second factor is set up then."""
    await platform.people.sign_in_limits.ip.count_attempt(client_ip(platform, request))
    staff = await platform.people.team.accept(data.invitation, data.name, data.password)
    return private(Response(AcceptedView(staff.id, staff.email, staff.role.value), status_code=201))


ROUTES: list[HTTPRouteHandler] = [
    staff_sign_in,
    staff_second_step,
    begin_enrolment,
    confirm_enrolment,
    change_password,
    accept_invitation,
]
