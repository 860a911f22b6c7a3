import os
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.arguments import CheckpointName, Engine, Precision, local_folder

KEY_VARIABLE = "DRAGOMAN_API_KEY"
LONGEST_KEY_BYTES = 10_000


def serve(
    runs: Annotated[
        list[Path],
        typer.Argument(
            parser=local_folder,
            help="Folders of runs, one for each language pair.",
            metavar="RUN...",
        ),
    ],
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 lets other machines in.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0: any that is free.")
    ] = 5000,
    key_file: Annotated[
        Path | None,
        typer.Option(
            "--api-key-file",
            metavar="FILE",
            help=f"Require the API key in this file, or in the variable {KEY_VARIABLE}.",
        ),
    ] = None,
    characters: Annotated[
        int, typer.Option(min=1, max=10_000_000, help="Most characters of a request.")
    ] = 20_000,
    document_characters: Annotated[
        int, typer.Option(min=1, max=100_000_000, help="Most characters of a streamed document.")
    ] = 1_000_000,
    queue_characters: Annotated[
        int, typer.Option(min=1, max=100_000_000, help="Most characters that may wait.")
    ] = 200_000,
    requests: Annotated[
        int, typer.Option(min=1, max=100_000, help="Most requests that are worked on at once.")
    ] = 500,
    client_requests: Annotated[
        int, typer.Option(min=1, max=100_000, help="The same for one client's address.")
    ] = 100,
    seconds: Annotated[
        float, typer.Option(min=0.1, max=3600, help="Most seconds that a request may take.")
    ] = 60.0,
    checkpoint: CheckpointName = "best",
    reload_every: Annotated[
        float,
        typer.Option(min=0.1, metavar="SECONDS", help="How often to look for a better checkpoint."),
    ] = 5.0,
    engine: Engine = "auto",
    precision: Precision = "float32",
    threads: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Cores to compute with; all by default.")
    ] = None,
    reports: Annotated[
        bool | None,
        typer.Option(
            "--reports/--no-reports",
            help="Serve the runs' training reports; by default to this machine alone.",
        ),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="Let pages of this site use the API; repeatable."),
    ] = None,
    log_requests: Annotated[
        bool, typer.Option("--log-requests", help="Log a line for each request.")
    ] = False,
    log_texts: Annotated[
        bool, typer.Option("--log-texts", help="Log the texts that are translated, too.")
    ] = False,
) -> None:
    """Serve trained models over HTTP: LibreTranslate's API, and a page to translate in.

    Example: dragoman serve runs/demo
    """
    from dragoman.errors import UserError
    from dragoman.installation import install_command

    try:
        import httptools  # noqa: F401
        import prometheus_client  # noqa: F401
        import python_multipart  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise UserError(
            f"serving needs more packages ({error.name} is missing): {install_command('serve')}"
        ) from None
    import torch

    from dragoman.console import echo
    from dragoman.rundir import RunDir
    from dragoman.serve import server
    from dragoman.serve.app import Options, create_app
    from dragoman.serve.batching import Batcher
    from dragoman.serve.limits import Limits
    from dragoman.serve.metrics import Metrics
    from dragoman.serve.models import Choice, Models
    from dragoman.serve.security import is_loopback

    if threads:
        torch.set_num_threads(threads)
    key = _key(key_file)
    limits = Limits(
        characters=characters,
        document_characters=document_characters,
        queue_characters=queue_characters,
        requests=requests,
        client_requests=client_requests,
        seconds=seconds,
    )
    options = Options(
        limits=limits,
        key=key,
        has_reports=(is_loopback(host) and not key) if reports is None else reports,
        reports_stay_here=reports is None,
        allowed_origins=allow_origin or (),
        is_logged=log_requests or log_texts,
        texts_are_logged=log_texts,
    )
    models = Models([RunDir(run) for run in runs], Choice(checkpoint, engine, precision))
    metrics = Metrics()
    batcher = Batcher(torch.get_num_threads(), limits.queue_characters, metrics.count_batch)
    with server.bind(host, port) as bound:
        echo(f"Serving {', '.join(map(str, models.pairs))} at {server.address_of(bound)}")
        server.run(
            create_app(models, batcher, metrics, options),
            bound,
            lambda: models.load_and_follow(reload_every),
            request_s=limits.seconds,
            upload_s=limits.upload_s,
        )
    batcher.close()


def _key(file: Path | None) -> str:
    """Returns the API key; not from an argument, which all users of a machine can see."""
    from dragoman.errors import UserError
    from dragoman.rundir import read_bounded

    if file is None:
        return os.environ.get(KEY_VARIABLE, "").strip()
    try:
        key = read_bounded(file, LONGEST_KEY_BYTES).decode().strip()
    except UnicodeDecodeError:
        raise UserError(f"{file}: is not a text; write the API key into it, on one line") from None
    if not key:
        raise UserError(f"{file}: is empty; write the API key into it, on one line")
    return key
