"""What `frontrow storm-token` does: the operator's consent to a storm, and a made-up event for it."""

import asyncio
import http.client
import json
import urllib.error
import urllib.request
from pathlib import Path

from frontrow.app.made_up_events import put_on_sale
from frontrow.core.clock import US_PER_S, SystemClock
from frontrow.core.errors import ConfigError
from frontrow.settings.platform import PlatformSettings, read_settings
from frontrow.shared.derived_keys import Secrets
from frontrow.shared.ids import Ids
from frontrow.web.platform.storm_consent import StormConsent, write_consent

OPEN_WITHIN_S = 60.0
LOOK_EVERY_S = 0.2
ANSWER_WITHIN_S = 5.0


def read_server_settings(config: str | None, folder: str | None) -> PlatformSettings:
    """The settings of the server; its secret key must be found, in them or (a demo's) in its folder."""
    settings = read_settings(config, folder=folder, demo=True)  # a demo's server needs fewer settings
    if not settings.secret.key and not _key_file(settings).exists():
        raise ConfigError(
            f"there is no secret key, in the settings or in {_key_file(settings)}; run this where the server "
            "is set up, with its FRONTROW_SECRET_KEY, or name the folder of a server that began with --demo",
            param="secret.key",
        )
    return settings


def make_storm_token(settings: PlatformSettings, event_id: str, for_s: int) -> str:
    """A token for storms of this event, from now on for so many seconds."""
    secrets = Secrets(settings.secret.key.encode() if settings.secret.key else _key_file(settings).read_bytes())
    return write_consent(secrets, StormConsent(event_id, SystemClock()() // US_PER_S + for_s))


async def make_storm_event(settings: PlatformSettings, seats: int) -> str:
    """A made-up event in the server's ledger; its id."""
    event_id = Ids(SystemClock()).new("evt")
    await put_on_sale(settings.ledger_url, event_id, "A storm (made up, no real tickets)", seats)
    return event_id


async def wait_until_open(url: str, token: str) -> bool:
    """Whether the server at `url` consents to a storm within `OPEN_WITHIN_S`: it does once it sells the event."""
    ends_s = asyncio.get_running_loop().time() + OPEN_WITHIN_S
    while asyncio.get_running_loop().time() < ends_s:
        if await asyncio.to_thread(_consents, url, token):
            return True
        await asyncio.sleep(LOOK_EVERY_S)
    return False


def _consents(url: str, token: str) -> bool:
    body = json.dumps({"token": token}).encode()
    asked = urllib.request.Request(f"{url}/v1/storm", body, {"content-type": "application/json"})  # noqa: S310
    directly = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # as a storm does: no proxy sees the token
    try:
        with directly.open(asked, timeout=ANSWER_WITHIN_S):  # the operator's own server
            return True
    except urllib.error.HTTPError as error:  # not open yet
        error.close()
        return False
    except (OSError, http.client.HTTPException):  # not started yet
        return False


def _key_file(settings: PlatformSettings) -> Path:
    return settings.folder / "secret.key"
