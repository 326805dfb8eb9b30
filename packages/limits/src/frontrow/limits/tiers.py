"""`Tiers`: which tier each client belongs to. Use it as `tier_of` of a rule or a middleware.

    tiers = Tiers({"user:42": "gold"}, store="redis://…")
    await tiers.put("user:7", "gold")     # asyncio; every server knows it within a second
    tiers["user:7"] = "gold"              # the same for blocking code

A client is a part of the key and its value: `user:42`. Without the part, the first of `part` is meant.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from frontrow.core.errors import ConfigError, InvalidInput
from frontrow.limits.options import check_options
from frontrow.limits.stores.deadline import check_deadline
from frontrow.limits.stores.protocol import DEFAULT_PREFIX, check_prefix, names_memory, names_sql

_OPTIONS = ("members", "part", "store", "name", "prefix", "deadline_s", "credential_provider")
_TIER = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class Tiers:
    """The tier of each client: what was put into the store, or else what `members` says.

    `part` names the parts of a key that have tiers. With a Redis `store` (a URL, or your own clients of redis-py), all
    servers with the same `name` share the tiers, each with a copy of its own that is at most a second old.
    """

    def __init__(
        self,
        members: Mapping[str, str] | None = None,
        *,
        part: str | Sequence[str] = "user",
        store: Any = "memory://",
        name: str = "default",
        prefix: str = DEFAULT_PREFIX,
        deadline_s: float = 0.25,
        **store_options: Any,
    ) -> None:
        check_prefix(prefix)
        check_deadline(deadline_s)
        if not re.fullmatch(r"[A-Za-z0-9_.:-]{1,64}", name):
            raise ConfigError(f"name must be 1 to 64 letters, digits, _ . : or -, not {name!r}", param="name")
        check_options("Tiers", store_options, _OPTIONS)
        if members is not None and not isinstance(members, Mapping):
            raise ConfigError(f"members must be like {{'user:42': 'gold'}}, not {members!r:.80}", param="members")
        self._put: dict[str, str] = {}
        self._stored = None
        self._is_fixed = names_sql(store)  # the members of the file count, and cannot be changed while running
        if not names_memory(store) and not self._is_fixed:
            from frontrow.limits.stores.stored_tiers import StoredTiers

            self._stored = StoredTiers(store, name, prefix=prefix, deadline_s=deadline_s, **store_options)
        self.assign(members or {}, part)

    # -- asking --------------------------------------------------------------------------------------------------

    def __call__(self, key: str | Mapping[str, str]) -> str | None:
        """The tier of the client with this key. None means the rule's own quota."""
        if isinstance(key, str):
            return self._find(self._client(key))
        for part in self._parts:
            value = key.get(part)
            if value and (tier := self._find(f"{part}:{value}")) is not None:
                return tier
        return None

    def _find(self, client: str) -> str | None:
        tier = self._put.get(client) if self._stored is None else self._stored.get(client)
        return self._members.get(client) if tier is None else tier

    # -- changing ------------------------------------------------------------------------------------------------

    async def put(self, client: str, tier: str) -> None:
        """Put a client into a tier. Every server knows it within a second. `StoreDown` if that failed."""
        client, tier = self._changeable(client), _checked_tier(tier)
        if self._stored is None:
            self._put[client] = tier
        else:
            await self._stored.aput(client, tier)

    async def remove(self, client: str) -> None:
        """Take a client out of the tier it was put into. With a Redis store, `members` decides again."""
        client = self._changeable(client)
        if self._stored is None:
            self._drop(client)
        else:
            await self._stored.aremove(client)

    def __setitem__(self, client: str, tier: str) -> None:
        """`put` for blocking code."""
        client, tier = self._changeable(client), _checked_tier(tier)
        if self._stored is None:
            self._put[client] = tier
        else:
            self._stored.put(client, tier)

    def __delitem__(self, client: str) -> None:
        """`remove` for blocking code."""
        client = self._changeable(client)
        if self._stored is None:
            self._drop(client)
        else:
            self._stored.remove(client)

    def _drop(self, client: str) -> None:
        self._put.pop(client, None)
        self._members.pop(client, None)

    def assign(self, members: Mapping[str, str], part: str | Sequence[str]) -> None:
        """Replace the members and parts that this process was configured with. What was put into the store stays."""
        parts = (part,) if isinstance(part, str) else tuple(part)
        if not parts or not all(isinstance(name, str) and name.isidentifier() for name in parts):
            raise ConfigError(f"part must name a part of the key, like 'user'; not {part!r}", param="part")
        self._parts = parts
        self._members = {self._client(client): _checked_tier(tier) for client, tier in members.items()}

    # -- closing -------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop following the store and close its blocking connections."""
        if self._stored is not None:
            self._stored.close()

    async def aclose(self) -> None:
        """`close`, and close the connections of the running event loop."""
        if self._stored is not None:
            await self._stored.aclose()

    def _changeable(self, client: str) -> str:
        if self._is_fixed:
            raise ConfigError(
                "a SQL store keeps no tiers; write members into the file, or use a Redis store", param="store"
            )
        return self._client(client)

    def _client(self, client: str) -> str:
        """The client as a part and its value. So no value can be mistaken for another part's."""
        if not isinstance(client, str) or not client:
            raise InvalidInput(f"a client is a non-empty string like 'user:42', not {client!r}", param="client")
        return client if client.partition(":")[0] in self._parts and ":" in client else f"{self._parts[0]}:{client}"


def _checked_tier(tier: str) -> str:
    if not isinstance(tier, str) or not _TIER.fullmatch(tier):
        raise InvalidInput(f"a tier is 1 to 64 letters, digits, _ . or -, like 'gold'; not {tier!r}", param="tier")
    return tier
