"""What all endpoints of the room share: the room, the checks at its entry, its pages, and how a refusal is counted."""

from collections import defaultdict

from frontrow.core.errors import FrontrowError
from frontrow.waitingroom.console.access import ConsoleAccess
from frontrow.waitingroom.console.model.protection import ProtectionRules, ShopRequest, Verdict
from frontrow.waitingroom.console.rooms import ConsoleRooms
from frontrow.waitingroom.entrance.person_and_address_limits import EntranceLimits
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.web.endpoints.room.page import RoomPages
from frontrow.web.endpoints.room.visit_limits import VisitLimits, ip_of
from frontrow.web.http.messages import (
    EndpointRequest,
    EndpointResponse,
    problem_answer,
)

NO_RULES = ProtectionRules()
_ASKED = (b"x-original-uri", b"x-original-method", b"x-original-host", b"user-agent", b"frontrow-bypass")


class RoomContext:
    """Given to each group of endpoints. `counts` has requests by endpoint and refusals by `endpoint:code`."""

    def __init__(self, room: WaitingRoom, entry: EntranceLimits, pages: RoomPages) -> None:
        self.room = room
        self.entry = entry
        self.pages = pages
        self.limits = VisitLimits(room, entry, secure=pages.secure)
        self.counts: defaultdict[str, int] = defaultdict(int)
        self.console: tuple[ConsoleRooms, ConsoleAccess] | None = None  # of a room that is served alone

    def client_ip(self, request: EndpointRequest) -> str:
        """The key of the caller's address."""
        return ip_of(self.entry, request)

    def verdict(self, event: str, request: EndpointRequest) -> str:
        """Why this request to the shop needs no pass by the rules of the room; empty if it needs one."""
        if self.console is None:
            return ""
        rooms, _ = self.console
        plan = rooms.plans.get(event)
        if plan is None or plan.rules == NO_RULES:
            return ""
        asked = {name: (request.header(name) or b"").decode("latin-1") for name in _ASKED}
        uri, method, host, agent, key = (asked[name] for name in _ASKED)
        verdict = rooms.verdict(event, ShopRequest(method, host, uri, self.client_ip(request), agent, key))
        return "" if verdict is Verdict.PROTECTED else verdict.value

    def count(self, endpoint: str) -> None:
        self.counts[endpoint] += 1

    def problem(self, endpoint: str, error: FrontrowError, request: EndpointRequest, event: str) -> EndpointResponse:
        """A refusal as problem+json; for a browser's form as the page with the error in words."""
        self.count(f"{endpoint}:{error.code}")
        page = self.pages.instead_of_problem(event, error, request) if endpoint in ("join", "claim", "page") else None
        return page or problem_answer(error)
