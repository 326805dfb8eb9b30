"""A shop on another domain than its waiting room, in Python (WSGI). Room and shop, each in a terminal:

frontrow room serve --event aurora --shop-origin http://127.0.0.1:8000
python examples/shops/wsgi_shop.py 8000
"""

import html
import os
import socketserver
import sys
from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from frontrow.waitingroom.protect.connector import Setup
from frontrow.waitingroom.protect.connector_client import Connector
from frontrow.waitingroom.protect.connector_wsgi import WsgiConnector

ROOM = os.environ.get("ROOM_URL", "http://127.0.0.1:8008")
SHOP = os.environ.get("SHOP_URL", "http://127.0.0.1:8000")


def shop(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    person = environ["frontrow.visit"].person
    start_response("200 OK", [("Content-Type", "text/html; charset=utf-8")])
    return [f"<h1>Welcome! Choose your seats.</h1><p>You are {html.escape(person)}.</p>".encode() if person else b"ok"]


SETUP = Setup(f"{ROOM}/v1/events/aurora/room", "aurora", SHOP, ["/health"], os.environ.get("RULES_KEY", ""))
app = WsgiConnector(shop, Connector(SETUP))


class Threads(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True


class WithTarget(WSGIRequestHandler):
    """Tells the shop the path as the client sent it, as gunicorn and uWSGI do."""

    def get_environ(self) -> dict[str, Any]:
        return super().get_environ() | {"REQUEST_URI": self.path}


if __name__ == "__main__":
    make_server("127.0.0.1", int(sys.argv[1]), app, Threads, WithTarget).serve_forever()
