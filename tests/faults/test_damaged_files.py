"""Files that come from outside, damaged in a thousand ways that keep their structure.

Whatever is in them: it is accepted, or refused with one sentence, exit code 1 or 2, and nothing on
disk is changed. The same examples every time.
"""

import contextlib
import hashlib
import io
import json
import math
import shutil
import sys
import tomllib

import pytest
import torch
from digits_language import write_recipe
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutations import damaged_bytes, damaged_json, damaged_toml, damaged_trees

from dragoman.checkpoints.checkpoint import Checkpoint, check_tensors
from dragoman.checkpoints.finding import verify
from dragoman.checkpoints.names import MANIFEST, MODEL, STATE
from dragoman.cli import main
from dragoman.cluster.hosts import load_cluster
from dragoman.cluster.network import check_public, check_twice
from dragoman.config import load_config
from dragoman.diagnosis.run.record import read_run
from dragoman.errors import DragomanError
from dragoman.model.transformer import Transformer
from dragoman.rundir import RunDir, read_json
from dragoman.shards.passport import PreparedData
from dragoman.telemetry.events import Stamped, from_line
from dragoman.telemetry.read.events import read_events
from dragoman.telemetry.read.parse import parse
from dragoman.telemetry.record.status import read_status
from dragoman.training.claim import check_data
from dragoman.training.resume import check_for
from dragoman.training.tensors import shapes_of

pytestmark = [
    pytest.mark.timeout(300),
    # Some damaged files are large, and it warns of printing them.
    pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning"),
]

HOSTS = """
min_hosts = 1
interface = "eth1"
allow_public = false
[[hosts]]
name = "node1"
address = "10.0.0.1"
ssh_port = 2222
user = "ubuntu"
folder = "/data/dragoman"
devices = 2
price_per_hour = 0.526
[[hosts]]
name = "node2"
"""


