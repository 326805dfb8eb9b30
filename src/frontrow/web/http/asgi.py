"""Endpoint requests and responses over ASGI: what the framework's handlers need to call an endpoint."""

from typing import Any

from litestar import Request
from litestar.types import Receive, Scope, Send

from frontrow.web.http.messages import EndpointRequest, EndpointResponse


async def read_request(request: Request[Any, Any, Any]) -> EndpointRequest:
    """The request as the endpoints read it."""
    client = request.scope.get("client")
    headers = list(request.scope["headers"])
    body = await request.body() if request.method in ("POST", "PATCH", "DELETE") else b""
    query = request.scope.get("query_string", b"")
    return EndpointRequest(headers, body, client[0] if client else "", query)


async def send_answer(answer: EndpointResponse, scope: Scope, send: Send) -> None:
    """An `EndpointResponse` over ASGI."""
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers()]
    if answer.status not in (204, 304):
        headers.append((b"content-length", b"%d" % len(answer.body)))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    body = b"" if scope["method"] == "HEAD" else answer.body  # type: ignore[typeddict-item]
    await send({"type": "http.response.body", "body": body, "more_body": False})


class AnswerApp:
    """An ASGI app that sends one `EndpointResponse`, for Litestar's handlers."""

    def __init__(self, answer: EndpointResponse) -> None:
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_answer(self._answer, scope, send)
