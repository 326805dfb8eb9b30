"""Teams: invitations, roles and removal of members, API keys, and the first owner of an organiser.

Nobody can grant what they do not have: roles and scopes are compared with the granting member's own. Invitations and
password resets are one-time links sent by mail. Only the command line prints them.
"""

from typing import Final

import msgspec

from frontrow.boxoffice.people.account_mail import AccountMail
from frontrow.boxoffice.people.model.email_addresses import checked_email
from frontrow.boxoffice.people.model.password_rules import checked_password
from frontrow.boxoffice.people.model.people import (
    AlreadyMember,
    ApiKey,
    Invitation,
    LinkSpent,
    NotAllowed,
    Organiser,
    PersonNotFound,
    Staff,
    checked_name,
    checked_scopes,
    secret_hash,
)
from frontrow.boxoffice.people.model.roles import ROLES, Role, may_manage
from frontrow.boxoffice.people.passwords import Passwords
from frontrow.boxoffice.people.ports import PeopleBook
from frontrow.boxoffice.people.sessions import KEY_PREFIX, is_secret, new_secret
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import Overloaded
from frontrow.shared.ids import Ids

INVITATION_PREFIX: Final = "fri_"
MAX_TEAM: Final = 200
MAX_KEYS: Final = 50
MAX_KEY_LIFE_S: Final = 366 * 86_400


class Actor(msgspec.Struct, frozen=True):
    """The member of the team who makes a change."""

    id: str
    organiser_id: str
    role: Role


