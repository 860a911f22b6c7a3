"""Figures of all candidates as text."""

import statistics
from collections.abc import Mapping, Sequence

from train_bench.tables import markdown_table, spread

from dragoman.evaluation.metrics import bleu_for
from dragoman.evaluation.scoring import measured
from translate_bench.candidates import HUGGING_FACE, JOEYNMT, OPENNMT, PAIRS, PEERS, TORCH
from translate_bench.turns import Measured

NOTES = {
    HUGGING_FACE: (
        "M2M100ForConditionalGeneration from `dragoman export`; done when as many hypotheses have "
        "ended as the beam is wide, as here."
    ),
    OPENNMT: (
        "The run's weights and positions in its own model; scores are divided by a power of the "
        "length plus one. Done when the best hypothesis has ended, so it makes fewer steps."
    ),
    JOEYNMT: (
        "The run's weights and positions in its own model; its own length penalty, "
        "((5 + length) / 6) to the power. No cache: every step computes the whole prefix again."
    ),
}
TASK_NOTE = (
    "Peers run in processes of their own, on batches of ids as large as ours may be, with our "
    "limit of pieces, threads and beam; text to ids and back is timed here and added."
)
AIMS = {(TORCH, peer): 2.0 for peer in PEERS}
AIM_OF_CTRANSLATE2 = 0.95


def figure_table(found: Measured, references: Sequence[str], language: str) -> str:
    """Returns speed, latency, equality and BLEU of each candidate at one beam."""
    rows = []
    for name, texts in found.texts.items():
        speeds = [len(texts) / seconds for seconds in found.seconds[name]]
        firsts_ms = [1000 * seconds for seconds in found.first_s[name]]
        equal = "" if TORCH not in found.texts else str(count_equal(texts, found.texts[TORCH]))
        bleu = f"{bleu_of(texts, references, language):.2f}"
        rows.append([name, spread(speeds, ".1f"), spread(firsts_ms, ".1f"), equal, bleu])
    titles = ["candidate", "sentences/s", "first sentence, ms", f"equal to {TORCH}", "BLEU"]
    return markdown_table(titles, rows)


def ratio_lines(found: Measured) -> list[str]:
    """Returns how many times as fast ours are as others: medians of ratios within a turn."""
    lines = []
    for one, other in PAIRS:
        if one in found.texts and other in found.texts:
            ratios = found.ratios(one, other)
            line = f"{one} is {spread(ratios, '.2f')} times as fast as {other}"
            aim = AIMS.get((one, other), AIM_OF_CTRANSLATE2 if other.startswith("ctrans") else None)
            if aim is not None:
                verdict = "met" if statistics.median(ratios) >= aim else "missed"
                line += f"; the aim of {aim:.2f} is {verdict}"
            lines.append(line)
    return lines


def start_table(taken: Mapping[str, Sequence[float]]) -> str:
    rows = [[name, spread(seconds, ".2f")] for name, seconds in taken.items() if seconds]
    return markdown_table(["candidate", "start to first translation, s"], rows)


def precision_line(
    whole: Sequence[str], quantized: Sequence[str], references: Sequence[str], language: str
) -> str:
    """Returns what int8 costs in BLEU on the whole test set."""
    before, after = (bleu_of(texts, references, language) for texts in (whole, quantized))
    return (
        f"int8 against float32 on all {len(references):,} sentences of the test set: {after:.2f} "
        f"against {before:.2f} BLEU ({after - before:+.2f}), "
        f"{count_equal(quantized, whole):,} translations equal"
    )


def bleu_of(texts: Sequence[str], references: Sequence[str], language: str) -> float:
    return measured(bleu_for(language), texts, references).score


def count_equal(ones: Sequence[str], others: Sequence[str]) -> int:
    return sum(one == other for one, other in zip(ones, others, strict=True))
