"""The `frontrow` command. Each system brings its own commands; this file only joins them under one name."""

import importlib
import importlib.util
import sys

# command group -> the module that holds its typer app
GROUPS = {
    "limits": "frontrow.cli.limits",
    "room": "frontrow.cli.room",
    "event": "frontrow.cli.event",
    "ledger": "frontrow.cli.ledger",
    "door": "frontrow.cli.door",
    "organiser": "frontrow.cli.organiser",
    "keys": "frontrow.cli.keys",
}


# single commands -> module; the function has the command's name
COMMANDS = {
    "serve": "frontrow.cli.serve",
    "work": "frontrow.cli.work",
    "demo": "frontrow.app.demo",
    "doctor": "frontrow.cli.doctor",
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
    for name, module in GROUPS.items():
        if _present(module):
            app.add_typer(importlib.import_module(module).app, name=name)
    for name, module in COMMANDS.items():
        if _present(module):
            app.command(name)(getattr(importlib.import_module(module), name))
    app()


def _present(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


if __name__ == "__main__":
    main()
