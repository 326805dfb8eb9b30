"""Protects any shop: ASGI and WSGI middleware that require a pass, and the keys that verify it."""

from frontrow.waitingroom.protect.guard import Guard
from frontrow.waitingroom.protect.pass_keys import PassKeys

__all__ = ["Guard", "PassKeys"]
