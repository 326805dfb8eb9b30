"""The status of a place through the fast path: the most frequent request, in as few steps as possible.

Does the same as the endpoint `status`, in the same order and with the same limits. A request that is not plain (a proxy
in front, a cookie instead of a bearer token, a refusal) is handed to that endpoint before anything was counted.
"""

from frontrow.core.errors import FrontrowError
from frontrow.web.endpoints.room.room_endpoints import RoomEndpoints
from frontrow.web.endpoints.room.visitors import TAG_CHARS
from frontrow.web.fastpath.pending_replies import Handler
from frontrow.web.http.messages import JSON_HEAD, EndpointRequest, EndpointResponse, Result


def hot_status(endpoints: RoomEndpoints, event: str) -> Handler:
    """The handler of GET status for one event."""
    entry, counts, status_json = endpoints.entry, endpoints.counts, endpoints.room.statuses.json_of
    addresses, count_ip, count_person = entry.addresses, entry.count_ip, entry.count_person

    def handle(request: EndpointRequest) -> Result:
        ip = addresses.get(request.peer)
        if ip is None or not entry.trusts_nobody:
            return endpoints.visitors.status(event, request)
        given = b""
        for name, value in request.headers:
            if len(name) == 13 and name.lower() == b"authorization":
                given = value
                break
        if given[:7] != b"Bearer ":
            return endpoints.visitors.status(event, request)
        try:
            count_ip(ip)
            place = given[7:].decode("latin-1")
            body = status_json(place, event)
            count_person(place[-TAG_CHARS:])
        except FrontrowError as error:
            return endpoints.context.problem("status", error, request, event)
        counts["status"] += 1
        return EndpointResponse(200, JSON_HEAD, body)

    handle.__name__ = "status"  # the name under which its traffic is counted
    return handle
