"""The service over memory and Redis: join, status, claim, renew, give back, now-serving, organisers."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from frontrow.core.errors import ConfigError, InvalidInput, NotFound, Unauthorised
from frontrow.testing.clock import ManualClock
from frontrow.waitingroom.audit.sqlite import open_sqlite_audit
from frontrow.waitingroom.credentials import now_serving as nowserving
from frontrow.waitingroom.credentials.key_binding import thumbprint
from frontrow.waitingroom.credentials.passes import PassVerifier
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.waitingroom.model import draw
from frontrow.waitingroom.model.config import LaneRule, Phase, RoomConfig
from frontrow.waitingroom.model.errors import (
    AlreadyClaimed,
    CodeInvalid,
    CodeNeeded,
    CodeOver,
    CodeUsed,
    NotYourTurn,
    PassEnded,
    PassExpired,
    PassForeign,
    PersonNeeded,
    PlaceExpired,
    PlaceForeign,
    PlaceInvalid,
    ProofInvalid,
    RoomFull,
    RoomHeld,
    RoomUnknown,
    StayTooLong,
)
from frontrow.waitingroom.model.results import ClaimedPass, Joined
from frontrow.waitingroom.model.wait_estimate import Reason
from frontrow.waitingroom.model.window import PlaceState
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.waitingroom.stores.memory import MemoryRoomStore
from frontrow.waitingroom.stores.redis import RedisRoomStore
from tests.support.eventually import eventually
from tests.waitingroom.credentials.bound_browser import Browser

EVENT = "concert"
SMALL = RoomConfig(capacity=10, window_size=5, pass_ttl_s=900, max_stay_s=1800)


@dataclass
class Rig:
    """One process: its service and the clock it and its store go by."""

    room: WaitingRoom
    clock: ManualClock

    async def joins(self, people: int, **options: Any) -> list[Joined]:
        return list(await asyncio.gather(*(self.room.joins.join(EVENT, **options) for _ in range(people))))

    async def tick(self, seconds: float = 0) -> None:
        self.clock.advance(seconds)
        await self.room.loops.tick(EVENT)


@pytest.fixture(params=["memory", "redis"])
async def rig(request: pytest.FixtureRequest, room_keys: RoomKeys) -> AsyncIterator[Rig]:
    clock = ManualClock()
    if request.param == "redis":
        store: Any = RedisRoomStore(request.getfixturevalue("redis_url"), timeout_s=20, clock=clock)
    else:
        store = MemoryRoomStore(clock)
    room = WaitingRoom(store, open_sqlite_audit(":memory:"), room_keys, clock=clock)
    yield Rig(room, clock)
    await room.aclose()


async def test_w1_w5_joining_and_asking_how_it_stands(rig: Rig) -> None:
    await rig.room.control.create(EVENT, SMALL)
    joined = await rig.joins(60)
    assert sorted(j.position or 0 for j in joined) == list(range(1, 61))
    await rig.tick()
    by_position = sorted(joined, key=lambda j: j.position or 0)
    told = [rig.room.statuses.of(j.place_jwt, EVENT) for j in by_position]
    assert [t.state for t in told] == [PlaceState.ACTIVE] * 5 + [PlaceState.WAITING] * 55
    assert (told[59].ahead, told[59].position, told[59].lane) == (54, 60, "general")


async def test_w6_w7_the_whole_way_to_a_pass_and_back(rig: Rig) -> None:
    await rig.room.control.create(EVENT, SMALL)
    joined = await rig.joins(20, person="")
    with pytest.raises(NotYourTurn):
        await rig.room.visits.claim(joined[0].place_jwt)
    await rig.tick()
    claimed = await rig.room.visits.claim(joined[0].place_jwt, EVENT)
    shop = PassVerifier(json.loads(json.dumps(rig.room.passes.jwks())))
    visit = shop.verify(claimed.pass_jwt, EVENT, rig.clock() // 1_000_000)
    assert (visit.event, visit.expires_s - visit.issued_s) == (EVENT, 900)
    assert rig.room.visits.check_pass(claimed.pass_jwt) == visit
    await rig.tick()
    assert rig.room.control.view(EVENT).state.active == 1
    assert await rig.room.visits.give_back(claimed.pass_jwt)
    assert not await rig.room.visits.give_back(claimed.pass_jwt)
    await rig.tick()
    assert rig.room.control.view(EVENT).state.active == 0
    with pytest.raises(PassEnded):
        rig.room.visits.check_pass(claimed.pass_jwt)
    with pytest.raises(PassEnded):
        await rig.room.visits.renew(claimed.pass_jwt)
    with pytest.raises(AlreadyClaimed):
        await rig.room.visits.claim(joined[0].place_jwt)


async def test_w7_a_hundred_parallel_claims_give_one_pass(rig: Rig) -> None:
    await rig.room.control.create(EVENT, SMALL)
    (mine,) = await rig.joins(1)
    await rig.tick()
    answers = await asyncio.gather(*(rig.room.visits.claim(mine.place_jwt) for _ in range(100)), return_exceptions=True)
    assert sum(isinstance(a, ClaimedPass) for a in answers) == 1
    assert sum(isinstance(a, AlreadyClaimed) for a in answers) == 99


async def test_w7_a_place_is_claimed_on_a_server_that_has_not_heard_of_the_slide_yet(
    rig: Rig, room_keys: RoomKeys
) -> None:
    """Status came from one server, the claim goes to another: it looks again before it says no, once for many."""
    await rig.room.control.create(EVENT, SMALL)
    joined = await rig.joins(12)
    other = WaitingRoom(rig.room.store, open_sqlite_audit(":memory:"), room_keys, clock=rig.clock)
    await other.control.create(EVENT, SMALL)
    await rig.tick()
    await rig.tick(1)
    assert rig.room.statuses.of(joined[0].place_jwt).state is PlaceState.ACTIVE
    assert other.statuses.of(joined[0].place_jwt).state is PlaceState.WAITING
    claims = await asyncio.gather(*(other.visits.claim(one.place_jwt) for one in joined), return_exceptions=True)
    assert [type(one) for one in claims] == [ClaimedPass] * 10 + [NotYourTurn] * 2
    await other.aclose()


async def test_w7_the_same_idempotency_key_gets_the_same_pass_again(rig: Rig) -> None:
    await rig.room.control.create(EVENT, SMALL)
    (mine,) = await rig.joins(1)
    await rig.tick()
    asked = [rig.room.visits.claim(mine.place_jwt, idempotency_key="try-1") for _ in range(100)]
    answers = await asyncio.gather(*asked)
    assert len({a.pass_jwt for a in answers}) == 1
    assert sum(not a.repeated for a in answers) == 1
    rig.clock.advance(30)
    assert (await rig.room.visits.claim(mine.place_jwt, idempotency_key="try-1")).pass_jwt == answers[0].pass_jwt
    with pytest.raises(AlreadyClaimed):
        await rig.room.visits.claim(mine.place_jwt, idempotency_key="try-2")
    await rig.tick()
    assert rig.room.control.view(EVENT).state.active == 1


async def test_w7_a_pass_is_renewed_up_to_the_longest_stay(rig: Rig) -> None:
    await rig.room.control.create(EVENT, SMALL)
    (mine,) = await rig.joins(1)
    await rig.tick()
    first = await rig.room.visits.claim(mine.place_jwt)
    rig.clock.advance(600)
    second = await rig.room.visits.renew(first.pass_jwt)
    assert second.expires_s == first.expires_s + 600
    assert (await rig.room.visits.renew(first.pass_jwt)).pass_jwt == second.pass_jwt, "asking again changes nothing"
    rig.clock.advance(899)
    third = await rig.room.visits.renew(second.pass_jwt)
    assert third.expires_s == first.expires_s + 900, "never beyond max_stay_s"
    with pytest.raises(StayTooLong):
        await rig.room.visits.renew(third.pass_jwt)
    rig.clock.advance(400)
    with pytest.raises(PassExpired):
        rig.room.visits.check_pass(third.pass_jwt)


async def test_w6_a_full_shop_keeps_people_at_the_entrance_with_their_place(rig: Rig) -> None:
    await rig.room.control.create(EVENT, SMALL)
    joined = await rig.joins(8)
    await rig.tick()
    await rig.tick(1)
    await rig.room.control.set_capacity(EVENT, 2)
    answers = await asyncio.gather(*(rig.room.visits.claim(j.place_jwt) for j in joined), return_exceptions=True)
    assert sum(isinstance(a, ClaimedPass) for a in answers) == 2
    assert sum(isinstance(a, RoomFull) for a in answers) == 6
    refused = next(j for j, a in zip(joined, answers, strict=True) if isinstance(a, RoomFull))
    await rig.room.control.set_capacity(EVENT, 3)
    assert await rig.room.visits.claim(refused.place_jwt)


async def test_w2_an_expired_place_is_told_so(rig: Rig) -> None:
    await rig.room.control.create(EVENT, SMALL.changed(active_windows=1))
    joined = sorted(await rig.joins(30), key=lambda j: j.position or 0)
    await rig.tick()
    await rig.tick(1)
    assert rig.room.statuses.of(joined[0].place_jwt).state is PlaceState.EXPIRED
    with pytest.raises(PlaceExpired):
        await rig.room.visits.claim(joined[0].place_jwt)


async def test_bad_places_and_passes_never_get_anywhere(rig: Rig) -> None:
    await rig.room.control.create(EVENT, SMALL)
    await rig.room.control.create("other", SMALL)
    (mine,) = await rig.joins(1)
    await rig.tick()
    claimed = await rig.room.visits.claim(mine.place_jwt)
    with pytest.raises(PlaceForeign):
        rig.room.statuses.of(mine.place_jwt, "other")
    with pytest.raises(PlaceForeign):
        await rig.room.visits.claim(mine.place_jwt, "other")
    with pytest.raises(PassForeign):
        rig.room.visits.check_pass(claimed.pass_jwt, "other")
    for wrong in ("", "x" * 10**6, claimed.pass_jwt, mine.place_jwt[:-1]):
        with pytest.raises(PlaceInvalid):
            rig.room.statuses.of(wrong)
        with pytest.raises(PlaceInvalid):
            await rig.room.visits.claim(wrong)
    for wrong in ("", "x" * 10**6, mine.place_jwt, claimed.pass_jwt[:-2]):
        with pytest.raises(Unauthorised):
            rig.room.visits.check_pass(wrong)
    with pytest.raises(RoomUnknown):
        await rig.room.joins.join("nowhere")
    with pytest.raises(RoomUnknown):
        rig.room.cache.find("nowhere").now_serving()
    for reserved in ("p" * 65, "place:concert:0.1.1.1", " Place:0.1.1"):
        with pytest.raises(InvalidInput):
            await rig.room.joins.join(EVENT, person=reserved)
    with pytest.raises(InvalidInput):
        await rig.room.joins.join(EVENT, idempotency_key="k" * 256)


async def test_the_person_of_a_place_names_its_event(rig: Rig) -> None:
    """The n-th of one event and the n-th of another are two people."""
    people = []
    for event in (EVENT, "opera", "opera.1"):
        await rig.room.control.create(event, SMALL)
        joined = await rig.room.joins.join(event)
        assert joined.position == 1
        await rig.room.loops.tick(event)
        first, again = [await rig.room.visits.claim(joined.place_jwt, idempotency_key="k") for _ in range(2)]
        assert first.pass_jwt == again.pass_jwt
        renewed = await rig.room.visits.renew(first.pass_jwt)
        visit = rig.room.visits.check_pass(renewed.pass_jwt, event)
        assert visit.person == rig.room.visits.check_pass(first.pass_jwt).person
        people.append(visit.person)
    issued_s = rig.clock() // 1_000_000
    assert people == [f"place:{event}:0.1.1.{issued_s}" for event in (EVENT, "opera", "opera.1")]


async def test_a_room_that_lost_everything_makes_nobody_an_earlier_visitor(room_keys: RoomKeys) -> None:
    """Store and audit are gone: the room counts from 1 again, in epoch 1 again, and the people are others."""
    clock, people = ManualClock(), []
    for _ in range(2):
        room = WaitingRoom(MemoryRoomStore(clock), open_sqlite_audit(":memory:"), room_keys, clock=clock)
        await room.control.create(EVENT, SMALL)
        joined = await room.joins.join(EVENT)
        await room.loops.tick(EVENT)
        people.append(room.visits.check_pass((await room.visits.claim(joined.place_jwt)).pass_jwt).person)
        assert (joined.position, room.control.view(EVENT).state.epoch) == (1, 1)
        await room.aclose()
        clock.advance(60)
    assert len(set(people)) == 2


async def test_a_copied_bound_place_is_worthless(rig: Rig) -> None:
    await rig.room.control.create(EVENT, SMALL)
    mine, thief = Browser(), Browser()
    place = (await rig.room.joins.join(EVENT, cnf=thumbprint(mine.jwk))).place_jwt
    await rig.tick()
    now_s = rig.clock() // 1_000_000
    assert rig.room.statuses.of(place).state is PlaceState.ACTIVE
    for proof in (None, thief.proof(place, claims={"iat": now_s})):
        with pytest.raises(ProofInvalid):
            await rig.room.visits.claim(place, proof=proof)
    claimed = await rig.room.visits.claim(place, proof=mine.proof(place, claims={"iat": now_s}))
    assert rig.room.visits.check_pass(claimed.pass_jwt).jkt == thumbprint(mine.jwk)


async def test_an_idempotency_key_is_only_good_for_who_made_it(rig: Rig) -> None:
    await rig.room.control.create(EVENT, SMALL)
    first = await rig.room.joins.join(EVENT, person="ann", idempotency_key="k")
    again = await rig.room.joins.join(EVENT, person="ann", idempotency_key="k")
    other = await rig.room.joins.join(EVENT, person="bob", idempotency_key="k")
    assert (again.place_jwt, again.fresh) == (first.place_jwt, False)
    assert other.position != first.position


async def test_w12_codes_pick_the_lane_once_and_lanes_are_served_by_weight(rig: Rig) -> None:
    lanes = (LaneRule("general", 1), LaneRule("fans", 4))
    await rig.room.control.create(EVENT, SMALL.changed(lanes=lanes, window_size=10, capacity=1000))
    await rig.joins(100)
    codes = list(rig.room.codes.make(EVENT, 1, range(100)))
    fans = await asyncio.gather(*(rig.room.joins.join(EVENT, code=code) for code in codes))
    assert {fan.status.lane for fan in fans} == {"fans"}
    with pytest.raises(CodeUsed):
        await rig.room.joins.join(EVENT, code=codes[0])
    with pytest.raises(CodeInvalid):
        await rig.room.joins.join(EVENT, code="VF-NONSENSE")
    await rig.tick()
    for _ in range(5):
        await rig.tick(1)
    general, fan_lane = rig.room.control.view(EVENT).state.lanes
    assert (general.hi, fan_lane.hi) == (12, 48), "six windows of ten: one due at once, then five"


async def test_positions_seen_never_worsen_whatever_the_organiser_does(rig: Rig) -> None:
    lanes = (LaneRule("general", 1), LaneRule("fans", 4))
    await rig.room.control.create(EVENT, SMALL.changed(lanes=lanes))
    watched = [j.place_jwt for j in await rig.joins(40)]
    seen: dict[str, int] = {}
    order = {PlaceState.WAITING: 0, PlaceState.ACTIVE: 1, PlaceState.EXPIRED: 2}
    states: dict[str, int] = {}
    fans = iter(rig.room.codes.make(EVENT, 1, range(1000)))
    moves = [
        rig.room.control.pause,
        rig.room.control.resume,
        rig.room.control.queue_all,
        rig.room.control.resume,
        lambda e: rig.room.control.set_capacity(e, 1),
        lambda e: rig.room.control.set_capacity(e, 500),
        lambda e: rig.room.control.set_rate(e, 1, 1),
        lambda e: rig.room.control.set_rate(e, 1000, 1000),
    ]
    for move in moves:
        await asyncio.gather(*(rig.room.joins.join(EVENT, code=next(fans)) for _ in range(10)))
        await move(EVENT)
        for _ in range(3):
            await rig.tick(1)
            for place in watched:
                told = rig.room.statuses.of(place)
                assert told.ahead is not None
                assert told.ahead <= seen.get(place, 10**9)
                assert order[told.state] >= states.get(place, 0)
                seen[place], states[place] = told.ahead, order[told.state]
    assert sum(states.values()) > 0, "somebody moved"


async def test_the_draw_gives_everybody_of_the_pre_queue_a_verifiable_position(rig: Rig) -> None:
    await rig.room.control.create(EVENT, SMALL, Phase.PREQUEUE)
    early = await rig.joins(50)
    told = rig.room.statuses.of(early[0].place_jwt)
    assert (told.state, told.position, told.ahead) == (PlaceState.WAITING, None, None)
    promised = rig.room.control.draw_record(EVENT)
    assert set(promised) == {"algorithm", "event", "commitment"}
    await rig.room.control.open(EVENT, beacon="drand 99")
    late = await rig.room.joins.join(EVENT)
    assert late.position == 51
    positions = [rig.room.statuses.of(j.place_jwt).position for j in early]
    assert sorted(p or 0 for p in positions) == list(range(1, 51))
    assert positions != sorted(p or 0 for p in positions)
    published = json.loads(json.dumps(rig.room.control.draw_record(EVENT)))
    for joined, position in zip(early, positions, strict=True):
        arrival = rig.room.places.verify(joined.place_jwt).position
        assert draw.verify(published, "general", arrival, promised["commitment"]) == position
    await rig.tick()
    winners = [j for j in early if rig.room.statuses.of(j.place_jwt).state is PlaceState.ACTIVE]
    assert len(winners) == 5
    claims = await asyncio.gather(*(rig.room.visits.claim(j.place_jwt) for j in winners))
    assert len({c.pass_jwt for c in claims}) == 5


async def test_now_serving_is_small_signed_and_the_same_until_something_happens(rig: Rig) -> None:
    lanes = (LaneRule("general", 1), LaneRule("fans", 4))
    event = "a" * 35
    await rig.room.control.create(event, SMALL.changed(lanes=lanes))
    first = rig.room.cache.find(event).now_serving()
    seen: list[nowserving.NowServing] = []
    stop = rig.room.cache.find(event).subscribe(seen.append)
    public = rig.room.keys.document_key.public_key()
    facts = nowserving.read(public, first.body)
    assert (facts.e, facts.n, facts.s, facts.l) == (event, 1, "open", [(0, 0, 0), (0, 0, 0)])
    assert len(first.body) <= nowserving.MAX_BYTES
    await asyncio.gather(*(rig.room.joins.join(event) for _ in range(20)))
    await rig.room.loops.tick(event)
    assert nowserving.read(public, rig.room.cache.find(event).now_serving().body).l[0] == (0, 5, 20)
    assert seen[-1] == rig.room.cache.find(event).now_serving()
    assert seen[-1].etag != first.etag
    count = len(seen)
    await rig.room.loops.tick(event)
    assert len(seen) == count, "nothing happened, nothing is sent"
    stop()
    await rig.room.control.set_message(event, "soon")
    assert len(seen) == count
    assert nowserving.read(public, rig.room.cache.find(event).now_serving().body).m == 1
    for wrong in (
        first.body.replace(b'"open"', b'"held"'),
        first.body[:-20] + (b"B" if first.body[-20:-19] == b"A" else b"A") + first.body[-19:],
        b"",
        b'{"e":1}',
        first.body + b" ",
    ):
        with pytest.raises(Unauthorised):
            nowserving.read(public, wrong)


async def test_a_document_that_could_outgrow_its_300_bytes_is_refused_at_the_start(rig: Rig) -> None:
    lanes = tuple(LaneRule(name) for name in "abc")
    with pytest.raises(ConfigError):
        await rig.room.control.create("e" * 30, SMALL.changed(lanes=lanes))
    for event in ("", "a" * 36, "a/b", "{x}", "a b", "é"):
        with pytest.raises(InvalidInput):
            await rig.room.control.create(event, SMALL)


async def test_pausing_says_why_nobody_can_name_a_wait(rig: Rig) -> None:
    await rig.room.control.create(EVENT, SMALL)
    joined = sorted(await rig.joins(40), key=lambda j: j.position or 0)
    for _ in range(3):
        await rig.tick(1)
    await rig.room.control.pause(EVENT)
    told = rig.room.statuses.of(joined[-1].place_jwt)
    assert (told.phase, told.wait.high_s, told.wait.reason) == (Phase.PAUSED, None, Reason.PAUSED)
    assert await rig.room.visits.claim(joined[0].place_jwt), "who is active may still go in"
    await rig.room.control.queue_all(EVENT)
    with pytest.raises(RoomHeld):
        await rig.room.visits.claim(joined[1].place_jwt)
    await rig.room.control.resume(EVENT)
    assert await rig.room.visits.claim(joined[1].place_jwt)
    assert rig.room.statuses.of(joined[-1].place_jwt).wait.reason is Reason.NONE


async def test_w9_the_wait_comes_from_the_measured_rate_with_a_band(rig: Rig) -> None:
    await rig.room.control.create(EVENT, SMALL.changed(capacity=10**6, window_size=5))
    joined = sorted(await rig.joins(500), key=lambda j: j.position or 0)
    last = joined[-1].place_jwt
    highs = []
    for _ in range(60):
        await rig.tick(1)
        told = rig.room.statuses.of(last)
        if told.wait.high_s is not None:
            highs.append(told.wait.high_s)
            assert told.wait.low_s is not None
            exact = (told.ahead or 0) / 5
            assert told.wait.low_s <= exact <= told.wait.high_s
    assert len(highs) > 30
    assert highs == sorted(highs, reverse=True), "it never rises"


@pytest.mark.parametrize("kind", ["memory", "redis"])
async def test_w8_rooms_by_identity(kind: str, request: pytest.FixtureRequest, room_keys: RoomKeys) -> None:
    clock = ManualClock()
    store: Any = MemoryRoomStore(clock, one_place_per_person=True)
    if kind == "redis":
        store = RedisRoomStore(
            request.getfixturevalue("redis_url"), timeout_s=20, clock=clock, one_place_per_person=True
        )
    room = WaitingRoom(store, open_sqlite_audit(":memory:"), room_keys, clock=clock)
    await room.control.create(EVENT, SMALL)
    places = [(await room.joins.join(EVENT, person=f"p{n}")).place_jwt for n in range(10)]
    again = await asyncio.gather(*(room.joins.join(EVENT, person="p4") for _ in range(50)))
    assert {a.position for a in again} == {5}
    assert await room.roster.rank(places[9]) == 9
    assert await room.roster.leave(places[4])
    assert await room.roster.rank(places[9]) == 8
    assert await room.roster.rank(places[4]) is None
    await room.aclose()


@pytest.mark.parametrize("kind", ["memory", "redis"])
async def test_w8_one_place_per_person_is_a_setting_of_a_room(
    kind: str, request: pytest.FixtureRequest, room_keys: RoomKeys
) -> None:
    store: Any = (
        MemoryRoomStore() if kind == "memory" else RedisRoomStore(request.getfixturevalue("redis_url"), timeout_s=20)
    )
    room = WaitingRoom(store, open_sqlite_audit(":memory:"), room_keys)
    await room.control.create(EVENT, SMALL.changed(one_place_per_person=True))
    await room.control.create("other", SMALL)
    again = await asyncio.gather(*(room.joins.join(EVENT, person="ada") for _ in range(50)))
    assert {one.position for one in again} == {1}
    with pytest.raises(PersonNeeded):
        await room.joins.join(EVENT)
    with pytest.raises(PersonNeeded):
        room.joins.join_into(EVENT, asyncio.get_running_loop().create_future())
    assert (await room.joins.join("other")).position == 1
    assert (await room.joins.join("other", person="ada")).position == 2
    assert (await room.joins.join("other", person="ada")).position == 3
    assert await room.roster.leave(again[0].place_jwt)
    await room.aclose()


async def test_w12_a_presale_lets_in_who_has_a_code_until_it_ends(room_keys: RoomKeys) -> None:
    clock = ManualClock()
    room = WaitingRoom(MemoryRoomStore(clock), open_sqlite_audit(":memory:"), room_keys, clock=clock)
    ends_us = clock() + 60_000_000
    lanes = (LaneRule("general"), LaneRule("presale"))
    await room.control.create(EVENT, SMALL.changed(lanes=lanes, codes_until_us=ends_us))
    first, second, late = room.codes.make(EVENT, 1, range(3))
    with pytest.raises(CodeNeeded) as refused:
        await room.joins.join(EVENT)
    assert refused.value.about["general_sale_at_s"] == ends_us // 1_000_000
    with pytest.raises(CodeNeeded):
        room.joins.join_into(EVENT, asyncio.get_running_loop().create_future())
    with pytest.raises(CodeInvalid):
        await room.joins.join(EVENT, code="VF-0000000-0000000000000")
    assert (await room.joins.join(EVENT, code=first)).status.lane == "presale"
    with pytest.raises(CodeUsed):
        await room.joins.join(EVENT, code=first)
    clock.advance(us=59_999_999)
    assert (await room.joins.join(EVENT, code=second)).status.lane == "presale"
    clock.advance(us=1)
    with pytest.raises(CodeOver):
        await room.joins.join(EVENT, code=late)
    assert (await room.joins.join(EVENT)).status.lane == "general"
    await room.aclose()


async def test_an_anonymous_room_has_no_roster(rig: Rig) -> None:
    await rig.room.control.create(EVENT, SMALL)
    (mine,) = await rig.joins(1)
    with pytest.raises(NotFound):
        await rig.room.roster.rank(mine.place_jwt)


async def test_joins_that_arrive_together_cost_one_store_call(redis_url: str, room_keys: RoomKeys) -> None:
    store = RedisRoomStore(redis_url, timeout_s=20)
    room = WaitingRoom(store, open_sqlite_audit(":memory:"), room_keys)
    await room.control.create(EVENT, SMALL)
    await room.joins.join(EVENT)
    before = store.calls
    await asyncio.gather(*(room.joins.join(EVENT) for _ in range(2000)))
    assert (store.calls - before) * 20 <= 2000
    await room.aclose()


class CountingStore(MemoryRoomStore):
    """Counts how often the loops read a room."""

    reads = 0

    async def snapshot(self, event: str) -> Any:
        self.reads += 1
        return await super().snapshot(event)


async def test_an_idle_room_is_checked_twice_per_minute_and_follows_what_happens_elsewhere(room_keys: RoomKeys) -> None:
    """N7: one check per idle room and half minute, and no turn of its loop, until another server's fan joins."""
    store = CountingStore()
    here, there = (WaitingRoom(store, open_sqlite_audit(":memory:"), room_keys, refresh_us=1_000) for _ in range(2))
    try:
        for room in (here, there):
            await room.control.create(EVENT, SMALL)
        await here.loops.start()
        await asyncio.sleep(0)
        before = store.reads
        for second in range(60):
            await here.loops.wake_changed(second)
        assert store.reads == before + 2
        await there.joins.join(EVENT)
        for second in range(30):
            await here.loops.wake_changed(second)
        assert await eventually(lambda: here.control.view(EVENT).state.lanes[0].issued) == 1
    finally:
        await here.aclose()
        await there.aclose()


async def test_an_empty_room_is_idle_until_somebody_comes(room_keys: RoomKeys) -> None:
    """N7: a server with hundreds of quiet events reads none of them four times per second."""
    store = CountingStore()
    room = WaitingRoom(store, open_sqlite_audit(":memory:"), room_keys, refresh_us=1_000)
    try:
        await room.control.create(EVENT, SMALL)
        await room.loops.start()
        await eventually(lambda: any(room.loops._idle))
        before = store.reads
        await asyncio.sleep(0.05)  # fifty turns of a loop that is not idle
        assert store.reads == before
        joined = await room.joins.join(EVENT)
        await eventually(  # the window slides as soon as somebody is there
            lambda: room.statuses.of(joined.place_jwt, EVENT).state, until=lambda state: state is PlaceState.ACTIVE
        )
        assert (await room.visits.claim(joined.place_jwt, EVENT)).pass_jwt
    finally:
        await room.aclose()
