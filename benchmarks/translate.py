"""How fast a trained run translates, from raw text to raw text, beside other tools.

    python benchmarks/translate.py --run runs/demo [--sentences N] [--rounds N] [--only NAMES]

On the same weights and sentences: Dragoman through CTranslate2 against CTranslate2's own package;
Dragoman's torch engine against `generate` of Hugging Face, OpenNMT-py and JoeyNMT, each in an
environment of its own, which is installed once, in --venvs. The candidates take turns; a ratio is
the median of the ratios within a turn, so that other load on the machine hits both sides. It also
measures the first sentence alone, the start of a process that translates one sentence, and what
int8 costs in BLEU. Prints Markdown; nothing is asserted.
"""

import argparse
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from train_bench.ending import closing_line
from train_bench.environments import VENVS, environment
from train_bench.watch import CandidateError
from translate_bench.candidates import (
    OURS,
    OURS_INT8,
    PEERS,
    SCRIPTS,
    Candidate,
    in_this_process,
    peer_candidate,
)
from translate_bench.job import Task, write_task
from translate_bench.peer import Peer
from translate_bench.starts import measure_starts, start_of_peer, starts_in_this_environment
from translate_bench.tables import (
    NOTES,
    TASK_NOTE,
    figure_table,
    precision_line,
    ratio_lines,
    start_table,
)
from translate_bench.turns import take_turns

PEER_SCRIPTS = Path(__file__).parent / "translate_bench" / "peers"


class Failures(dict[str, str]):
    """Candidate -> why there are no figures of it, or no more."""

    def add(self, name: str, reason: str) -> None:
        print(f"{name} is left out: {reason}", flush=True)
        self[name] = reason


def main() -> None:
    options = _arguments()
    begun = time.monotonic()
    failures = Failures()
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as opened:
        task = write_task(options.run, Path(temporary))
        commands, remarks = find_commands(task, options.only, options.venvs, failures)
        candidates = in_this_process(task)
        candidates |= open_peers(task, commands, opened, failures)
        measure(task, candidates, options, failures)
        starts = starts_in_this_environment(task, task.sources[0])
        starts |= {
            name: start_of_peer(command, task, task.sources[0])
            for name, command in commands.items()
            if name not in failures
        }
        print(f"\n{start_table(measure_starts(starts, options.rounds, failures.add))}")
    print(f"\n### Notes\n\n{TASK_NOTE}\n")
    for name in options.only:
        if name in failures:
            print(f"- **{name}** is left out: {failures[name]}")
        else:
            print(f"- **{name}.** {NOTES[name]}{remarks[name]}")
    measured = f"{options.rounds} rounds of {options.sentences} sentences of {options.run}"
    print(f"\n{closing_line(measured, begun, f'{task.threads} threads')}")


def find_commands(
    task: Task, names: list[str], venvs: Path, failures: Failures
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Returns the command of each peer and remarks on its environment, installed if need be."""
    commands, remarks = {}, {}
    for name in names:
        found = environment(PEERS[name], venvs)
        if found.python is None:
            failures.add(name, f"does not install: {found.remark}")
        else:
            script = PEER_SCRIPTS / f"{SCRIPTS[name]}.py"
            commands[name] = [str(found.python), str(script), str(task.job)]
            remarks[name] = f" Environment: {found.remark}." if found.remark else ""
    return commands, remarks


def open_peers(
    task: Task, commands: Mapping[str, list[str]], opened: ExitStack, failures: Failures
) -> dict[str, Candidate]:
    candidates = {}
    for name, command in commands.items():
        log = task.folder / f"{SCRIPTS[name]}.log"
        peer = opened.enter_context(Peer(command, log, task.threads))
        try:
            peer.wait_until_ready()
        except CandidateError as error:
            failures.add(name, f"does not run: {error}")
        else:
            candidates[name] = peer_candidate(peer, task.tokenizer, task.decoding)
    return candidates


def measure(
    task: Task,
    candidates: Mapping[str, Candidate],
    options: argparse.Namespace,
    failures: Failures,
) -> None:
    """Prints the figures of each beam."""
    language = task.config.data.target_language
    sentences = task.sources[: options.sentences]
    for beam in options.beams:
        going_on = {name: each for name, each in candidates.items() if name not in failures}
        found = take_turns(going_on, sentences, beam, options.rounds, failures.add)
        print(f"\n### Beam {beam}, {len(sentences)} sentences, {task.threads} threads\n")
        print(figure_table(found, task.references[: len(sentences)], language))
        print("\n".join(["", *(f"- {line}" for line in ratio_lines(found))]))
        whole, quantized = (
            candidates[name](task.sources, beam).texts for name in (OURS, OURS_INT8)
        )
        print(f"- {precision_line(whole, quantized, task.references, language)}", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--run", type=Path, default=Path("runs/demo"))
    parser.add_argument("--sentences", type=int, default=500, help="of the test set")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 5])
    parser.add_argument(
        "--only",
        type=_names,
        default=list(PEERS),
        help=f"which other tools, some of {', '.join(PEERS)}, separated by commas; empty: none",
    )
    parser.add_argument("--venvs", type=Path, default=VENVS, help="environments of other tools")
    return parser.parse_args()


def _names(words: str) -> list[str]:
    names = [word for word in words.split(",") if word]
    if unknown := set(names) - set(PEERS):
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not one of {', '.join(PEERS)}")
    return names


if __name__ == "__main__":
    main()
