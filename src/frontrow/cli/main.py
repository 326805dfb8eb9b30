"""The `frontrow` command. Each system brings its own commands; this file only joins them under one name.

Only the module of the command that is asked for is imported: the whole platform takes seconds, and `frontrow limits`
works without its libraries. `frontrow --help` knows the others by their lines here.
"""

import importlib
import sys
from typing import Any

# group of commands -> the module that holds its typer app, and what it is for
GROUPS = {
    "limits": ("frontrow.cli.limits", "The rate limiter: see, try, check."),
    "room": ("frontrow.cli.room", "The waiting room: serve, watch, steer, verify."),
    "event": ("frontrow.cli.event", "Events and their seating plans."),
    "ledger": ("frontrow.cli.ledger", "The ledger: schema, proof, figures, money."),
    "door": ("frontrow.cli.door", "The door: check tickets offline, compare gates."),
    "organiser": (
        "frontrow.cli.organiser",
        "Organisers: make the first owner, list them, let somebody back in.",
    ),
    "keys": ("frontrow.cli.keys", "The keys that places, passes and tickets are signed with."),
}


# single command -> the module with the function of its name, and what it does
COMMANDS = {
    "serve": ("frontrow.cli.serve", "Serve the whole platform: waiting room, box office, API."),
    "work": (
        "frontrow.cli.work",
        "End dead holds, relay facts, send messages and webhooks, finish payments, make offers, until told to stop.",
    ),
    "demo": (
        "frontrow.app.demo",
        "Sell out a stadium on this machine: server, waiting room, crowd, payments; live in the terminal.",
    ),
    "doctor": (
        "frontrow.cli.doctor",
        "Check configuration, versions, schema, clocks, Redis, disk and secrets. Exit code 1 when something fails.",
    ),
}


def main() -> None:
    """Run the command line; say what to install when its libraries are missing."""
    try:
        import typer
    except ImportError:
        sys.exit("The command line needs two libraries: pip install 'frontrow[cli]'")
    app = typer.Typer(
        name="frontrow",
        help="Flash-sale ticketing that does not fall over.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    asked = sys.argv[1] if len(sys.argv) > 1 else ""
    for name, (module, line) in COMMANDS.items():
        work = getattr(_imported(name, module), name) if name == asked else _not_asked_for
        app.command(name, help=None if name == asked else line)(work)
    for name, (module, line) in GROUPS.items():
        if name == asked:
            app.add_typer(_imported(name, module).app, name=name)
        else:
            app.command(name, help=line)(_not_asked_for)
    app()


def _imported(name: str, module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        sys.exit(f"`frontrow {name}` needs {error.name}, which is not installed: pip install 'frontrow[all]'")


def _not_asked_for() -> None:
    """Stands in `frontrow --help` for a command that this call does not run."""


if __name__ == "__main__":
    main()
