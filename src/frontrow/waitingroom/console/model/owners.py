"""Who may use the console: owners with a role, their sessions, one-time links, and keys for programs."""

import re
from enum import StrEnum
from typing import Final

import msgspec

from frontrow.core.errors import InvalidInput
from frontrow.waitingroom.console.model.page_design import plain_text

VERSION: Final = 1
MAX_NAME_CHARS: Final = 100
_EMAIL: Final = re.compile(r"[^@\s<>\"',;:\\()\[\]]{1,64}@[^@\s<>\"',;:\\()\[\]]{1,185}")


class OwnerRole(StrEnum):
    OWNER = "owner"  # everything
    OPERATOR = "operator"  # runs rooms: phase, rate, capacity, message
    VIEWER = "viewer"  # sees figures


class Right(StrEnum):
    SEE = "see"
    RUN = "run"
    SET_UP = "set_up"
    PEOPLE = "people"


RIGHTS: Final = {
    OwnerRole.OWNER: frozenset(Right),
    OwnerRole.OPERATOR: frozenset({Right.SEE, Right.RUN}),
    OwnerRole.VIEWER: frozenset({Right.SEE}),
}


class Scope(StrEnum):
    """What an API key may do."""

    ROOM_READ = "room:read"  # the room's state
    ROOM_WRITE = "room:write"  # its phase, settings and message; import codes
    FIGURES_READ = "figures:read"
    RULES_READ = "rules:read"  # for connectors


class Owner(msgspec.Struct, frozen=True):
    id: str
    email: str
    name: str
    role: OwnerRole
    password_hash: str
    created_at_us: int


class OwnerSession(msgspec.Struct, frozen=True):
    """A signed-in browser. It ends `ends_at_us` at the latest, and when it was not used for `idle_us`."""

    owner_id: str
    created_at_us: int
    seen_at_us: int
    ends_at_us: int
    idle_us: int

    def alive(self, now_us: int) -> bool:
        return now_us < self.ends_at_us and now_us < self.seen_at_us + self.idle_us


class OneTimeLink(msgspec.Struct, frozen=True):
    """Lets one person set a password: the first owner, somebody invited, or an owner who has lost theirs."""

    role: OwnerRole
    email: str = ""  # empty: the first owner types it
    owner_id: str = ""  # a new password for this owner
    ends_at_us: int = 0


class ConsoleKey(msgspec.Struct, frozen=True):
    """A key for programs. Only its hash is stored; `rooms` empty: every room."""

    id: str
    name: str
    hash: str
    shown: str  # its first characters, to tell keys apart
    scopes: tuple[Scope, ...]
    rooms: tuple[str, ...] = ()
    created_at_us: int = 0
    made_by: str = ""
    revoked_at_us: int = 0

    def allows(self, scope: Scope, room: str) -> bool:
        return not self.revoked_at_us and scope in self.scopes and (not self.rooms or room in self.rooms)


def checked_email(text: str) -> str:
    """The address in the form in which accounts are compared."""
    email = text.strip().lower()
    if not _EMAIL.fullmatch(email) or not email.isprintable():
        raise InvalidInput("this is not an email address", param="email")
    return email


def checked_name(text: str) -> str:
    name = plain_text(text.replace("\n", " "), MAX_NAME_CHARS, "name")
    if not name:
        raise InvalidInput("enter a name", param="name")
    return name
