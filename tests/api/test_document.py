"""The API does what its document says: schemathesis over every operation, all checks, as each kind of caller.

The live streams are left out: they answer for ever by design, and have tests of their own (test_doors). A caller whose
session an operation ends (leaving, signing out) does not call that one. `FRONTROW_SCHEMATHESIS_EXAMPLES=100` looks
longer, with every phase for every role (`make soak`).
"""

import asyncio
import os
import re
import sys
from pathlib import Path

import httpx
import pytest

from frontrow.bootstrap import Platform
from frontrow.boxoffice.model.people import Role
from tests.api.script import a_buyer
from tests.api.support import EVENT_ID, a_server
from tests.people.support import member

ENDLESS = ("room_stream", "stream_seats")
ENDING = ("room_give_back", "sign_out", "logout", "erase", "revoke", "remove", "leave")
EXAMPLES = os.environ.get("FRONTROW_SCHEMATHESIS_EXAMPLES")
ROLES = ["nobody", "fan", *(role.value for role in Role if EXAMPLES or role is Role.OWNER)]
CONFIG = Path(__file__).parent / "schemathesis.toml"


async def bearer_of(role: str, platform: Platform, client: httpx.AsyncClient) -> str:
    """What a caller of this kind sends with every request."""
    if role == "nobody":
        return ""
    if role == "fan":
        return await (await a_buyer(client)).enter(EVENT_ID)
    return (await member(platform, Role(role), "org_default")).session


def left_out(document: str, role: str) -> list[str]:
    """Operations this caller does not call."""
    known = re.findall(r'"operationId":"(\w+)"', document)
    ending = [name for name in known if any(part in name for part in ENDING)] if role != "nobody" else []
    endless = [name for name in known if name in ENDLESS or name.endswith("_stream") or name.startswith("stream_")]
    return [part for name in sorted({*endless, *ending}) for part in ("--exclude-operation-id", name)]


@pytest.mark.parametrize("role", ROLES)
async def test_the_api_does_what_its_document_says(tmp_path, role):
    """No 5xx, no undocumented answer, no schema violation."""
    async with a_server(tmp_path) as (platform, url), httpx.AsyncClient(base_url=url) as client:
        bearer = await bearer_of(role, platform, client)
        told = ["--header", f"Authorization:Bearer {bearer}"] if bearer else []
        phases = "examples,coverage,fuzzing,stateful" if EXAMPLES else "fuzzing,stateful"
        document = (await client.get("/openapi.json")).text
        process = await asyncio.create_subprocess_exec(
            str(Path(sys.executable).parent / "schemathesis"), "--config-file", str(CONFIG), "run",
            f"{url}/openapi.json", *told, "--checks", "all",
            "--max-examples", EXAMPLES or "2", "--phases", phases, "--no-shrink", "--seed", "1",
            *left_out(document, role), "--request-timeout", "20", "--suppress-health-check", "all",
            cwd=tmp_path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()[-20_000:]
