"""What the console needs from outside: a book for its documents, and the house's passwords and attempt limits."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from frontrow.waitingroom.console.model.figures import Figure


class DocumentKind(StrEnum):
    """The kinds of documents in the book."""

    ROOM = "room"
    OWNER = "owner"
    SESSION = "session"
    LINK = "link"
    KEY = "key"


# Every server follows changes of these.
FOLLOWED = frozenset({DocumentKind.ROOM, DocumentKind.KEY})


@dataclass(frozen=True, slots=True)
class Entry:
    """A document as it is stored; `revision` grows with each write."""

    id: str
    revision: int
    text: str


@dataclass(frozen=True, slots=True)
class Write:
    """One write: `text` None deletes. `revision` is that of the document as it was read; 0: there must be none. The
    document is of no use from `ends_at_us` on."""

    kind: DocumentKind
    id: str
    text: str | None
    revision: int
    ends_at_us: int = 2**62


@dataclass(frozen=True, slots=True)
class LogLine:
    """Who changed what. `room` is empty for changes that concern none; `detail` has names and values, never secrets."""

    at_us: int
    who: str
    act: str
    room: str = ""
    detail: str = ""
    number: int = 0


class ConsoleBook(Protocol):
    """Keeps the console's documents, its log, its figures and its pictures. Every call may raise Unavailable."""

    async def get(self, kind: DocumentKind, id: str) -> Entry | None: ...

    async def all(self, kind: DocumentKind) -> list[Entry]:
        """At most `MOST_DOCUMENTS`, by id."""
        ...

    async def write(self, writes: Sequence[Write], log: LogLine | None = None) -> None:
        """Make all writes and the line of the log, or none of them: ConsoleConflict if a revision is another."""
        ...

    async def change_no(self) -> int:
        """Grows with each write to a kind that is followed."""
        ...

    async def log(self, room: str, before: int, limit: int) -> list[LogLine]:
        """Newest first, below this number (0: from the end); of one room, or of everything for an empty name."""
        ...

    async def add_figure(self, room: str, figure: Figure, forget_before_us: int) -> None:
        """Add a figure, unless the room has one of this moment, and drop older ones of the room."""
        ...

    async def figures(self, room: str, after_us: int, limit: int) -> list[Figure]:
        """Figures from this moment on, oldest first."""
        ...

    async def last_figure(self, room: str) -> Figure | None: ...

    async def put_picture(self, hash: str, body: bytes) -> None: ...

    async def picture(self, hash: str) -> bytes | None: ...

    async def forget_ended(self, now_us: int) -> None:
        """Delete sessions and links that have ended, and lines of the log beyond the bound."""
        ...

    async def aclose(self) -> None: ...


class PasswordHashes(Protocol):
    """Hashes and checks passwords without blocking the event loop (the house's argon2id)."""

    async def hash(self, password: str) -> str: ...

    async def matches(self, password_hash: str | None, password: str) -> bool:
        """Whether the password is right. None (no such owner) costs the same and is never right."""
        ...

    def check_new(self, password: str, email: str) -> None:
        """Raises InvalidInput if the password is too short or easy to guess."""
        ...


class Attempts(Protocol):
    """Counts attempts of one kind and refuses those over the limit with their time to wait."""

    async def count_attempt(self, who: str) -> Any: ...

    async def forgive_attempt(self, who: str) -> Any: ...
