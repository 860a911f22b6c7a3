import asyncio
import shutil

import pytest
from unit.serve.served import fake_model, load_fake, write_run

from dragoman.checkpoints.names import BEST, MANIFEST, STATE, folder_of, point_to
from dragoman.decoding.translator import Translator
from dragoman.errors import CorruptFileError, UserError
from dragoman.rundir import RunDir
from dragoman.serve.limits import RefusedError
from dragoman.serve.models import Choice, Models, Pair, load, mark_of, pair_of


@pytest.fixture
def run(tmp_path):
    """A run with two folders that look like checkpoints, the first of them the best."""
    run = write_run(tmp_path / "run")
    for step in (1, 2):
        folder = run.checkpoints / folder_of(step)
        folder.mkdir(parents=True)
        (folder / MANIFEST).write_text("{}")
    point_to(run.checkpoints, BEST, folder_of(1))
    return run


class Loader:
    """Counts what is loaded, and fails on request."""

    def __init__(self):
        self.loaded = []
        self.error = None

    def __call__(self, run, pair, choice):
        if self.error:
            raise self.error
        self.loaded.append(fake_model(pair, step=len(self.loaded) + 1))
        return self.loaded[-1]


def test_a_better_checkpoint_takes_the_place_of_the_one_before(run):
    loader = Loader()
    models = Models([run], loader=loader)

    async def scenario():
        await models.load()
        before = models.find("en", "de")
        await models.refresh()
        assert models.find("en", "de") is before
        point_to(run.checkpoints, BEST, folder_of(2))
        await models.refresh()
        assert models.find("en", "de").card.steps == [2]
        assert before.translate(["a"], 1)[0][0].text == "de:a"  # who has it goes on with it

    asyncio.run(scenario())
    assert len(loader.loaded) == 2
    assert models.reloads == {Pair("en", "de"): 1}


@pytest.mark.parametrize("what", ["link", "checkpoints", "run"])
def test_what_is_loaded_goes_on_when_its_files_disappear(run, what, caplog):
    models = Models([run], loader=Loader())

    async def scenario():
        await models.load()
        if what == "link":
            shutil.rmtree(run.checkpoints / folder_of(1))
        else:
            shutil.rmtree(run.checkpoints if what == "checkpoints" else run.root)
        await models.refresh()

    asyncio.run(scenario())
    assert models.find("en", "de").card.steps == [1]
    assert caplog.text == ""


@pytest.mark.parametrize("error", [CorruptFileError("torn"), RuntimeError("torn"), MemoryError()])
def test_a_checkpoint_that_cannot_be_loaded_is_reported_once_and_tried_again(run, caplog, error):
    loader = Loader()
    models = Models([run], loader=loader)

    async def scenario():
        await models.load()
        loader.error = error
        point_to(run.checkpoints, BEST, folder_of(2))
        for _ in range(3):
            await models.refresh()
        assert models.find("en", "de").card.steps == [1]
        (record,) = caplog.records
        assert ("torn" if str(error) else "MemoryError") in record.getMessage()
        loader.error = None
        await models.refresh()
        assert models.find("en", "de").card.steps == [2]

    asyncio.run(scenario())


def test_following_looks_again_and_again(run):
    models = Models([run], loader=Loader())

    async def scenario():
        await models.load()
        following = asyncio.ensure_future(models.follow(0.001))
        point_to(run.checkpoints, BEST, folder_of(2))
        while models.find("en", "de").card.steps != [2]:
            await asyncio.sleep(0.001)
        following.cancel()

    asyncio.run(scenario())


def test_a_step_that_was_named_is_not_followed_elsewhere(run):
    models = Models([run], Choice(checkpoint="1"), loader=Loader())

    async def scenario():
        await models.load()
        with pytest.raises(TimeoutError):  # it goes on until it is cancelled
            await asyncio.wait_for(models.follow(0.001), 0.05)

    asyncio.run(scenario())
    assert models.reloads == {Pair("en", "de"): 0}


def test_a_run_that_was_trained_again_in_the_same_place_has_another_mark(run):
    before = mark_of(run, BEST)
    folder = run.checkpoints / folder_of(1)
    shutil.rmtree(folder)
    assert mark_of(run, BEST) is None
    folder.mkdir()
    (folder / MANIFEST).write_text("{ }")
    assert mark_of(run, BEST) != before


def test_a_checkpoint_that_was_copied_without_its_run_is_refused_as_one(run, tmp_path):
    copied = shutil.copytree(run.checkpoints / folder_of(1), tmp_path / "mine")
    (copied / STATE).write_text("{}")
    with pytest.raises(UserError, match="mine: is a checkpoint"):
        pair_of(RunDir(copied))


def test_without_a_link_the_newest_counts(run):
    (run.checkpoints / BEST).unlink()
    assert mark_of(run, BEST)[0] == folder_of(2)


def test_models_are_found_by_their_languages(tmp_path):
    runs = [write_run(tmp_path / pair, *pair.split("-")) for pair in ("en-de", "de-en", "fr-de")]
    models = Models(runs, loader=load_fake)
    assert [str(pair) for pair in models.pairs] == ["en-de", "de-en", "fr-de"]
    assert models.sources_of("de") == ["en", "fr"]
    assert models.run_of(Pair("de", "en")) == runs[1]
    assert not models.is_ready
    with pytest.raises(RefusedError) as refused:
        models.find("en", "de")
    assert refused.value.status == 503
    asyncio.run(models.load())
    assert models.is_ready
    assert models.find("fr", "de").pair == Pair("fr", "de")
    for languages in (("en", "fr"), ("x" * 1000, "de")):
        with pytest.raises(RefusedError) as refused:
            models.find(*languages)
        assert refused.value.status == 400
        assert len(refused.value.sentence) < 200
    with pytest.raises(RefusedError):
        models.sources_of("fr")


def test_two_runs_of_one_pair_are_refused_by_name(tmp_path):
    runs = [write_run(tmp_path / name) for name in ("one", "two")]
    with pytest.raises(UserError, match=r"one.*two.*en-de"):
        Models(runs)


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    for name in ("missing", "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(UserError, match=name):
            pair_of(RunDir(tmp_path / name))


def test_a_real_run_translates_as_its_translator_does(trained):
    _, folder = trained
    model = load(RunDir(folder), Pair("en", "de"))
    sentences = ["one two three", "four", "nine nine one"]
    translator = Translator.load(folder)
    found = model.translate(sentences, 1)
    assert [candidates[0].text for candidates in found] == translator.translate(sentences)
    several = model.translate(sentences, 3)
    expected = translator.translations(sentences, candidates=3)
    assert [[each.text for each in one] for one in several] == [
        [each.text for each in one.candidates] for one in expected
    ]
