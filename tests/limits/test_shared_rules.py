"""Rules changed for all servers at once: within a second, validated, with a history, and never worse than before."""

import inspect
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis
from typer.testing import CliRunner

from frontrow.cli.limits import app as cli
from frontrow.core.errors import ConfigError, InvalidInput, NotFound
from frontrow.limits import Limiter, Rule, StoreDown
from frontrow.limits.book_limiter import BookLimiter
from frontrow.limits.config import load_config
from frontrow.limits.http.wsgi import RateLimitMiddleware
from frontrow.limits.metrics import LimitMetrics
from frontrow.limits.rules import RequestRule, RuleBook
from frontrow.limits.shared_rules import REFRESH_S, SharedRules
from frontrow.limits.stores.rule_versions import MemoryRuleVersions, RuleVersion, VersionConflict
from tests.support.eventually import eventually_sync
from tests.support.servers import Postgres, Valkey

OLD = [RequestRule("api", "5/366 days", key=["user"])]
FAST_S = 0.05  # how often the servers of a test look


def text(quota: str, more: str = "", name: str = "api") -> str:
    return f'[[limits.rules]]\nname = "{name}"\nquota = "{quota}"\nkey = ["user"]\n{more}\n'


class Server:
    """One server: its own view of the shared book and a limiter that follows it."""

    def __init__(self, url: str, counts: str = "memory://", **more: Any) -> None:
        self.shared = SharedRules(OLD, store=url, **{"refresh_s": FAST_S, **more})
        self.limiter = BookLimiter(self.shared.book, store=counts)

    @property
    def quota(self) -> str:
        return self.limiter.rules[0].quota.rate

    def close(self) -> None:
        self.shared.close()
        self.limiter.close()


