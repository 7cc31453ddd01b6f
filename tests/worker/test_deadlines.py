"""How long a run may be silent."""

from __future__ import annotations

from typing import Any

import pytest

from cogrid.model.chat import Dialect, Request, Usage
from cogrid.model.limits import Limits
from cogrid.model.task import Kind
from cogrid.worker.deadlines import IMAGE_TOKENS, Speeds, prompt_tokens

LIMITS = Limits()
M = "gemma3:1b"


def a_request(**payload: Any) -> Request:
    return Request(Kind.CHAT, Dialect.OPENAI, M, payload)


def test_a_loaded_model_only_reads_the_prompt() -> None:
    assert Speeds().first_s(M, True, 100, LIMITS) == 120 + 10


def test_a_model_that_is_not_loaded_may_take_180_s_more() -> None:
    assert Speeds().first_s(M, False, 100, LIMITS) == 180 + 120 + 10


def test_a_load_that_was_seen_to_take_long_may_take_three_times_as_long() -> None:
    speeds = Speeds()
    speeds.saw(M, Usage(load_s=100.0))
    speeds.saw(M, Usage(load_s=2.0))
    assert speeds.first_s(M, False, 0, LIMITS) == 300 + 120
    assert speeds.first_s("other", False, 0, LIMITS) == 180 + 120
    assert speeds.longest_first_s(LIMITS) == 300 + 120


def test_a_short_load_shortens_nothing() -> None:
    speeds = Speeds()
    speeds.saw(M, Usage(load_s=1.0))
    assert speeds.first_s(M, False, 0, LIMITS) == 180 + 120


def test_a_rate_that_was_seen_counts_three_times() -> None:
    speeds = Speeds()
    speeds.saw(M, Usage(prompt_tokens=1000, prompt_s=500.0))  # 2 tokens a second
    assert speeds.first_s(M, True, 100, LIMITS) == 120 + 3 * 50
    speeds.saw(M, Usage(prompt_tokens=10, prompt_s=0.001))  # from a cache: says nothing
    assert speeds.first_s(M, True, 100, LIMITS) == 120 + 3 * 50


def test_a_small_body_counts_as_it_is() -> None:
    assert prompt_tokens(a_request(), 300) == 100


@pytest.mark.parametrize(
    ("text", "tokens"), [("word " * 6000, 10_000), ("日本語テキスト" * 1000, 7_000)]
)
def test_a_long_prompt_counts_by_its_text(text: str, tokens: int) -> None:
    request = a_request(messages=[{"role": "user", "content": text}])
    assert prompt_tokens(request, 5_000_000) == pytest.approx(tokens, rel=0.01)


def test_images_count_as_images_and_not_by_their_bytes() -> None:
    data = "A" * 6_000_000
    openai = a_request(
        messages=[
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
                ],
            }
        ]
    )
    ollama = a_request(messages=[{"role": "user", "content": "", "images": [data, data]}])
    assert prompt_tokens(openai, 6_000_100) == pytest.approx(IMAGE_TOKENS, rel=0.05)
    assert prompt_tokens(ollama, 12_000_100) == pytest.approx(2 * IMAGE_TOKENS, rel=0.05)


def test_text_that_is_no_unicode_is_counted_too() -> None:
    request = a_request(prompt="\ud83d" * 3000)
    assert prompt_tokens(request, 9_000) == 1000
