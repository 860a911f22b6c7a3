"""Whose run directory is it? One config, one data set, one training at a time. Without torch."""

import errno
import fcntl
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dragoman.checkpoints.run_id import known_id, run_id
from dragoman.config import Config, as_before_accumulation, dump_config, load_config
from dragoman.errors import UserError, storage_errors
from dragoman.rundir import RunDir, remove_unfinished, write_whole
from dragoman.shards.passport import Passport
from dragoman.training.manifest import read_manifest

# What may change between two attempts: it decides when to stop, evaluate, save and log, and where
# files are kept, and not (up to the order of sums) which weights come out of a step.
FREE_KEYS = (
    "training.steps",
    "training.epochs",
    "training.hours",
    "training.patience",
    "training.device",
    "training.sharding",
    "training.compare_every_steps",
    "training.max_skipped",
    "training.max_rollbacks",
    "data.folder",
    "data.cache",
    "data.mirror",
    "data.prepared",
    "data.prepared_from",
    "data.prepared_max_bytes",
    "data.test",
    "tokenizer.model",  # a path; the hash of the data tells whether its pieces are others
    "evaluation.every_steps",
    "evaluation.train_sample_pairs",
    "evaluation.translate_sentences",
    "evaluation.samples",
    "evaluation.beam",  # not best_by: no loss is better than the best BLEU, and patience would end
    "evaluation.beside",
    "evaluation.beside_threads",
    "decoding",
    "checkpoints",
    "telemetry",
    "preemption",
    "cost",
    "notify",
)
LEADING_KEYS = ("sync.accumulate", "sync.local_steps")
"""From which other keys follow, beside modes and kinds."""
# What may differ between the ranks of one attempt: where a host has its files, whose host it is,
# who is notified. Everything else decides when ranks meet, and a rank that comes at another time
# would wait for ever.
HOST_KEYS = (
    "training.device",
    "data.folder",
    "data.cache",
    "data.mirror",
    "data.prepared",
    "data.prepared_from",
    "data.prepared_max_bytes",
    "tokenizer.model",
    "preemption",
    "notify",
)
SUGGESTED_SHARE = 0.1
"""Of the peak: the rate that is named as an example for a tail."""
LOCK = ".lock"
RUN_ID = "DRAGOMAN_RUN_ID"
"""The environment variable in which a launcher gives the workers on other hosts the run's id."""


def claim_run(run: RunDir, config: Config, expected_id: str = "") -> str:
    """Writes config and id of a new run; refuses a directory of another config or another run.

    Returns the id: the environment's, else `expected_id`, else the directory's own or a new one.
    """
    config = as_found(run, config)
    expected_id = os.environ.get(RUN_ID, "") or expected_id
    found_id = known_id(run)
    if expected_id and found_id and found_id != expected_id:
        raise UserError(
            f"{run.root} on this host belongs to another run (id {found_id[:8]}..., not "
            f"{expected_id[:8]}...); choose another last folder name with --run, or remove it there"
        )
    if run.config.exists():
        before = load_config(run.config)
        changes = incompatible_changes(before, config)
        if changes and has_begun(run):
            if [key for key, _, _ in changes] == ["training.steps"] and _has_more(before, config):
                raise UserError(f"{run.root}: {_how_to_extend(before, config)}")
            key, old, new = changes[0]
            others = f" (and {len(changes) - 1} more keys)" if len(changes) > 1 else ""
            raise UserError(
                f"{run.root}: was started with {key} = {old!r}, and now it is {new!r}{others}; "
                "name another folder with --run, or set it back"
            )
    elif run.root.exists() and not is_empty_folder(run.root):
        raise UserError(
            f"{run.root}: is not a run directory and not empty, and nothing was touched; "
            "name another folder with --run"
        )
    with storage_errors(run.root, "making the run directory"):
        run.root.mkdir(parents=True, exist_ok=True)
    # Several hosts may claim at once, and none while it is trained; but an id is made only once.
    with locked(run, fcntl.LOCK_SH if run.id.exists() else fcntl.LOCK_EX):
        remove_unfinished(run.root)
        remove_unfinished(run.references.parent)
        write_whole(run.config, dump_config(config))
        if not run.id.exists():
            write_whole(run.id, (expected_id or found_id or secrets.token_hex(16)) + "\n")
    return run_id(run)


def has_begun(run: RunDir) -> bool:
    """Returns whether any attempt has recorded or saved anything."""
    return run.events.exists() or run.checkpoints.exists()


def withdraw_claim(run: RunDir) -> None:
    """Removes what `claim_run` wrote for a run that was refused before it had begun."""
    if has_begun(run):
        return
    for path in (run.config, run.id, run.status, run.check, run.root / LOCK):
        path.unlink(missing_ok=True)
    shutil.rmtree(run.logs, ignore_errors=True)  # of this start, which was refused
    with suppress(OSError):  # something else is in it
        run.root.rmdir()


def found_before(run: RunDir) -> int | None:
    """Returns the micro_batch_tokens of a run; None: it is new, or has not found them yet."""
    if run.config.exists():
        tokens = load_config(run.config).training.micro_batch_tokens
        if tokens != "auto":
            return tokens
    manifest = read_manifest(run)
    return (manifest.micro_batch_tokens or None) if manifest else None


def as_found(run: RunDir, config: Config) -> Config:
    """Returns the config with the number that the run has found where it says auto, if it has."""
    if config.training.micro_batch_tokens != "auto":
        return config
    return config.with_training(micro_batch_tokens=found_before(run) or "auto")


