"""A trained model as an object that translates: a run comes in, translations go out."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self, get_args

from dragoman.checkpoints.located import locate, refuse_two_choices
from dragoman.config import DecodingSettings, load_config
from dragoman.corpus.text import is_unicode
from dragoman.decoding.constraints import Terms, terms_of
from dragoman.decoding.engine import DeviceName, Engine, EngineName, Precision
from dragoman.decoding.engines import find_device, open_engine, open_ensemble, open_torch
from dragoman.decoding.glossary import Glossary
from dragoman.decoding.trained import choose_located
from dragoman.decoding.translate import LONGEST_TOKENS, Wanted, translate, translations
from dragoman.decoding.translation import Translation
from dragoman.errors import UserError
from dragoman.tokenizer import Tokenizer

if TYPE_CHECKING:
    from dragoman.decoding.torch_engine import TorchEngine

MOST_BEAM = 100
"""As in a recipe."""


class Translator:
    """A trained model with the settings that its recipe has for decoding.

        translator = Translator.load("runs/demo")
        translator.translate(["The old baker sleeps."])
        translator.translations(["The old baker sleeps."], candidates=3, aligned=True)

    It may be used by several threads at once.
    """

    def __init__(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        steps: list[int],
        settings: DecodingSettings,
        longest: int,
        open_torch: "Callable[[], TorchEngine] | None" = None,
    ) -> None:
        """Sentences with more tokens than `longest` are translated in pieces.

        `open_torch` loads the same model for torch, which searches translations with terms of a
        glossary; it is called when the first sentence has one. An engine of torch needs none.
        """
        self.steps: list[int] = steps
        """Steps of the checkpoints that the weights come from."""
        self.engine = engine
        self.tokenizer = tokenizer
        self._settings, self._longest = settings, longest
        self._open_torch = open_torch
        self._torch: TorchEngine | None = None
        self._opening = threading.Lock()
        self._terms: Terms | None = None  # of the glossary used last

    @classmethod
    def load(
        cls,
        run: str | Path | Sequence[str | Path],
        checkpoint: str | int | Sequence[str | int] = "best",
        *,
        average: int = 1,
        device: DeviceName = "auto",
        engine: EngineName = "auto",
        precision: Precision = "float32",
    ) -> Self:
        """Loads a checkpoint of a run: "best", "latest" or the number of a step.

        In place of a run, the folder of a checkpoint can be named, also of one that was copied
        without its run; then settings for decoding are the usual ones.

        Several runs, several checkpoints or both are an ensemble: each checkpoint of each run is a
        model, and all translate together, with torch. They need the same vocabulary; the settings
        for decoding are those of the first run.

        With `average` above 1, loads the mean of that many newest checkpoints instead. `device` is
        "auto", "cpu" or "cuda", as training.device in a recipe. `engine` is "torch", "ctranslate2"
        or "auto", which takes CTranslate2 on a CPU; only that computes with a `precision` of
        "int16" or "int8".
        """
        if type(average) is not int or average < 1:
            raise UserError(f"average = {average!r} should be a number of at least 1")
        for name, value, known in (
            ("device", device, get_args(DeviceName)),
            ("engine", engine, get_args(EngineName)),
            ("precision", precision, get_args(Precision)),
        ):
            if value not in known:
                raise UserError(
                    f"{name} = {value!r} should be {', '.join(known[:-1])} or {known[-1]}"
                )
        runs = [run] if isinstance(run, str | Path) else list(run)
        checkpoints = [checkpoint] if isinstance(checkpoint, str | int) else list(checkpoint)
        if not runs or not checkpoints:
            raise UserError("no model was named; name at least one run and one checkpoint")
        if average > 1 and len(checkpoints) > 1:
            raise UserError(
                f"average = {average} takes the newest checkpoints, and {len(checkpoints)} others "
                "were named; leave one of them out"
            )
        places = [locate(Path(each)) for each in runs]
        for place in places:
            for which in checkpoints:
                refuse_two_choices(place, str(which), average)
        chosen = [
            choose_located(place, str(which), average)
            for place in places
            for which in (checkpoints[:1] if place.is_checkpoint else checkpoints)
        ]
        where = find_device(device)
        opened: Engine
        if len(chosen) > 1:
            opened = open_ensemble(chosen, where, engine, precision)
        else:
            opened = open_engine(places[0].run, chosen[0], where, engine, precision)
        settings, longest = DecodingSettings(), LONGEST_TOKENS
        # Else checkpoints that were copied without their run.
        if places[0].run is not None and places[0].run.config.exists():
            config = load_config(places[0].run.config)
            settings, longest = config.decoding, config.data.max_length
        steps = [step for each in chosen for step in each.steps]

        return cls(
            *(opened, chosen[0].tokenizer, steps, settings, longest),
            open_torch=lambda: open_torch(chosen[:1], where),
        )

    def translate(
        self,
        sentences: Sequence[str],
        *,
        beam: int | None = None,
        prefixes: Sequence[str] | None = None,
        glossary: Glossary | None = None,
        done: Callable[[int], None] = lambda count: None,
    ) -> list[str]:
        """Translates sentences, one for one. `beam` is that of the recipe unless set; 1: greedy.

        The translation of a sentence begins with its prefix, if that is not empty, and contains the
        terms that `glossary` has for it. `done` is called with the number of sentences of each
        batch that has been translated.
        """
        sentences, settings = self._checked(sentences, beam)
        wanted = self._wanted(sentences, prefixes, glossary)
        rest = settings, done, self._longest, wanted
        return translate(self.engine, self.tokenizer, sentences, *rest)

    def translations(
        self,
        sentences: Sequence[str],
        *,
        candidates: int = 1,
        aligned: bool = False,
        beam: int | None = None,
        prefixes: Sequence[str] | None = None,
        glossary: Glossary | None = None,
        done: Callable[[int], None] = lambda count: None,
    ) -> list[Translation]:
        """Translates as `translate` does, and returns scores, and `candidates` of each sentence.

        A beam narrower than `candidates` is widened to it. There are fewer where the search finds
        no more different texts. With `aligned`, candidates have word alignments.
        """
        if type(candidates) is not int or not 1 <= candidates <= MOST_BEAM:
            raise UserError(f"candidates = {candidates!r} should be a number from 1 to {MOST_BEAM}")
        sentences, settings = self._checked(sentences, beam)
        wanted = self._wanted(sentences, prefixes, glossary)._replace(
            candidates=candidates, is_aligned=aligned, is_scored=True
        )
        rest = settings, done, self._longest, wanted
        return translations(self.engine, self.tokenizer, sentences, *rest)

    def _checked(
        self, sentences: Sequence[str], beam: int | None
    ) -> tuple[list[str], DecodingSettings]:
        settings = self._settings
        if beam is not None:
            if type(beam) is not int or not 1 <= beam <= MOST_BEAM:
                raise UserError(f"beam = {beam!r} should be a number from 1 to {MOST_BEAM}")
            settings = settings.model_copy(update={"beam": beam})
        return _texts("sentences", sentences), settings

    def _wanted(
        self, sentences: list[str], prefixes: Sequence[str] | None, glossary: Glossary | None
    ) -> Wanted:
        given = [] if prefixes is None else _texts("prefixes", prefixes)
        if prefixes is not None and len(given) != len(sentences):
            raise UserError(
                f"{len(given):,} prefixes were given for {len(sentences):,} sentences; give one "
                "for each, an empty text for none"
            )
        for number, ids in enumerate(self.tokenizer.encode(given)):
            if len(ids) > self._longest:
                raise UserError(
                    f"prefixes[{number}] has {len(ids) - 1:,} pieces, and the model writes at most "
                    f"{self._longest - 1:,}; shorten it"
                )
        if glossary is None:
            return Wanted(prefixes=given)
        return Wanted(
            prefixes=given, terms=self._terms_of(glossary), torch_engine=self._torch_engine
        )

    def _terms_of(self, glossary: Glossary) -> Terms:
        terms = self._terms
        if terms is None or terms.glossary is not glossary:
            self._terms = terms = terms_of(glossary, self.tokenizer)
        return terms

    def _torch_engine(self) -> "TorchEngine":
        from dragoman.decoding.torch_engine import TorchEngine  # noqa: PLC0415

        if isinstance(self.engine, TorchEngine):
            return self.engine
        with self._opening:
            if self._torch is None:
                if self._open_torch is None:
                    raise UserError("terms of a glossary need the engine torch; load it with that")
                self._torch = self._open_torch()
            return self._torch

    def __repr__(self) -> str:
        steps = " + ".join(f"{step:,}" for step in self.steps)
        return f"<Translator: weights of step {steps} with {self.engine.description}>"


def _texts(name: str, texts: Sequence[str]) -> list[str]:
    """Returns a list of texts; refuses whatever else is given under this name."""
    if isinstance(texts, str | bytes):
        raise UserError(f"a translator takes a list of {name}; put the text into a list")
    texts = list(texts)
    for number, text in enumerate(texts):
        if not isinstance(text, str) or not is_unicode(text):
            raise UserError(f"{name}[{number}] = {text!r:.100} should be a text")
    return texts
