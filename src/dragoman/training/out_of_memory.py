"""When memory runs out on any rank: all repeat the step, each micro-batch in smaller pieces.

The pieces give the same sums as the whole, so no pair is lost and the run goes on as it would
have, but for dropout, which is drawn for each piece.
"""

from dragoman.batches.loader import StepBatches
from dragoman.distributed.consensus import raise_on_all_ranks
from dragoman.errors import NamedRank, OutOfMemoryError
from dragoman.telemetry.events import Incident
from dragoman.training.setup import Training

_NAMES = {2: "halves", 4: "quarters", 8: "eighths"}


def smaller_pieces(training: Training, work: StepBatches, pieces: int, ran_out: bool) -> int:
    """Make ready to repeat a step; the number of pieces to take now.

    All stop where a rank has run out with single pairs. Collective: every rank must call.
    """
    group = training.group
    most_pairs = max(len(batch.source_BS) for batch in work.batches)
    told = group.gather([group.host, most_pairs > pieces] if ran_out else None)
    short = [(rank, *content) for rank, content in enumerate(told) if content]
    culprits = [NamedRank(rank, host) for rank, host, _ in short]
    who = ", ".join(map(str, culprits))
    if not all(can_be_cut for _, _, can_be_cut in short):
        raise_on_all_ranks(
            group,
            OutOfMemoryError(
                f"step {work.step:,}: {who} ran out of memory with a single pair at a time; "
                "start a new run with a smaller model or a lower data.max_length, or take a "
                "device with more memory",
                culprit=culprits[0] if len(culprits) == 1 else None,
            ),
        )
    pieces *= 2
    in_pieces = _NAMES.get(pieces, f"{pieces} pieces a micro-batch")
    what = f"{who} ran out of memory; the step is repeated in {in_pieces}"
    ranks = tuple(culprit.rank for culprit in culprits)
    training.report_incident(Incident(work.step, "out-of-memory", what, ranks=ranks, pieces=pieces))
    training.updater.sync.renew()
    return pieces
