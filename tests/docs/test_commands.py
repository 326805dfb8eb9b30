"""Every shell command of README.md, CONTRIBUTING.md and docs/ is run here, page by page, or has its reason in a table.

A page's commands run from its top to its bottom in one folder, as a reader types them: `frontrow` in this process,
whatever serves in a process of its own until it answers, `curl` and the rest by the shell. Addresses of stores become
private servers (`World.real`). What takes minutes runs with smaller numbers, and as written with
`FRONTROW_LONG_COMMANDS=1` (`make soak`). What cannot run here is in CANNOT_RUN with the reason; the command,
target, extra or file in such a line still exists. A new line is run, so it cannot slip by.
"""

import contextlib
import importlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from frontrow.boxoffice.seats.formats.plan_generator import generate
from frontrow.boxoffice.seats.formats.pretix_format import to_pretix
from frontrow.cli.main import COMMANDS, GROUPS
from frontrow.limits_service.command import make_parser as limits_parser
from tests.docs.blocks import POSTGRES_URL, ROOT, blocks
from tests.docs.shell_lines import FENCE, LINES, PAGES, SHELL, Line
from tests.support.eventually import eventually_sync
from tests.support.not_checked import SAID as NOT_CHECKED
from tests.support.processes import until_healthy
from tests.support.servers import Valkey
from tests.web.api.support import room_keys

LOOKS_LIKE_SHELL = re.compile(r"\s*(\$ )?(frontrow|make|pip|docker|kubectl|helm|curl|\.venv/bin/\w+) ")
ASSIGNMENT = re.compile(r"[A-Z_]+=\S*")
LONG = os.environ.get("FRONTROW_LONG_COMMANDS") == "1"
CANNOT_RUN = {  # the beginning of a line, or of a line of a page -> why it cannot run here, and what checks it instead
    "make demo": "installs into .venv; the workflow `test` and `make soak` run it with FOR=20s",
    "make test": "is what runs this test",
    "pip install": "needs a registry and a minute; tests/test_packaging.py runs it in `make soak`",
    "docs/tutorial.md": "tests/docs/test_tutorial.py walks the page, tests/test_packaging.py its installation",
    "docker ": "needs Docker; tests/deploy/test_compose.py runs what the containers run, test_guides.py reads the line",
    "kubectl ": "needs a cluster; tests/deploy/test_guides.py knows what the line names",
    "helm ": "needs a cluster; tests/deploy/test_helm.py renders the chart, test_guides.py with the values of the line",
    "frontrow-limits serve": "serves until it is stopped; tests/limits/service/test_examples.py runs the page",
    "curl -s http://127.0.0.1:8071/": "needs the service of the line before; the same test runs it",
    "certbot ": "needs a name on the internet",
    "cp /etc/letsencrypt/": "needs the certificate of the line before",
    "chmod 600 deploy/nginx/": "needs the certificate of the line before",
    "curl -sS -i https://tickets.example.org": "needs that server; tests/deploy/test_deploy.py asks nginx with TLS",
    "git clone": "needs the repository's address",
    "cd frontrow": "goes into the copy of the line before",
}
ONLY_LONG = {  # the beginning of a line -> why it only runs with FRONTROW_LONG_COMMANDS=1
    "frontrow demo --for 60s": "a minute; tests/app/test_demo.py runs a shorter one",
    "frontrow storm http": "a minute; tests/rehearsal/test_storm.py runs a smaller one, with the words of the page",
}
SMALLER = {  # options of the lines that take long -> their value here
    "--people": "5000", "--seats": "200", "--capacity": "100", "--workers": "2",
}  # fmt: skip
SERVES = ("serve", "room serve")
SECRET = "q7Rk0v2mX9ZpLw4TtB8sYc1NfHd6GjUeA3iKoVxQ5rMz"


def excuse_of(line: Line) -> str:
    """Why it does not run here; empty if it does."""
    excuses = CANNOT_RUN | ({} if LONG else ONLY_LONG)
    return next((why for start, why in excuses.items() if start == line.page or line.plain.startswith(start)), "")


def command_of(words: list[str]) -> tuple[Any, str, list[str]]:
    """The command of the real command line that these words name, its name and its arguments."""
    name, rest = words[0], words[1:]
    assert name in COMMANDS | GROUPS, f"`frontrow {name}` does not exist"
    command: Any = typer.main.get_command(_app_of(name))
    while getattr(command, "commands", None):
        assert rest, f"`frontrow {name}` needs a command"
        assert rest[0] in command.commands, f"`frontrow {name} {rest[0]}` does not exist"
        command, name, rest = command.commands[rest[0]], f"{name} {rest[0]}", rest[1:]
    return command, name, rest


