"""The decisions of a rate that follows the link, on the page of `top --web`."""

import os
import re

import pytest
from test_top_web import TEXTS, contrast, opened, until
from top_help import FAR, browsing, link, served

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="this takes root, for network namespaces"),
]


def test_decisions_are_drawn_and_can_be_read(tmp_path):
    auto = "auto:5mbit..20mbit..40mbit"
    rates = ("--rate", auto, "--ingress", auto, "--probe", FAR, "--engine", "userspace")
    with (
        link() as made,
        made.attached(*rates),
        served(made) as (address, _),
        made.traffic(),
        browsing(made, tmp_path) as browser,
        opened(browser, address, width=400, dark=True) as page,
    ):
        until(page, "document.querySelectorAll('#tables .words').length > 3")
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        assert {"Decisions", "Extra delay"} <= set(page.locator("h2").all_inner_texts())
        # Its note is the latest decision, with the evidence.
        note = page.locator(".decisions .note").inner_text()
        assert re.match(r"\d\d:\d\d:\d\d \w+: \d+kbit -> \d+kbit: ", note), note
        bad = [text for text in page.evaluate(TEXTS) if contrast(text[1], text[2]) < 4.5]
        assert not bad
