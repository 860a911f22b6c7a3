"""A notebook without a browser: cells come in as JSON, a Jupyter kernel runs them, replies go out.

A program of its own, since the kernel's client leaves event loops open.
"""

import json
import subprocess
import sys
import threading
from pathlib import Path

from jupyter_client.manager import start_new_kernel
from processes import wait_for_step


def run_cells(*cells: dict[str, object]) -> list[dict[str, object]]:
    """Runs cells of {"code", "interrupt_at": [run, step]} in order, with one kernel.

    Returns of each its status, the name of its error, what it printed and what it showed.
    """
    done = subprocess.run(
        [sys.executable, __file__],
        input=json.dumps(cells),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def main() -> None:
    manager, client = start_new_kernel(kernel_name="python3")
    replies = []
    for cell in json.load(sys.stdin):

        def interrupt(run: str = "", step: int = 0) -> None:
            wait_for_step(Path(run), step)
            manager.interrupt_kernel()

        if "interrupt_at" in cell:
            threading.Thread(target=interrupt, args=cell["interrupt_at"]).start()
        messages: list[dict] = []
        reply = client.execute_interactive(cell["code"], timeout=100, output_hook=messages.append)[
            "content"
        ]
        by_kind = {"stream": [], "execute_result": []}
        for message in messages:
            by_kind.get(message["msg_type"], []).append(message["content"])
        replies.append(
            {
                "status": reply["status"],
                "error": reply.get("ename", ""),
                "printed": "".join(content["text"] for content in by_kind["stream"]),
                "shown": [content["data"] for content in by_kind["execute_result"]],
            }
        )
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    print(json.dumps(replies))


if __name__ == "__main__":
    main()
