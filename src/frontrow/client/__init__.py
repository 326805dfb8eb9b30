"""A typed client for a Frontrow server, blocking and asynchronous: `Client`, `AsyncClient`.

Every operation is a value (`calls.pay(...)`) that either client sends; the steps of a purchase are also methods. Needs
httpx and msgspec (extra `client`), and no server code.
"""

try:
    import httpx as _httpx  # noqa: F401
    import msgspec as _msgspec  # noqa: F401
except ModuleNotFoundError as error:
    told = f"frontrow.client needs {error.name}, which is not installed: pip install 'frontrow[client]'"
    raise ModuleNotFoundError(told, name=error.name) from None

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
from frontrow.client.webhooks import check_signature

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
    "check_signature",
]
