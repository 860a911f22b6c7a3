"""Text in, text out: sentences are tokenized, batched by length, searched and put back in order.

A line that is longer than those the model has learned from is translated in pieces.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal, Self

import torch

from dragoman.batches.collate import collate_sources
from dragoman.config import DecodingSettings, load_config
from dragoman.decoding.search import beam_search, greedy_search
from dragoman.decoding.splitting import Piece, join, split
from dragoman.decoding.trained import Trained, load_trained
from dragoman.distributed.group import pick_device
from dragoman.errors import UserError
from dragoman.model.transformer import Transformer
from dragoman.rundir import RunDir
from dragoman.tokenizer import Ids, Tokenizer

MOST_BEAM = 100
"""As in a recipe."""
LONGEST_TOKENS = 200
LONGEST_TOKEN_CHARACTERS = 16
"""SentencePiece learns no longer pieces, so a text's characters bound its tokens from below."""


class Translator:
    """A trained model with the settings that its recipe has for decoding.

        translator = Translator.load("runs/demo")
        translator.translate(["The old baker sleeps."])

    It may be used by several threads at once.
    """

    def __init__(
        self, trained: Trained, settings: DecodingSettings, longest: int, device: torch.device
    ) -> None:
        """Sentences with more tokens than `longest` are translated in pieces."""
        self.steps: list[int] = trained.steps
        """Steps of the checkpoints that the weights come from."""
        self.device = device
        self._trained, self._settings, self._longest = trained, settings, longest

    @classmethod
    def load(
        cls,
        run: str | Path,
        checkpoint: str | int = "best",
        *,
        average: int = 1,
        device: Literal["auto", "cpu", "cuda"] = "auto",
    ) -> Self:
        """Loads a checkpoint of a run: "best", "latest" or the number of a step.

        With `average` above 1, loads the mean of that many newest checkpoints instead. `device` is
        "auto", "cpu" or "cuda", as training.device in a recipe.
        """
        if type(average) is not int or average < 1:
            raise UserError(f"average = {average!r} should be a number of at least 1")
        if device not in ("auto", "cpu", "cuda"):
            raise UserError(f"device = {device!r} should be auto, cpu or cuda")
        directory = RunDir(Path(run))
        chosen = pick_device(device)
        trained = load_trained(directory, str(checkpoint), average, chosen)
        if not directory.config.exists():  # checkpoints that were copied without their run
            return cls(trained, DecodingSettings(), LONGEST_TOKENS, chosen)
        config = load_config(directory.config)
        return cls(trained, config.decoding, config.data.max_length, chosen)

    def translate(
        self,
        sentences: Sequence[str],
        *,
        beam: int | None = None,
        done: Callable[[int], None] = lambda count: None,
    ) -> list[str]:
        """Translates sentences, one for one. `beam` is that of the recipe unless set; 1: greedy.

        `done` is called with the number of sentences of each batch that has been translated.
        """
        if isinstance(sentences, str | bytes):
            raise UserError("translate takes a list of sentences; put the text into a list")
        sentences = list(sentences)
        for number, sentence in enumerate(sentences):
            if not isinstance(sentence, str) or not _is_unicode(sentence):
                raise UserError(f"sentences[{number}] = {sentence!r:.100} should be a text")
        settings = self._settings
        if beam is not None:
            if type(beam) is not int or not 1 <= beam <= MOST_BEAM:
                raise UserError(f"beam = {beam!r} should be a number from 1 to {MOST_BEAM}")
            settings = settings.model_copy(update={"beam": beam})
        return translate(
            *(self._trained.model, self._trained.tokenizer, sentences, settings, self.device),
            done=done,
            longest=self._longest,
        )

    def __repr__(self) -> str:
        steps = " + ".join(f"{step:,}" for step in self.steps)
        return f"<Translator: weights of step {steps} on {self.device}>"


def translate(
    model: Transformer,
    tokenizer: Tokenizer,
    sentences: Sequence[str],
    settings: DecodingSettings,
    device: torch.device,
    done: Callable[[int], None] = lambda count: None,
    longest: int = LONGEST_TOKENS,
) -> list[str]:
    """Translates in evaluation mode; calls `done` after each batch. Empty sentences stay empty.

    A sentence with more tokens than `longest`, its end included, is translated in pieces.
    """
    lines = [_pieces_of(sentence.strip(), tokenizer, longest) for sentence in sentences]
    encoded = tokenizer.encode([piece.text for line in lines for piece in line])
    translations = [""] * len(encoded)
    was_training = model.training
    model.eval()
    try:
        for numbers in _batches(encoded, settings.batch_tokens, settings.beam):
            outputs = _search(model, tokenizer, [encoded[n] for n in numbers], settings, device)
            for number, text in zip(numbers, tokenizer.decode(outputs), strict=True):
                translations[number] = text
            done(len(numbers))
    finally:
        model.train(was_training)
    in_order = iter(translations)
    return [join(line, list(islice(in_order, len(line)))) for line in lines]


def _is_unicode(text: str) -> bool:
    """Tells whether a text can be encoded; halves of surrogate pairs cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _pieces_of(sentence: str, tokenizer: Tokenizer, longest: int) -> list[Piece]:
    """Returns the pieces of a sentence: itself if it is short enough."""
    if len(sentence) < longest or (
        len(sentence) <= longest * LONGEST_TOKEN_CHARACTERS
        and len(tokenizer.encode([sentence])[0]) <= longest
    ):
        return [Piece(sentence)]

    def tokens(texts: Sequence[str]) -> list[int]:
        return [len(ids) - 1 for ids in tokenizer.encode(texts)]

    return split(sentence, max(1, longest - 1), tokens)


def _batches(encoded: Sequence[Ids], batch_tokens: int, beam: int) -> list[list[int]]:
    """Returns batches of indices of sentences of similar length, longest first to fail early.

    A batch holds `batch_tokens` padded source tokens for greedy search; a beam of four takes
    four rows per sentence.
    """
    with_text = [number for number, ids in enumerate(encoded) if len(ids) > 1]
    order = sorted(with_text, key=lambda number: -len(encoded[number]))
    batches: list[list[int]] = []
    while order:
        size = max(1, batch_tokens // (beam * len(encoded[order[0]])))
        batches.append(order[:size])
        order = order[size:]
    return batches


def _search(
    model: Transformer,
    tokenizer: Tokenizer,
    encoded: Sequence[Ids],
    settings: DecodingSettings,
    device: torch.device,
) -> list[Ids]:
    batch = collate_sources(encoded, tokenizer.padding).to(device)
    max_lengths = [int(settings.max_length_factor * len(ids)) + 10 for ids in encoded]
    if settings.beam == 1:
        return greedy_search(model, batch, tokenizer.start, tokenizer.end, max_lengths)
    return beam_search(
        model,
        batch,
        tokenizer.start,
        tokenizer.end,
        max_lengths,
        settings.beam,
        settings.length_penalty,
    )
