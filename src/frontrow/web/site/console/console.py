"""What the console's pages are given: the services, and how the room is served."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from litestar import Request

from frontrow.settings.room import RoomSettings
from frontrow.shared.cookie_headers import cookie_line, cookie_names, names_to_read, read_cookie
from frontrow.waitingroom.console.access import ConsoleAccess, SignedInOwner
from frontrow.waitingroom.console.ports import ConsoleBook
from frontrow.waitingroom.console.rooms import ConsoleRooms
from frontrow.waitingroom.service.room import WaitingRoom

Asked = Request[Any, Any, Any]
SESSION_COOKIES: Final = cookie_names("console")
SESSION_LIFE_S: Final = 12 * 3_600
LOOPBACK: Final = ("127.", "::1")


@dataclass(frozen=True)
class Console:
    """Everything behind the pages."""

    settings: RoomSettings
    room: WaitingRoom
    rooms: ConsoleRooms
    access: ConsoleAccess
    book: ConsoleBook
    address_of: Callable[[str, list[str]], str]  # the peer, and what X-Forwarded-For says -> the address's key

    def session_cookie(self, secret: str, life_s: int = SESSION_LIFE_S) -> str:
        """The header value that keeps a session in the browser; scripts cannot read it."""
        return cookie_line(SESSION_COOKIES, secret, life_s, secure=self.settings.secure)

    def secret_in(self, request: Asked) -> str:
        """The session's secret that this browser sends; over https only the cookie that nobody else can plant."""
        names = names_to_read(SESSION_COOKIES, secure=self.settings.secure)
        return read_cookie("; ".join(request.headers.getall("cookie", [])), names)

    async def owner_in(self, request: Asked) -> SignedInOwner | None:
        """Who is signed in, if anybody is."""
        secret = self.secret_in(request)
        return await self.access.find(secret) if secret else None

    def may_sign_in(self, request: Asked) -> bool:
        """Whether a password may travel here: over https, or without leaving the machine."""
        if self.settings.secure or self.settings.console_over_http:
            return True
        return self.address_in(request).startswith(LOOPBACK)

    def address_in(self, request: Asked) -> str:
        """The key of the request's address; forwarded ones count only from our own proxies."""
        client = request.scope.get("client")
        return self.address_of(client[0] if client else "", request.headers.getall("x-forwarded-for", []))


def console_of(request: Asked) -> Console:
    console: Console = request.app.state.console
    return console
