"""A shop on another domain than its waiting room, in Python (ASGI). Room and shop, each in a terminal:

frontrow room serve --event aurora --shop-origin http://127.0.0.1:8000
uvicorn examples.shops.asgi_shop:app --port 8000
"""

import html
import os
from typing import Any

from frontrow.waitingroom.protect.connector import Setup
from frontrow.waitingroom.protect.connector_asgi import AsgiConnector
from frontrow.waitingroom.protect.connector_client import Connector

ROOM = os.environ.get("ROOM_URL", "http://127.0.0.1:8008")
SHOP = os.environ.get("SHOP_URL", "http://127.0.0.1:8000")
PAGE = """<!doctype html><html lang="en"><title>The shop</title><h1>Welcome! Choose your seats.</h1>
<p>You are {person}.</p>
<button onclick="fetch('/.frontrow/end', {{method: 'POST'}}).then(() => location.reload())">Leave</button>"""


async def shop(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] != "http":
        return
    visit = scope["frontrow.visit"]
    body = PAGE.format(person=html.escape(visit.person)).encode() if visit.person else b"ok"
    headers = [(b"content-type", b"text/html; charset=utf-8"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


SETUP = Setup(f"{ROOM}/v1/events/aurora/room", "aurora", SHOP, ["/health"], os.environ.get("RULES_KEY", ""))

app = AsgiConnector(shop, Connector(SETUP))
