"""Sentences of concurrent requests in batches of similar length.

Requests queue their sentences. Whenever a worker is idle it gets the sentence that has waited
longest, with others of nearly its length: nothing waits for a batch to fill up, and the busier the
server, the larger the batches. All of this happens on the event loop; only the search itself runs
in threads.
"""

import asyncio
import heapq
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import NamedTuple, Protocol

from dragoman.documents.record import Candidate
from dragoman.serve.limits import RefusedError, seconds_until_free

BATCH_CHARACTERS = 4096
"""Of a batch, all of its sentences counted as long as the longest: some 1000 tokens."""
SHORTEST = 16
"""Characters that a shorter sentence is counted with: its search takes no less time."""
MOST_COMPARED = 4096
"""Sentences that a batch is chosen from: the event loop stands still meanwhile."""
_SPEED_WEIGHT = 0.2
"""Of the newest batch in the mean speed."""

Candidates = Sequence[Candidate]
Found = Candidates | Exception
"""Of one sentence."""


class Model(Protocol):
    """What translates sentences, in any thread."""

    def translate(self, sentences: Sequence[str], candidates: int) -> Sequence[Candidates]: ...


class Batch(NamedTuple):
    """A batch that has been searched."""

    sentences: int
    characters: int
    seconds: float


@dataclass(eq=False)
class _Job:
    """The sentences of one request."""

    model: Model
    candidates: int
    found: list[Candidates]
    missing: int
    done: asyncio.Future[list[Candidates]]


@dataclass(eq=False)
class _Waiting:
    """A sentence that no worker has taken yet."""

    job: _Job
    number: int
    text: str


class Batcher:
    """A queue of sentences, and the threads that translate them."""

    def __init__(
        self,
        workers: int,
        most_characters: int,
        observe: Callable[[Batch], None] = lambda batch: None,
    ) -> None:
        """`most_characters` bounds what waits. `observe` is called after each batch."""
        self._workers = self._idle = workers
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="dragoman-serve")
        self._waiting: dict[_Waiting, None] = {}  # a set in the order of arrival
        self._most_characters, self._observe = most_characters, observe
        self._is_dispatching = False
        self.waiting_characters = 0
        self._characters_per_s = 0.0

    @property
    def waiting_sentences(self) -> int:
        return len(self._waiting)

    def retry_after_s(self) -> int:
        return seconds_until_free(self.waiting_characters, self._characters_per_s)

    async def translate(
        self, model: Model, sentences: Sequence[str], candidates: int = 1
    ) -> list[Candidates]:
        """Returns the candidates of each sentence; frees its places when it is cancelled."""
        if not sentences:
            return []
        characters = sum(map(len, sentences))
        if self._waiting and self.waiting_characters + characters > self._most_characters:
            raise RefusedError(
                503, "Too much text waits to be translated; try later.", self.retry_after_s()
            )
        done: asyncio.Future[list[Candidates]] = asyncio.get_running_loop().create_future()
        job = _Job(model, candidates, [()] * len(sentences), len(sentences), done)
        queued = [_Waiting(job, number, text) for number, text in enumerate(sentences)]
        self._waiting.update(dict.fromkeys(queued))
        self.waiting_characters += characters
        self._dispatch_soon()
        try:
            return await done
        finally:
            for each in queued:  # it was cancelled, or one of them has failed
                self._take(each)

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _take(self, waiting: _Waiting) -> None:
        if waiting in self._waiting:
            del self._waiting[waiting]
            self.waiting_characters -= len(waiting.text)

    def _dispatch_soon(self) -> None:
        """Lets the requests that have arrived together join one batch."""
        if not self._is_dispatching:
            self._is_dispatching = True
            asyncio.get_running_loop().call_soon(self._dispatch)

    def _dispatch(self) -> None:
        self._is_dispatching = False
        # A busy worker gets its part later: two large batches take less time than a very large one
        # beside many small ones.
        share = -(-len(self._waiting) // self._workers)
        while self._idle and self._waiting:
            batch = choose_batch(self._waiting, share)
            for each in batch:
                self._take(each)
            self._idle -= 1
            searched = asyncio.get_running_loop().run_in_executor(
                self._threads,
                _search,
                batch[0].job.model,
                [each.text for each in batch],
                batch[0].job.candidates,
            )
            searched.add_done_callback(partial(self._finish, batch, time.monotonic()))

    def _finish(
        self, batch: list[_Waiting], begun: float, searched: asyncio.Future[Sequence[Found]]
    ) -> None:
        self._idle += 1
        self._dispatch_soon()
        for each, candidates in zip(batch, searched.result(), strict=True):
            job = each.job
            if job.done.done():  # its client is gone, or another of its sentences has failed
                continue
            if isinstance(candidates, Exception):
                job.done.set_exception(candidates)
                continue
            job.found[each.number] = candidates
            job.missing -= 1
            if not job.missing:
                job.done.set_result(job.found)
        seconds = time.monotonic() - begun
        characters = sum(len(each.text) for each in batch)
        speed = characters / max(seconds, 1e-6)
        before = self._characters_per_s or speed
        self._characters_per_s = before + _SPEED_WEIGHT * (speed - before)
        self._observe(Batch(len(batch), characters, seconds))


def choose_batch(waiting: Iterable[_Waiting], most: int) -> list[_Waiting]:
    """Returns the first that waits and at most `most` with it, those of nearest length.

    A batch is for one model and one number of candidates, and within `BATCH_CHARACTERS`.
    """
    waiting = list(islice(waiting, MOST_COMPARED))
    first = waiting[0]
    length = len(first.text)
    alike = (
        each
        for each in waiting
        if each.job.model is first.job.model and each.job.candidates == first.job.candidates
    )
    batch: list[_Waiting] = []
    longest = SHORTEST
    for each in heapq.nsmallest(most, alike, key=lambda each: abs(len(each.text) - length)):
        longest = max(longest, len(each.text))
        if batch and longest * (len(batch) + 1) > BATCH_CHARACTERS:
            break
        batch.append(each)
    return batch


def _search(model: Model, sentences: Sequence[str], candidates: int) -> Sequence[Found]:
    """Translates a batch; after an error each sentence alone, so that it fails nobody else's."""
    try:
        return model.translate(sentences, candidates)
    except Exception as error:
        if len(sentences) == 1:
            return [error]
    return [found for each in sentences for found in _search(model, [each], candidates)]
