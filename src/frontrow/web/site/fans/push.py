"""Web push for the pages: our public key, and the worker that shows what is pushed.

The worker is served under /push/, where no page lives, so it can control none. Pages that offer notifications need a
policy that lets their script name this one worker.
"""

import base64
from functools import lru_cache
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler

from frontrow.web.platform.platform import Platform
from frontrow.web.site.assets import site_assets
from frontrow.web.site.routes import page
from frontrow.web.site.security_headers import PagePolicy

WORKER: Final = "js/push-worker.js"
PUSHES: Final = PagePolicy(types="frontrow-push")


def push_key(platform: Platform) -> str:
    """What browsers subscribe with; empty when no VAPID key is configured, and nothing is offered then."""
    private = platform.settings.messages.vapid_key
    return public_of(private) if private else ""


@lru_cache(8)
def public_of(private_key: str) -> str:
    """The public point of a VAPID private key, as `applicationServerKey` wants it."""
    raw = base64.urlsafe_b64decode(private_key + "=" * (-len(private_key) % 4))
    key = ec.derive_private_key(int.from_bytes(raw, "big"), ec.SECP256R1()).public_key()
    return (
        base64.urlsafe_b64encode(key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)).decode().rstrip("=")
    )


@page("/push/worker.js", "push_worker")
async def push_worker(request: Request[Any, Any, Any]) -> Response[bytes]:
    """The worker; browsers look for a new one by themselves."""
    headers = {"cache-control": "no-cache", "x-content-type-options": "nosniff"}
    return Response(site_assets().files[WORKER].body, headers=headers, media_type="text/javascript")


ROUTES: list[HTTPRouteHandler] = [push_worker]
