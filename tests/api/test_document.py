"""The API does what its document says: schemathesis over every operation, all checks, as each kind of caller.

The live streams are left out: they answer for ever by design, and have tests of their own (test_doors).
"""

import asyncio
import os
import sys
from pathlib import Path

import httpx
import pytest

from tests.api.script import a_buyer
from tests.api.support import EVENT_ID, a_server

EXAMPLES = os.environ.get("FRONTROW_SCHEMATHESIS_EXAMPLES", "6")


async def headers_of(role: str, client: httpx.AsyncClient) -> dict[str, str]:
    """What a caller of this kind sends with every request."""
    if role == "nobody":
        return {}
    buyer = await a_buyer(client)
    return {"Authorization": f"Bearer {await buyer.enter(EVENT_ID)}"}


@pytest.mark.parametrize("role", ["nobody", "fan"])
async def test_the_api_does_what_its_document_says(tmp_path, role):
    """No 5xx, no undocumented answer, no schema violation."""
    async with a_server(tmp_path) as (_, url), httpx.AsyncClient(base_url=url) as client:
        told = await headers_of(role, client)
        options = [part for name, value in told.items() for part in ("--header", f"{name}:{value}")]
        ending = ["--exclude-operation-id", "room_give_back"] if told else []  # a fan who leaves is nobody afterwards
        schemathesis = Path(sys.executable).parent / "schemathesis"
        process = await asyncio.create_subprocess_exec(
            str(schemathesis), "run", f"{url}/openapi.json", *options, "--checks", "all", "--max-examples", EXAMPLES,
            "--no-shrink", "--seed", "1", "--exclude-operation-id", "room_stream", "--exclude-operation-id",
            "stream_seats", *ending, "--request-timeout", "20", "--suppress-health-check", "all",
            cwd=tmp_path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()[-20_000:]
