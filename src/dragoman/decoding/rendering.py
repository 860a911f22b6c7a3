"""Hypotheses as text: pieces come in; text without unknown pieces, and links to its source, go out.

`Part` holds what a piece of a line needs for it beside its ids.
"""

from collections.abc import Sequence
from typing import NamedTuple

from dragoman.decoding.constraints import WORD_START, Pattern
from dragoman.decoding.engine import Hypothesis
from dragoman.decoding.translation import Rendered
from dragoman.decoding.unknown import Attention, Run, copies, insertions
from dragoman.tokenizer import Ids, Span, Tokenizer


class Part(NamedTuple):
    """A text to be translated, with all that is special about it."""

    text: str
    """As it is searched: without unknown characters at its ends."""
    spans: tuple[Span, ...]
    runs: tuple[Run, ...] = ()
    before: str = ""
    after: str = ""
    """What was set aside, with the white space beside it."""
    prefix: str = ""
    """What the translation begins with; white space is single spaces."""
    prefix_ids: tuple[int, ...] = ()
    patterns: tuple[Pattern, ...] = ()
    is_aligned: bool = False

    @property
    def is_attentive(self) -> bool:
        """Whether its text depends on what hypotheses attend to."""
        return self.is_aligned or bool(self.runs)


def plain_text(ids: Ids, tokenizer: Tokenizer) -> str:
    """Returns the text of a hypothesis whose unknown pieces stand for nothing in the source."""
    (text,) = tokenizer.decode([[piece for piece in ids if piece != tokenizer.unknown]])
    return " ".join(text.split())


def copied(part: Part) -> Rendered:
    """Returns the candidate of a part in which there is nothing to translate."""
    text = _single_spaces(part.before + part.after)
    if part.prefix:
        return Rendered(f"{part.prefix} {text}".strip())
    links = tuple((n, n) for n, character in enumerate(text) if not character.isspace())
    return Rendered(text, 0.0, links if part.is_aligned else ())


def render(hypothesis: Hypothesis, part: Part, tokenizer: Tokenizer) -> Rendered:
    """Returns the text of a hypothesis and, for a part that is aligned, its links."""
    ids, attention = hypothesis.ids, hypothesis.attention
    surfaces = _with_prefix(tokenizer.surfaces(ids), part)
    first = min(len(part.prefix_ids), len(surfaces))
    runs = _not_in_prefix(part)
    unknown = [n for n in range(first, len(ids)) if ids[n] == tokenizer.unknown]
    copied_runs = copies(unknown, runs, attention)
    lost = [run for run in runs if run not in copied_runs.values()]
    inserted = insertions(lost, surfaces, first, attention, _inside_terms(ids, part.patterns))

    # A prefix without any piece, such as a zero-width space, is nothing to the model.
    text = _Text(part.before if part.prefix_ids else part.before + part.prefix)
    for n in range(len(surfaces) + 1):
        for run in inserted.get(n, ()):
            text.add(f" {_text(part, run)}", run.begin)
        if n < len(surfaces):
            surface, source = surfaces[n], _attended(attention, n, part)
            if n in copied_runs:
                surface, source = _text(part, copied_runs[n]), copied_runs[n].begin
            elif n in unknown:
                surface = ""
            text.add(surface, source)
    return text.rendered(part, hypothesis.score)


class _Text:
    """A text that grows, with no space twice, and links from its characters to the source's."""

    def __init__(self, before: str) -> None:
        self.text = _single_spaces(before)
        self.links: list[tuple[int, int]] = []

    def add(self, surface: str, source: int | None) -> None:
        if not self.text or self.text[-1].isspace():
            surface = surface.lstrip()
        visible = len(surface) - len(surface.lstrip())
        if source is not None and surface.strip():
            self.links.append((source, len(self.text) + visible))
        self.text += surface

    def rendered(self, part: Part, score: float) -> Rendered:
        begin = len(part.before)
        links = [(begin + source, target) for source, target in self.links]
        links += [(n, n) for n, character in enumerate(part.before) if not character.isspace()]
        body = self.text[:begin] + self.text[begin:].rstrip()
        after = _single_spaces(part.after)
        skipped = 0 if body else len(after) - len(after.lstrip())
        links += [
            (begin + len(part.text) + n, len(body) + n - skipped)
            for n, character in enumerate(after)
            if not character.isspace()
        ]
        text = (body + after[skipped:]).rstrip()
        return Rendered(text, score, tuple(links) if part.is_aligned else ())


def _with_prefix(surfaces: list[str], part: Part) -> list[str]:
    """Returns the surfaces so that they begin with the prefix to the letter.

    The tokenizer may have normalized some of it, or not know it.
    """
    count = len(part.prefix_ids)
    if count == 0 or "".join(surfaces[:count]) == part.prefix:
        return surfaces
    return [part.prefix, *[""] * (count - 1), *surfaces[count:]]


def _inside_terms(ids: Ids, patterns: Sequence[Pattern]) -> set[int]:
    """Returns the places of all pieces of terms but their first ones."""
    inside: set[int] = set()
    for pattern in patterns:
        pieces = [piece for piece in pattern if piece != WORD_START]
        for begin in range(len(ids) - len(pieces) + 1):
            if ids[begin : begin + len(pieces)] == pieces:
                inside |= {*range(begin + 1, begin + len(pieces))}
    return inside


def _not_in_prefix(part: Part) -> list[Run]:
    """Returns the runs that the prefix does not hold already."""
    left, runs = part.prefix, []
    for run in part.runs:
        text = _text(part, run)
        if text in left:
            left = left.replace(text, "", 1)
        else:
            runs.append(run)
    return runs


def _attended(attention: Attention | None, place: int, part: Part) -> int | None:
    """Returns the character of the source that a piece attends to most."""
    if attention is None or not part.spans:
        return None
    begin = part.spans[int(attention[place].argmax())].begin
    rest = part.text[begin:]
    return begin + len(rest) - len(rest.lstrip())


def _text(part: Part, run: Run) -> str:
    # A run can hold separators, such as those of lines, that the tokenizer does not know either.
    return _single_spaces(part.text[run.begin : run.end])


def _single_spaces(text: str) -> str:
    """Returns a text of the same length with spaces for all white space."""
    return "".join(" " if character.isspace() else character for character in text)
