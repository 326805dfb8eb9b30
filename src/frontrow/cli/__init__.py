"""The `frontrow` command: one module per command group."""
