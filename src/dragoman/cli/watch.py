from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.arguments import local_folder


def watch(
    runs: Annotated[
        list[Path],
        typer.Argument(
            parser=local_folder, help="Folders of runs, such as runs/demo.", metavar="RUN..."
        ),
    ],
    web: Annotated[bool, typer.Option("--web", help="Show a page in the browser instead.")] = False,
    host: Annotated[
        str,
        typer.Option(help="With --web: address to listen on; 0.0.0.0 lets other machines in."),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="With --web: port; 0: any that is free.")
    ] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="With --web: print the address, open no browser.")
    ] = False,
    notify: Annotated[
        bool,
        typer.Option(
            "--notify",
            help="Show nothing: send what the run's [notify] asks for, until it has ended.",
        ),
    ] = False,
) -> None:
    """Watch runs as they happen, in this terminal or on a page: figures, machines, verdicts.

    Example: dragoman watch runs/demo
    """
    from dragoman.diagnosis.run.record import refuse_other_folders
    from dragoman.errors import UserError
    from dragoman.installation import install_command
    from dragoman.rundir import RunDir

    directories = [RunDir(run) for run in runs]
    for run in directories:
        refuse_other_folders(run)
    if notify:
        from dragoman.console import echo
        from dragoman.watch.notifying import follow

        if web or len(directories) > 1:
            raise UserError("--notify is for one run, without --web; start a command for each run")
        follow(directories[0], echo)
        return
    if not web:
        from dragoman.watch.terminal import watch_in_terminal

        watch_in_terminal(directories)
        return
    try:
        import httptools  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise UserError(
            f"the page needs more packages ({error.name} is missing); watch in the terminal, "
            f"without --web, or install them: {install_command('serve')}"
        ) from None
    from dragoman.watch.app import serve

    serve(directories, host, port, open_browser=not no_browser)
