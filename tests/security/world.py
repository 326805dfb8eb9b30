"""One platform that all security tests attack: two organisers, every role, fans, guests, keys, passes and bookings.

`AsgiClient` sends requests as bytes of a request line would arrive (raw path, duplicate headers), without a client that
tidies them up first.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any
from urllib.parse import unquote

import msgspec

from frontrow.app.wiring import Platform
from frontrow.boxoffice.people.model.people import Stage, SubjectKind
from frontrow.boxoffice.people.model.roles import PERMISSIONS, Role
from frontrow.core.errors import FrontrowError
from frontrow.waitingroom.credentials.passes import Pass
from frontrow.waitingroom.ports import PlaceKey
from frontrow.web.http.access import booking_token
from frontrow.web.server.app import front_of
from tests.boxoffice.people.support import PASSWORD, Person, api_key, fan, member, on_sale
from tests.web.api.support import EVENT_ID, borrowed_app

OTHER_EVENT_ID = "evt_01JCQ3W2N4X7Z8Y9A0B1C2D3E5"
HALL, OTHER = "org_hall", "org_other"


class Reply(msgspec.Struct):
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        try:
            return str(self.json().get("code", ""))
        except (ValueError, AttributeError):
            return ""

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key == name), "")


class AsgiClient:
    """Calls an ASGI app as a server does."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def ask(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]] = (),
        body: Any = None,
        *,
        peer: str = "127.0.0.1",
        kind: str = "application/json",
    ) -> Reply:
        raw = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        path, _, query = target.partition("?")
        lines = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        if not any(name == b"host" for name, _ in lines):
            lines.append((b"host", b"test"))
        if body is not None:
            lines += [(b"content-type", kind.encode())] if kind else []
            lines.append((b"content-length", str(len(raw)).encode()))
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "https",
            "path": unquote(path),
            "raw_path": path.encode("latin-1"),
            "query_string": query.encode(),
            "root_path": "",
            "headers": lines,
            "client": (peer, 50_000),
            "server": ("test", 443),
        }
        return await self._run(scope, raw)

    async def _run(self, scope: dict[str, Any], raw: bytes) -> Reply:
        sent: list[dict[str, Any]] = []
        told = [{"type": "http.request", "body": raw, "more_body": False}]
        done = asyncio.Event()

        async def receive() -> dict[str, Any]:
            if told:
                return told.pop(0)
            await done.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)
            if message["type"] == "http.response.body":
                done.set()  # a stream's first frame is enough; the client leaves

        async with asyncio.timeout(20):
            await self.app(scope, receive, send)
        start = next(message for message in sent if message["type"] == "http.response.start")
        body = b"".join(message.get("body", b"") for message in sent if message["type"] == "http.response.body")
        pairs = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in start["headers"]]
        return Reply(start["status"], pairs, body)


class World(msgspec.Struct):
    """Everybody and everything there is to attack."""

    platform: Platform
    client: AsgiClient
    people: dict[str, Person]
    keys: dict[str, str]
    half: Person
    pass_jwt: str
    other_pass_jwt: str
    booking: str
    booking_token: str

    def callers(self) -> dict[str, list[tuple[str, str]]]:
        """A name and the headers of every sort of caller."""
        found: dict[str, list[tuple[str, str]]] = {"nobody": [], "half signed in": bearer(self.half.session)}
        found |= {name: bearer(person.session) for name, person in self.people.items()}
        found |= {name: bearer(secret) for name, secret in self.keys.items()}
        return found


def bearer(text: str) -> list[tuple[str, str]]:
    return [("authorization", f"Bearer {text}")]


def pass_for(platform: Platform, event: str, person: str, position: int = 1) -> str:
    """A pass as the room would give it."""
    now_s = platform.clock() // 1_000_000
    visit = Pass(event, person, PlaceKey(0, 1, position), now_s, now_s + 900, now_s)
    return platform.room.service.passes.mint(visit)


@contextlib.asynccontextmanager
async def a_client(platform: Platform) -> AsyncIterator[AsgiClient]:
    """Asks the platform's app."""
    with borrowed_app(platform) as app:
        yield AsgiClient(front_of(app, platform))


async def a_world(platform: Platform, client: AsgiClient) -> World:
    await on_sale(platform, HALL)
    await on_sale(platform, OTHER, id=OTHER_EVENT_ID)
    people = {f"{role.value} of hall": await member(platform, role, HALL) for role in Role}
    people["owner of other"] = await member(platform, Role.OWNER, OTHER)
    people["fan"], people["stranger"] = await fan(platform, "fan@example.org"), await fan(platform, "s@example.org")
    people["guest"] = await fan(platform)
    keys = {
        "key with everything": await api_key(platform, people["owner of hall"], sorted(PERMISSIONS)),
        "key for the gate": await api_key(platform, people["owner of hall"], ["door:scan"]),
        "key of other": await api_key(platform, people["owner of other"], sorted(PERMISSIONS)),
    }
    staff = people["manager of hall"]
    made = await platform.people.sessions.start(SubjectKind.STAFF, staff.id, stage=Stage.TOTP)
    mine = pass_for(platform, EVENT_ID, people["fan"].id)
    held = await client.ask("POST", f"/v1/events/{EVENT_ID}/holds", bearer(mine), {"best": {"count": 1}})
    assert held.status == 201, held.body
    booking = held.json()["booking"]
    return World(
        platform,
        client,
        people,
        keys,
        Person(staff.id, made.secret, "half"),
        mine,
        pass_for(platform, OTHER_EVENT_ID, people["fan"].id),
        booking,
        booking_token(platform.secrets, booking),
    )


__all__ = [
    "EVENT_ID",
    "HALL",
    "OTHER",
    "OTHER_EVENT_ID",
    "PASSWORD",
    "AsgiClient",
    "Reply",
    "World",
    "a_world",
    "bearer",
]


class Reached(FrontrowError):
    """The guard let the request through; the handler itself is not run, so nothing happens."""

    code = "reached"
    http_status = 418
