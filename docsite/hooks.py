"""What MkDocs calls: adds the pages that are made when the site is built, and makes links right."""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from docsite import reference
from docsite.repository_links import DOCS, PAGES, ROOT, local_links, site_path, source_page, with_site_links

MERMAID = ROOT / ".venv" / "docs" / "mermaid.min.js"  # fetched by `make docs`


def on_files(files: Files, config: Any) -> Files:
    """README and its neighbours, the reference, and every file that a page links to."""
    made = {page: (ROOT / path).read_text("utf-8") for path, page in PAGES.items() if (ROOT / path).exists()}
    origins = {page: path for path, page in PAGES.items()}
    made |= reference.pages()
    linked = set[str]()
    for path, text in _pages_of_the_repository():
        linked |= {target for target, _ in local_links(text, path)}
    for target in linked:
        if site_path(target).startswith("source/"):
            made[site_path(target)] = source_page(target)
    for page, text in made.items():
        content = with_site_links(text, origins[page]) if page in origins else text
        files.append(File.generated(config, page, content=content))
    for asset in sorted((Path(__file__).parent / "assets").iterdir()):
        files.append(File.generated(config, f"assets/{asset.name}", abs_src_path=str(asset)))
    if MERMAID.exists():
        files.append(File.generated(config, f"assets/{MERMAID.name}", abs_src_path=str(MERMAID)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links of the pages under docs/ that leave this folder."""
    if page.file.generated_by:
        return markdown
    return with_site_links(markdown, f"{DOCS}/{page.file.src_uri}")


def _pages_of_the_repository() -> list[tuple[str, str]]:
    found = [ROOT / path for path in PAGES if (ROOT / path).exists()]
    found += sorted((ROOT / DOCS).rglob("*.md"))
    return [(one.relative_to(ROOT).as_posix(), one.read_text("utf-8")) for one in found]
