"""How big is a checkpoint? The verdict is its size: "731 MB"."""

from dataclasses import replace

from dragoman.checkpoints.names import MODEL
from dragoman.diagnosis.findings import Figure, Finding, unknown
from dragoman.diagnosis.phrasing import count, listed, megabytes
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.model.size import Size


def answer(run: RunFacts) -> Finding:
    size = run.record.model_size
    if not run.record.checkpoints:
        return _forecast(size, is_vocabulary_known=run.record.passport is not None)
    newest = run.record.checkpoints[-1]
    newest_bytes = sum(newest.file_bytes.values())
    every = [sum(folder.file_bytes.values()) for folder in run.record.checkpoints]
    kept = (
        f"{count(len(every), 'checkpoint')} in {megabytes(sum(every))} are kept here"
        if len(every) > 1
        else "It is the only one that is kept here"
    )
    kept_plain = f"and {len(every)} are kept" if len(every) > 1 else "and it is the only one"
    weight_bytes = newest.file_bytes.get(MODEL, size.weight_bytes)
    return Finding(
        megabytes(newest_bytes),
        "high",
        f"{megabytes(newest_bytes)}: {_sizes(newest.file_bytes)}. {kept}. "
        f"{_export_words(size, weight_bytes)}",
        [
            Figure("newest checkpoint", newest_bytes, "bytes", note=newest.name),
            Figure("checkpoints kept", len(every), ""),
            Figure("all of them", sum(every), "bytes", note="in this folder; hosts have their own"),
            *_export(size, weight_bytes),
            *_saving(run),
        ],
        plain=f"One saved model takes {megabytes(newest_bytes)} of disk, {kept_plain}.",
    )


def _forecast(size: Size, is_vocabulary_known: bool) -> Finding:
    total, others = size.checkpoint_bytes, size.checkpoint_bytes - size.weight_bytes
    guess = "" if is_vocabulary_known else ", if the tokenizer gets all the pieces it is asked for"
    found = unknown(
        f"there is no checkpoint yet. By computation one will take {megabytes(total)}: "
        f"{megabytes(size.weight_bytes)} of weights and {megabytes(others)} of the optimizer's "
        f"state for {size.parameters:,} parameters, and little more for the "
        f"tokenizer{guess}. {_export_words(size, size.weight_bytes).removesuffix('.')}",
        [
            Figure("checkpoint, forecast", total, "bytes", note="without the tokenizer"),
            *_export(size, size.weight_bytes),
        ],
    )
    plain = f"No model has been saved yet; one will take about {megabytes(total)}."
    return replace(found, plain=plain)


def _sizes(file_bytes: dict[str, int]) -> str:
    """Returns the two largest files and the rest together."""
    ordered = sorted(file_bytes.items(), key=lambda file: (-file[1], file[0]))
    named = [f"{megabytes(size)} {name}" for name, size in ordered[:2]]
    rest = sum(size for _, size in ordered[2:])
    return listed([*named, f"{megabytes(rest)} of the other files"] if len(ordered) > 2 else named)


def _export(size: Size, weight_bytes: int) -> list[Figure]:
    return [
        Figure("parameters", size.parameters, ""),
        Figure("weights alone, fp32", weight_bytes, "bytes"),
        Figure("weights alone, fp16", 2 * size.parameters, "bytes", note="by computation"),
        Figure(
            "weights alone, int8", size.parameters, "bytes", note="by computation, scales apart"
        ),
    ]


def _export_words(size: Size, weight_bytes: int) -> str:
    return (
        f"For translating alone the weights are enough: {megabytes(weight_bytes)}, "
        f"{megabytes(2 * size.parameters)} in fp16 or {megabytes(size.parameters)} in int8."
    )


def _saving(run: RunFacts) -> list[Figure]:
    seconds = [save.seconds for attempt in run.attempts for save in attempt.saves]
    if not seconds:
        return []
    note = f"mean of {count(len(seconds), 'save')}, beside training"
    return [Figure("time to write one", sum(seconds) / len(seconds), "s", note=note)]
