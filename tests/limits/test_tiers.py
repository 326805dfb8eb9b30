"""Tiers that live in the store: what one server puts, every server knows; and tiers of a configuration file."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator

import pytest
import redis
import redis.asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from frontrow.core.errors import ConfigError, InvalidInput
from frontrow.limits import Limiter, Quota, Rule, StoreDown, Tiers
from frontrow.limits.config import load_config
from frontrow.limits.http.asgi import RateLimitMiddleware
from frontrow.limits.stores import stored_tiers
from frontrow.limits.stores.stored_tiers import StoredTiers
from tests.limits.limited_apps import call_asgi, starlette_app
from tests.support.servers import Valkey


def wait_until(condition: Callable[[], bool]) -> None:
    """Until another server's change has arrived. Bounded, for a loaded machine."""
    pause = threading.Event()
    for _ in range(2000):
        if condition():
            return
        pause.wait(0.005)
    raise AssertionError("the change did not arrive")


@pytest.fixture(params=["memory", "redis"])
def tiers(request: pytest.FixtureRequest, redis_url: str) -> Iterator[Tiers]:
    made = Tiers(store="memory://" if request.param == "memory" else redis_url, deadline_s=10.0)
    yield made
    made.close()


def test_a_client_is_a_part_and_its_value(tiers: Tiers) -> None:
    tiers["user:42"] = "gold"
    tiers["7"] = "silver"  # without a part the user is meant
    assert [tiers({"user": "42"}), tiers({"user": "7"}), tiers({"user": "1"})] == ["gold", "silver", None]
    assert [tiers("user:42"), tiers("42"), tiers("user:7")] == ["gold", "gold", "silver"]
    assert tiers({"user": "user:42"}) is None, "nobody gets another one's tier by a clever name"
    assert tiers({"ip": "42"}) is None
    del tiers["42"]
    assert tiers({"user": "42"}) is None


async def test_your_own_clients_can_hold_the_tiers(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as own:
        async with redis.asyncio.Redis.from_url(redis_url) as own_asyncio:
            tiers = Tiers(store=(own, own_asyncio), deadline_s=10.0)
            await tiers.put("user:42", "gold")
            tiers["user:7"] = "silver"
            await tiers.aclose()
            assert own.ping(), "the clients are still yours"
            assert await own_asyncio.ping()
        blocking = Tiers(store=own, deadline_s=10.0)
        assert [blocking("user:42"), blocking("user:7")] == ["gold", "silver"]
        with pytest.raises(ConfigError, match="asyncio calls need an asyncio client"):
            await blocking.put("user:7", "gold")
        blocking.close()


def test_a_tier_that_the_store_did_not_take_is_our_error() -> None:
    tiers = Tiers(store="redis://127.0.0.1:1/0")
    with pytest.raises(StoreDown, match="the tier was not changed, because its store failed: ConnectionError"):
        tiers["user:42"] = "gold"
    with pytest.raises(StoreDown, match="not changed"):
        del tiers["user:42"]
    with pytest.raises(StoreDown, match="not changed"):
        asyncio.run(tiers.put("user:42", "gold"))
    assert tiers({"user": "42"}) is None
    tiers.close()


async def test_asyncio_puts_and_removes(redis_url: str) -> None:
    for store in ("memory://", redis_url):
        tiers = Tiers({"user:1": "silver"}, store=store, deadline_s=10.0)
        await tiers.put("user:42", "gold")
        assert [tiers({"user": "42"}), tiers({"user": "1"})] == ["gold", "silver"]
        await tiers.put("user:1", "gold")
        assert tiers({"user": "1"}) == "gold", "what was put wins over the configured members"
        await tiers.remove("user:42")
        assert tiers({"user": "42"}) is None
        await tiers.aclose()


def test_what_one_server_puts_the_others_know(redis_url: str) -> None:
    here, there = Tiers(store=redis_url, deadline_s=10.0), Tiers(store=redis_url, deadline_s=10.0)
    elsewhere = Tiers(store=redis_url, name="other", deadline_s=10.0)
    try:
        here["user:42"] = "gold"
        assert there({"user": "42"}) == "gold", "the first copy has all that was put before"
        here["user:42"] = "silver"
        wait_until(lambda: there({"user": "42"}) == "silver")
        del here["user:42"]
        wait_until(lambda: there({"user": "42"}) is None)
        assert elsewhere({"user": "42"}) is None
    finally:
        for each in (here, there, elsewhere):
            each.close()


def test_a_limiter_follows_the_tiers(tiers: Tiers) -> None:
    rule = Rule("plan", Quota.parse("1/hour"), tiers={"gold": Quota.parse("3/hour")}, tier_of=tiers)
    limiter = Limiter(rule)
    served = lambda key: sum(limiter.check(key).allowed for _ in range(5))  # noqa: E731
    assert served("user:42") == 1
    tiers["user:42"] = "gold"
    assert (served("user:42"), served("user:7")) == (3, 1)


def test_a_store_that_lost_its_memory_is_believed_and_one_that_is_silent_is_not(
    own_valkey: Valkey, caplog: pytest.LogCaptureFixture
) -> None:
    stored = StoredTiers(own_valkey.url, "t", prefix="frl", deadline_s=1.0, refresh_s=3600)
    stored.put("user:1", "gold")
    stored.put("user:2", "gold")
    stored.refresh()
    own_valkey.command("FLUSHALL")
    stored.put("user:2", "silver")
    stored.refresh()
    assert (stored.get("user:1"), stored.get("user:2")) == (None, "silver")
    own_valkey.kill()
    with caplog.at_level(logging.WARNING, logger="frontrow.limits"):
        stored.refresh()
        stored.refresh()
    assert stored.get("user:2") == "silver"
    assert [record.message for record in caplog.records if "the last ones stay" in record.message] != []
    assert len(caplog.records) == 1, "said once"
    stored.close()


changes = st.tuples(st.integers(0, 9), st.sampled_from(["gold", "silver", ""]), st.booleans())


@settings(max_examples=20)
@given(history=st.lists(changes, max_size=40))
def test_a_reader_knows_what_was_written_however_rarely_it_reads(
    every_redis_url: str, history: list[tuple[int, str, bool]]
) -> None:
    """Pages of two and three remembered removals, so that readers meet both bounds."""
    small = stored_tiers.SCRIPT.replace("10000, 1000", "3, 2")
    assert small != stored_tiers.SCRIPT
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored_tiers, "SCRIPT", small)
        writer, reader = (StoredTiers(every_redis_url, "t", prefix="frl", deadline_s=10.0) for _ in range(2))
    writer._script.client().flushdb()
    expected: dict[str, str] = {}
    try:
        for number, tier, reads in [*history, (0, "", True)]:
            client = f"user:{number}"
            if tier:
                writer.put(client, tier)
                expected[client] = tier
            else:
                writer.remove(client)
                expected.pop(client, None)
            if reads:
                reader.refresh()
                assert reader._tiers == expected
    finally:
        writer.close()
        reader.close()


