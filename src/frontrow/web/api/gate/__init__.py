"""The API for gatekeepers: bundles, scans, lists."""

from litestar.handlers import HTTPRouteHandler

from frontrow.web.api.gate import booking_search, redemptions, revocations, scans

ROUTES: list[HTTPRouteHandler] = [
    *revocations.ROUTES,
    *booking_search.ROUTES,
    *redemptions.ROUTES,
    *scans.ROUTES,
]
