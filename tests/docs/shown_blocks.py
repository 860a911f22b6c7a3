"""The shell blocks of the documentation, and what is done with each of them in a test.

`TREATMENT` has an entry for every block, found by its page and its first line. A block is executed
as printed in a folder that holds what its page takes for granted (`docs/shown_folder.py`), or it
says why that is not possible. A block that is not in the table fails `test_commands.py`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@dataclass(frozen=True)
class Block:
    page: str
    """Its path in the repository."""
    commands: tuple[str, ...]
    """As printed: a command may have several lines."""

    @property
    def key(self) -> str:
        return self.commands[0].partition("\n")[0]


@dataclass(frozen=True)
class Run:
    """The block is executed, but for some of its commands."""

    is_quick: bool = False
    """Whether `make test` executes it, or `make test-cluster` alone."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Command -> why it is not executed."""
    stays: tuple[str, ...] = ()
    """Commands that run until they are stopped: they are, once they have named their address."""
    unfit: tuple[str, ...] = ()
    """Commands that may find something unfit, here as well, and say so with exit code 3."""
    before: str = ""
    """What the page takes for granted at this place, to be done in the same shell."""
    is_activated: bool = True
    """Whether the reader has activated the environment before; else the block does it."""
    needs_lab: bool = False
    """Executed on a machine of its own: labs have names, and would disturb others."""


@dataclass(frozen=True)
class Elsewhere:
    """Another test executes the block, with a model or a port of its own."""

    test: str


@dataclass(frozen=True)
class NotHere:
    reason: str


Treatment = Run | Elsewhere | NotHere

SUITE = NotHere("the test suite itself, which would run itself")
BENCHMARK = NotHere("takes from minutes to hours, and data that is not in the repository")
OWN_HOSTS = "gpu1 and gpu2 are the reader's hosts; a host list does the same in docs/cluster.md"
INSTALLS = "installs torch on every host; tests/hosts/test_setup.py does it with what is there"
DOWNLOADS = "downloads"
DOCKER = NotHere("needs Docker; tests/shipped/test_container.py reads the files")
RENTS = NotHere("rents machines; tests/shipped/test_job_files.py reads the files")
# The shipped recipe downloads 4.5 million pairs; the run of its name is a small one here.
SMALL_WMT16 = (
    "cp recipes/small-wmt16-en-de.toml recipes/wmt16-en-de.toml && rm -rf runs/wmt16-en-de"
)
# Long enough to lose a host and to get it back, and with updates as large as those of the real one.
LONGER_DEMO = (
    "sed -i 's/^steps = .*/steps = 1500/; s/^every_steps = 10/every_steps = 500/; "
    "s/^tokens_per_update = .*/tokens_per_update = 1600/' recipes/demo.toml"
)
# Of 2,000 steps with as many evaluations and checkpoints as 20 have, these take most of the time.
FEW_EVALUATIONS = "sed -i 's/^every_steps = .*/every_steps = 1000/' recipes/multi30k.toml"
# The page names the flag for it. Labs need root, so tests of them have it.
MPI_AS_ROOT = "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
LAB_UP = "sudo .venv/bin/dragoman lab up --nodes 2 > /dev/null"
# A host list of the reader's own; the lab's names its ssh_config beside it.
LAB_HOSTS = (
    f"{LAB_UP} && sed 's|^ssh_config = \"|&/var/lib/dragoman-labs/lab/|' "
    "/var/lib/dragoman-labs/lab/hosts.toml > hosts.toml"
)

