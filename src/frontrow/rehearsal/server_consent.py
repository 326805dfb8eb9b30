"""Asks a server whether it may be stormed. Without its consent no load is sent.

The token says which event is meant, so that nobody storms the wrong one. The name of the server is looked up once, and
every request of the storm goes to the address that consented.
"""

import asyncio
import dataclasses
import re
import socket
from typing import Any

from frontrow.core.errors import InvalidInput
from frontrow.rehearsal.http_client import LOST, FanConnection, Target
from frontrow.rehearsal.seat_counts import count_seats

TOKEN = re.compile(r"frt_([A-Za-z0-9_-]{1,64})\.\d{1,12}\.[A-Za-z0-9_-]{10,64}")
SECONDS = {"second": 1, "minute": 60, "hour": 3_600}
FAN_ADDRESS = "198.18.0.1"  # of the range for benchmarks (RFC 2544)


class StormNotAllowed(Exception):
    """The server does not consent, or cannot be asked; the message says why."""


@dataclasses.dataclass(frozen=True, slots=True)
class ServerConsent:
    """What a server that consented has said."""

    target: Target
    event_id: str
    until: str
    simulated_payments: bool
    human_check: str
    counts_each_fan: bool  # whether X-Forwarded-For of this machine counts, so that each fan has its own limits
    per_address: str
    seats: int
    free: int
    sold: int = -1  # on the map, before the storm; -1: the map did not say

    def lets_a_crowd_in(self, requests_per_s: float) -> bool:
        """Whether so many requests of this machine are within its limits: each fan's, or the machine's as a whole."""
        found = re.match(r"(\d+)(?:/| per )(second|minute|hour)", self.per_address)
        if self.counts_each_fan:
            return True
        return found is not None and int(found[1]) / SECONDS[found[2]] >= requests_per_s


async def ask_consent(url: str, token: str) -> ServerConsent:
    """The consent of the server at `url`; raises `StormNotAllowed`, with the reason, if it has none to give."""
    found = TOKEN.fullmatch(token)
    if found is None:
        raise InvalidInput(
            "the token must be one of `frontrow storm-token`, like frt_evt_….1800000000.…; without the consent of the "
            "server there is no storm",
            param="token",
        )
    target = await look_up(Target.from_url(url))
    connection = FanConnection(target, FAN_ADDRESS)
    try:
        reply = await connection.send("POST", "/v1/storm", {"token": token})
        answer = _read_answer(url, reply.status, reply.body, reply.json)
        if answer.get("event") != found[1]:
            raise StormNotAllowed(f"{url} answered, but not as a Frontrow server does; there is no storm")
        shown = (await connection.send("GET", f"/v1/events/{found[1]}")).json()
        seats = count_seats((await connection.send("GET", f"/v1/events/{found[1]}/seats.bin")).body)
    except (OSError, TimeoutError, *LOST) as error:
        raise StormNotAllowed(f"{url} does not answer ({type(error).__name__}: {error})") from None
    finally:
        await connection.aclose()
    return ServerConsent(
        target,
        found[1],
        str(answer["until"]),
        answer["payments"] == "simulated",
        str(answer["human_check"]),
        answer["address"] == FAN_ADDRESS,
        str(answer["per_address"]),
        int(shown.get("seats", 0)),
        int(shown.get("free", 0)),
        seats.sold if seats is not None else -1,
    )


async def look_up(target: Target) -> Target:
    """The target with the address that its name has now."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise StormNotAllowed(f"{target.host} has no address ({error})") from None
    return dataclasses.replace(target, connect_to=str(found[0][4][0]))


def _read_answer(url: str, status: int, body: bytes, read: Any) -> dict[str, Any]:
    try:
        answer = read()
    except ValueError:
        answer = None
    if status == 200 and isinstance(answer, dict):
        return answer
    if isinstance(answer, dict) and status in (403, 404) and "code" in answer:
        raise StormNotAllowed(f"{url} does not consent: {answer.get('detail', answer['code'])}")
    raise StormNotAllowed(f"{url} answered {status}, not as a Frontrow server does; there is no storm")
