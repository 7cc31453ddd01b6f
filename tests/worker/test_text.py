"""Deltas in, numbered pieces out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogrid.model.chat import Delta, ToolCall, decode_delta
from cogrid.worker.text import BATCH_PIECES, PIECE_BYTES, Text, pieces


def read(deltas: list[Delta]) -> list[Delta]:
    return [decode_delta(piece) for piece in pieces(deltas)]


def test_neighbours_of_one_kind_are_joined_and_others_keep_their_order() -> None:
    deltas = [
        Delta(thinking="let "),
        Delta(thinking="me see"),
        Delta(content="a"),
        Delta(content="b"),
        Delta(thinking="hm"),
        Delta(content="c"),
    ]
    assert read(deltas) == [
        Delta(thinking="let me see"),
        Delta(content="ab"),
        Delta(thinking="hm"),
        Delta(content="c"),
    ]


def test_tool_calls_are_joined_in_order() -> None:
    calls = [ToolCall(0, "a", "f", "{"), ToolCall(0, arguments="}"), ToolCall(1, "b", "g", "{}")]
    assert read([Delta(tool_calls=(call,)) for call in calls]) == [Delta(tool_calls=tuple(calls))]


def test_logprobs_and_vectors_stay_with_their_own_delta() -> None:
    deltas = [
        Delta("a", logprobs=[1]),
        Delta("b", logprobs=[2]),
        Delta(embeddings=((0.5,),)),
        Delta(embeddings=((1.5,),)),
    ]
    assert read(deltas) == deltas


@pytest.mark.parametrize("character", ["a", "é", "語", "😀", "\x01"])
def test_long_text_is_cut_between_characters(character: str) -> None:
    text = character * 100_000
    found = list(pieces([Delta(content=text)]))
    assert max(map(len, found)) <= PIECE_BYTES
    assert "".join(decode_delta(piece).content for piece in found) == text


def test_long_arguments_are_cut_and_only_the_first_part_is_named() -> None:
    call = ToolCall(2, "id", "f", "x" * 200_000)
    calls = [call for delta in read([Delta(tool_calls=(call,))]) for call in delta.tool_calls]
    assert {c.index for c in calls} == {2}
    assert [c.name for c in calls] == ["f", *[""] * (len(calls) - 1)]
    assert "".join(c.arguments for c in calls) == call.arguments


def test_vectors_are_never_cut() -> None:
    vectors = (tuple(i / 7 for i in range(20_000)),)
    assert read([Delta(embeddings=vectors)]) == [Delta(embeddings=vectors)]


DELTAS = st.lists(
    st.builds(
        Delta,
        content=st.text(max_size=5),
        thinking=st.text(max_size=5),
        tool_calls=st.lists(st.builds(ToolCall, index=st.integers(0, 2)), max_size=2).map(tuple),
    )
)


@given(DELTAS)
def test_nothing_is_lost_by_joining(deltas: list[Delta]) -> None:
    found = read(deltas)
    assert "".join(d.content for d in found) == "".join(d.content for d in deltas)
    assert "".join(d.thinking for d in found) == "".join(d.thinking for d in deltas)
    assert [c for d in found for c in d.tool_calls] == [c for d in deltas for c in d.tool_calls]


def test_batches_go_on_where_the_server_is() -> None:
    text = Text()
    text.add(Delta("a"))
    assert text.batch() == (1, (b'{"content":"a"}',))
    text.reached(1)
    text.add(Delta("b"))
    text.add(Delta("c"))
    assert text.batch() == (2, (b'{"content":"bc"}',))
    text.reached(0)  # it has lost what it had
    assert text.batch() == (1, (b'{"content":"a"}', b'{"content":"bc"}'))
    text.reached(2)
    assert text.batch() == (3, ())
    assert text.deltas == 3


def test_a_batch_is_bounded() -> None:
    text = Text()
    for number in range(40):
        text.add(Delta(content="x") if number % 2 else Delta(thinking="y"))
    _, first = text.batch()
    assert len(first) == BATCH_PIECES
    text.reached(BATCH_PIECES)
    assert text.batch()[0] == BATCH_PIECES + 1


def test_text_waits_until_the_server_has_it() -> None:
    text = Text()
    waits = [text.waiting]
    text.add(Delta("a"))
    waits.append(text.waiting)
    text.batch()
    waits.append(text.waiting)
    text.reached(1)
    waits.append(text.waiting)
    assert waits == [False, True, True, False]
