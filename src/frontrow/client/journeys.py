"""Several calls in a row, as steps both clients drive: through the waiting room, and holding seats."""

from frontrow.client import calls
from frontrow.client import responses as shapes
from frontrow.client.call_engine import Call, Keyring, Pause, Policy, Steps, made
from frontrow.client.errors import Gone, NotYourTurn

MAX_LOOKS = 100_000


def entering(
    event: str,
    keyring: Keyring,
    policy: Policy,
    proof: str | None,
    code: str | None,
    most_wait_s: float,
    most_pause_s: float,
) -> Steps[shapes.Pass]:
    """join → status (as often as the room says) → claim; the pass is kept. `Gone` when the wait is over."""
    place = yield from made(calls.join_room(event, proof=proof, code=code), keyring, policy)
    status: shapes.PlaceStatus = place
    waited_s = 0.0
    for _ in range(MAX_LOOKS):
        if status.state == "active":
            try:
                given = yield from made(calls.claim_pass(event, place.place), keyring, policy)
            except NotYourTurn:
                status = shapes.PlaceStatus("waiting", status.phase, poll_after_s=1.0)
            else:
                keyring.passes[event] = given.pass_
                return given
        if status.state == "expired" or waited_s >= most_wait_s:
            break
        pause_s = min(status.poll_after_s, most_pause_s, most_wait_s)
        yield Pause(pause_s)
        waited_s += pause_s
        status = yield from made(calls.place_status(event, place.place), keyring, policy)
    raise Gone(410, "place_expired", "the place ended before its turn", about=place.place)


def holding(call: Call[shapes.Hold], keyring: Keyring, policy: Policy) -> Steps[shapes.Hold]:
    """A hold, whose token is kept."""
    hold = yield from made(call, keyring, policy)
    keyring.remember(hold.booking, hold.event, hold.booking_token)
    return hold


def claiming(offer: str, event: str, keyring: Keyring, policy: Policy) -> Steps[shapes.ClaimedOffer]:
    """An offer of the waitlist, whose pass and token are kept."""
    claimed = yield from made(calls.claim_offer(offer, event), keyring, policy)
    booking = claimed.booking
    keyring.passes[booking.event] = claimed.pass_.pass_
    keyring.remember(booking.booking, booking.event, claimed.booking_token)
    return claimed
