"""The platform as one Litestar app: collects the routes of `web/api`, guards them, runs what must go on beside them.

`platform_app(platform)` refuses to start when a route has no `opt["access"]` or no `operation_id`.
"""

import asyncio
import contextlib
import importlib
import pkgutil
import re
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import msgspec
from litestar import Litestar, Request
from litestar.datastructures import State
from litestar.di import Provide
from litestar.exceptions import HTTPException
from litestar.handlers import BaseRouteHandler, HTTPRouteHandler
from litestar.openapi import OpenAPIConfig

from frontrow.core.background_tasks import start_loop
from frontrow.core.errors import ConfigError, FrontrowError
from frontrow.settings.colours import theme_css
from frontrow.shared.jobs import JobRunner
from frontrow.shared.version import VERSION
from frontrow.web import site
from frontrow.web.api import all_routes
from frontrow.web.api.idempotency import IdempotencyMiddleware, UnheardWork, before_request
from frontrow.web.api.openapi_document import DESCRIPTION, complete
from frontrow.web.http.access import Access, Caller, Connection
from frontrow.web.http.overflow_page import Notices
from frontrow.web.http.problems import on_bug, on_problem, on_unreadable_body
from frontrow.web.http.request_bodies import MAX_REQUEST_BYTES
from frontrow.web.http.request_ids import RequestIds
from frontrow.web.platform.access_check import check_access
from frontrow.web.platform.measuring import measure
from frontrow.web.platform.platform import Platform
from frontrow.web.server.request_middleware import Front
from frontrow.web.site.error_pages import notices_for_people, on_any_http_error


def routes() -> list[HTTPRouteHandler]:
    """The API, in the order of its document."""
    return _checked(all_routes.ROUTES)


def pages() -> list[HTTPRouteHandler]:
    """The pages: the `ROUTES` of every module under `web/site`, in the order of their names."""
    found: list[HTTPRouteHandler] = []
    for module in sorted(pkgutil.walk_packages(site.__path__, f"{site.__name__}."), key=lambda one: one.name):
        found += getattr(importlib.import_module(module.name), "ROUTES", [])
    return _checked(found)


def _checked(found: list[HTTPRouteHandler]) -> list[HTTPRouteHandler]:
    for handler in found:
        paths = ", ".join(sorted(handler.paths))
        if not isinstance(handler.opt.get("access"), Access):
            raise ConfigError(f"route {paths} declares no access")
        if not handler.operation_id:
            raise ConfigError(f"route {paths} has no operation_id")
    return found


def platform_app(platform: Platform, *, own_loops: bool = True) -> Litestar:
    """The app. `own_loops`: start and stop the platform's loops and jobs with it."""

    async def caller(request: Request[Any, Any, Any]) -> Caller:
        checked: Caller = request.state.caller
        return checked

    handlers = routes()
    app = Litestar(
        [*handlers, *pages()],
        guards=[guard],
        middleware=[IdempotencyMiddleware],
        before_request=before_request,
        dependencies={
            "platform": Provide(_platform_of, sync_to_thread=False),
            "caller": Provide(caller),
        },
        lifespan=[_lifespan(platform)] if own_loops else [],
        exception_handlers={
            HTTPException: on_any_http_error,
            FrontrowError: on_problem,
            RecursionError: on_unreadable_body,
            UnicodeDecodeError: on_unreadable_body,
            Exception: on_bug,
        },
        openapi_config=OpenAPIConfig("Frontrow", VERSION, description=DESCRIPTION, render_plugins=[], path="/schema"),
        state=State({"platform": platform, "unheard_work": UnheardWork()}),
        request_max_body_size=MAX_REQUEST_BYTES,
        logging_config=None,
    )
    app.state.make_document = partial(_document, app, handlers)
    return app


_documents: dict[tuple[int, ...], bytes] = {}
_making_document = threading.Lock()


