"""Translating what is typed at a terminal, line by line, until Ctrl-D."""

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.documents.record import TranslatedText

PROMPT = "> "


def hold_dialog(
    translate: Callable[[str], "TranslatedText"], shown: Callable[["TranslatedText"], str]
) -> None:
    """Asks for a line, prints what is `shown` of its translation and the time, and asks again.

    Ctrl-C drops the line that is being typed or translated.
    """
    from rich.text import Text

    from dragoman.console import echo, visible
    from dragoman.errors import UserError

    with suppress(ImportError):  # where it is missing, lines have no history
        import readline  # noqa: F401 - with it, input() edits lines and remembers them
    print("Type a sentence and press Enter; Ctrl-C drops a line, Ctrl-D quits.", file=sys.stderr)
    while True:
        try:
            line = input(PROMPT)
            line.encode()
        except EOFError:
            print()
            return
        except KeyboardInterrupt:
            print()
            continue
        except UnicodeError:
            print("error: that was not UTF-8; type it again", file=sys.stderr)
            continue
        if not line.strip():
            continue
        begun = time.monotonic()
        try:
            translated = translate(line)
        except KeyboardInterrupt:
            print()
            continue
        except UserError as error:
            print(f"error: {error}", file=sys.stderr)
            continue
        print(visible(shown(translated)))
        taken = f"{time.monotonic() - begun:.2f} s"
        if len(translated.sentences) > 1:
            taken = f"{len(translated.sentences)} sentences, {taken}"
        echo(Text(taken, style="dim"))


def candidate_list(translated: "TranslatedText") -> str:
    """Returns the candidates of each sentence for a person, with their scores and alignments."""
    from dragoman.documents.candidates import pharaoh

    lines = []
    for source, candidates in translated.sentences:
        if len(translated.sentences) > 1:
            lines.append(source)
        for rank, candidate in enumerate(candidates, start=1):
            alignment = f"  {pharaoh(candidate.alignment)}" if candidate.alignment else ""
            lines.append(f"{rank:>3}  {candidate.score:8.4f}  {candidate.text}{alignment}")
    return "\n".join(lines)
