"""How the endpoints of both doors become routes of the framework's door: one
`EndpointRequest` in, one `EndpointResponse` out.

Such a route checks and counts by itself (`opt["own_checks"]`), exactly as it does in the hot lane. What it takes and
answers is declared for the API's document by `opt["body"]` and `opt["answers"]`.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from frontrow.web.api.access import Access

ANY = (400, 401, 403, 405, 422, 429, 500, 503)  # the refusals any route with a caller can give


def own_checks(
    access: Access,
    *,
    body: type[msgspec.Struct] | None = None,
    answers: Mapping[int, Any] | None = None,
    problems: tuple[int, ...] = (),
    **more: Any,
) -> dict[str, Any]:
    """The `opt` of a route whose endpoint checks pass and limits itself.

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
