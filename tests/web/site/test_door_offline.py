"""B10: what the door's page decides without a network is what the Python gate decides, code by code (run on Node)."""

import base64
import hashlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from frontrow.boxoffice.model.bookings import Booking, BookingState
from frontrow.boxoffice.tickets.door_bundle import Bundle, make_bundle, sign_revocations
from frontrow.boxoffice.tickets.door_check import Gate
from frontrow.boxoffice.tickets.signing_keys import TicketKeys
from frontrow.boxoffice.tickets.ticket_codes import PREFIX, Issuer, shown_code
from frontrow.web.api.door.scans import ANSWERS

NODE = Path(__file__).parents[2] / "node"
NOW_US = 1_763_200_000_000_000
STEP_US = 30_000_000
KEYS = TicketKeys.fresh()
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


def on_node(bundle: Bundle, **asks: Any) -> Any:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["node", "door.mjs"],
        input=msgspec.json.encode({"bundle": bundle} | asks).decode(),
        capture_output=True,
        text=True,
        cwd=NODE,
        check=True,
        env=os.environ | {"PATH": path},
        timeout=60,
    )
    return json.loads(done.stdout)


def a_booking(event: str = "evt_1", seats: tuple[int, ...] = (0, 17, 65_537), fence: int = 2**40 + 7) -> Booking:
    return Booking(
        f"bkg_{event}", event, "fan_1", BookingState.PAYING, fence, seats, 9_000, "EUR", "", NOW_US, NOW_US, NOW_US
    )


def rubbish(code: str, chance: random.Random) -> str:
    """A code as bad light, a cut, a keyboard or a forger leaves it."""
    at = chance.randrange(len(code))
    return chance.choice(
        [
            code[:at] + chance.choice(LETTERS) + code[at + 1 :],
            code[:at] + chance.choice("019.= é") + code[at + 1 :],
            code[:at],
            code + chance.choice(LETTERS),
            code[:at] + code[at + 1 :] + "A",
            code.lower(),
            code + "." + "A" * chance.randrange(10),
            "https://example.org/" + code[:at],
        ]
    )


def test_b10_the_page_and_the_python_gate_give_every_code_the_same_verdict() -> None:
    plain, live = Issuer(KEYS), Issuer(KEYS, rotating=True)
    former = KEYS.rotated()
    tickets = plain.issue(a_booking())
    dead = plain.issue(a_booking(seats=(3,), fence=1))[0]
    bundle = make_bundle(former, "evt_1", "Aurora – Ü 音", [dead.id], NOW_US, ["A-1"] * 20, {"Child": [17]})
    gate = Gate(bundle, "north")
    moving = live.issue(a_booking(seats=(5,), fence=9))[0].code
    codes = [one.code for one in tickets] + [
        dead.code,
        moving,
        moving + ".",
        moving + ".AAAAAAAA",
        tickets[0].code + ".AAAAAAAA",
    ]
    codes += [one.code for one in Issuer(former).issue(a_booking(seats=(8,)))]
    codes += [one.code for one in Issuer(TicketKeys.fresh()).issue(a_booking())]
    codes += [one.code for one in plain.issue(a_booking("evt_2"))]
    for steps in (-3, -2, -1, 0, 1, 2, 3):
        codes.append(shown_code(moving, KEYS.rotating_secret("evt_1"), NOW_US + steps * STEP_US))
    codes += ["", PREFIX, "tkt_00000000000000000000000000", PREFIX + "A" * 168, "é" * 171]
    chance = random.Random(20261115)
    codes += [rubbish(chance.choice(codes[:8]), chance) for _ in range(300)]
    told = on_node(bundle, asks=[[code, NOW_US] for code in codes])
    assert told["can"] is True
    seen = set()
    for code, (verdict, ticket, seat) in zip(codes, told["verdicts"], strict=True):
        expected, known = gate.verify(code, NOW_US)
        seen.add(verdict)
        assert verdict == ANSWERS[expected], code
        assert ticket == (known.id if known else ""), code
        kind = {17: "Child"}.get(known.seat_index, "") if known else ""
        assert seat == ([known.seat_index, known.fence, kind] if known else []), code
    assert seen == {"ok", "unreadable", "forged", "wrong_event", "revoked", "old_code"}


def test_b10_a_signature_under_a_whole_code_is_what_decides() -> None:
    """A forger who knows the format, and makes the check bytes right, is refused by the signature alone."""
    good = Issuer(KEYS).issue(a_booking())[0].code
    raw = bytearray(base64.b32decode(good[len(PREFIX) :]))
    raw[31] ^= 1  # another seat
    signed = bytes(raw[:102])
    forged = PREFIX + base64.b32encode(signed + hashlib.blake2b(signed, digest_size=3).digest()).decode()
    bundle = make_bundle(KEYS, "evt_1", "Aurora", [], NOW_US)
    assert [one[0] for one in on_node(bundle, asks=[[good, NOW_US], [forged, NOW_US]])["verdicts"]] == ["ok", "forged"]


def test_b10_only_revocation_lists_signed_for_the_event_are_taken() -> None:
    ids = ["tkt_A", "tkt_B", "tkt_é"]
    bundle = make_bundle(KEYS, "evt_1", "Aurora", ids, NOW_US)
    good = sign_revocations(KEYS, "evt_1", ids, NOW_US + 1)
    shorter = msgspec.structs.replace(good, ids=good.ids[1:])
    foreign = sign_revocations(TicketKeys.fresh(), "evt_1", ids, NOW_US)
    elsewhere = sign_revocations(KEYS, "evt_2", ids, NOW_US)
    swapped = msgspec.structs.replace(bundle, revocations=shorter)
    told = on_node(bundle, lists=[good, shorter, foreign, elsewhere], bundles=[bundle, swapped])
    assert told["lists"] == [True, False, False, False]
    assert told["bundles"] == [True, False]


def test_blake2b_is_the_one_everybody_else_has() -> None:
    texts = [
        (bytes(range(256))[:size] * many, digest)
        for size in (0, 1, 102, 127, 128)
        for many in (1, 3)
        for digest in (3, 8, 64)
    ]
    told = on_node(make_bundle(KEYS, "e", "", [], 1), texts=[(text.hex(), size) for text, size in texts])["hashes"]
    assert told == [hashlib.blake2b(text, digest_size=size).hexdigest() for text, size in texts]
