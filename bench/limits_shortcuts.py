"""`python -m bench.limits_shortcuts`: what each shortcut of the limiter saves. Prints one table per shortcut.

The specification in `limits/algorithms.py` is enough to decide. The compiled kernel, `plain_checks.py`, the Lua scripts
in `lua/fast` and the socket that is taken over from redis-py only make it faster. The docstrings of `algorithms.py` and
`redis_source.py` quote these figures. The contenders take turns, and the best turn counts.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from redis import Redis
from rich.console import Console
from rich.table import Table

from bench.limits_memory import KEY, frontrow
from bench.limits_redis import _busy_server_time_us
from bench.measure import cpu_us, options
from frontrow.limits import Limiter, Quota, Rule
from frontrow.limits.algorithms import SPECIFICATION
from frontrow.limits.stores import plain_checks, redis_script
from frontrow.limits.stores.memory import MemoryStore
from frontrow.limits.stores.protocol import StoreRequest
from frontrow.limits.stores.redis_blocking import Connection
from frontrow.limits.stores.redis_source import RedisSource
from tests.support.servers import Valkey

ALGORITHMS = ("fixed_window", "sliding_counter", "sliding_log", "token_bucket")
TURNS = 5
CHECKS = 10_000
CALLS = 5_000  # a multiple of the pipeline of bench.limits_redis
KEYS = 1_000
LIMIT, PERIOD_US = 100_000, 3_600_000_000
READ_STATE = {"sliding_log": "local packed = call('GETRANGE', key, '0', '55')\n"}
Figures = dict[str, float]


def keep_best(best: Figures, name: str, figure: float) -> None:
    best[name] = min(best.get(name, float("inf")), figure)


def specified_judge(quota: Quota) -> plain_checks.Judge:
    """The specification in the form of `plain_checks`."""
    decide = SPECIFICATION[quota.algorithm]

    def judge(state: Any, now_us: int, cost: int) -> plain_checks.Verdict | None:
        verdict, after = decide(quota, state, now_us, cost)
        return (*verdict, after)

    return judge


def in_memory(algorithm: str) -> Figures:
    """CPU per check of one hot key."""
    best: Figures = {}
    with patch.dict(plain_checks.JUDGES, dict.fromkeys(plain_checks.JUDGES, specified_judge)):
        specified = frontrow(algorithm, compiled=False)
    with patch.object(MemoryStore, "prepare_check", lambda *_: None):
        unprepared = frontrow(algorithm, compiled=False)
    contenders = {
        "kernel": frontrow(algorithm),
        "plain checks": frontrow(algorithm, compiled=False),
        "specification": specified,
        "unprepared": unprepared,
    }
    for _ in range(TURNS):
        for name, limiter in contenders.items():

            def run(count: int, check: Callable[[str], object] = limiter.check) -> None:
                for _ in range(count):
                    check(KEY)

            keep_best(best, name, cpu_us(run, batch=CHECKS // 10 if algorithm == "sliding_log" else CHECKS, rounds=1))
    return best


@contextmanager
def without_fast_scripts() -> Iterator[None]:
    """Scripts that only read the state where `lua/fast` decides."""
    read = redis_script._lua

    def read_without_fast(name: str) -> str:
        folder, _, state = name.rpartition("/")
        return READ_STATE.get(state, "local packed = call('GET', key)\n") if folder == "fast" else read(name)

    redis_script._check_script.cache_clear()
    with patch.object(redis_script, "_lua", read_without_fast):
        yield
    redis_script._check_script.cache_clear()


def in_the_server(server: Valkey, algorithm: str) -> Figures:
    """The server's time per check while more checks wait for it."""
    rule, requests = (
        Rule(algorithm, Quota(LIMIT, PERIOD_US, algorithm)),
        [StoreRequest((0,), (f"user:{n % KEYS}",)) for n in range(CALLS)],
    )
    with_fast = Limiter(rule, store=server.url, deadline_s=5.0, prefix="fast")
    with without_fast_scripts():
        without = Limiter(rule, store=server.url, deadline_s=5.0, prefix="whole")
    best: Figures = {}
    frames: dict[str, list[bytes]] = {}
    for name, limiter in {"with lua/fast": with_fast, "without": without}.items():
        assert limiter.check("user:0").source == "store", "the server knows the script now"
        store: Any = limiter._store._remote  # type: ignore[attr-defined]
        frames[name] = [store.frame((request,), with_source=False) for request in requests]
        limiter.close()
    for _ in range(TURNS):
        for name, each in frames.items():
            keep_best(best, name, _busy_server_time_us(server, each))
    return best


def over_a_connection(server: Valkey) -> Figures:
    """CPU per blocking call of a check's script."""
    with Limiter(Rule("r", Quota(10**8, PERIOD_US)), store=server.url, deadline_s=5.0) as limiter:
        assert limiter.check(KEY).source == "store", "the server knows the script now"
        store: Any = limiter._store._remote  # type: ignore[attr-defined]
        requests = (StoreRequest((0,), (KEY,)),)
        frame, words = store.frame(requests, with_source=False), store.command(requests, with_source=False)
    taken = Connection(RedisSource(server.url).open_blocking()[0])
    client = Redis.from_url(server.url, socket_timeout=5.0)
    pool = client.connection_pool
    connection = pool.connection_class(**pool.connection_kwargs)
    connection.connect()

    def call_connection() -> None:
        connection.send_packed_command([frame], check_health=False)
        connection.read_response(disable_decoding=True)

    contenders: dict[str, Callable[[], object]] = {
        "socket taken over": lambda: taken.call(5.0, frame),
        "redis-py's connection": call_connection,
        "redis-py's client": lambda: client.execute_command(*words),
    }
    best: Figures = {}
    for _ in range(TURNS):
        for name, call in contenders.items():

            def run(count: int, call: Callable[[], object] = call) -> None:
                for _ in range(count):
                    call()

            keep_best(best, name, cpu_us(run, batch=CHECKS // 2, rounds=1))
    taken.close()
    connection.disconnect()
    client.close()
    return best


def show(title: str, rows: dict[str, Figures]) -> None:
    names = list(next(iter(rows.values())))
    table = Table(title=title)
    for column in ("", *names):
        table.add_column(column, justify="right" if column else "left")
    for row, figures in rows.items():
        table.add_row(row, *(f"{figures[name]:.2f}" for name in names))
    Console().print(table)


def main() -> None:
    options(__doc__).parse_args()
    show("in memory, CPU µs per check", {algorithm: in_memory(algorithm) for algorithm in ALGORITHMS})
    with Valkey() as server:
        rows = {algorithm: in_the_server(server, algorithm) for algorithm in ALGORITHMS}
        show("Redis, the server's µs per check", rows)
        show("Redis, the client's CPU µs per call", {"one check": over_a_connection(server)})


if __name__ == "__main__":
    main()
