"""`Idempotency-Key` on every POST: the same key and body get the same response, another body gets 409.

A key belongs to a caller and a route. Responses are stored in the ledger for a day. The key is taken before the handler
runs and the response is stored before it is sent, so a client that got no response can repeat the request. A refusal is
not stored: the repeated request is decided anew. Hold, join and pay handle keys themselves (`opt={"idempotency":
"own"}`). So do requests that change nothing when they are repeated and whose responses hold a secret. Other responses
with a secret are sealed in the ledger (`opt={"idempotency": "sealed"}`).

The work of a request with a key goes on when nobody waits for it any more (its deadline was over, its client left),
because it may already be committed. The repeated request gets 409 until that work ends, then its response.

If the response cannot be stored, the caller gets 503 and the key stays taken: the request was carried out. The response
is stored as soon as the ledger answers again, and the repeated request gets it.
"""

import asyncio
import base64
import contextlib
import hashlib
import itertools
import logging
from typing import Any, Final

import msgspec
from litestar import Request, Response
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from frontrow.boxoffice.adapters.ledger.requests.idempotency_store import IdempotencyStore, KeptAnswer
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import FrontrowError, Refused, Unavailable
from frontrow.settings.overload import OverloadSettings
from frontrow.shared.vault import Vault
from frontrow.web.http.messages import EndpointResponse, check_key, problem_answer
from frontrow.web.platform.access_check import client_ip
from frontrow.web.platform.platform import Platform

KEPT_US: Final = 86_400 * US_PER_S  # how long a response is repeated
MAX_KEPT_BYTES: Final = 256 * 1024
DEADLINES: Final = 2  # so many of the longest deadline a request with a key may work on, heard or unheard
STORE_AGAIN_S: Final = (0.2, 0.5, 1.0, 2.0, 4.0)  # between tries to store a response; the last one repeats
CLAIM_MARGIN_S: Final = 30  # after the longest work the request counts as lost with its server
HOP: Final = (b"content-length", b"x-request-id", b"date", b"server", b"set-cookie")


log = logging.getLogger("frontrow.web")


class KeyReused(Refused):
    """This key was used before with another request."""

    code = "idempotency_mismatch"


class StillRunning(Refused):
    """The first request with this key has not been answered yet."""

    code = "idempotency_running"


class _Begun(msgspec.Struct):
    """The key that this request took, and its response."""

    name: str
    book: IdempotencyStore
    now_us: int
    vault: Vault | None  # seals the response


async def before_request(request: Request[Any, Any, Any]) -> Response[bytes] | None:
    """Runs after the guards: takes the key, or answers with the stored response."""
    key = request.headers.get("idempotency-key")
    handler = request.scope["route_handler"]
    if key is None or request.method != "POST":
        return None
    check_key(key)
    kind = handler.opt.get("idempotency")
    if kind == "own":
        return None
    platform: Platform = request.app.state.platform
    caller = request.state.caller
    who = caller.person or caller.session_id or f"ip:{client_ip(platform, request)}"
    name = _digest(f"{who}\n{handler.handler_name}\n{request.url.path}\n{key}".encode())
    asked = _digest(await request.body())
    now_us = platform.clock()
    book = platform.stores.requests
    claim_s = work_within_s(platform.settings.overload) + CLAIM_MARGIN_S
    kept = await book.begin(name, asked, now_us, now_us + round(claim_s * US_PER_S))
    vault = Vault([platform.secrets.key("requests")]) if kind == "sealed" else None
    if kept is None:
        request.scope["state"]["idempotency"] = _Begun(name, book, now_us, vault)
        return None
    if kept.asked != asked:
        raise KeyReused("this Idempotency-Key was used for another request; use a new one", param="Idempotency-Key")
    if not kept.status:
        raise StillRunning("the first request with this key is still being answered", retry_after_s=1.0)
    headers = {"idempotent-replayed": "true", **msgspec.json.decode(kept.headers, type=dict[str, str])}
    body = vault.open(kept.body, f"request:{name}") if vault is not None else kept.body
    return Response(base64.b64decode(body), status_code=kept.status, headers=headers, media_type=kept.kind)


def work_within_s(overload: OverloadSettings) -> float:
    """How long a request with a key may work: longer than anybody waits for it."""
    return DEADLINES * max(overload.deadline_s, overload.pay_deadline_s)


