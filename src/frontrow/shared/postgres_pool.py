"""Borrows a connection of a pool, for work that ends in time whatever the server does.

When a call is given up, asyncpg asks the server to cancel it and waits for the server's word, for as long as a call may
take. A server that is cut off never gives it, so whoever waited 6 s for a read waited 6 s more to hand its connection
back. Here a server has `CANCEL_WITHIN_S` to confirm; then the connection is dropped.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import asyncpg

CANCEL_WITHIN_S: Final = 0.5


@contextlib.asynccontextmanager
async def borrow(pool: "asyncpg.Pool[asyncpg.Record]", within_s: float) -> AsyncIterator[Any]:
    """A connection. Waiting for it and the work with it raise `TimeoutError` after `within_s` together."""
    loop = asyncio.get_running_loop()
    ends_s = loop.time() + within_s
    async with asyncio.timeout_at(ends_s):
        connection = await pool.acquire()
    drop = loop.call_at(ends_s + CANCEL_WITHIN_S, connection.terminate)
    try:
        async with asyncio.timeout_at(ends_s):
            yield connection
    finally:
        try:
            with contextlib.suppress(Exception):  # the pool has dropped it, and the work is done or has its own error
                await pool.release(connection)
        finally:
            drop.cancel()


async def keep_as_is(connection: Any) -> None:
    """The `reset` of a pool whose users change a connection in transactions only: saves a round trip per use."""
