"""The seat-map feed over memory and Redis: one stream for all servers and viewers (B2, N7, F1)."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Sequence

import pytest

from frontrow.boxoffice.adapters.seat_map.redis_frame_log import RedisFrameLogs
from frontrow.boxoffice.seats.map.frame_log import MemoryFrameLog
from frontrow.boxoffice.seats.map.map_feed import FeedSettings, MapFeed
from frontrow.boxoffice.seats.map.map_ring import HEARTBEAT
from frontrow.boxoffice.seats.model.map_format import Frame, encode_changes, read_snapshot
from frontrow.boxoffice.seats.ports.seat_map import Exchange, FrameLog
from frontrow.core.errors import InvalidInput, Overloaded, Unavailable
from tests.boxoffice.map_viewer import Viewer
from tests.contracts.frame_log import CONTRACT, Make, numbers_without_gaps_for_fifty_callers
from tests.support.eventually import eventually
from tests.support.servers import Cluster, Valkey


@pytest.fixture
async def logs() -> AsyncIterator[list[RedisFrameLogs]]:
    made: list[RedisFrameLogs] = []
    yield made
    for one in made:
        await one.aclose()


def on_redis(url: str, made: list[RedisFrameLogs], timeout_s: float = 10.0) -> Make:
    event = f"evt_{uuid.uuid4().hex}"

    def make() -> FrameLog:
        made.append(RedisFrameLogs(url, timeout_s=timeout_s, poll_s=0.02))
        return made[-1].log_of(event)

    return make


@pytest.mark.parametrize("holds", CONTRACT)
async def test_the_memory_log_keeps_the_contract(holds: Callable[[Make], AsyncIterator[None]]) -> None:
    log = MemoryFrameLog(epoch=7)
    await holds(lambda: log)  # type: ignore[misc]


@pytest.mark.parametrize("holds", CONTRACT)
async def test_the_redis_log_keeps_the_contract(
    holds: Callable[[Make], AsyncIterator[None]], redis_url: str, logs: list[RedisFrameLogs]
) -> None:
    await holds(on_redis(redis_url, logs))  # type: ignore[misc]


@pytest.mark.parametrize("holds", CONTRACT)
async def test_the_redis_log_keeps_the_contract_on_a_cluster(
    holds: Callable[[Make], AsyncIterator[None]], redis_cluster: Cluster, logs: list[RedisFrameLogs]
) -> None:
    await holds(on_redis(redis_cluster.url, logs))  # type: ignore[misc]


class ForgetfulNumbers(MemoryFrameLog):
    """Canary: reads the number, waits, then writes it: two callers get the same."""

    async def exchange(self, body: str, epoch: int, seq: int) -> Exchange:
        was = self._seq
        await asyncio.sleep(0)
        self._seq = was
        return await super().exchange(body, epoch, seq)


async def test_the_contract_catches_a_log_that_numbers_twice() -> None:
    log = ForgetfulNumbers(epoch=7)
    with pytest.raises(AssertionError):
        await numbers_without_gaps_for_fifty_callers(lambda: log)


class Hall:
    """The truth: what the claim store would answer."""

    def __init__(self, seats: int = 40) -> None:
        self.states = bytearray(seats)
        self.down = False

    async def __call__(self, indexes: Sequence[int]) -> bytes:
        if self.down:
            raise Unavailable("the claim store is down")
        return bytes(self.states[index] for index in indexes)


SLOW_AUDIT = FeedSettings(audit_ticks=1000, poll_ticks=1)


async def feeds_of(hall: Hall, *logs: FrameLog, settings: FeedSettings = SLOW_AUDIT) -> list[MapFeed]:
    feeds = [MapFeed(len(hall.states), log, hall, settings) for log in logs]
    for feed in feeds:
        await feed.resync()
    return feeds


@pytest.fixture(params=["memory", "redis"])
def two_logs(request: pytest.FixtureRequest, logs: list[RedisFrameLogs]) -> tuple[FrameLog, FrameLog]:
    if request.param == "memory":
        log = MemoryFrameLog(epoch=7)
        return log, log
    make = on_redis(request.getfixturevalue("redis_url"), logs)
    return make(), make()


async def test_two_servers_end_with_the_same_map_and_numbers(two_logs: tuple[FrameLog, FrameLog]) -> None:
    """B2: seats turn unavailable for everybody as they are taken."""
    hall = Hall()
    a, b = await feeds_of(hall, *two_logs)
    for step in range(30):
        hall.states[step] = 1 + step % 3
        (a if step % 2 else b).notify([step])
        await (a if step % 3 else b).tick()
    for _ in range(2):
        await asyncio.gather(a.tick(), b.tick())
    for feed in (a, b):
        await feed.tick()
        assert feed.ring.states == hall.states
        assert feed.resyncs == 1
    assert a.snapshot() == b.snapshot()  # one encoding for all viewers, wherever they are connected


async def test_a_stale_publication_is_corrected_one_tick_later() -> None:
    """Server a reads "free", is slow, and publishes after server b published "held"."""
    hall, log = Hall(), MemoryFrameLog(epoch=7)
    hall.states[3] = 1
    a, b = await feeds_of(hall, log, log)
    hall.states[3] = 0  # released: a is told
    a.notify([3])
    original = log.exchange

    async def slow(body: str, epoch: int, seq: int) -> Exchange:
        log.exchange = original  # type: ignore[method-assign]
        hall.states[3] = 2  # sold in the meantime: b is told, and publishes first
        b.notify([3])
        await b.tick()
        return await original(body, epoch, seq)

    log.exchange = slow  # type: ignore[method-assign]
    await a.tick()
    assert a.state(3) == 0  # wrong, for now
    await a.tick()
    await b.tick()
    assert (a.state(3), b.state(3)) == (2, 2)


async def test_a_change_nobody_told_of_is_found_by_the_audit() -> None:
    """A server died between claiming and notifying, or a hold simply ran out (B14)."""
    hall, log = Hall(), MemoryFrameLog(epoch=7)
    (feed,) = await feeds_of(hall, log, settings=FeedSettings(audit_ticks=8))
    hall.states[:] = bytes([2]) * 40
    for _ in range(8):
        await feed.tick()
    assert feed.ring.states == hall.states


async def test_a_lost_frame_is_fetched_and_a_lost_ring_means_reset() -> None:
    """Gap: filled from the log; too long a gap: taken anew from the truth, and viewers are reset."""
    hall, log = Hall(), MemoryFrameLog(epoch=7, max_frames=5)
    a, b = await feeds_of(hall, log, log)
    viewer = Viewer(b.snapshot(), 40)
    for seats in (3, 30):
        for index in range(seats):
            hall.states[index] = (hall.states[index] + 1) % 4
            a.notify([index])
            await a.tick()
        await b.tick()
        assert b.ring.states == hall.states
        viewer.take(b.ring.since(viewer.epoch, viewer.seq), b.ring)
        assert viewer.states == hall.states
    assert b.resyncs == 2
    assert viewer.fetched == 2


async def test_a_frame_that_arrives_during_a_resync_is_not_forgotten() -> None:
    """Its number is past the resync's and its news may be past the truth that was read."""
    log = MemoryFrameLog(epoch=7)

    class BusyHall(Hall):
        async def __call__(self, indexes: Sequence[int]) -> bytes:
            states = await super().__call__(indexes)
            if feed.resyncs == 0 and not self.states[4]:  # once, after the states were read
                self.states[4] = 1
                await log.exchange(encode_changes({4: 1}), 7, 0)
                feed._on_frame(Frame(7, 0, 1, encode_changes({4: 1})))
            return states

    hall = BusyHall()
    feed = MapFeed(40, log, hall, FeedSettings(audit_ticks=1000, poll_ticks=10_000))
    feed._ticks = 1  # no poll is due
    await feed.resync()
    assert feed.state(4) == 0
    await feed.tick()
    assert (feed.state(4), feed.ring.seq) == (1, 1)


