"""Sequences of calls as steps that both clients drive: entering the waiting room, holding seats, claiming an offer."""

from typing import TypeVar

from frontrow.client import calls
from frontrow.client import responses as shapes
from frontrow.client.call_engine import Call, Keyring, Pause, Policy, Steps, run_call
from frontrow.client.errors import Gone, NotYourTurn

T = TypeVar("T")
MAX_POLLS = 100_000


class Journeys:
    """The steps of one client, which share its keyring and its policy."""

    def __init__(self, keyring: Keyring, policy: Policy) -> None:
        self._keyring, self._policy = keyring, policy

    def call(self, call: Call[T]) -> Steps[T]:
        """A single call."""
        return run_call(call, self._keyring, self._policy)

    def enter(
        self, event: str, proof: str | None, code: str | None, most_wait_s: float, most_pause_s: float
    ) -> Steps[shapes.Pass]:
        """Join, poll the status as often as the room says, claim. Keeps the pass. Raises `Gone` if the place ends."""
        place = yield from self.call(calls.join_room(event, proof=proof, code=code))
        status: shapes.PlaceStatus = place
        waited_s = 0.0
        for _ in range(MAX_POLLS):
            if status.state == "active":
                try:
                    claimed = yield from self.call(calls.claim_pass(event, place.place))
                except NotYourTurn:
                    status = shapes.PlaceStatus("waiting", status.phase, poll_after_s=1.0)
                else:
                    self._keyring.passes[event] = claimed.pass_
                    return claimed
            if status.state == "expired" or waited_s >= most_wait_s:
                break
            pause_s = min(status.poll_after_s, most_pause_s, most_wait_s)
            yield Pause(pause_s)
            waited_s += pause_s
            status = yield from self.call(calls.place_status(event, place.place))
        raise Gone(410, "place_expired", "the place ended before its turn", about=place.place)

    def hold(self, call: Call[shapes.Hold]) -> Steps[shapes.Hold]:
        """Hold seats. Keeps the booking's token."""
        hold = yield from self.call(call)
        self._keyring.remember(hold.booking, hold.event, hold.booking_token)
        return hold

    def claim_offer(self, offer: str, event: str) -> Steps[shapes.ClaimedOffer]:
        """Claim an offer of the waitlist. Keeps its pass and the booking's token."""
        claimed = yield from self.call(calls.claim_offer(offer, event))
        booking = claimed.booking
        self._keyring.passes[booking.event] = claimed.pass_.pass_
        self._keyring.remember(booking.booking, booking.event, claimed.booking_token)
        return claimed
