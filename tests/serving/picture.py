"""`python -m tests.serving.picture RUNS FILE.png`: the list of runs of `jaxreward serve`, photographed."""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser import CHROMIUM, QUIET
from tests.serving.serving import serving


def take(runs: Path, target: Path) -> None:
    """Write the picture of the runs in a folder, as they are now."""
    with serving(runs) as client, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        page = browser.new_page(viewport={"width": 1180, "height": 300})
        page.goto(f"http://127.0.0.1:{client.port}/")
        page.locator("table.runs").first.wait_for()
        page.locator("#status", has_text="run").wait_for()
        page.screenshot(path=target, full_page=True)
        browser.close()


if __name__ == "__main__":
    take(Path(sys.argv[1]), Path(sys.argv[2]))
