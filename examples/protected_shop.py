"""Somebody else's shop behind the waiting room: run it with `uvicorn examples.protected_shop:app --port 8000`.

The room runs beside it: `frontrow room serve --event aurora --shop http://127.0.0.1:8000/`. Open the shop's address:
every page but /static/ asks for a pass, and whoever has none waits in the room and comes back to the page they wanted.
"""

import html
import os
from typing import Any

from frontrow.waitingroom.protect import Guard, PassKeys
from frontrow.waitingroom.protect.asgi import PassMiddleware

PAGE = """<!doctype html><html lang="en"><title>The shop</title><link rel="stylesheet" href="/static/shop.css">
<h1>Welcome! Choose your seats.</h1><p>Your pass: {person}</p>"""
ROOM = os.environ.get("ROOM_URL", "http://127.0.0.1:8008")


async def shop(scope: Any, receive: Any, send: Any) -> None:
    """The shop itself: greets whoever has a pass."""
    if scope["type"] != "http":
        return
    visit = scope.get("frontrow.pass")  # whose pass it is, and until when; none for open paths
    kind, body = b"text/css", b"h1 { font-family: sans-serif }"
    if visit:
        kind, body = b"text/html; charset=utf-8", PAGE.format(person=html.escape(visit.person)).encode()
    headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


guard = Guard(PassKeys(f"{ROOM}/.well-known/jwks.json", "aurora"), room_url=f"{ROOM}/", open_paths=["/static/"])
app = PassMiddleware(shop, guard)
