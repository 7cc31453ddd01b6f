"""Bytes as tables show them."""

from __future__ import annotations

from cogrid.cli.size import free_of, size


def test_bytes_are_gigabytes() -> None:
    assert size(1_340_000_000) == "1.3 GB"
    assert size(None) is None
    assert size("much") is None, "it came from a worker"
    assert size(True) is None


def test_free_of_all() -> None:
    assert free_of(3_940_000_000, 16_000_000_000) == "3.9 of 16.0 GB"
    assert free_of(None, 16_000_000_000) is None
