"""What `frontrow doctor` looks at: each check answers findings that say what is wrong and what to do about it.

Nothing is changed. A check that cannot be made (a server that does not answer) is a failure with its reason; every one
has a deadline. Secrets are judged and never shown.
"""

import asyncio
import functools
import math
import os
import shutil
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import msgspec

from frontrow.boxoffice.adapters.channels.email import SmtpChannel
from frontrow.boxoffice.adapters.channels.from_settings import open_mail
from frontrow.boxoffice.adapters.channels.ses import SesChannel
from frontrow.boxoffice.adapters.ledger.ledger_url import is_postgres, sqlite_path
from frontrow.boxoffice.adapters.ledger.schema_versions import (
    check_served,
    known_versions,
    newest_version,
    schema_version,
)
from frontrow.core.errors import ConfigError
from frontrow.core.redis_url import call, connect, disconnect, is_cluster
from frontrow.limits import Limiter
from frontrow.settings.overload import STREAM_SHARE
from frontrow.settings.platform import PlatformSettings
from frontrow.shared import open_files, postgres_url

OK, WARN, FAIL = "ok", "warn", "fail"
DEADLINE_S: Final = 10.0
LIBRARIES: Final = ("litestar", "uvicorn", "msgspec", "redis", "asyncpg", "cryptography")
OLDEST: Final = {"redis": (6, 2), "postgresql": (14, 0), "sqlite": (3, 35)}
GIB: Final = 1024**3
BITS: Final = 120  # of randomness a secret key should have


class Finding(msgspec.Struct, frozen=True):
    """One line of the doctor's report."""

    check: str
    state: str
    says: str
    do: str = ""


async def examine(settings: PlatformSettings) -> list[Finding]:
    """Every finding, in order."""
    found = [*versions(), *secrets(settings), *server(settings), *mail(settings), *disk(settings)]
    found += await mail_server(settings)
    found += await _within("ledger", lambda: ledger(settings))
    if settings.bus.url.startswith("kafka:"):
        found += await _within("bus", lambda: bus(settings))
    if settings.shared:
        for url in dict.fromkeys((settings.redis.url, *settings.room.shards)):
            found += await _within("redis", functools.partial(redis, url))
    return found


async def _within(name: str, check: Callable[[], Awaitable[list[Finding]]]) -> list[Finding]:
    try:
        async with asyncio.timeout(DEADLINE_S):
            return await check()
    except Exception as error:
        why = type(error).__name__ if isinstance(error, TimeoutError) else str(error).splitlines()[0][:200]
        if type(error).__name__ in ("AuthenticationError", "NoPermissionError"):
            return [Finding(name, FAIL, f"refuses us: {why}", f"Are the user and the password in {name}.url right?")]
        return [Finding(name, FAIL, f"does not answer: {why}", f"Is {name}.url right, and does the server run?")]


def versions() -> Iterator[Finding]:
    found = [f"python {'.'.join(map(str, sys.version_info[:3]))}"]
    for name in LIBRARIES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            yield Finding("versions", FAIL, f"{name} is not installed", "pip install 'frontrow[platform]'")
    yield Finding("versions", OK, ", ".join(found))


def secrets(settings: PlatformSettings) -> Iterator[Finding]:
    """Whether the secret key looks random. The words never show it."""
    key = settings.secret.key
    if not key:
        yield Finding("secret", WARN, "secret.key is made up on the spot (demo)", "Set FRONTROW_SECRET_KEY.")
        return
    bits = randomness(key)
    if bits < BITS:
        says = f"secret.key has about {bits:.0f} bits of randomness, {BITS} are wanted"
        yield Finding("secret", FAIL, says, "Make one with `openssl rand -base64 48`.")
    else:
        yield Finding("secret", OK, "secret.key looks random")


def randomness(text: str) -> float:
    """Bits, at most: Shannon's entropy of the characters times their number; repeated halves count once."""
    half = len(text) // 2
    if half and text[:half] == text[half : 2 * half]:
        return randomness(text[:half])
    counts = Counter(text)
    each = -sum(count / len(text) * math.log2(count / len(text)) for count in counts.values())
    words = sum(part.isalpha() and part.islower() and len(part) > 2 for part in text.replace("-", " ").split())
    return each * len(text) / (4 if words >= 3 else 1)


