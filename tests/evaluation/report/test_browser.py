"""Both reports in a browser: nothing is loaded, nothing is wrong, every figure can be read out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import private_gsd as gsd
from tests.evaluation.report.browser import CHROMIUM, Browser
from tests.evaluation.tables import parts, quick

pytestmark = [
    pytest.mark.slow,
    pytest.mark.worker("evaluation"),
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium"),
]
UNNAMED = """[...document.querySelectorAll("svg")].filter(
  (each) => each.getAttribute("role") !== "img" || !each.getAttribute("aria-label")).length"""
OUTSIDE = """[...document.querySelectorAll("figure, p, h1, h2, .scroll")].filter((each) => {
  const box = each.getBoundingClientRect();
  return box.width > 0 && (box.left < -1 || box.right > innerWidth + 1);
}).length"""
COLOUR = "getComputedStyle(document.body).backgroundColor"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    train, held_out = parts(400)
    synth = quick(rows=200, workload=["categorical:2"]).fit(train)
    found = gsd.evaluate(synth.release_, train, holdout=held_out, targets=["citizen"])
    gsd.write_report(found, folder / "evaluation.html")
    gsd.write_report(synth.release_, folder / "release.html")
    return {path.stem: path for path in folder.glob("*.html")}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("page", ["evaluation", "release"])
def test_page(
    browser: Browser, pages: dict[str, Path], page: str, width: int, dark: bool, tmp_path: Path
) -> None:
    browser.open(pages[page], width=width, dark=dark)
    requests = [each["request"]["url"] for each in browser.seen("Network.requestWillBeSent")]
    assert [url for url in requests if not url.startswith("data:")] == [pages[page].as_uri()]
    for trouble in ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
        assert browser.seen(trouble) == []
    assert browser.evaluate('document.querySelectorAll("svg").length') > 5
    assert browser.evaluate(UNNAMED) == 0
    # Nothing is wider than the screen: tables scroll by themselves.
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert browser.evaluate(OUTSIDE) == 0
    shade = browser.evaluate(COLOUR)
    assert (shade == "rgb(255, 255, 255)") != dark
    alarm = browser.evaluate('document.querySelector(".alarm")?.innerText ?? ""')
    assert ("NOT FOR PUBLICATION" in alarm) == (page == "evaluation")
    browser.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 10_000


def test_the_warning_stays_in_sight(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["evaluation"])
    browser.evaluate("scrollTo(0, document.documentElement.scrollHeight / 2)")
    assert browser.evaluate('document.querySelector(".alarm").getBoundingClientRect().top') == 0
    red, green, blue = browser.evaluate(
        'getComputedStyle(document.querySelector(".alarm")).backgroundColor'
        ".match(/[0-9]+/g).map(Number)"
    )
    assert red > 150 > 50 > max(green, blue)


def test_the_keyboard_reaches_the_content(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["evaluation"])
    key = {"key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}
    browser.call("Input.dispatchKeyEvent", type="keyDown", **key)
    browser.call("Input.dispatchKeyEvent", type="keyUp", **key)
    assert browser.evaluate("document.activeElement.className") == "skip"
    assert browser.evaluate("document.activeElement.getBoundingClientRect().left") >= 0


def test_it_prints(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["evaluation"])
    assert browser.pdf().startswith(b"%PDF")