def write_found(run: RunDir) -> None:
    """Writes what other hosts have found into the config of the run at home."""
    before = load_config(run.config)
    if (now := as_found(run, before)) != before:
        write_whole(run.config, dump_config(now))


def incompatible_changes(before: Config, now: Config) -> list[tuple[str, Any, Any]]:
    """Returns (key, old, new) of every difference that would make it another run.

    Those come first from which others follow, also such as nobody has set.
    """
    old, new = _flat(before.model_dump()), _flat(now.model_dump())
    free = list(FREE_KEYS)
    if _extends(before, now):
        free.append("schedule.tails")
    elif now.schedule.kind in ("cosine", "linear"):
        free.remove("training.steps")  # the whole curve follows from its end
    if "auto" in (before.training.micro_batch_tokens, now.training.micro_batch_tokens):
        free.append("training.micro_batch_tokens")  # either becomes the number that is found
    keys = sorted(
        old.keys() | new.keys(),
        key=lambda key: (not key.endswith((".mode", ".kind")), key not in LEADING_KEYS, key),
    )
    return [
        (key, old.get(key), new.get(key))
        for key in keys
        if old.get(key) != new.get(key) and not _covers(free, key)
    ]


def _extends(before: Config, now: Config) -> bool:
    """Returns whether the rates up to the end that was planned stay, and a tail follows there."""
    old, new = before.schedule.tails, now.schedule.tails
    return (
        len(new) > len(old) and new[: len(old)] == old and new[len(old)][0] == before.training.steps
    )


def _has_more(before: Config, now: Config) -> bool:
    return (now.training.steps or 0) > (before.training.steps or 0)


def _how_to_extend(before: Config, now: Config) -> str:
    """Returns why a schedule that ends cannot get more steps, and what works."""
    schedule = before.schedule
    old, new = (
        as_before_accumulation(c, "training.steps", c.training.steps) for c in (before, now)
    )
    another = (
        f"its {schedule.kind} schedule ends at training.steps = {old}, and all its rates follow "
        f"from that end, so {new} steps would be another run"
    )
    if (before.training.steps or 0) < schedule.warmup_steps:  # a first look at a recipe, often
        warmup = as_before_accumulation(before, "schedule.warmup_steps", schedule.warmup_steps)
        return (
            f"{another}; it ends within its warm-up of {warmup} steps, where no tail can follow, "
            "so begin anew: name another folder with --run, or remove this one"
        )
    all_tails = (*schedule.tails, (before.training.steps, SUGGESTED_SHARE * schedule.peak))
    tails = [
        [step, float(f"{rate:.12g}")]  # as it was typed, before a root was taken
        for step, rate in as_before_accumulation(before, "schedule.tails", all_tails)
    ]
    final = as_before_accumulation(before, "schedule.final", schedule.final)
    return (
        f"{another}; to train on after step {old} with a new tail, from a rate of your choice down "
        f"to schedule.final = {final:g} at step {new}, add --set 'schedule.tails={tails}' "
        "(runs with schedule.kind = constant, noam or inverse-square-root, or with optimizer.kind "
        "= schedule-free, go on without)"
    )


def shared_settings(config: Config) -> dict[str, Any]:
    """Returns by dotted key, as JSON values, what the ranks of an attempt must agree on."""
    flat = _flat(config.model_dump(mode="json"))
    return {key: flat[key] for key in sorted(flat) if not _covers(HOST_KEYS, key)}


def move_away_if_other(run: RunDir, config: Config) -> Path | None:
    """Renames a run directory that belongs to another config; returns its new name, or None."""
    if not run.config.exists() or not incompatible_changes(load_config(run.config), config):
        return None
    number = 1
    while (free := run.root.with_name(f"{run.root.name}.{number}")).exists():
        number += 1
    run.root.rename(free)
    return free


def check_data(run: RunDir, passport: Passport) -> None:
    """Refuses data that is not what the run has learned from so far."""
    manifest = read_manifest(run)
    if manifest and manifest.data_sha256 != passport.content_hash:
        raise UserError(
            f"{run.root}: was trained on data with hash {manifest.data_sha256[:12]}, and the "
            f"prepared data now has {passport.content_hash[:12]}; bring the old data back, or name "
            "another --run"
        )


@contextmanager
def locked(run: RunDir, kind: int = fcntl.LOCK_EX) -> Iterator[None]:
    """While open, this process trains the run; refuses where another one on this machine does."""
    path = run.root / LOCK
    with os.fdopen(_open_lock(path), "rb") as file:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except OSError:
            raise UserError(
                f"{run.root}: is being trained by another process; stop that first, "
                "or name another folder with --run"
            ) from None
        yield


def run_folder(config: Config, given: Path | None) -> RunDir:
    return RunDir(given or Path("runs") / config.name)


def _open_lock(path: Path) -> int:
    """Returns a descriptor of a regular file: a link leads elsewhere, and a pipe would wait."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with storage_errors(path.parent, "locking the run"):
        try:
            descriptor = os.open(path, flags, 0o666)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
                raise
        else:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return descriptor
            os.close(descriptor)
    raise UserError(f"{path}: should be a regular file, which locks the run; remove it")


def is_empty_folder(path: Path) -> bool:
    """Returns whether there is nothing but what a claim that was cut off has left."""
    return path.is_dir() and all(
        found.name == LOCK or found.name.startswith(".config.toml-") for found in path.iterdir()
    )


def _covers(names: Iterable[str], key: str) -> bool:
    """Returns whether `key` is one of `names`, or stands in a section of that name."""
    return any(key == name or key.startswith(f"{name}.") for name in names)


def _flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat
