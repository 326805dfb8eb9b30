"""A console over rooms in memory or Redis, with a clock that is moved by hand and passwords that cost nothing."""

from pathlib import Path

from frontrow.core.errors import InvalidInput
from frontrow.testing.clock import ManualClock
from frontrow.waitingroom.audit.sqlite import open_sqlite_audit
from frontrow.waitingroom.console.access import ConsoleAccess, SignedInOwner
from frontrow.waitingroom.console.ports import ConsoleBook
from frontrow.waitingroom.console.rooms import ConsoleRooms
from frontrow.waitingroom.console.sqlite_book import open_sqlite_book
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.waitingroom.model.config import RoomConfig
from frontrow.waitingroom.ports import RoomStore
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.waitingroom.stores.memory import MemoryRoomStore

PASSWORD = "a horse in the rain 7"
S = 1_000_000


class PlainPasswords:
    """Implements `Passwords` without any work."""

    async def hash(self, password: str) -> str:
        return f"hash of {password}"

    async def matches(self, password_hash: str | None, password: str) -> bool:
        return password_hash == f"hash of {password}"

    def check_new(self, password: str, email: str) -> None:
        if len(password) < 12:
            raise InvalidInput("too short", param="password")


class Counted:
    """Implements `Attempts`: counts and refuses nothing."""

    def __init__(self) -> None:
        self.open: dict[str, int] = {}

    async def count_attempt(self, who: str) -> None:
        self.open[who] = self.open.get(who, 0) + 1

    async def forgive_attempt(self, who: str) -> None:
        self.open[who] -= 1


class Opener:
    """Implements `RoomOpener`: remembers what is open."""

    def __init__(self) -> None:
        self.open: set[str] = set()

    async def open_room(self, name: str) -> None:
        self.open.add(name)

    async def close_room(self, name: str) -> None:
        self.open.discard(name)


class Server:
    """One process with a console: its room service, its book, its clock."""

    def __init__(
        self,
        folder: Path,
        keys: RoomKeys,
        clock: ManualClock,
        store: RoomStore | None = None,
        book: ConsoleBook | None = None,
    ) -> None:
        self.clock = clock
        self.room = WaitingRoom(
            store or MemoryRoomStore(clock),
            open_sqlite_audit(folder / "audit.sqlite"),
            keys,
            clock=clock,
            durable_joins=True,
        )
        self.book = book or open_sqlite_book(folder / "console.sqlite")
        self.per_account, self.per_address = Counted(), Counted()
        self.access = ConsoleAccess(self.book, PlainPasswords(), self.per_account, self.per_address, clock)
        self.rooms = ConsoleRooms(self.book, self.room, self.access, RoomConfig(capacity=10), clock)
        self.opener = Opener()
        self.rooms.serve_with(self.opener)

    async def owner(self) -> SignedInOwner:
        """The first owner, or the same one signed in again."""
        secret = await self.access.first_link()
        if secret is None:
            return await self.access.sign_in("ada@example.org", PASSWORD, "127.0.0.1")
        return await self.access.use_link(secret, "ada@example.org", "Ada", PASSWORD, "127.0.0.1")

    def phase(self, name: str) -> str:
        return self.room.control.view(name).state.phase.value

    async def aclose(self) -> None:
        await self.room.aclose()
        await self.book.aclose()
