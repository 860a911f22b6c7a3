"""Torch's elastic agent for one host: starts the workers, watches them, ends with their code.

Run as `python -m dragoman.cluster.agent WORKERS COMMAND...`; the only part of `cluster` that
imports torch. It ends its workers when its standard input closes, that is, when whoever started
it is gone, however that happened.
"""

import logging
import os
import secrets
import signal
import sys
import threading

from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch


def main(workers: int, command: list[str]) -> int:
    # A worker explains its own failure; the agent's tables about it would bury that sentence.
    logging.getLogger("torch").setLevel(logging.CRITICAL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=workers,
        run_id=secrets.token_hex(8),
        rdzv_backend="c10d",
        rdzv_endpoint="127.0.0.1:0",
        local_addr="127.0.0.1",
        max_restarts=0,
        monitor_interval=0.1,
    )
    try:
        elastic_launch(config, command[0])(*command[1:])
    except ChildFailedError as error:
        code = error.get_first_failure()[1].exitcode
        return code if code > 0 else 1
    except SignalException:
        return 0  # the workers were told; status.json says what became of the run
    return 0


def _end_with_parent() -> None:
    os.read(0, 1)  # unbuffered: a buffered reader would be in the way when the interpreter ends
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
