"""The `frontrow` command. Each system brings its own commands; this file only joins them under one name.

Only the module of the command that is asked for is imported: the whole platform takes seconds, and `frontrow limits`
works without its libraries. `frontrow --help` knows the others by their lines here.
"""

import gc
import importlib
import importlib.util
import os
import sys
from importlib.metadata import version
from typing import Annotated

# group of commands -> the module that holds its typer app, what it is for, the extra that brings its libraries
GROUPS = {
    "limits": ("frontrow.cli.limits", "The rate limiter: see, try, check; look at a running store.", "cli"),
    "room": ("frontrow.cli.room", "The waiting room: serve, watch, steer, verify.", "room"),
    "event": ("frontrow.cli.event", "Events and their seating plans.", "boxoffice"),
    "ledger": ("frontrow.cli.ledger", "The ledger: schema, proof, figures, money.", "boxoffice"),
    "payments": (
        "frontrow.cli.payments",
        "Payments: register the shop's domain for Apple Pay and Google Pay.",
        "payments",
    ),
    "door": ("frontrow.cli.door", "The gate: check tickets offline, compare gates.", "tickets"),
    "organiser": (
        "frontrow.cli.organiser",
        "Organisers: make the first owner, list them, let somebody back in.",
        "platform",
    ),
    "keys": ("frontrow.cli.keys", "The keys that places, passes and tickets are signed with.", "platform"),
}


# single command -> the module with the function of its name, what it does, the extra that brings its libraries
COMMANDS = {
    "serve": ("frontrow.cli.serve", "Serve the whole platform: waiting room, box office, API.", "platform"),
    "work": (
        "frontrow.cli.work",
        "End dead holds, relay facts, send messages and webhooks, finish payments, make offers, until told to stop.",
        "platform",
    ),
    "demo": (
        "frontrow.app.demo",
        "Sell out a stadium on this machine: server, waiting room, crowd, payments; live in the terminal.",
        "platform",
    ),
    "doctor": (
        "frontrow.cli.doctor",
        "Check configuration, versions, schema, clocks, Redis, disk and secrets. Exit code 1 when something fails.",
        "platform",
    ),
    "rehearse": (
        "frontrow.cli.rehearse",
        "Simulate a sale of millions before it happens: waits, fairness, bots, what limits it, what to set.",
        "rehearsal",
    ),
    "storm": (
        "frontrow.cli.storm",
        "Put real load on your own running server: whole purchases by a crowd, latencies, a report.",
        "rehearsal",
    ),
    "storm-token": (
        "frontrow.cli.storm_token",
        "Print a token that lets `frontrow storm` load this server: one event, for an hour.",
        "platform",
    ),
    "size": (
        "frontrow.cli.size",
        "Servers, Redis, PostgreSQL, network and money that a sale needs, from our own benchmarks.",
        "rehearsal",
    ),
}


INTERRUPTED = 130  # as shells report a program that Ctrl-C ended

# libraries that only some commands of `frontrow limits` need -> the extra that brings them
LIBRARIES = {"redis": "redis", "hiredis": "redis", "matplotlib": "plot"}

# extra -> libraries that it brings and a smaller extra does not: our modules import them only where they are used
BROUGHT = {"platform": ("pyotp", "nh3", "zxingcpp"), "tickets": ("zxingcpp",)}


def main() -> None:
    """Run the command line. Ctrl-C while its modules load ends it without a word, like everywhere else."""
    try:
        _run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _run() -> None:
    """Run the command that is asked for; say what to install when its libraries are missing."""
    gc.disable()  # modules stay: to scan them again and again while they load takes a tenth of the time
    try:
        import typer
    except ImportError:
        sys.exit("The command line needs two libraries: pip install 'frontrow[cli]'")
    app = typer.Typer(
        name="frontrow",
        help="Flash-sale ticketing that does not fall over.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    version_option = typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")

    @app.callback()
    def options(version: Annotated[bool, version_option] = False) -> None:
        """Flash-sale ticketing that does not fall over."""

    asked = _find_command()
    extra = (COMMANDS | GROUPS)[asked][2] if asked in COMMANDS | GROUPS else "all"
    try:
        _check_libraries(BROUGHT.get(extra, ()))
        for name, (module, line, _) in COMMANDS.items():
            work = getattr(importlib.import_module(module), name.replace("-", "_")) if name == asked else _not_asked_for
            app.command(name, help=None if name == asked else line)(work)
        for name, (module, line, _) in GROUPS.items():
            if name == asked:
                app.add_typer(importlib.import_module(module).app, name=name)
            else:
                app.command(name, help=line)(_not_asked_for)
        gc.freeze()
        gc.enable()
        app()
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] == "frontrow":
            raise
        extra = LIBRARIES.get(error.name.split(".")[0], extra) if asked == "limits" else extra
        sys.exit(f"`frontrow {asked}` needs {error.name}, which is not installed: pip install 'frontrow[{extra}]'")


def _check_libraries(names: tuple[str, ...]) -> None:
    """Find them without importing them, so that a command says at its start what it would miss later."""
    for name in names:
        if importlib.util.find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _find_command() -> str:
    """The command that is asked for; while a shell completes a line, the one in that line."""
    words = os.environ.get("COMP_WORDS", "").split() if "_FRONTROW_COMPLETE" in os.environ else sys.argv
    return next((word for word in words[1:] if not word.startswith("-")), "")


def _print_version(asked: bool) -> None:
    if asked:
        print(f"frontrow {version('frontrow')}")
        raise SystemExit(0)


def _not_asked_for() -> None:
    """Stands in `frontrow --help` for a command that this call does not run."""


if __name__ == "__main__":
    main()