TREATMENT: dict[tuple[str, str], Treatment] = {
    ("README.md", "make demo"): NotHere(
        "minutes of training; tests/system/test_learning.py trains the demo's recipe"
    ),
    ("README.md", ". .venv/bin/activate"): Run(
        is_quick=True,
        is_activated=False,
        before="rm -r runs/multi30k",
        stays=("dragoman serve runs/demo",),
    ),
    (
        "README.md",
        'dragoman plan recipes/wmt16-en-de.toml --assume "4 nodes, 1gbit, 14 TFLOP/s, 0.53/h"',
    ): Run(
        skipped={
            "dragoman setup --hosts gpu1,gpu2": OWN_HOSTS,
            "dragoman check recipes/wmt16-en-de.toml --hosts gpu1,gpu2": OWN_HOSTS,
            "dragoman train recipes/wmt16-en-de.toml --hosts gpu1,gpu2": OWN_HOSTS,
        },
        needs_lab=True,
    ),
    ("CONTRIBUTING.md", ".venv/bin/python -m pytest tests/unit/checkpoints"): SUITE,
    ("docs/check.md", "dragoman check"): Run(
        before=LAB_HOSTS,
        needs_lab=True,
        unfit=(
            "dragoman check",
            "dragoman check --hosts hosts.toml",
            "dragoman check recipes/multi30k.toml --hosts hosts.toml --html check.html "
            "--output check.json",
        ),
    ),
    ("docs/cluster.md", "dragoman setup recipes/wmt16-en-de.toml --hosts hosts.toml"): Run(
        skipped={"dragoman setup recipes/wmt16-en-de.toml --hosts hosts.toml": INSTALLS},
        before=f"{SMALL_WMT16} && {LAB_HOSTS}",
        needs_lab=True,
    ),
    ("docs/cluster.md", "dragoman prepare recipes/demo.toml"): Run(
        skipped={"srun --ntasks 2 dragoman train recipes/demo.toml --run runs/demo": "needs Slurm"},
        before=f"rm -r runs/demo && {MPI_AS_ROOT}",
    ),
    (
        "docs/commands.md",
        "dragoman train recipes/multi30k.toml --set data.folder=data/m30k "
        "--set training.steps=2000",
    ): Run(before=f"rm -r runs/multi30k && {FEW_EVALUATIONS}"),
    (
        "docs/commands.md",
        "dragoman translate runs/multi30k --lines whole --input test.en --output test.out",
    ): Run(),
    ("docs/data.md", "dragoman prepare recipes/wmt16-en-de.toml"): Run(
        skipped={"dragoman prepare recipes/wmt16-en-de.toml": DOWNLOADS}
    ),
    ("docs/data.md", "dragoman prepare recipe.toml --part 3/16"): Run(
        before='for part in $(seq 16); do test "$part" = 3 || '
        'dragoman prepare recipe.toml --part "$part/16" > /dev/null; done'
    ),
    ("docs/data.md", "dragoman prepare recipe.toml --dask tcp://head:8786"): Elsewhere(
        "tests/hosts/test_dask.py"
    ),
    (
        "docs/data.md",
        "dragoman prepare recipe.toml --publish s3://bucket/prepared/news",
    ): Elsewhere("tests/faults/test_streamed_data.py"),
    ("docs/evaluation.md", "dragoman evaluate runs/multi30k"): Run(
        skipped={"dragoman evaluate runs/multi30k --sacrebleu wmt14/full": DOWNLOADS}
    ),
    ("docs/evaluation.md", "python3.11 -m venv comet-env"): NotHere(
        "downloads 2 GB; tests/system/test_comet_elsewhere.py has a stand-in for the package"
    ),
    ("docs/export.md", "dragoman export runs/demo exported/demo --to ctranslate2"): Run(
        before="rm -r runs/demo && dragoman train recipes/demo.toml"  # three checkpoints to average
    ),
    ("docs/installation.md", "make dist"): Elsewhere("tests/shipped/test_wheel.py"),
    ("docs/installation.md", "pip install torch"): Elsewhere("tests/shipped/test_wheel.py"),
    ("docs/installation.md", "docker build --tag dragoman ."): DOCKER,
    (
        "docs/installation.md",
        "docker compose up --build --abort-on-container-failure",
    ): DOCKER,
    ("docs/lab.md", "sudo .venv/bin/dragoman lab up --nodes 2 --rate 100mbit"): Run(needs_lab=True),
    (
        "docs/lab.md",
        "sudo .venv/bin/dragoman lab run --nodes 2 --rate 100mbit -- "
        "dragoman train recipes/demo.toml --run runs/rehearsal --hosts {hosts}",
    ): Run(before="rm -r runs/rehearsal", needs_lab=True),
    (
        "docs/lab.md",
        "sudo .venv/bin/dragoman lab up --nodes 3 --rate 1gbit --node-rate 2=10mbit --name trial",
    ): Run(needs_lab=True),
    ("docs/lab.md", "sudo .venv/bin/dragoman lab cut node2"): Run(before=LAB_UP, needs_lab=True),
    ("docs/lab.md", "sudo .venv/bin/dragoman lab down --all"): Run(needs_lab=True),
    ("docs/lab.md", "make bench-truth"): BENCHMARK,
    (
        "docs/notify.md",
        "export DRAGOMAN_WEBHOOK=https://chat.example.org/hooks/secret",
    ): NotHere("calls a server of the reader; tests/unit/watch/test_notifier.py has one"),
    (
        "docs/optimizers.md",
        "dragoman train mine.toml --set training.steps=40000 "
        "--set 'schedule.tails=[[20000, 1e-4]]'",
    ): NotHere("hours of training; tests/unit/training/test_train.py trains on with a tail"),
    ("docs/performance.md", "make bench-train DATA=path/to/multi30k"): BENCHMARK,
    (
        "docs/performance.md",
        "python benchmarks/train.py --data path/to/multi30k --rounds 3 --steps 4 "
        "--only ours,hugging-face,torch",
    ): BENCHMARK,
    (
        "docs/performance.md",
        "python benchmarks/train.py --data path/to/multi30k --rounds 3 --steps 3",
    ): BENCHMARK,
    ("docs/performance.md", "make bench-scaling DATA=path/to/multi30k"): BENCHMARK,
    (
        "docs/performance.md",
        "python benchmarks/scaling.py --data path/to/multi30k --rounds 2 --steps 8 "
        "--long-steps 3000",
    ): BENCHMARK,
    ("docs/performance.md", "make bench-sync DATA=path/to/multi30k KEEP=folder"): BENCHMARK,
    ("docs/performance.md", "make bench-quality DATA=path/to/multi30k"): BENCHMARK,
    (
        "docs/performance.md",
        "python benchmarks/quality.py --data path/to/multi30k --keep folder --limit-minutes 26 "
        "--patience-minutes 7",
    ): BENCHMARK,
    ("docs/performance.md", "make bench-translate RUN=runs/multi30k"): BENCHMARK,
    (
        "docs/plan.md",
        'dragoman plan wmt16-en-de --assume "4 nodes, 1gbit, 14 TFLOP/s, 16 GB, 0.53/h"',
    ): Run(
        before=f"{LAB_HOSTS}\n"
        "dragoman check recipe.toml --hosts hosts.toml --output check.json || test $? = 3",
        needs_lab=True,
    ),
    ("docs/plan.md", "make bench-plan KEEP=folder"): BENCHMARK,
    ("docs/quickstart.md", "make demo"): NotHere("minutes of training, as in the README"),
    ("docs/quickstart.md", ". .venv/bin/activate"): Run(is_quick=True, is_activated=False),
    ("docs/quickstart.md", "dragoman config mine.toml --workers 2"): Run(),
    ("docs/quickstart.md", "dragoman train mine.toml --workers 2"): Run(is_quick=True),
    ("docs/quickstart.md", "dragoman setup --hosts gpu1,gpu2"): NotHere(OWN_HOSTS),
    ("docs/rented-machines.md", "pip install skypilot"): RENTS,
    ("docs/rented-machines.md", "pip install dstack"): RENTS,
    ("docs/report.md", "dragoman report runs/demo"): Run(is_quick=True),
    ("docs/report.md", "dragoman report runs/demo --json > report.json"): Run(is_quick=True),
    (
        "docs/report.md",
        'jq -e \'.answers[] | select(.key == "network") | .health != "poor"\' report.json',
    ): Run(is_quick=True),
    (
        "docs/security.md",
        "sh recipes/cluster/wireguard.sh gpu1=10.0.0.11 gpu2=10.0.0.12",
    ): Elsewhere("tests/hosts/test_wireguard.py"),
    ("docs/serve.md", "pip install --editable '.[serve]'"): Run(
        skipped={"pip install --editable '.[serve]'": "installs from the network"},
        stays=("dragoman serve runs/demo",),
    ),
    (
        "docs/serve.md",
        'curl -s http://127.0.0.1:5000/translate -d q="What did the singer clean?" -d source=en '
        "-d target=de",
    ): Elsewhere("tests/docs/test_serve_page.py"),
    (
        "docs/serve.md",
        "curl -s http://127.0.0.1:5000/translate -H 'content-type: application/json' \\",
    ): Elsewhere("tests/docs/test_serve_page.py"),
    ("docs/storage.md", "sudo make bench-mirror"): BENCHMARK,
    ("docs/sync.md", "make bench-sync DATA=path/to/multi30k KEEP=folder"): BENCHMARK,
    (
        "docs/sync.md",
        "python benchmarks/sync.py --data path/to/multi30k --only quality --ranks 2 --seeds 1 "
        "--steps 600 --variants local-2-4bit --set schedule.peak=0.01",
    ): BENCHMARK,
    ("docs/telemetry.md", "dragoman report runs/demo --trace"): Run(),
    ("docs/watch.md", "dragoman watch runs/demo"): Run(
        skipped={"dragoman watch runs/demo --notify": "needs a server to notify"},
        stays=("dragoman watch runs/demo --web",),
    ),
    ("docs/watch.md", "dragoman watch runs/demo > now.txt"): Run(is_quick=True),
    ("docs/watch.md", "pip install --editable '.[serve]'"): Run(
        skipped={"pip install --editable '.[serve]'": "installs from the network"},
        stays=(
            "dragoman watch runs/demo --web",
            "dragoman watch runs/first runs/second --web --port 8000",
        ),
    ),
    ("docs/gallery/index.md", "sudo make gallery"): NotHere("minutes of runs in a lab"),
    ("docs/tutorials/your-own-corpus.md", ". ~/dragoman/.venv/bin/activate"): Run(
        is_activated=False
    ),
    ("docs/tutorials/your-own-corpus.md", "dragoman prepare mine.toml --explain 2"): Run(),
    ("docs/tutorials/your-own-corpus.md", "dragoman config mine.toml --workers 2"): Run(),
    ("docs/tutorials/your-own-corpus.md", "dragoman train mine.toml --workers 2"): Run(),
    ("docs/tutorials/your-own-corpus.md", "dragoman evaluate runs/mine"): Run(),
    (
        "docs/tutorials/your-own-corpus.md",
        'dragoman translate runs/mine "Two dogs are playing in the snow."',
    ): Run(),
    (
        "docs/tutorials/two-rented-machines.md",
        'dragoman plan wmt16-en-de --assume "2 nodes, 10gbit, 14 TFLOP/s, 16 GB, 0.53/h"',
    ): Run(),
    (
        "docs/tutorials/two-rented-machines.md",
        "sudo .venv/bin/dragoman lab up --nodes 2 --rate 100mbit",
    ): Run(
        before="rm -r runs/demo",
        needs_lab=True,
        unfit=("dragoman check recipes/demo.toml --hosts /var/lib/dragoman-labs/lab/hosts.toml",),
    ),
    ("docs/tutorials/two-rented-machines.md", "dragoman setup --hosts hosts.toml"): Run(
        skipped={"dragoman setup --hosts hosts.toml": INSTALLS},
        before=f"{SMALL_WMT16} && {LAB_HOSTS}",
        needs_lab=True,
        unfit=("dragoman check recipes/wmt16-en-de.toml --hosts hosts.toml --output check.json",),
    ),
    (
        "docs/tutorials/two-rented-machines.md",
        "dragoman train recipes/wmt16-en-de.toml --hosts hosts.toml",
    ): Run(before=f"{SMALL_WMT16} && {LAB_HOSTS}", needs_lab=True),
    ("docs/tutorials/two-rented-machines.md", "dragoman inspect runs/wmt16-en-de"): Run(),
    (
        "docs/tutorials/a-spot-cluster.md",
        "sudo .venv/bin/dragoman lab up --nodes 3 --rate 1gbit",
    ): Run(before=f"rm -r runs/demo && {LONGER_DEMO}", needs_lab=True),
    ("docs/tutorials/a-spot-cluster.md", "dragoman report runs/demo"): Run(),
    (
        "docs/tutorials/a-spot-cluster.md",
        "until dragoman train recipes/demo.toml --set training.micro_batch_tokens=512 "
        "--hosts hosts.toml --yes || [ $? = 2 ]; do sleep 60; done",
    ): Run(before=LAB_HOSTS, needs_lab=True),
    ("docs/tutorials/a-spot-cluster.md", "dragoman verify-resume recipes/demo.toml"): Run(),
    ("docs/tutorials/reading-the-report.md", "dragoman report runs/demo"): Run(),
    (
        "docs/tutorials/reading-the-report.md",
        "dragoman report runs/demo --json | jq -r "
        "'.answers[] | \"\\(.health)\\t\\(.key)\\t\\(.verdict)\"'",
    ): Run(),
    ("docs/tutorials/from-tensorboard-to-the-eleven-answers.md", "ls runs/demo"): Run(),
    (
        "docs/tutorials/from-tensorboard-to-the-eleven-answers.md",
        "dragoman report runs/demo",
    ): Run(),
    (
        "docs/tutorials/from-tensorboard-to-the-eleven-answers.md",
        "dragoman watch runs/demo",
    ): Run(),
}
TRANSLATE_PAGE = Elsewhere("tests/docs/test_translate_page.py")


def treatment_of(block: Block) -> Treatment | None:
    """Returns what is done with a block; None if nobody has decided."""
    if block.page == "docs/translate.md":  # the whole page is one program
        return TRANSLATE_PAGE
    return TREATMENT.get((block.page, block.key))


def shown_blocks() -> Iterator[Block]:
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        for inside in re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            yield Block(str(path.relative_to(ROOT)), tuple(commands_of(inside)))


def commands_of(block: str) -> Iterator[str]:
    """Yields the commands of a block without comments; a continued line or a document is one."""
    lines = iter(block.splitlines())
    for line in lines:
        command = re.sub(r"\s{2,}# .*", "", line)
        while command.endswith("\\"):
            command += "\n" + next(lines)
        if document := re.search(r"<<'?(\w+)'?", command):
            for more in lines:
                command += "\n" + more
                if more == document[1]:
                    break
        if command.strip() and not command.startswith("#"):
            yield command
