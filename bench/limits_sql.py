"""`python -m bench.limits_sql`: what a decision costs in PostgreSQL and in SQLite, beside Redis. No targets.

Prints, per store: CPU of this process per decision, decisions per second of one caller, and decisions per second of 200
tasks, which share calls. Every check is of one of 1,000 keys, by one rule or by three. `bench.limits_redis` says how
these are measured.
"""

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.table import Table

from bench.limits_redis import TASKS, _in_tasks, _one_after_the_other, rules
from bench.measure import options
from frontrow.limits import Limiter
from tests.support.servers import Postgres, Valkey


@contextmanager
def stores() -> Iterator[dict[str, str]]:
    with Valkey() as redis, Postgres() as postgresql, tempfile.TemporaryDirectory() as folder:
        yield {"Redis": redis.url, "PostgreSQL": postgresql.url, "SQLite": f"sqlite:///{folder}/limits.db"}


async def in_tasks(url: str, count: int, tasks: int) -> dict[str, float]:
    async with Limiter(rules(count), store=url, deadline_s=5.0) as limiter:
        return await _in_tasks(limiter.acheck, tasks, 2_000 if tasks == 1 else 4_000)


def measure(url: str, count: int) -> tuple[str, ...]:
    with Limiter(rules(count), store=url, deadline_s=5.0) as limiter:
        blocking = _one_after_the_other(limiter.check)
    one, many = (asyncio.run(in_tasks(url, count, tasks)) for tasks in (1, TASKS))
    figures = (blocking["cpu_us"], one["cpu_us"], many["cpu_us"])
    rates = (blocking["per_s"], one["per_s"], many["per_s"])
    return (*(f"{cpu_us:.0f}" for cpu_us in figures), *(f"{rate:,.0f}" for rate in rates))


def main() -> None:
    options(__doc__).parse_args()
    table = Table(title=f"CPU of this process in µs per decision, and decisions per second; {TASKS} tasks share calls")
    columns = ("blocking µs", "1 task µs", f"{TASKS} tasks µs", "blocking/s", "1 task/s", f"{TASKS} tasks/s")
    for heading in ("store", "rules", *columns):
        table.add_column(heading, justify="left" if heading == "store" else "right")
    with stores() as urls:
        for count in (1, 3):
            for name, url in urls.items():
                table.add_row(name, str(count), *measure(url, count))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
