"""The models that are served, by language pair: runs come in, loaded models go out.

A model follows its run: when the link `best` comes to point to another checkpoint, that is loaded
aside, and then takes the place of the one before in a single assignment. A request keeps the model
that it began with. What is loaded goes on serving when its files disappear.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import NamedTuple

from dragoman.checkpoints.finding import all_checkpoints
from dragoman.checkpoints.names import BEST, LATEST, MANIFEST, is_checkpoint
from dragoman.config import load_config
from dragoman.decoding.engine import Engine, EngineName, Hypothesis, Precision
from dragoman.decoding.translator import Translator
from dragoman.documents.layout import Layout, take_apart
from dragoman.documents.record import BestText, Candidate
from dragoman.errors import DragomanError, UserError
from dragoman.rundir import RunDir
from dragoman.serve.card import Card, read_card
from dragoman.serve.limits import RefusedError

logger = logging.getLogger(__name__)


class Pair(NamedTuple):
    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"


@dataclass(frozen=True, eq=False)
class Model:
    pair: Pair
    translator: Translator
    card: Card
    take_apart: Callable[[str], Layout] = field(repr=False)
    """Splits a text into sentences."""

    def translate(self, sentences: Sequence[str], candidates: int) -> list[Sequence[Candidate]]:
        if candidates == 1:  # without scores, which cost time
            return [[BestText(text)] for text in self.translator.translate(sentences)]
        found = self.translator.translations(sentences, candidates=candidates)
        return [translation.candidates for translation in found]


class Choice(NamedTuple):
    """Which checkpoint of a run is loaded, and what computes."""

    checkpoint: str = BEST
    engine: EngineName = "auto"
    precision: Precision = "float32"


BEST_CHECKPOINT = Choice()


class _OneReplica:
    """An engine whose other replicas are busy with other batches: what it gets is not divided."""

    replicas = 1

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.description = engine.description
        self.search: Callable[..., Iterator[list[list[Hypothesis]]]] = engine.search


def load(run: RunDir, pair: Pair, choice: Choice = BEST_CHECKPOINT) -> Model:
    translator = Translator.load(
        run.root, choice.checkpoint, engine=choice.engine, precision=choice.precision
    )
    card = read_card(run, translator)
    translator.engine = _OneReplica(translator.engine)
    split = partial(take_apart, language=pair.source, lines="split")
    return Model(pair, translator, card, split)


def pair_of(run: RunDir) -> Pair:
    """Returns the languages of a run; refuses a folder that has none."""
    if not run.config.exists():
        what = "has no config.toml" if run.root.is_dir() else "no such run"
        if is_checkpoint(run.root):
            what = "is a checkpoint, and its run is needed, too"
        raise UserError(f"{run.root}: {what}; name the folder of a whole run, such as runs/demo")
    data = load_config(run.config).data
    return Pair(data.source_language, data.target_language)


def mark_of(run: RunDir, checkpoint: str) -> object:
    """Returns a value that changes when the run has another checkpoint of this name; None: gone."""
    root = run.checkpoints
    try:
        link = root / checkpoint
        # Without a link, `find_checkpoint` takes the newest.
        folder = link.resolve() if link.is_symlink() else all_checkpoints(root)[-1].folder
        state = (folder / MANIFEST).stat()
    except (OSError, IndexError):
        return None
    return folder.name, state.st_ino, state.st_mtime_ns


@dataclass
class _Followed:
    run: RunDir
    pair: Pair
    mark: object = None
    """Of the checkpoint that is loaded."""
    failed: object = None
    """Of a checkpoint that could not be loaded, which is told once."""
    reloads: int = 0


class Models:
    """One model for each language pair, replaced when its run has a better one."""

    def __init__(
        self,
        runs: Sequence[RunDir],
        choice: Choice = BEST_CHECKPOINT,
        loader: Callable[[RunDir, Pair, Choice], Model] = load,
    ) -> None:
        self._choice, self._loader = choice, loader
        self._followed = [_Followed(run, pair_of(run)) for run in runs]
        by_pair = sorted(self._followed, key=lambda each: each.pair)
        for pair, group in groupby(by_pair, key=lambda each: each.pair):
            if len(same := [str(each.run.root) for each in group]) > 1:
                raise UserError(
                    f"{' and '.join(same)}: translate the same languages, {pair}; name one of them"
                )
        self._loaded: dict[Pair, Model] = {}

    @property
    def pairs(self) -> list[Pair]:
        return [each.pair for each in self._followed]

    @property
    def is_ready(self) -> bool:
        return len(self._loaded) == len(self._followed)

    @property
    def loaded(self) -> list[Model]:
        return [self._loaded[pair] for pair in self.pairs if pair in self._loaded]

    @property
    def reloads(self) -> dict[Pair, int]:
        return {each.pair: each.reloads for each in self._followed}

    def find(self, source: str, target: str) -> Model:
        """Returns the model of two languages; refuses those that are not served."""
        pair = Pair(source, target)
        if pair not in self.pairs:
            known = ", ".join(map(str, self.pairs))
            raise RefusedError(
                400, f"{source:.20} to {target:.20} is not served; there is {known}."
            )
        if pair not in self._loaded:
            raise RefusedError(503, f"The model of {pair} is being loaded; try later.", 5)
        return self._loaded[pair]

    def sources_of(self, target: str) -> list[str]:
        """Returns the languages that are translated to another; refuses one without any."""
        found = [pair.source for pair in self.pairs if pair.target == target]
        if not found:
            raise RefusedError(400, f"Nothing is translated to {target:.20} here.")
        return found

    def run_of(self, pair: Pair) -> RunDir:
        return next(each.run for each in self._followed if each.pair == pair)

    async def load(self) -> None:
        """Loads all models for the first time; raises what is wrong with a run."""
        for each in self._followed:
            await self._load(each)

    async def load_and_follow(self, every_s: float) -> None:
        await self.load()
        logger.info("ready")
        await self.follow(every_s)

    async def follow(self, every_s: float) -> None:
        """Looks for better checkpoints until it is cancelled."""
        while True:
            await asyncio.sleep(every_s)
            if self._choice.checkpoint in (BEST, LATEST):  # a step stays what it is
                await self.refresh()

    async def refresh(self) -> None:
        """Loads the checkpoints that are new; keeps what is loaded where that fails."""
        for each in self._followed:
            mark = await asyncio.to_thread(mark_of, each.run, self._choice.checkpoint)
            if mark is None or mark == each.mark:
                continue
            try:
                await self._load(each)
            except Exception as error:  # no error of a new checkpoint may end the server
                if mark != each.failed:
                    each.failed = mark
                    logger.warning(
                        f"{str(error) or error!r}; {each.pair} goes on with the model that is "
                        "loaded",
                        exc_info=not isinstance(error, DragomanError | OSError),
                    )
            else:
                each.reloads += 1
                logger.info(f"{each.pair}: {self._loaded[each.pair].translator!r}")

    async def _load(self, each: _Followed) -> None:
        # Before loading: what becomes best meanwhile is then found the next time.
        mark = await asyncio.to_thread(mark_of, each.run, self._choice.checkpoint)
        model = await asyncio.to_thread(self._loader, each.run, each.pair, self._choice)
        self._loaded[each.pair], each.mark = model, mark
