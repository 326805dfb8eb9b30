"""The client's exceptions, made from the server's problem+json: chosen by its stable code, then by status."""

from typing import Any


class Problem(Exception):
    """A response that is not a success. `code` is the server's (docs/errors.md), `about` the rest of the body."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        retry_after_s: float | None = None,
        request_id: str = "",
        **about: Any,
    ) -> None:
        super().__init__(f"{code}: {detail}" if detail else code)
        self.status, self.code, self.detail = status, code, detail
        self.retry_after_s, self.request_id, self.about = retry_after_s, request_id, about


class InvalidRequest(Problem):
    """400, 413, 415, 422: the request is invalid. `about["param"]` often names the field."""


class NotSignedIn(Problem):
    """401: no valid pass, session, key or booking token."""


class NotAllowed(Problem):
    """403."""


class NotFound(Problem):
    """404. Also for things that belong to somebody else."""


class Refused(Problem):
    """409: the request is valid but cannot be granted. Repeating it changes nothing."""


class SeatsTaken(Refused):
    """Somebody else has these seats. `about["seats"]` lists them."""


class PaymentDeclined(Refused):
    """402: the bank declined the card. While `about["tries_left"]` is above 0 the seats are held for another card; at
    0 they are free again."""


class Gone(Refused):
    """410: the hold, offer, link or place has ended."""


class NotYourTurn(Refused):
    """425: the place is not active yet."""


class RateLimited(Problem):
    """429."""


class ServerError(Problem):
    """5xx: the server's fault."""


class Overloaded(ServerError):
    """502, 503, 504: try again after `retry_after_s`."""


class Unreachable(Problem):
    """No response. Whether the request was carried out is unknown. Sending it again with the same key is safe."""

    def __init__(self, why: str) -> None:
        super().__init__(0, "unreachable", why)


BY_CODE: dict[str, type[Problem]] = {
    "seats_taken": SeatsTaken,
    "payment_declined": PaymentDeclined,
    "not_your_turn": NotYourTurn,
    "rate_limited": RateLimited,
    "overloaded": Overloaded,
}
BY_STATUS: dict[int, type[Problem]] = {
    400: InvalidRequest,
    401: NotSignedIn,
    402: PaymentDeclined,
    403: NotAllowed,
    404: NotFound,
    405: InvalidRequest,
    409: Refused,
    410: Gone,
    413: InvalidRequest,
    415: InvalidRequest,
    422: InvalidRequest,
    425: NotYourTurn,
    429: RateLimited,
    502: Overloaded,
    503: Overloaded,
    504: Overloaded,
}


def problem_of(status: int, body: dict[str, Any], retry_after_s: float | None, request_id: str) -> Problem:
    """The exception for a response."""
    about = dict(body)
    code, detail = str(about.pop("code", f"http_{status}")), str(about.pop("detail", ""))
    for name in ("type", "title", "status", "retry_after_s", "request_id"):
        about.pop(name, None)
    kind = BY_CODE.get(code) or BY_STATUS.get(status) or (ServerError if status >= 500 else Problem)
    problem = kind.__new__(kind)
    Problem.__init__(problem, status, code, detail, retry_after_s=retry_after_s, request_id=request_id, **about)
    return problem
