"""An HTTP client that keeps to somebody else's limit: each request waits for its turn, and a 429 is obeyed.

Start it with `python examples/limiter/httpx_client.py https://api.example.com/items 5`.
"""

import asyncio
import sys
import time

import httpx

from frontrow.limits.outgoing.httpx_transport import AsyncPacedTransport


async def fetch(url: str, count: int, rate: str = "10/second") -> list[int]:
    """Ask `count` times, all at once; the transport sends them at the allowed pace."""
    async with httpx.AsyncClient(transport=AsyncPacedTransport(rate, timeout_s=60.0)) as client:
        answers = await asyncio.gather(*(client.get(url) for _ in range(count)))
    return [answer.status_code for answer in answers]


if __name__ == "__main__":
    began_s = time.monotonic()
    print(asyncio.run(fetch(sys.argv[1], int(sys.argv[2]))), f"in {time.monotonic() - began_s:.1f} s")
