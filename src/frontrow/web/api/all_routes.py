"""Every route of the API, in the order of its document. A new module is added to the `ROUTES` of its package."""

from litestar.handlers import HTTPRouteHandler

from frontrow.web.api import (
    channel_reports,
    fans,
    gate,
    health,
    metrics,
    openapi_document,
    organiser,
    provider_webhooks,
    storm,
)

ROUTES: list[HTTPRouteHandler] = [
    *gate.ROUTES,
    *fans.ROUTES,
    *health.ROUTES,
    *metrics.ROUTES,
    *openapi_document.ROUTES,
    *organiser.ROUTES,
    *provider_webhooks.ROUTES,
    *channel_reports.ROUTES,
    *storm.ROUTES,
]
