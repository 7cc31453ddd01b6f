"""Addresses, and what the machine tells about an engine that runs on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cogrid.engine.address import engine_url, is_here, ollama_url, port
from cogrid.engine.hardware import has_gpu, ollama_parallel


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:8000", "http://127.0.0.1:8000"),
        (":11435", "http://127.0.0.1:11435"),
        ("[::]:11434", "http://[::1]:11434"),
        ("[::]", "http://[::1]:11434"),
        ("box.lan", "http://box.lan:11434"),
        ("http://0.0.0.0:11434/", "http://127.0.0.1:11434"),
        ("http://box.lan", "http://box.lan:80"),
        ("https://box.lan/ollama/", "https://box.lan:443/ollama"),
        (' "127.0.0.1:1" ', "http://127.0.0.1:1"),
    ],
)
def test_ollama_host(host: str, url: str) -> None:
    assert ollama_url(host) == url


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://box:8000/v1/", "http://box:8000"),
        ("https://ada:pw@box/llm", "https://ada:pw@box/llm"),
        ("[::1]:1234", "http://[::1]:1234"),
    ],
)
def test_engine_url(text: str, url: str) -> None:
    assert engine_url(text) == url


@pytest.mark.parametrize(
    ("url", "number", "here"),
    [
        ("http://127.0.0.1:11434", 11434, True),
        ("http://localhost", 80, True),
        ("https://[::1]", 443, True),
        ("http://192.168.0.41:11434", 11434, False),
        ("https://box", 443, False),
    ],
)
def test_port_and_place(url: str, number: int, here: bool) -> None:
    assert (port(url), is_here(url)) == (number, here)


def _render_node(root: Path, vendor: str, driver: str) -> None:
    device = root / "sys/class/drm/renderD128/device"
    device.mkdir(parents=True)
    (device / "vendor").write_text(f"{vendor}\n")
    (device / "driver").symlink_to(f"../../../bus/pci/drivers/{driver}")


@pytest.mark.parametrize(
    ("vendor", "driver", "gpu"),
    [
        ("0x10de", "nvidia", True),
        ("0x1002", "amdgpu", True),
        ("0x8086", "xe", True),
        ("0x8086", "i915", False),
        ("0x15ad", "vmwgfx", False),
        ("0x1af4", "virtio-pci", False),
    ],
)
def test_gpu_by_render_node(tmp_path: Path, vendor: str, driver: str, gpu: bool) -> None:
    _render_node(tmp_path, vendor, driver)
    assert has_gpu(tmp_path, "Linux") is gpu


@pytest.mark.parametrize("path", ["dev/nvidia0", "dev/kfd", "proc/driver/nvidia/gpus/0000:01:00.0"])
def test_gpu_by_driver(tmp_path: Path, path: str) -> None:
    assert has_gpu(tmp_path, "Linux") is False
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).touch()
    assert has_gpu(tmp_path, "Linux") is True


def test_gpu_of_a_mac(tmp_path: Path) -> None:
    assert has_gpu(tmp_path, "Darwin", "arm64") is True
    assert has_gpu(tmp_path, "Darwin", "x86_64") is False


def _process(proc: Path, pid: int, name: str, **environment: str) -> None:
    (proc / str(pid)).mkdir()
    (proc / str(pid) / "comm").write_text(f"{name}\n")
    pairs = "\0".join(f"{key}={value}" for key, value in environment.items())
    (proc / str(pid) / "environ").write_text(pairs + "\0")


def test_parallel_of_the_server_on_that_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OLLAMA_NUM_PARALLEL", raising=False)
    _process(tmp_path, 10, "bash", OLLAMA_NUM_PARALLEL="9")
    _process(tmp_path, 11, "ollama", OLLAMA_HOST="0.0.0.0:2000", OLLAMA_NUM_PARALLEL="4")
    _process(tmp_path, 12, "ollama", OLLAMA_NUM_PARALLEL="2")
    _process(tmp_path, 13, "ollama", OLLAMA_HOST=":3000", OLLAMA_NUM_PARALLEL="0")
    _process(tmp_path, 14, "ollama", OLLAMA_HOST="a:b", OLLAMA_NUM_PARALLEL="7")
    assert [ollama_parallel(n, tmp_path) for n in (11434, 2000, 3000, 4000)] == [2, 4, None, None]
    monkeypatch.setenv("OLLAMA_NUM_PARALLEL", "8")
    assert ollama_parallel(2000, tmp_path) == 8
