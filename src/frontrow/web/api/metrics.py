"""`/metrics`: the numbers of this server (B19), for Prometheus."""

from litestar import Response, get
from litestar.handlers import HTTPRouteHandler

from frontrow.core.errors import NotFound
from frontrow.web.http.access import Access
from frontrow.web.platform.injected import FromPlatform
from frontrow.web.platform.metrics import CONTENT_TYPE, metrics_page


@get(
    "/metrics",
    operation_id="metrics",
    summary="Prometheus metrics of this server",
    opt={"access": Access.PUBLIC, "answers": {200: "text/plain"}},
)
async def metrics(platform: FromPlatform) -> Response[bytes]:
    if platform.settings.server.metrics:
        raise NotFound("the metrics of this server are on a port of their own (server.metrics)")
    return Response(metrics_page(platform), media_type=CONTENT_TYPE, headers={"cache-control": "no-store"})


ROUTES: list[HTTPRouteHandler] = [metrics]
