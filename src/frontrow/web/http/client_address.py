"""The address that a request's limits are counted under."""

from frontrow.waitingroom.entrance.entrance_limits import EntranceLimits
from frontrow.web.http.messages import EndpointRequest


def ip_of(limiter: EntranceLimits, request: EndpointRequest) -> str:
    """The key of the caller's address. `X-Forwarded-For` is read only from trusted proxies."""
    if limiter.trusts_nobody:
        return limiter.ip_of(request.peer)
    return limiter.ip_of(request.peer, [value.decode("latin-1") for value in request.all(b"x-forwarded-for")])
