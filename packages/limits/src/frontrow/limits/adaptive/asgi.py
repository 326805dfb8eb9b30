"""An adaptive limit as plain ASGI middleware: sheds with 503 and Retry-After, the lowest class first.

    app = AdaptiveLimitMiddleware(app, paths={"critical": ["/pay/**"], "background": ["/reports/**"]})

A request is in flight until its response is complete; a live stream (`text/event-stream`) only until it starts.
WebSockets pass: they have no end that could be waited for.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Unpack

from frontrow.limits.adaptive.limit import AdaptiveLimit, LimitOptions, Shed, Slot
from frontrow.limits.adaptive.load_meter import Ended
from frontrow.limits.adaptive.request_classes import EXEMPT, Classify, RequestClasses, judge_status, shed_response
from frontrow.limits.http.asgi import App, Message, Receive, Scope, Send
from frontrow.limits.http.cors import is_cross_origin, through_cors


class AdaptiveLimitMiddleware:
    """Limits the requests that an ASGI application serves at once.

    `classify` is given the scope and returns a class, or None for that of the path. `limit` is a ready `AdaptiveLimit`,
    to share one between applications or to read its figures; otherwise the options are those of `AdaptiveLimit`.
    """

    def __init__(
        self,
        app: App,
        limit: AdaptiveLimit | None = None,
        *,
        paths: Mapping[str, Iterable[str]] | None = None,
        exempt: Iterable[str] = EXEMPT,
        classify: Classify | None = None,
        otherwise: str = "normal",
        **options: Unpack[LimitOptions],
    ) -> None:
        self.app = app
        self.limit = limit or AdaptiveLimit("asgi", **options)
        self._classes = RequestClasses(self.limit, paths, exempt, classify, otherwise)
        self._refusal = shed_response(self.limit.retry_after_s)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        rank = self._classes.rank_of(scope, scope["path"], scope.get("root_path", ""))
        if rank is None:
            return await self.app(scope, receive, send)
        try:
            slot = await self.limit.aenter(rank)
        except Shed:
            return await self._refuse(scope, receive, send)
        answer = _Answer(slot, send)
        try:
            await self.app(scope, receive, answer.send)
        except BaseException as error:
            self.limit.release(slot, self.limit.judge(error))
            raise
        self.limit.release(slot, judge_status(answer.status))

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        status, fields, body = self._refusal

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "http.response.start", "status": status, "headers": fields})
            await send({"type": "http.response.body", "body": b"" if scope.get("method") == "HEAD" else body})

        await (through_cors(self.app, answer) if is_cross_origin(scope) else answer)(scope, receive, send)


class _Answer:
    """What is seen of an answer as it goes out."""

    __slots__ = ("_send", "_slot", "status")

    def __init__(self, slot: Slot, send: Send) -> None:
        self._slot, self._send, self.status = slot, send, 500

    def send(self, message: Message) -> Any:
        """Returns the server's awaitable, which saves one coroutine per message."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            if any(
                len(name) == 12 and name.lower() == b"content-type" and value.startswith(b"text/event-stream")
                for name, value in message.get("headers", ())
            ):
                self._slot.release(Ended.IGNORED)
        return self._send(message)
