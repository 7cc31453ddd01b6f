"""The wheels that were fetched before, used by several processes at once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from cogrid.errors import CogridError
from cogrid.ops.delivery.cache import Cache, cache_dir
from tests.ops.delivery.build import a_wheel


def test_it_is_where_the_user_keeps_caches() -> None:
    assert cache_dir({"HOME": "/home/ada"}) == Path("/home/ada/.cache/cogrid")
    assert cache_dir({"HOME": "/home/ada", "XDG_CACHE_HOME": "/c"}) == Path("/c/cogrid")


def test_a_wheel_is_filed_by_its_content(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    first = a_wheel(tmp_path / "a", "click", "8.3")
    other = a_wheel(tmp_path / "b", "click", "8.3", files={"click/more.py": ""})
    kept = cache.add([first, other, first])
    assert kept[0] == kept[2] != kept[1]
    assert [each.read_bytes() for each in kept[:2]] == [first.read_bytes(), other.read_bytes()]
    assert set(cache.wheels()) == set(kept)
    assert all(map(cache.sound, kept))


def test_many_at_once_leave_one_of_each_and_no_scratch(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    wheels = [a_wheel(tmp_path, f"a{number}", "1.0") for number in range(10)]
    threads = [threading.Thread(target=cache.add, args=(wheels,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cache.wheels()) == 10
    assert all(map(cache.sound, cache.wheels()))
    assert [each.name for each in cache.root.iterdir()] == ["wheels"]


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(CogridError, match="cannot be written") as caught,
        Cache(tmp_path / "file" / "cogrid").scratch(),
    ):
        pass
    assert "XDG_CACHE_HOME" in caught.value.hint
