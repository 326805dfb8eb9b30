"""A Google service account as its key file has it, with a key of its own."""

from joserfc.jwk import RSAKey

from frontrow.boxoffice.adapters.channels.fcm import ServiceAccount

APP_KEY = RSAKey.generate_key(2048)


def service_account(url: str) -> ServiceAccount:
    """An account whose tokens come from this server."""
    key = APP_KEY.as_pem(private=True).decode()
    return ServiceAccount("fair", "push@fair.iam.gserviceaccount.com", key, f"{url}/token", "kid1")
