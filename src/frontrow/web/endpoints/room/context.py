"""What all endpoints of the room share: the room, the checks at its entry, its pages, and how a refusal is counted."""

from collections import defaultdict

from frontrow.core.errors import FrontrowError
from frontrow.waitingroom.entrance.entrance_limits import EntranceLimits
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.web.endpoints.room.page import RoomPages
from frontrow.web.endpoints.room.visit_limits import VisitLimits, ip_of
from frontrow.web.http.messages import (
    EndpointRequest,
    EndpointResponse,
    problem_answer,
)


class RoomContext:
    """Given to each group of endpoints. `counts` has requests by endpoint and refusals by `endpoint:code`."""

    def __init__(self, room: WaitingRoom, entry: EntranceLimits, pages: RoomPages) -> None:
        self.room = room
        self.entry = entry
        self.pages = pages
        self.limits = VisitLimits(room, entry, secure=pages.secure)
        self.counts: defaultdict[str, int] = defaultdict(int)

    def client_ip(self, request: EndpointRequest) -> str:
        """The key of the caller's address."""
        return ip_of(self.entry, request)

    def count(self, endpoint: str) -> None:
        self.counts[endpoint] += 1

    def problem(self, endpoint: str, error: FrontrowError, request: EndpointRequest, event: str) -> EndpointResponse:
        """A refusal as problem+json; for a browser's form as the page with the error in words."""
        self.count(f"{endpoint}:{error.code}")
        page = self.pages.instead_of_problem(event, error, request) if endpoint in ("join", "claim", "page") else None
        return page or problem_answer(error)
