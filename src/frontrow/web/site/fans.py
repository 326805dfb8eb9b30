"""What fans see before the sale: the events, found and filtered, and one event with its countdown."""

from litestar.handlers import HTTPRouteHandler

ROUTES: list[HTTPRouteHandler] = []