def check_line(line: str, folder: Path) -> None:
    """Raise if what a line names does not exist: the command with its options, the target, the extra."""
    words = shlex.split(line, comments=True)
    while words and ASSIGNMENT.fullmatch(words[0]):
        words.pop(0)
    program = words[0].rpartition("/")[2] if words else ""
    if program == "frontrow":
        command, name, rest = command_of(words[1:])
        for word in rest:  # files that a command reads must be there to be read
            if re.fullmatch(r"[\w-]+\.(json|csv|jsonl|toml|backup|bin)", word):
                (folder / word).touch()
        command.make_context(name, rest)
    elif program == "frontrow-limits":
        limits_parser().parse_args(words[1:])
    elif program == "make":
        targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
        assert {word for word in words[1:] if "=" not in word} <= targets
    elif program == "pip":
        project = ROOT / "packages" / "limits" if "frontrow-limits" in line else ROOT
        extras = set(tomllib.loads((project / "pyproject.toml").read_text())["project"]["optional-dependencies"])
        named = {one for word in words for one in re.findall(r"\[([\w,-]+)\]", word)}
        assert {one for group in named for one in group.split(",")} <= extras
    else:
        for word in words:
            if word.startswith("deploy/") and not word.endswith((".env", "tls/", "privkey.pem")):
                assert (ROOT / word).exists(), f"{word} does not exist"


