"""Streams of both dialects, read whole and cut at every byte."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cogrid.engine.answer import Answer
from cogrid.engine.api import Done, EngineError, Fault
from cogrid.engine.lines import LINE_MAX_BYTES
from cogrid.engine.ollama_answer import OllamaAnswer
from cogrid.engine.ollama_answer import read_embedded as read_ollama
from cogrid.engine.openai_answer import OpenAIAnswer
from cogrid.engine.openai_answer import read_embedded as read_openai
from cogrid.model.chat import Delta, ToolCall, Usage
from tests.engine.asking import calls, text, thinking

OLLAMA = """\
{"model":"m","message":{"role":"assistant","content":"","thinking":"hm, 語"},"done":false}
{"model":"m","message":{"role":"assistant","content":"Grüße "},"done":false}
{"model":"m","message":{"role":"assistant","content":"😀"},"done":false}
{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"id":"c","function":{"index":0,"name":"clock","arguments":{"zone":"東京"}}}]},"done":false}
{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":4000000000,"load_duration":1000000000,"prompt_eval_count":7,"prompt_eval_duration":500000000,"eval_count":3,"eval_duration":2500000000}
""".encode()

OPENAI = """\
: a comment

data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}]}

event: message
data:{"id":"1","choices":[{"index":0,"delta":{"reasoning_content":"hm, 語","reasoning":"hm, 語"},"finish_reason":null}]}

data: {"id":"1","choices":[{"index":0,"delta":{"content":"Grüße "},"finish_reason":null}]}

data: {"id":"1","choices":[{"index":0,"delta":{"content":"😀"},"finish_reason":null},{"index":1,"delta":{"content":"another answer"}}]}

data: {"id":"1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"clock","arguments":""}}]}}]}

data: {"id":"1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"zone\\":"}}]}}]}

data: {"id":"1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\\"東京\\"}"}}]}}]}

data: {"id":"1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: {"id":"1","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10},"timings":{"prompt_ms":500.0,"predicted_ms":2500.0}}

data: [DONE]

