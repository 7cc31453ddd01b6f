"""The project as a whole: its documents lead somewhere, and nothing in it is only ours."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_layers import PROJECT, ROOT

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")
PRIVATE = {
    re.escape(f"{ROOT}/"): "the checkout's own path",
    r"\.\./sh(?:ared)/": "a folder beside the checkout",
    r"/tmp/br(?:ief)": "somebody's temporary folder",
    r"(?i)\bissues? #?\d": "an issue's number says nothing to a reader; say what it was about",
    r"\b(?:TO(?:DO)|FIX(?:ME)|XX(?:X))\b": "unfinished work",
}


def tracked() -> Iterator[Path]:
    """Every text file that git knows, or that would be added."""
    listed = subprocess.run(
        ("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"),
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout
    for name in listed.decode().split("\0"):
        path = ROOT / name
        if name and path.is_file() and b"\0" not in path.read_bytes():
            yield path


def pages() -> list[Path]:
    return [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]


def links(page: Path) -> set[Path]:
    """The files that a page links to; addresses are left out."""
    found = LINK.findall(page.read_text())
    return {(page.parent / link).resolve() for link in found if "://" not in link}


@pytest.mark.parametrize("pattern", PRIVATE)
def test_no_file_holds_what_is_nobody_elses(pattern: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in tracked()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if re.search(pattern, line)
    ]
    assert wrong == [], PRIVATE[pattern]


def test_every_link_leads_to_a_file() -> None:
    dead = {(page, link) for page in pages() for link in links(page) if not link.exists()}
    assert dead == set()


def test_every_page_is_linked_from_the_index() -> None:
    index = ROOT / "docs" / "index.md"
    every = set((ROOT / "docs").rglob("*.md"))
    assert every - links(index) - {index} == set()


def test_the_changelog_has_a_place_for_the_next_entry() -> None:
    headings = re.findall(r"^## (.*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "[Unreleased]"


def test_every_dependency_has_its_reason() -> None:
    reasons = (ROOT / "docs" / "design" / "libraries.md").read_text()
    declared = PROJECT["project"]["dependencies"] + PROJECT["dependency-groups"]["dev"]
    names = {re.split(r"[\[<>=;! ]", line)[0] for line in declared}
    assert {name for name in names if not re.search(rf"\b{name}\b", reasons)} == set()


def test_no_file_is_large() -> None:
    large = {str(path.relative_to(ROOT)) for path in tracked() if path.stat().st_size > 200_000}
    assert large == set()
