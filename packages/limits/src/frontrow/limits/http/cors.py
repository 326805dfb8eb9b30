"""Browsers and limits: preflights are not counted, and a refusal goes through the application's CORS middleware.

A browser asks before a cross-origin request (the preflight). Counting both would halve everybody's quota. A refusal
without CORS headers is hidden from the page's script, which then sees a network error in place of 429. If the CORS
middleware stands outside the limiter, it adds its headers to the refusal by itself. If it stands inside, the limiter
finds it and sends the refusal through a copy of it.
"""

import copy
from typing import Any

MAX_LAYERS = 64
_INNER = ("app", "middleware_stack", "asgi_handler")  # where frameworks keep the next application


def is_preflight(headers: Any) -> bool:
    """Whether these ASGI headers of an OPTIONS request are those of a CORS preflight."""
    names = {name for name, _ in headers}
    return b"origin" in names and b"access-control-request-method" in names


def is_cross_origin(scope: Any) -> bool:
    """Whether a page's script may wait for the response. OPTIONS is left out: CORS middleware would accept it."""
    if scope.get("method", "OPTIONS") == "OPTIONS":
        return False
    return b"origin" in [name for name, _ in scope["headers"]]


def through_cors(app: Any, answer: Any) -> Any:
    """`answer`, wrapped in the CORS middleware that stands inside `app`, if there is one. Both are ASGI."""
    for _ in range(MAX_LAYERS):
        if type(app).__name__ == "CORSMiddleware":
            cors = copy.copy(app)
            cors.app = answer
            return cors
        app = next((inner for name in _INNER if (inner := getattr(app, name, None)) is not None), None)
        if app is None:
            break
    return answer
