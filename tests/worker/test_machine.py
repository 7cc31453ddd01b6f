"""What a worker tells of its machine."""

from __future__ import annotations

from pathlib import Path

from cogrid.worker.machine import machine


def test_memory_and_the_disk_where_models_are(tmp_path: Path) -> None:
    told = "MemTotal:       16000 kB\nMemFree:  10 kB\nMemAvailable:   4000 kB\nOdd:\n"
    (tmp_path / "meminfo").write_text(told)
    found = machine({"OLLAMA_MODELS": str(tmp_path)}, tmp_path)
    assert (found["memory_bytes"], found["memory_free_bytes"]) == (16_384_000, 4_096_000)
    assert 0 < found["disk_free_bytes"] <= found["disk_bytes"]


def test_what_cannot_be_found_out_is_left_out(tmp_path: Path) -> None:
    found = machine({}, tmp_path, (tmp_path / "gone",))
    assert set(found) <= {"disk_bytes", "disk_free_bytes"}
