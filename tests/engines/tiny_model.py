"""Makes a model of half a megabyte that real engines load: it answers with random English words.

Every token's vector has one channel that is always the same. The output layer reads it, and so
gives each token a fixed tendency besides the random one: words are likely, the end of the answer
is as likely as ``end`` says, everything else only comes where a grammar leaves nothing better.

    python -m tests.engines.tiny_model tiny.gguf
"""

from __future__ import annotations

import math
import random
import sys
from array import array
from dataclasses import dataclass
from pathlib import Path

from tests.engines.gguf import Tensor, Value, write_gguf

_TEXT = """
a about after again air all always and animal answer as at away back be before began best big
bird book both boy but by came can car carry change city clear close cold come could country day
did do door down draw dry each early earth east eat end even ever every eye face fall far farm
fast father feet few field find fire first fish five follow food for form found four from full
gave get girl give go good great green ground grow half hand hard has have he head hear help her
here high him his home horse hot hour house how idea if in into it just keep kind king know land
large last late learn leave left letter life light like line list little live long look love low
made make man many map mark may me mean men might mile mind moon more most mother mountain move
much music must my name near need never new next night no north not now number of off often old
on one only open or order other our out over own page paper part people place plan plant play
point port pose press pull put rain ran read red rest right river road rock room round rule run
said same saw say school sea second see seem self sentence set she ship short should show side
simple since sit six sky small snow so some song soon sound south spell stand star start state
stay still stop story street study such sun sure table take talk teach tell ten than that the
their them then there these they thing think this those three through time to together told too
took top town travel tree true try turn two under unit until up us use very voice walk want war
warm was watch water way we well went were what wheel when where which while white who whole why
will wind with wonder wood word work world would write year you young your
"""
WORDS = tuple(_TEXT.split())

CHAT = (
    "{% if tools %}{{ '<|im_start|>system\n' }}"
    "{% for tool in tools %}{{ tool | tojson + '\n' }}{% endfor %}{{ '<|im_end|>\n' }}{% endif %}"
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' }}"
    "{% if message['content'] %}{{ message['content'] }}{% endif %}"
    "{% for call in message['tool_calls'] or [] %}"
    "{{ '<tool_call>\n{\"name\": \"' + call['function']['name'] + '\", \"arguments\": ' }}"
    "{{ call['function']['arguments'] | tojson + '}\n</tool_call>' }}{% endfor %}"
    "{{ '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""How a conversation is put to it, tools and their calls included."""

DIM, FEED, HEADS, KV_HEADS, LAYERS = 64, 128, 4, 2, 2
CONTEXT = 2048
UNLIKELY = -40.0
SPREAD = 1.5
"""Of a word's random tendency around 0: large enough that answers differ."""

END_TOKEN, CALL_TOKEN = 260, 261
"""The end of an answer, and what begins a call of a tool: for who wants them more likely."""

_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6
"""Kinds of tokens, in the format's numbers."""


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    kind: int
    score: float = 0.0
    bias: float = UNLIKELY


def make_tiny_model(path: Path, *, embeds: bool = False, end: float = 2.0) -> None:
    """The same arguments give the same file. embeds: it calls itself an embedding model. end: the
    tendency to end the answer, where a word's is about 0: answers have about 300/e**end words."""
    tokens = _tokens(end)
    write_gguf(path, _facts(tokens, embeds), _tensors(tokens, random.Random(1)))


def _tokens(end: float) -> list[_Token]:
    special = [_Token("<unk>", _UNKNOWN), _Token("<s>", _CONTROL), _Token("</s>", _CONTROL)]
    byte = [_Token(f"<0x{value:02X}>", _BYTE) for value in range(256)]
    turns = [_Token("<|im_start|>", _CONTROL), _Token("<|im_end|>", _CONTROL, bias=end)]
    call = _Token("<tool_call>\n", _NORMAL, -900.0)
    signs = ["▁", *(chr(code) for code in range(0x21, 0x7F))]
    letters = [_Token(sign, _NORMAL, -1000.0 - place) for place, sign in enumerate(signs)]
    longer = [word for word in WORDS if len(word) > 1]
    words = [_Token(f"▁{word}", _NORMAL, -1.0 - n, bias=0.0) for n, word in enumerate(longer)]
    return [*special, *byte, *turns, call, *letters, *words]


def _facts(tokens: list[_Token], embeds: bool) -> dict[str, Value]:
    facts: dict[str, Value] = {
        "general.architecture": "llama",
        "general.name": "tiny",
        "general.file_type": 0,
        "llama.context_length": CONTEXT,
        "llama.embedding_length": DIM,
        "llama.block_count": LAYERS,
        "llama.feed_forward_length": FEED,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": KV_HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": DIM // HEADS,
        "llama.rope.freq_base": 10000.0,
        "llama.vocab_size": len(tokens),
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": [token.text for token in tokens],
        "tokenizer.ggml.scores": array("f", [token.score for token in tokens]),
        "tokenizer.ggml.token_type": array("i", [token.kind for token in tokens]),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": END_TOKEN,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.padding_token_id": 2,
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.add_eos_token": False,
        "tokenizer.ggml.add_space_prefix": False,
        "tokenizer.chat_template": CHAT,
    }
    return facts | ({"llama.pooling_type": 1} if embeds else {})


def _tensors(tokens: list[_Token], chance: random.Random) -> dict[str, Tensor]:
    same = 2 * math.sqrt(DIM)
    # What the last norm divides by: the root of the mean square of ``same`` and DIM - 1 others.
    norm = math.sqrt((same * same + DIM - 1) / DIM)
    tensors = {
        "token_embd.weight": _random(chance, len(tokens), DIM, 1.0),
        "output_norm.weight": _ones(),
        "output.weight": _random(chance, len(tokens), DIM, SPREAD * norm / math.sqrt(DIM - 1)),
    }
    vectors, output = (tensors[f"{name}.weight"].floats for name in ("token_embd", "output"))
    for place, token in enumerate(tokens):
        vectors[place * DIM] = same
        output[place * DIM] = token.bias * norm / same
    end = END_TOKEN * DIM
    output[end + 1 : end + DIM] = array("f", bytes(4 * (DIM - 1)))
    for layer in range(LAYERS):
        tensors |= {f"blk.{layer}.{name}.weight": t for name, t in _layer(chance).items()}
    return tensors


def _layer(chance: random.Random) -> dict[str, Tensor]:
    """Small, so that it disturbs little, and never writes into the channel that stays the same."""
    kv, small = DIM // HEADS * KV_HEADS, 0.02
    out, down = _random(chance, DIM, DIM, small), _random(chance, DIM, FEED, small)
    for tensor in (out, down):
        width = tensor.shape[1]
        tensor.floats[:width] = array("f", bytes(4 * width))
    return {
        "attn_norm": _ones(),
        "attn_q": _random(chance, DIM, DIM, small),
        "attn_k": _random(chance, kv, DIM, small),
        "attn_v": _random(chance, kv, DIM, small),
        "attn_output": out,
        "ffn_norm": _ones(),
        "ffn_gate": _random(chance, FEED, DIM, small),
        "ffn_up": _random(chance, FEED, DIM, small),
        "ffn_down": down,
    }


def _random(chance: random.Random, rows: int, columns: int, spread: float) -> Tensor:
    floats = array("f", (chance.gauss(0.0, spread) for _ in range(rows * columns)))
    return Tensor((rows, columns), floats)


def _ones() -> Tensor:
    return Tensor((DIM,), array("f", [1.0] * DIM))


if __name__ == "__main__":
    make_tiny_model(Path(sys.argv[1]))
