"""B10: what the gate's page decides without a network is what the Python gate decides, code by code (run on Node)."""

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

from frontrow.boxoffice.gate.gate_bundle import Bundle, make_bundle, sign_revocations
from frontrow.boxoffice.gate.gate_check import Gate, GateVerdict, ScanLog
from frontrow.boxoffice.gate.model.scans import Scan, Way, find_duplicates, order_scans
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.people.model.roles import Role
from frontrow.boxoffice.tickets.signing_keys import TicketKeys
from frontrow.boxoffice.tickets.ticket_codes import PREFIX, Issuer, read_code, shown_code
from frontrow.shared.local_time import time_text
from frontrow.web.api.gate.scans import ANSWERS
from tests.boxoffice.organiser.http import an_organiser_api

NODE = Path(__file__).parents[2] / "node"
NOW_US = 1_763_200_000_000_000
STEP_US = 30_000_000
KEYS = TicketKeys.fresh()
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


def on_node(bundle: Bundle, **asks: Any) -> Any:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["node", "gate.mjs"],
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


def test_b10_an_answer_that_took_long_says_nothing_against_the_gates_clock() -> None:
    noon_ms = NOW_US // 1_000
    clocks = [
        (noon_ms, noon_ms + 10, noon_ms + 20),  # both clocks agree
        (noon_ms, noon_ms + 10, noon_ms + 3_900),  # the answer was on its way for almost four seconds
        (noon_ms + 3_000, noon_ms + 10, noon_ms + 3_900),  # so was the request
        (noon_ms, noon_ms + 60_000, noon_ms + 60_020),  # the gate's clock is a minute fast
        (noon_ms + 60_000, noon_ms, noon_ms + 20),  # and a minute slow
    ]
    errors = on_node(make_bundle(KEYS, "evt_1", "Aurora", [], NOW_US), clocks=clocks)["errors"]
    assert errors == [0, 0, 0, -59_510, 60_490]


