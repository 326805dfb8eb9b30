"""Ticket codes (B10): signed, deterministic, and nothing else is accepted offline: 100,000 mutations, 0 accepted."""

import base64
import random
from collections import Counter
from collections.abc import Callable

from frontrow.boxoffice.gate.gate_check import Gate, GateVerdict
from frontrow.boxoffice.tickets import rotating_codes
from frontrow.boxoffice.tickets import ticket_codes as codes
from frontrow.boxoffice.tickets.signing_keys import TicketKeys
from frontrow.boxoffice.tickets.ticket_codes import Issuer
from tests.boxoffice.tickets.samples import EVENT, KEYS, NOW, OTHER_KEYS, booking, gate, issued

MUTATIONS = 100_000


def raw_of(code: str) -> bytearray:
    return bytearray(base64.b32decode(code[3 : codes.CODE_CHARS]))


def code_of(raw: bytes) -> str:
    """Encode with a right check, so that only what comes after the check can refuse."""
    return codes.write_code(bytes(raw[: codes.BODY_BYTES]), bytes(raw[codes.BODY_BYTES : codes.SIGNED_BYTES]))


def flip(raw: bytearray, bit: int) -> bytearray:
    raw[bit // 8] ^= 1 << (bit % 8)
    return raw


def text_flip(code: str, rng: random.Random) -> str:
    letters = bytearray(code.encode())
    return flip(letters, rng.randrange(8 * len(letters))).decode("latin-1")


def cut(code: str, rng: random.Random) -> str:
    at = rng.randrange(len(code))
    return rng.choice([code[:at], code[at:] if at else "", code[:at] + code[at + 1 :], code + code[at]])


def swap(code: str, rng: random.Random) -> str:
    first, second = sorted(rng.sample(range(3, len(code)), 2))
    letters = list(code)
    letters[first], letters[second] = letters[second], letters[first]
    return "".join(letters) if letters[first] != letters[second] else code[:-1]


def raw_flip(code: str, rng: random.Random) -> str:
    raw = flip(raw_of(code), rng.randrange(8 * 105))
    return "FR1" + base64.b32encode(raw).decode()


def signed_flip(code: str, rng: random.Random) -> str:
    return code_of(flip(raw_of(code), rng.randrange(8 * codes.SIGNED_BYTES)))


def grafted(code: str, rng: random.Random) -> str:
    """Another seat's signature under this body."""
    other = raw_of(rng.choice(issued(*range(20, 24), number=2)).code)
    return code_of(raw_of(code)[: codes.BODY_BYTES] + other[codes.BODY_BYTES :])


def accepted(at: Gate, mutate: Callable[[str, random.Random], str], count: int, seed: int) -> Counter[GateVerdict]:
    rng = random.Random(seed)
    sources = [one.code for one in issued(*range(8))]
    found: Counter[GateVerdict] = Counter()
    for number in range(count):
        source = sources[number % len(sources)]
        code = mutate(source, rng)
        assert code != source
        found[at.verify(code, NOW)[0]] += 1
    return found


def test_of_100_000_mutated_tickets_none_is_accepted() -> None:
    """B10: bit flips in text and in bytes, cuts, swaps, forged checks, grafts, foreign keys, revoked tickets."""
    at = gate(revoked=tuple(one.id for one in issued(*range(500), number=3)))
    found: Counter[GateVerdict] = Counter()
    for seed, (mutate, count) in enumerate(
        [(text_flip, 40_000), (cut, 25_000), (swap, 15_000), (raw_flip, 15_000), (signed_flip, 3_000), (grafted, 500)]
    ):
        found += accepted(at, mutate, count, seed)
    foreign = issued(*range(500), keys=OTHER_KEYS, number=4)
    for ticket in foreign:
        found[at.verify(ticket.code, NOW)[0]] += 1
        renamed = code_of(raw_of(ticket.code)[:1] + KEYS.kid + raw_of(ticket.code)[5:])  # claims to be signed by us
        found[at.verify(renamed, NOW)[0]] += 1
    for ticket in issued(*range(500), number=3):
        found[at.verify(ticket.code, NOW)[0]] += 1
    assert found.total() >= MUTATIONS
    assert found[GateVerdict.WELCOME] == 0
    reached = {
        GateVerdict.MISREAD,
        GateVerdict.UNKNOWN_KEY,
        GateVerdict.OTHER_EVENT,
        GateVerdict.REVOKED,
        GateVerdict.FORGED,
    }
    assert set(found) == reached, "every kind of refusal was met"
    assert found[GateVerdict.FORGED] >= 2_500, "thousands got as far as the signature"
    assert all(at.verify(ticket.code, NOW)[0] is GateVerdict.WELCOME for ticket in issued(*range(8)))


def test_the_mutation_test_catches_a_gate_that_trusts_signatures() -> None:
    """The canary: with a signature check that says yes, the same mutations get in."""
    at = gate()
    at._keys.signed = lambda kid, message, signature: True  # type: ignore[method-assign]
    assert accepted(at, signed_flip, 200, 4)[GateVerdict.WELCOME] > 0


def test_the_same_booking_always_gets_the_same_codes() -> None:
    """B10: signing again (a repeated confirm, another server) changes no ticket id and no QR."""
    assert issued(1, 2, 3) == issued(1, 2, 3)
    assert len({one.code for one in issued(1, 2, 3)} | {one.code for one in issued(1, number=2)}) == 4
    assert all(len(one.code) == codes.CODE_CHARS and one.id.startswith("tkt_") for one in issued(1, 2, 3))


def test_a_code_says_its_fields() -> None:
    ticket = issued(70_000, number=5, fence=2**47)[0]
    read = codes.read_code(ticket.code)
    assert (read.id, read.seat_index, read.fence) == (ticket.id, 70_000, 2**47)
    assert read.event == codes.event_hash(EVENT)
    assert read.kid == KEYS.kid


def test_old_tickets_stay_valid_when_the_key_is_changed() -> None:
    ring = KEYS.rotated(b"n" * 32)
    old, new = issued(1)[0], issued(2, keys=ring)[0]
    for ticket in (old, new):
        assert gate(keys=ring).verify(ticket.code, NOW)[0] is GateVerdict.WELCOME
    assert gate().verify(new.code, NOW)[0] is GateVerdict.UNKNOWN_KEY


def test_a_ticket_that_is_signed_when_shown_is_the_same_as_one_signed_at_once() -> None:
    """Issue 14: a sale stores tickets unsigned; no gate takes what the ledger has."""
    for rotating in (False, True):
        stored = Issuer(KEYS, rotating=rotating).prepare(booking(1, 2))
        at_once = issued(1, 2, rotating=rotating)
        assert [(one.id, one.seat_index) for one in stored] == [(one.id, one.seat_index) for one in at_once]
        assert [codes.signed_code(one.code, KEYS) for one in stored] == [one.code for one in at_once]
        assert [codes.signed_code(one.code, KEYS) for one in at_once] == [one.code for one in at_once]
        assert {codes.is_rotating(one.code) for one in (*stored, *at_once)} == {rotating}
        assert {gate().verify(one.code, NOW)[0] for one in stored} == {GateVerdict.MISREAD}
        assert [codes.stored_body(one.code) for one in stored] == [codes.stored_body(one.code) for one in at_once]


def test_a_ticket_from_before_the_key_was_changed_is_signed_by_the_new_key() -> None:
    stored, ring = Issuer(KEYS).prepare(booking(1))[0], KEYS.rotated(b"n" * 32)
    shown = codes.signed_code(stored.code, ring)
    assert (codes.read_code(shown).id, codes.read_code(shown).kid) == (stored.id, ring.kid)
    for code in (shown, codes.signed_code(stored.code, KEYS)):  # on paper, from before
        assert gate(keys=ring).verify(code, NOW)[0] is GateVerdict.WELCOME


def test_a_rotating_code_lives_for_its_step_and_one_to_either_side() -> None:
    """B10: a screenshot is worth nothing half a minute later; both edges of the tolerance."""
    ticket = issued(1, rotating=True)[0]
    assert (codes.is_rotating(ticket.code), codes.is_rotating(issued(1)[0].code)) == (True, False)
    secret = KEYS.rotating_secret(EVENT)
    step_us = rotating_codes.STEP_S * 1_000_000
    start = NOW - NOW % step_us
    shown = codes.shown_code(ticket.code, secret, start)
    at = gate()
    for now_us, verdict in [
        (start - step_us - 1, GateVerdict.OLD_CODE),
        (start - step_us, GateVerdict.WELCOME),
        (start, GateVerdict.WELCOME),
        (start + 2 * step_us - 1, GateVerdict.WELCOME),
        (start + 2 * step_us, GateVerdict.OLD_CODE),
    ]:
        assert at.verify(shown, now_us)[0] is verdict, now_us - start
    assert at.verify(ticket.code, start)[0] is GateVerdict.OLD_CODE, "the printed part alone is a picture"
    rng = random.Random(7)
    for _ in range(500):
        tail = "".join(rng.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", k=8))
        assert tail == shown[-8:] or at.verify(f"{ticket.code}.{tail}", start)[0] is GateVerdict.OLD_CODE
    plain = issued(2)[0]
    assert at.verify(f"{plain.code}.{shown[-8:]}", start)[0] is GateVerdict.MISREAD
    assert codes.shown_code(plain.code, secret, start) == plain.code


def test_the_secret_of_one_event_or_ticket_fits_no_other() -> None:
    ticket, other = issued(1, 2, rotating=True)
    read = codes.read_code(ticket.code)
    right = rotating_codes.rotating_code(rotating_codes.ticket_secret(KEYS.rotating_secret(EVENT), read.short_id), NOW)
    wrong = [
        rotating_codes.rotating_code(
            rotating_codes.ticket_secret(KEYS.rotating_secret("evt_other"), read.short_id), NOW
        ),
        rotating_codes.rotating_code(
            rotating_codes.ticket_secret(KEYS.rotating_secret(EVENT), codes.read_code(other.code).short_id), NOW
        ),
        rotating_codes.rotating_code(
            rotating_codes.ticket_secret(OTHER_KEYS.rotating_secret(EVENT), read.short_id), NOW
        ),
    ]
    assert right not in wrong


def test_a_key_ring_is_made_once_and_kept_for_its_owner_only(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "keys" / "ring.json"
    first = TicketKeys.opened(path)
    assert TicketKeys.opened(path).public == first.public
    assert path.stat().st_mode & 0o077 == 0
    path.write_text(first.rotated().packed())
    again = TicketKeys.opened(path)
    assert again.former == (first.public,)
    assert again.public != first.public
    assert "seed" not in repr(again)
    assert list(path.parent.iterdir()) == [path]


def test_a_ticket_of_another_event_is_refused() -> None:
    ticket = codes.Issuer(KEYS).issue(booking(1, event="evt_elsewhere"))[0]
    assert gate().verify(ticket.code, NOW)[0] is GateVerdict.OTHER_EVENT
