"""A server whose models are made up: they write German by putting a mark before each sentence."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from digits_language import RECIPE
from starlette.testclient import TestClient

from dragoman.decoding.translation import Candidate
from dragoman.documents.layout import take_apart
from dragoman.rundir import RunDir
from dragoman.serve.app import Options, create_app
from dragoman.serve.batching import Batcher
from dragoman.serve.card import Card
from dragoman.serve.metrics import Metrics
from dragoman.serve.models import Choice, Model, Models, Pair


class FakeTranslator:
    """Marks sentences with its target language; waits while it is held."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.batches: list[list[str]] = []
        self.entered = threading.Event()
        self.released = threading.Event()
        self.released.set()

    def hold(self) -> None:
        self.entered.clear()
        self.released.clear()

    def search(self, sentences: Sequence[str], candidates: int) -> list[list[Candidate]]:
        self.batches.append(list(sentences))
        self.entered.set()
        assert self.released.wait(30)
        if any("poison" in sentence for sentence in sentences):
            raise RuntimeError("secret detail of /a/path")
        return [
            [
                Candidate(f"{self.target}{rank or ''}:{sentence}", -float(rank))
                for rank in range(candidates)
            ]
            for sentence in sentences
        ]


class FakeModel(Model):
    def translate(self, sentences, candidates):
        return self.translator.search(sentences, candidates)


def fake_model(pair: Pair, step: int = 1) -> FakeModel:
    card = Card(
        name="fake",
        source=pair.source,
        target=pair.target,
        steps=[step],
        parameters=10,
        architecture="made up",
        engine="none",
        score=None,
    )
    split = partial(take_apart, language=pair.source, lines="split")
    return FakeModel(pair, FakeTranslator(pair.target), card, split)


def load_fake(run: RunDir, pair: Pair, choice: Choice) -> FakeModel:
    return fake_model(pair)


def write_run(folder: Path, source: str = "en", target: str = "de") -> RunDir:
    """Writes what is read of a run before its model is loaded."""
    folder.mkdir(parents=True)
    recipe = RECIPE.format(folder=folder)
    recipe = recipe.replace('source_language = "en"', f'source_language = "{source}"')
    recipe = recipe.replace('target_language = "de"', f'target_language = "{target}"')
    (folder / "config.toml").write_text(recipe, encoding="utf-8")
    return RunDir(folder)


class Served:
    """A client in this process, and what is behind the server."""

    def __init__(self, client: TestClient, models: Models) -> None:
        self.client, self.models = client, models

    def translator(self, source: str = "en", target: str = "de") -> FakeTranslator:
        return self.models.find(source, target).translator

    def translate(self, **fields: object):
        return self.client.post("/translate", json={"source": "en", "target": "de", **fields})


@contextmanager
def serving(
    folder: Path, *pairs: tuple[str, str], is_loaded: bool = True, **options: object
) -> Iterator[Served]:
    pairs = pairs or (("en", "de"),)
    runs = [write_run(folder / f"{source}-{target}", source, target) for source, target in pairs]
    chosen = Options(**options)
    metrics = Metrics()
    batcher = Batcher(2, chosen.limits.queue_characters, metrics.count_batch)
    models = Models(runs, loader=load_fake)
    app = create_app(models, batcher, metrics, chosen)
    here = {"base_url": "http://127.0.0.1:5000", "client": ("127.0.0.1", 50000)}
    with TestClient(app, raise_server_exceptions=False, **here) as client:
        if is_loaded:
            client.portal.call(models.load)
        yield Served(client, models)
    batcher.close()
