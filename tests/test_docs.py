"""The documentation: its links lead somewhere, and its options are the command's options."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from graph2mermaid.cli.trace import app

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path):
    """Every relative link on a page is a file or folder of the project."""
    links = re.findall(r"\]\(([^)#\s]+)[^)\s]*\)", page.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (page.parent / link).exists()] == []


def test_the_command_line_page_has_every_option():
    """docs/cli.md names the options that the commands have, and no others."""
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    options = {
        name
        for command in (app, *app.commands.values())
        for parameter in command.params
        for name in (*parameter.opts, *parameter.secondary_opts)
        if name.startswith("--")
    }
    assert set(OPTION.findall(page)) == options | {"--help"}


def test_the_guide_knows_only_real_options():
    """No page for users shows an option that no command has."""
    known = set(OPTION.findall((ROOT / "docs" / "cli.md").read_text(encoding="utf-8")))
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    shown = {name for page in pages for name in OPTION.findall(page.read_text(encoding="utf-8"))}
    assert shown - known == set()
