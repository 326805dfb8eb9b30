"""`frontrow limits state | reset | watch` over a real Redis, and the record of refused keys behind `watch`."""

import asyncio
import json
import os
import threading

import pytest
import redis
from typer.testing import CliRunner

from frontrow.cli.limits import app
from frontrow.core.errors import ConfigError
from frontrow.core.redis_url import connect_sync, disconnect_sync
from frontrow.limits import Limiter, Quota, Rule
from frontrow.limits.config import load_config
from frontrow.limits.http.asgi import RateLimitMiddleware
from frontrow.limits.http.decorators import limited
from frontrow.limits.stores import most_refused_keys
from frontrow.limits.stores.most_refused_keys import RefusedKeys, readable_key, top_refused
from tests.limits.limited_apps import call_asgi, starlette_app

run = CliRunner().invoke

FILE = """
[limits]
store = "{url}"
deadline_ms = 5000
[limits.identify]
user = "header:x-user-id"
[[limits.rules]]
name = "fan"
quota = "5/hour; 9/day"
key = ["user"]
[[limits.rules]]
name = "endpoint"
quota = "3/hour"
key = ["ip", "endpoint"]
paths = ["/holds"]
"""


def rows(*words: str) -> list[dict[str, object]]:
    result = run(app, [*words, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_state_and_reset_of_a_key_of_a_limiter(redis_url):
    with Limiter("5/hour; 9/day", store=redis_url, deadline_s=5.0) as limiter:
        for _ in range(5):
            limiter.check("user:42")
        words = ("5/hour; 9/day", "user:42", "--store", redis_url)
        hour, day = rows("state", *words)
        assert (hour["rule"], hour["allowed"], hour["remaining"], day["remaining"]) == ("rule1", False, 0, 4)
        assert [row["remaining"] for row in rows("state", *words)] == [0, 4], "looking charges nothing"
        assert [row["remaining"] for row in rows("reset", *words)] == [5, 9]
        assert limiter.check("user:42").allowed
        assert rows("state", "5/hour; 9/day", "user:7", "--store", redis_url)[0]["remaining"] == 5


@pytest.mark.parametrize(
    "quota",
    ["4/hour fixed_window", "4/hour sliding_log", "4/hour sliding_counter", "4/hour burst 4", "4/h leaky_queue"],
)
def test_a_reset_forgets_everything_whatever_the_algorithm(redis_url, quota):
    with Limiter(Rule("mine", Quota.parse(quota)), store=redis_url, deadline_s=5.0, prefix="own") as limiter:
        limiter.check("fan", cost=4)
        words = (quota, "fan", "--store", redis_url, "--prefix", "own", "--name", "mine")
        assert rows("state", *words)[0]["remaining"] == 0
        [after] = rows("reset", *words)
        assert (after["remaining"], after["reset_after_s"]) == (4, 0.0)
        assert limiter.peek("fan", cost=4).allowed


def test_a_key_of_a_decorated_function_is_found_by_the_functions_name(redis_url):
    @limited("3/hour; 9/day", key=lambda user: user, store=redis_url, deadline_s=5.0)
    def send_code(user):
        return user

    with send_code.limiter:
        send_code("user:42")
        function = f"{send_code.__module__}.{send_code.__qualname__}"
        words = ("3/hour; 9/day", "user:42", "--store", redis_url, "--function", function)
        assert [(row["rule"], row["remaining"]) for row in rows("state", *words)] == [
            ("send_code-1", 2),
            ("send_code-2", 8),
        ]
        assert [row["remaining"] for row in rows("reset", *words)] == [3, 9]


async def test_state_of_the_keys_that_the_middleware_counts(redis_url, tmp_path):
    file = tmp_path / "limits.toml"
    file.write_text(FILE.format(url=redis_url))
    middleware = RateLimitMiddleware.from_config(starlette_app([]), file)
    try:
        for _ in range(2):
            await call_asgi(middleware, "GET", "/holds", {"x-user-id": "42"}, "2001:db8::1")
    finally:
        await middleware.aclose()
    parts = ("user=42", "ip=2001:db8::9", "endpoint=GET /holds")
    states = await asyncio.to_thread(rows, "state", str(file), *parts)
    assert [(row["rule"], row["remaining"]) for row in states] == [("fan-1", 3), ("fan-2", 7), ("endpoint", 1)]
    by_user = await asyncio.to_thread(rows, "reset", str(file), "user=42")
    assert [(row["rule"], row["remaining"]) for row in by_user] == [("fan-1", 5), ("fan-2", 9)], "what it counts by"


def test_one_part_that_all_rules_count_by(redis_url, tmp_path):
    file = tmp_path / "limits.toml"
    file.write_text(FILE.format(url=redis_url).split('[[limits.rules]]\nname = "endpoint"')[0])
    config = load_config(file)
    middleware = RateLimitMiddleware(starlette_app([]), **config.middleware_options())
    asyncio.run(_ask_and_close(middleware))
    assert [row["remaining"] for row in rows("state", str(file), "user=42")] == [4, 8]


async def _ask_and_close(middleware: RateLimitMiddleware) -> None:
    await call_asgi(middleware, "GET", "/", {"x-user-id": "42"}, "203.0.113.7")
    await middleware.aclose()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["state", "1/s", "fan"], "name the store"),
        (["state", "1/s", "fan", "--store", "memory://"], "belongs to its process"),
        (["state", "1/s", "fan", "--store", "redis://127.0.0.1:1/0"], "the store did not answer"),
        (["reset", "1/s", "fan", "ip", "--store", "redis://127.0.0.1:1/0"], "like user=42"),
        (["state", "nothing.toml", "user=42"], "no such settings file"),
        (["watch"], "name the store"),
        (["watch", "--once", "--store", "redis://127.0.0.1:1/0"], "the store did not answer"),
    ],
)
def test_what_is_wrong_is_one_sentence(words, message):
    result = run(app, words, env={"FRONTROW_LIMITS_STORE": None})
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output


