"""A host's part of a Dask cluster: `python -m dragoman.cluster.dask_host`, run over ssh.

It reads one question from standard input, starts workers, on the first host a scheduler, too, and
prints the scheduler's address. It ends when its input does, and all that it has started with it.
"""

import asyncio
import json
import sys
import tempfile
from contextlib import AsyncExitStack
from typing import Any

from dragoman.cluster.ssh import send_message
from dragoman.errors import DragomanError, UserError
from dragoman.installation import install_command


def main() -> None:
    question = json.loads(sys.stdin.readline())
    try:
        asyncio.run(serve(question))
    except DragomanError as error:
        send_message(sys.stdout, {"error": str(error)})


async def serve(question: dict[str, Any]) -> None:
    try:
        from distributed import Nanny, Scheduler, Security  # noqa: PLC0415 - not on every host
    except ImportError:
        raise UserError(f"has no Dask; install it there: {install_command('dask')}") from None
    security = Security(require_encryption=True, **question["security"])
    host, scheduler = question["address"], question["scheduler"]
    with tempfile.TemporaryDirectory(prefix="dragoman-dask-") as folder:
        async with AsyncExitStack() as opened:
            if scheduler is None:
                server = Scheduler(host=host, protocol="tls", security=security, dashboard=False)
                scheduler = (await opened.enter_async_context(server)).address
            nannies = [
                Nanny(
                    scheduler,
                    security=security,
                    host=host,
                    nthreads=1,
                    local_directory=folder,
                    death_timeout=60,
                    dashboard=False,
                )
                for _ in range(question["workers"])
            ]
            await asyncio.gather(*map(opened.enter_async_context, nannies))
            send_message(sys.stdout, {"address": scheduler})
            await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    main()
