"""Decides for both middlewares whether a request may reach the shop.

Every path needs a pass unless it is listed as open, and a path is open only if it is written plainly:
`/Static/../checkout`, `//static`, `/static%2f..` or another case are never open, however the shop's router reads them.
The pass is a bearer, in the `Frontrow-Pass` header or in the cookie.
"""

import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from frontrow.core.clock import US_PER_S, Clock, WallClock
from frontrow.core.errors import ConfigError, Forbidden, FrontrowError, Unauthorised
from frontrow.shared.cookie_headers import cookie_names, names_to_read, read_cookie
from frontrow.waitingroom.credentials.passes import MAX_PASS_CHARS, Pass

PASS_COOKIES = cookie_names("pass")
PASS_HEADER = "frontrow-pass"  # noqa: S105
_PLAIN = re.compile(r"/[A-Za-z0-9._~!$&'()*+,=:@/-]*\Z")
_PAGE = re.compile(r"(/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)(\?[!$-;=?-\[\]-~]*)?\Z")
_HIDDEN = re.compile(r"%(?:[01].|2f|5c|7f)", re.IGNORECASE)  # control characters and slashes, encoded
MAX_PAGE_CHARS = 1024

Verify = Callable[[str, int], Pass]


class PassRequired(Unauthorised):
    """No pass came with the request; wait in the room first."""

    code = "pass_required"


class WrongPerson(Forbidden):
    """The pass was given to somebody else."""

    code = "pass_of_another"


@dataclass(frozen=True, slots=True)
class Guard:
    """How passes are checked, and where people without one go. `verify(text, now_s)` returns the pass or raises."""

    verify: Verify
    room_url: str
    open_paths: Sequence[str] = ()
    clock: Clock = field(default_factory=WallClock)
    secure_cookies: bool = False  # with https only the cookie bound to the host is read

    def __post_init__(self) -> None:
        if not self.room_url:
            raise ConfigError("room_url must say where people wait, for example /room/", param="room_url")
        for path in self.open_paths:
            if not is_plain(path):
                raise ConfigError(f"open path {path!r} must be written plainly, like /static/", param="open_paths")

    def is_open(self, raw_path: str) -> bool:
        """True if `raw_path`, as the client sent it, is an open path or below one that ends with /."""
        if not is_plain(raw_path):
            return False
        return any(raw_path == path or (path.endswith("/") and raw_path.startswith(path)) for path in self.open_paths)

    def admit(self, given: str | None, person: str | None = None) -> Pass:
        """The verified pass, which must be `person`'s if given. Raises PassRequired, WrongPerson or as `verify`."""
        if not given:
            raise PassRequired("this shop lets people in through its waiting room", room=self.room_url)
        if len(given) > MAX_PASS_CHARS:
            raise PassRequired("the pass is too long to be one of ours", room=self.room_url)
        try:
            visit = self.verify(given, self.clock() // US_PER_S)
        except FrontrowError as error:
            error.about.setdefault("room", self.room_url)
            raise
        if person is not None and visit.person != person:
            raise WrongPerson("this pass was given to somebody else", room=self.room_url)
        return visit

    def redirect_to(self, path: str, query: str) -> str:
        """The room's URL with the path to return to, which is always a path of this shop."""
        back = f"{path}?{query}" if query else path
        if not is_page(back):
            back = path if is_page(path) else "/"
        return f"{self.room_url}{'&' if '?' in self.room_url else '?'}return={quote(back, safe='/')}"


def is_plain(path: str) -> bool:
    """Only plain characters, lower-case safe, no empty, `.` or `..` segments."""
    return bool(_PLAIN.match(path)) and "//" not in path and posixpath.normpath(path) == (path.rstrip("/") or "/")


def is_page(text: str) -> bool:
    """Whether this is a page of one's own site as a browser writes it: a path, encoded or not, and perhaps a query. It
    names no other site and has no `.` or `..` segments."""
    found = _PAGE.match(text) if len(text) <= MAX_PAGE_CHARS else None
    if found is None or "//" in found[1] or _HIDDEN.search(found[1]):
        return False
    return not {".", ".."} & set(found[1].split("/"))


def pass_from(authorization: str | None, header: str | None, cookie: str | None, *, secure: bool) -> str | None:
    """The pass of the first of the three that has one."""
    if authorization and authorization[:7].lower() == "bearer ":
        return authorization[7:].strip()
    if header:
        return header.strip()
    return (read_cookie(cookie, names_to_read(PASS_COOKIES, secure=secure)) or None) if cookie else None


def wants_page(method: str, accept: str | None) -> bool:
    """Whether a browser asks for a page. A browser is redirected; other clients get problem+json."""
    return method in ("GET", "HEAD") and accept is not None and "text/html" in accept