""".encode()  # noqa: E501

BOTH = pytest.mark.parametrize(
    ("make", "stream"), [(OllamaAnswer, OLLAMA), (OpenAIAnswer, OPENAI)], ids=["ollama", "openai"]
)


def read(answer: Answer, *parts: bytes) -> list[Delta]:
    deltas = [delta for part in parts for delta in answer.feed(part)]
    return deltas + answer.close()


def check(answer: Answer, deltas: list[Delta]) -> None:
    assert answer.failure is None
    assert thinking(deltas) == "hm, 語"
    assert text(deltas) == "Grüße 😀"
    assert calls(deltas) == {0: ("c", "clock", '{"zone":"東京"}')}
    assert answer.done is not None
    assert answer.done.finish_reason == "tool_calls"
    usage = answer.done.usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (7, 3)
    assert (usage.prompt_s, usage.eval_s) == (0.5, 2.5)


@BOTH
def test_whole(make: Callable[[], Answer], stream: bytes) -> None:
    answer = make()
    deltas = read(answer, stream)
    check(answer, deltas)
    assert [delta.kinds for delta in deltas[:2]] == [
        (False, True, False, False),
        (True, False, False, False),
    ], "neighbours are joined, and their order is kept"


@BOTH
def test_cut_in_two_at_every_byte(make: Callable[[], Answer], stream: bytes) -> None:
    for cut in range(len(stream) + 1):
        answer = make()
        check(answer, read(answer, stream[:cut], stream[cut:]))


@BOTH
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_in_small_pieces(make: Callable[[], Answer], stream: bytes, size: int) -> None:
    answer = make()
    check(answer, read(answer, *(stream[i : i + size] for i in range(0, len(stream), size))))


@BOTH
def test_with_carriage_returns(make: Callable[[], Answer], stream: bytes) -> None:
    answer = make()
    check(answer, read(answer, stream.replace(b"\n", b"\r\n")))


@BOTH
def test_without_the_last_lines_end(make: Callable[[], Answer], stream: bytes) -> None:
    answer = make()
    check(answer, read(answer, stream.rstrip(b"\n")))


@BOTH
def test_every_shorter_stream_is_cut(make: Callable[[], Answer], stream: bytes) -> None:
    """Until the terminator, or the finish reason, has come whole there is no proper end."""
    last = stream.rstrip().rfind(b"\n") if make is OllamaAnswer else stream.find(b'"tool_calls"}')
    for cut in range(last + 1):
        answer = make()
        read(answer, stream[:cut])
        assert answer.done is None
        assert answer.failure is not None
        assert answer.failure.fault is Fault.CUT


def test_ollama_usage_in_seconds() -> None:
    answer = OllamaAnswer()
    read(answer, OLLAMA)
    assert answer.done == Done("tool_calls", Usage(7, 3, 1.0, 0.5, 2.5, 4.0))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"done":true}', "stop"),
        (b'{"done":true,"done_reason":"length"}', "length"),
        (b'{"done":true,"done_reason":"load","message":{"content":""}}', "stop"),
    ],
)
def test_ollama_reasons(line: bytes, reason: str) -> None:
    answer = OllamaAnswer()
    assert read(answer, line) == []
    assert answer.done is not None
    assert answer.done.finish_reason == reason


def test_ollama_generate() -> None:
    answer = OllamaAnswer()
    deltas = read(answer, b'{"response":"a","thinking":"t"}\n{"response":"b","done":true}\n')
    assert deltas == [Delta(thinking="t"), Delta(content="ab")]


def test_ollama_calls_without_id_or_index() -> None:
    line = b'{"message":{"tool_calls":[{"function":{"name":"a"}},{"function":{"name":"b"}}]}}\n'
    answer = OllamaAnswer()
    whole = calls(read(answer, line, line, b'{"done":true}\n'))
    assert [(index, name, arguments) for index, (_, name, arguments) in whole.items()] == [
        (0, "a", "{}"),
        (1, "b", "{}"),
        (2, "a", "{}"),
        (3, "b", "{}"),
    ]
    assert len({call_id for call_id, _, _ in whole.values()}) == 4


def test_logprobs_are_joined_with_nothing() -> None:
    line = b'{"message":{"content":"a"},"logprobs":[{"token":"a","logprob":-1}]}\n'
    deltas = read(OllamaAnswer(), line, line)
    one = Delta(content="a", logprobs=[{"token": "a", "logprob": -1}])
    assert deltas == [one, one]
    chunk = b'data: {"choices":[{"delta":{"content":"a"},"logprobs":{"content":[]}}]}\n'
    assert read(OpenAIAnswer(), chunk * 2) == [Delta(content="a", logprobs={"content": []})] * 2


def test_openai_completion() -> None:
    chunk = b'data: {"choices":[{"text":"a","finish_reason":null}]}\n\n'
    end = b'data: {"choices":[{"text":"","finish_reason":"length"}]}\n\n'
    answer = OpenAIAnswer()
    assert read(answer, chunk, chunk, end) == [Delta(content="a")] * 2
    assert answer.done == Done("length", Usage())


def test_openai_calls_without_index() -> None:
    """Some servers number nothing; a call with a name or an id is a new one."""
    piece = b'data: {"choices":[{"delta":{"tool_calls":[%b]}}]}\n'
    stream = b"".join(
        piece % call
        for call in (
            b'{"id":"x","function":{"name":"a","arguments":"{"}}',
            b'{"function":{"arguments":"}"}}',
            b'{"id":"y","function":{"name":"b","arguments":{"k":1}}}',
        )
    )
    answer = OpenAIAnswer()
    whole = calls(read(answer, stream, b"data: [DONE]\n"))
    assert whole == {0: ("x", "a", "{}"), 1: ("y", "b", '{"k":1}')}


@pytest.mark.parametrize(
    ("reason", "told"),
    [("stop", "stop"), ("length", "length"), ("content_filter", "stop"), ("eos", "stop")],
)
def test_openai_reasons(reason: str, told: str) -> None:
    answer = OpenAIAnswer()
    read(answer, b'data: {"choices":[{"delta":{},"finish_reason":"%b"}]}\n' % reason.encode())
    assert answer.done is not None
    assert answer.done.finish_reason == told


@pytest.mark.parametrize(
    "line",
    [
        b'data: {"error":{"message":"out of memory","code":500}}',
        b'data: {"error":"out of memory"}',
        b'error: {"code":500,"message":"out of memory"}',
        b'{"error":"out of memory"}',
    ],
)
def test_openai_errors(line: bytes) -> None:
    answer = OpenAIAnswer()
    said = read(answer, b'data: {"choices":[{"delta":{"content":"a"}}]}\n' + line + b"\n")
    assert said == [Delta(content="a")]
    assert answer.failure is not None
    assert (answer.failure.fault, answer.failure.message) == (Fault.SERVER, "failed: out of memory")


def test_openai_gives_up() -> None:
    answer = OpenAIAnswer()
    read(answer, b'data: {"choices":[{"delta":{},"finish_reason":"abort"}]}\n')
    assert answer.failure is not None
    assert answer.failure.fault is Fault.SERVER


def test_openai_that_does_not_stream() -> None:
    answer = OpenAIAnswer()
    whole = b'{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}'
    assert read(answer, whole) == [Delta(content="hi")]
    assert answer.done is not None


@pytest.mark.parametrize("make", [OllamaAnswer, OpenAIAnswer])
@pytest.mark.parametrize(
    "line", [b"data: {oops", b"{oops", b'{"message":5,"choices":5}', b'{"error":"\xff"}']
)
def test_what_is_no_answer(make: Callable[[], Answer], line: bytes) -> None:
    answer = make()
    read(answer, line + b"\n")
    assert answer.failure is not None
    assert answer.failure.fault is Fault.SERVER
    assert "no answer" in answer.failure.message


def test_a_line_without_an_end_is_bounded() -> None:
    answer = OllamaAnswer()
    for _ in range(LINE_MAX_BYTES // 2**20 + 1):
        answer.feed(b"x" * 2**20)
    assert answer.failure is not None
    assert answer.failure.fault is Fault.SERVER


def test_embeddings() -> None:
    body = b'{"embeddings":[[1,0.5],[0,2]],"prompt_eval_count":4,"load_duration":2000000000}'
    delta, done = read_ollama(body)
    assert delta.embeddings == ((1.0, 0.5), (0.0, 2.0))
    assert done.usage == Usage(prompt_tokens=4, load_s=2.0)
    body = (
        b'{"data":[{"index":1,"embedding":[2]},{"index":0,"embedding":[1]}],'
        b'"usage":{"prompt_tokens":4,"total_tokens":4}}'
    )
    delta, done = read_openai(body)
    assert delta.embeddings == ((1.0,), (2.0,))
    assert done.usage == Usage(prompt_tokens=4)


@pytest.mark.parametrize("read_body", [read_ollama, read_openai])
def test_embeddings_that_failed(read_body: Callable[[bytes], object]) -> None:
    with pytest.raises(EngineError, match="failed: no memory"):
        read_body(b'{"error":"no memory"}')


def test_a_call_is_a_delta_of_its_own() -> None:
    line = b'{"message":{"content":"a","tool_calls":[{"id":"c","function":{"name":"f"}}]}}\n'
    assert read(OllamaAnswer(), line + line)[:2] == [
        Delta(content="a"),
        Delta(tool_calls=(ToolCall(0, "c", "f", "{}"),)),
    ]
