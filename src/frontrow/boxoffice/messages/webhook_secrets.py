"""The secrets of organisers' webhooks, sealed in the ledger: somebody who only has the ledger cannot sign in our name.

A command that has no secret key stores a secret as it is. Every server seals what it finds unsealed when it starts.
"""

from typing import Final

from msgspec.structs import replace

from frontrow.boxoffice.messages.model.messages import Endpoint
from frontrow.boxoffice.messages.ports.message_book import MessageBook
from frontrow.shared.vault import Vault

SEALED: Final = "sealed:"
SEALED_AT_ONCE: Final = 500
MAX_ROUNDS: Final = 1_000


class EndpointSecrets:
    """Seals and opens the secrets of webhooks. Without a vault they stay as they are."""

    def __init__(self, vault: Vault | None = None) -> None:
        self._vault = vault

    def seal(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint as the ledger keeps it."""
        if self._vault is None or endpoint.secret.startswith(SEALED):
            return endpoint
        return replace(endpoint, secret=SEALED + self._vault.seal(endpoint.secret, _purpose(endpoint)))

    def open(self, endpoint: Endpoint) -> str | None:
        """The secret that signs. None without the vault that sealed it. Raises `SealBroken` if it is another's."""
        if not endpoint.secret.startswith(SEALED):
            return endpoint.secret
        if self._vault is None:
            return None
        return self._vault.open(endpoint.secret.removeprefix(SEALED), _purpose(endpoint))

    async def seal_existing(self, book: MessageBook, now_us: int) -> int:
        """Seal every secret that is not sealed yet; how many there were."""
        done = 0
        for _ in range(MAX_ROUNDS):
            found = await book.unsealed_endpoints(SEALED_AT_ONCE)
            for endpoint in found:
                await book.seal_endpoint(endpoint, self.seal(endpoint).secret, now_us)
            done += len(found)
            if len(found) < SEALED_AT_ONCE:
                break
        return done


def _purpose(endpoint: Endpoint) -> str:
    return f"webhook:{endpoint.id}"
