"""Folders of results for the tests of the report, and pages in a browser without network."""

import json
import shutil
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def rewritten(source: Path, to: Path, **values: dict[str, str]) -> Path:
    """A copy of a folder in which texts of columns are replaced, in all tables and in run.json.

    `values` is old text to new text by column.
    """
    shutil.copytree(source, to)
    for path in to.glob("*.parquet"):
        frame = pl.read_parquet(path)
        for column, texts in values.items():
            if column in frame.columns:
                frame = frame.with_columns(pl.col(column).cast(pl.String).replace(texts))
        frame.write_parquet(path)
    info = json.loads((to / "run.json").read_text())
    names = values.get("scheduler", {})
    scenario = info["scenario"]
    scenario["schedulers"] = [names.get(name, name) for name in scenario["schedulers"]]
    (to / "run.json").write_text(json.dumps(info))
    return to


def change_info(folder: Path, **values) -> None:
    """Changes keys of run.json."""
    info = json.loads((folder / "run.json").read_text()) | values
    (folder / "run.json").write_text(json.dumps(info))


class Opened:
    """A page in a browser."""

    def __init__(self, page, complaints, requests):
        self.page = page
        self.complaints = complaints
        self.requests = requests

    def ask(self, script):
        return self.page.evaluate(script)

    def check(self):
        """What holds of every page: quiet, alone, as wide as the window, every chart drawn."""
        assert self.complaints == []
        assert len(self.requests) == 1, self.requests
        charts = self.ask("document.querySelectorAll('.chart').length")
        # How many marks of a chart cover any area, or any length.
        marks = self.ask(
            "[...document.querySelectorAll('.chart svg')].map(svg =>"
            " [...svg.querySelectorAll('[class^=series-] path, [class^=series-] use')]"
            " .map(mark => mark.getBBox()).filter(box => box.width + box.height > 0).length)"
        )
        assert len(marks) == charts
        assert all(count > 0 for count in marks), marks
        wide, window = self.ask("[document.documentElement.scrollWidth, innerWidth]")
        assert wide <= window
        return charts


@contextmanager
def opened(path: Path, *, width=1280, dark=False):
    """The page in headless Chromium; skips where there is no browser."""
    sync_api = pytest.importorskip("playwright.sync_api")
    browser_path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser_path is None:
        pytest.skip(f"none of {', '.join(BROWSERS)} is installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            offline=True,
        )
        page = context.new_page()
        complaints, requests = [], []
        page.on("request", lambda request: requests.append(request.url))
        page.on(
            "console",
            lambda message: (
                complaints.append(message.text) if message.type in {"error", "warning"} else None
            ),
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append("a dialog"), dialog.dismiss()))
        page.goto(path.resolve().as_uri())
        yield Opened(page, complaints, requests)
        browser.close()
