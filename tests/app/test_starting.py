"""Starting: wrong settings stop it with one sentence naming the setting; secrets show nowhere; it stops in order."""

import subprocess
import sys
from dataclasses import replace
from email import message_from_bytes
from email.policy import default as default_policy
from pathlib import Path

import httpx
import pytest

from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.core.clock import SystemClock
from frontrow.core.errors import ConfigError
from frontrow.settings.platform import (
    LedgerSettings,
    PlatformSettings,
    RedisSettings,
    SecretSettings,
    ServerSettings,
    StripeSettings,
    read_settings,
)
from tests.boxoffice.plan_samples import small_plan
from tests.support.eventually import eventually
from tests.support.processes import Process
from tests.support.servers import Valkey
from tests.web.api.support import EVENT_ID, SECRET, a_server, put_into, settings_for

CANARY = "canary-" + "x" * 40


@pytest.mark.parametrize(
    ("sections", "named"),
    [
        ({}, "secret.key"),
        ({"secret": SecretSettings("short")}, "secret.key"),
        ({"secret": SecretSettings(SECRET)}, "stripe.key"),
        ({"secret": SecretSettings(SECRET), "stripe": StripeSettings("sk_live")}, "stripe.webhook_secret"),
        ({"secret": SecretSettings(SECRET), "stripe": StripeSettings("sk_1", "whsec_1")}, "stripe.publishable_key"),
        ({"server": ServerSettings(demo=True), "stripe": StripeSettings("sk_1", "whsec_1")}, "stripe.publishable_key"),
        ({"server": ServerSettings(demo=True), "stripe": StripeSettings(publishable_key="pk_1")}, "stripe.key"),
        ({"server": ServerSettings(demo=True), "stripe": StripeSettings("", "whsec_1")}, "stripe.key"),
        ({"secret": SecretSettings(SECRET), "stripe": StripeSettings("sk_1", "whsec_1", "sk_1")}, "pk_"),
        (
            {"secret": SecretSettings(SECRET), "stripe": StripeSettings("rk_live_1", "whsec_1", "pk_test_1")},
            "different modes",
        ),
        ({"server": ServerSettings(demo=True, workers=2)}, "server.workers"),
        ({"server": ServerSettings(demo=True), "redis": RedisSettings("redis://x")}, "redis.url"),
        ({"server": ServerSettings(demo=True), "ledger": LedgerSettings("postgresql://x/y")}, "redis.url"),
        (
            {
                "server": ServerSettings(demo=True),
                "redis": RedisSettings("redis://x"),
                "ledger": LedgerSettings("postgresql://x/y"),
            },
            "secret.key",
        ),
    ],
)
def test_settings_that_cannot_go_together_are_refused_by_name(sections, named):
    with pytest.raises(ConfigError, match=named) as raised:
        PlatformSettings(**sections)
    assert "\n" not in raised.value.message


@pytest.mark.parametrize(
    ("env", "named"),
    [
        ({"FRONTROW_SERVER_PORT": "a"}, "FRONTROW_SERVER_PORT"),
        ({"FRONTROW_SERVER_WORKERS": "0"}, "FRONTROW_SERVER_WORKERS"),
        ({"FRONTROW_ROOM_HUMAN": "guess"}, "FRONTROW_ROOM_HUMAN"),
    ],
)
def test_a_wrong_variable_is_named(env, named):
    with pytest.raises(ConfigError, match=named):
        read_settings(None, env)


def test_an_unknown_section_and_an_unknown_setting_are_named(tmp_path):
    path = tmp_path / "f.toml"
    path.write_text("[sevrer]\nport = 1\n")
    with pytest.raises(ConfigError, match="sevrer"):
        read_settings(path, {})
    path.write_text("[server]\nprot = 1\n")
    with pytest.raises(ConfigError, match=r"server\.prot"):
        read_settings(path, {})


