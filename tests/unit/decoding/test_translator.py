import logging
import re
import shutil
import subprocess
import sys

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.checkpoints.names import point_to
from dragoman.checkpoints.storage import save_checkpoint
from dragoman.config import DecodingSettings, ModelSettings, TokenizerSettings
from dragoman.decoding import translator as translator_module
from dragoman.decoding.ctranslate2_engine import CTranslate2Engine
from dragoman.decoding.engines import open_torch
from dragoman.decoding.glossary import Glossary
from dragoman.decoding.torch_engine import TorchEngine
from dragoman.decoding.translator import Translator
from dragoman.errors import CorruptFileError, UserError
from dragoman.model.transformer import Transformer
from dragoman.rundir import RunDir
from dragoman.tokenizer import learn_tokenizer


def test_every_engine_translates_alike_and_says_what_it_is(trained):
    _, run = trained
    sentences = ["one two three", "", "four", "nine nine"]
    automatic = Translator.load(run, device="cpu")
    torch_engine = Translator.load(run, engine="torch", device="cpu")
    assert isinstance(automatic.engine, CTranslate2Engine)
    assert isinstance(torch_engine.engine, TorchEngine)
    for beam in (1, 4):
        translations = automatic.translate(sentences, beam=beam)
        assert translations == torch_engine.translate(sentences, beam=beam)
        assert translations[1] == ""
    assert "ctranslate2 in float32 on cpu" in repr(automatic)
    assert "torch on cpu" in repr(torch_engine)
    assert automatic.steps == [2]


def test_a_checkpoint_translates_as_its_run_does_and_also_on_its_own(trained, tmp_path):
    _, run = trained
    expected = Translator.load(run, device="cpu").translate(["one two", "four"])
    best = run / "checkpoints" / "best"
    for path in (best, best.resolve()):
        assert Translator.load(path, device="cpu").translate(["one two", "four"]) == expected
    alone = shutil.copytree(best.resolve(), tmp_path / "elsewhere" / best.resolve().name)
    before = sorted(alone.iterdir())
    translator = Translator.load(alone, device="cpu")
    assert translator.translate(["one two", "four"]) == expected
    assert translator.steps == [2]
    assert sorted(alone.iterdir()) == before
    assert [path.name for path in alone.parent.iterdir()] == [alone.name]
    ensemble = Translator.load([run, alone], device="cpu")
    assert ensemble.steps == [2, 2]
    with pytest.raises(UserError, match="name the run"):
        Translator.load(alone, 2)
    (alone / "model.safetensors").write_bytes(b"torn")
    with pytest.raises(CorruptFileError, match=r"model\.safetensors"):
        Translator.load(alone)


WITHOUT_TORCH = """
import sys
from dragoman import Translator
translator = Translator.load(sys.argv[1], device="cpu")
print(*translator.translate(["one two three", "four"]), sep="\\n")
sys.exit("torch" in sys.modules)
"""


