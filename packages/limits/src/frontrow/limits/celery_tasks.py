"""Limits for Celery tasks, shared by all workers. A task that is refused goes back to the broker until its time comes.

    @app.task
    @limited_task("10/minute", key=lambda user_id: user_id, store="redis://…")
    def send_report(user_id): ...

Waiting costs no worker and none of the task's own retries. It has a bound: after `give_up_after_s` the task fails with
`Throttled`. With `leaky_queue` a task is sent back only once, with the delay that the limiter computed. Otherwise it
comes again at the promised time, and again if others were faster.
"""

import functools
import random
import re
import time
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, Unpack, cast

from celery import Task, current_task
from celery.exceptions import Reject, Retry

from frontrow.core.errors import ConfigError
from frontrow.limits.durations import check_seconds
from frontrow.limits.limiter import Limiter
from frontrow.limits.options import LimiterOptions
from frontrow.limits.quota import Decision, Quota, Rule, Throttled

P = ParamSpec("P")
R = TypeVar("R")

EVERYBODY = "everybody"
LONGEST_WAIT_S = 30 * 86_400
SINCE_HEADER = "frontrow_waiting_since_s"  # when the task was refused for the first time
ALLOWED_HEADER = "frontrow_allowed"  # the task was allowed with a delay, which is now over
SPREAD = 0.1  # tasks that were refused together come back over this share of their wait


def limited_task(
    limits: str | Quota | Limiter,
    *,
    key: Callable[..., Any] | None = None,
    cost: int | Callable[..., int] = 1,
    give_up_after_s: float = 3600.0,
    name: str | None = None,
    **limiter_options: Unpack[LimiterOptions],
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Limit how often a task runs. `key` is called with the task's arguments and says who is limited (default:
    everybody together). Stands below `@app.task`.

    `name` is the rule's name (default: module and function). `limiter_options` (`store`, `on_store_down`, …) go to the
    `Limiter`, which is `task.run.limiter`. In eager mode the task waits, and a direct call raises `Throttled`.
    """
    given: Any = limits
    if callable(given):
        message = 'the task stands where a quota belongs: limited_task needs brackets, like @limited_task("10/minute")'
        raise ConfigError(message, param="limits")
    if key is not None and not callable(key):
        raise ConfigError(
            f"key must be a function of the task's arguments, like key=lambda user_id: user_id; not {key!r}",
            param="key",
        )
    check_seconds("give_up_after_s", give_up_after_s, 0, LONGEST_WAIT_S, example=3600)
    if isinstance(limits, Limiter) and (limiter_options or name):
        raise ConfigError("a ready Limiter takes no further options; give them to the Limiter")

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        limiter = limits if isinstance(limits, Limiter) else _make_limiter(limits, name, function, limiter_options)

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> R:
            given = args[1:] if args and isinstance(args[0], Task) else args  # a bound task's first argument is itself
            who = EVERYBODY if key is None else key(*given, **kwargs)
            units = cost(*given, **kwargs) if callable(cost) else cost
            _wait_for_turn(limiter, str(who) if type(who) is int else who, units, give_up_after_s)
            return function(*args, **kwargs)

        run.limiter = limiter  # type: ignore[attr-defined]
        return cast(Callable[P, R], run)

    return decorate


def _make_limiter(limits: str | Quota, name: str | None, function: Callable[..., Any], options: Any) -> Limiter:
    quota = Quota.parse(limits) if isinstance(limits, str) else limits
    full_name = f"{function.__module__}.{function.__qualname__}".replace("<locals>.", "")
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", name or full_name)[-60:]
    rule = Rule(plain if plain[0].isalpha() else f"t{plain}", quota, namespace="" if name else full_name)
    return Limiter([rule], **options)


def _wait_for_turn(limiter: Limiter, key: Any, cost: int, give_up_after_s: float) -> None:
    """Return when the task may run now. Otherwise raise: `Retry` after it was sent back, or `Throttled`."""
    task = current_task
    request = task.request if task else None
    headers = (request.headers if request is not None else None) or {}
    if headers.get(ALLOWED_HEADER):
        return
    if request is not None and request.is_eager:
        limiter.acquire(key, cost, timeout_s=give_up_after_s)
        return
    decision = limiter.check(key, cost)
    if decision.allowed and not decision.delay_us:
        return
    if request is None or request.called_directly:
        if not decision.allowed:
            raise _throttled(decision)
        time.sleep(decision.delay_s)
        return
    _send_back(task, request, headers, decision, give_up_after_s)


def _send_back(task: Any, request: Any, headers: dict[str, Any], decision: Decision, give_up_after_s: float) -> None:
    """Send the task to the broker again, to come back later."""
    since_s = float(headers.get(SINCE_HEADER, time.time()))
    wait_s = decision.delay_s if decision.allowed else decision.retry_after_s * (1 + random.random() * SPREAD)
    if not decision.allowed and time.time() - since_s + wait_s > give_up_after_s:
        raise _throttled(decision)
    marks = {SINCE_HEADER: since_s, ALLOWED_HEADER: decision.allowed}
    again = task.signature_from_request(request, countdown=wait_s, headers={**headers, **marks})
    try:
        again.apply_async()
    except Exception as error:
        raise Reject(error, requeue=False) from error
    raise Retry(message="the task waits for its rate limit", when=wait_s, sig=again)


def _throttled(decision: Decision) -> Throttled:
    message = f"the limit of {decision.limit} ({decision.rule}) is used up; try again in {decision.retry_after_s:.3f} s"
    return Throttled(message, decision)
