"""The options that say where things are. Every command has the same ones, and they mean the same everywhere.

The command line comes first, then `FRONTROW_…` variables, then frontrow.toml: the one that `--config` names, or the one
in the folder where the command runs.
"""

from typing import Annotated

import typer

from frontrow.settings.deployment import Deployment, read_deployment

ConfigOption = Annotated[
    str | None,
    typer.Option("--config", "-c", envvar="FRONTROW_CONFIG", help="A frontrow.toml; without it the one that is here."),
]
FolderOption = Annotated[
    str | None,
    typer.Option("--folder", envvar="FRONTROW_SERVER_FOLDER", help="The server's folder: keys, an embedded ledger."),
]
LedgerOption = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        envvar="FRONTROW_LEDGER_URL",
        help="sqlite:///file.db (sqlite:////absolute/file.db) or postgresql://user@host/name; without it the server's.",
    ),
]


def find_ledger(config: str | None, folder: str | None, ledger: str | None) -> str:
    """The URL of the ledger that a command works on: the server's, unless it is told another."""
    return find_deployment(config, folder, ledger).ledger_url


def find_direct_ledger(config: str | None, folder: str | None, ledger: str | None) -> str:
    """The same for work that needs a connection of its own: a migration, a backup."""
    return find_deployment(config, folder, ledger).direct_ledger_url


def find_deployment(config: str | None, folder: str | None, ledger: str | None = None) -> Deployment:
    """Where things are, by the command line, the environment and the file."""
    return read_deployment(config, ledger=ledger, folder=folder)
