from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.arguments import local_folder

if TYPE_CHECKING:
    from dragoman.rundir import RunDir
    from dragoman.shards.passport import PreparedData, Side, SourceRecord


FILES_SHOWN = 10


def inspect(
    path: Annotated[
        Path, typer.Argument(parser=local_folder, help="Prepared data, a run or a checkpoint.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Show what prepared data, a run or a checkpoint is made of: files, sizes, hashes, figures.

    Example: dragoman inspect prepared/demo
    """
    from dragoman.checkpoints.names import is_checkpoint
    from dragoman.console import echo
    from dragoman.errors import UserError
    from dragoman.rundir import RunDir
    from dragoman.shards.passport import PASSPORT_NAME, PreparedData

    if (path / PASSPORT_NAME).exists():
        prepared = PreparedData.open(path)
        if as_json:
            print(prepared.passport.model_dump_json(indent=2))
        else:
            show_data(prepared)
    elif is_checkpoint(path):
        show_checkpoint(path, as_json)
    elif RunDir(path).config.exists():
        show_run(RunDir(path), as_json)
    else:
        raise UserError(
            f"{path}: is neither prepared data nor a run nor a checkpoint; name such a folder, "
            "such as prepared/demo, runs/demo or runs/demo/checkpoints/best"
        )
    if not as_json:
        echo()


def show_data(prepared: "PreparedData") -> None:
    from dragoman.console import echo

    passport = prepared.passport
    echo(
        f"{prepared.folder}: {passport.source_language} to {passport.target_language}, "
        f"data hash {passport.content_hash[:12]}"
    )
    for name, split in passport.splits.items():
        often = (
            ""
            if split.pairs_per_epoch == split.pairs_kept
            else (f", seen as {split.pairs_per_epoch:,} per epoch")
        )
        echo(f"\n{name}: {split.pairs_kept:,} of {split.pairs_in:,} pairs{often}")
        for language, side in (
            (passport.source_language, split.source),
            (passport.target_language, split.target),
        ):
            echo(f"    {language}  {_side_in_words(side)}")
        for reason, count in sorted(split.dropped.items(), key=lambda item: -item[1]):
            echo(f"    dropped {count:>11,}  {reason}")
        if len(split.sources) > 1:
            for source in split.sources:
                echo(
                    f"    from {source.description}: {source.pairs_kept:,} of "
                    f"{source.pairs_in:,}, weight {source.weight:g}"
                )
                for line in _duplicates_in_words(source, split.sources):
                    echo(f"        {line}")
        if [part.test_set for part in split.parts] != ["test"]:
            for part in split.parts:
                echo(f"    set {part.test_set}: {part.pairs:,} from {part.description}")
    size = sum(file.bytes for split in passport.splits.values() for file in split.shards)
    files = sum(len(split.shards) for split in passport.splits.values())
    echo(f"\n{files} shard files, {size / 1e6:,.1f} MB")
    used = passport.used_pieces / passport.vocabulary
    echo(f"{passport.vocabulary:,} pieces, {used:.1%} of them occur in the training data")
    for file in passport.inputs[:FILES_SHOWN]:
        echo(f"read {file.path}: {file.bytes / 1e6:,.1f} MB, sha256 {file.sha256[:12]}")
    if more := passport.inputs[FILES_SHOWN:]:
        echo(f"and {len(more):,} more files, {sum(file.bytes for file in more) / 1e6:,.1f} MB")
    echo("made by " + ", ".join(f"{name} {v}" for name, v in passport.versions.items()))


def _duplicates_in_words(source: "SourceRecord", sources: "list[SourceRecord]") -> Iterator[str]:
    """Yields a line for each other source that has some of its pairs already."""
    for other, count in zip(sources, source.duplicates_of, strict=False):
        if other is source or not count:
            continue
        larger = max(source.weight, other.weight)
        # A third source may have some of them, too, and weigh more.
        is_largest = larger == max(each.weight for each in sources)
        weight = f", which keep the larger weight, {'' if is_largest else 'at least '}{larger:g}"
        yield (
            f"{count:,} duplicates of pairs of {other.description}"
            f"{weight if source.weight != other.weight else ''}"
        )


def _side_in_words(side: "Side") -> str:
    unknown = side.unknown_tokens / max(1, side.tokens)
    return (
        f"{side.bytes / 1e6:,.1f} MB, {side.tokens:,} tokens, unknown {unknown:.3%}, "
        f"lengths {_sparkline(side.lengths)} (0 to {8 * len(side.lengths)} pieces)"
    )


def _sparkline(counts: list[int]) -> str:
    top = max(counts, default=0) or 1
    return "".join(" ▁▂▃▄▅▆▇█"[-(-8 * count // top)] for count in counts)


def show_checkpoint(folder: Path, as_json: bool) -> None:
    import json

    from dragoman.checkpoints.names import CONTENTS
    from dragoman.checkpoints.schema import is_whole, read_manifest
    from dragoman.console import echo

    saved = read_manifest(folder).files
    whole = {name: is_whole(folder / name, file) for name, file in saved.items()}
    if as_json:
        files = {name: {**dict(file), "is_whole": whole[name]} for name, file in saved.items()}
        print(json.dumps({"folder": str(folder), "files": files}, indent=2))
        return
    total = sum(file.bytes for file in saved.values())
    echo(f"{folder.resolve().name}: {total / 1e6:,.1f} MB")
    for name, file in sorted(saved.items(), key=lambda item: -item[1].bytes):
        verdict = "whole" if whole[name] else "DAMAGED"
        echo(f"    {name:<22} {file.bytes / 1e6:>10,.3f} MB  {verdict}  {CONTENTS.get(name, '')}")


def show_run(run: "RunDir", as_json: bool) -> None:
    import json

    from dragoman.checkpoints.names import step_of
    from dragoman.console import echo
    from dragoman.telemetry.record.status import read_status

    status = read_status(run)
    folders = sorted(path for path in run.checkpoints.glob("*") if step_of(path.name) is not None)
    sizes = {
        folder.name: sum(file.stat().st_size for file in folder.iterdir())
        for folder in folders
        if folder.is_dir() and not folder.is_symlink()
    }
    if as_json:
        shown = status.model_dump(exclude_unset=True)
        print(json.dumps({"status": shown, "checkpoint_bytes": sizes}, indent=2))
        return
    echo(f"{run.root}: {status.state or 'unknown'}, step {status.step:,}")
    for name in ("validation_loss", "bleu", "reason"):
        if value := getattr(status, name):
            echo(f"    {name.replace('_', ' ')}: {value}")
    for name, size in sizes.items():
        echo(f"    checkpoints/{name}  {size / 1e6:,.1f} MB")
