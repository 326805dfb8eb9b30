"""What serving processes and commands need of the console: its first link, links for owners, and its pages."""

from frontrow.app.console_wiring import open_access
from frontrow.app.room_wiring import OpenRooms
from frontrow.settings.room import RoomSettings
from frontrow.waitingroom.console.model.owners import OwnerRole
from frontrow.web.server.room_server import ServedConsole
from frontrow.web.site.console.console import Console

COMMAND = "command line"  # who made a link, in the log


async def first_link(settings: RoomSettings) -> str | None:
    """The secret of a new link for the first owner; None once there is one."""
    opened = open_access(settings)
    try:
        return await opened.access.first_link()
    finally:
        await opened.aclose()


async def owner_link(settings: RoomSettings, email: str, role: OwnerRole) -> str:
    """The secret of a link for this address: a new account, or a new password."""
    opened = open_access(settings)
    try:
        return await opened.access.link_for(email, role, COMMAND)
    finally:
        await opened.aclose()


def served_console(settings: RoomSettings, opened: OpenRooms) -> ServedConsole | None:
    """The console's pages for the server of this process."""
    console = opened.console
    if console is None:
        return None
    rooms = opened.endpoints.rooms
    pages = Console(settings, rooms.room, console.rooms, console.open.access, console.open.book, rooms.entry.ip_of)
    return ServedConsole(pages, console.notices, console.jobs, opened.make_streams, opened.make_check)
