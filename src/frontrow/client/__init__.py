"""A typed client of a Frontrow server, blocking and asynchronous: `Client`, `AsyncClient`.

Every operation is a value (`calls.pay(...)`) that either client sends; the way of a buyer has methods of its own. Needs
httpx and msgspec (extra `client`), nothing of the server.
"""

from frontrow.client.call_engine import Call, Policy
from frontrow.client.clients import AsyncClient, Client
from frontrow.client.errors import (
    Gone,
    InvalidRequest,
    NotAllowed,
    NotFound,
    NotSignedIn,
    NotYourTurn,
    Overloaded,
    PaymentDeclined,
    Problem,
    RateLimited,
    Refused,
    SeatsTaken,
    ServerError,
    Unreachable,
)

__all__ = [
    "AsyncClient",
    "Call",
    "Client",
    "Gone",
    "InvalidRequest",
    "NotAllowed",
    "NotFound",
    "NotSignedIn",
    "NotYourTurn",
    "Overloaded",
    "PaymentDeclined",
    "Policy",
    "Problem",
    "RateLimited",
    "Refused",
    "SeatsTaken",
    "ServerError",
    "Unreachable",
]
