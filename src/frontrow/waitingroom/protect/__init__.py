"""Protects any shop: ASGI and WSGI middleware that ask for a pass, and the keys to check it."""

from frontrow.waitingroom.protect.guard import Guard
from frontrow.waitingroom.protect.pass_keys import PassKeys

__all__ = ["Guard", "PassKeys"]
