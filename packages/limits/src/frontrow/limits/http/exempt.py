"""`@exempt`: an endpoint that the limits around it do not count: of a middleware, a router, a blueprint, a dependency.

    @app.get("/health")
    @exempt
    async def health(): ...

A limit that decorates the endpoint itself (`@limited`) stays in force. Flask and Litestar know the endpoint when their
limits are checked. A middleware for Starlette and FastAPI runs before the router, so it asks the router's routes which
of them will serve the path, once per method and path. Where it cannot tell, the request counts.
"""

from collections.abc import Iterator
from typing import Any, TypeVar

from frontrow.core.errors import ConfigError

T = TypeVar("T")
MAX_LAYERS, MAX_DEPTH = 64, 16
_MARK = "__frontrow_exempt__"
_BEHIND = ("fn", "func", "view_class")  # where handlers, partial functions and class views keep what they call
_INNER = ("app", "middleware_stack")  # where frameworks keep the next application
_KNOWN = ("starlette.routing", "fastapi.routing")  # whose routes decide by method and path alone
_marked: list[bool] = []  # whether there is an exempt endpoint at all


def exempt(endpoint: T) -> T:
    """Mark an endpoint (a function, a class, a handler or an application): the limits around it do not count it."""
    marked: Any = endpoint
    for _ in range(MAX_LAYERS):
        try:
            setattr(marked, _MARK, True)
            break
        except (AttributeError, TypeError):
            behind = next((found for name in _BEHIND if (found := getattr(marked, name, None)) is not None), None)
            if behind is None:
                message = f"exempt marks a function, a class or a handler; {marked!r:.80} cannot be marked"
                raise ConfigError(message, param="exempt") from None
            marked = behind
    _marked[:] = [True]
    return endpoint


def any_exempt() -> bool:
    """Whether any endpoint was marked."""
    return bool(_marked)


def is_exempt(endpoint: Any) -> bool:
    """Whether this endpoint was marked, or the function or class behind it."""
    if not _marked:
        return False
    for _ in range(MAX_LAYERS):
        if endpoint is None or getattr(endpoint, _MARK, False) is True:
            return endpoint is not None
        endpoint = next((found for name in _BEHIND if (found := getattr(endpoint, name, None)) is not None), None)
    return False


def serves_exempt(app: Any, scope: Any) -> bool:
    """Whether an exempt endpoint will serve this ASGI request, as far as can be told before the router runs."""
    if not _marked:
        return False
    if "route_handler" in scope:  # Litestar has routed already
        return is_exempt(scope["route_handler"])
    root_path = scope.get("root_path", "")
    found = _routes_inside(app)
    if found is None and scope.get("app_root_path", root_path) == root_path:
        found = _routes_inside(scope.get("app"))  # behind a middleware that does not show what is inside
    asked = {"type": scope["type"], "path": scope["path"], "root_path": root_path, "method": scope.get("method", "GET")}
    return found is not None and _serves_exempt(found, {**asked, "headers": [], "path_params": {}}, MAX_DEPTH)


def _routes_inside(app: Any) -> Any:
    """The routes of the router that stands inside these layers of middleware."""
    for _ in range(MAX_LAYERS):
        routes = getattr(app, "routes", None)
        if isinstance(routes, list | tuple):
            return routes
        app = next((inner for name in _INNER if (inner := getattr(app, name, None)) is not None), None)
        if app is None:
            return None
    return None


def _serves_exempt(routes: Any, scope: dict[str, Any], depth: int) -> bool:
    """Whether the first route that matches is exempt. A route that nobody knows may decide by anything: then no."""
    for route in _flat(routes, depth):
        kind = type(route)
        matches = getattr(kind, "matches", None)
        if getattr(matches, "__module__", "") not in _KNOWN or kind.__name__ == "Host":
            return False
        match, child = route.matches(scope)
        if match.name == "FULL":
            endpoint = child.get("endpoint")
            if is_exempt(endpoint):
                return True
            inside = _routes_inside(endpoint) if "root_path" in child else None  # an application at a mount point
            return depth > 0 and inside is not None and _serves_exempt(inside, {**scope, **child}, depth - 1)
    return False


def _flat(routes: Any, depth: int) -> Iterator[Any]:
    """The routes, with those of FastAPI's included routers in their place."""
    for route in routes:
        candidates = getattr(route, "effective_candidates", None)
        if candidates is None or depth == 0:
            yield route
        else:
            yield from _flat(candidates(), depth - 1)
