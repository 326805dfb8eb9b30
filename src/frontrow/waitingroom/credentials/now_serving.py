"""The now-serving document: at most 300 bytes, the same for everybody and signed, so any cache may serve it.

    {"e":"concert","n":1,"s":"open","l":[[lo,hi,issued],…],"r":[milli,…],"y":"","t":1763200000,"p":[5,300,4],"m":0,
     "sig":"<Ed25519>"}

e event, n epoch, s phase, l per lane: places ≤ lo expired, ≤ hi active, the last issued; r per lane: admissions per
1000 seconds shown to people (0: unknown); y why a wait may have risen; t when this last changed (seconds); p poll every
clamp(p0, p1, wait/p2) seconds ±15 %; m number of the organiser's message. The signature covers the text before
`,"sig":"` closed by `}`.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from frontrow.core.errors import ConfigError, Unauthorised
from frontrow.waitingroom.credentials.places import b64, unb64
from frontrow.waitingroom.model.config import Phase, RoomConfig
from frontrow.waitingroom.model.poll_interval import POLL_POLICY
from frontrow.waitingroom.model.room_state import LaneState

MAX_BYTES = 300


@dataclass(frozen=True, slots=True)
class NowServing:
    """The signed bytes with their entity tag (quoted, ready for the header)."""

    body: bytes
    etag: str


class ServingFacts(msgspec.Struct, frozen=True):
    """The parsed document, as a client reads it."""

    e: str
    n: int
    s: str
    l: list[tuple[int, int, int]]  # noqa: E741
    r: list[int]
    y: str
    t: int
    p: tuple[int, int, int]
    m: int


def document(
    key: Ed25519PrivateKey,
    event: str,
    epoch: int,
    phase: Phase,
    lanes: Sequence[LaneState],
    rates_milli: Sequence[int],
    reason: str,
    at_s: int,
    message_no: int,
) -> NowServing:
    """Sign the facts of one room."""
    facts = ServingFacts(
        event,
        epoch,
        phase.value,
        [(lane.lo, lane.hi, lane.issued) for lane in lanes],
        list(rates_milli),
        reason,
        at_s,
        POLL_POLICY,
        message_no,
    )
    text = msgspec.json.encode(facts)
    body = text[:-1] + b',"sig":"' + b64(key.sign(text)) + b'"}'
    return NowServing(body, f'"{hashlib.blake2s(body, digest_size=9).hexdigest()}"')


def read(public: Ed25519PublicKey, body: bytes) -> ServingFacts:
    """The facts, if the signature is right. Raises Unauthorised."""
    head, mark, tail = body.rpartition(b',"sig":"')
    try:
        signature = unb64(tail.removesuffix(b'"}'))
        if not mark or tail != b64(signature) + b'"}':  # one encoding only, so one text per signature
            raise ValueError("signature")
        public.verify(signature, head + b"}")
        return msgspec.json.decode(head + b"}", type=ServingFacts)
    except (InvalidSignature, ValueError, msgspec.MsgspecError):
        raise Unauthorised("this now-serving document was not signed by the room") from None


def check_fits(event: str, config: RoomConfig) -> None:
    """Refuse a room whose document could outgrow its 300 bytes."""
    big = LaneState(issued=99_999_999, hi=99_999_999, lo=99_999_999)
    worst = document(
        Ed25519PrivateKey.from_private_bytes(bytes(32)),
        event,
        999,
        Phase.QUEUE_ALL,
        [big] * len(config.lanes),
        [9_999_999] * len(config.lanes),
        "capacity",
        9_999_999_999,
        999,
    )
    if len(worst.body) > MAX_BYTES:
        raise ConfigError(
            f"room {event!r} with {len(config.lanes)} lanes could need {len(worst.body)} bytes for its now-serving "
            f"document, over {MAX_BYTES}: give the event a shorter name or use fewer lanes"
        )