async def test_a_redis_that_lost_everything_starts_a_new_epoch(own_valkey: Valkey, logs: list[RedisFrameLogs]) -> None:
    """F1: data lost; viewers are reset instead of mixing old and new numbers."""
    hall, make = Hall(), on_redis(own_valkey.url, logs)
    (feed,) = await feeds_of(hall, make())
    hall.states[1] = 1
    feed.notify([1])
    await feed.tick()
    viewer = Viewer(feed.snapshot(), 40)
    import redis

    with redis.Redis.from_url(own_valkey.url) as client:
        client.flushall()
    hall.states[2] = 2
    feed.notify([2])
    await feed.tick()
    assert feed.resyncs == 2
    assert feed.ring.epoch > viewer.epoch
    viewer.take(feed.ring.since(viewer.epoch, viewer.seq), feed.ring)
    assert viewer.states == hall.states


async def test_what_could_not_be_published_is_published_later() -> None:
    hall, log = Hall(), MemoryFrameLog(epoch=7)
    (feed,) = await feeds_of(hall, log)
    hall.states[5] = 1
    feed.notify([5])
    hall.down = True
    with pytest.raises(Unavailable):
        await feed.tick()
    hall.down = False
    await feed.tick()
    assert feed.state(5) == 1


async def test_running_feeds_hear_each_other_and_survive_a_restart_of_redis(
    own_valkey: Valkey, logs: list[RedisFrameLogs]
) -> None:
    """F1: Redis killed: the map stands still, then goes on by itself with what happened meanwhile."""
    hall, make = Hall(), on_redis(own_valkey.url, logs, timeout_s=0.3)
    quick = FeedSettings(tick_s=0.02, audit_ticks=1000, poll_ticks=10_000, retry_s=0.02)  # news come by pub/sub alone
    feeds = [MapFeed(40, make(), hall, quick) for _ in range(2)]
    try:
        for feed in feeds:
            await feed.start()
        hall.states[1] = 1
        feeds[0].notify([1])
        await eventually(lambda: all(feed.state(1) == 1 for feed in feeds))
        own_valkey.kill()
        hall.states[2] = 2
        feeds[1].notify([2])
        await eventually(lambda: all(feed.failures > 0 for feed in feeds))
        own_valkey.start()
        await eventually(lambda: all(feed.state(2) == 2 for feed in feeds))
    finally:
        await asyncio.gather(*(feed.stop() for feed in feeds))


