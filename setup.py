"""Builds the optional compiled part; without a C compiler Frontrow works the same, more slowly.

The extension names its Cython source, so a source distribution contains it, and setuptools translates it only when it
compiles. The generated C file belongs to no distribution. The package's description is README.md with addresses that
also work away from the repository.
"""

import re
from pathlib import Path

from setuptools import Extension, setup

PICTURES = "https://raw.githubusercontent.com/frontrow/frontrow/main/"
PAGES = "https://github.com/frontrow/frontrow/blob/main/"


def with_addresses(text: str) -> str:
    """The text with absolute addresses for its pictures and its links to files of the repository."""
    text = re.sub(r"!\[([^]]*)\]\((?!https?:)([^)]+)\)", rf"![\1]({PICTURES}\2)", text)
    return re.sub(r"(?<!!)(\[[^]]*\])\((?!https?:|#|mailto:)([^)]+)\)", rf"\1({PAGES}\2)", text)


setup(
    ext_modules=[Extension("frontrow.web.lane._plain_head", ["src/frontrow/web/lane/_plain_head.pyx"], optional=True)],
    long_description=with_addresses(Path(__file__).with_name("README.md").read_text("utf-8")),
    long_description_content_type="text/markdown",
)