class World:
    """Where the commands of one page run: a folder, an environment, and the servers that the page starts."""

    def __init__(self, folder: Path, request: pytest.FixtureRequest) -> None:
        self.folder, self._request = folder, request
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("FRONTROW_")}
        self.env |= {"FRONTROW_PEOPLE_ARGON2_MEMORY_KIB": "8", "FRONTROW_PEOPLE_ARGON2_LANES": "1"}
        self.known: dict[str, str] = {}  # what stands for something in the page -> what it is here
        self._servers: list[subprocess.Popen[str]] = []
        (folder / "frontrow-data" / "room").mkdir(parents=True)
        room_keys().save(folder / "frontrow-data" / "room")  # an RSA key takes a second

    def redis(self, number: int = 0) -> str:
        """A private Redis in place of the page's."""
        server: Valkey = self._request.getfixturevalue("own_valkey")
        return f"redis://127.0.0.1:{server.port}/{number}"

    def postgres(self) -> str:
        """A database of this page's own, in place of the page's."""
        url: str = self._request.getfixturevalue("postgres_url")
        return url

    def real(self, line: str) -> str:
        """The line with the addresses and names of this world."""
        if re.search(r"redis://(127|10)\.", line):
            line = line.replace("redis://127.0.0.1:6379/0", self.redis())
            line = line.replace("redis://10.0.0.1/0", self.redis(1)).replace("redis://10.0.0.2/0", self.redis(2))
        if POSTGRES_URL.search(line):
            line = POSTGRES_URL.sub(self.postgres(), line)
        for written, here in self.known.items():
            line = line.replace(written, here)
        return line

    def run(self, line: Line) -> None:
        """Run a line; it must end well, or serve."""
        text = self.real(line.plain)
        if text.startswith("frontrow "):
            self._frontrow(self._words(text)[1:])
            return
        program, _, rest = text.partition(" ")
        if program == "export":
            self.env |= [self._words(rest)[0].split("=", 1)]
            return
        if shutil.which(program) is None:
            what = f"lines of the docs that begin with `{program}` (it is not installed)"
            self._request.node.user_properties.append((NOT_CHECKED, what))
            return
        wanted = re.search(r'# until "(\w+)"', text)  # a line that is repeated until the answer says so
        self.remember(
            eventually_sync(
                lambda: self._shell(text), until=lambda said: not wanted or f'"{wanted[1]}"' in said, every_s=0.2
            )
        )

    def _shell(self, text: str) -> str:
        """What a command says."""
        done = subprocess.run(
            ["sh", "-c", text],
            cwd=self.folder, env=self.env, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def remember(self, told: str) -> None:
        """Later lines use what a server answered: `$PLACE` is the `place` of an answer before."""
        with contextlib.suppress(ValueError):
            answer = json.loads(told)
            assert "status" not in answer or answer["status"] < 400, told
            self.env |= {name.upper(): str(value) for name, value in answer.items() if isinstance(value, str)}

    def _words(self, text: str) -> list[str]:
        """As the shell splits and completes them."""
        told = subprocess.run(
            ["sh", "-c", f"set -- {text}\nprintf '%s\\0' \"$@\""],
            env=self.env,
            capture_output=True,
            text=True,
            check=True,
        )
        return told.stdout.split("\0")[:-1]

    def _frontrow(self, words: list[str]) -> None:
        if " ".join(words[: 2 if words[0] in GROUPS else 1]) in SERVES:
            address = self.serve(words)
            self.known |= {"http://127.0.0.1:8000": address} if words[0] == "serve" else {}
            return
        words = words if LONG else self._smaller(words)
        words += ["--once"] if words[:2] == ["limits", "watch"] else []  # it looks until Ctrl-C
        typed = "a sentence nobody guesses either\n" * 2
        done = CliRunner().invoke(_app_of(words[0]), words[1:], input=typed, env=self.env)
        assert done.exit_code == 0, f"{shlex.join(words)}: {done.output} {done.exception!r}"

    def _smaller(self, words: list[str]) -> list[str]:
        return [SMALLER.get(before, word) for before, word in zip(["", *words], words, strict=False)]

    def serve(self, words: list[str]) -> str:
        """Start it, wait until it answers, let it run until the page's end; its address."""
        words = words if LONG else self._smaller(words)
        command = [sys.executable, "-m", "frontrow.cli.main", *words, "--port", "0"]
        with (self.folder / "server.log").open("ab") as log:
            server = subprocess.Popen(
                command, cwd=self.folder, env=self.env, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self._servers.append(server)
        assert server.stdout is not None
        url = next(line.split()[-1] for line in server.stdout if "http://" in line)
        until_healthy(url, server, self.folder / "server.log")
        return url

    def stop(self) -> list[int]:
        """End the servers; their exit codes."""
        for server in self._servers:
            server.send_signal(signal.SIGTERM)
        for server in self._servers:
            server.communicate(timeout=60)
        return [server.returncode for server in self._servers]


def put_page_files(world: World, page: str) -> None:
    """The files that a page shows: TOML blocks with a name, and the `frontrow.toml` of the rehearsal."""
    for other, _, _, toml in blocks("toml"):
        name = str(other.relative_to(ROOT))
        if name == page and toml.startswith("# "):
            (world.folder / toml.splitlines()[0][2:].strip()).write_text(toml)
        if name == "docs/rehearsal.md" and page in (name, "docs/scaling.md"):
            (world.folder / "frontrow.toml").write_text(toml if LONG else re.sub("(2_000_|50_|5)000", "200", toml))


def enter_shop(world: World) -> None:
    """The server of the README runs. Somebody buys as the client's page says, so there is a ticket to show."""
    address = world.known["http://127.0.0.1:8000"]
    [code] = [code for page, _, before, code in blocks("python") if page.name == "client.md" and "no-run" in before]
    names: dict[str, Any] = {}
    exec(code.replace("http://127.0.0.1:8000", address), names)
    assert [ticket.seat for ticket in names["tickets"]] == ["Stalls-A-7", "Stalls-A-8"]
    world.known |= {"evt_…": "evt_example", "CODE": names["tickets"][0].code}
    world.known |= {"evt_01JCQ3W2N4X7Z8Y9A0B1C2D3E4": "evt_example"}
    world.known |= {"Stalls-A-7": "Stalls-A-9", "Stalls-A-8": "Stalls-A-10"}  # those of the page are sold now
    (world.folder / "south.jsonl").touch()


def prepare_servers(world: World) -> None:
    """The settings of servers on PostgreSQL, and made-up money."""
    world.env |= {"FRONTROW_LEDGER_URL": world._request.getfixturevalue("postgres_ledger_url")}
    world.env |= {"FRONTROW_REDIS_URL": world.redis(), "FRONTROW_SECRET_KEY": SECRET, "FRONTROW_SERVER_DEMO": "true"}
    (world.folder / "frontrow-data" / "payments.jsonl").touch()


def prepare_operation(world: World) -> None:
    """One server without stores. The restore is into an empty folder."""
    world.env |= {"FRONTROW_SECRET_KEY": SECRET, "FRONTROW_SERVER_DEMO": "true"}
    world.env |= {"FRONTROW_LEDGER_URL": "sqlite:///ledger.db"}
    world.known["ledger restore"] = "ledger restore --ledger sqlite:///other.db"


def prepare_ledger(world: World) -> None:
    """The ledger of a server that was started once, and one on PostgreSQL to be partitioned."""
    postgres = world._request.getfixturevalue("postgres_ledger_url")
    world.known["ledger partition"] = f"ledger partition --ledger {postgres}"
    assert CliRunner().invoke(_app_of("ledger"), ["migrate"], env=world.env).exit_code == 0


def prepare_storm(world: World) -> None:
    """The event of the demo that the page starts."""
    world.known["evt_01JCQ3W2N4X7Z8Y9A0B1C2D3E4"] = "evt_example"


def prepare_hall(world: World) -> None:
    """A hall of pretix to import."""
    (world.folder / "hall.json").write_text(json.dumps(to_pretix(generate("theatre", 100))))


def prepare_checkout(world: World) -> None:
    """A copy of the repository's deploy folder."""
    shutil.copytree(ROOT / "deploy", world.folder / "deploy")


PREPARED: dict[str, Callable[[World], None]] = {  # page -> what there is before its first command
    "docs/api.md": enter_shop,
    "docs/guides/backup.md": prepare_servers,
    "docs/guides/production.md": prepare_checkout,
    "docs/operations.md": prepare_operation,
    "docs/scaling.md": prepare_ledger,
    "docs/seats.md": prepare_hall,
    "docs/storm.md": prepare_storm,
}
TOGETHER = (  # pages in one folder, one after the other: the later ones are about what the first ones started
    ("README.md", "docs/people.md", "docs/api.md", "docs/tickets.md"),
    ("docs/guides/backup.md", "docs/guides/upgrade.md", "docs/guides/disaster-recovery.md"),
    ("docs/rehearsal.md", "docs/scaling.md"),
)
ALONE = {line.page for line in LINES if not excuse_of(line)} - {page for pages in TOGETHER for page in pages}
WALKS = [*TOGETHER, *((page,) for page in sorted(ALONE))]


@pytest.mark.parametrize("pages", WALKS, ids=" ".join)
def test_the_commands_of_a_page_run_from_top_to_bottom(
    pages: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("FRONTROW_")]:
        monkeypatch.delenv(name)
    world = World(tmp_path, request)
    try:
        for page in pages:
            put_page_files(world, page)
            PREPARED.get(page, lambda _: None)(world)
            for line in [line for line in LINES if line.page == page and not excuse_of(line)]:
                world.run(line)
    finally:
        codes = world.stop()
    assert set(codes) <= {0}, (tmp_path / "server.log").read_text()[-2000:]


@pytest.mark.parametrize(
    "line", [line for line in LINES if excuse_of(line)], ids=lambda line: f"{line.page}:{line.number}"
)
def test_a_line_that_cannot_run_here_names_what_exists(
    line: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check_line(line.plain, tmp_path)


def test_every_excuse_is_needed_and_most_lines_run() -> None:
    excuses = CANNOT_RUN | ONLY_LONG
    needed = {start for start in excuses for line in LINES if start == line.page or line.plain.startswith(start)}
    assert needed == set(excuses)
    named = {name for why in excuses.values() for name in re.findall(r"tests/[\w/]+\.py", why)}
    assert [name for name in named if not (ROOT / name).exists()] == []
    of_ours = [line for line in LINES if line.plain.startswith("frontrow ") and line.page != "docs/tutorial.md"]
    assert len([line for line in of_ours if excuse_of(line)]) <= len(ONLY_LONG), "commands of ours run"


def _app_of(name: str) -> typer.Typer:
    if name in GROUPS:
        app: typer.Typer = importlib.import_module(GROUPS[name][0]).app
        return app
    app = typer.Typer()
    app.command()(getattr(importlib.import_module(COMMANDS[name][0]), name.replace("-", "_")))
    return app


def test_no_command_hides_in_a_block_without_a_language() -> None:
    hidden = []
    for page in PAGES:
        for match in FENCE.finditer(page.read_text("utf-8")):
            if match[2] not in (*SHELL, "python", "toml", "json", "sql", "mermaid", "yaml", "html"):
                hidden += [f"{page.name}: {one}" for one in match[3].splitlines() if LOOKS_LIKE_SHELL.match(one)]
    assert hidden == []


@pytest.mark.parametrize(
    "line",
    [
        "frontrow serv",
        "frontrow serve --no-such-option",
        "frontrow ledger migrat",
        "make nothing",
        "docker -f deploy/none.yaml",
    ],
)
def test_a_wrong_line_would_be_caught(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Exception):  # noqa: B017  # an assertion, or the command line's own error
        check_line(line, tmp_path)
