"""`@limited("10/minute", key=…)` for any function, sync or async. A refused call raises `Throttled` or waits."""

import asyncio
import functools
import inspect
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar, Unpack, cast

from frontrow.core.errors import ConfigError
from frontrow.limits.durations import LONGEST_S, check_seconds
from frontrow.limits.limiter import Limiter
from frontrow.limits.options import LimiterOptions
from frontrow.limits.quota import Algorithm, Decision, Quota, Rule, Throttled
from frontrow.limits.rules import RuleLike, to_rules

P = ParamSpec("P")
R = TypeVar("R")

EVERYBODY = "everybody"
_definitions: dict[str, list[object]] = {}  # where each function of a qualified name is defined, first come first


def limited(
    quota: RuleLike | Sequence[RuleLike] | Limiter,
    *,
    key: Callable[..., Any] | None = None,
    cost: int | Callable[..., int] = 1,
    wait_s: float = 0.0,
    name: str | None = None,
    algorithm: Algorithm | None = None,
    burst: int | None = None,
    **limiter_options: Unpack[LimiterOptions],
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Limit the calls of a function. `key` is called with the call's arguments and returns who is limited (default:
    everybody together). With `wait_s` a call waits up to that long. Without it, a refused call raises `Throttled`.

    `limiter_options` (`store`, `clock`, `on_store_down`, …) go to the `Limiter`, which is the function's `.limiter`.
    In a shared store each function counts by its module and qualified name. Functions that shall share get one `name`.
    """
    given: Any = quota
    if callable(given):
        name_of = getattr(given, "__qualname__", repr(given))
        message = f'{name_of} stands where a quota belongs: limited needs brackets, like @limited("10/minute")'
        raise ConfigError(message, param="quota")
    if key is not None and not callable(key):
        raise ConfigError(
            f"key must be a function of the call's arguments, like key=lambda user_id: user_id; not {key!r}"
        )
    check_seconds("wait_s", wait_s, 0, LONGEST_S, example=2)

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        namespace = "" if name else _function_namespace(function)
        limiter = _limiter(quota, name or function.__name__, namespace, algorithm, burst, {**limiter_options})

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
    namespace: str,
    algorithm: Algorithm | None,
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
    rules = to_rules(quota, rule_name, rule_name + "-{}")
    given = [quota] if isinstance(quota, Rule) else quota if isinstance(quota, Sequence) else ()
    return Limiter([rule if rule in given else replace(rule, namespace=namespace) for rule in rules], **options)


def rules_of_function(quota: str, function: str) -> list[Rule]:
    """The rules of a function that `@limited(quota)` decorates, by its module and qualified name."""
    name = _rule_name(function.rpartition(".")[2].partition("#")[0])
    return [replace(rule, namespace=function) for rule in to_rules(quota, name, name + "-{}")]


def _function_namespace(function: Callable[..., Any]) -> str:
    """What tells this function from all others, the same on every server: its module, its qualified name and, if that
    name is defined more than once, which definition it is."""
    name = f"{function.__module__}.{function.__qualname__}"
    code = getattr(inspect.unwrap(function), "__code__", None)
    place = (code.co_filename, code.co_firstlineno) if code is not None else None
    places = _definitions.setdefault(name, [])
    if place not in places:
        places.append(place)
    at = places.index(place)
    return f"{name}#{at + 1}" if at else name


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