async def test_viewers_follow_get_heartbeats_and_are_bounded() -> None:
    """N7: degrade instead of failing: one viewer too many is told to poll."""
    hall, log = Hall(), MemoryFrameLog(epoch=7)
    settings = FeedSettings(max_viewers=60, heartbeat_ticks=2, audit_ticks=1000)
    (feed,) = await feeds_of(hall, log, settings=settings)
    streams = [feed.follow(feed.ring.epoch, feed.ring.seq) for _ in range(60)]
    waiting = [asyncio.ensure_future(anext(stream)) for stream in streams]
    await asyncio.sleep(0)
    assert feed.viewers == 60
    with pytest.raises(Overloaded, match="poll instead") as caught:
        await anext(feed.follow(0, 0))
    assert caught.value.retry_after_s
    hall.states[9] = 1
    feed.notify([9])
    await feed.tick()
    chunks = await asyncio.gather(*waiting)
    assert all(chunk is chunks[0] or chunk == chunks[0] for chunk in chunks)
    assert chunks[0].startswith(b"event: d\nid: 7-1\n")
    heartbeat = asyncio.ensure_future(anext(streams[0]))
    await asyncio.sleep(0)
    await feed.tick()
    assert await heartbeat == HEARTBEAT
    for stream in streams:
        await stream.aclose()  # type: ignore[attr-defined]
    assert feed.viewers == 0


async def test_a_map_that_nobody_looks_at_rests_until_somebody_comes() -> None:
    """N7: hundreds of quiet events cost nothing; a hold that expired meanwhile is found for the first visitor."""
    hall, reads = Hall(), []

    async def read(indexes: Sequence[int]) -> bytes:
        reads.append(len(indexes))
        return await hall(indexes)

    resting = FeedSettings(tick_s=0.001, rest_after_ticks=2, rest_s=60, audit_ticks=1000, heartbeat_ticks=10_000)
    feed = MapFeed(40, MemoryFrameLog(epoch=7), read, resting)
    await feed.start()
    try:
        await eventually(lambda: feed._resting)
        hall.states[5] = 1  # nobody tells: its server has died
        before = len(reads)
        await asyncio.sleep(0.05)  # fifty ticks of a map that is looked at
        assert len(reads) == before, "it rests"
        feed.use()
        await eventually(lambda: feed.state(5) == 1)
        await eventually(lambda: feed._resting)
        hall.states[6] = 2
        feed.notify([6])
        await eventually(lambda: feed.state(6) == 2)
    finally:
        await feed.stop()


