"""The pages of `jaxreward serve` in headless Chromium: they follow a run that grows; texts of others stay apart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jaxreward.runs import EventLog
from tests.reports import example
from tests.serving.serving import of, serving

EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>"


class Reader:
    """A page of the browser, and what it complained about or asked others for."""

    def __init__(self, browser: Any, port: int, **context: Any) -> None:
        self.page = browser.new_page(**{"viewport": {"width": 1280, "height": 900}, **context})
        self.root = f"http://127.0.0.1:{port}"
        self.complaints: list[str] = []
        self.page.on("console", lambda m: self.complaints.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.complaints.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self._asked(request.url))

    def _asked(self, url: str) -> None:
        if not url.startswith((self.root, "data:", "blob:")):
            self.complaints.append(f"asked for {url}")

    def open(self, address: str) -> Any:
        self.page.goto(self.root + address)
        self.page.locator("body[data-ready=yes]").wait_for()
        return self.page


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[tuple[Path, EventLog]]:
    """Two runs of one task; the first is being written, and has a name and a strategy that are markup."""
    whole = example.events()
    example.write_run(tmp_path / "runs" / "other", example.events(best=0.6))
    run = example.write_run(tmp_path / "runs" / "one", whole[:11])
    log = run / "events.jsonl"
    log.write_text(log.read_text().replace('"strategy": "limen"', f'"strategy": {json.dumps(EVIL)}'))
    with EventLog(log) as writer:
        yield tmp_path / "runs", writer


@pytest.mark.long
def test_the_list_follows_a_run(chromium, growing):
    runs, log = growing
    with serving(runs) as client:
        reader = Reader(chromium, client.port)
        page = reader.open("/")
        row = page.locator("tr[data-run=one]")
        assert "running" in row.inner_text() and "2 of 6" in row.inner_text() and EVIL in row.inner_text()
        assert page.locator("figure.overview g").count() == 2, "the runs of a task share a chart"
        for event in example.events()[11:22]:
            log.append(event)
        page.locator("tr[data-run=one]", has_text="4 of 6").wait_for()
        assert "0.900" in row.inner_text()
        row.locator("a").first.click()
        page.locator("#name", has_text="one").wait_for()
        assert page.url == f"{reader.root}{of('one')}" and not reader.complaints
        page.close()


@pytest.mark.slow
def test_the_report_follows_a_run_unless_it_is_read(chromium, growing):
    runs, log = growing
    with serving(runs) as client:
        reader = Reader(chromium, client.port)
        page = reader.open(of("one"))
        report = page.frame_locator("iframe:not(.next)")
        report.locator("body[data-ready=yes]").wait_for()
        assert report.locator("body").evaluate("() => { try { return document.cookie } catch { return 'apart' } }") == (
            "apart"
        ), "the report has an origin of its own"
        report.locator("#candidates").evaluate("element => element.scrollIntoView()")
        at = report.locator("body").evaluate("() => scrollY")
        for event in example.events()[11:22]:
            log.append(event)
        report.locator("#table tbody tr", has_text="g0001-00").first.wait_for()
        page.locator("iframe.next").wait_for(state="detached")
        assert at > 0 and report.locator("body").evaluate("() => scrollY") == at, "where it was read"
        report.locator("#table button.link").first.click()
        report.locator("dialog[open]").wait_for()
        log.append(example.events()[22])
        page.locator("#newer").wait_for()
        assert report.locator("dialog[open]").count() == 1, "an open candidate stays"
        page.locator("#newer").click()
        page.locator("iframe.next").wait_for(state="detached")
        report.locator("dialog").wait_for(state="hidden")
        assert not reader.complaints
        page.close()


def test_a_reader_enters_with_the_token(chromium, growing):
    runs, _ = growing
    with serving(runs, token="right-token") as client:
        reader = Reader(chromium, client.port)
        page = reader.page
        page.goto(f"{reader.root}/?token=right-token")
        page.locator("tr[data-run=one]").wait_for()
        assert page.url == f"{reader.root}/"
        page = reader.open(of("one"))
        page.frame_locator("iframe").locator("body[data-ready=yes]").wait_for()
        assert not reader.complaints
        page.close()


def test_films_and_programs(chromium, growing):
    runs, _ = growing
    gif = "47494638396101000100800000000000ffffff21f90401000000002c00000000010001000002024401003b"
    (runs / "other" / "film.gif").write_bytes(bytes.fromhex(gif))
    (runs / "other" / "best_interface.py").write_text(f"# digest: digest-g0001-00\n# {EVIL}\n")
    with serving(runs) as client:
        reader = Reader(chromium, client.port)
        page = reader.open(f"{of('other')}#films")
        page.locator("#films img").wait_for()
        assert page.locator("#films img").evaluate("image => image.decode().then(() => image.naturalWidth)") == 1
        page.locator("#parts a", has_text="Program").click()
        page.locator("#program code", has_text=EVIL).wait_for()
        assert not reader.complaints
        page.close()


@pytest.mark.parametrize("width", [320, 768])
def test_nothing_overflows_a_small_screen(chromium, growing, width):
    runs, _ = growing
    with serving(runs) as client:
        reader = Reader(chromium, client.port, viewport={"width": width, "height": 740}, has_touch=True)
        for address in ("/", of("one"), f"{of('one')}#program"):
            page = reader.open(address)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, address
        page.close()
