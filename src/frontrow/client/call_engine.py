"""How a call is made, as a generator that both clients drive: idempotency keys, credentials, retries and pauses.

Only safe calls are sent again: reads, and POSTs, which all carry an Idempotency-Key that stays the same. A call that
was refused because of load (429, 503) is sent again after its `Retry-After`. Attempts and pauses are bounded.
"""

import random
import uuid
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from frontrow.client.errors import Overloaded, Problem, RateLimited, Unreachable, problem_of

T = TypeVar("T")
MAX_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Policy:
    """How often and how long a call is tried."""

    tries: int = 4
    most_pause_s: float = 10.0
    first_pause_s: float = 0.1
    timeout_s: float = 35.0


class Call(msgspec.Struct, Generic[T], frozen=True):
    """One operation of the API. `answer` is the type of the response body; `bytes` for documents."""

    method: str
    path: str
    answer: Any
    body: Any = None
    query: Mapping[str, Any] = {}
    headers: Mapping[str, str] = {}
    event: str = ""  # the pass for it is sent with the call
    booking: str = ""  # its token is sent with the call
    key: str = ""  # the caller's own Idempotency-Key


@dataclass(slots=True)
class Keyring:
    """The client's credentials: a session or API key, passes by event, tokens by booking."""

    token: str = field(default="", repr=False)
    passes: dict[str, str] = field(default_factory=dict, repr=False)
    bookings: dict[str, str] = field(default_factory=dict, repr=False)
    events: dict[str, str] = field(default_factory=dict, repr=False)  # booking -> event

    def remember(self, booking: str, event: str, token: str) -> None:
        if len(self.bookings) >= MAX_REMEMBERED:
            self.bookings.pop(next(iter(self.bookings)))
        self.bookings[booking], self.events[booking] = token, event

    def credentials(self, call: Call[Any]) -> dict[str, str]:
        headers = {"authorization": f"Bearer {self.token}"} if self.token else {}
        event = call.event or self.events.get(call.booking, "")
        if event in self.passes:
            headers["frontrow-pass"] = self.passes[event]
        if call.booking in self.bookings:
            headers["frontrow-booking"] = self.bookings[call.booking]
        return headers


class SendRequest(msgspec.Struct):
    """A step: send this request and return the response, or the transport's error."""

    method: str
    path: str
    headers: dict[str, str]
    content: bytes | None
    query: Mapping[str, Any]


class Pause(msgspec.Struct):
    """A step: wait."""

    seconds: float


Steps = Generator[SendRequest | Pause, Any, T]


def path(template: str, *parts: str) -> str:
    """`template` with its `{}` filled by escaped parts."""
    return template.format(*(quote(part, safe="") for part in parts))


def run_call(call: Call[T], keyring: Keyring, policy: Policy, jitter: Callable[[], float] = random.random) -> Steps[T]:
    """Make a call. The generator returns its decoded response or raises a `Problem`."""
    headers = keyring.credentials(call) | dict(call.headers)
    if call.method == "POST":
        headers["idempotency-key"] = call.key or uuid.uuid4().hex
    content = None
    if call.body is not None:
        content = msgspec.json.encode(call.body)
        headers["content-type"] = "application/json"
    request = SendRequest(call.method, call.path, headers, content, call.query)
    pause_s = policy.first_pause_s
    for number in range(policy.tries):
        response: Any = yield request
        problem: Problem
        if isinstance(response, Exception):
            problem = Unreachable(str(response) or type(response).__name__)
            problem.__cause__ = response
        elif response.is_success:
            return _decode(call, response)
        else:
            problem = _read_problem(response)
        if number == policy.tries - 1 or not _may_retry(call, problem):
            raise problem
        wait_s = problem.retry_after_s if problem.retry_after_s is not None else pause_s * (0.5 + jitter())
        if wait_s > policy.most_pause_s:
            raise problem
        yield Pause(wait_s)
        pause_s = min(2 * pause_s, policy.most_pause_s)
    raise AssertionError("a policy has at least one try")


def _may_retry(call: Call[Any], problem: Problem) -> bool:
    """Whether the same call may be sent again."""
    if isinstance(problem, RateLimited):
        return True
    safe = call.method in ("GET", "HEAD", "POST")
    if isinstance(problem, Unreachable | Overloaded):
        return safe
    return safe and problem.code == "idempotency_running"


def _decode(call: Call[T], response: httpx.Response) -> T:
    if call.answer is None:
        return None  # type: ignore[return-value]
    if call.answer is bytes:
        return response.content  # type: ignore[return-value]
    return msgspec.json.decode(response.content, type=call.answer)  # type: ignore[no-any-return]


def _read_problem(response: httpx.Response) -> Problem:
    try:
        body: Any = msgspec.json.decode(response.content)
    except msgspec.DecodeError:
        body = {}
    retry_after = response.headers.get("retry-after", "")
    retry_after_s = float(retry_after) if retry_after.isdigit() else None
    about = body if isinstance(body, dict) else {}
    return problem_of(response.status_code, about, retry_after_s, response.headers.get("x-request-id", ""))
