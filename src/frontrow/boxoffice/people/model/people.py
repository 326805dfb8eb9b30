"""People: organisers and their staff, fans, sessions, API keys, one-time links. Pure values and rules.

What a role may do is in `people.model.roles`, what a password must be in `people.model.password_rules`. Secrets that
people carry (sessions, keys, links) are 256 random bits with a prefix; only their hashes are kept.
"""

import hashlib
import unicodedata
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec

from frontrow.boxoffice.people.model.roles import PERMISSIONS, ROLES, Role
from frontrow.core.errors import Forbidden, InvalidInput, NotFound, Refused, Unauthorised

DEFAULT_ORGANISER: Final = "org_default"  # has the events that were created before organisers existed

MAX_NAME_CHARS: Final = 200


class SignInNeeded(Unauthorised):
    """The request has no credentials, or credentials that are no longer valid."""

    code = "sign_in_needed"


class WrongCredentials(Unauthorised):
    """The message is the same whatever was wrong, so that it does not reveal which accounts exist."""

    code = "wrong_credentials"

    def __init__(self) -> None:
        super().__init__("that e-mail address and password do not belong together, or the code is wrong")


class SecondFactorNeeded(Forbidden):
    """The password was right; the session is valid only for the second step (or for setting it up)."""

    code = "second_factor_needed"


class NotAllowed(Forbidden):
    code = "not_allowed"


class LinkSpent(NotFound):
    """A one-time link that was used, has expired or was never issued; one message for all three."""

    code = "link_spent"


class OtherBrowser(Refused):
    """The link was requested in another browser. Whoever opened it can confirm that they want to sign in here."""

    code = "other_browser"


class WrongSignInCode(Refused):
    """The code of a sign-in mail does not belong to the browser that asked for it, or was mistyped."""

    code = "wrong_sign_in_code"
    http_status = 422


class AlreadyMember(Refused):
    code = "already_member"


class LastOwner(Refused):
    code = "last_owner"


class PersonNotFound(NotFound):
    code = "person_not_found"


class Stage(StrEnum):
    """How far a session is: a staff session works only once it is full."""

    FULL = "full"
    TOTP = "totp"  # the password was right, the code is missing
    ENROL = "enrol"  # the password was right, a second factor must be set up


class SubjectKind(StrEnum):
    FAN = "fan"
    GUEST = "guest"
    STAFF = "staff"


class Organiser(msgspec.Struct, frozen=True):
    id: str
    name: str
    created_at_us: int


class Staff(msgspec.Struct, frozen=True):
    """One member of an organiser's team. `totp_sealed` is empty until the second factor is set up."""

    id: str
    organiser_id: str
    email: str
    name: str
    role: Role
    password_hash: str = ""
    totp_sealed: str = ""
    totp_step: int = 0
    created_at_us: int = 0

    def __repr__(self) -> str:
        return f"Staff({self.id}, {self.organiser_id}, {self.role})"


class Session(msgspec.Struct, frozen=True):
    """A session as the ledger has it, with what its subject may do right now (roles are looked up, never copied)."""

    id: str
    kind: SubjectKind
    subject: str
    stage: Stage
    created_at_us: int
    seen_at_us: int
    ends_at_us: int
    idle_us: int
    agent: str = ""
    organiser_id: str = ""
    role: Role | None = None

    def alive(self, now_us: int) -> bool:
        return now_us < min(self.ends_at_us, self.seen_at_us + self.idle_us)

    def permissions(self) -> frozenset[str]:
        return ROLES[self.role] if self.role is not None and self.stage is Stage.FULL else frozenset()


class ApiKey(msgspec.Struct, frozen=True):
    """An API key without its secret. It can do what its scopes say and its maker's role still allows."""

    id: str
    organiser_id: str
    name: str
    scopes: tuple[str, ...]
    made_by: str
    created_at_us: int
    ends_at_us: int = 0  # 0: until revoked
    used_at_us: int = 0
    maker_role: Role | None = None

    def permissions(self, now_us: int) -> frozenset[str]:
        if self.maker_role is None or (self.ends_at_us and now_us >= self.ends_at_us):
            return frozenset()
        return frozenset(self.scopes) & ROLES[self.maker_role]


class Invitation(msgspec.Struct, frozen=True):
    """A one-time link that makes a member of a team, or (with `staff_id`) gives one a new password."""

    id: str
    organiser_id: str
    email: str
    role: Role
    made_by: str
    created_at_us: int
    ends_at_us: int
    staff_id: str = ""


class Fan(msgspec.Struct, frozen=True):
    """Somebody who buys; `email` only once proven by a magic link."""

    id: str
    email: str = ""
    created_at_us: int = 0
    erased_at_us: int = 0


def secret_hash(kind: str, secret: str) -> str:
    """The stored hash of a secret of 256 random bits. It depends on the kind, so a key never matches a session."""
    return hashlib.sha256(f"frontrow {kind}:{secret}".encode()).hexdigest()


def csrf_of(session_secret: str) -> str:
    """The CSRF token of a session: derived one-way from its secret, and valid as long as the session."""
    return secret_hash("csrf", session_secret)[:43]


def checked_name(text: str, param: str = "name") -> str:
    shown = "".join(letter if letter.isprintable() else " " for letter in unicodedata.normalize("NFC", text))
    name = " ".join(shown.split())
    if not name or len(text) > MAX_NAME_CHARS:
        raise InvalidInput(f"{param} has 1 to {MAX_NAME_CHARS} printable characters", param=param)
    return name


def checked_scopes(scopes: Iterable[str], granted: frozenset[str]) -> tuple[str, ...]:
    """Scopes of a new API key: known ones, at least one, none that its maker lacks."""
    wanted = frozenset(scopes)
    unknown = wanted - PERMISSIONS.keys()
    if unknown or not wanted:
        permissions = ", ".join(sorted(PERMISSIONS))
        raise InvalidInput(f"scopes are one or more of {permissions}", param="scopes")
    if wanted - granted:
        raise NotAllowed(f"nobody can give away what they may not do: {', '.join(sorted(wanted - granted))}")
    return tuple(sorted(wanted))