async def test_a_map_listens_before_it_loads_so_that_it_reads_the_plan_only_once() -> None:
    """N7: five hundred maps that start together; what another server publishes meanwhile is not missed."""
    hall, log, reads = Hall(), MemoryFrameLog(epoch=7), []

    async def read(indexes: Sequence[int]) -> bytes:
        reads.append(len(indexes))
        states = await hall(indexes)
        if len(reads) == 1:  # another server sells a seat while this one loads
            hall.states[3] = 2
            await log.exchange(encode_changes({3: 2}), 7, 0)
        return states

    feed = MapFeed(40, log, read, FeedSettings(rest_s=60))
    await feed.start()
    try:
        await eventually(lambda: feed.state(3) == 2)
        assert feed.ring.seq == 1
    finally:
        await feed.stop()
    reads.clear()
    quiet = MapFeed(40, MemoryFrameLog(epoch=7), read, FeedSettings(rest_s=60))
    await quiet.start()
    try:
        await eventually(lambda: quiet._resting)
        assert reads == [40]
    finally:
        await quiet.stop()


async def test_the_maps_of_many_events_listen_over_one_connection(own_valkey: Valkey) -> None:
    """N7: a server that sells hundreds of events does not open hundreds of connections."""
    import redis

    logs = RedisFrameLogs(own_valkey.url, timeout_s=10)
    heard: dict[str, list[int]] = {"a": [], "b": [], "again": []}
    ready = {name: asyncio.Event() for name in heard}

    def listening(name: str, event: str) -> "asyncio.Task[None]":
        log = logs.log_of(event)
        return asyncio.create_task(log.listen(lambda frame: heard[name].append(frame.seq), ready[name].set))

    tasks = [listening("a", "evt_a"), listening("b", "evt_b"), listening("again", "evt_a")]
    try:
        await asyncio.wait_for(asyncio.gather(*(one.wait() for one in ready.values())), 10)
        with redis.Redis.from_url(own_valkey.url) as client:
            assert len(client.client_list(_type="pubsub")) == 1
            await logs.log_of("evt_a").exchange(encode_changes({1: 1}), 0, 0)
            await logs.log_of("evt_b").exchange(encode_changes({2: 1}), 0, 0)
            await eventually(lambda: heard == {"a": [1], "b": [1], "again": [1]})
            tasks.pop().cancel()
            await eventually(lambda: client.pubsub_numsub("map:{evt_a}")[0][1] == 1)
            tasks.pop().cancel()
            await eventually(lambda: client.pubsub_numsub("map:{evt_b}")[0][1] == 0)
            await logs.log_of("evt_a").exchange(encode_changes({3: 1}), 0, 0)
            await eventually(lambda: heard == {"a": [1, 2], "b": [1], "again": [1]})
            client.client_kill_filter(_type="pubsub")
            with pytest.raises(Unavailable):
                await asyncio.wait_for(tasks.pop(), 30)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await logs.aclose()


async def test_a_viewer_from_another_time_is_reset() -> None:
    (feed,) = await feeds_of(Hall(), MemoryFrameLog(epoch=7))
    stream = feed.follow(3, 99)
    assert (await anext(stream)) == b"event: reset\ndata: 7 0\n\n"
    await stream.aclose()  # type: ignore[attr-defined]
    assert read_snapshot(feed.snapshot(), 40).epoch == 7


async def test_an_event_id_cannot_leave_its_hash_tag(redis_url: str, logs: list[RedisFrameLogs]) -> None:
    logs.append(RedisFrameLogs(redis_url))
    with pytest.raises(InvalidInput, match="braces"):
        logs[0].log_of("a}:{b")


def test_a_frame_in_the_stream_names_its_position() -> None:
    assert Frame(7, 1, 2, "BQ==").line() == "7 1 2 BQ=="