def test_secrets_show_in_no_repr():
    settings = PlatformSettings(
        secret=SecretSettings(CANARY), stripe=StripeSettings(CANARY, CANARY, "pk_1"), server=ServerSettings(demo=True)
    )
    assert CANARY not in repr(settings)


def test_serve_refuses_to_start_without_a_secret_key(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "frontrow.cli.main", "serve", "--port", "0"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PATH": ""},
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("frontrow serve: secret.key is not set")
    assert len(done.stderr.strip().splitlines()) == 1


async def test_a_server_told_to_stop_says_so_first_and_ends_in_order(tmp_path):
    """Graceful drain: /readyz turns 503, open streams end properly, the exit code is 0, no secret is in the log.

    Before that, the link of a mail leads to the port that the system chose.
    """
    server = Process(["serve", "--port", "0"], tmp_path, FRONTROW_SECRET_KEY=CANARY)
    try:
        url = server.listening()
        async with httpx.AsyncClient(base_url=url, timeout=60) as client:
            await server.alive()
            assert (await client.get("/readyz")).status_code == 200
            assert (await client.get("/docs")).headers["content-type"].startswith("text/html")
            assert (await client.post("/v1/auth/link", json={"email": "ada@example.org"})).is_success
            assert f"{url}/sign-in#" in await mailed(tmp_path / "outbox")
    finally:
        code = server.stop()
    assert code == 0
    assert CANARY not in (tmp_path / "errors.log").read_text()


def written(outbox: Path) -> list[str]:
    letters = [message_from_bytes(path.read_bytes(), policy=default_policy) for path in outbox.glob("*.eml")]
    return [str(letter.get_body(("plain",)).get_content()) for letter in letters]


async def mailed(outbox: Path) -> str:
    """The text of the first mail, once it is written."""
    return (await eventually(lambda: written(outbox)))[0]


@pytest.mark.parametrize(("host", "public_url"), [("127.0.0.1", "http://127.0.0.1:8123"), ("::1", "http://[::1]:8123")])
def test_without_a_public_url_links_lead_to_where_the_server_listens(host, public_url):
    settings = PlatformSettings(server=ServerSettings(demo=True, host=host, port=0))
    assert settings.with_port(8123).public_url == public_url


async def test_a_draining_server_is_not_ready(tmp_path):
    async with a_server(tmp_path) as (platform, url), httpx.AsyncClient(base_url=url) as client:
        assert (await client.get("/readyz")).json()["ok"] is True
        platform.server.draining.set()
        stopping = await client.get("/readyz")
        assert (stopping.status_code, stopping.json()["code"]) == (503, "not_ready")


def test_workers_above_one_need_shared_stores(tmp_path):
    settings = settings_for(tmp_path)
    with pytest.raises(ConfigError, match=r"server\.workers"):
        replace(settings, server=replace(settings.server, workers=2))


async def test_a_server_whose_redis_is_away_waits_for_it_and_answers_503_meanwhile(tmp_path, postgres_ledger_url):
    """F1: restarted while Redis was away it once died, and later answered 404 for every event."""
    ledger = await open_ledger(postgres_ledger_url)
    await put_into(ledger, SystemClock()(), small_plan())
    await ledger.aclose()
    redis = Valkey()
    stores = {"FRONTROW_REDIS_URL": redis.url, "FRONTROW_LEDGER_URL": postgres_ledger_url}
    server = Process(["serve", "--port", "0"], tmp_path, **stores)
    try:
        async with httpx.AsyncClient(base_url=server.listening(), timeout=60) as client:
            refused = await client.get(f"/v1/events/{EVENT_ID}")
            assert (refused.status_code, refused.json()["code"]) == (503, "not_ready")
            assert int(refused.headers["retry-after"]) > 0
            redis.start()
            await server.ready()
            assert (await client.get(f"/v1/events/{EVENT_ID}")).status_code == 200
    finally:
        server.stop()
        redis.close()
    log = (tmp_path / "errors.log").read_text()
    assert "waiting for the stores" in log
    assert "Traceback" not in log