def test_a_model_that_is_converted_translates_without_importing_torch(trained):
    _, run = trained
    expected = Translator.load(run, device="cpu").translate(["one two three", "four"])
    command = [sys.executable, "-c", WITHOUT_TORCH, str(run)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == expected


@pytest.mark.parametrize(
    "wrong",
    [
        {"engine": "onnx"},
        {"precision": "int4"},
        {"precision": "int8", "engine": "torch"},
        {"device": "tpu"},
        {"average": -1},
        {"average": 2, "checkpoint": ["best", "latest"]},
        {"checkpoint": []},
    ],
)
def test_what_cannot_be_had_is_refused_by_its_name(trained, wrong):
    _, run = trained
    value = next(iter(wrong.values())) or "checkpoint"
    with pytest.raises(UserError, match=str(value)) as caught:
        Translator.load(run, **wrong)
    assert "\n" not in str(caught.value)


TEXT = [
    "one two three four five six",
    "eins zwei drei vier fünf sechs",
    "seven. eight, nine! 12",
] * 5
ODD = [
    "one two three",
    "",
    "   ",
    "👍 one 你好 two 🎉",
    "👍",
    "שלום one עולם",
    "one\x00two\x1b[31m three\u200b",
    "\x01",
    "one two. " * 12,
    "x" * 60,
    "one\u2028two\u2029three",
]


def write_run(folder, *steps, width=16, text=TEXT, vocabulary=60):
    """A run of models that have learned nothing, but are sure of what they write."""
    run = RunDir(folder)
    tokenizer = learn_tokenizer(text, TokenizerSettings(vocabulary=vocabulary))
    shape = ModelSettings(preset="transformer-tiny", width=width, heads=2, filter=32)
    for step in steps:
        torch.manual_seed(step)
        model = Transformer(shape, tokenizer.size)
        torch.nn.init.normal_(model.embedding.weight, std=0.7)
        save_checkpoint(
            run.checkpoints,
            step,
            model=dict(model.state_dict()),
            optimizer={},
            state={"run": {}, "model": shape.model_dump(), "vocabulary": tokenizer.size},
            tokenizer_model=tokenizer.model,
        )
    point_to(run.checkpoints, "best", f"step-{steps[0]:08d}")
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return write_run(folder / "one", 5, 10), write_run(folder / "two", 7, width=32)


@pytest.fixture(scope="module")
def both(runs):
    """Translators of few pieces, so that lines are short, and long ones are soon cut."""
    settings = DecodingSettings(beam=2, max_length_factor=0.5)
    both = []
    for name in ("ctranslate2", "torch"):
        loaded = Translator.load(runs[0], engine=name, device="cpu")
        torch_engine = Translator.load(runs[0], engine="torch", device="cpu").engine
        rest = loaded.steps, settings, 24, lambda engine=torch_engine: engine
        both.append(Translator(loaded.engine, loaded.tokenizer, *rest))
    return both


def test_scores_and_candidates_are_those_of_either_engine(both):
    sentences = ["one two three", "", "seven. eight, nine! 👍", "one 👍 two"]
    found = [each.translations(sentences, candidates=6, beam=2, aligned=True) for each in both]
    for one, other in zip(*found, strict=True):
        assert [c.text for c in one.candidates] == [c.text for c in other.candidates]
        assert [c.alignment for c in one.candidates] == [c.alignment for c in other.candidates]
        scores = [candidate.score for candidate in one.candidates]
        assert scores == pytest.approx([c.score for c in other.candidates], abs=1e-4, rel=1e-4)
        assert scores == sorted(scores, reverse=True)
        assert len({candidate.text for candidate in one.candidates}) == len(one.candidates) <= 6
    assert found[0][1].candidates == (("", 0.0, ()),)
    assert len(found[0][0].candidates) == 6
    best = [each.text for each in found[0]]
    assert best == both[0].translate(sentences, beam=6)


def test_alignments_name_words_that_exist(both):
    for translator in both:
        for sentence, translation in zip(
            ODD, translator.translations(ODD, aligned=True, candidates=2), strict=True
        ):
            for text, _, alignment in translation.candidates:
                assert all(
                    0 <= source < len(sentence.split()) and 0 <= target < len(text.split())
                    for source, target in alignment
                )
                # Every word of a translation comes from somewhere.
                assert {target for _, target in alignment} == set(range(len(text.split())))
                assert list(alignment) == sorted(set(alignment))


def test_odd_lines_give_one_line_each_with_their_unknown_characters(both):
    for translator in both:
        texts = translator.translate(ODD)
        assert len(texts) == len(ODD)
        assert [bool(text) for text in texts[1:3]] == [False, False]
        assert texts[4] == "👍"
        assert texts[7] == ""
        assert all(len(text.splitlines()) <= 1 for text in texts)
        assert not any("⁇" in text for text in texts)
        for sentence, text in zip(ODD, texts, strict=True):
            for unknown in ("👍", "你好", "🎉", "שלום", "עולם"):
                assert text.count(unknown) == sentence.count(unknown)
        assert texts[3].startswith("👍 ")
        assert texts[3].endswith(" 🎉")
        assert texts == [each.text for each in translator.translations(ODD)]


@pytest.mark.parametrize("beam", [1, 3])
def test_translations_begin_with_their_prefix_on_either_engine(both, beam):
    sentences = [*ODD, "one", "two"]
    prefixes = ["eins zw", "x", "x", "👍 eins", "zwei", "", "a\x00b", "x", "eins", "ﬁ", "z", "", ""]
    found = [each.translate(sentences, beam=beam, prefixes=prefixes) for each in both]
    assert found[0] == found[1]
    for sentence, prefix, text in zip(sentences, prefixes, found[0], strict=True):
        if sentence.strip() in ("", "\x01"):
            assert text == ""
        else:
            assert text.startswith(prefix)
        assert "⁇" not in text
    assert found[0][3].count("👍") == 1
    without = both[0].translate(sentences, beam=beam)
    assert [found[0][n] for n in (5, 11, 12)] == [without[n] for n in (5, 11, 12)]


def write_glossary(folder, *lines):
    path = folder / "terms.tsv"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return Glossary.load(path)


def test_terms_appear_as_whole_words_on_either_engine(both, tmp_path, caplog):
    glossary = write_glossary(tmp_path, "two\tzwei", "four five\tvier fünf", "three\tsechs!")
    sentences = ["one two", "one", "four five and two", "three 👍 two", "one. " * 12 + "two"]
    found = [each.translate(sentences, beam=2, glossary=glossary) for each in both]
    for texts in found:
        for text, terms in zip(
            texts,
            (["zwei"], [], ["zwei", "vier fünf"], ["sechs!", "zwei"], ["zwei"]),
            strict=True,
        ):
            for term in terms:
                ending = r"(?!\w)" if term[-1].isalnum() else ""
                assert re.search(rf"(?<!\w){re.escape(term)}{ending}", text), (term, text)
    assert found[0] == found[1]
    assert found[0][1] == both[0].translate(["one"], beam=2)[0]
    assert found[0][3].count("👍") == 1
    assert not caplog.records
    several = both[0].translations(sentences[:1], candidates=5, glossary=glossary, aligned=True)
    assert len(several[0].candidates) > 1
    assert all("zwei" in each.text for each in several[0].candidates)
    with_prefix = both[1].translate(sentences[:1], prefixes=["eins"], glossary=glossary)
    assert with_prefix[0].startswith("eins")
    assert "zwei" in with_prefix[0]


def test_a_term_that_a_cut_line_has_lost_is_reported(both, tmp_path, caplog):
    glossary = write_glossary(tmp_path, "two. One\tzwei")
    with caplog.at_level(logging.WARNING):
        both[1].translate(["One two. " * 12], glossary=glossary, beam=1)
    assert "zwei" in caplog.text


def test_the_model_of_torch_is_loaded_for_terms_alone_and_once(runs, tmp_path, monkeypatch):
    opened = []

    def open_and_count(*arguments):
        opened.append(arguments)
        return open_torch(*arguments)

    monkeypatch.setattr(translator_module, "open_torch", open_and_count)
    translator = Translator.load(runs[0], device="cpu")
    glossary = write_glossary(tmp_path, "two\tzwei")
    translator.translate(["one 👍 three"], glossary=glossary, prefixes=["eins"])
    translator.translations(["one 👍 three"], aligned=True, candidates=3)
    assert not opened
    for _ in range(2):
        translator.translate(["one two"], glossary=glossary)
    assert len(opened) == 1


def test_a_term_with_characters_that_the_tokenizer_lacks_is_refused_with_its_line(both, tmp_path):
    glossary = write_glossary(tmp_path, "one\teins", "two\tzwei👍")
    with pytest.raises(UserError, match=r"terms\.tsv:2: .*zwei👍"):
        both[0].translate(["nothing of it"], glossary=glossary)


def test_several_checkpoints_or_runs_translate_together(runs):
    one, two = runs
    sentences = ["one two three", "seven. eight, nine! 👍 12", "", "four 👍 five"]
    options = {"device": "cpu", "engine": "torch"}
    alone = Translator.load(one, 5, **options)
    as_list = Translator.load([one], [5], **options)
    assert alone.translations(sentences, candidates=3) == as_list.translations(
        sentences, candidates=3
    )
    checkpoints = Translator.load(one, ["best", "latest"], device="cpu")
    assert checkpoints.steps == [5, 10]
    assert isinstance(checkpoints.engine, TorchEngine)
    together = Translator.load([one, two], device="cpu")
    assert together.steps == [5, 7]
    assert Translator.load([one, two], ["best", "latest"], device="cpu").steps == [5, 10, 7, 7]
    for translator in (checkpoints, together):
        assert "2 models" in repr(translator)
        texts = translator.translate(sentences, prefixes=["eins", "", "", ""])
        assert texts[0].startswith("eins")
        assert texts[2] == ""
        assert texts[3].count("👍") == 1
        scores = [each.candidates[0].score for each in translator.translations(sentences[:2])]
        assert scores != [each.candidates[0].score for each in alone.translations(sentences[:2])]
    with pytest.raises(UserError, match="ctranslate2"):
        Translator.load([one, two], engine="ctranslate2", device="cpu")


def test_models_of_different_vocabularies_are_refused_by_name(runs, tmp_path):
    other = write_run(
        tmp_path / "other", 5, text=["the old house", "das alte Haus"] * 9, vocabulary=30
    )
    with pytest.raises(UserError, match=str(other)) as caught:
        Translator.load([runs[0], other], device="cpu")
    assert "\n" not in str(caught.value)
    shutil.rmtree(other)
    with pytest.raises(UserError, match=str(other)):
        Translator.load([runs[0], other], device="cpu")


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"candidates": 0}, "0"),
        ({"candidates": 101}, "100"),
        ({"candidates": True}, "True"),
        ({"beam": 0}, "0"),
        ({"prefixes": ["a"]}, "1 prefixes"),
        ({"prefixes": "ab"}, "prefixes"),
        ({"prefixes": ["a", None]}, r"prefixes\[1\]"),
        ({"prefixes": ["a", "\ud800"]}, r"prefixes\[1\]"),
        ({"prefixes": ["one " * 10_000, ""]}, r"prefixes\[0\]"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(both, wrong, named):
    with pytest.raises(UserError, match=named) as caught:
        both[0].translations(["one", "two"], **wrong)
    assert "\n" not in str(caught.value)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(max_size=20), max_size=4), st.integers(1, 4))
def test_any_text_has_an_answer(both, sentences, beam):
    sentences = [text.encode("utf-8", "ignore").decode() for text in sentences]
    for translator in both:
        texts = translator.translate(sentences, beam=beam)
        assert len(texts) == len(sentences)
        for sentence, text in zip(sentences, texts, strict=True):
            assert "⁇" not in text or "⁇" in sentence
            assert len(text.splitlines()) <= 1
