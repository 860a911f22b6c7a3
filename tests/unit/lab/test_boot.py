"""On a machine of its own: what a node mounts is seen by nobody else."""

from labs import on_own_machine

PROGRAM = """
from pathlib import Path
from dragoman.lab.boot import mount, provide_privilege_separation

sshd = Path("/run/sshd-that-says")
def says(text):
    sshd.write_text(f"#!/bin/sh\\necho '{text}' >&2\\n")
    sshd.chmod(0o755)

says("all is well")
provide_privilege_separation(str(sshd), "config")
assert sshd.exists(), "/run is as it was"

says("Missing privilege separation directory: /run/some/sshd")
provide_privilege_separation(str(sshd), "config")
assert Path("/run/some/sshd").is_dir()
assert not sshd.exists(), "/run is new"
"""


def test_sshd_gets_the_folder_that_it_misses_and_else_nothing_changes():
    on_own_machine(PROGRAM)
