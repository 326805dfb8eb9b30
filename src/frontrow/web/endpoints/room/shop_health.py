"""What a shop reports about its own health, so that the room holds its latency: POST shop-health."""

from collections.abc import Sequence

from frontrow.core.errors import FrontrowError
from frontrow.waitingroom.credentials.report_keys import SIGNATURE_HEADER
from frontrow.web.endpoints.room.context import RoomContext
from frontrow.web.http.messages import EndpointRequest, EndpointResponse, Result, json_answer
from frontrow.web.http.request_bodies import check_size


class ShopHealthEndpoints:
    """Endpoints for the reporters of a shop; each report is signed with its reporter's key."""

    def __init__(self, context: RoomContext) -> None:
        self._context = context

    def report(self, event: str, request: EndpointRequest) -> Result:
        """POST shop-health: latency, requests and errors since the last report."""
        return self.report_to(event, (event,), request)

    def report_to(self, event: str, rooms: Sequence[str], request: EndpointRequest) -> Result:
        """The same for the rooms that share the queue of an event."""
        self._context.count("shop_health")
        try:
            self._context.entry.count_ip(self._context.client_ip(request))
            check_size(request)
        except FrontrowError as error:
            return self._context.problem("shop_health", error, request, event)
        return self._take(event, rooms, request)

    async def _take(self, event: str, rooms: Sequence[str], request: EndpointRequest) -> EndpointResponse:
        reports = self._context.room.shop_reports
        signature = (request.header(SIGNATURE_HEADER.encode()) or b"").decode("latin-1")
        try:
            report = reports.read(event, request.body, signature)
            taken = [await reports.take(name, report) for name in rooms]
        except FrontrowError as error:
            return self._context.problem("shop_health", error, request, event)
        return json_answer(200, {"taken": all(taken)})
