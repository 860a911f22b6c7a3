def rehearse() -> None:
    """Measure as one worker what steps and sums take; agents start it, nobody else."""
    import json
    import os
    import sys

    from dragoman.check.rehearsal import ORDER
    from dragoman.cluster.ssh import send_message
    from dragoman.distributed.launchers import place
    from dragoman.errors import UserError
    from dragoman.training.rehearsal import Order
    from dragoman.training.rehearsal import rehearse as rehearse_as_worker

    if ORDER not in os.environ:
        raise UserError("workers of `dragoman check` and `dragoman train` run this by themselves")
    order = Order(**json.loads(os.environ[ORDER]))
    rank = place().rank
    rehearse_as_worker(order, lambda message: send_message(sys.stdout, message | {"rank": rank}))