def server(settings: PlatformSettings) -> Iterator[Finding]:
    if settings.server.demo:
        yield Finding("server", WARN, "server.demo takes made-up money", "Switch it off before a real sale.")
    if not settings.server.public_url:
        says = f"server.public_url is not set, so links in mails lead to {settings.public_url}"
        yield Finding("server", WARN, says, "Set it to the address that people type.")
    elif not settings.public_url.startswith("https://"):
        yield Finding(
            "server", WARN, "server.public_url is not https", "People's browsers keep our cookies only there."
        )
    if not settings.server.trusted_proxies and settings.public_url.startswith("https://"):
        do = "Set server.trusted_proxies to the proxy's network, else everybody has the proxy's address."
        yield Finding("server", WARN, "no proxy is trusted although TLS ends before us", do)
    files, needed = open_files.read_most_files(), settings.overload.max_connections + open_files.SPARE
    if files < needed:
        do = "Raise it (LimitNOFILE= in systemd, ulimits in compose) or lower overload.max_connections."
        yield Finding("server", WARN, f"{files} files may be open, {needed} are needed", do)
    else:
        yield Finding("server", OK, f"{min(files, needed)} files may be open")
    streams, fit = settings.server.max_streams, settings.overload.connections_with_streams
    if streams > fit:
        least = math.ceil(streams / STREAM_SHARE)
        says = f"server.max_streams is {streams}, but overload.max_connections lets no more than {fit} be open"
        yield Finding("server", WARN, says, f"Set overload.max_connections to {least} or more.")


def mail(settings: PlatformSettings) -> Iterator[Finding]:
    """Whether mails leave this machine."""
    if settings.mail.url:
        try:
            open_mail(settings.mail.url, settings.messages)
        except ConfigError as error:
            yield Finding("mail", FAIL, f"mail.url: {error.message}", "Write it like smtp://mail.example.org:587.")
            return
        yield Finding("mail", OK, "mails leave by mail.url")
    else:
        says = f"mail.url is not set, so mails are only files in {settings.mail_url}"
        yield Finding("mail", WARN, says, "Set it to a mail server before a real sale: nobody gets their tickets.")


async def mail_server(settings: PlatformSettings) -> list[Finding]:
    """Whether the mail server lets us in. It is sent no mail."""
    try:
        channel = open_mail(settings.mail_url, settings.messages)
    except ConfigError:  # `mail` has said so
        return []
    if not isinstance(channel, SmtpChannel | SesChannel):
        return []
    try:
        async with asyncio.timeout(DEADLINE_S):
            await channel.look()
    except Exception as error:
        why = " ".join(f"{type(error).__name__} {error}".split())[:200]
        do = "Is mail.url right, and does the server run? Until then mails wait, and tickets are on the pages only."
        return [Finding("mail", WARN, f"the mail server does not let us in: {why}", do)]
    finally:
        if isinstance(channel, SesChannel):
            await channel.aclose()
    return [Finding("mail", OK, "the mail server lets us in")]


def disk(settings: PlatformSettings) -> Iterator[Finding]:
    folder = settings.folder
    if not folder.exists():
        yield Finding("disk", WARN, f"{folder} does not exist yet", "The first start makes it.")
        return
    if not folder.is_dir():
        yield Finding("disk", FAIL, f"{folder} is not a folder", "Move that file away, or set server.folder.")
        return
    if not os.access(folder, os.W_OK):
        yield Finding("disk", FAIL, f"{folder} cannot be written to", "Give it to the user that serves.")
    if folder.stat().st_mode & 0o077:
        yield Finding("disk", WARN, f"{folder} can be read by others; keys are in it", f"chmod 700 {folder}")
    yield free_space(folder, shutil.disk_usage(folder).free)


def free_space(folder: Path, free: int) -> Finding:
    says = f"{free / GIB:.1f} GiB are free at {folder}"
    if free < GIB // 10:
        return Finding("disk", FAIL, says, "Make room: a ledger that cannot write sells nothing.")
    return Finding("disk", WARN if free < GIB else OK, says, "Make room." if free < GIB else "")


async def ledger(settings: PlatformSettings) -> list[Finding]:
    """The schema, the server's version and its clock."""
    url = settings.ledger_url
    if not is_postgres(url):
        found = [_version("sqlite", sqlite3.sqlite_version)]
        if not sqlite_path(url).exists():
            return [*found, Finding("ledger", WARN, "there is no ledger yet", "The first start makes it.")]
        return [*found, await asyncio.to_thread(schema, url)]
    connection = await postgres_url.connect(url, command_timeout=DEADLINE_S)
    try:
        async with connection.transaction():  # behind a pooler, on one connection of the server
            server_version = await connection.fetchval("SHOW server_version")
            before_s = time.time()
            there_us = await connection.fetchval("SELECT (extract(epoch from clock_timestamp()) * 1000000)::bigint")
            safe = await connection.fetchval("SHOW synchronous_commit")
            backend = await connection.fetchval("SELECT pg_backend_pid()")
        found = pooler(connection.get_server_pid() != backend, settings)  # a pooler makes its number up
    finally:
        await connection.close()
    found += [_version("postgresql", server_version), await asyncio.to_thread(schema, url)]
    found.append(clock("postgresql", there_us / 1e6, before_s, time.time()))
    if settings.ledger.read_url:
        found += await replicas(settings)
    if safe == "off":
        do = "A confirmed booking could be lost with the server: set it to on."
        found.append(Finding("ledger", FAIL, "synchronous_commit is off", do))
    return found


