"""Adyen's form (Drop-in) on the checkout page: where its files are, and when a page shows it.

Files, their hashes, hosts and names are those of Adyen's public documentation and examples. The addresses follow from
`adyen.api`: those of its test environment, or of its European live one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from frontrow.boxoffice.payments.model.payment_methods import PAYPAL, PaymentMethod
from frontrow.web.platform.platform import Platform
from frontrow.web.site.event_display import Shown
from frontrow.web.site.security_headers import ADYEN_LIVE, ADYEN_TEST, PagePolicy

VERSION: Final = "6.6.0"
SCRIPT_HASH: Final[str] = "sha384-Oa2agnE48SFtDpzmEK8mbhbmEA1X4WH6afLBbypUhFU8oDhJWAIGvLQTBrqgls4A"
STYLE_HASH: Final[str] = "sha384-UAD/QSv1wQyfA60svLYxJ0OJAPl9TpkksO+HEOUX8YJcD+MYzNmn+q4XL7YBeHcr"
# PayPal's button needs scripts, frames and windows of PayPal on our page. Adyen's own page has it.
NOT_IN_FORM: Final = frozenset({PAYPAL.id})


@dataclass(frozen=True, slots=True)
class DropIn:
    """What the page needs to show the form."""

    client_key: str
    environment: str  # "test" or "live"
    country: str

    @property
    def script_hash(self) -> str:
        return SCRIPT_HASH

    @property
    def style_hash(self) -> str:
        return STYLE_HASH

    @property
    def files(self) -> str:
        return f"https://checkoutshopper-{self.environment}.cdn.adyen.com/checkoutshopper/sdk/{VERSION}"

    @property
    def policy(self) -> PagePolicy:
        return ADYEN_TEST if self.environment == "test" else ADYEN_LIVE


def drop_in_of(platform: Platform, methods: Sequence[PaymentMethod], one: Shown) -> DropIn | None:
    """The form for a booking with these methods; None: the fan pays on Adyen's page, or not at Adyen.

    The form insists on a country, by which it chooses what it shows: that of the venue.
    """
    access = platform.settings.adyen.access
    country = one.venue.country if one.venue else ""
    if platform.box_office.provider.name != "adyen" or not access.client_key or not country:
        return None
    if not methods or any(method.id in NOT_IN_FORM for method in methods):
        return None
    return DropIn(access.client_key, "test" if access.is_test else "live", country)
