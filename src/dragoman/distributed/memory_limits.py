"""How much memory processes of this machine may still take. Without torch."""

from collections.abc import Iterator
from pathlib import Path

import psutil

# Of version 1 and 2 of control groups: limit, use, and the part of it that the kernel gives back.
_FILES = {
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    2: ("memory.max", "memory.current", "inactive_file"),
}


def free_bytes(
    membership: Path = Path("/proc/self/cgroup"), mounted: Path = Path("/sys/fs/cgroup")
) -> int:
    """Returns what is available on the machine, or less where a control group allows less."""
    available: int = psutil.virtual_memory().available
    return max(0, min([available, *_left_in_groups(membership, mounted)]))


def _left_in_groups(membership: Path, mounted: Path) -> Iterator[int]:
    """Yields what this process's control groups, and those around them, may still take."""
    try:
        lines = membership.read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            version, top = 2, mounted
        elif "memory" in controllers.split(","):
            version, top = 1, mounted / "memory"
        else:
            continue
        # In a container the path may be that of the host; then the mounted folder is the group.
        group = top / path.lstrip("/")
        for folder in (group, *group.parents):
            left = _left(folder, version)
            if left is not None:
                yield left
            if folder == top:
                break


def _left(group: Path, version: int) -> int | None:
    """Returns None where the group has no limit."""
    limit, use, returnable = _FILES[version]
    try:
        found = int((group / limit).read_text()) - int((group / use).read_text())
        for line in (group / "memory.stat").read_text().splitlines():
            name, _, amount = line.partition(" ")
            if name == returnable:
                found += int(amount)
    except (OSError, ValueError):  # a limit of "max" is none
        return None
    return found
