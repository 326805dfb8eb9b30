"""Keys of several servers: one set in the ledger, sealed with the secret key; another secret key does not start."""

import asyncio
import contextlib
from dataclasses import replace

import pytest

from frontrow.app.wiring import open_platform
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.core.errors import ConfigError
from frontrow.settings.platform import LedgerSettings, PlatformSettings, RedisSettings, SecretSettings
from frontrow.settings.server import ServerSettings
from frontrow.shared.derived_keys import Secrets
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.web.platform.platform_keys import open_keys, rotate_keys
from tests.web.api.support import SECRET, room_keys

NOW = 1_800_000_000_000_000
KEY = Secrets(SECRET.encode()).key("keys")


def settings(folder, url: str, redis_url: str = "redis://unused", secret: str = SECRET) -> PlatformSettings:
    folder.mkdir(exist_ok=True)
    return PlatformSettings(
        server=ServerSettings(demo=True, folder=str(folder)),
        secret=SecretSettings(secret),
        ledger=LedgerSettings(url),
        redis=RedisSettings(redis_url),
    )


@contextlib.asynccontextmanager
async def a_ledger(url: str):
    ledger = await open_ledger(url)
    try:
        yield ledger
    finally:
        await ledger.aclose()


@pytest.fixture
def cheap_keys(monkeypatch):
    """An RSA key costs more than all the rest here; each call still gives other ones."""
    made = iter(range(100))
    one = room_keys()
    secrets = lambda: bytes([next(made)]) * 32  # noqa: E731
    monkeypatch.setattr(RoomKeys, "generate", lambda: replace(one, place_secrets=(secrets(),), master_secret=secrets()))


async def test_f5_servers_that_start_at_once_on_one_ledger_get_the_same_keys(tmp_path, postgres_ledger_url, cheap_keys):
    async with a_ledger(postgres_ledger_url) as ledger:
        folders = [tmp_path / f"machine-{number}" for number in range(8)]
        found = await asyncio.gather(
            *(open_keys(settings(folder, postgres_ledger_url), ledger, KEY, NOW) for folder in folders)
        )
        assert len({keys.room.packed() for keys in found}) == 1
        assert len({keys.tickets.public for keys in found}) == 1
        assert not any(list(folder.iterdir()) for folder in folders), "nothing is kept in a folder"
        kept = await ledger.keys.find("room")
        assert kept is not None
        assert found[0].room.master_secret.hex() not in kept, "sealed"
        assert "PRIVATE" not in kept


async def test_keys_that_a_server_has_in_its_folder_move_into_the_ledger_once(
    tmp_path, postgres_ledger_url, cheap_keys
):
    """What was signed before the upgrade stays good."""
    async with a_ledger(postgres_ledger_url) as ledger:
        old = tmp_path / "old"
        (old / "room").mkdir(parents=True)
        room_keys().save(old / "room")
        first = await open_keys(settings(old, postgres_ledger_url), ledger, KEY, NOW)
        second = await open_keys(settings(tmp_path / "new", postgres_ledger_url), ledger, KEY, NOW)
        assert first.room.packed() == second.room.packed() == room_keys().packed()


async def test_another_secret_key_is_one_sentence_and_no_start(tmp_path, postgres_ledger_url, redis_url, cheap_keys):
    async with a_ledger(postgres_ledger_url) as ledger:
        await open_keys(settings(tmp_path / "first", postgres_ledger_url), ledger, KEY, NOW)
    other = settings(
        tmp_path / "second", postgres_ledger_url, redis_url, secret="another secret key, as long as the first"
    )
    with pytest.raises(ConfigError, match=r"secret\.key is not the one"):
        async with open_platform(other):
            pass


async def test_rotated_keys_sign_anew_and_what_the_old_ones_signed_stays_good(
    tmp_path, postgres_ledger_url, cheap_keys
):
    async with a_ledger(postgres_ledger_url) as ledger:
        with pytest.raises(ConfigError, match="no keys yet"):
            await rotate_keys(ledger, KEY, NOW)
        before = await open_keys(settings(tmp_path / "a", postgres_ledger_url), ledger, KEY, NOW)
        await rotate_keys(ledger, KEY, NOW)
        after = await open_keys(settings(tmp_path / "b", postgres_ledger_url), ledger, KEY, NOW)
        assert after.room.place_secrets[0] != before.room.place_secrets[0]
        assert after.room.place_secrets[1:] == before.room.place_secrets
        assert after.room.master_secret == before.room.master_secret, "draws and codes are made from it"
        assert after.tickets.public != before.tickets.public
        message = b"a ticket of yesterday"
        assert after.tickets.verifying.signed(before.tickets.kid, message, before.tickets.sign(message))
