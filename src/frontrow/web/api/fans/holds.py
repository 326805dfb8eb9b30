"""Holds (B3, B4): place, extend, release. Every call needs a pass (B17)."""

from litestar.handlers import HTTPRouteHandler

from frontrow.web.api.shared_routes import shared_route
from frontrow.web.endpoints.routes import EXTEND_HOLD, PLACE_HOLD, RELEASE_HOLD

ROUTES: list[HTTPRouteHandler] = [shared_route(PLACE_HOLD), shared_route(EXTEND_HOLD), shared_route(RELEASE_HOLD)]