def test_b10_the_page_and_the_python_gate_give_every_code_the_same_verdict() -> None:
    plain, live = Issuer(KEYS), Issuer(KEYS, rotating=True)
    former = KEYS.rotated()
    tickets = plain.issue(a_booking())
    dead = plain.issue(a_booking(seats=(3,), fence=1))[0]
    taken_back = plain.issue(a_booking(seats=(4,), fence=3))[0]
    bundle = make_bundle(
        former,
        "evt_1",
        "Aurora – Ü 音",
        [dead.id],
        NOW_US,
        ["A-1"] * 20,
        {"Child": [17]},
        disputed=[taken_back.id],
        block_disputed=True,
    )
    gate = Gate(bundle, "north")
    moving = live.issue(a_booking(seats=(5,), fence=9))[0].code
    codes = [one.code for one in tickets] + [
        dead.code,
        taken_back.code,
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
    assert seen == {"ok", "unreadable", "forged", "wrong_event", "revoked", "old_code", "disputed"}


MS_US = 1_000
WAYS = {Way.IN: "scan", Way.OUT: "exit"}
PASSAGES = {
    GateVerdict.WELCOME: "ok",
    GateVerdict.ALREADY_IN: "duplicate",
    GateVerdict.REPLACED: "replaced",
    GateVerdict.LEFT: "left",
    GateVerdict.NOT_INSIDE: "not_inside",
}


class Gates:
    """Two Python gates of one event, and what they say about a walk."""

    def __init__(self, folder: Path, bundle: Bundle, codes: list[str]) -> None:
        self.logs = [ScanLog(folder / f"{n}.jsonl") for n in (0, 1)]
        for log in self.logs:
            log.path.unlink(missing_ok=True)
        self.gates = [Gate(bundle, str(n), log) for n, log in enumerate(self.logs)]
        self.known: list[list[Scan]] = [[], []]
        self.codes, self.ids = codes, [read_code(code).id for code in codes]

    def take(self, what: str, gate: int, ticket: int, at_us: int) -> str | bool:
        if what == "learn":
            others = [one for one in self._scans(1 - gate) if one.ticket_id == self.ids[ticket]]
            self.gates[gate].sync(others)
            self.known[gate] += others
            all_known = [one for one in self._scans(gate) if one.ticket_id == self.ids[ticket]]
            return bool(find_duplicates(all_known))
        one = self.gates[gate]
        answer = (one.check if what == "in" else one.let_out)(self.codes[ticket], at_us)
        return PASSAGES[answer.verdict]

    def _scans(self, gate: int) -> list[Scan]:
        return order_scans([*self.logs[gate].scans(), *self.known[gate]])

    def inside(self) -> list[list[bool]]:
        last = [{one.ticket_id: one.way for one in self._scans(gate)} for gate in (0, 1)]
        return [[known.get(ticket) is Way.IN for ticket in self.ids] for known in last]


def a_walk(chance: random.Random, *, reentry: bool) -> list[tuple[str, int, int, int]]:
    """People at two gates, with clocks that go wrong, who hear of each other now and then."""
    whats, at_ms, steps = (["in", "in", "out", "learn"] if reentry else ["in", "in", "learn"]), NOW_US // MS_US, []
    for _ in range(30):
        at_ms += chance.choice([0, 1, 60_000, -2_100])
        steps.append((chance.choice(whats), chance.randrange(2), chance.randrange(3), at_ms))
    return steps


def test_b10_the_page_and_the_python_gate_let_the_same_people_out_and_in_again(tmp_path: Path) -> None:
    """Two tickets of one seat, one of another; every answer, every conflict and who is inside at the end."""
    old, new = a_booking(seats=(3,), fence=1), a_booking(seats=(3, 5), fence=2)
    codes = [one.code for one in (*Issuer(KEYS).issue(old), *Issuer(KEYS).issue(new))]
    chance, walks, expected, said = random.Random(20261116), [], [], set()
    for number in range(60):
        reentry = number % 3 != 0
        bundle = make_bundle(KEYS, "evt_1", "Aurora", [], NOW_US, reentry=reentry)
        gates, steps = Gates(tmp_path, bundle, codes), a_walk(chance, reentry=reentry)
        told = [gates.take(what, gate, ticket, at_ms * MS_US) for what, gate, ticket, at_ms in steps]
        expected.append((told, gates.inside()))
        said |= set(told)
        tickets = [read_code(code) for code in codes]
        known = [{"id": one.id, "seat": one.seat_index, "fence": one.fence} for one in tickets]
        walks.append({"reentry": reentry, "tickets": known, "steps": steps})
    for walk, (told, inside) in zip(on_node(bundle, walks=walks)["walks"], expected, strict=True):
        assert [one if one != "again" else "ok" for one in walk["told"]] == told
        assert walk["inside"] == inside
    assert said == {*PASSAGES.values(), True, False}


async def test_b10_the_server_decides_as_the_gates_do_and_merges_what_they_hand_in(tmp_path: Path) -> None:
    async with an_organiser_api(tmp_path, Role.OWNER) as api:
        path = f"/v1/door/events/{api.event}"
        await api.ask("PATCH", f"/v1/organiser/events/{api.event}", json={"reentry": True})
        codes = await api.codes(await api.bought("S-A-1", "S-A-2", "S-A-3"))
        bundle = await api.platform.box_office.gates.bundle(api.event, 1)
        gates = Gates(tmp_path, bundle, codes)
        chance = random.Random(7)
        for number in range(25):  # one gate hears all: the server's word is its own
            ticket, way = chance.randrange(3), "in" if number < 3 else chance.choice(["in", "out"])
            ticket = number if number < 3 else ticket  # a gate believes who leaves and was never seen; the server knows
            asked = {"code": codes[ticket], "gate": "online"}
            said = await api.post(f"{path}/{WAYS[Way(way)]}", json=asked)
            assert said["verdict"] == gates.take(way, 0, ticket, api.platform.clock()), number
        # both gates go offline knowing the same, decide alone, and hand in, the later one first
        online = await api.get(f"{path}/admissions")
        assert len(online["admissions"]) == len(gates.logs[0].scans())
        for ticket in range(3):
            gates.take("learn", 1, ticket, 0)
        for what, gate, ticket, at_ms in a_walk(chance, reentry=True):
            if what != "learn":
                gates.take(what, gate, ticket, api.platform.clock() + at_ms % 1_000)
        handed = [gates.logs[gate].scans() for gate in (1, 0)]
        known = len(online["admissions"])
        for scans in (handed[0], handed[1][known:]):
            rows = [_handed(one) for one in scans]
            for body in (rows, rows[::-1]):  # twice, and backwards: nothing changes
                await api.post(f"{path}/sync", json={"scans": body})
        for gate in (0, 1):
            for ticket in range(3):
                gates.take("learn", gate, ticket, 0)
        inside = gates.inside()
        assert inside[0] == inside[1]
        counts = await api.get(f"{path}/counts")
        assert (counts["inside"], counts["outside"]) == (sum(inside[0]), 3 - sum(inside[0]))
        twice = {one["ticket"] for one in (await api.get(f"{path}/duplicates"))["duplicates"]}
        assert twice == {one.ticket_id for one in find_duplicates([*handed[0], *handed[1]])}


def _handed(scan: Scan) -> dict[str, str]:
    at = time_text(scan.at_us)
    return {"scan": scan.id, "ticket": scan.ticket_id, "gate": scan.gate, "at": at, "way": scan.way.value}


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