def test_a_reader_that_nobody_refers_to_any_more_stops(redis_url: str) -> None:
    stored = StoredTiers(redis_url, "t", prefix="frl", deadline_s=10.0, refresh_s=0.01)
    stored.get("user:1")
    thread = next(each for each in threading.enumerate() if each.name == "frontrow tiers" and each.is_alive())
    del stored
    thread.join(30)
    assert not thread.is_alive()


FILE = """
[limits]
store = "{store}"
deadline_ms = 10000
[limits.identify]
user = "header:x-user-id"
[limits.tiers]
gold = ["user:42"]
[[limits.rules]]
name = "plan"
quota = "1/hour"
key = ["user"]
tiers = {{ gold = "3/hour", silver = "2/hour" }}
"""


async def test_a_file_names_tiers_and_their_clients_and_reloads_them(tmp_path, redis_url) -> None:
    file = tmp_path / "limits.toml"
    file.write_text(FILE.format(store=redis_url))
    app = RateLimitMiddleware.from_config(starlette_app([]), file)

    async def limit_of(user: str) -> str:
        answer = await call_asgi(app, "GET", "/", {"x-user-id": user}, "203.0.113.1")
        return answer.headers["x-ratelimit-limit"]

    assert [await limit_of("42"), await limit_of("7")] == ["3", "1"]
    operator = load_config(file).tiers  # another process with the same file
    await operator.put("user:7", "silver")
    deadline_s = time.monotonic() + 30
    while await limit_of("7") != "2":
        assert time.monotonic() < deadline_s
    file.write_text(FILE.format(store=redis_url).replace('"user:42"', '"user:43"'))
    app.limits.book.reload()
    assert [await limit_of("42"), await limit_of("43")] == ["1", "3"]
    file.write_text(FILE.format(store=redis_url).replace('"user:42"', "42"))
    with pytest.raises(ConfigError, match=r"limits\.tiers\.gold must be a list of clients"):
        app.limits.book.reload()
    assert await limit_of("43") == "3", "a broken file changes nothing"
    await operator.aclose()
    await app.limits.aclose()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('gold = "user:42"', 'must be a list of clients like gold = ["user:42", "user:7"]'),
        ('gold = ["42"]', "a client is \"user:…\", not '42'"),
        ('gold = ["ip:1"]', 'a client is "user:…"'),
        ('bronze = ["user:1"]', "no rule has a quota for it (the rules have gold, silver)"),
        ('gold = ["user:1"]\nsilver = ["user:1"]', "user:1 is already in gold"),
    ],
)
def test_a_wrong_tier_is_one_clear_sentence(line: str, said: str, tmp_path) -> None:
    file = tmp_path / "limits.toml"
    file.write_text(FILE.format(store="memory://").replace('gold = ["user:42"]', line))
    with pytest.raises(ConfigError) as caught:
        load_config(file, env={})
    assert said in caught.value.message


def test_wrong_arguments_are_named(tiers: Tiers) -> None:
    for arguments, said in (
        ({"part": "no part"}, "part must name a part"),
        ({"name": "a b"}, "name must be 1 to 64"),
        ({"store": "mongo://x"}, "memory://, redis://"),
    ):
        with pytest.raises(ConfigError, match=said):
            Tiers(**arguments)
    with pytest.raises(InvalidInput, match="like 'user:42'"):
        tiers[""] = "gold"
    with pytest.raises(InvalidInput, match="like 'gold'"):
        tiers["42"] = "very gold"
