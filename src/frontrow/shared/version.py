"""The version of the installed platform. `frontrow` is a namespace of two distributions and has none of its own."""

from importlib.metadata import version
from typing import Final

VERSION: Final = version("frontrow")