@pytest.fixture
def servers(shared_url: str) -> Iterator[list[Server]]:
    if shared_url.startswith("postgres"):
        with psycopg.connect(shared_url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA IF EXISTS frontrow_limits_rules_1 CASCADE")
    opened = [Server(shared_url) for _ in range(3)]
    yield opened
    for server in opened:
        server.close()


SERVERS = """
import sys, time
from frontrow.limits.book_limiter import BookLimiter
from frontrow.limits.rules import RequestRule
from frontrow.limits.shared_rules import REFRESH_S, SharedRules
shared = [SharedRules([RequestRule("api", "5/day", key=["user"])], store=sys.argv[1]) for _ in range(5)]
limiters = [BookLimiter(each.book) for each in shared]
print("ready", flush=True)
for wanted in sys.stdin:
    began = time.monotonic()
    while {limiter.rules[0].quota.rate for limiter in limiters} != {wanted.strip()} and time.monotonic() < began + 60:
        time.sleep(0.01)
    print(limiters[0].rules[0].quota.rate, flush=True)
"""


def test_a_change_reaches_twenty_servers_of_four_processes(shared_url: str) -> None:
    """Each looks every 0.4 s, so a second is enough for a store that answers."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen([sys.executable, "-c", SERVERS, shared_url], **pipes) for _ in range(4)]
    operator = SharedRules(OLD, store=shared_url)
    try:
        assert [process.stdout.readline() for process in processes] == ["ready\n"] * 4
        seen = operator.history(1)
        operator.put(text("77/3600s"), by="ann", seen=seen[0].version if seen else 0)
        for process in processes:
            process.stdin.write("77/3600s\n")
            process.stdin.flush()
        assert [process.stdout.readline() for process in processes] == ["77/3600s\n"] * 4
    finally:
        operator.close()
        for process in processes:
            process.communicate(timeout=30)


def test_every_one_of_twenty_servers_has_a_change_after_the_next_look(shared_url: str) -> None:
    """So a change is in force within one pause and one look: two pauses fit into a second, whatever the machine."""
    servers = [Server(shared_url, refresh_s=3600.0) for _ in range(20)]  # they look when the test says so
    operator = SharedRules(OLD, store=shared_url, refresh_s=3600.0)
    try:
        newest = operator.history(1)
        version = operator.put(text("78/3600s"), by="ann", seen=newest[0].version if newest else 0).version
        for server in servers:
            server.shared.refresh()
        assert {(server.quota, server.shared.book.version) for server in servers} == {("78/3600s", version)}
        assert {server.shared.book.failures for server in servers} == {0}
    finally:
        for each in (operator, *servers):
            each.close()
    assert 2 * REFRESH_S < 1
    assert inspect.signature(SharedRules).parameters["refresh_s"].default == REFRESH_S


def test_all_servers_follow_and_go_back(servers: list[Server]) -> None:
    one = servers[0].shared
    one.put(text("7/day"), by="ann", seen=0, note="a sale")
    eventually_sync(lambda: {server.quota for server in servers} == {"7/86400s"})
    one.put(text("9/day"), by="bob", seen=1)
    eventually_sync(lambda: {server.quota for server in servers} == {"9/86400s"})
    servers[1].shared.roll_back(1, by="eve", seen=2)
    eventually_sync(lambda: {(server.quota, server.shared.book.version) for server in servers} == {("7/86400s", 3)})
    told = [(each.version, each.by, each.note) for each in servers[2].shared.history()]
    assert told == [(3, "eve", "rolled back to version 1"), (2, "bob", ""), (1, "ann", "a sale")]
    with pytest.raises(VersionConflict, match="at version 3, not 1"):
        one.put(text("1/day"), by="ann", seen=1)
    with pytest.raises(NotFound, match="no version 44"):
        one.roll_back(44, by="ann", seen=3)


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("nonsense = [", "is no TOML"),
        ("", "has no rules"),
        (text("ten/day"), r"limits\.rules\[0\]\.quota"),
        (text("1/day") + text("2/day"), "two rules are named 'api'"),
        (text("1/day", "wieght = 3"), "wieght is not a field of a rule"),
        (text("1/day") + '[limits]\nstore = "redis://x"', "holds rules only, not limits.store"),
        ('[limits]\nstore = "redis://x"\n' + text("1/day"), "holds rules only, not limits.store"),
        (text("1/day") + "#" * 1_000_001, "longer than"),
        ("a = " + "[" * 100_000, "is no TOML: it is nested too deeply"),
        ("".join(text("1/day").replace("api", f"r{n}") for n in range(33)), "at most 32 rules, not 33"),
    ],
)
def test_a_broken_book_is_refused_before_it_is_put(written: str, sentence: str) -> None:
    versions = MemoryRuleVersions()
    shared = SharedRules(OLD, versions=versions)
    with pytest.raises(ConfigError, match=sentence):
        shared.put(written, by="ann", seen=0)
    assert versions.history() == []
    shared.close()


@pytest.mark.parametrize("who", [{"by": ""}, {"by": "x" * 101}, {"by": "a\nb"}, {"by": "ann", "note": "x" * 501}])
def test_who_and_why_are_bounded(who: dict[str, str]) -> None:
    shared = SharedRules(OLD, versions=MemoryRuleVersions())
    with pytest.raises(InvalidInput, match="must be a text of at most"):
        shared.put(text("1/day"), seen=0, **who)
    shared.close()


# -- what cannot be taken ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "written",
    [
        "garbage",
        text("3/day", "a_field_of_a_newer_version = true"),
        text("3/day", 'paths = ["/only/for/requests"]'),
    ],
    ids=["unreadable", "of a newer version", "not for this server"],
)
def test_a_book_that_a_server_cannot_take_leaves_its_rules(written: str, caplog: pytest.LogCaptureFixture) -> None:
    """An old server beside new ones keeps what it has, says so, counts it, and takes the next book that it can read."""
    versions = MemoryRuleVersions()
    server = Server("", versions=versions)
    server.shared.put(text("7/day"), by="ann", seen=0)
    eventually_sync(lambda: server.quota == "7/86400s")
    with caplog.at_level(logging.WARNING, "frontrow.limits"):
        versions.put(written, "somebody else's tool", "", 1)
        eventually_sync(lambda: server.shared.book.failures == 1)
        assert (server.quota, server.shared.book.version) == ("7/86400s", 1)
        assert [each.action for each in caplog.records if each.levelno == logging.WARNING] == ["limit_rules_kept"]  # type: ignore[attr-defined]
    versions.put(text("8/day"), "ann", "", 2)
    eventually_sync(lambda: (server.quota, server.shared.book.version) == ("8/86400s", 3))
    server.close()


class Unreliable(MemoryRuleVersions):
    """A store that is away when it is told to be."""

    def __init__(self) -> None:
        super().__init__()
        self.is_away = True

    def newest(self, known: tuple[int, int] = (0, 0)) -> RuleVersion | None:
        if self.is_away:
            raise OSError("nobody there")
        return super().newest(known)


def test_a_store_that_is_away_at_the_start_away_later_and_back(caplog: pytest.LogCaptureFixture) -> None:
    versions = Unreliable()
    server = Server("", versions=versions)
    eventually_sync(lambda: server.shared.book.failures >= 2)
    assert server.quota == "5/31622400s", "the server's own rules"
    versions.put(text("7/day"), "ann", "", 0)
    versions.is_away = False
    eventually_sync(lambda: server.quota == "7/86400s")
    versions.is_away = True
    before = server.shared.book.failures
    eventually_sync(lambda: server.shared.book.failures >= before + 3)
    assert server.quota == "7/86400s"
    kept = [record for record in caplog.records if getattr(record, "action", "") == "limit_rules_kept"]
    assert len(kept) == 2, "each time it went away, not each time that it was asked"
    versions.put(text("8/day"), "ann", "", 1)
    versions.is_away = False
    eventually_sync(lambda: server.quota == "8/86400s")
    server.close()


@pytest.mark.parametrize("kind", [Valkey, Postgres])
def test_a_real_store_that_is_killed_and_comes_back(kind: Any) -> None:
    with kind() as store:
        server = Server(store.url)
        server.shared.put(text("7/day"), by="ann", seen=0)
        eventually_sync(lambda: server.quota == "7/86400s")
        store.kill()
        eventually_sync(lambda: server.shared.book.failures >= 2)
        with pytest.raises(StoreDown, match="the rule book's store failed"):
            server.shared.put(text("8/day"), by="ann", seen=1)
        assert server.quota == "7/86400s"
        store.start()
        seen = eventually_sync(lambda: _newest_version(server.shared), until=lambda version: version >= 0)
        server.shared.put(text("9/day"), by="ann", seen=seen)
        eventually_sync(lambda: server.quota == "9/86400s")
        server.close()


def _newest_version(shared: SharedRules) -> int:
    """0 if the store has lost its memory, -1 while it is away."""
    try:
        found = shared.history(1)
    except StoreDown:
        return -1
    return found[0].version if found else 0


def test_a_store_that_lost_its_memory_changes_no_rules(redis_url: str) -> None:
    server = Server(redis_url)
    server.shared.put(text("7/day"), by="ann", seen=0)
    eventually_sync(lambda: server.quota == "7/86400s")
    with redis.Redis.from_url(redis_url) as client:
        client.flushdb()
    server.shared.refresh()
    assert server.quota == "7/86400s"
    server.shared.put(text("6/day"), by="ann", seen=0)
    eventually_sync(lambda: server.quota == "6/86400s")
    server.close()


def test_a_forked_child_follows_too(redis_url: str) -> None:
    server = Server(redis_url)
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.write(write, b"!")
            eventually_sync(lambda: server.quota == "7/86400s", 20)
            code = 0
        finally:
            os._exit(code)
    os.read(read, 1)
    server.shared.put(text("7/day"), by="ann", seen=0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(read)
    os.close(write)
    server.close()


# -- counts, middleware, shadow rules ----------------------------------------------------------------------------------


def test_a_change_admits_no_more_than_the_looser_of_old_and_new(shared_url: str) -> None:
    """One server has taken the new rules, another has not: together they admit 5, the looser one."""
    old, new = (BookLimiter(RuleBook(OLD), store=shared_url, deadline_s=5.0) for _ in range(2))
    versions = MemoryRuleVersions()
    book = RuleBook(OLD)
    changed = BookLimiter(book, store=shared_url, deadline_s=5.0)
    shared = SharedRules(book, versions=versions, refresh_s=FAST_S)
    admitted = sum(each.check({"user": "42"}).allowed for each in (old, changed))
    shared.put(text("3/366 days"), by="ann", seen=0)
    eventually_sync(lambda: changed.rules[0].quota.limit == 3)
    for _ in range(10):
        admitted += sum(each.check({"user": "42"}).allowed for each in (old, changed, new))
    assert admitted == 5
    shared.close()
    for each in (old, new, changed):
        each.close()


def ask(application: Any, user: str = "42") -> str:
    """The status of a request."""
    told: list[str] = []
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "SCRIPT_NAME": "", "HTTP_X_USER": user, "REMOTE_ADDR": "::1"}
    list(application(environ, lambda status, headers, error=None: told.append(status)))
    return told[0][:3]


def application(environ: Any, start: Any) -> list[bytes]:
    start("200 OK", [])
    return [b""]


def test_a_middleware_takes_the_shared_rules_and_its_shadow_rules_report(caplog: pytest.LogCaptureFixture) -> None:
    now_s, metrics = 0.0, LimitMetrics()
    shared = SharedRules(OLD, versions=MemoryRuleVersions(), refresh_s=FAST_S, monotonic_s=lambda: now_s)
    limited = RateLimitMiddleware(application, rules=shared.book, identify={"user": "header:x-user"}, metrics=metrics)
    assert [ask(limited) for _ in range(6)] == ["200"] * 5 + ["429"]
    shared.put(text("2/day") + text("1/day", "shadow = true", "tried"), by="ann", seen=0)
    eventually_sync(lambda: shared.book.version == 1)
    assert [ask(limited) for _ in range(3)] == ["200", "200", "429"]
    assert metrics.snapshot()["tried"]["shadow_refused"] == 2
    with caplog.at_level(logging.INFO, "frontrow.limits"):
        now_s = 61.0
        eventually_sync(lambda: [r for r in caplog.records if getattr(r, "action", "") == "limit_shadow_refused"])
    [line] = [r for r in caplog.records if getattr(r, "action", "") == "limit_shadow_refused"]
    assert (line.rule, line.refusals) == ("tried", 2)  # type: ignore[attr-defined]
    shared.close()
    limited.close()


def test_the_version_and_the_failures_are_metrics() -> None:
    from prometheus_client import CollectorRegistry, generate_latest

    metrics, registry = LimitMetrics(), CollectorRegistry()
    metrics.register(registry)
    shared = SharedRules(OLD, versions=MemoryRuleVersions(), refresh_s=FAST_S)
    limited = RateLimitMiddleware(application, rules=shared.book, identify={"user": "header:x-user"}, metrics=metrics)
    shared.put(text("2/day"), by="ann", seen=0)
    eventually_sync(lambda: b"frontrow_limits_rule_book_version 1.0" in generate_latest(registry))
    assert b"frontrow_limits_rule_book_failures_total 0.0" in generate_latest(registry)
    shared.close()
    limited.close()


def test_a_middleware_that_cannot_take_the_rules_keeps_all_servers_parts_together() -> None:
    """Of two followers in one process either both switch or none."""
    shared = SharedRules(OLD, versions=MemoryRuleVersions(), refresh_s=FAST_S)
    limited = RateLimitMiddleware(application, rules=shared.book, identify={"user": "header:x-user"})
    limiter = BookLimiter(shared.book)
    shared.put(text("2/day", 'paths = ["/"]'), by="ann", seen=0)
    eventually_sync(lambda: shared.book.failures == 1)
    assert [ask(limited) for _ in range(6)] == ["200"] * 5 + ["429"]
    shared.close()
    limited.close()
    limiter.close()


def test_a_configuration_file_names_its_rule_book(shared_url: str, tmp_path: Path) -> None:
    file = tmp_path / "limits.toml"
    file.write_text(f'[limits]\nstore = "{shared_url}"\nrule_book = "of-a-file"\n' + text("5/day"))
    config = load_config(file, env={})
    assert config.shared_rules is not None
    seen = config.shared_rules.history(1)
    config.shared_rules.put(text("6/day"), by="ann", seen=seen[0].version if seen else 0)
    eventually_sync(lambda: config.book.current.rules[0].quota.limit == 6)
    assert "rule_book" not in config.middleware_options()
    config.shared_rules.close()
    config.tiers.close()


def test_a_rule_with_tiers_needs_to_know_who_is_in_which() -> None:
    book = RuleBook([RequestRule("api", "1/day", key=["user"], tiers={"gold": "3/day"})])
    with pytest.raises(ConfigError, match="say who is in which"):
        BookLimiter(book)
    limiter = BookLimiter(book, tier_of=lambda key: "gold" if key["user"] == "ann" else None)
    assert [sum(limiter.check({"user": user}).allowed for _ in range(5)) for user in ("ann", "bob")] == [3, 1]


async def test_every_operation_of_a_limiter_follows_the_book() -> None:
    limiter = BookLimiter(RuleBook(OLD))
    key = {"user": "42"}
    assert limiter.check(key).remaining == 4
    assert (await limiter.acheck(key)).remaining == 3
    assert (limiter.peek(key).remaining, (await limiter.apeek(key)).remaining) == (3, 3)
    with limiter.reserve(key, 2) as reservation:
        reservation.settle(1)
    async with await limiter.areserve(key, 2) as reserved:
        await reserved.asettle(0)
    assert limiter.peek(key).remaining == 2
    assert limiter.stats.rules["api"].allowed == 4
    await limiter.aclose()


def test_a_book_replaced_many_times_keeps_counting_shadow_refusals() -> None:
    book = RuleBook([RequestRule("tried", "1/day", key=["user"], shadow=True)])
    limiter = BookLimiter(book)
    for limit in range(2, 8):
        limiter.check({"user": "42"}, 1)
        limiter.check({"user": "42"}, limit - 1)
        book.replace([RequestRule("tried", f"{limit}/day", key=["user"], shadow=True)])
    assert book.shadow_refusals() == {"tried": 6}
    limiter.close()


# -- the command line --------------------------------------------------------------------------------------------------


def run(*words: str) -> Any:
    return CliRunner().invoke(cli, ["rules", *words], env={"COLUMNS": "200"})


@pytest.fixture
def book(shared_url: str) -> list[str]:
    """The options that name an empty book."""
    return ["--store", shared_url, "--name", f"cli-{os.getpid()}-{os.urandom(4).hex()}"]


def test_two_operators_do_not_overwrite_each_other(book: list[str], tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(text("7/day"))
    assert run("put", str(file), *book, "--by", "ann", "--note", "a sale").stdout.startswith("version 1 is in force")
    forgotten = run("put", str(file), *book)
    assert (forgotten.exit_code, "say --if-version 1" in forgotten.output) == (2, True)
    shown = run("show", *book)
    assert shown.stdout.startswith("# version 1 by ann at 20")
    file.write_text(shown.stdout.replace("7/day", "9/day"))
    assert run("put", str(file), *book, "--if-version", "1", "--by", "bob").exit_code == 0
    late = run("put", str(file), *book, "--if-version", "1", "--by", "eve")
    assert (late.exit_code, "at version 2, not 1" in late.output) == (2, True)
    assert run("rollback", "1", *book, "--if-version", "2", "--by", "ann").stdout.startswith("version 3 has the rules")
    told = json.loads(run("history", *book, "--json").stdout)
    assert [(each["version"], each["by"], each["note"]) for each in told] == [
        (3, "ann", "rolled back to version 1"),
        (2, "bob", ""),
        (1, "ann", "a sale"),
    ]
    assert told[0]["text"] == told[2]["text"] == text("7/day")
    assert "a sale" in run("history", *book).output
    assert json.loads(run("show", *book, "--json", "--version", "2").stdout)["by"] == "bob"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["show"], "has no version"),
        (["show", "--version", "4"], "has no version 4"),
        (["rollback", "4"], "there is no version 4"),
        (["put", "missing.toml"], "missing.toml cannot be read"),
    ],
)
def test_a_mistake_is_one_sentence(redis_url: str, words: list[str], sentence: str) -> None:
    told = run(*words, "--store", redis_url)
    assert (told.exit_code, "Traceback" in told.output) == (2, False)
    assert sentence in told.output


def test_a_broken_file_is_refused_by_the_command(redis_url: str, tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(text("many/day"))
    told = run("put", str(file), "--store", redis_url)
    assert told.exit_code == 2
    assert "limits.rules[0].quota" in told.output
    assert run("history", "--store", redis_url, "--json").stdout.strip() == "[]"


def test_a_store_that_is_away_is_one_sentence() -> None:
    told = run("history", "--store", "redis://127.0.0.1:1/0")
    assert (told.exit_code, "StoreDown" in told.output) == (2, True)
    told = run("history")
    assert "name the store" in told.output


def test_a_limiter_beside_a_book_counts_the_same(redis_url: str) -> None:
    """`BookLimiter` and `Limiter` with the same rule share their counts in the store."""
    followed = BookLimiter(RuleBook(OLD), store=redis_url, deadline_s=5.0)
    with Limiter(Rule("api", "5/366 days", per=("user",)), store=redis_url, deadline_s=5.0) as plain:
        assert followed.check({"user": "42"}).remaining == 4
        assert plain.check({"user": "42"}).remaining == 3
    followed.close()
