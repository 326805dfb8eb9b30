"""The pages that people and monitors read: health, and the most refused keys as a page and as JSON."""

import base64
import re
from hashlib import sha256
from importlib.resources import files
from typing import Any

import msgspec

from frontrow.core.errors import Unavailable
from frontrow.limits.stores.most_refused_keys import KEPT_S
from frontrow.limits_service.http_connection import JSON, Handler, Request, Response
from frontrow.limits_service.http_routes import query_number
from frontrow.limits_service.limit_service import LimitService
from frontrow.limits_service.refused_keys import MAX_TOP, SHOWN_TOP, SHOWN_WINDOW_S, hash_shown_key

_PAGE = files("frontrow.limits_service").joinpath("refused.html").read_text("utf-8")


def _digests(kind: str) -> str:
    """The hashes by which a browser knows what of the page may run."""
    found = re.findall(rf"<{kind}>(.*?)</{kind}>", _PAGE, re.DOTALL)
    return " ".join(f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'" for text in found)


_POLICY = (
    f"default-src 'none'; script-src {_digests('script')}; style-src {_digests('style')}; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_PAGE_FIELDS = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)


class RefusedKeysDown(Unavailable):
    code = "refused_keys_down"


class Pages:
    """Answers /healthz, /readyz, /refused and /refused.json."""

    def __init__(self, service: LimitService, secret: bytes) -> None:
        """`secret` keys the hashes of keys that are not shown. All workers have the same."""
        self._service = service
        self._secret = secret

    def routes(self) -> dict[str, Handler]:
        return {
            "/healthz": self.healthz,
            "/readyz": self.readyz,
            "/refused": self.refused_page,
            "/refused.json": self.refused_keys,
        }

    def healthz(self, _request: Request) -> Response:
        """200 while the process answers at all."""
        return Response(200, b'{"status":"ok"}')

    def readyz(self, _request: Request) -> Response:
        """503 while stopping. A store that is down does not make it unready: each rule's policy decides then."""
        store = "down" if self._service.store_error else "up"
        if self._service.draining:
            return Response(503, msgspec.json.encode({"status": "stopping", "store": store}))
        return Response(200, msgspec.json.encode({"status": "ready", "store": store}))

    def refused_page(self, _request: Request) -> Response:
        return Response(200, _PAGE.encode(), _PAGE_FIELDS)

    async def refused_keys(self, request: Request) -> Response:
        """The most refused keys of the last `window_s` seconds, at most `top` of them."""
        window_s = query_number(request, "window_s", SHOWN_WINDOW_S, KEPT_S)
        top = query_number(request, "top", SHOWN_TOP, MAX_TOP)
        rows = await self._top(window_s, top)
        body = {"window_s": window_s, "keys": rows, "store": "down" if self._service.store_error else "up"}
        return Response(200, msgspec.json.encode(body), (JSON, (b"cache-control", b"no-store")))

    async def _top(self, window_s: int, top: int) -> list[dict[str, Any]]:
        try:
            found = await self._service.refusals.top(window_s, top)
        except Exception as error:  # redis-py's errors; the client need not be installed
            message = f"the refused keys cannot be read now ({type(error).__name__}); try again"
            raise RefusedKeysDown(message, retry_after_s=1.0) from None
        hashed = self._service.settings.shown_keys == "hashed"
        return [
            {
                "rule": row.rule,
                "key": hash_shown_key(row.key, self._secret) if hashed else row.key,
                "refusals": row.refusals,
            }
            for row in found
        ]
