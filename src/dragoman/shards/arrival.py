"""Training tokens that arrive while they are trained on, and leave when there is no more room.

Blocks of files, the order in which they are used and a limit come in; files that are whole and
there in time go out. A file that has its name is whole, so that all ranks of a host see what has
arrived, and only one of them fetches and removes.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from dragoman.errors import UserError, storage_errors
from dragoman.shards.files import ShardFile
from dragoman.shards.remote import fetch_file
from dragoman.storage import Store

CLOSING_S = 5.0

Upcoming = Callable[[int], Iterator[tuple[int, int]]]
"""From a step, (block, its first step) in the order of their use, without end."""


class Arrival:
    """Knows which blocks are here; with a store, it also brings and removes their files.

    Of the blocks that are needed soonest, the first that is missing is fetched. Where there is no
    room for it, the block that is needed last is removed, which in the middle of an epoch is one
    that has been used. What is needed sooner than the missing one is never removed, and so neither
    the block in use nor the next.
    """

    def __init__(
        self,
        folder: Path,
        blocks: Sequence[Sequence[ShardFile]],
        vocabulary: int,
        store: Store | None,
        max_bytes: int = 0,
    ) -> None:
        """`store`: None, where another rank of this host fetches. `max_bytes`: of all files of
        blocks together, at least two blocks; 0: any number, and nothing is removed."""
        refuse_small_limit(blocks, max_bytes)
        self._folder, self._blocks, self._vocabulary = folder, blocks, vocabulary
        self._store = store
        self._max_bytes = max_bytes
        self._upcoming: Upcoming = lambda _: iter(())
        self._last_step: int | None = None
        self._step = 0
        self._failure: Exception | None = None
        self.on_failure: Callable[[str], None] = lambda _: None
        """Is called where a file cannot be fetched, possibly long before it is needed."""
        self._changed, self._is_closed = threading.Event(), False
        self._thread: threading.Thread | None = None

    def follow(self, upcoming: Upcoming, last_step: int | None) -> None:
        """Notes the order of use; nothing is fetched for steps after the last."""
        self._upcoming, self._last_step = upcoming, last_step

    def fetch_now(self, block: int) -> None:
        """Fetches one block before everything else, and waits for it."""
        if not self._store:
            return
        for file in self._missing(block):
            if self._is_closed:
                return
            others = [other for other in range(len(self._blocks)) if other != block]
            self._make_room(file.bytes, others)
            self._fetch(file)

    def begin(self, step: int) -> None:
        """Steps are taken from this one on, also where it is an earlier one than before."""
        self._step = step
        if not self._store or self._failure:
            return
        self._changed.set()
        if not self._thread:
            self._thread = threading.Thread(target=self._bring, name="arrival", daemon=True)
            self._thread.start()

    def passed(self, step: int) -> None:
        """All ranks have loaded this step, and hold no file of a block before it any more."""
        if step > self._step:
            self._step = step
            self._changed.set()

    def has(self, block: int) -> bool:
        """Returns whether all files of a block are here."""
        return not any(self._missing(block))

    def missing_of(self, block: int) -> str:
        """Returns what of a block is not here, in words."""
        size = sum(file.bytes for file in self._missing(block))
        where = f" from {self._store.address}" if self._store else ""
        return f"{size / 1e6:,.1f} MB of training tokens{where}"

    def raise_failure(self) -> None:
        """Raises why no more files will come, if that is so."""
        if self._failure:
            raise self._failure

    def is_here(self, block: int) -> bool:
        """Returns whether all files of a block are here; raises where they will not come."""
        if self.has(block):
            return True
        self.raise_failure()
        return False

    def close(self) -> None:
        """Ends fetching. What is on its way may be left behind, and is removed by the next start:
        a store that does not answer must not hold up the end of a run."""
        self._is_closed = True
        self._changed.set()
        if self._thread:
            self._thread.join(CLOSING_S)

    def _bring(self) -> None:
        try:
            while not self._is_closed:
                self._changed.clear()  # first, so that no change is missed
                if not self._bring_next():
                    self._changed.wait()
        except Exception as error:  # raised by whoever waits for a file
            self._failure = error
            self.on_failure(str(error))

    def _bring_next(self) -> bool:
        """Fetches the file that is needed soonest; returns whether there was one, and room."""
        order = self._order()
        self._make_room(0, self._later(order, 1))  # the limit may have been higher before
        for place, block in enumerate(order):
            for file in self._missing(block):
                if not self._make_room(file.bytes, self._later(order, place)):
                    return False
                self._fetch(file)
                return True
        return False

    def _order(self) -> list[int]:
        """Returns the blocks by their next use; those that are not used again are left out."""
        order: dict[int, None] = {}
        for block, first_step in self._upcoming(self._step):
            if self._last_step is not None and order and first_step > self._last_step:
                break
            order[block] = None
            if len(order) == len(self._blocks):
                break
        return list(order)

    def _later(self, order: list[int], place: int) -> list[int]:
        """Returns the blocks that are needed after this place of the order, the last ones first."""
        unused = [block for block in range(len(self._blocks)) if block not in order]
        return [*unused, *reversed(order[place + 1 :])]

    def _make_room(self, needed_bytes: int, removable: Sequence[int]) -> bool:
        """Removes files of these blocks, from the first, until there is room; returns whether."""
        if not self._max_bytes:
            return True
        here = [
            (block, other)
            for block, files in enumerate(self._blocks)
            for other in files
            if self._path(other).exists()
        ]
        used = sum(other.bytes for _, other in here)
        places = {block: place for place, block in enumerate(removable)}
        candidates = sorted(
            ((block, other) for block, other in here if block in places),
            key=lambda each: places[each[0]],
        )
        victims = []
        for _, other in candidates:
            if used + needed_bytes <= self._max_bytes:
                break
            victims.append(other)
            used -= other.bytes
        if used + needed_bytes > self._max_bytes:
            return False  # and nothing is removed before it helps
        with storage_errors(self._folder, "removing training tokens that were used"):
            for other in victims:
                self._path(other).unlink(missing_ok=True)
        return True

    def _fetch(self, file: ShardFile) -> None:
        assert self._store
        fetch_file(self._store, self._folder, file, self._vocabulary)

    def _missing(self, block: int) -> Iterator[ShardFile]:
        return (file for file in self._blocks[block] if not self._path(file).exists())

    def _path(self, file: ShardFile) -> Path:
        return self._folder / file.name


def refuse_small_limit(blocks: Sequence[Sequence[ShardFile]], max_bytes: int) -> None:
    """Refuses a limit under which the next block would have to wait for the end of this one."""
    sizes = sorted(sum(file.bytes for file in files) for files in blocks)
    least = sum(sizes[-2:])
    if not max_bytes or max_bytes >= least:
        return
    if len(sizes) == 1:
        raise UserError(
            f"data.prepared_max_bytes = {max_bytes} is less than the {least} bytes of the training "
            "tokens, which are one block; raise it, or begin a run with smaller blocks: "
            "data.block_pairs"
        )
    raise UserError(
        f"data.prepared_max_bytes = {max_bytes} has no room for two blocks of training tokens; "
        f"raise it to {least} or more, or begin a run with smaller blocks: data.block_pairs"
    )
