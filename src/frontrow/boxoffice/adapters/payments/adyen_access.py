"""What a server needs to call Adyen and to believe its webhooks. Settings read it before anything is opened."""

import re
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from frontrow.core.errors import ConfigError

HMAC_KEY: Final = re.compile(r"[0-9A-Fa-f]{64}")
CLIENT_KEY: Final = re.compile(r"[A-Za-z]+_[A-Za-z0-9]+")
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
TEST_HOST: Final = "checkout-test.adyen.com"
EXAMPLE: Final = f"https://{TEST_HOST}/v71"


class AdyenAccess(NamedTuple):
    """Where Adyen is called, with which key, for which merchant account, and how its webhooks are signed.

    With a `client_key`, which every visitor sees, fans pay in Adyen's form on our page instead of on Adyen's page.
    """

    api: str = ""
    key: str = ""
    merchant_account: str = ""
    hmac_key: str = ""
    client_key: str = ""

    @property
    def is_test(self) -> bool:
        """Whether payments there move no real money. An address that is not known to be one of tests is live."""
        try:
            host = urlsplit(self.api).hostname
        except ValueError:
            return False
        return host == TEST_HOST or host in LOOPBACK

    def check(self) -> None:
        """Refuse what cannot work, in one sentence that names the setting."""
        for name, value in self._asdict().items():
            if not value and name != "client_key":
                raise ConfigError(f"adyen.{name} is not set; set FRONTROW_ADYEN_{name.upper()}", param=f"adyen.{name}")
        try:
            parts = urlsplit(self.api)
        except ValueError:
            parts = urlsplit("")
        if not parts.hostname or parts.scheme not in ("http", "https"):
            raise ConfigError(f"adyen.api must be an address like {EXAMPLE}", param="adyen.api")
        if parts.scheme != "https" and parts.hostname not in LOOPBACK:
            raise ConfigError("adyen.api must begin with https://", param="adyen.api")
        if not self.key.isascii() or any(letter.isspace() for letter in self.key):
            raise ConfigError("adyen.key must be an API key without spaces", param="adyen.key")
        if not HMAC_KEY.fullmatch(self.hmac_key):
            raise ConfigError("adyen.hmac_key must be the 64 hexadecimal digits of the webhook", param="adyen.hmac_key")
        begins = "test_" if self.is_test else "live_"
        if self.client_key and not (self.client_key.startswith(begins) and CLIENT_KEY.fullmatch(self.client_key)):
            raise ConfigError(
                f"adyen.client_key must be a client key of the environment of adyen.api, which begins with {begins}; "
                "every visitor sees it",
                param="adyen.client_key",
            )