class UnheardWork:
    """Requests that go on although nobody waits for their response any more. Each is bounded by `work_within_s`."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def add(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a request failed after its caller had left", exc_info=error)

    async def finish(self, within_s: float) -> None:
        """The server stops: let what is under way end, for a bounded time."""
        if self._tasks:
            _, late = await asyncio.wait(set(self._tasks), timeout=within_s)
            for task in late:
                task.cancel()


class IdempotencyMiddleware:
    """Stores the response of a request that took a key, then sends it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP or scope["method"] != "POST" or not _has_key(scope):
            await self.app(scope, receive, send)
            return
        state = scope["litestar_app"].state
        within_s = work_within_s(state.platform.settings.overload)
        kept = _Kept(scope, send, state.unheard_work, within_s)
        work = asyncio.create_task(self._work(scope, receive, kept, within_s), name="idempotent request")
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            if not work.done():
                kept.is_heard = False
                state.unheard_work.add(work)
            raise

    async def _work(self, scope: Scope, receive: Receive, kept: "_Kept", within_s: float) -> None:
        try:
            async with asyncio.timeout(within_s):
                await self.app(scope, receive, kept.send)
        except (TimeoutError, asyncio.CancelledError):
            raise  # nobody knows what was done: the key stays taken until its claim ends
        except BaseException:
            await kept.give_up()
            raise
        await kept.give_up()


def _has_key(scope: Scope) -> bool:
    return any(name == b"idempotency-key" for name, _ in scope["headers"])


class _Kept:
    """The response of a request with a key, kept back until it is stored. Nobody may hear it any more."""

    def __init__(self, scope: Scope, send: Send, unheard: UnheardWork, within_s: float) -> None:
        self.is_heard = True
        self._scope, self._send_on, self._unheard = scope, send, unheard
        self._store_until_s = asyncio.get_running_loop().time() + within_s + CLAIM_MARGIN_S / 2
        self._start: Any = None
        self._body: list[bytes] = []

    async def _send(self, message: Message) -> None:
        if self.is_heard:
            await self._send_on(message)

    def _begun(self) -> _Begun | None:
        found: _Begun | None = self._scope.get("state", {}).get("idempotency")
        return found

    async def send(self, message: Message) -> None:
        begun = self._begun()
        if begun is None:
            await self._send(message)
            return
        if message["type"] == "http.response.start":
            self._start = message
            return
        self._body.append(message.get("body", b""))  # type: ignore[arg-type]
        if message.get("more_body"):
            return
        body = b"".join(self._body)
        if 200 <= self._start["status"] < 300 and len(body) <= MAX_KEPT_BYTES:
            answer = _answer(self._start, body)
            if begun.vault is not None:
                sealed = begun.vault.seal(answer.body, f"request:{begun.name}")
                answer = msgspec.structs.replace(answer, body=sealed)
            self._scope["state"].pop("idempotency")  # it was carried out: nothing frees its key
            problem = await self._store(begun, answer)
            if problem is not None:
                self._start, body = _problem_start(problem), problem.body
        await self._send(self._start)
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def _store(self, begun: _Begun, answer: KeptAnswer) -> EndpointResponse | None:
        """Store the response. If the ledger does not take it, go on trying and return what the caller gets instead."""
        try:
            await begun.book.finish(begun.name, answer, begun.now_us)
        except FrontrowError as error:
            log.warning("the response to a request with a key is not stored yet: %s", error)
            self._unheard.add(asyncio.create_task(self._store_later(begun, answer), name="store a response"))
            why = "this was carried out, but its response is not stored yet; repeat it with the same Idempotency-Key"
            return problem_answer(Unavailable(why, retry_after_s=1.0))
        return None

    async def _store_later(self, begun: _Begun, answer: KeptAnswer) -> None:
        now_s = asyncio.get_running_loop().time
        for pause_s in itertools.chain(STORE_AGAIN_S, itertools.repeat(STORE_AGAIN_S[-1])):
            if now_s() + pause_s > self._store_until_s:  # then the claim of the key ends
                log.error("the response to a request with a key was never stored; repeated, it is carried out again")
                return
            await asyncio.sleep(pause_s)
            with contextlib.suppress(FrontrowError):  # it was logged above
                await begun.book.finish(begun.name, answer, begun.now_us)
                return

    async def give_up(self) -> None:
        """Free the key of a request that was refused or failed."""
        begun = self._begun()
        if begun is not None:
            self._scope["state"].pop("idempotency")
            with contextlib.suppress(FrontrowError):  # the claim of the key ends it
                await begun.book.forget(begun.name)


def _problem_start(problem: EndpointResponse) -> Message:
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in problem.headers()]
    headers.append((b"content-length", b"%d" % len(problem.body)))
    return {"type": "http.response.start", "status": problem.status, "headers": headers}


def _answer(start: Any, body: bytes) -> KeptAnswer:
    pairs = [(name.lower(), value) for name, value in start["headers"]]
    kind = next((value.decode("latin-1") for name, value in pairs if name == b"content-type"), "application/json")
    headers = {
        name.decode("latin-1"): value.decode("latin-1") for name, value in pairs if name not in (*HOP, b"content-type")
    }
    text = msgspec.json.encode(headers).decode()
    return KeptAnswer("", start["status"], kind, text, base64.b64encode(body).decode())


def _digest(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=20).hexdigest()
