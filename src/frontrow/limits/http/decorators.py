"""`@limited("10/minute", key=…)` for any function, sync or async. A refused call raises `Throttled` or waits."""

import asyncio
import functools
import inspect
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ParamSpec, TypeVar, cast

from frontrow.core.errors import ConfigError
from frontrow.limits.limiter import Limiter
from frontrow.limits.quota import Decision, Quota, Throttled
from frontrow.limits.rule_list import RuleLike, to_rules

P = ParamSpec("P")
R = TypeVar("R")

EVERYBODY = "everybody"


def limited(
    quota: RuleLike | Sequence[RuleLike] | Limiter,
    *,
    key: Callable[..., Any] | None = None,
    cost: int | Callable[..., int] = 1,
    wait_s: float = 0.0,
    name: str | None = None,
    algorithm: str | None = None,
    burst: int | None = None,
    **limiter_options: Any,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Limit the calls of a function. `key` is called with the call's arguments and returns who is limited (default:
    everybody together). With `wait_s` a call waits up to that long. Without it, a refused call raises `Throttled`.

    `limiter_options` (`store`, `clock`, `on_store_down`, …) go to the `Limiter`, which is the function's `.limiter`.
    """
    if key is not None and not callable(key):
        raise ConfigError(
            f"key must be a function of the call's arguments, like key=lambda user_id: user_id; not {key!r}"
        )
    if wait_s < 0:
        raise ConfigError(f"wait_s must be 0 or more seconds, like 2.0; not {wait_s!r}", param="wait_s")

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        limiter = _limiter(quota, name or function.__name__, algorithm, burst, limiter_options)

        def key_and_cost(args: Any, kwargs: Any) -> tuple[Any, int]:
            who = EVERYBODY if key is None else key(*args, **kwargs)
            return who, cost(*args, **kwargs) if callable(cost) else cost

        if inspect.iscoroutinefunction(function):
            wrapper = _async(function, limiter, key_and_cost, wait_s)
        else:
            wrapper = _sync(function, limiter, key_and_cost, wait_s)
        wrapper.limiter = limiter
        return cast(Callable[P, R], wrapper)

    return decorate


def _limiter(
    quota: RuleLike | Sequence[RuleLike] | Limiter,
    name: str,
    algorithm: str | None,
    burst: int | None,
    options: dict[str, Any],
) -> Limiter:
    if isinstance(quota, Limiter):
        if options or algorithm or burst:
            raise ConfigError("a ready Limiter takes no further options; give them to the Limiter")
        return quota
    if isinstance(quota, str):
        quota = Quota.parse_all(quota, algorithm=algorithm, burst=burst)
    elif algorithm or burst:
        raise ConfigError("a ready Quota has its algorithm and burst; give them to the Quota")
    rule_name = _rule_name(name)
    return Limiter(to_rules(quota, rule_name, rule_name + "-{}"), **options)


def _rule_name(name: str) -> str:
    plain = "".join(char if char.isascii() and (char.isalnum() or char in "_.-") else "_" for char in name)[:60]
    return plain if plain[:1].isalpha() else f"f{plain}"


def _sync(
    function: Callable[..., R], limiter: Limiter, key_and_cost: Callable[..., tuple[Any, int]], wait_s: float
) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> R:
        who, cost = key_and_cost(args, kwargs)
        if wait_s:
            limiter.acquire(who, cost=cost, timeout_s=wait_s)
            return function(*args, **kwargs)
        decision = limiter.check(who, cost=cost)
        if not decision.allowed:
            raise refusal(decision)
        if decision.delay_us:
            time.sleep(decision.delay_s)
        return function(*args, **kwargs)

    return call


def _async(
    function: Callable[..., Awaitable[R]], limiter: Limiter, key_and_cost: Callable[..., tuple[Any, int]], wait_s: float
) -> Any:
    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> R:
        who, cost = key_and_cost(args, kwargs)
        if wait_s:
            await limiter.aacquire(who, cost=cost, timeout_s=wait_s)
            return await function(*args, **kwargs)
        decision = await limiter.acheck(who, cost=cost)
        if not decision.allowed:
            raise refusal(decision)
        if decision.delay_us:
            await asyncio.sleep(decision.delay_s)
        return await function(*args, **kwargs)

    return call


def refusal(decision: Decision) -> Throttled:
    """The error that a refused call raises."""
    message = f"the limit of {decision.limit} ({decision.rule}) is used up; try again in {decision.retry_after_s:.3f} s"
    return Throttled(message, decision)
