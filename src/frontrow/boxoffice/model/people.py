"""Who may do what: organisers, their staff and roles, fans, sessions, API keys, one-time links. Pure values and rules.

PERMISSIONS and ROLES are the one table of rights; a route names a permission, a role or an API key's scopes grant it.
Secrets that people carry (sessions, keys, links) are 256 random bits with a prefix; only their hashes are kept.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from frontrow.core.clock import US_PER_S
from frontrow.core.errors import Forbidden, InvalidInput, NotFound, Overloaded, Refused, Unauthorised

DEFAULT_ORGANISER: Final = "org_default"  # whose events are that were there before organisers

PERMISSIONS: Final[Mapping[str, str]] = {
    "events:read": "see events that are not public yet",
    "events:write": "create and change venues, seating, events, tiers and schedules",
    "sales:control": "publish, pause, cancel and steer the waiting room",
    "bookings:read": "see bookings and who made them",
    "refunds:write": "refund outside the fans' own window",
    "codes:write": "make presale and priority codes",
    "webhooks:write": "send the event's facts elsewhere",
    "figures:read": "see sales figures, live and as files",
    "door:scan": "check tickets at the door and hand scans in",
    "audit:read": "see who changed what",
    "team:read": "see who is in the team",
    "team:write": "invite, change and remove members of the team",
    "keys:write": "make and revoke API keys",
}


class Role(StrEnum):
    OWNER = "owner"
    MANAGER = "manager"
    BOX_OFFICE = "box_office"
    DOOR = "door"
    READ_ONLY = "read_only"


ROLES: Final[Mapping[Role, frozenset[str]]] = {
    Role.OWNER: frozenset(PERMISSIONS),
    Role.MANAGER: frozenset(PERMISSIONS) - {"team:write", "keys:write"},
    Role.BOX_OFFICE: frozenset(
        {"events:read", "bookings:read", "refunds:write", "codes:write", "figures:read", "door:scan"}
    ),
    Role.DOOR: frozenset({"events:read", "door:scan"}),
    Role.READ_ONLY: frozenset({"events:read", "bookings:read", "figures:read", "audit:read", "team:read"}),
}

MIN_PASSWORD_CHARS, MAX_PASSWORD_CHARS = 12, 256
MAX_NAME_CHARS: Final = 200
# Words that guessers try first; a password made of one of them and digits is refused whatever its length.
_TOO_EASY: Final = re.compile(r"(pass(word|wort)?|frontrow|qwert[yz]|letmein|welcome|admin|ticket|secret|iloveyou)+\W*")


class SignInNeeded(Unauthorised):
    """The request carries nothing that proves who asks, or something that is no longer good."""

    code = "sign_in_needed"


class WrongCredentials(Unauthorised):
    """The same words whatever was wrong: nobody learns which accounts exist."""

    code = "wrong_credentials"

    def __init__(self) -> None:
        super().__init__("that e-mail address and password do not belong together, or the code is wrong")


class SecondFactorNeeded(Forbidden):
    """The password was right; the session is good only for the second step (or for setting it up)."""

    code = "second_factor_needed"


class NotAllowed(Forbidden):
    code = "not_allowed"


class LinkSpent(NotFound):
    """A one-time link that was used, ran out, or was never given out; one sentence for all three."""

    code = "link_spent"


class OtherBrowser(Refused):
    code = "other_browser"


class AlreadyMember(Refused):
    code = "already_member"


class LastOwner(Refused):
    code = "last_owner"


class PersonNotFound(NotFound):
    code = "person_not_found"


class TooManyTries(Overloaded):
    """Too many attempts for this account or from this address; `Retry-After` says when to try again."""

    code = "too_many_tries"
    http_status = 429


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
    """What is kept of a secret of 256 random bits; the kind keeps hashes of one sort from fitting another."""
    return hashlib.sha256(f"frontrow {kind}:{secret}".encode()).hexdigest()


def csrf_of(session_secret: str) -> str:
    """The CSRF word of a session: follows from its secret, cannot be turned back into it, dies with it."""
    return secret_hash("csrf", session_secret)[:43]


def checked_name(text: str, param: str = "name") -> str:
    shown = "".join(letter if letter.isprintable() else " " for letter in unicodedata.normalize("NFC", text))
    name = " ".join(shown.split())
    if not name or len(text) > MAX_NAME_CHARS:
        raise InvalidInput(f"{param} has 1 to {MAX_NAME_CHARS} printable characters", param=param)
    return name


def normalised_password(text: str) -> str:
    """The one form in which a password is hashed and compared: NFKC, without spaces around it."""
    return unicodedata.normalize("NFKC", text).strip()


def checked_password(text: str, email: str) -> str:
    """The password as it is hashed, or what is wrong with it."""
    password = normalised_password(text)
    if not MIN_PASSWORD_CHARS <= len(password) <= MAX_PASSWORD_CHARS:
        raise InvalidInput(
            f"a password has {MIN_PASSWORD_CHARS} to {MAX_PASSWORD_CHARS} characters; a sentence is fine",
            param="password",
        )
    plain = re.sub(r"[\d_\s]+", "", password.lower())
    local = email.partition("@")[0].lower()
    if len(set(password)) < 5 or _TOO_EASY.fullmatch(plain) or (len(local) > 3 and plain == local):
        raise InvalidInput("this password is among the first that guessers try; choose another", param="password")
    return password


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


def may_manage(actor: Role, target: Role) -> bool:
    """Whether a member with `actor`'s role may give, change or take away `target`'s role."""
    return "team:write" in ROLES[actor] and ROLES[target] <= ROLES[actor]


def session_bounds(kind: SubjectKind, stage: Stage) -> tuple[int, int]:
    """(idle, absolute) life of a new session in microseconds."""
    if stage is not Stage.FULL:
        return 10 * 60 * US_PER_S, 10 * 60 * US_PER_S
    return _BOUNDS_US[kind]


_HOUR_US: Final = 3600 * US_PER_S
_BOUNDS_US: Final = {
    SubjectKind.STAFF: (2 * _HOUR_US, 12 * _HOUR_US),
    SubjectKind.FAN: (14 * 24 * _HOUR_US, 60 * 24 * _HOUR_US),
    SubjectKind.GUEST: (24 * _HOUR_US, 7 * 24 * _HOUR_US),
}
