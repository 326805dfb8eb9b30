"""`frontrow ledger partition`: the big tables of the sale partitioned by event, on PostgreSQL."""

import asyncio
from typing import Annotated

import typer

from frontrow.app.ledger_tools import PARTITIONS, partition_ledger, read_table_sizes
from frontrow.cli.deployment_options import ConfigOption, FolderOption, LedgerOption, find_direct_ledger
from frontrow.core.clock import SystemClock
from frontrow.core.errors import FrontrowError

WARNING = (
    "Nobody can buy until this has ended, and it needs about as much free disk again. It is one transaction: "
    "interrupted, it has changed nothing."
)


def partition(
    partitions: Annotated[int, typer.Option(help="How many partitions each table gets.")] = PARTITIONS,
    check: Annotated[bool, typer.Option("--check", help="Only say what the ledger is like.")] = False,
    config: ConfigOption = None,
    folder: FolderOption = None,
    ledger: LedgerOption = None,
) -> None:
    """Partition the big tables by event (PostgreSQL). Stop servers and workers first, and make a backup."""
    try:
        url = find_direct_ledger(config, folder, ledger)
        tables = asyncio.run(read_table_sizes(url))
        if check:
            for one in tables:
                how = f"{one.partitions} partitions" if one.partitions else "plain"
                typer.echo(f"{one.name:<14} {how:<15} {one.size_bytes / 1e6:>10,.1f} MB  about {one.rows:,} rows")
            typer.echo("partitioned by event" if tables[0].partitions else "not partitioned")
            return
        typer.echo(f"{sum(one.size_bytes for one in tables) / 1e6:,.0f} MB to copy. {WARNING}")
        asyncio.run(partition_ledger(url, partitions, SystemClock()(), typer.echo))
        typer.echo(f"partitioned by event into {partitions}; servers can start again")
    except FrontrowError as error:
        typer.echo(f"frontrow ledger: {error.message}", err=True)
        raise typer.Exit(2) from None
