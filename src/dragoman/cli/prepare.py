import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.arguments import Overrides, Recipe

if TYPE_CHECKING:
    from dragoman.preparation import Share
    from dragoman.preparation.pipeline import StartWorkers
    from dragoman.preparation.plan import Plan
    from dragoman.preparation.workers import Workers
    from dragoman.shards.passport import PreparedData
    from dragoman.storage import Store


def prepare(
    recipe: Recipe,
    part: Annotated[
        str,
        typer.Option(
            metavar="I/N", help="Clean only part I of N, counted from 1; then use --join."
        ),
    ] = "",
    join: Annotated[bool, typer.Option("--join", help="Finish after all parts are clean.")] = False,
    dask: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Prepare on a Dask cluster: tcp://host:8786, tls://host:8786, or ssh:host1,host2 "
            "to start one there.",
        ),
    ] = "",
    explain: Annotated[
        int, typer.Option(min=0, max=20, metavar="N", help="Show N dropped pairs for each reason.")
    ] = 0,
    publish: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Copy the result there, such as s3://bucket/folder, for data.prepared_from.",
        ),
    ] = "",
    overrides: Overrides = None,
) -> None:
    """Turn raw parallel text into clean, tokenized shards with a data passport.

    If interrupted, the same command continues.

    Example: dragoman prepare recipes/multi30k.toml --set data.folder=data/multi30k
    """
    from dragoman import preparation
    from dragoman.cli.inspect import show_data
    from dragoman.config import load_config
    from dragoman.console import Progress, echo
    from dragoman.errors import UserError

    config = load_config(recipe, overrides or ())
    if part and publish:
        raise UserError("--part makes nothing that could be published; give --publish with --join")
    store = _store(publish) if publish else None  # before the work, which may take hours
    if part and join:
        raise UserError("--part and --join were both given; run every part first, then --join")
    if dask and (part or join):
        raise UserError("--dask does all parts and joins them; leave out --part and --join")
    if part:
        share = _share(part)
        expected = preparation.expected_pairs(config.data)
        total = expected and expected // share.shares
        title = f"cleaning part {part}"
        with Progress(title, "pairs", total, is_about=True) as progress, progress.ticking():
            preparation.clean_share(config, share, progress.advance)
        echo(f"part {part} is clean; when all are, run the same command with --join")
        return
    if dask:
        prepared = preparation.prepare(config, _on_dask(dask))
    else:
        prepared = preparation.join(config) if join else preparation.prepare(config)
    show_data(prepared)
    if store:
        _publish(prepared, store)
    if explain:
        for reason, pairs in preparation.dropped_examples(config).items():
            echo(f"\ndropped, {reason}:")
            for source, target in pairs[:explain]:
                echo(f"    {source[:200]}\n    {target[:200]}\n")


def _on_dask(given: str) -> "StartWorkers":
    """Returns what starts the workers that `--dask` names."""
    from dragoman.errors import UserError
    from dragoman.installation import install_command

    if not re.fullmatch(r"(tcp|tls)://(\[[0-9a-fA-F:.]+\]|[^:/\s]+):\d+|ssh:.+", given):
        raise UserError(
            f"--dask {given}: write the scheduler's address as tcp://host:8786 or tls://host:8786, "
            "or name hosts as ssh:host1,host2"
        )
    try:
        from dragoman.preparation.dask_workers import dask_workers
    except ImportError:
        raise UserError(f"--dask needs more packages; {install_command('dask')}") from None

    @contextmanager
    def on_hosts(plan: "Plan") -> Iterator["Workers"]:
        from dragoman.cluster.dask_hosts import dask_on_hosts
        from dragoman.cluster.hosts import load_cluster

        with (
            dask_on_hosts(load_cluster(given.removeprefix("ssh:"))) as cluster,
            dask_workers(cluster.address, plan, cluster.security) as workers,
        ):
            yield workers

    return on_hosts if given.startswith("ssh:") else lambda plan: dask_workers(given, plan)


def _store(address: str) -> "Store":
    from dragoman.storage import Store, parse_address

    return Store(parse_address(address))


def _publish(prepared: "PreparedData", store: "Store") -> None:
    from dragoman.console import Progress, echo
    from dragoman.shards.remote import publish

    size = sum((prepared.folder / name).stat().st_size for name in prepared.files())
    with Progress("publishing", "bytes", size) as progress, progress.ticking():
        publish(prepared, store, progress.advance)
    echo(f'\npublished; to train from there: --set data.prepared_from="{store.address}"')


def _share(part: str) -> "Share":
    from dragoman.errors import UserError
    from dragoman.preparation import Share

    number, slash, count = part.partition("/")
    if not (slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise UserError(f"--part {part}: write 1/8 for the first of eight parts")
    return Share(int(number) - 1, int(count))
