"""Runs the command line as `python -m frontrow.cli`."""

from frontrow.cli.main import main

main()
