"""Searches with the model itself, or with several at once, on any device that torch has."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice, repeat
from typing import TypeVar

import torch

from dragoman.batches.collate import collate_sources
from dragoman.config import DecodingSettings
from dragoman.decoding.constrained_search import Limits, constrained_search
from dragoman.decoding.constraints import Pattern, word_starts
from dragoman.decoding.engine import Hypothesis, length_limit
from dragoman.decoding.ensemble import attention
from dragoman.decoding.search import beam_search, greedy_search
from dragoman.model.transformer import Transformer
from dragoman.tokenizer import Ids, Tokenizer

MOST_REPLICAS = 4
"""Between two operations Python itself computes, in one thread at a time."""
BATCHES_AHEAD = 2
"""Of each replica, so that none waits while others finish."""

Job = TypeVar("Job")
Result = TypeVar("Result")


@dataclass(frozen=True)
class TorchEngine:
    model: Transformer
    tokenizer: Tokenizer
    device: torch.device
    others: tuple[Transformer, ...] = ()
    """More models of the same vocabulary, which decode together with the first one."""

    @property
    def models(self) -> tuple[Transformer, ...]:
        return (self.model, *self.others)

    @property
    def description(self) -> str:
        together = f", {len(self.models)} models together" if self.others else ""
        return f"torch on {self.device}{together}"

    @property
    def replicas(self) -> int:
        """On a CPU, threads that each search a batch of their own need not wait for each other at
        every operation, of which a step of a search has hundreds."""
        return min(torch.get_num_threads(), MOST_REPLICAS) if self.device.type == "cpu" else 1

    def search(
        self,
        batches: Iterable[Sequence[Ids]],
        settings: DecodingSettings,
        hypotheses: int = 1,
        scored: bool = False,
        prefixes: Iterable[Sequence[Ids]] | None = None,
        attentive: bool = False,
    ) -> Iterator[list[list[Hypothesis]]]:
        """Searches in evaluation mode, also amid training, until all batches are done."""

        def search(job: tuple[Sequence[Ids], Sequence[Ids]]) -> list[list[Hypothesis]]:
            batch, given = job
            found = self._search(batch, given, settings, hypotheses)
            return self._attend(batch, found) if attentive else found

        with self._evaluating():
            jobs = zip(batches, prefixes or repeat(()), strict=False)
            yield from map_in_threads(search, jobs, self.replicas)

    def search_with_terms(
        self,
        batches: Iterable[Sequence[Ids]],
        settings: DecodingSettings,
        hypotheses: int,
        prefixes: Iterable[Sequence[Ids]],
        patterns: Iterable[Sequence[Sequence[Pattern]]],
        attentive: bool = False,
    ) -> Iterator[list[list[Hypothesis]]]:
        """Searches hypotheses that contain the patterns of their sentence.

        `prefixes` and `patterns` are for each sentence of each batch; both may be empty ones.
        """
        starts = word_starts(self.tokenizer)
        for batch, given, terms in zip(batches, prefixes, patterns, strict=True):
            limits = Limits(
                self.tokenizer.start,
                self.tokenizer.end,
                length_limit(
                    batch, [*given, *([*chain.from_iterable(each)] for each in terms)], settings
                ),
                settings.beam,
                settings.length_penalty,
                hypotheses,
            )
            sources = collate_sources(batch, self.tokenizer.padding).to(self.device)
            with self._evaluating():
                found = constrained_search(self.models, sources, limits, terms, starts, given)
                if attentive:
                    found = self._attend(batch, found)
            yield found

    def _search(
        self,
        encoded: Sequence[Ids],
        prefixes: Sequence[Ids],
        settings: DecodingSettings,
        hypotheses: int,
    ) -> list[list[Hypothesis]]:
        batch = collate_sources(encoded, self.tokenizer.padding).to(self.device)
        max_length = length_limit(encoded, prefixes, settings)
        ends = self.tokenizer.start, self.tokenizer.end
        beam, penalty = settings.beam, settings.length_penalty
        if beam == 1:
            greedy = greedy_search(self.models, batch, *ends, max_length, penalty, prefixes)
            return [[hypothesis] for hypothesis in greedy]
        return beam_search(
            self.models, batch, *ends, max_length, beam, penalty, hypotheses, prefixes
        )

    def _attend(
        self, encoded: Sequence[Ids], found: Sequence[Sequence[Hypothesis]]
    ) -> list[list[Hypothesis]]:
        """Returns the hypotheses with their attention, from one pass over all of them."""
        start, padding = self.tokenizer.start, self.tokenizer.padding
        sources = [ids for ids, of_one in zip(encoded, found, strict=True) for _ in of_one]
        targets = [[start, *each.ids[:-1]] for of_one in found for each in of_one]
        longest = max(map(len, targets))
        padded = [[*ids, *[padding] * (longest - len(ids))] for ids in targets]
        batch = collate_sources(sources, padding).to(self.device)
        target_BT = torch.tensor(padded, device=self.device)
        rows = iter(attention(self.models, batch, target_BT).float().cpu().numpy())
        return [
            [
                each._replace(attention=next(rows)[: len(each.ids), : len(ids) - 1])
                for each in of_one
            ]
            for ids, of_one in zip(encoded, found, strict=True)
        ]

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        were_training = [model.training for model in self.models]
        try:
            for model in self.models:
                model.eval()
            yield
        finally:
            for model, was_training in zip(self.models, were_training, strict=True):
                model.train(was_training)


def map_in_threads(
    work: Callable[[Job], Result], jobs: Iterable[Job], replicas: int
) -> Iterator[Result]:
    """Yields the results in order; the threads of torch are divided among `replicas`.

    A job that is alone gets them all.
    """
    remaining = iter(jobs)
    first = list(islice(remaining, 2))
    if replicas == 1 or len(first) < 2:
        yield from map(work, chain(first, remaining))
        return
    threads = torch.get_num_threads()
    pool = ThreadPoolExecutor(
        replicas, "torch-engine", torch.set_num_threads, (max(1, threads // replicas),)
    )
    waiting: deque[Future[Result]] = deque()
    try:
        for job in chain(first, remaining):
            waiting.append(pool.submit(work, job))
            if len(waiting) > BATCHES_AHEAD * replicas:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)  # a thread sets it for libraries of the whole process, too
