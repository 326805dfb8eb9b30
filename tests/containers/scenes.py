"""What is checked in the running containers. Each scene is a sentence of the summary; its answer says what was seen."""

import asyncio
import contextlib
import os
import re
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
import yaml

from tests.containers.compose_plan import ComposePlan
from tests.containers.selling import Sale
from tests.containers.stack import OURS, Stack
from tests.deploy.metrics_paths import SPELLINGS, status_of
from tests.journeys.mailbox import SmtpServer
from tests.support.eventually import eventually
from tests.support.localstripe import LocalStripe
from tests.web.api.script import Buyer
from tests.web.api.support import EVENT_ID as EVENT

FANS = 16
SEEN_WITHIN_S = 90
PROMETHEUS = "http://127.0.0.1:9090/api/v1"


@dataclass
class World:
    """The running containers and what stands outside of them."""

    stack: Stack
    plan: ComposePlan  # of today
    sale: Sale
    mail: SmtpServer
    stripe: LocalStripe
    new_image: str
    folder: Path  # deploy/


async def upgrade(world: World) -> str:
    """docs/guides/upgrade.md, Compose: migrate, start two new containers beside the old, replace the old."""
    stack = world.stack
    stack.plan = world.plan
    stack.engine("tag", world.new_image, OURS)
    said = stack.run_job("migrate").strip().splitlines()[-1]
    await world.sale.open()

    async def replace_all() -> None:
        fresh = [await asyncio.to_thread(stack.start, "web", number) for number in (3, 4)]
        for container in fresh:
            await asyncio.to_thread(stack.engine.wait_healthy, container)
        for name, number in (("web", 1), ("web", 2), ("work", 1)):
            old = f"{stack.plan.project}_{name}_{number}"
            await asyncio.to_thread(stack.stop, old)
            await asyncio.to_thread(stack.remove, old)
            await asyncio.to_thread(stack.engine.wait_healthy, await asyncio.to_thread(stack.start, name, number))
        for container in fresh:
            await asyncio.to_thread(stack.stop, container)
            await asyncio.to_thread(stack.remove, container)

    await world.sale.while_fans_buy(2 * FANS, replace_all)
    forgotten_s = await _until_settled(world.sale.url)
    new = stack.engine("image", "inspect", "--format", "{{.Id}}", world.new_image)
    images = {stack.engine.inspect(one)["Image"].removeprefix("sha256:") for one in stack.running["web"]}
    assert images == {new.removeprefix("sha256:")}, "an old container is left"
    settled = f"nginx asks none of the removed containers after {forgotten_s:.0f} s"
    return f"{said}; {await world.sale.check()}; {settled}"


async def purchase(world: World) -> str:
    """Buy through nginx: waiting room, seat, payment captured by the worker, ticket, mail; /metrics stays inside."""
    async with httpx.AsyncClient(base_url=world.sale.url, timeout=60) as client:
        for path in SPELLINGS:
            status, body = await asyncio.to_thread(status_of, 8080, path)
            assert status in (400, 404), f"{path} is {status} for everybody"
            assert b"frontrow_" not in body
        buyer = Buyer(client, world.sale.document)
        await buyer.enter(EVENT)
        held = await buyer.hold(EVENT, best={"count": 2})
        paid = await buyer.call("pay", booking_id=held["booking"], json=PAID)
        assert paid.status_code == 200, (paid.status_code, paid.text)
        assert paid.json()["state"] == "confirmed", paid.text
        pdf = await buyer.call("tickets_pdf", booking_id=held["booking"])
        assert pdf.content.startswith(b"%PDF"), pdf.text[:300]
    await eventually(
        lambda: asyncio.to_thread(world.stripe.intents_of, held["booking"]),
        SEEN_WITHIN_S,
        until=lambda intents: [one["status"] for one in intents] == ["succeeded"],
        every_s=0.5,
    )
    mail = await asyncio.to_thread(world.mail.mailbox().wait_for, PAID["email"])
    return f"two seats, captured; PDF of {len(pdf.content) // 1024} KB; mail {mail.subject!r}"


async def killed(world: World) -> str:
    """SIGKILL to a web container's process while fans buy; the engine starts it again."""
    stack = world.stack
    container = stack.running["web"][0]
    took = 0.0

    async def kill() -> None:
        nonlocal took
        process = stack.main_process(container)
        os.kill(process, signal.SIGKILL)
        began_s = time.monotonic()
        await asyncio.to_thread(stack.wait_restarted, container, process)
        await asyncio.to_thread(stack.engine.wait_healthy, container)
        took = time.monotonic() - began_s

    await world.sale.while_fans_buy(FANS, kill)
    return f"healthy again after {took:.0f} s; {await world.sale.check()}"


async def stopped(world: World) -> str:
    """`docker stop` of a web container and of the worker while fans buy: within their grace period, by themselves."""
    stack = world.stack
    told: list[str] = []

    async def stop() -> None:
        for name in ("web", "work"):
            container = stack.running[name][-1]
            took_s, code = await asyncio.to_thread(stack.stop, container)
            grace_s = stack.plan.services[name].grace_s
            told.append(f"{name} in {took_s:.0f} of {grace_s} s")
            assert code == 0, f"{container} ended with {code} after {took_s:.0f} s (137: killed)"
            assert took_s < grace_s, told[-1]
            await asyncio.to_thread(stack.engine, "start", container)
            await asyncio.to_thread(stack.engine.wait_healthy, container)

    await world.sale.while_fans_buy(FANS, stop)
    return f"{', '.join(told)}; {await world.sale.check()}"


