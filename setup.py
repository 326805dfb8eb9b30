"""Builds the optional compiled part and minifies the pages' scripts and styles.

The extension names its Cython source, so a source distribution contains it, and setuptools translates it only when it
compiles. Without a C compiler Frontrow works the same, more slowly. The generated C file belongs to no distribution.

A wheel has minified scripts and styles; a source distribution and a clone (an editable installation) have them as they
are written. Where a minifier has no wheel for this machine, the wheel keeps the readable file too.

The package's description is README.md with addresses that also work away from the repository.
"""

import re
from collections.abc import Callable
from pathlib import Path

COMPILED = "frontrow.web.fastpath._plain_head"
PICTURES = "https://raw.githubusercontent.com/frontrow/frontrow/main/"
PAGES = "https://github.com/frontrow/frontrow/blob/main/"


def with_addresses(text: str) -> str:
    """The text with absolute addresses for its pictures and its links to files of the repository."""
    text = re.sub(r"!\[([^]]*)\]\((?!https?:)([^)]+)\)", rf"![\1]({PICTURES}\2)", text)
    return re.sub(r"(?<!!)(\[[^]]*\])\((?!https?:|#|mailto:)([^)]+)\)", rf"\1({PAGES}\2)", text)


def minify_script(text: str) -> str:
    """Without comments and white space. Names stay: `site/assets.py` finds the texts in `t("…")`."""
    import rjsmin

    return str(rjsmin.jsmin(text))


def minify_style(text: str) -> str:
    import rcssmin

    return str(rcssmin.cssmin(text))


def minify_inline_script(text: str) -> str:
    """With short names as well: the waiting room's page is one answer of at most 14 KB, which is not compressed. The
    minifier leaves global names as they are, and with them `t`."""
    import minify

    return str(minify.string("application/javascript", text))


# files of frontrow/web, and what minifies them; the first pattern that matches counts
MINIFIED: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("templates/room.js", minify_inline_script),
    ("templates/room.css", minify_style),
    ("static/js/**/*.js", minify_script),
    ("static/css/**/*.css", minify_style),
)


def minify_files(web: Path) -> None:
    """Minify the scripts and styles of a copy of `frontrow/web`, each file in its place."""
    for pattern, minified in MINIFIED:
        for path in web.glob(pattern):
            try:
                path.write_text(minified(path.read_text("utf-8")), "utf-8")
            except ImportError as missing:
                print(f"{path.name} is not minified: there is no {missing.name}")


if __name__ == "__main__":
    from setuptools import Extension, setup
    from setuptools.command.build_py import build_py

    class BuildMinified(build_py):
        """Copies the package's files into the wheel, then minifies them there."""

        def run(self) -> None:
            super().run()
            if not self.editable_mode:
                minify_files(Path(self.build_lib) / "frontrow" / "web")

    setup(
        cmdclass={"build_py": BuildMinified},
        ext_modules=[Extension(COMPILED, [f"src/{COMPILED.replace('.', '/')}.pyx"], optional=True)],
        long_description=with_addresses(Path(__file__).with_name("README.md").read_text("utf-8")),
        long_description_content_type="text/markdown",
    )