def test_watch_shows_the_keys_that_are_refused_most(redis_url):
    rules = [Rule("fan", Quota.parse("1/hour")), Rule("all", Quota.parse("1000/hour"), per=())]
    with Limiter(rules, store=redis_url, deadline_s=5.0, record_refusals=True) as limiter:
        for who, times in (("user:1", 4), ("user:2", 31), ("user:3", 1)):
            for _ in range(times):
                limiter.check(who)
    seen = rows("watch", "--store", redis_url)
    assert seen == [
        {"rule": "fan", "key": "user:2", "refusals": 30},
        {"rule": "fan", "key": "user:1", "refusals": 3},
    ], "those of the refusal cache included"
    assert "user:2" in run(app, ["watch", "--once", "--store", redis_url]).output
    assert rows("watch", "--top", "1", "--store", redis_url) == seen[:1]
    assert rows("watch", "--prefix", "other", "--store", redis_url) == []


def test_watch_looks_again_until_ctrl_c(redis_url, monkeypatch):
    with Limiter("1/hour", store=redis_url, deadline_s=5.0, record_refusals=True) as limiter:
        looks = []

        def refuse_one_more(seconds):
            looks.append(seconds)
            if len(looks) == 3:
                raise KeyboardInterrupt
            limiter.check("fan")
            limiter.check("fan")
            limiter._store._refused.flush()

        monkeypatch.setattr("frontrow.cli.limits.time.sleep", refuse_one_more)
        result = run(app, ["watch", "--every", "0.5", "--store", redis_url])
    assert (result.exit_code, looks) == (0, [0.5] * 3)
    assert "fan" in result.output


