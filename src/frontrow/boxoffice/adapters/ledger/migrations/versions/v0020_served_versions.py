"""Version 20: the ledger says which earlier versions of the program it still serves (ADR 0128).

`migrate` fills the table after every upgrade.
"""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    ddl.run("CREATE TABLE served_versions (version text PRIMARY KEY);")
