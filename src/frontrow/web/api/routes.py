"""How endpoints that both doors share become Litestar routes: one `EndpointRequest` in, one `EndpointResponse` out.

Such a route makes its own checks and counts (`opt["own_checks"]`), exactly as in the hot lane. `opt["body"]` and
`opt["answers"]` declare its bodies for the API's document.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from frontrow.web.api.access import Access

ANY = (400, 401, 403, 405, 422, 429, 500, 503)  # the errors of every route that has a caller


def own_checks(
    access: Access,
    *,
    body: type[msgspec.Struct] | None = None,
    answers: Mapping[int, Any] | None = None,
    problems: tuple[int, ...] = (),
    **more: Any,
) -> dict[str, Any]:
    """The `opt` of a route whose endpoint checks the pass and the limits itself.

    `answers` maps a status to a Struct, to a media type, or to None (no body); `problems` are the error statuses.
    """
    return {
        "access": access,
        "own_checks": True,
        "idempotency": "own",
        "body": body,
        "answers": dict(answers or {}),
        "problems": problems,
        **more,
    }
