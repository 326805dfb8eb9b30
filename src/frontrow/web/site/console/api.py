"""What programs read of a console's room with a key: its rules, for connectors, and its figures."""

from typing import Any, Final

from litestar import Request, get
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath
from litestar.types import ASGIApp

from frontrow.core.errors import FrontrowError
from frontrow.waitingroom.console.model.figures import as_csv
from frontrow.waitingroom.console.model.owners import Scope
from frontrow.waitingroom.console.model.protection import rules_document
from frontrow.web.endpoints.room.organiser import OrganiserEndpoints
from frontrow.web.http.asgi import AnswerApp, read_request
from frontrow.web.http.messages import NO_STORE, EndpointResponse, json_answer, problem_answer
from frontrow.web.site.console.console import console_of
from frontrow.web.site.console.figures import MOST_FIGURES

Asked = Request[Any, Any, Any]
DAY_US: Final = 86_400_000_000


def _organiser(request: Asked) -> OrganiserEndpoints:
    found: OrganiserEndpoints = request.app.state.organiser
    return found


@get("/v1/events/{event:str}/room/rules", operation_id="room_rules", summary="What connectors protect (rules:read)")
async def read_rules(request: Asked, event: FromPath[str]) -> ASGIApp:
    """The rules of the room as a document with its kind and version."""
    try:
        _organiser(request).check_organiser(await read_request(request), event, Scope.RULES_READ)
        rooms = console_of(request).rooms
        document = rules_document(event, rooms.plan(event).rules, rooms.revisions.get(event, 0))
        return AnswerApp(json_answer(200, document))
    except FrontrowError as error:
        return AnswerApp(problem_answer(error))


@get("/v1/events/{event:str}/room/figures.csv", operation_id="room_figures", summary="Figures as CSV (figures:read)")
async def read_figures(request: Asked, event: FromPath[str], days: int = 1) -> ASGIApp:
    """The figures of the last 1 to 30 days."""
    try:
        _organiser(request).check_organiser(await read_request(request), event, Scope.FIGURES_READ)
        console = console_of(request)
        console.rooms.plan(event)
        after_us = console.room.clock() - max(1, min(30, days)) * DAY_US
        figures = await console.book.figures(event, after_us, MOST_FIGURES)
    except FrontrowError as error:
        return AnswerApp(problem_answer(error))
    head = b"content-type: text/csv; charset=utf-8\r\n" + NO_STORE
    return AnswerApp(EndpointResponse(200, head, as_csv(figures).encode()))


CONSOLE_ROUTES: list[HTTPRouteHandler] = [read_rules, read_figures]