async def replicas(settings: PlatformSettings) -> list[Finding]:
    """Whether each replica answers, follows, and how far it is behind."""
    found = []
    for number, url in enumerate(postgres_url.split_replicas(settings.ledger.read_url), start=1):
        try:
            connection = await postgres_url.connect(url, command_timeout=DEADLINE_S / 4)
            try:
                async with connection.transaction():
                    follows = await connection.fetchval("SELECT pg_is_in_recovery()")
                    beat_us = await connection.fetchval("SELECT beat_us FROM ledger_heartbeat")
            finally:
                await connection.close()
        except Exception as error:
            why = type(error).__name__ if isinstance(error, TimeoutError) else str(error).splitlines()[0][:200]
            do = "Is ledger.read_url right, and does it run? Until then the primary answers."
            found.append(Finding("replica", FAIL, f"host {number} of ledger.read_url does not answer: {why}", do))
        else:
            found.append(replica(number, is_standby=follows, age_s=time.time() - beat_us / 1e6, settings=settings))
    return found


def replica(number: int, *, is_standby: bool, age_s: float, settings: PlatformSettings) -> Finding:
    """One replica that answers. Its age counts only while a server runs and renews the heartbeat."""
    name, most_s = f"host {number} of ledger.read_url", settings.ledger.read_max_lag_s
    if not is_standby:
        return Finding(
            "replica", WARN, f"{name} is a primary", "It spares ledger.url nothing if it is the same server."
        )
    if age_s > most_s:
        says = f"{name} shows what was {age_s:.0f} s ago, {most_s:g} s are allowed"
        return Finding("replica", WARN, says, "Normal while no server runs. Else look at its replication.")
    return Finding("replica", OK, f"{name} is at most {age_s:.1f} s behind")


def pooler(is_there: bool, settings: PlatformSettings) -> list[Finding]:
    """Whether PgBouncer stands before PostgreSQL, and the settings know it."""
    told = postgres_url.read_pool_mode(settings.ledger_url)[0]
    if is_there and not told:
        do = "If it pools transactions, add ?pool_mode=transaction to ledger.url."
        return [Finding("ledger", WARN, "a pooler (PgBouncer) stands before PostgreSQL", do)]
    if told and not settings.ledger.direct_url:
        do = "Set ledger.direct_url; `frontrow ledger migrate` and `backup` need it."
        return [Finding("ledger", WARN, "PostgreSQL is reached through a pooler only", do)]
    return [Finding("ledger", OK, "PostgreSQL is reached through a pooler of transactions")] if told else []


def schema(url: str) -> Finding:
    """Whether the ledger at `url` has the schema that this program needs, or a later one that serves it."""
    has, newest = schema_version(url), newest_version()
    if has == newest:
        return Finding("ledger", OK, f"schema {has}")
    if has and has not in known_versions():
        try:
            check_served(url, has)
        except ConfigError as error:
            return Finding("ledger", FAIL, error.message, "Install the version that migrated it.")
        return Finding("ledger", WARN, f"schema {has} is newer than this program and serves it", "Finish the upgrade.")
    return Finding("ledger", FAIL, f"schema {has or 'none'}, {newest} is needed", "Run `frontrow ledger migrate`.")


def clock(where: str, there_s: float, before_s: float, after_s: float) -> Finding:
    """Their clock against ours, as exactly as the round trip allows."""
    off_s = max(0.0, before_s - there_s, there_s - after_s)
    says = f"{where}'s clock differs by {off_s:.3f} s"
    if off_s > 30:
        return Finding("clocks", FAIL, says, "Set the clocks by NTP; passes and holds are measured in time.")
    return Finding("clocks", WARN if off_s > 1 else OK, says, "Set the clocks by NTP." if off_s > 1 else "")


def _version(name: str, text: str) -> Finding:
    numbers = tuple(int(part) for part in text.split()[0].split(".")[:2] if part.isdigit())
    oldest = OLDEST[name]
    if numbers and numbers < oldest[: len(numbers)]:
        return Finding("versions", FAIL, f"{name} {text} is too old", f"Use {'.'.join(map(str, oldest))} or newer.")
    return Finding("versions", OK, f"{name} {text}")


