"""The report in headless Chromium: drawn, usable by hand and by keyboard, quiet, and on the network for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jaxreward.reports.page import write_report
from tests.reports.demonstrated_run import make_demonstrated_run
from tests.reports.made_run import make_run

DRAWN = "document.body.dataset.ready === 'yes'"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(make_run(tmp_path_factory.mktemp("runs") / "made", 40))


class Reader:
    """A page of the browser, and what it complained about or asked for."""

    def __init__(self, browser: Any, **context: Any) -> None:
        self.page = browser.new_page(**{"viewport": {"width": 1280, "height": 900}, **context})
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def read(self, path: Path, hash: str = "") -> Any:
        self.page.goto(path.as_uri() + hash)
        self.page.wait_for_function(DRAWN)
        return self.page

    def was_quiet(self, path: Path) -> bool:
        assert not self.complaints, self.complaints
        assert {url.partition("#")[0] for url in self.asked if not url.startswith(("data:", "blob:"))} == {
            path.as_uri()
        }
        return True


@pytest.fixture
def reader(chromium: Any) -> Iterator[Reader]:
    reader = Reader(chromium)
    yield reader
    reader.page.close()


def opened(page: Any, id: str) -> None:
    page.wait_for_function("id => document.getElementById('candidate').dataset.ready === id", arg=id)


@pytest.mark.long
def test_every_chart_is_drawn_without_a_complaint_or_a_request(reader, report):
    page = reader.read(report)
    assert page.locator("[data-chart]").count() == 11
    for place in page.locator("[data-chart]").all():
        marks = place.locator(
            "svg g.mark-symbol path, svg g.mark-line path, svg g.mark-rect path, svg g.mark-rule line"
        )
        assert marks.count() > 0, place.get_attribute("data-chart")
        box = place.locator("svg").bounding_box()
        assert box["width"] > 200 and box["height"] > 60
    assert reader.was_quiet(report)


@pytest.mark.long
def test_rewards_along_demonstrations_are_drawn(reader, tmp_path):
    report = write_report(make_demonstrated_run(tmp_path / "made"))
    page = reader.read(report)
    drawn = page.locator("#demonstrations [data-chart]")
    names = ["along_expert", "along_others", "along_policy", "rewards", "fitness_over_generations"]
    assert [place.get_attribute("data-chart") for place in drawn.all()] == [*names, "accuracy_over_generations"]
    assert page.locator("[data-chart=along_expert] g.mark-symbol path").count() >= 4, "the last states of four episodes"
    assert page.locator("[data-chart=rewards] g.mark-rect path").count() == 7, "bins that have states"
    page.set_viewport_size({"width": 320, "height": 740})
    page.wait_for_function("document.querySelector('[data-chart] svg').getBoundingClientRect().width < 320")
    page.wait_for_function(f"({CUT_OFF})().length === 0")
    assert reader.was_quiet(report)


@pytest.mark.long
def test_the_table_filters_and_sorts(reader, report):
    page = reader.read(report)
    rows = page.locator("#table tbody tr")
    assert rows.count() == 40 and page.locator("#count").inner_text() == "40 of 40"
    scores = [float(text) for text in page.locator("#table tbody tr td:nth-child(3)").all_inner_texts() if text != "–"]
    assert scores == sorted(scores, reverse=True), "the best come first"
    page.select_option("#state", "guard")
    failed = rows.count()
    assert 0 < failed < 40 and set(page.locator("#table tbody tr td:nth-child(2)").all_inner_texts()) == {"guard"}
    page.fill("#find", "g0000")
    assert rows.count() < failed
    page.select_option("#state", "")
    page.fill("#find", "")
    page.check("#warned")
    assert 0 < rows.count() < 40
    page.uncheck("#warned")
    page.click("th[data-column='features'] button")
    first = [int(text) for text in page.locator("#table tbody tr td:nth-child(6)").all_inner_texts() if text != "–"]
    assert first == sorted(first, reverse=True)
    page.click("th[data-column='features'] button")
    assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "ascending"
    assert reader.was_quiet(report)


@pytest.mark.long
def test_it_can_be_read_with_the_keyboard(reader, report):
    page = reader.read(report)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    first = page.locator("#table tbody tr").first.locator("button")
    id = first.inner_text()
    first.focus()
    page.keyboard.press("Enter")
    opened(page, id)
    assert page.locator("#candidate svg").count() == 2
    assert page.evaluate("document.getElementById('candidate').contains(document.activeElement)")
    page.keyboard.press("ArrowRight")
    following = page.locator("#table tbody tr").nth(1).locator("button").inner_text()
    opened(page, following)
    page.keyboard.press("Escape")
    assert not page.evaluate("document.getElementById('candidate').open")
    assert page.evaluate("document.activeElement.dataset.open") == id, "the focus returns to where it was"
    assert reader.was_quiet(report)


@pytest.mark.long
def test_a_candidate_shows_prompts_as_text(reader, report):
    page = reader.read(report, "#c=g0001-00")
    opened(page, "g0001-00")
    body = page.locator("#candidate-body")
    body.locator("summary", has_text="Prompts and replies").click()
    body.locator("summary", has_text="Call 1").click()
    assert "<script>alert('a prompt')</script>" in body.inner_text()
    assert reader.was_quiet(report)


@pytest.mark.long
def test_a_point_of_a_chart_opens_its_candidate(reader, report):
    page = reader.read(report)
    page.locator("[data-chart='search'] g.mark-symbol path").first.click()
    page.wait_for_function("document.getElementById('candidate').dataset.ready")
    assert page.locator("#candidate-title").inner_text().startswith("g0000-")


CUT_OFF = """() => [...document.querySelectorAll("[data-chart] svg, #candidate svg")].flatMap((chart) => {
    const edge = chart.getBoundingClientRect();
    return [...chart.querySelectorAll("text")].filter((word) => {
        const at = word.getBoundingClientRect();
        const seen = at.width && getComputedStyle(word).opacity !== "0";
        return seen && (at.left < edge.left - 1 || at.right > edge.right + 1);
    }).map((word) => word.textContent);
})"""


@pytest.mark.long
@pytest.mark.parametrize("width", [320, 360, 768])
def test_nothing_overflows_a_small_screen(chromium, report, width):
    reader = Reader(chromium, viewport={"width": width, "height": 740}, has_touch=True)
    page = reader.read(report, "#c=g0001-00")
    opened(page, "g0001-00")
    for measured in ("document.documentElement", "document.getElementById('candidate')"):
        assert page.evaluate(f"{measured}.scrollWidth") <= width
    assert page.evaluate(CUT_OFF) == [], "words of charts"
    page.set_viewport_size({"width": 320, "height": 900})
    page.wait_for_function("document.querySelector('[data-chart] svg').getBoundingClientRect().width < 320")
    page.wait_for_function(f"({CUT_OFF})().length === 0")
    assert reader.was_quiet(report)
    page.close()


@pytest.mark.long
def test_the_page_follows_the_dark_mode(chromium, report):
    reader = Reader(chromium, color_scheme="dark")
    page = reader.read(report)
    ground = "getComputedStyle(document.body).backgroundColor"
    ink = "getComputedStyle(document.querySelector('[data-chart] svg text')).fill"
    dark = page.evaluate(ground), page.evaluate(ink)
    page.click("#theme")
    light = page.evaluate(ground), page.evaluate(ink)
    assert dark[0] != light[0] and dark[1] != light[1], "the words of the charts change with the page"
    page.close()
