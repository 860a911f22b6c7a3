"""Markdown tables of the rounds: figures of each candidate, and ratios of ours to each peer."""

import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple

from train_bench.measurement import Measurement, Round

LOOPS = {
    "ours": "our model, plain loop",
    "hugging-face": "Hugging Face Marian, plain loop",
    "torch": "torch.nn.Transformer, plain loop",
}
TOOLS = {
    "dragoman": "dragoman train",
    "eole": "eole",
    "opennmt": "OpenNMT-py",
    "joeynmt": "JoeyNMT",
    "marian": "Marian",
}
NAMES = LOOPS | TOOLS
OURS = {**dict.fromkeys(LOOPS, "ours"), **dict.fromkeys(TOOLS, "dragoman")}
"""Which of our two candidates a peer is compared with: loop with loop, tool with tool."""
AIMS = {
    "residual": {"hugging-face": 1.5, "eole": 1.8, "opennmt": 1.8, "marian": 1.8, "joeynmt": 4.0},
    "all": {"torch": 1.6, "eole": 1.8, "opennmt": 1.8, "marian": 1.8, "joeynmt": 4.0},
}
"""Setting -> peer -> how many times as fast ours should be."""
AIM_OF_GEMM = 0.6


class Column(NamedTuple):
    title: str
    figure: Callable[[Round, Measurement], float]
    shown: str
    """Format of a number."""


COLUMNS = (
    Column("target tokens/s", lambda _, one: one.tokens_per_s, ",.0f"),
    Column("share of GEMM, %", lambda all_, one: 100 * gemm_share(all_, one), ".0f"),
    Column("CPU, ms a token", lambda _, one: one.cpu_ms_per_token, ".2f"),
    Column("peak memory, MiB", lambda _, one: one.peak_bytes / 2**20, ",.0f"),
    Column("first step, s", lambda _, one: one.first_step_s, ".1f"),
    Column("target tokens a step", lambda _, one: one.tokens_per_step, ",.0f"),
)


def candidates_of(rounds: Sequence[Round]) -> list[str]:
    """Returns the candidates that were measured in every round, in the order of the tables."""
    return [name for name in NAMES if all(name in one.measured for one in rounds)]


def figure_table(rounds: Sequence[Round]) -> str:
    """Returns medians over the rounds, with the lowest and the highest in parentheses."""
    rows = []
    for name in candidates_of(rounds):
        cells = []
        for column in COLUMNS:
            figures = [column.figure(one, one.measured[name]) for one in rounds]
            cells.append(spread(figures, column.shown))
        rows.append([NAMES[name], *cells])
    return markdown_table(["candidate", *(column.title for column in COLUMNS)], rows)


def ratio_table(setting: str, rounds: Sequence[Round]) -> str:
    """Returns how many times as fast ours is as each peer, in each round on its own."""
    rows = []
    names = candidates_of(rounds)
    for peer in names:
        ours = OURS[peer]
        if peer == ours or ours not in names:
            continue
        ratios = [
            one.measured[ours].tokens_per_s / one.measured[peer].tokens_per_s for one in rounds
        ]
        aim = AIMS.get(setting, {}).get(peer)
        cells = [*(f"{ratio:.2f}" for ratio in ratios), spread(ratios, ".2f")]
        rows.append([f"{NAMES[ours]} / {NAMES[peer]}", *cells, verdict(ratios, aim)])
    titles = [f"round {number}" for number in range(1, len(rounds) + 1)]
    return markdown_table(["ours / peer", *titles, "median", "aim"], rows)


def gemm_sentence(rounds: Sequence[Round]) -> str:
    """Returns the machine's GEMM speed, and the share of it that ours reach beside the aim."""
    speed = spread([one.gemm.flops_per_s / 1e9 for one in rounds], ".0f")
    processors = spread([one.gemm.processors for one in rounds], ".2f")
    reached = [
        f"{NAMES[name]} {spread([100 * gemm_share(o, o.measured[name]) for o in rounds], '.0f')} %"
        for name in ("ours", "dragoman")
        if name in candidates_of(rounds)
    ]
    return (
        f"fp32 GEMM in the same rounds: {speed} GFLOP/s, with {processors} processors at its "
        f"disposal. Share of it: {', '.join(reached) or 'none'}; "
        f"the aim is {100 * AIM_OF_GEMM:.0f} %."
    )


def gemm_share(one_round: Round, one: Measurement) -> float:
    return one.flops_per_s / one_round.gemm.flops_per_s


def verdict(ratios: Sequence[float], aim: float | None) -> str:
    if aim is None:
        return "none"
    return f"{aim:.1f}, {'met' if statistics.median(ratios) >= aim else 'missed'}"


def spread(figures: Sequence[float], shown: str) -> str:
    """Returns the median and, where rounds differ, the lowest and the highest figure."""
    median, low, high = (
        format(figure, shown) for figure in (statistics.median(figures), min(figures), max(figures))
    )
    return median if low == high else f"{median} ({low} to {high})"


def markdown_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a Markdown table."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