async def bus(settings: PlatformSettings) -> list[Finding]:
    """Whether Kafka lets us in, and what it has of our topic."""
    from frontrow.boxoffice.adapters.bus.kafka_check import KafkaRefusal, look_at_kafka

    access = settings.bus.access
    try:
        seen = await asyncio.to_thread(look_at_kafka, settings.bus.url, access)
    except KafkaRefusal as refusal:
        return [Finding("bus", FAIL, f"Kafka {refusal.says}", refusal.do)]
    if not seen.partitions:
        return [Finding("bus", WARN, "Kafka has no such topic yet", "It is made with the first fact, if it may be.")]
    found = [Finding("bus", OK, f"Kafka answers: {seen.brokers} brokers, {seen.partitions} partitions")]
    if access.security_protocol in ("plaintext", "sasl_plaintext"):
        do = "Set bus.security_protocol to sasl_ssl where the brokers are not on a network of your own."
        found.append(Finding("bus", WARN, "facts and passwords travel to Kafka unencrypted", do))
    if access.partitions and access.partitions != seen.partitions:
        says = f"the topic has {seen.partitions} partitions, bus.partitions says {access.partitions}"
        do = "Events move to other partitions when it grows; add partitions while no sale runs, or change the setting."
        found.append(Finding("bus", WARN, says, do))
    return found


async def redis(url: str) -> list[Finding]:
    """Its version, its clock, and whether it may throw keys away."""
    client = connect(url, timeout_s=DEADLINE_S / 2)
    try:
        if is_cluster(url):
            await call(client, "PING")
            found = [Finding("redis", OK, "the cluster answers; look at each node's maxmemory-policy yourself")]
            return [*found, await limits(url)]
        info: dict[str, Any] = await client.info()
        before_s = time.time()
        seconds, micros = await client.time()
        found = [clock("redis", seconds + micros / 1e6, before_s, time.time())]
        found.append(_version("redis", str(info.get("redis_version", "0"))))
        return [*found, *keeps(info, await _config(client)), await limits(url)]
    finally:
        await disconnect(client)


async def limits(url: str) -> Finding:
    """Whether Redis decides the limits, or why it does not. Counts nothing."""
    async with Limiter("1/second", store=url, deadline_s=DEADLINE_S / 2) as limiter:
        if (await limiter.apeek("doctor")).source == "store":
            return Finding("limits", OK, "decided in redis")
        do = "Until that is repaired, each server counts for itself."
        return Finding("limits", FAIL, f"not decided in redis: {limiter.stats.store_error}", do)


async def _config(client: Any) -> dict[str, str]:
    """Its settings, where it shows them (managed services often do not)."""
    try:
        config: dict[Any, Any] = await client.config_get("*")
    except Exception:
        return {}
    return {_text(name): _text(value) for name, value in config.items()}


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def keeps(info: dict[str, Any], config: dict[str, str]) -> list[Finding]:
    """Whether Redis keeps what it is given: no eviction, room left, a copy on disk, writable."""
    found = []
    policy = config.get("maxmemory-policy") or str(info.get("maxmemory_policy", ""))
    if policy and policy != "noeviction":
        do = "Set maxmemory-policy noeviction: a key thrown away is a seat claim or a place in the line."
        found.append(Finding("redis", FAIL, f"maxmemory-policy is {policy}", do))
    used, most = int(info.get("used_memory", 0)), int(info.get("maxmemory", 0))
    if most and used > 0.8 * most:
        found.append(Finding("redis", WARN, f"{used / most:.0%} of maxmemory is used", "Give it more memory."))
    if str(info.get("role")) not in ("master", ""):
        found.append(Finding("redis", FAIL, "this is a replica", "Point redis.url at the master, or use sentinel."))
    if config and config.get("appendonly") != "yes" and not config.get("save"):
        do = "Set appendonly yes: after a restart places and claims are rebuilt from the ledger, which takes seconds."
        found.append(Finding("redis", WARN, "nothing is kept on disk", do))
    if config.get("appendonly") == "yes" and config.get("appendfsync") == "no":
        do = "Set appendfsync everysec: a crash of the machine then loses a second, not whatever was not written yet."
        found.append(Finding("redis", WARN, "appendfsync is no", do))
    if not config:
        found.append(Finding("redis", WARN, "its settings are not shown", "Make sure of maxmemory-policy noeviction."))
    return found or [Finding("redis", OK, "evicts nothing, keeps its data on disk")]