class Team:
    """The members of organisers and their keys."""

    def __init__(
        self, book: PeopleBook, passwords: Passwords, mail: AccountMail, clock: Clock, ids: Ids, life_s: int
    ) -> None:
        self._book, self._passwords, self._mail = book, passwords, mail
        self._clock, self._ids, self._life_us = clock, ids, life_s * US_PER_S

    async def create_organiser(self, name: str, organiser_id: str = "") -> Organiser:
        """Create an organiser without members (`frontrow organiser create`)."""
        organiser = Organiser(organiser_id or self._ids.new("org"), checked_name(name), self._clock())
        await self._book.put_organiser(organiser)
        return organiser

    async def add_owner(self, organiser_id: str, email: str, name: str, password: str) -> Staff:
        """Add the first owner with a password, from the command line."""
        address = checked_email(email)
        password_hash = await self._passwords.hash(checked_password(password, address))
        staff = Staff(
            self._ids.new("stf"),
            organiser_id,
            address,
            checked_name(name),
            Role.OWNER,
            password_hash,
            created_at_us=self._clock(),
        )
        if not await self._book.add_staff(staff):
            raise AlreadyMember("this address has an account already", param="email")
        return staff

    async def create_invitation_link(
        self, organiser_id: str, email: str, role: Role, made_by: str = "command line"
    ) -> str:
        """A one-time link that adds a member, or sets a new password for an existing one. The link is not sent."""
        _, secret = await self._new_invitation(organiser_id, checked_email(email), role, made_by)
        return self._mail.invitation_url(secret)

    async def members(self, actor: Actor) -> tuple[list[Staff], list[Invitation]]:
        members = await self._book.staff_of(actor.organiser_id, MAX_TEAM)
        return members, await self._book.invitations_of(actor.organiser_id, self._clock(), MAX_TEAM)

    async def invite(self, actor: Actor, email: str, role: Role, locale: str) -> Invitation:
        """Invite somebody who has no account yet."""
        self._check_may(actor, role)
        address = checked_email(email)
        if await self._book.staff_by_email(address) is not None:
            raise AlreadyMember("this address has an account already", param="email")
        members, invited = await self.members(actor)
        if len(members) + len(invited) >= MAX_TEAM:
            raise NotAllowed(f"a team has at most {MAX_TEAM} members and open invitations")
        invitation, secret = await self._new_invitation(actor.organiser_id, address, role, actor.id)
        await self._mail.send_invitation(invitation, secret, locale)
        return invitation

    async def reset(self, actor: Actor, staff_id: str, locale: str) -> Invitation:
        """Send a member a link for a new password. The old one works until the link is used."""
        staff = await self._colleague(actor, staff_id)
        invitation, secret = await self._new_invitation(actor.organiser_id, staff.email, staff.role, actor.id)
        await self._mail.send_invitation(invitation, secret, locale)
        return invitation

    async def withdraw(self, actor: Actor, invitation_id: str) -> None:
        if not await self._book.drop_invitation(actor.organiser_id, invitation_id):
            raise PersonNotFound("there is no such open invitation", invitation=invitation_id[:60])

    async def change_role(self, actor: Actor, staff_id: str, role: Role) -> Staff:
        await self._colleague(actor, staff_id)
        self._check_may(actor, role)
        return await self._book.set_role(actor.organiser_id, staff_id, role, actor.id, self._clock())

    async def remove(self, actor: Actor, staff_id: str) -> None:
        await self._colleague(actor, staff_id)
        await self._book.remove_staff(actor.organiser_id, staff_id, actor.id, self._clock())

    async def accept(self, secret: str, name: str, password: str) -> Staff:
        """Accept an invitation: adds a member with this password, or sets an existing member's new password.

        Raises `LinkSpent` if the link does not work any more.
        """
        spent = LinkSpent("this invitation was used, withdrawn or has run out; ask for a new one")
        if not is_secret(secret, INVITATION_PREFIX):
            raise spent
        hashed, now_us = secret_hash("invitation", secret), self._clock()
        invitation = await self._book.open_invitation(hashed, now_us)
        if invitation is None:
            raise spent
        password_hash = await self._passwords.hash(checked_password(password, invitation.email))
        new = Staff(
            self._ids.new("stf"),
            invitation.organiser_id,
            invitation.email,
            checked_name(name),
            invitation.role,
            password_hash,
            created_at_us=now_us,
        )
        staff = await self._book.accept(hashed, new, self._clock())
        if staff is None:
            raise spent
        return staff

    async def make_key(
        self, actor: Actor, name: str, scopes: list[str], life_s: int | None = None
    ) -> tuple[ApiKey, str]:
        """Create an API key. Returns it with its secret, which is shown once."""
        now_us = self._clock()
        granted = checked_scopes(scopes, ROLES[actor.role])
        if len(await self._book.api_keys_of(actor.organiser_id, MAX_KEYS)) >= MAX_KEYS:
            raise Overloaded(f"an organiser has at most {MAX_KEYS} API keys; revoke one first")
        ends_at_us = now_us + min(life_s, MAX_KEY_LIFE_S) * US_PER_S if life_s else 0
        key = ApiKey(
            self._ids.new("key"),
            actor.organiser_id,
            checked_name(name),
            granted,
            actor.id,
            now_us,
            ends_at_us,
            maker_role=actor.role,
        )
        secret = new_secret(KEY_PREFIX)
        await self._book.add_api_key(key, secret_hash("key", secret))
        return key, secret

    async def keys(self, actor: Actor) -> list[ApiKey]:
        return await self._book.api_keys_of(actor.organiser_id, MAX_KEYS)

    async def revoke_key(self, actor: Actor, key_id: str) -> None:
        if not await self._book.drop_api_key(actor.organiser_id, key_id, actor.id, self._clock()):
            raise PersonNotFound("there is no such API key", key=key_id[:60])

    async def _new_invitation(self, organiser_id: str, email: str, role: Role, by: str) -> tuple[Invitation, str]:
        member = await self._book.staff_by_email(email)
        if member is not None and member.organiser_id != organiser_id:
            raise AlreadyMember("this address works for another organiser", param="email")
        now_us, secret = self._clock(), new_secret(INVITATION_PREFIX)
        invitation = Invitation(
            self._ids.new("inv"),
            organiser_id,
            email,
            member.role if member else role,
            by,
            now_us,
            now_us + self._life_us,
            member.id if member else "",
        )
        await self._book.add_invitation(invitation, secret_hash("invitation", secret))
        return invitation, secret

    async def _colleague(self, actor: Actor, staff_id: str) -> Staff:
        """The member, if they are in the actor's team and the actor may manage them."""
        staff = await self._book.staff(staff_id)
        if staff is None or staff.organiser_id != actor.organiser_id:
            raise PersonNotFound("there is no such member of your team", staff=staff_id[:60])
        self._check_may(actor, staff.role)
        return staff

    def _check_may(self, actor: Actor, role: Role) -> None:
        if not may_manage(actor.role, role):
            raise NotAllowed(f"a {actor.role} cannot give or take the role {role}")
