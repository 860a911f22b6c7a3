import asyncio

import pytest
from unit.serve.served import fake_model

from dragoman.serve.batching import BATCH_CHARACTERS, SHORTEST, Batcher
from dragoman.serve.limits import RefusedError
from dragoman.serve.models import Pair

PAIR = Pair("en", "de")


def run(scenario, workers=1, most_characters=10_000, observe=lambda batch: None):
    """Plays a scenario with a batcher and a model whose first batch waits until it is released."""

    async def play():
        batcher = Batcher(workers, most_characters, observe)
        model = fake_model(PAIR)
        try:
            await scenario(batcher, model)
        finally:
            model.translator.released.set()
            batcher.close()

    asyncio.run(play())


async def submitted(batcher, model, *sentences, candidates=1):
    """A request that has reached the queue."""
    task = asyncio.ensure_future(batcher.translate(model, list(sentences), candidates))
    await asyncio.sleep(0)
    return task


async def busy(batcher, model):
    """A request that keeps the only worker busy."""
    model.translator.hold()
    task = await submitted(batcher, model, "busy")
    await asyncio.to_thread(model.translator.entered.wait, 30)
    return task


def texts(found):
    return [candidates[0].text for candidates in found]


def test_a_request_alone_is_translated_at_once_and_in_order():
    async def scenario(batcher, model):
        assert texts(await batcher.translate(model, ["a", "bb", "c"])) == ["de:a", "de:bb", "de:c"]
        assert await batcher.translate(model, []) == []

    run(scenario)


def test_what_arrives_while_the_worker_is_busy_becomes_one_batch():
    async def scenario(batcher, model):
        first = await busy(batcher, model)
        others = [await submitted(batcher, model, f"text {number}") for number in range(5)]
        assert batcher.waiting_sentences == 5
        model.translator.released.set()
        await first
        assert [texts(await other) for other in others] == [[f"de:text {n}"] for n in range(5)]
        assert [len(batch) for batch in model.translator.batches] == [1, 5]
        assert batcher.waiting_characters == 0

    run(scenario)


def test_idle_workers_share_what_waits():
    async def scenario(batcher, model):
        await batcher.translate(model, [f"text {number}" for number in range(8)])
        assert [len(batch) for batch in model.translator.batches] == [4, 4]

    run(scenario, workers=2)


def test_an_idle_worker_leaves_its_part_to_a_busy_one():
    async def scenario(batcher, model):
        first = await busy(batcher, model)
        tasks = [await submitted(batcher, model, *(f"text {number}" for number in range(8)))]
        await asyncio.sleep(0.05)
        model.translator.released.set()
        await asyncio.gather(first, *tasks)
        assert [len(batch) for batch in model.translator.batches][:2] == [1, 4]

    run(scenario, workers=2)


def test_a_batch_has_the_oldest_sentence_and_those_of_nearest_length():
    async def scenario(batcher, model):
        first = await busy(batcher, model)
        long, short = "l" * (BATCH_CHARACTERS // 3), "s" * 40
        tasks = [
            await submitted(batcher, model, text)
            for text in (short, long, short + "x", long + "y", short + "z")
        ]
        model.translator.released.set()
        await asyncio.gather(first, *tasks)
        lengths = [sorted(map(len, batch)) for batch in model.translator.batches]
        assert lengths == [[4], [40, 41, 41], [len(long), len(long) + 1]]

    run(scenario)


def test_many_short_sentences_are_no_endless_batch():
    async def scenario(batcher, model):
        await batcher.translate(model, ["x"] * 10_000)
        most = max(map(len, model.translator.batches))
        assert most == BATCH_CHARACTERS // SHORTEST
        assert sum(map(len, model.translator.batches)) == 10_000

    run(scenario)


def test_models_and_numbers_of_candidates_are_never_mixed():
    async def scenario(batcher, model):
        other = fake_model(Pair("en", "fr"))
        first = await busy(batcher, model)
        tasks = [
            await submitted(batcher, model, "one"),
            await submitted(batcher, other, "two"),
            await submitted(batcher, model, "three", candidates=2),
            await submitted(batcher, model, "four"),
        ]
        model.translator.released.set()
        await first
        found = [await task for task in tasks]
        assert [len(candidates) for (candidates,) in found] == [1, 1, 2, 1]
        assert texts(found[1]) == ["fr:two"]
        assert model.translator.batches == [["busy"], ["one", "four"], ["three"]]

    run(scenario)


def test_a_client_that_disappears_frees_its_place():
    async def scenario(batcher, model):
        first = await busy(batcher, model)
        gone = await submitted(batcher, model, "gone", "away")
        kept = await submitted(batcher, model, "kept")
        gone.cancel()
        await asyncio.sleep(0)
        assert batcher.waiting_sentences == 1
        assert batcher.waiting_characters == 4
        first.cancel()  # one that is being searched is not waited for either
        model.translator.released.set()
        assert texts(await kept) == ["de:kept"]
        assert model.translator.batches == [["busy"], ["kept"]]

    run(scenario)


def test_a_full_queue_refuses_with_the_time_to_return():
    async def scenario(batcher, model):
        first = await busy(batcher, model)
        waiting = await submitted(batcher, model, "x" * 15)  # more than may wait, but first
        with pytest.raises(RefusedError) as refused:
            await batcher.translate(model, ["y"])
        assert refused.value.status == 503
        assert refused.value.retry_after_s >= 1
        model.translator.released.set()
        await asyncio.gather(first, waiting)
        assert texts(await batcher.translate(model, ["y"])) == ["de:y"]

    run(scenario, most_characters=10)


def test_a_sentence_that_fails_fails_alone():
    async def scenario(batcher, model):
        first = await busy(batcher, model)
        poisoned = await submitted(batcher, model, "good", "poison")
        others = [await submitted(batcher, model, text) for text in ("one", "two")]
        model.translator.released.set()
        await first
        assert [texts(await other) for other in others] == [["de:one"], ["de:two"]]
        with pytest.raises(RuntimeError):
            await poisoned
        assert batcher.waiting_characters == 0
        assert texts(await batcher.translate(model, ["next"])) == ["de:next"]

    run(scenario)


def test_the_rest_of_a_request_that_has_failed_leaves_the_queue():
    async def scenario(batcher, model):
        first = await busy(batcher, model)
        rest = [letter * BATCH_CHARACTERS for letter in "abcdef"]
        poisoned = await submitted(batcher, model, "poison", *rest)
        model.translator.released.set()
        await first
        with pytest.raises(RuntimeError):
            await poisoned
        assert (batcher.waiting_sentences, batcher.waiting_characters) == (0, 0)

    run(scenario, most_characters=10 * BATCH_CHARACTERS)


def test_every_batch_is_observed():
    seen = []

    async def scenario(batcher, model):
        await batcher.translate(model, ["ab", "cd"])

    run(scenario, observe=seen.append)
    assert [(batch.sentences, batch.characters) for batch in seen] == [(2, 4)]
    assert seen[0].seconds >= 0
