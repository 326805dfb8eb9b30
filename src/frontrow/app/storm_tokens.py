"""What `frontrow storm-token` does: the operator's consent to a storm, and a made-up event for it."""

from pathlib import Path

from frontrow.app.made_up_events import put_on_sale
from frontrow.core.clock import US_PER_S, SystemClock
from frontrow.core.derived_keys import Secrets
from frontrow.core.errors import ConfigError
from frontrow.core.ids import Ids
from frontrow.settings.platform import PlatformSettings, read_settings
from frontrow.web.platform.storm_consent import StormConsent, write_consent


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


def _key_file(settings: PlatformSettings) -> Path:
    return settings.folder / "secret.key"
