"""Builds the console of a room that is served alone: its book, the house's passwords and attempt limits, its rooms."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frontrow.app.notice_wiring import BOOK_FILE, open_notices
from frontrow.boxoffice.adapters.channels.from_settings import MessageSettings
from frontrow.boxoffice.people.model.password_rules import checked_password
from frontrow.boxoffice.people.passwords import PasswordCheck, Passwords
from frontrow.boxoffice.people.people_settings import PeopleSettings
from frontrow.boxoffice.people.sign_in_limits import SignInLimits
from frontrow.core.clock import Clock, WallClock
from frontrow.core.settings_loader import load
from frontrow.settings.room import RoomSettings
from frontrow.waitingroom.console.access import ConsoleAccess
from frontrow.waitingroom.console.figures_sampler import FigureSampler
from frontrow.waitingroom.console.ports import ConsoleBook
from frontrow.waitingroom.console.postgres_book import open_postgres_book
from frontrow.waitingroom.console.rooms import ConsoleRooms
from frontrow.waitingroom.console.sqlite_book import open_sqlite_book
from frontrow.waitingroom.notices.turn_notices import TurnNotices
from frontrow.waitingroom.service.room import WaitingRoom


class HousePasswords:
    """The console's `PasswordHashes` by those of the box office: argon2id, and the same rules."""

    def __init__(self, settings: PeopleSettings) -> None:
        self._passwords = Passwords(settings)

    async def hash(self, password: str) -> str:
        return await self._passwords.hash(password)

    async def matches(self, password_hash: str | None, password: str) -> bool:
        return await self._passwords.verify(password_hash, password) is not PasswordCheck.WRONG

    def check_new(self, password: str, email: str) -> None:
        checked_password(password, email)

    def close(self) -> None:
        self._passwords.close()


def open_console_book(settings: RoomSettings) -> ConsoleBook:
    """Beside the audit: in its PostgreSQL, which several servers share, else in a file of the folder."""
    if settings.audit.startswith(("postgresql://", "postgres://")):
        return open_postgres_book(settings.audit)
    return open_sqlite_book(Path(settings.folder) / BOOK_FILE)


@dataclass(frozen=True)
class OpenConsole:
    """The console's services. `aclose` closes what only the console uses."""

    book: ConsoleBook
    access: ConsoleAccess
    passwords: HousePasswords
    limits: SignInLimits

    async def aclose(self) -> None:
        self.passwords.close()
        await self.limits.aclose()
        await self.book.aclose()


def open_access(settings: RoomSettings, clock: Clock | None = None) -> OpenConsole:
    """The accounts, without any room: for the server and for `frontrow room owner`."""
    book, people = open_console_book(settings), PeopleSettings()
    limits = SignInLimits(settings.limit_store, clock, account=people.account_tries, ip=people.ip_tries)
    passwords = HousePasswords(people)
    access = ConsoleAccess(book, passwords, limits.account, limits.ip, clock or WallClock())
    return OpenConsole(book, access, passwords, limits)


@dataclass(frozen=True)
class RunningConsole:
    """The console of one process, with the rooms that it follows."""

    open: OpenConsole
    rooms: ConsoleRooms
    sampler: FigureSampler
    notices: TurnNotices

    @property
    def jobs(self) -> tuple[tuple[Callable[[], Any], str], ...]:
        """What runs beside the server, each with its name."""
        jobs = (self.rooms.run, "console rooms"), (self.sampler.run, "console figures")
        return (*jobs, (self.notices.run, "turn notices")) if self.notices.kinds else jobs

    async def aclose(self) -> None:
        await self.notices.aclose()
        await self.open.aclose()


async def open_console(settings: RoomSettings, room: WaitingRoom, clock: Clock | None = None) -> RunningConsole:
    """The console over a room's service. Rooms of the settings are taken over."""
    opened = open_access(settings, clock)
    try:
        rooms = ConsoleRooms(opened.book, room, opened.access, settings.config(), clock or WallClock())
        await rooms.adopt(settings.events)
        messages = load(MessageSettings, "messages")
        notices = open_notices(settings, messages, room, clock or WallClock())
    except BaseException:
        await opened.aclose()
        raise
    return RunningConsole(opened, rooms, FigureSampler(opened.book, rooms, room), notices)
