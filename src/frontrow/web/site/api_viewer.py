"""The page of the API's document, for developers: groups, schemas, authentication, and requests that can be tried.

Swagger UI shows it (`static/vendor/swagger-ui`). It is in English, as the document is.
"""

from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler

from frontrow.web.platform.access_check import check_shown
from frontrow.web.site.render import render
from frontrow.web.site.routes import page
from frontrow.web.site.security_headers import PagePolicy

# Foreign code that writes markup, so Trusted Types are off. It needs nothing else: no inline script or style, no eval.
VIEWER: Final = PagePolicy(trusted_types=False)


@page("/docs", "docs")
async def docs(request: Request[Any, Any, Any]) -> Response[bytes]:
    check_shown(request)
    return render(request, "docs.html", policy=VIEWER, cache="public, max-age=60")


ROUTES: list[HTTPRouteHandler] = [docs]