async def backup_and_restore(world: World) -> str:
    """docs/guides/backup.md: a backup during the sale by a web container, restored into a scratch database."""
    stack, made = world.stack, "/var/lib/frontrow/today.backup"

    async def back_up() -> None:
        await asyncio.to_thread(stack.execute, "web", "frontrow", "ledger", "backup", made)

    await world.sale.while_fans_buy(FANS, back_up)
    copied = world.folder.parent / "today.backup"
    await asyncio.to_thread(stack.engine, "cp", f"{stack.running['web'][0]}:{made}", str(copied))
    password = _environment(stack, "postgres")["POSTGRES_PASSWORD"]
    drill = f"postgresql://frontrow:{password}@postgres:5432/drill"
    await asyncio.to_thread(stack.execute, "postgres", "createdb", "--username=frontrow", "drill")
    await asyncio.to_thread(stack.execute, "web", "frontrow", "ledger", "restore", made, "--ledger", drill)
    verified = await asyncio.to_thread(stack.execute, "web", "frontrow", "ledger", "verify", "--ledger", drill)
    count = "SELECT count(*) FROM bookings WHERE state = 'confirmed'"
    words = ("psql", "--username=frontrow", "--no-align", "--tuples-only", f"--command={count}")
    restored = int(await asyncio.to_thread(stack.execute, "postgres", *words, "--dbname=drill"))
    live = int(await asyncio.to_thread(stack.execute, "postgres", *words, "--dbname=frontrow"))
    assert 0 < restored <= live, (restored, live)
    size_kb = copied.stat().st_size // 1024
    whole = next(line for line in _lines(verified) if "whole" in line)
    return f"{size_kb} KB, made during a sale; {restored} of {live} confirmed bookings are in it; {whole}"


async def watched(world: World) -> str:
    """Every web and work container is a target that is up, our metrics are there, every alert rule is loaded."""
    stack = world.stack
    wanted = {"frontrow": len(stack.running["web"]), "frontrow-work": len(stack.running["work"])}
    async with httpx.AsyncClient(timeout=10) as client:

        async def up() -> bool:
            targets = (await client.get(f"{PROMETHEUS}/targets")).json()["data"]["activeTargets"]
            jobs = [one["labels"]["job"] for one in targets if one["health"] == "up"]
            return {name: jobs.count(name) for name in set(jobs)} == wanted and len(targets) == len(jobs)

        await eventually(up, SEEN_WITHIN_S, every_s=0.5)
        found = await client.get(f"{PROMETHEUS}/query", params={"query": 'frontrow_bookings{state="confirmed"}'})
        figures = [float(one["value"][1]) for one in found.json()["data"]["result"]]
        groups = (await client.get(f"{PROMETHEUS}/rules")).json()["data"]["groups"]
    assert max(figures, default=0) > 0, found.text
    loaded = {rule["name"]: rule for group in groups for rule in group["rules"]}
    written = [
        rule.get("alert") or rule["record"]
        for file in (world.folder / "alerts").glob("*.yml")
        for group in yaml.safe_load(file.read_text())["groups"]
        for rule in group["rules"]
    ]
    assert set(loaded) == set(written), set(written) ^ set(loaded)
    sick = {name: rule["lastError"] for name, rule in loaded.items() if rule["health"] == "err"}
    assert not sick, sick
    return f"{sum(wanted.values())} targets up; {len(loaded)} rules of {len(written)} loaded, none with an error"


async def doctor(world: World) -> str:
    """`frontrow doctor` inside a web container, as docs/guides/production.md says."""
    lines = _lines(await asyncio.to_thread(world.stack.execute, "web", "frontrow", "doctor"))
    good = [line for line in lines if line.startswith("ok ")]
    assert good, lines
    return "; ".join([f"{len(good)} checks are ok", *(line for line in lines if line not in good)])


async def down(world: World) -> str:
    """Stop all of it, as `docker compose down` does: everybody ends by itself within its grace period."""
    stack, told = world.stack, []
    for name in reversed(stack.plan.services):
        for container in list(stack.running.get(name, ())):
            took_s, code = await asyncio.to_thread(stack.stop, container)
            told.append(f"{name} {took_s:.0f} s")
            assert code == 0, f"{container} ended with {code} after {took_s:.0f} s"
            assert took_s < stack.plan.services[name].grace_s, told[-1]
    return ", ".join(told)


PAID = {"method": "pm_card_visa", "email": "ada@example.org"}
SCENES: dict[str, Callable[[World], Awaitable[str]]] = {
    "upgrade from the image before, during a sale": upgrade,
    "purchase through nginx": purchase,
    "doctor": doctor,
    "web container killed during a sale": killed,
    "docker stop during a sale": stopped,
    "backup and restore": backup_and_restore,
    "metrics and alert rules in Prometheus": watched,
    "everything stopped in its grace period": down,
}


def _environment(stack: Stack, name: str) -> dict[str, str]:
    words = [word.removeprefix("--env=") for word in stack.plan.services[name].options if word.startswith("--env=")]
    return {key: value for key, _, value in (word.partition("=") for word in words)}


def _lines(text: str) -> list[str]:
    """What a command said, without colours and empty lines."""
    return [line.strip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines() if line.strip()]


async def _until_settled(url: str) -> float:
    """Until 30 requests in a row were answered, each on its own connection; the seconds until the first of them."""
    began_s = first_s = time.monotonic()
    good = 0

    async def answered() -> bool:
        nonlocal good, first_s
        with contextlib.suppress(httpx.HTTPError):
            async with httpx.AsyncClient(timeout=30) as client:
                asked_s = time.monotonic()
                if (await client.get(f"{url}/readyz")).status_code == 200 and time.monotonic() - asked_s < 1:
                    good, first_s = good + 1, first_s if good else asked_s
                    return good >= 30
        good = 0
        return False

    await eventually(answered, SEEN_WITHIN_S, every_s=0.1)
    return first_s - began_s
