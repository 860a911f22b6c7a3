"""How fast a trained run translates, from raw text to raw text, beside the engines' own interfaces.

    python benchmarks/translate.py --run runs/demo

On the same weights and sentences: Dragoman through CTranslate2 against CTranslate2's own package,
and Dragoman's torch engine against `generate` of Hugging Face, if transformers is installed. The
candidates take turns; a ratio is the median of the ratios within a turn, so that other load on the
machine hits both sides. It also measures the first sentence alone, and the start of a process that
translates one sentence.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import ctranslate2
import sentencepiece
import torch

from dragoman.config import load_config
from dragoman.decoding.translator import Translator
from dragoman.export.run import export_run
from dragoman.rundir import RunDir
from dragoman.shards.passport import PreparedData

Translate = Callable[[Sequence[str], int], list[str]]
HF_BATCH = 32
OURS, PLAIN = "dragoman, ctranslate2", "ctranslate2's package"
OURS_INT8, PLAIN_INT8 = "dragoman, ctranslate2 int8", "ctranslate2's package int8"
TORCH, HUGGING_FACE = "dragoman, torch", "hugging face generate"
PAIRS = ((OURS, PLAIN), (OURS_INT8, PLAIN_INT8), (TORCH, HUGGING_FACE), (OURS, TORCH))


def plain_ctranslate2(folder: Path, precision: str, penalty: float, tokens: int) -> Translate:
    threads = torch.get_num_threads()
    pieces = sentencepiece.SentencePieceProcessor(str(folder / "tokenizer.model"))
    translator = ctranslate2.Translator(
        str(folder), compute_type=precision, inter_threads=threads, intra_threads=1
    )

    def translate(sentences: Sequence[str], beam: int) -> list[str]:
        results = translator.translate_batch(
            pieces.encode(list(sentences), out_type=str),
            max_batch_size=tokens // beam,
            batch_type="tokens",
            beam_size=beam,
            length_penalty=penalty,
            return_end_token=True,
            min_decoding_length=0,
        )
        return [str(pieces.decode(result.hypotheses[0])) for result in results]

    return translate


def hugging_face(folder: Path) -> Translate:
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer  # noqa: PLC0415
    from transformers.utils import logging  # noqa: PLC0415

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()

    def translate(sentences: Sequence[str], beam: int) -> list[str]:
        order = sorted(range(len(sentences)), key=lambda n: -len(sentences[n]))
        found = [""] * len(sentences)
        for begin in range(0, len(order), HF_BATCH):
            numbers = order[begin : begin + HF_BATCH]
            batch = tokenizer([sentences[n] for n in numbers], return_tensors="pt", padding=True)
            with torch.inference_mode():
                ids = model.generate(**batch, num_beams=beam)
            texts = tokenizer.batch_decode(ids, skip_special_tokens=True)
            for number, text in zip(numbers, texts, strict=True):
                found[number] = text
        return found

    return translate


def ours(run: Path, **options: str) -> Translate:
    translator = Translator.load(run, device="cpu", **options)  # type: ignore[arg-type]
    return lambda sentences, beam: translator.translate(sentences, beam=beam)


def seconds_of(translate: Translate, sentences: Sequence[str], beam: int) -> float:
    begun = time.perf_counter()
    translate(sentences, beam)
    return time.perf_counter() - begun


def start_s(program: str, rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


def start_programs(run: Path, folder: Path, sentence: str) -> dict[str, str]:
    model = str(folder / "ctranslate2")
    programs = {
        OURS: (
            "from dragoman import Translator as T\n"
            f"print(T.load({str(run)!r}).translate([{sentence!r}]))"
        ),
        TORCH: (
            "from dragoman import Translator as T\n"
            f"print(T.load({str(run)!r}, engine='torch').translate([{sentence!r}]))"
        ),
        PLAIN: (
            "import ctranslate2, sentencepiece\n"
            f"p = sentencepiece.SentencePieceProcessor({model + '/tokenizer.model'!r})\n"
            f"t = ctranslate2.Translator({model!r})\n"
            f"r = t.translate_batch(p.encode([{sentence!r}], out_type=str))\n"
            "print(p.decode(r[0].hypotheses[0]))"
        ),
    }
    if find_spec("transformers"):
        programs[HUGGING_FACE] = (
            "from transformers import AutoModelForSeq2SeqLM as M, AutoTokenizer as T\n"
            f"t = T.from_pretrained({str(folder / 'huggingface')!r})\n"
            f"m = M.from_pretrained({str(folder / 'huggingface')!r})\n"
            f"g = m.generate(**t([{sentence!r}], return_tensors='pt'))\n"
            "print(t.batch_decode(g, skip_special_tokens=True))"
        )
    return programs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, default=Path("runs/demo"))
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 5])
    options = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"

    config = load_config(RunDir(options.run).config)
    sources, _ = PreparedData.open(config.prepared_folder).text("test")
    sentences = sources[: options.sentences]
    penalty = config.decoding.length_penalty
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for to in ("ctranslate2", "huggingface"):
            export_run(RunDir(options.run), to, folder / to)  # type: ignore[arg-type]
        tokens = config.decoding.batch_tokens
        candidates = {
            OURS: ours(options.run),
            PLAIN: plain_ctranslate2(folder / "ctranslate2", "float32", penalty, tokens),
            OURS_INT8: ours(options.run, precision="int8"),
            PLAIN_INT8: plain_ctranslate2(folder / "ctranslate2", "int8", penalty, tokens),
            TORCH: ours(options.run, engine="torch"),
        }
        if find_spec("transformers"):
            candidates[HUGGING_FACE] = hugging_face(folder / "huggingface")
        threads = torch.get_num_threads()
        print(
            f"{len(sentences)} sentences of {options.run}, {threads} threads, one by one in turns"
        )
        for beam in options.beams:
            report(candidates, sentences, beam, options.rounds)
        print("\nstart of a process that translates one sentence, median seconds:")
        for name, program in start_programs(options.run, folder, sentences[0]).items():
            print(f"  {name:28} {start_s(program, options.rounds):8.2f}")


def report(
    candidates: dict[str, Translate], sentences: Sequence[str], beam: int, rounds: int
) -> None:
    taken: dict[str, list[float]] = {name: [] for name in candidates}
    first: dict[str, list[float]] = {name: [] for name in candidates}
    found = {name: translate(sentences, beam) for name, translate in candidates.items()}
    for number in range(rounds):
        names = list(candidates)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            taken[name].append(seconds_of(candidates[name], sentences, beam))
            first[name].append(seconds_of(candidates[name], sentences[:1], beam))
    print(f"\nbeam {beam}: sentences per second, one sentence alone in ms, equal to {TORCH}")
    for name in candidates:
        speed = len(sentences) / statistics.median(taken[name])
        alone_ms = 1000 * statistics.median(first[name])
        equal = sum(a == b for a, b in zip(found[name], found[TORCH], strict=True))
        print(f"  {name:28} {speed:9.1f} {alone_ms:9.1f} {equal:7} of {len(sentences)}")
    for one, other in PAIRS:
        if one in taken and other in taken:
            ratios = [b / a for a, b in zip(taken[one], taken[other], strict=True)]
            spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
            median = statistics.median(ratios)
            print(f"  {one} is {median:.2f} times as fast as {other} ({spread})")


if __name__ == "__main__":
    main()
