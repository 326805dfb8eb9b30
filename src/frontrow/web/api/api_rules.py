"""The rules of `[limits]` in frontrow.toml, applied to the API (B17): by path, user, API key, organiser and address.

They come on top of the limits per person and per address, which every request meets first. The guard of the routes
checks them, because only there it is known who asks. So a route that a rule applies to is not answered by the fast path
(`applies_to`). The counts are in Redis, one by one and exact, or in memory without it. Who is in which tier (the plan
of an API key, for example) is in the file, and in the same store.
"""

import asyncio
from typing import Any, Final, cast

from frontrow.core.errors import ConfigError
from frontrow.limits import StoreDown, Tiers
from frontrow.limits.config import LimitsFile, parts_with_tiers
from frontrow.limits.http.asgi import SCOPES
from frontrow.limits.http.caller_identity import arun_steps
from frontrow.limits.http.request_limits import RequestLimits
from frontrow.limits.quota import OnStoreDown
from frontrow.limits.rules import RuleBook
from frontrow.waitingroom.entrance.person_and_address_limits import TooManyRequests, counted
from frontrow.web.http.access import Caller, Connection, method_of

ALWAYS_OPEN: Final = ("/v1/webhooks/**", "/v1/channels/**")  # of providers: money and STOP must come through


class ApiRules:
    """Checks requests by the rules of the settings."""

    def __init__(self, found: LimitsFile, *, store: str, trusted_proxies: tuple[str, ...]) -> None:
        for rule in found.rules:
            if rule.statuses:
                message = (
                    f"limits.rules: {rule.name}: statuses is for apps that use the limiter by itself; leave it out"
                )
                raise ConfigError(message, param="statuses")
        settings = found.settings
        self._tiers = Tiers(found.members, part=parts_with_tiers(found.rules), store=store, name="api")
        book = RuleBook(found.rules)
        self._rules = book.current
        self._limits = RequestLimits(
            book,
            SCOPES.inside(lambda connection: connection.scope, user=lambda connection: None),
            identify={"user": _user, "api_key": _api_key, "organiser": _organiser},
            tier_of=self._tiers,
            store=store,
            prefix="api",
            trusted_proxies=trusted_proxies,
            exempt_addresses=settings.exempt_addresses,
            exempt_users=settings.exempt_users,
            exempt_paths=(*settings.exempt_paths, *ALWAYS_OPEN),
            on_store_down=cast(OnStoreDown, settings.on_store_down),
            deadline_s=settings.deadline_ms / 1000,
        )

    def applies_to(self, method: str, path: str) -> bool:
        """Whether a rule applies to requests of this method and path."""
        return bool(self._rules.matching(method, path))

    async def check(self, connection: Connection) -> None:
        """Count a request by the rules that apply to it. Raises `TooManyRequests`."""
        method, path = method_of(connection), connection.scope["path"]
        limits = self._limits
        route = limits.routes.get((method, path, "")) or limits.add_route(method, path)
        if not route.matches:
            return
        key = await arun_steps(route.key_steps(connection))
        if key is None:  # exempt
            return
        decision = (await limits.adecide(route, key, method)).decision
        noted = counted.get()
        if noted is not None:
            noted.append(decision)
        if decision.source == "closed":
            raise StoreDown("this cannot be counted now; try again", retry_after_s=decision.retry_after_s)
        if not decision.allowed:
            raise TooManyRequests(f"too many requests ({decision.rule})", retry_after_s=decision.retry_after_s)
        if decision.delay_us:
            await asyncio.sleep(decision.delay_s)

    async def aclose(self) -> None:
        await self._limits.aclose()
        await self._tiers.aclose()


async def _caller(connection: Connection) -> Caller:
    """Who asks: as the guard found it, or found here for endpoints that check by themselves."""
    found: Any = connection.state.get("caller")
    if found is None:
        found = await connection.app.state.platform.callers.find(method_of(connection), connection.headers)
    caller: Caller = found
    return caller


async def _user(connection: Connection) -> str | None:
    return (await _caller(connection)).person or None


async def _api_key(connection: Connection) -> str | None:
    caller = await _caller(connection)
    return caller.id if caller.kind == "key" else None


async def _organiser(connection: Connection) -> str | None:
    return (await _caller(connection)).organiser_id or None
