"""Opens a report in headless Chromium and uses it like a reader: at two widths, light and dark, by mouse and by keyboard.

usage: report.py REPORT.html FIGURES [PICTURES]

FIGURES is the required number of figures. If the folder PICTURES is given, screenshots are saved there.
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

WIDTHS = (1280, 400)
# Height of the window, and maximum height of the page at the larger width, in pixels.
SCREEN = 800
HEIGHT_MAX = 6000
ORDERS = ("ascending", "descending")


def check_first_screen(page: Page) -> None:
    """The answer and the main figures fit on the first screen, and the page is short without its folded parts."""
    height = page.evaluate("document.documentElement.scrollHeight")
    assert height <= HEIGHT_MAX, f"{height} pixels"
    for box in [one.bounding_box() for one in page.locator("#answer > dl, #answer .canvas").all()]:
        assert box and box["y"] + box["height"] <= SCREEN, box
    findings = page.locator("#findings > ol > li")
    assert findings.count() <= 10, f"{findings.count()} findings are not folded"


def unfold(page: Page) -> None:
    """Checks that a link unfolds its target, and unfolds all other parts."""
    runs = page.locator("#runs")
    assert not page.locator("#run-1").is_visible()
    page.evaluate("location.hash = '#run-1'")
    page.wait_for_function("document.getElementById('runs').open")
    assert runs.locator("#run-1").is_visible()
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")


def check_figures(page: Page, number: int) -> None:
    figures = page.locator("figure")
    assert figures.count() == number, f"{figures.count()} figures"
    for figure in figures.all():
        drawn = [box for box in (one.bounding_box() for one in figure.locator("svg:visible").all()) if box]
        assert len(drawn) == 1, f"{len(drawn)} pictures are visible"
        assert drawn[0]["width"] > 200 and drawn[0]["height"] > 40, drawn
        marks = figure.locator("svg:visible").first.locator("path, circle, rect, line, polyline, text")
        assert marks.count() > 3, "an empty picture"


def check_sorting(page: Page) -> None:
    """A click on a heading sorts by the column, a second click reverses the order. Numbers are sorted by value."""
    for table in page.locator("table.sortable").all():
        heads = table.locator("thead th")
        for column in range(heads.count()):
            head = heads.nth(column)
            assert head.get_attribute("aria-sort") == "none"
            for order in ORDERS:
                head.get_by_role("button").click()
                assert head.get_attribute("aria-sort") == order
                cells = table.locator(f"tbody tr > :nth-child({column + 1})").all()
                values = [cell.get_attribute("data-v") for cell in cells]
                known = [float(value) for value in values if value is not None]
                if len(known) == len(values):
                    assert known == sorted(known, reverse=order == "descending"), known
            others = [one for one in heads.all() if one.get_attribute("aria-sort") != "none"]
            assert len(others) == 1, "exactly one column is marked as sorted"
            head.evaluate("head => head.setAttribute('aria-sort', 'none')")
    head = page.locator("#runs thead th").first
    head.get_by_role("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending", "the keyboard sorts too"


def check_filter(page: Page) -> None:
    rows = page.locator("#runs tbody tr")
    box = page.get_by_role("searchbox")
    box.fill("no run has this word")
    assert rows.locator("visible=true").count() == 0
    # Only findings and doubts about some of the runs name them.
    link = page.locator("a[href^='#run-']").first
    if link.count():
        link.dispatch_event("click")
        assert page.locator(link.get_attribute("href")).is_visible(), "a link shows its target run"
    else:
        box.fill("")
    assert rows.locator("visible=true").count() == rows.count()


def check_toggles(page: Page) -> None:
    for figure in page.locator("figure").all():
        for button in figure.locator("button[aria-pressed]").all():
            name = button.inner_text()
            marks = [m for m in figure.locator("svg:visible [data-series]").all() if m.get_attribute("data-series") == name]
            assert marks, f"`{name}` has no marks"
            button.click()
            assert button.get_attribute("aria-pressed") == "false"
            assert not any(mark.is_visible() for mark in marks), f"`{name}` is still visible"
            button.click()
            assert button.get_attribute("aria-pressed") == "true"


def check_zoom(page: Page) -> None:
    for figure in page.locator("figure").all():
        picture = figure.locator("svg:visible").first
        whole = picture.get_attribute("viewBox")
        figure.get_by_role("button", name="Zoom in").click()
        assert picture.get_attribute("viewBox") != whole
        figure.get_by_role("button", name="Whole").click()
        assert picture.get_attribute("viewBox") == whole
        figure.locator(".canvas").focus()
        page.keyboard.press("+")
        assert picture.get_attribute("viewBox") != whole
        page.keyboard.press("0")
        assert picture.get_attribute("viewBox") == whole


READ_TIP = """(mark, [name, options]) => {
    mark.dispatchEvent(new PointerEvent(name, options));
    const tip = document.getElementById("tip");
    return tip.checkVisibility({ visibilityProperty: true }) ? tip.innerText : null;
}"""
"""Dispatches a pointer event to a mark. Returns the text of the tip beside the pointer, or null."""


def check_values(page: Page) -> None:
    """Pointing at a mark shows its values."""
    for figure in page.locator("figure").all():
        marks = figure.locator("svg:visible [data-tip]")
        if marks.count() == 0:
            continue
        # Read in the same call, before an event of the real pointer, which is elsewhere.
        tip = marks.last.evaluate(READ_TIP, ["pointermove", {"clientX": 100, "clientY": 100, "bubbles": True}])
        assert tip == marks.last.get_attribute("data-tip").strip()
        assert figure.locator(".canvas").evaluate(READ_TIP, ["pointerleave", {}]) is None


def luminance(page: Page) -> float:
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(float(part) for part in colour.strip("rgb()").split(",")[:3]) / 3


def check_dark(page: Page) -> None:
    button = page.get_by_role("button", name="Dark colours")
    assert button.get_attribute("aria-pressed") == "false" and luminance(page) > 200
    button.click()
    assert button.get_attribute("aria-pressed") == "true" and luminance(page) < 60
    check_figures(page, page.locator("figure").count())
    button.click()
    assert luminance(page) > 200
    page.emulate_media(color_scheme="dark")
    assert luminance(page) < 60, "follows the system"
    page.emulate_media(color_scheme="light")


def check_reading(page: Page) -> None:
    """Checks headings, captions, labels and ids, which screen readers use."""
    assert page.locator("main").count() == 1 and page.locator("h1").count() == 1
    for heading in page.locator("details.section > summary > h2").all():
        assert heading.inner_text().strip(), "a section without a heading"
    for section in page.locator("section").all():
        heading = page.locator("#" + section.get_attribute("aria-labelledby"))
        assert heading.inner_text().strip(), "a section without a heading"
    levels = [int(name[1]) for name in page.locator("h1, h2, h3").evaluate_all("all => all.map(one => one.tagName)")]
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:])), levels
    for table in page.locator("table").all():
        assert table.locator("caption").text_content().strip(), "a table without a caption"
        assert table.locator("thead th:not([scope])").count() == 0
    ids = page.locator("[id]").evaluate_all("all => all.map(one => one.id)")
    assert len(ids) == len(set(ids)), f"duplicate ids: {sorted(one for one in set(ids) if ids.count(one) > 1)}"
    for labelled in page.locator("[aria-labelledby]").all():
        assert labelled.get_attribute("aria-labelledby") in ids, "a missing label"
    for figure in page.locator("figure").all():
        names = [button.get_attribute("aria-label") or button.inner_text() for button in figure.locator("button").all()]
        assert len(names) == len(set(names)), f"buttons with the same name: {names}"
    named = page.locator(".tools button[aria-label]").evaluate_all("all => all.map(one => one.ariaLabel)")
    assert len(named) == len(set(named)), "buttons of two figures have one name"
    for link in page.locator("a[href^='#']").all():
        target = link.get_attribute("href")[1:]
        assert page.locator(f"[id='{target}']").count() == 1, f"`#{target}` leads nowhere"
    page.keyboard.press("Tab")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none", "the focus is not visible"


def check_paper(page: Page) -> None:
    page.emulate_media(media="print", color_scheme="dark")
    assert luminance(page) > 200, "paper is white"
    assert page.locator(".tools").first.is_hidden()
    page.emulate_media(media="screen", color_scheme="light")


def check_page(page: Page, width: int, figures: int) -> None:
    page_width = page.evaluate("document.documentElement.scrollWidth")
    assert page_width <= width, f"{page_width} pixels wide in a window of {width}"
    if width == max(WIDTHS):
        check_first_screen(page)
    unfold(page)
    check_reading(page)
    check_figures(page, figures)
    check_sorting(page)
    check_filter(page)
    check_toggles(page)
    check_zoom(page)
    check_values(page)
    check_dark(page)
    check_paper(page)


def main(report: Path, figures: int, pictures: Path | None) -> None:
    address = report.resolve().as_uri()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for width in WIDTHS:
            page = browser.new_page(viewport={"width": width, "height": SCREEN}, color_scheme="light")
            messages, requests = [], []
            page.on("console", lambda message: messages.append(message.text))
            page.on("pageerror", lambda error: messages.append(str(error)))
            page.on("dialog", lambda dialog: (messages.append(f"dialog: {dialog.message}"), dialog.dismiss()))
            page.on("request", lambda request: requests.append(request.url.split("#")[0]))
            page.goto(address)
            if pictures:
                page.screenshot(path=pictures / f"screen-{width}.png")
                page.screenshot(path=pictures / f"report-{width}.png", full_page=True)
            check_page(page, width, figures)
            assert not messages, messages
            assert set(requests) == {address}, requests
            page.close()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]) if len(sys.argv) > 3 else None)
