"""The connector as Django middleware, above all other middleware.

    MIDDLEWARE = ["frontrow.waitingroom.protect.connector_django.DjangoConnector", ...]
    FRONTROW = {"room": "https://room.example/v1/events/aurora/room", "event": "aurora",
                "shop": "https://shop.example", "open_paths": ["/static/"]}

Views find the visit in `request.frontrow_visit` (a `Decision`: `person`, `visit`).
"""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from frontrow.waitingroom.protect.connector import Setup
from frontrow.waitingroom.protect.connector_answers import answer_of
from frontrow.waitingroom.protect.connector_client import Connector
from frontrow.waitingroom.protect.connector_wsgi import PATH_CHARS, headers_of


class DjangoConnector:
    """Lets only visitors reach the views. Works under WSGI and, in a thread, under ASGI."""

    def __init__(self, get_response: Callable[[Any], Any]) -> None:
        from django.conf import settings

        self.get_response = get_response
        self.connector: Connector = getattr(settings, "FRONTROW_CONNECTOR", None) or Connector(
            Setup(**settings.FRONTROW)
        )

    def __call__(self, request: Any) -> Any:
        from django.http import HttpResponse

        address = request.META.get("REMOTE_ADDR", "")
        done = self.connector.handle(request.method, _target(request), headers_of(request.META), address)
        answer = answer_of(done, self.connector.setup.room)
        if answer is None:
            request.frontrow_visit = done
            response = self.get_response(request)
            lines = [("Set-Cookie", line) for line in done.cookies]
        else:
            status, lines, body = answer
            response = HttpResponse(body, status=status, content_type="")
            del response["Content-Type"]
        for name, value in lines:
            if name == "Set-Cookie":  # Django keeps one header of a name, but cookies by theirs
                response.cookies.load(value)
            else:
                response[name] = value
        return response


def _target(request: Any) -> str:
    """Path and query as the client sent them, if the server tells; else Django's decoded path, encoded again."""
    raw = getattr(request, "scope", {}).get("raw_path")  # under ASGI
    told: str = request.META.get("RAW_URI") or request.META.get("REQUEST_URI") or ""
    if told and not raw:
        return told
    path = raw.decode("latin-1") if raw else quote(request.path.encode(), safe=PATH_CHARS)
    query = request.META.get("QUERY_STRING", "")
    return f"{path}?{query}" if query else path