def examples(number):
    return settings(
        max_examples=number,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


def called(*arguments):
    """The command in this process: its exit code, and what it has printed to stderr."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    before = sys.argv
    sys.argv = ["dragoman", *map(str, arguments)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
        code = 0
    except SystemExit as ending:
        code = ending.code or 0
    finally:
        sys.argv = before
    err.flush()
    return code, err.buffer.getvalue().decode()


def refused_in_a_sentence(*arguments):
    """Whether the command was refused; if so, as it should be."""
    code, errors = called(*arguments)
    if code == 0:
        return False
    assert code in (1, 2), errors
    assert len([line for line in errors.splitlines() if line.startswith("error: ")]) == 1, errors
    assert "Traceback" not in errors
    return True


def outcome(action):
    """What `action` returns, or the one sentence that it is refused with."""
    try:
        return action()
    except DragomanError as error:
        sentence = str(error)
    assert sentence
    assert "\n" not in sentence
    return sentence


def fingerprint(folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@contextlib.contextmanager
def replaced(path, content):
    """The file with other content, and everything else untouched by what is done meanwhile."""
    before = path.read_bytes()
    path.write_bytes(content)
    found = fingerprint(path.parent)
    try:
        yield
        assert fingerprint(path.parent) == found
    finally:
        path.write_bytes(before)


def list_hashes_again(folder):
    """As if the files of a checkpoint had been saved like this."""
    manifest = read_json(folder / MANIFEST)
    for name in manifest["files"]:
        content = (folder / name).read_bytes()
        sha256 = hashlib.sha256(content).hexdigest()
        manifest["files"][name] = {"bytes": len(content), "sha256": sha256}
    (folder / MANIFEST).write_text(json.dumps(manifest))


class Made:
    """A small run and its prepared data, made once."""

    def __init__(self, folder):
        self.recipe = write_recipe(folder)
        self.prepared = folder / "prepared"
        self.run = RunDir(folder / "run")
        changes = ["--set", "training.steps=4", "--set", "checkpoints.every_steps=2"]
        code, errors = called("train", self.recipe, "--run", self.run.root, *changes)
        assert code == 0, errors
        self.checkpoint = self.run.checkpoints / "step-00000004"
        self.config = load_config(self.run.config)
        with torch.device("meta"):
            self.model = Transformer(self.config.model, 60)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return Made(tmp_path_factory.mktemp("made"))


def test_what_is_whole_is_accepted(made):
    """Or the tests below would show nothing."""
    for path in (made.prepared, made.run.root, made.checkpoint):
        assert not refused_in_a_sentence("inspect", path)
    verify(Checkpoint(made.checkpoint))
    check_for(made.model, made.config)(Checkpoint(made.checkpoint))
    check_data(made.run, PreparedData.open(made.prepared).passport)
    assert load_cluster_from(made, HOSTS.encode()).hosts


def test_data_passports(made):
    path = made.prepared / "data.json"
    refused = []

    @examples(150)
    @given(damaged_json(read_json(path)))
    def check(content):
        with replaced(path, content):
            refused.append(refused_in_a_sentence("inspect", made.prepared))
            outcome(lambda: PreparedData.open(made.prepared).verify())
            outcome(lambda: PreparedData.open(made.prepared).tokenizer())
            outcome(lambda: PreparedData.open(made.prepared).shards("train").lengths())
            outcome(lambda: PreparedData.open(made.prepared).text("validation"))

    check()
    assert sum(refused) > 50


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda data: data.update(vocabulary=0), "vocabulary = 0 should be from 1 to"),
        (lambda data: data["splits"].pop("train"), "splits.train is missing"),
        (lambda data: data.update(tokenizer_file="../up"), "tokenizer_file = '../up' should"),
        (lambda data: data["splits"]["train"]["source"].update(lengths=[-1]), "lengths.0 = -1"),
        (
            lambda data: data["splits"]["train"]["sources"][0].update(weight=math.nan),
            "weight = nan",
        ),
    ],
    ids=["no vocabulary", "no split", "out of the folder", "negative", "NaN"],
)
def test_a_passport_with_one_impossible_value(made, change, sentence):
    path = made.prepared / "data.json"
    content = read_json(path)
    change(content)
    with replaced(path, json.dumps(content).encode()):
        code, errors = called("inspect", made.prepared)
    assert code == 1
    assert sentence in errors


def test_checkpoint_manifests(made):
    path = made.checkpoint / MANIFEST
    refused = []

    @examples(100)
    @given(damaged_json(read_json(path)))
    def check(content):
        with replaced(path, content):
            refused_in_a_sentence("inspect", made.checkpoint)
            refused.append(outcome(lambda: verify(Checkpoint(made.checkpoint))))

    check()
    assert len([sentence for sentence in refused if sentence]) > 50


def test_checkpoint_states_with_the_right_hashes(made, tmp_path):
    copied = tmp_path / "run" / "checkpoints" / "step-00000004"
    shutil.copytree(made.checkpoint, copied)
    usable = check_for(made.model, made.config)
    refused = []

    @examples(150)
    @given(damaged_json(read_json(made.checkpoint / STATE)), st.integers(0, 3))
    def check(content, number):
        (copied / STATE).write_bytes(content)
        list_hashes_again(copied)
        before = fingerprint(copied)  # beside it, an engine may keep what it has made of it
        refused.append(outcome(lambda: verify(Checkpoint(copied))))
        refused.append(outcome(lambda: usable(Checkpoint(copied))))
        if number == 0:  # slower than the rest
            refused_in_a_sentence("translate", tmp_path / "run", "--checkpoint", 4, "one two")
        assert fingerprint(copied) == before

    check()
    assert len([sentence for sentence in refused if sentence]) > 80


def test_tensor_files_with_damaged_headers(made, tmp_path):
    content = (made.checkpoint / MODEL).read_bytes()
    size = int.from_bytes(content[:8], "little")
    header, values = json.loads(content[8 : 8 + size]), content[8 + size :]
    path, shapes = tmp_path / MODEL, shapes_of(made.model)

    @examples(100)
    @given(damaged_json(header), damaged_bytes(values), st.sampled_from([0, 0, 0, 1, 2**40]))
    def check(text, values, wrong_size):
        path.write_bytes((len(text) + wrong_size).to_bytes(8, "little") + text + values)
        outcome(lambda: check_tensors(path, shapes))

    check()


def test_manifests_of_a_run(made):
    passport = PreparedData.open(made.prepared).passport

    @examples(60)
    @given(damaged_json(read_json(made.run.manifest)))
    def check(content):
        with replaced(made.run.manifest, content):
            outcome(lambda: check_data(made.run, passport))

    check()


def test_the_status_of_a_run(made):
    @examples(60)
    @given(damaged_json(read_json(made.run.status)))
    def check(content):
        with replaced(made.run.status, content):
            refused_in_a_sentence("inspect", made.run.root)
            outcome(lambda: read_status(made.run).step + 1)

    check()


def test_lines_of_events(made):
    path = made.run.events_of(1, 0)
    lines = path.read_bytes().splitlines()
    by_kind = {json.loads(line)["kind"]: json.loads(line) for line in lines}
    assert len(by_kind) > 5
    read = []

    @examples(200)
    @given(
        st.lists(
            st.sampled_from(sorted(by_kind)).flatmap(lambda kind: damaged_json(by_kind[kind])),
            min_size=1,
            max_size=3,
        )
    )
    def check(damaged):
        text = b"\n".join([lines[0], *damaged, lines[-1]]) + b"\n"
        read.extend(from_line(line) for line in damaged)
        parse(text)
        with replaced(path, text):
            assert len(read_events(made.run)) >= 2
            outcome(lambda: read_run(made.run, read_at=1e9))

    check()
    assert None in read
    assert any(isinstance(stamped, Stamped) for stamped in read)


def load_cluster_from(made, content):
    path = made.recipe.with_name("hosts.toml")
    path.write_bytes(content)
    cluster = load_cluster(str(path))
    check_public(cluster, {})
    check_twice(cluster, {})
    return cluster


def test_host_lists(made):
    refused = []

    @examples(150)
    @given(damaged_toml(tomllib.loads(HOSTS)))
    def check(content):
        refused.append(isinstance(outcome(lambda: load_cluster_from(made, content)), str))

    check()
    assert sum(refused) > 50


def test_recipes(made):
    refused = []

    @examples(200)
    @given(damaged_toml(tomllib.loads(made.recipe.read_text())))
    def check(content):
        with replaced(made.recipe, content):
            refused.append(refused_in_a_sentence("config", made.recipe, "--no-timing"))

    check()
    assert sum(refused) > 50


def test_training_on_damaged_files_is_refused_before_it_changes_anything(made):
    """The files of a finished run, one at a time; what says how far it is may be written again."""
    prepared = [made.prepared / "data.json", made.prepared / "inputs.json"]
    paths = [*prepared, made.run.manifest, made.run.config]
    again = {made.run.status, made.run.root / ".lock"}
    refused = []

    @examples(40)
    @given(st.data())
    def check(data):
        path = data.draw(st.sampled_from(paths))
        original = path.read_bytes()
        if path == made.run.config:
            content = data.draw(damaged_toml(tomllib.loads(original.decode())))
        else:
            content = data.draw(damaged_json(read_json(path)))
        kept = {found: found.read_bytes() for found in fingerprint(made.run.root)}
        path.write_bytes(content)
        try:
            before = fingerprint(made.recipe.parent)
            changes = ["--set", "training.steps=4", "--set", "checkpoints.every_steps=2"]
            was_refused = refused_in_a_sentence(
                "train", made.recipe, "--run", made.run.root, *changes
            )
            refused.append(was_refused)
            after = fingerprint(made.recipe.parent)
            changed = {found for found in before | after if before.get(found) != after.get(found)}
            assert not was_refused or changed <= again
        finally:
            path.write_bytes(original)
            for found in fingerprint(made.run.root).keys() - kept.keys():
                found.unlink()
            for found, whole in kept.items():
                found.write_bytes(whole)

    check()
    assert sum(refused) > 15


def test_trees_are_damaged_in_every_way(made):
    """That the examples above are what they are said to be."""
    valid = read_json(made.run.status)
    seen = []

    @examples(100)
    @given(damaged_trees(valid))
    def check(tree):
        seen.append(tree)

    check()
    assert any(tree.keys() < valid.keys() for tree in seen)
    assert any(tree.keys() - valid.keys() for tree in seen)
    assert any(None in tree.values() for tree in seen)
    assert any(10**30 in tree.values() for tree in seen)
