"""HEAD for every route that answers GET (RFC 9110): the same head, without the body.

The fast path leaves HEAD to the framework, so every HEAD is answered by this.
"""

import asyncio

from litestar.enums import HttpMethod, ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send


class HeadRequests:
    """Asks the app for GET and lets nothing but the head through. Everything else passes unchanged."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == ScopeType.HTTP and scope["method"] == HttpMethod.HEAD:
            await self._answer_head(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _answer_head(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        """The app is stopped at its first part of a body: a live stream would never end by itself."""
        answered = asyncio.Event()

        async def send_head(message: Message) -> None:
            if answered.is_set():
                return
            if message["type"] == "http.response.body":
                answered.set()
                message = {"type": "http.response.body", "body": b"", "more_body": False}
            await send(message)

        asked: HTTPScope = {**scope, "method": HttpMethod.GET}
        answering = asyncio.ensure_future(self._app(asked, receive, send_head))
        first_part = asyncio.ensure_future(answered.wait())
        try:
            await asyncio.wait((answering, first_part), return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                answering.result()  # an error of the app is uvicorn's to report
        finally:
            for task in (answering, first_part):
                task.cancel()
            await asyncio.gather(answering, first_part, return_exceptions=True)
