"""Sessions: 256 random bits in the browser, of which the ledger stores only the hash.

A session ends when it is idle too long, at its absolute end, when it is revoked, and when its subject's permissions
change. Signing in always starts a new session and ends the one that the request came with, so a planted session is
worth nothing.
"""

import secrets
from typing import Final

import msgspec

from frontrow.boxoffice.people.model.people import (
    ApiKey,
    PersonNotFound,
    Session,
    Stage,
    SubjectKind,
    csrf_of,
    secret_hash,
)
from frontrow.boxoffice.people.ports import PeopleBook
from frontrow.core.clock import US_PER_S, Clock
from frontrow.shared.ids import Ids

SESSION_PREFIX: Final = "frs_"
KEY_PREFIX: Final = "frk_"
SECRET_CHARS: Final = 47  # prefix and 43 characters of base64url: 256 bits
TOUCH_EVERY_US: Final = 60 * US_PER_S  # the precision of "last seen"; one write per request would be too many
MAX_AGENT_CHARS: Final = 200
HOUR_US: Final = 3_600 * US_PER_S
UNFINISHED_LIFE_US: Final = 10 * 60 * US_PER_S  # of a session that waits for its second factor
# How long a session is valid without a request, and at most.
LIVES_US: Final = {
    SubjectKind.STAFF: (2 * HOUR_US, 12 * HOUR_US),
    SubjectKind.FAN: (14 * 24 * HOUR_US, 60 * 24 * HOUR_US),
    SubjectKind.GUEST: (24 * HOUR_US, 7 * 24 * HOUR_US),
}


class SignedIn(msgspec.Struct, frozen=True):
    """A new session with its secret, which is shown once and not stored."""

    session: Session
    secret: str

    @property
    def csrf(self) -> str:
        return csrf_of(self.secret)

    def __repr__(self) -> str:
        return f"SignedIn({self.session.id})"


def new_secret(prefix: str) -> str:
    return prefix + secrets.token_urlsafe(32)


def is_secret(text: str, prefix: str) -> bool:
    """Whether the text has the form of our secrets. Anything else is not looked up."""
    return len(text) == SECRET_CHARS and text.startswith(prefix) and text.isascii()


class Sessions:
    """Starts, finds, replaces and ends sessions. Finds API keys."""

    def __init__(self, book: PeopleBook, clock: Clock, ids: Ids) -> None:
        self._book, self._clock, self._ids = book, clock, ids

    async def start(
        self,
        kind: SubjectKind,
        subject: str,
        *,
        stage: Stage = Stage.FULL,
        agent: str = "",
        replaces: Session | None = None,
    ) -> SignedIn:
        """Start a new session. The one it replaces ends in the same transaction."""
        now_us = self._clock()
        idle_us, whole_us = LIVES_US[kind] if stage is Stage.FULL else (UNFINISHED_LIFE_US, UNFINISHED_LIFE_US)
        shown = "".join(letter for letter in agent if letter.isprintable())[:MAX_AGENT_CHARS]
        session = Session(self._ids.new("ses"), kind, subject, stage, now_us, now_us, now_us + whole_us, idle_us, shown)
        secret = new_secret(SESSION_PREFIX)
        await self._book.start_session(session, secret_hash("session", secret), replaces)
        return SignedIn(session, secret)

    async def find(self, secret: str) -> Session | None:
        """The live session of this secret. Updates its "last seen"."""
        if not is_secret(secret, SESSION_PREFIX):
            return None
        session = await self._book.session(secret_hash("session", secret))
        now_us = self._clock()
        if session is None or not session.alive(now_us):
            return None
        if now_us - session.seen_at_us >= TOUCH_EVERY_US:
            await self._book.touch_session(session.id, now_us)
        return session

    async def of(self, subject: str) -> list[Session]:
        return await self._book.sessions_of(subject, self._clock())

    async def end(self, subject: str, session_id: str) -> None:
        if not await self._book.end_session(subject, session_id):
            raise PersonNotFound("there is no such session of yours", session=session_id[:60])

    async def end_all(self, subject: str) -> int:
        return await self._book.end_sessions(subject)

    async def replace_all(self, session: Session) -> SignedIn:
        """End all sessions of the subject and start a new one. Used after every change of password or second factor."""
        await self.end_all(session.subject)
        return await self.start(session.kind, session.subject, stage=Stage.FULL, agent=session.agent)

    async def find_key(self, secret: str) -> ApiKey | None:
        """The API key of this secret, if it still has any permission."""
        if not is_secret(secret, KEY_PREFIX):
            return None
        key = await self._book.api_key(secret_hash("key", secret))
        now_us = self._clock()
        if key is None or not key.permissions(now_us):
            return None
        if now_us - key.used_at_us >= TOUCH_EVERY_US:
            await self._book.touch_api_key(key.id, now_us)
        return key
