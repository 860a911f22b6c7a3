"""What is measured: each candidate takes sentences and a beam, and returns text and seconds."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import ctranslate2
import sentencepiece

from dragoman.config import DecodingSettings
from dragoman.decoding.engine import most_pieces
from dragoman.decoding.translate import length_batches
from dragoman.decoding.translator import Translator
from dragoman.tokenizer import Tokenizer
from translate_bench.job import Task
from translate_bench.peer import Peer

OURS, PLAIN = "dragoman, ctranslate2", "ctranslate2's package"
OURS_INT8, PLAIN_INT8 = "dragoman, ctranslate2 int8", "ctranslate2's package int8"
TORCH = "dragoman, torch"
HUGGING_FACE, OPENNMT, JOEYNMT = "hugging face generate", "opennmt-py", "joeynmt"
PEERS = {HUGGING_FACE: "loops", OPENNMT: "opennmt", JOEYNMT: "joeynmt"}
"""Each with the name of its environment."""
SCRIPTS = {HUGGING_FACE: "run_hugging_face", OPENNMT: "run_opennmt", JOEYNMT: "run_joeynmt"}
PAIRS = (
    *((OURS, PLAIN), (OURS_INT8, PLAIN_INT8)),
    *((TORCH, peer) for peer in PEERS),
    (OURS, TORCH),
)
"""Whose speed is compared with whose."""


class Translated(NamedTuple):
    seconds: float
    texts: list[str]


Candidate = Callable[[Sequence[str], int], Translated]
"""From sentences and a beam to translations and the seconds that they took."""


def in_this_process(task: Task) -> dict[str, Candidate]:
    """Opens those that need no environment of their own."""
    return {
        OURS: timed(dragoman(task)),
        PLAIN: timed(plain_ctranslate2(task, "float32")),
        OURS_INT8: timed(dragoman(task, precision="int8")),
        PLAIN_INT8: timed(plain_ctranslate2(task, "int8")),
        TORCH: timed(dragoman(task, engine="torch")),
    }


def timed(translate: Callable[[Sequence[str], int], list[str]]) -> Candidate:
    def candidate(sentences: Sequence[str], beam: int) -> Translated:
        begun = time.perf_counter()
        texts = translate(sentences, beam)
        return Translated(time.perf_counter() - begun, texts)

    return candidate


def dragoman(task: Task, **options: str) -> Callable[[Sequence[str], int], list[str]]:
    translator = Translator.load(task.run, device="cpu", **options)  # type: ignore[arg-type]
    return lambda sentences, beam: translator.translate(sentences, beam=beam)


def plain_ctranslate2(task: Task, precision: str) -> Callable[[Sequence[str], int], list[str]]:
    folder = task.folder / "ctranslate2"
    pieces = sentencepiece.SentencePieceProcessor(str(folder / "tokenizer.model"))
    translator = ctranslate2.Translator(
        str(folder), compute_type=precision, inter_threads=task.threads, intra_threads=1
    )

    def translate(sentences: Sequence[str], beam: int) -> list[str]:
        results = translator.translate_batch(
            pieces.encode(list(sentences), out_type=str),
            max_batch_size=task.decoding.batch_tokens // beam,
            batch_type="tokens",
            beam_size=beam,
            length_penalty=task.decoding.length_penalty,
            return_end_token=True,
            min_decoding_length=0,
        )
        return [str(pieces.decode(result.hypotheses[0])) for result in results]

    return translate


def peer_candidate(peer: Peer, tokenizer: Tokenizer, settings: DecodingSettings) -> Candidate:
    """Returns a candidate of another tool, in the same pieces and batches as the torch engine.

    Its seconds are its own for batches of ids, and ours for text to ids, batches, and text again.
    What it takes to send ids from process to process does not count.
    """

    def candidate(sentences: Sequence[str], beam: int) -> Translated:
        begun = time.perf_counter()
        encoded = tokenizer.encode(sentences)
        lengths = {n: len(ids) for n, ids in enumerate(encoded) if len(ids) > 1}
        numbers = length_batches(lengths, settings.model_copy(update={"beam": beam}))
        batches = [[encoded[n] for n in batch] for batch in numbers]
        limits = [most_pieces(max(map(len, batch)), settings) for batch in batches]
        before_s = time.perf_counter() - begun
        answer = peer.translate(batches, limits, beam)
        begun = time.perf_counter()
        texts = [""] * len(sentences)
        for batch, found in zip(numbers, answer.batches, strict=True):
            for n, text in zip(batch, tokenizer.decode(found), strict=True):
                texts[n] = text
        return Translated(before_s + answer.seconds + time.perf_counter() - begun, texts)

    return candidate
