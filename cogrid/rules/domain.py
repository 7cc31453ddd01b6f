"""Which domain a prompt belongs to: the first rule of the configuration that fits."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from cogrid.rules.language import language
from cogrid.rules.pattern import compiled

GENERAL = "general"
"""The domain of everything that no rule fits."""

LOOK_CHARS = 4000
"""Rules look at this much of a text: half of it from the start, half from the end, since people
put what they want before or after what they paste."""

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u31ff\u3400-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff"
)
"""Scripts without spaces between words, or with particles hung on them: a word has no border."""

_WIDTHS = re.compile("[\u3000\uff01-\uffef]+")


@dataclass(frozen=True, slots=True)
class Domain:
    """A rule. Each kind of condition that is set must hold; of words and patterns together, and
    of languages, one is enough.

    words: whole words in scripts that have word borders, anywhere in others; case and width do
    not count. patterns: regular expressions, without case. languages: ISO 639-1 codes. min_chars,
    max_chars: length of the whole prompt, 0: no limit. images, tools: True: must have them,
    False: must not. models: for ``auto``, best first.
    """

    name: str
    words: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    min_chars: int = 0
    max_chars: int = 0
    images: bool | None = None
    tools: bool | None = None
    models: tuple[str, ...] = ()

    @property
    def conditional(self) -> bool:
        """False for a rule that says nothing about the prompt, such as the models of general."""
        return bool(
            self.words or self.patterns or self.languages or self.min_chars or self.max_chars
        ) or not (self.images is None and self.tools is None)


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the rules may look at. text: the last thing the user said; chars: length of all
    messages together; images, tools: whether the request has any."""

    text: str = ""
    chars: int = 0
    images: bool = False
    tools: bool = False


@dataclass(frozen=True, slots=True)
class Classified:
    """A domain and why."""

    domain: str
    reason: str


def classify(facts: Prompt, domains: tuple[Domain, ...]) -> Classified:
    """The first rule that fits, else ``general``."""
    rules = [rule for rule in domains if rule.conditional]
    if not rules:
        return Classified(GENERAL, "no rule is configured")
    text = _excerpt(facts.text)
    for rule in rules:
        reason = _fits(rule, facts, text)
        if reason:
            return Classified(rule.name, reason)
    return Classified(GENERAL, "no rule fits")


def _fits(rule: Domain, facts: Prompt, text: str) -> str:
    """Why the rule fits, "" where it does not. The cheap conditions come first."""
    reasons: list[str] = []
    for have, want, what in (
        (facts.images, rule.images, "images"),
        (facts.tools, rule.tools, "tools"),
    ):
        if want is None:
            continue
        if have is not want:
            return ""
        reasons.append(what if want else f"no {what}")
    if rule.min_chars or rule.max_chars:
        if facts.chars < rule.min_chars or (rule.max_chars and facts.chars > rule.max_chars):
            return ""
        reasons.append(f"{facts.chars} characters")
    if rule.words or rule.patterns:
        said = _said(rule, text)
        if not said:
            return ""
        reasons.append(said)
    if rule.languages:
        spoken = language(text)
        if spoken not in rule.languages:
            return ""
        reasons.append(f"language {spoken}")
    return ", ".join(reasons)


def _said(rule: Domain, text: str) -> str:
    folded = text.casefold()
    for word in rule.words:
        plain = _plain(word).casefold()
        if plain in folded and _bordered(plain).search(folded):
            return f"word {word}"
    for pattern in rule.patterns:
        if _compiled(pattern).search(text):
            return f"pattern {pattern}"
    return ""


def _excerpt(text: str) -> str:
    half = LOOK_CHARS // 2
    if len(text) > LOOK_CHARS:
        text = f"{text[:half]}\n{text[-half:]}"
    return _plain(text)


def _plain(text: str) -> str:
    """Composed, and full-width and half-width forms as the ordinary ones. Not all of NFKC: that
    makes 18 letters of one sign, and takes its time for it."""
    composed = unicodedata.normalize("NFC", text)
    return _WIDTHS.sub(lambda run: unicodedata.normalize("NFKC", run[0]), composed)


@lru_cache(maxsize=4096)
def _bordered(word: str) -> re.Pattern[str]:
    r"""The word with a border at each end that is a letter of a script with borders. Not ``\b``:
    in ``Pythonの`` there is none behind the n."""
    letter = f"[^\\W{_UNSPACED}]"
    before = f"(?<!{letter})" if re.match(letter, word) else ""
    after = f"(?!{letter})" if re.match(letter, word[-1:]) else ""
    return re.compile(f"{before}{re.escape(word)}{after}")


_compiled = lru_cache(maxsize=1024)(compiled)
