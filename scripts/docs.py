#!/usr/bin/env python3
"""The documentation as a site, from the same Markdown: docs.py [INTO], by default target/site.

Nothing is fetched, neither now nor by a reader's browser. A link or an anchor that leads nowhere
fails the build, and so does a page that no list has.
"""

import logging
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

os.environ["NO_MKDOCS_2_WARNING"] = "1"

from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort
from pymdownx.slugs import slugify

ROOT = Path(__file__).resolve().parents[1]
STAGE = ROOT / "target" / "site-sources"
LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")
#: Pictures of HTML, such as those of the README for light and dark.
PICTURE = re.compile(r"(\bsrc(?:set)?=\")([^\":]+)(\")")

STUDY = ["lab", "sim", "replay", "python", "report", "campaigns", "papers", "findings"]

#: In a reader's order. A `*` stands for all pages that match and have no place before.
NAVIGATION = [
    ("Try it", ["README.md"]),
    ("On a link", ["docs/attach.md", "docs/operators/README.md", "docs/operators/*.md"]),
    (
        "Study schedulers",
        [f"docs/{name}.md" for name in STUDY],
    ),
    ("Papers", ["papers/README.md", "papers/*/README.md", "papers/*/*.md"]),
    ("Disciplines", ["docs/disciplines/*.md"]),
    ("Add one", ["CONTRIBUTING.md", "docs/architecture.md", "docs/testing.md"]),
    (
        "Reference",
        ["docs/README.md", "docs/*.md", "SECURITY.md", "CHANGELOG.md"],
    ),
    ("Measurements", ["docs/benchmarks/*.md", "validation/**/*.md", "bench/**/*.md"]),
    ("Files", ["**/*.md"]),
]


def pages() -> list[Path]:
    """The Markdown that git knows, as far as it is for readers."""
    asked = ["git", "ls-files", "-co", "--exclude-standard", "*.md"]
    listed = subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    found = [Path(name) for name in listed.splitlines() if (ROOT / name).is_file()]
    return [page for page in found if page.parts[0] not in {"crates", "python", "fuzz", ".github"}]


def stage() -> None:
    """Copy the pages, and whatever they link to, to where they are built from."""
    shutil.rmtree(STAGE, ignore_errors=True)
    waiting = pages()
    known = set(waiting)
    while waiting:
        page = waiting.pop()
        text = (ROOT / page).read_text()
        into = STAGE / page
        into.parent.mkdir(parents=True, exist_ok=True)

        def rewrite(match: re.Match[str], page: Path = page) -> str:
            target = match[2]
            if re.match(r"[a-z]+:", target):
                return match[0]
            source = (ROOT / page.parent / target).resolve()
            if not source.exists() or not source.is_relative_to(ROOT):
                return match[0]  # the build complains
            if source.is_dir():
                target = f"{target.rstrip('/')}/README.md"
                if not (source / "README.md").exists():
                    listing(source, known)
            elif source.suffix != ".md":
                copy = STAGE / source.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, copy)
            return match[1] + target + match[3]

        into.write_text(outside_code(PICTURE, rewrite, outside_code(LINK, rewrite, text)))


def outside_code(pattern: re.Pattern[str], rewrite: object, text: str) -> str:
    """Apply `rewrite` to matches that no fence encloses."""
    parts = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
    return "".join(
        part if part.startswith("```") else pattern.sub(rewrite, part)  # type: ignore[call-overload]
        for part in parts
    )


def listing(folder: Path, known: set[Path]) -> None:
    """A page for a folder that has none of its own."""
    name = folder.relative_to(ROOT)
    page = name / "README.md"
    if page in known:
        return
    known.add(page)
    lines = [f"# {name}", ""]
    for file in sorted(folder.iterdir()):
        if file.is_dir():
            continue
        lines.append(f"* [{file.stem if file.suffix == '.md' else file.name}]({file.name})")
        if file.suffix != ".md":
            copy = STAGE / name / file.name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, copy)
    into = STAGE / page
    into.parent.mkdir(parents=True, exist_ok=True)
    into.write_text("\n".join(lines) + "\n")


def navigation() -> list[dict[str, list[str]]]:
    """What stands in the site's lists, of what there is."""
    seen: set[str] = set()
    sections: list[dict[str, list[str]]] = []
    for title, patterns in NAVIGATION:
        mine: list[str] = []
        for pattern in patterns:
            for path in sorted(STAGE.glob(pattern)):
                name = str(path.relative_to(STAGE))
                # What a later section names, a star of an earlier one leaves to it.
                if name not in seen and ("*" not in pattern or not named_elsewhere(name, title)):
                    seen.add(name)
                    mine.append(name)
        if mine:
            sections.append({title: mine})
    return sections


def named_elsewhere(name: str, title: str) -> bool:
    return any(name in patterns for other, patterns in NAVIGATION if other != title)


class Complaints(logging.Handler):
    """What the build has to say against a page."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def main() -> None:
    """Build the site."""
    into = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "target" / "site").resolve()
    stage()
    configuration: dict[str, Any] = {
        "site_name": "Shortlane",
        "site_description": "Short lane for short flows through a busy link",
        "docs_dir": str(STAGE),
        "site_dir": str(into),
        "use_directory_urls": False,
        "strict": True,
        "nav": navigation(),
        "theme": {
            "name": "material",
            "font": False,
            "features": ["navigation.indexes", "navigation.top", "content.code.copy", "toc.follow"],
            "palette": [
                {"media": f"(prefers-color-scheme: {wanted})", "scheme": scheme}
                for wanted, scheme in (("light", "default"), ("dark", "slate"))
            ],
        },
        "plugins": ["search"],
        "markdown_extensions": [
            "tables",
            "md_in_html",
            "sane_lists",
            "pymdownx.superfences",
            {"pymdownx.highlight": {"use_pygments": True}},
            # Anchors as hosts of repositories make them.
            {"toc": {"permalink": True, "slugify": slugify(case="lower")}},
        ],
        "validation": {
            "nav": {"omitted_files": "warn", "not_found": "warn", "absolute_links": "warn"},
            "links": {"not_found": "warn", "anchors": "warn", "absolute_links": "warn",
                      "unrecognized_links": "warn"},
        },
    }  # fmt: skip
    complaints = Complaints()
    logging.getLogger("mkdocs").addHandler(complaints)
    try:
        # All of it is here; the file has to exist.
        file = STAGE.with_suffix(".yml")
        file.write_text("{}")
        build(load_config(str(file), **configuration))
    except Abort:
        sys.exit("\n".join([*complaints.lines, "docs: the site was not built"]))
    print(f"{len(list(into.rglob('*.html')))} pages: {into / 'index.html'}")


main()
