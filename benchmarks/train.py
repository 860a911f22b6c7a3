"""Training speed of Dragoman beside other tools, interleaved, on the same text, pieces and model.

    python benchmarks/train.py --data FOLDER [--rounds N] [--steps N] [--only NAMES]

FOLDER holds Multi30k, as recipes/multi30k.toml expects it. Candidates are plain loops around
Dragoman's model, Hugging Face Marian and torch.nn.Transformer, in one process on the same tensors;
and the whole of `dragoman train`, eole, OpenNMT-py, JoeyNMT and Marian, each in its own process.
The environments of the other tools are installed once, in --venvs. Prints Markdown tables; nothing
is asserted.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from train_bench.candidates import Bench, measure_gemm, measure_loops, measure_tool
from train_bench.ending import closing_line, ended_early_or_not
from train_bench.environments import RECIPES, VENVS, Environment, environment
from train_bench.measurement import Measurement, Round, mean_of
from train_bench.notes import NOTES
from train_bench.tables import LOOPS, NAMES, TOOLS, figure_table, gemm_sentence, ratio_table
from train_bench.task import SETTINGS, THREADS, WARM_UP_STEPS, Setting
from train_bench.text import write_text
from train_bench.watch import CandidateError

WAIT_S = 10.0
QUIET = 0.9
"""Share of its threads' processors that GEMM gets on a machine with nothing else to do."""


class Failures(dict[str, str]):
    """Candidate -> why there are no figures of it."""


def main() -> None:
    options = _arguments()
    begun = time.monotonic()
    failures = Failures()
    environments = find_environments(options.only, options.venvs, failures)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.keep or temporary).resolve()
        batches = WARM_UP_STEPS + options.steps
        text = write_text(options.data.resolve(), folder / "text", batches)
        (folder / "scratch").mkdir(exist_ok=True)
        bench = Bench(text, folder / "scratch", options.steps)
        rounds: dict[str, list[Round]] = {setting: [] for setting in options.settings}
        with ended_early_or_not():
            take_rounds(bench, environments, options, rounds, failures)
    print_tables(rounds, environments, failures)
    measured = f"{options.rounds} rounds of {options.steps} steps after {WARM_UP_STEPS} for warm-up"
    print(f"\n{closing_line(measured, begun, f'{THREADS} threads')}")


def find_environments(names: list[str], venvs: Path, failures: Failures) -> dict[str, Environment]:
    """Installs what is missing. The loops' environment is needed in any case, to measure GEMM."""
    environments = {"dragoman": Environment(Path(sys.executable), "")}
    for name in ["loops", *names]:
        if name in RECIPES:
            environments[name] = environment(name, venvs)
            if environments[name].python is None:
                failures[name] = f"does not install: {environments[name].remark}"
    if "loops" in failures:
        sys.exit(f"{RECIPES['loops'].package} {failures['loops']}")
    return environments


def take_rounds(
    bench: Bench,
    environments: dict[str, Environment],
    options: argparse.Namespace,
    rounds: dict[str, list[Round]],
    failures: Failures,
) -> None:
    """Adds to `rounds`. With --wait, a round that other programs have disturbed is repeated."""
    for number in range(1, options.rounds + 1):
        for setting, of_setting in rounds.items():
            until = time.monotonic() + 60 * options.wait
            while True:
                print(f"round {number} of {options.rounds}, {SETTINGS[setting].name}", flush=True)
                wait_until_quiet(bench, environments, until)
                names = [name for name in options.only if name not in failures]
                one = take_round(bench, environments, names, SETTINGS[setting], failures)
                if one.gemm.processors >= QUIET * THREADS or time.monotonic() >= until:
                    break
            of_setting.append(one)


def wait_until_quiet(bench: Bench, environments: dict[str, Environment], until: float) -> None:
    """Waits for other programs to end, since a round beside them says little."""
    python = environments["loops"].python or sys.exit()
    while time.monotonic() < until:
        if measure_gemm(python, bench.scratch).processors >= QUIET * THREADS:
            return
        time.sleep(WAIT_S)


def take_round(
    bench: Bench,
    environments: dict[str, Environment],
    names: list[str],
    setting: Setting,
    failures: Failures,
) -> Round:
    """Measures every candidate once, with the machine's GEMM speed before and after."""
    loops_python = environments["loops"].python or sys.exit()
    measured: dict[str, Measurement] = {}
    before = measure_gemm(loops_python, bench.scratch)
    loops = [name for name in names if name in LOOPS]
    if loops:
        measured |= measure_loops(bench, loops_python, loops, setting)
    for name in names:
        python = environments[name].python if name in TOOLS else None
        # Not all of the other tools have bf16 on a CPU; they are measured in fp32 alone.
        if python is None or (setting.precision != "fp32" and name != "dragoman"):
            continue
        try:
            measured[name] = measure_tool(bench, python, name, setting)
        except (CandidateError, ValueError) as error:
            failures[name] = f"does not run with {setting.name}: {error}"
    gemm = mean_of(before, measure_gemm(loops_python, bench.scratch))
    for name, one in measured.items():
        share = 100 * one.flops_per_s / gemm.flops_per_s
        print(
            f"  {NAMES[name]}: {one.tokens_per_s:,.0f} tokens/s, {share:.0f} % of GEMM, "
            f"{one.cpu_ms_per_token:.2f} ms of CPU a token, {one.peak_bytes / 2**20:,.0f} MiB, "
            f"first step after {one.first_step_s:.1f} s",
            flush=True,
        )
    print(f"  GEMM {gemm.flops_per_s / 1e9:.0f} GFLOP/s on {gemm.processors:.2f} processors")
    return Round(gemm, measured)


def print_tables(
    rounds: dict[str, list[Round]], environments: dict[str, Environment], failures: Failures
) -> None:
    for setting, of_setting in rounds.items():
        if not of_setting:
            continue
        print(f"\n### {SETTINGS[setting].name.capitalize()}\n")
        print(figure_table(of_setting))
        print(f"\n{gemm_sentence(of_setting)}\n")
        print(ratio_table(setting, of_setting))
    print("\n### Notes\n")
    for name, title in NAMES.items():
        if name in failures:
            print(f"- **{title}** {failures[name]}")
        elif any(name in one.measured for of_setting in rounds.values() for one in of_setting):
            found = environments.get(name if name in TOOLS else "loops")
            remark = f" Environment: {found.remark}." if found and found.remark else ""
            print(f"- **{title}.** {NOTES[name]}{remark}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("data/multi30k"), help="Multi30k")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10, help="counted in each measurement")
    parser.add_argument(
        "--only", type=_names, default=list(NAMES), help=f"some of {','.join(NAMES)}"
    )
    parser.add_argument(
        "--settings", nargs="+", choices=list(SETTINGS), default=list(SETTINGS), help="of dropout"
    )
    parser.add_argument(
        "--wait",
        type=float,
        default=0.0,
        help="minutes for which a round waits for other programs, or is repeated because of them",
    )
    parser.add_argument("--venvs", type=Path, default=VENVS, help="environments of other tools")
    parser.add_argument("--keep", help="leave text, logs and the last run in this folder")
    return parser.parse_args()


def _names(words: str) -> list[str]:
    names = words.split(",")
    if unknown := set(names) - set(NAMES):
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not one of {', '.join(NAMES)}")
    return names


if __name__ == "__main__":
    main()
