"""`top --web` in headless Chromium, on a link with traffic: drawn, quiet, readable, usable."""

import os
import re
import signal
from contextlib import contextmanager

import pytest
from top_help import browsing, link, served

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="this takes root, for network namespaces"),
]

# By chart, how many of its pixels have a colour: lines and areas do, axes do not.
COLOURED = """[...document.querySelectorAll('.plot canvas')].map(canvas => {
    const copy = new OffscreenCanvas(canvas.width, canvas.height);
    const context = copy.getContext('2d', { willReadFrequently: true });
    context.drawImage(canvas, 0, 0);
    const { data } = context.getImageData(0, 0, copy.width, copy.height);
    let coloured = 0;
    for (let at = 0; at < data.length; at += 4) {
        const [r, g, b, a] = data.slice(at, at + 4);
        if (a > 40 && Math.max(r, g, b) - Math.min(r, g, b) > 30) coloured += 1;
    }
    return coloured;
})"""

# What is read on what: the text, its colour, the first colour behind it that covers, its size.
TEXTS = """[...document.querySelectorAll('body *')].filter(one =>
    one.checkVisibility()
    && [...one.childNodes].some(child => child.nodeType === 3 && child.data.trim())
).map(one => {
    let behind = one;
    const isBare = element => getComputedStyle(element).backgroundColor === 'rgba(0, 0, 0, 0)';
    while (behind.parentElement && isBare(behind)) behind = behind.parentElement;
    return [one.textContent, getComputedStyle(one).color, getComputedStyle(behind).backgroundColor,
        parseFloat(getComputedStyle(one).fontSize)];
})"""


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    """The link, its browser, and the page's address."""
    with (
        link() as made,
        made.attached("--rate", "20mbit", "--ingress", "50mbit", "--engine", "userspace"),
        made.traffic(),
        served(made) as (address, server),
        browsing(made, tmp_path_factory.mktemp("browser")) as browser,
    ):
        yield made, browser, address, server


def until(page, script):
    """Waits until it holds; what Playwright has for that is `eval`, which the page forbids."""
    for _ in range(300):
        if page.evaluate(script):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"never: {script}; {page.locator('#state').inner_text()}")


@contextmanager
def opened(browser, address, *, width=1280, dark=False):
    """The page once it has drawn what came; it must have been quiet and asked nobody else."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light"
    )
    page = context.new_page()
    complaints, requests = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(address)
    until(page, f"{COLOURED}.length >= 8 && {COLOURED}.every(count => count > 60)")
    yield page
    assert complaints == []
    home = address.split("?")[0]
    assert all(url.startswith((home, "data:", "blob:")) for url in requests), requests
    context.close()


def luminance(colour):
    def linear(value):
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(int(part) / 255) for part in re.findall(r"\d+", colour)[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [400, 800, 1600])
def test_it_is_drawn_and_can_be_read(busy, width, dark):
    _, browser, address, _ = busy
    with opened(browser, address, width=width, dark=dark) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        texts = page.evaluate(TEXTS)
        assert len(texts) > 100
        bad = [text for text in texts if contrast(text[1], text[2]) < 4.5 or text[3] < 12]
        assert not bad
        assert page.locator("#state").inner_text() == "live"
        assert page.locator("#tables tbody tr").count() > 5
        names = page.locator(".chart h2").all_inner_texts()
        assert {"Rate", "Waits", "Waits of new", "Waits of young", "Waits of old"} <= set(names)
        values = page.locator(".legend .value").all_inner_texts()
        assert "–" not in values


def test_all_charts_show_the_same_moment(busy):
    _, browser, address, _ = busy
    with opened(browser, address) as page:
        page.locator(".plot").first.hover(position={"x": 520, "y": 60})
        assert re.match(r"at \d\d:\d\d:\d\d, ", page.locator("#moment").inner_text())
        lines = page.evaluate(
            "[...document.querySelectorAll('.plot')].map(plot => {"
            " const line = plot.querySelector('.u-cursor-x');"
            " return [line.checkVisibility(), line.style.transform] })"
        )
        assert len(lines) >= 8
        assert all(visible for visible, _ in lines)
        assert len({where for _, where in lines}) == 1, lines


def test_it_is_used_by_keys_alone(busy):
    _, browser, address, _ = busy
    with opened(browser, address) as page:
        moment = page.locator("#moment")
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.className") == "plot":
                break
        page.keyboard.press("ArrowLeft")
        first = moment.inner_text()
        page.keyboard.press("Shift+ArrowLeft")
        second = moment.inner_text()
        assert first.startswith("at ")
        assert second.startswith("at ")
        assert first != second
        page.keyboard.press("Escape")
        assert moment.inner_text().strip() == ""
        page.keyboard.press("Space")
        until(page, "document.querySelector('#state').textContent.startsWith('paused')")
        page.keyboard.press("Space")
        until(page, "document.querySelector('#state').textContent === 'live'")
        page.keyboard.press("d")
        page.wait_for_selector("#ways [aria-pressed=true] >> text=ingress")
        page.keyboard.press("0")
        page.wait_for_selector("#windows [aria-pressed=true] >> text=10 min")
        # A series goes, and what is on top of it comes down.
        entry = page.locator(".legend button").first
        entry.press("Enter")
        assert entry.get_attribute("aria-pressed") == "false"


def test_the_picture_outlives_a_reload(busy):
    _, browser, address, _ = busy
    with opened(browser, address) as page:
        before = page.evaluate(COLOURED)[0]
        page.reload()
        until(page, f"{COLOURED}[0] > {before // 2}")


def test_what_was_saved_opens_without_a_server(busy, tmp_path):
    _, browser, address, _ = busy
    with opened(browser, address) as page:
        with page.expect_download() as download:
            page.locator("#save").click()
        assert re.fullmatch(r"shortlane-t0-\d+T\d+Z\.html", download.value.suggested_filename)
        path = tmp_path / "saved.html"
        download.value.save_as(path)
    with opened(browser, path.as_uri(), width=800) as page:
        assert page.locator("#state").inner_text().startswith("saved at")
        assert not page.locator("#save").is_visible()
        assert page.locator("#tables tbody tr").count() > 5


def test_from_elsewhere_it_takes_the_token(busy):
    made, browser, _, _ = busy
    with served(made, "0.0.0.0:0") as (address, _):
        home, token = re.fullmatch(r"http://[^/]+:(\d+)/\?token=(\w{32})", address).groups()
        home = f"http://10.77.0.1:{home}/"
        for wrong in (home, f"{home}?token={token[:-1]}", f"{home}stream"):
            answer = browser.new_page().goto(wrong)
            assert answer.status == 403
        with opened(browser, f"{home}?token={token}") as page:
            assert page.locator("#state").inner_text() == "live"


def test_a_device_that_goes_a_server_that_goes(busy):
    """Last, since afterwards there is nothing to look at."""
    made, browser, address, server = busy
    page = browser.new_page()
    page.goto(address)
    state = "document.querySelector('#state').textContent"
    until(page, f"{state} === 'live'")
    made.shortlane("detach", "t0")
    until(page, f"/^since .*t0/.test({state})")
    made.shortlane("attach", "t0", "--rate", "20mbit", "--engine", "userspace")
    until(page, f"{state} === 'live'")
    assert page.locator("td >> text=attached again").count() == 1
    server.send_signal(signal.SIGINT)
    assert server.wait(timeout=60) == 0
    assert server.stderr.read() == ""
    until(page, f"{state}.startsWith('no connection')")
