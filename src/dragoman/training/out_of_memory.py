"""When a rank runs out of memory: all repeat the step, each micro-batch in smaller pieces.

The pieces give the same sums as the whole, so no pair is lost and the run goes on as it would
have, but for dropout, which is drawn for each piece.
"""

from dragoman.batches.loader import StepBatches
from dragoman.distributed.consensus import raise_on_all_ranks
from dragoman.distributed.group import Group
from dragoman.errors import NamedRank, OutOfMemoryError
from dragoman.telemetry.events import Incident
from dragoman.training.recorder import Recorder

_NAMES = {2: "halves", 4: "quarters", 8: "eighths"}


def smaller_pieces(
    group: Group, recorder: Recorder, work: StepBatches, pieces: int, ran_out: bool
) -> int:
    """Returns into how many pieces to cut each micro-batch now, after `pieces` were too few.

    Stops all ranks where one has run out with single pairs. Collective: every rank must call.
    """
    most_pairs = max(len(batch.source_BS) for batch in work.batches)
    answers = group.gather([group.host, most_pairs > pieces] if ran_out else None)
    short = [
        (NamedRank(rank, answer[0]), answer[1]) for rank, answer in enumerate(answers) if answer
    ]
    names = ", ".join(str(rank) for rank, _ in short)
    if not all(can_be_cut for _, can_be_cut in short):
        raise_on_all_ranks(
            group,
            OutOfMemoryError(
                f"step {work.step:,}: {names} ran out of memory with a single pair at a time; "
                "start a new run with a smaller model or a lower data.max_length, or take a "
                "device with more memory",
                culprit=short[0][0] if len(short) == 1 else None,
            ),
        )
    pieces *= 2
    in_pieces = _NAMES.get(pieces, f"{pieces} pieces a micro-batch")
    message = f"{names} ran out of memory; the step is repeated in {in_pieces}"
    ranks = tuple(rank.rank for rank, _ in short)
    recorder.record_incident(
        Incident(work.step, "out-of-memory", message, ranks=ranks, pieces=pieces)
    )
    return pieces