async def test_asyncio_callers_are_recorded_and_mappings_are_readable(redis_url):
    rules = [Rule("holds", Quota.parse("2/hour"), per=("user", "endpoint"))]
    async with Limiter(rules, store=redis_url, deadline_s=5.0, record_refusals=True) as limiter:
        key = {"user": "42", "endpoint": "POST /holds"}
        await asyncio.gather(*(limiter.acheck(key) for _ in range(10)))
    [seen] = await asyncio.to_thread(rows, "watch", "--store", redis_url)
    assert seen == {"rule": "holds", "key": "user=42 endpoint=POST /holds", "refusals": 8}


def test_the_record_uses_the_stores_own_credentials(redis_url):
    asked = []

    class Credentials(redis.CredentialProvider):
        def get_credentials(self):
            asked.append(threading.current_thread())
            return ()

    options = {"deadline_s": 5.0, "credential_provider": Credentials(), "record_refusals": True}
    with Limiter("1/hour", store=redis_url, **options) as limiter:
        for _ in range(2):
            limiter.check("fan")
        before = len(asked)
        limiter._store._refused.flush()
        assert len(asked) == before + 1


def test_refusals_are_written_after_a_second_by_themselves(redis_url, monkeypatch):
    monkeypatch.setattr(most_refused_keys, "FLUSH_AFTER_S", 0.01)
    client = connect_sync(redis_url)
    with Limiter("1/hour", store=redis_url, deadline_s=5.0, record_refusals=True) as limiter:
        for _ in range(3):
            limiter.check("fan")
        for _ in range(500):
            if top_refused(client, "frl", 60, 5):
                break
            most_refused_keys.threading.Event().wait(0.01)
        assert sum(row.refusals for row in top_refused(client, "frl", 60, 5)) >= 1
    assert [tuple(row) for row in top_refused(client, "frl", 60, 5)] == [("default", "fan", 2)]
    disconnect_sync(client)


def test_the_record_is_bounded_and_expires(redis_url, monkeypatch):
    monkeypatch.setattr(most_refused_keys, "MAX_COUNTED", 700)
    client = connect_sync(redis_url)
    refused = RefusedKeys(lambda: connect_sync(redis_url), "frl")
    for number in range(1000):
        refused.count("fan", f"bot{number}")
    refused.close()
    [name] = client.keys("frl!refused:*")
    assert client.zcard(name) == most_refused_keys.MAX_KEPT
    assert 0 < client.pttl(name) <= most_refused_keys.KEPT_S * 1000
    assert top_refused(client, "frl", 60, 1)[0] == ("fan", most_refused_keys.OTHERS, 300)
    disconnect_sync(client)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_counts_for_itself(redis_url):
    refused = RefusedKeys(lambda: connect_sync(redis_url), "frl")
    refused.count("fan", "parent")
    child = os.fork()
    if child == 0:
        refused.count("fan", "child")
        refused.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    refused.close()
    client = connect_sync(redis_url)
    assert {row.key: row.refusals for row in top_refused(client, "frl", 60, 5)} == {"parent": 1, "child": 1}
    disconnect_sync(client)


def test_what_redis_does_not_take_is_dropped_and_nothing_fails():
    refused = RefusedKeys(lambda: connect_sync("redis://127.0.0.1:1/0"), "frl")
    refused.count("fan", "bot")
    refused.close()


def test_recording_is_off_by_default_and_needs_a_shared_store(redis_url):
    with Limiter("1/hour", store=redis_url, deadline_s=5.0) as limiter:
        for _ in range(3):
            limiter.check("fan")
    with redis.Redis.from_url(redis_url) as client:
        assert client.keys("frl!*") == []
    with pytest.raises(ConfigError, match="record_refusals needs a store that others can read"):
        Limiter("1/hour", record_refusals=True)


def test_long_and_strange_keys_are_readable():
    assert readable_key(b"*") == "everybody"
    assert readable_key("a\0b") == "a?b"
    assert readable_key(b"#" + bytes(32)) == "#0000000000000000"
    assert readable_key(b"10:endpoint@a9:GET /a:/b") == "endpoint=GET /a:/b"
