"""The demo's own pages: what to look at first, and the mails that fans, members and organisers would get.

Elsewhere these pages do not exist. They are in English, as the page of the API is: they are for whoever tries Frontrow.
A mail's HTML comes from events that anybody may have written, so it is shown in a frame without scripts and without our
origin.
"""

import asyncio
import base64
import re
from dataclasses import dataclass
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default as modern
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.events.model.event_search import EventSearch
from frontrow.core.errors import NotFound
from frontrow.web.platform.platform import Platform
from frontrow.web.site.event_display import shown
from frontrow.web.site.fans.demo_cards import SHOWN
from frontrow.web.site.render import PRIVATE, render
from frontrow.web.site.routes import page
from frontrow.web.site.security_headers import PagePolicy

MAX_EVENTS: Final = 24
# What to do at an event of the demo's season, in the order of the tour.
TOUR: Final = {
    "evt_example": "Choose seats on the map, add a programme or parking, and pay. Nobody waits here.",
    "evt_busy": "Join the queue behind simulated people, watch it move and be let in.",
    "evt_match": "A stadium: zoom from the whole venue to a seat, and take children along.",
    "evt_arena": "An arena: stand in the pit, sit in the ring, or both in one basket.",
    "evt_late": "A club without seats: choose how many.",
    "evt_play_1": "A show with three dates: change the date and find your seat again.",
    "evt_philharmonic": "Sold out: join the waitlist with an email address.",
    "evt_night_garden": "The sale opens in a few minutes: wait for it, and for the draw.",
    "evt_rehearsal": "Free of charge: tickets without a card.",
}
OTHERS: Final = "Choose seats on the map and pay."
MAX_SHOWN: Final = 200
MAX_BYTES: Final = 5 * 1024 * 1024
NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,150}\.eml")
LINK: Final = re.compile(r"https?://[^\s<>\"']+")
SHOWS_MAIL: Final = PagePolicy({"frame-src": "'self'"})
# Opaque origin, no scripts, no forms; a link opens a new tab.
MAIL: Final = PagePolicy(
    {"style-src": "'unsafe-inline'", "sandbox": "allow-popups allow-popups-to-escape-sandbox"},
    trusted_types=False,
    framed=True,
)


@dataclass(frozen=True)
class Mail:
    """One mail of the folder."""

    name: str
    message: EmailMessage

    def header(self, name: str) -> str:
        return str(self.message[name] or "")

    @property
    def text(self) -> str:
        body = self.message.get_body(("plain",))
        return str(body.get_content()) if body is not None else ""

    @property
    def links(self) -> list[str]:
        """The addresses in the text, each once."""
        return list(dict.fromkeys(one.rstrip(".,)") for one in LINK.findall(self.text)))

    @property
    def html(self) -> str:
        """The HTML part with its pictures inside; every link opens a new tab."""
        body = self.message.get_body(("html",))
        if body is None:
            return ""
        text = str(body.get_content())
        for part in self.message.walk():
            cid = str(part["content-id"] or "").strip("<>")
            if cid:
                raw = base64.b64encode(_bytes_of(part)).decode()
                text = text.replace(f"cid:{cid}", f"data:{part.get_content_type()};base64,{raw}")
        return f'<base target="_blank">{text}'

    @property
    def files(self) -> list[tuple[str, str, bytes]]:
        """Name, type and content of each attachment."""
        parts = list(self.message.iter_attachments())
        return [(part.get_filename() or "file", part.get_content_type(), _bytes_of(part)) for part in parts]


def _bytes_of(part: Any) -> bytes:
    content = part.get_payload(decode=True)
    return bytes(content) if content is not None else b""


def _demo(request: Request[Any, Any, Any]) -> Platform:
    """The platform, if it is a demo."""
    platform: Platform = request.app.state.platform
    if not platform.settings.server.demo:
        raise NotFound("this is not a demo")
    return platform


def _folder(request: Request[Any, Any, Any]) -> Path:
    mail_url = _demo(request).settings.mail_url
    if "://" in mail_url:
        raise NotFound("the mails of this demo are sent, as mail.url says")
    return Path(mail_url)


def _read(path: Path) -> Mail | None:
    """The mail, unless it is gone or larger than any of ours."""
    try:
        if path.stat().st_size > MAX_BYTES:
            return None
        return Mail(path.name, message_from_bytes(path.read_bytes(), policy=modern))
    except OSError:
        return None


def _newest(folder: Path) -> list[Mail]:
    """The newest mails, by the time at which they were written."""
    dated: list[tuple[float, Path]] = []
    for path in folder.glob("*.eml"):
        try:
            dated.append((path.stat().st_mtime, path))
        except OSError:  # rewritten in this moment
            continue
    newest = sorted(dated, reverse=True)[:MAX_SHOWN]
    return [mail for _, path in newest if (mail := _read(path)) is not None]


async def _find(request: Request[Any, Any, Any], name: str) -> Mail:
    folder = _folder(request)
    found = await asyncio.to_thread(_read, folder / name) if NAME.fullmatch(name) else None
    if found is None:
        raise NotFound("there is no such mail")
    return found


@page("/demo", "demo")
async def guide(request: Request[Any, Any, Any]) -> Response[bytes]:
    """What to look at, in the order in which a fan, an organiser and an engineer meet it."""
    platform = _demo(request)
    found = await platform.box_office.browse.search(
        EventSearch(status=None, from_us=platform.clock(), limit=MAX_EVENTS)
    )
    listed = {one.event.id: shown(platform, one.event, one.venue) for one in found.listings}
    tour = [(listed[one], what) for one, what in TOUR.items() if one in listed]
    tour = tour or [(one, OTHERS) for one in listed.values()]
    return render(request, "demo.html", tour=tour, cards=SHOWN, mails_here="://" not in platform.settings.mail_url)


@page("/demo/mails", "demo_mails")
async def mails(request: Request[Any, Any, Any]) -> Response[bytes]:
    """All mails so far."""
    return render(request, "demo-mails.html", mails=await asyncio.to_thread(_newest, _folder(request)))


@page("/demo/mails/{name:str}", "demo_mail")
async def mail(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[bytes]:
    """One mail: who it is for, its pictures and text, its links and files."""
    return render(request, "demo-mail.html", mail=await _find(request, name), policy=SHOWS_MAIL)


@page("/demo/mails/{name:str}/html", "demo_mail_html", inside_page=True)
async def mail_html(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[bytes]:
    """The mail as a mail program shows it, for the frame."""
    found = await _find(request, name)
    platform: Platform = request.app.state.platform
    headers = MAIL.headers(platform.settings) | {"cache-control": PRIVATE}
    return Response(found.html.encode(), headers=headers, media_type="text/html")


@page("/demo/mails/{name:str}/files/{number:int}", "demo_mail_file")
async def mail_file(request: Request[Any, Any, Any], name: FromPath[str], number: FromPath[int]) -> Response[bytes]:
    """An attachment, to be saved."""
    files = (await _find(request, name)).files
    if not 0 <= number < len(files):
        raise NotFound("this mail has no such file")
    title, kind, content = files[number]
    headers = {
        "content-disposition": f"attachment; filename*=UTF-8''{quote(title)}",
        "x-content-type-options": "nosniff",
        "cache-control": PRIVATE,
    }
    return Response(content, headers=headers, media_type=kind)


ROUTES: list[HTTPRouteHandler] = [guide, mails, mail, mail_html, mail_file]