def _document(app: Litestar, handlers: list[HTTPRouteHandler]) -> bytes:
    """The API's document, made when somebody first asks and once for the same routes: it takes as long as the rest of
    the app, so endpoints call this in a thread."""
    key = tuple(map(id, handlers))  # they are made once, when their modules are read
    with _making_document:
        if key not in _documents:
            _documents[key] = msgspec.json.encode(complete(app, handlers))
        return _documents[key]


def _platform_of(request: Request[Any, Any, Any]) -> Platform:
    found: Platform = request.app.state.platform
    return found


def front_of(app: Litestar, platform: Platform, ids: RequestIds | None = None) -> Front:
    """The app behind the request ids, the limit per address and the entity tags: what a server runs."""
    room = platform.settings.room
    people = notices_for_people(Notices(room.brand, theme_css(room.colours)))
    ids = ids or RequestIds(platform.server.limiter)
    on_change = platform.server.changes.note if platform.server.changes is not None else None
    count = platform.endpoints.room.context.limits.count
    return Front(app, platform.server.limiter, count, ids, counting_themselves(), methods(), people, on_change)


def counting_themselves() -> "re.Pattern[str]":
    """The paths of the routes that count addresses themselves, because the fast path answers them too; and static
    files, which a page asks for a dozen at a time and which cost next to nothing."""
    paths = {path for handler in routes() if handler.opt.get("own_checks") for path in handler.paths}
    return re.compile("|".join([*sorted(map(_pattern, paths)), "/static/.+", "/favicon[.]ico"]))


def methods() -> Callable[[str], str]:
    """The methods of a path as `Allow` lists them; empty when there is no such path."""
    found: dict[str, set[str]] = {}
    for handler in routes():
        for path in handler.paths:
            verbs = found.setdefault(path, {"OPTIONS"})
            verbs.update(str(method) for method in handler.http_methods)
            verbs.update({"HEAD"} if "GET" in verbs else ())  # `server.head_requests`
    table = [(re.compile(_pattern(path)), ", ".join(sorted(verbs))) for path, verbs in sorted(found.items())]

    def allowed(path: str) -> str:
        return next((listed for pattern, listed in table if pattern.fullmatch(path.rstrip("/") or "/")), "")

    return allowed


def _pattern(path: str) -> str:
    """A route's path as a regular expression."""
    return re.sub(r"\\{[^}]*\\}", "[^/]+", re.escape(path))


async def guard(connection: Connection, handler: BaseRouteHandler) -> None:
    """`check_access`, except for endpoints that check by themselves, as on the fast path, and pages (`site.routes`).
    Then the rules of `[limits]`, which know who asks by now."""
    own = handler.opt.get("own_checks") or handler.opt.get("page")
    if "access" in handler.opt and not own:  # only the framework's own OPTIONS has none
        await check_access(connection, handler)
    rules = connection.app.state.platform.server.rules
    if rules is not None and not handler.opt.get("page"):
        await rules.check(connection)


def _lifespan(platform: Platform) -> Any:
    @contextlib.asynccontextmanager
    async def running(app: Litestar) -> AsyncIterator[None]:
        async with run_platform(platform):
            try:
                yield
            finally:
                await app.state.unheard_work.finish(platform.settings.server.drain_s)

    return running


@contextlib.asynccontextmanager
async def run_platform(platform: Platform, *, rooms: bool = True) -> AsyncIterator[None]:
    """Open the sales and run the jobs until the end; without `rooms`, no waiting room is started."""
    async with open_sales(platform, rooms=rooms):
        workers = JobRunner(platform.jobs)
        working = asyncio.create_task(workers.run(), name="jobs")  # awaited below
        try:
            yield
        finally:
            workers.stop()
            await working


@contextlib.asynccontextmanager
async def open_sales(platform: Platform, *, rooms: bool = True) -> AsyncIterator[None]:
    """Open what is on sale, keep its claims true and measure; without the jobs, which the caller runs."""
    if rooms:
        await platform.room.service.loops.start()
    await platform.box_office.openings.refresh()
    await platform.box_office.recovery.start()
    measuring = start_loop(partial(measure, platform), "telemetry")
    try:
        yield
    finally:
        measuring.cancel()
        await platform.box_office.recovery.stop()
