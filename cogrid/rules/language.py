"""Which language a text is in, told by its script and, in Latin script, by its small words.

A rule about words or models needs no more than that; a statistical detector would cost hundreds of
milliseconds to load and give other answers after an upgrade.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

SCRIPTS = {
    "kana": "\u3040-\u30ff\u31f0-\u31ff",
    "han": "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff",
    "ko": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af",
    "cyrillic": "\u0400-\u052f",
    "ar": "\u0600-\u06ff\u0750-\u077f",
    "he": "\u0590-\u05ff",
    "el": "\u0370-\u03ff",
    "hi": "\u0900-\u097f",
    "th": "\u0e00-\u0e7f",
    "latin": "A-Za-z\u00c0-\u024f\u1e00-\u1eff",
}

WORDS = {
    "en": "the and is are was of to in that this it you with what how why please can write a my",
    "de": "der die das und ist nicht ein eine ich du wie was mit für auf zu den bitte schreibe",
    "fr": "le la les et est une des je vous que pour dans pas qui comment avec sur écris mon du",
    "es": "el los las y es una que por para con cómo qué del se no escribe mi está como un",
    "it": "il gli che è di una per con non come sono della scrivi mi un questo perché nel i",
    "pt": "os as e é uma que para com não como do da em um escreva meu você por são isso",
    "nl": "de het een en is niet ik je wat hoe met voor van op zijn schrijf dit dat mijn naar",
    "vi": "là của và không cho một có những được trong với này viết tôi người như",
    "pl": "i w na nie jest się to jak co z do że dla czy napisz mój przez są",
    "tr": "ve bir bu için ne nasıl ile mı değil çok olarak var yaz ben daha",
}

LANGUAGES = frozenset(
    {"ja", "zh", "ko", "ru", "uk", "ar", "fa", "he", "el", "hi", "th", *WORDS},
)
"""The codes (ISO 639-1) that ``language`` can answer."""

_SHARE = 0.1
"""A Chinese, Japanese or Korean sign says as much as a word of Latin letters does, and such a text
is full of Latin names: a tenth of its letters is enough."""


def language(text: str) -> str:
    """The language's code, "" where nothing tells. Kanji alone read as Chinese, ASCII letters
    without any known word as English."""
    counts = {script: len(pattern.findall(text)) for script, pattern in _scripts().items()}
    letters = sum(counts.values())
    if not letters:
        return ""
    enough = letters * _SHARE
    if counts["kana"] + counts["han"] >= enough and counts["kana"] + counts["han"] > counts["ko"]:
        return "ja" if counts["kana"] >= counts["han"] * _SHARE and counts["kana"] else "zh"
    if counts["ko"] >= enough:
        return "ko"
    most = max(counts, key=lambda script: counts[script])
    if most == "latin":
        return _latin(text)
    if most == "cyrillic":
        return "uk" if re.search("[іїєґІЇЄҐ]", text) else "ru"
    if most == "ar":
        return "fa" if re.search("[پچژگ]", text) else "ar"
    return most


def _latin(text: str) -> str:
    hits: Counter[str] = Counter()
    for word in re.findall(r"[^\W\d_]+", text.lower()):
        hits.update(_small_words().get(word, ()))
    if hits:
        return hits.most_common(1)[0][0]
    return "en" if text.isascii() else ""


@cache
def _scripts() -> dict[str, re.Pattern[str]]:
    return {script: re.compile(f"[{signs}]") for script, signs in SCRIPTS.items()}


@cache
def _small_words() -> dict[str, tuple[str, ...]]:
    """Word -> the languages that use it, in the order of WORDS, which decides a draw."""
    found: dict[str, tuple[str, ...]] = {}
    for code, words in WORDS.items():
        for word in words.split():
            found[word] = (*found.get(word, ()), code)
    return found
