"""The API does what its document says: schemathesis over every operation, all checks, as each sort of caller.

The live streams are left out: they answer for ever by design, and have tests of their own (test_seats_by_both_ways).
A caller whose session an operation ends (leaving, signing out, erasing) does not call that one; `nobody` calls all.
`FRONTROW_SCHEMATHESIS_EXAMPLES=50` looks longer, with every phase for every caller (`make soak`). The suite's short run
follows links (stateful) as a fan and an owner, who can do most. The rest of the team and `nobody` share one run over
every operation, each operation called by one of them: whom it refuses is for the authorisation matrix (tests/security).
"""

import asyncio
import os
import re
import sys
from pathlib import Path

import httpx
import pytest

from frontrow.app.wiring import Platform
from frontrow.boxoffice.people.model.roles import PERMISSIONS, Role
from tests.boxoffice.people.support import api_key, fan, member
from tests.web.api.script import a_buyer
from tests.web.api.support import EVENT_ID, a_server

ENDING = (
    "room_give_back",
    "room_left",
    "end_session",
    "revoke_session",
    "erase_my_data",
    "room_leave",
    "remove_member",
    "revoke_api_key",
    "reset_member",
    "change_member",
    "change_password",
)
EXAMPLES = os.environ.get("FRONTROW_SCHEMATHESIS_EXAMPLES")
FOLLOWING = ("fan", "owner")  # links are followed as these in the short run
TEAM = [*(role.value for role in Role if role is not Role.OWNER), "key"]
CALLERS = ["fan", "owner", *(["nobody", *TEAM] if EXAMPLES else ["everybody else"])]
OPERATION_ID = re.compile(r'"operationId":"(\w+)"')
CONFIG = Path(__file__).parent / "schemathesis.toml"
ORGANISER = "org_default"  # whose event is on sale here


async def proofs_of(caller: str, platform: Platform, client: httpx.AsyncClient) -> list[str]:
    """What a caller of this sort sends with every request."""
    if caller in ("nobody", "everybody else"):
        return []
    if caller == "fan":
        session = (await fan(platform, "fan@example.org")).session
        return [f"Authorization:Bearer {session}", f"Frontrow-Pass:{await (await a_buyer(client)).enter(EVENT_ID)}"]
    if caller == "key":
        key = await api_key(platform, await member(platform, Role.OWNER, ORGANISER), sorted(PERMISSIONS))
        return [f"Authorization:Bearer {key}"]
    return [f"Authorization:Bearer {(await member(platform, Role(caller), ORGANISER)).session}"]


async def config_of(caller: str, platform: Platform, client: httpx.AsyncClient, document: str, folder: Path) -> Path:
    """The settings of the run; those of a shared one say which member calls which operation, and nobody the others."""
    if caller != "everybody else":
        return CONFIG
    proofs = [(await proofs_of(one, platform, client))[0].partition(":")[2] for one in TEAM]
    names = sorted(set(OPERATION_ID.findall(document)) - set(ENDING))
    shares = [
        f"[[operations]]\ninclude-operation-id = {names[place :: len(TEAM) + 1]}\nheaders.Authorization = {proof!r}"
        for place, proof in enumerate(proofs)
    ]
    (folder / CONFIG.name).write_text("\n".join([CONFIG.read_text(), *shares]))
    return folder / CONFIG.name


def left_out(document: str, caller: str) -> list[str]:
    """Operations this caller does not call."""
    known = OPERATION_ID.findall(document)
    assert set(ENDING) <= set(known), "left out by name, and the name is gone"
    endless = [name for name in known if name.endswith("_stream") or name.startswith("stream_")]
    ending = ENDING if caller not in ("nobody", "everybody else") else ()
    return [part for name in sorted({*endless, *ending}) for part in ("--exclude-operation-id", name)]


@pytest.mark.parametrize("caller", CALLERS)
async def test_the_api_does_what_its_document_says(tmp_path, caller):
    """No 5xx, no undocumented answer, no schema violation."""
    async with a_server(tmp_path) as (platform, url), httpx.AsyncClient(base_url=url, timeout=60) as client:
        told = [part for line in await proofs_of(caller, platform, client) for part in ("--header", line)]
        phases = "fuzzing,stateful" if caller in FOLLOWING else "fuzzing"
        document = (await client.get("/openapi.json")).text
        config = await config_of(caller, platform, client, document, tmp_path)
        process = await asyncio.create_subprocess_exec(
            str(Path(sys.executable).parent / "schemathesis"),
            "--config-file",
            str(config),
            "run",
            f"{url}/openapi.json",
            *told,
            "--checks",
            "all",
            "--max-examples",
            EXAMPLES or "1",
            "--phases",
            "examples,coverage,fuzzing,stateful" if EXAMPLES else phases,
            "--no-shrink",
            "--seed",
            "1",
            *left_out(document, caller),
            "--request-timeout",
            "20",
            "--suppress-health-check",
            "all",
            cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()[-20_000:]
