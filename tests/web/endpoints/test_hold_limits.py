"""A request for seats is counted by its address and by its person before anything else is done for it (B17, L4)."""

from typing import Any

from frontrow.boxoffice.holds.model.holds import ShopPass
from frontrow.core.errors import Overloaded
from frontrow.web.endpoints.holds import HoldEndpoints
from frontrow.web.http.messages import EndpointRequest, EndpointResponse


class Counted:
    """Limits that only write down who was counted. Whoever is in `refused` asks too often."""

    trusts_nobody = True

    def __init__(self, *refused: str) -> None:
        self.who: list[str] = []
        self._refused = refused

    def ip_of(self, peer: str, forwarded: Any = ()) -> str:
        return peer

    def count_ip(self, address: str) -> None:
        self._count(address)

    def count_person(self, person: str) -> None:
        self._count(person)

    def _count(self, who: str) -> None:
        self.who.append(who)
        if who in self._refused:
            raise Overloaded("too often", retry_after_s=1.0)


class AnyPass:
    """Counts the request, then accepts whatever came with it."""

    def __init__(self, limits: Counted) -> None:
        self._limits = limits

    def count_and_read(self, event_id: str, request: EndpointRequest) -> ShopPass:
        self._limits.count_ip(self._limits.ip_of(request.peer))
        return ShopPass(event_id, "ada", 10**18)


def ask(limits: Counted) -> EndpointResponse:
    """A request whose body is nothing: whoever reads it refuses it."""
    endpoints = HoldEndpoints(None, None, limits, AnyPass(limits), str)  # type: ignore[arg-type]
    answer = endpoints.hold("evt_1", EndpointRequest([], b"{}", "192.0.2.1"))
    assert isinstance(answer, EndpointResponse)
    return answer


def test_a_hold_is_counted_by_address_then_by_person() -> None:
    limits = Counted()
    assert ask(limits).status == 422
    assert limits.who == ["192.0.2.1", "ada"]


def test_who_asks_too_often_is_refused_before_the_body_is_read() -> None:
    for refused, counted in (("192.0.2.1", ["192.0.2.1"]), ("ada", ["192.0.2.1", "ada"])):
        limits = Counted(refused)
        assert ask(limits).status == 503
        assert limits.who == counted
