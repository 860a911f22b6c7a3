"""Plays a tournament: sessions and addresses come in, what each pair exchanges goes out."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from dragoman.check.bandwidth import CONNECT_S, DEADLINE_S, SEVERAL_FLOWS
from dragoman.check.links import Failure
from dragoman.check.ports import SLOW, rates_of, slow_pairs
from dragoman.check.result import Finding, Transfer
from dragoman.check.session import Session, in_parallel
from dragoman.check.tournament import Direction, Round
from dragoman.diagnosis.phrasing import bit_rate
from dragoman.errors import DragomanError, RunError

GRACE_S = 2.0
"""For messages between the hosts and this machine."""
MOST_REPEATED = 6

Tell = Callable[[str], None]


class Shared(NamedTuple):
    """A way that carries much more when no other pair sends."""

    direction: Direction
    together_bytes_per_s: float
    alone_bytes_per_s: float


class Played(NamedTuple):
    transfers: tuple[Transfer, ...]
    failures: tuple[Failure, ...]
    shared: tuple[Shared, ...]


def play(
    sessions: Mapping[str, Session],
    addresses: Mapping[str, str],
    rounds: Sequence[Round],
    several: int = SEVERAL_FLOWS,
    tell: Tell = lambda text: None,
    is_stopping: Callable[[], bool] = lambda: False,
) -> Played:
    """Measures all directions of each round at once, and again, alone, those that are slower than
    their ports. Whatever has hung or ended is left out of what follows."""
    results: dict[Direction, Transfer | Failure] = {}

    def measure(direction: Direction) -> Transfer | Failure:
        return _measured(sessions, addresses, direction, several)

    for number, pairs in enumerate(rounds, 1):
        if is_stopping():
            raise RunError("the check was stopped")
        playing = [d for d in pairs if not _is_lost(sessions, d)]
        tell(f"bandwidth: round {number} of {len(rounds)}")
        results |= zip(playing, in_parallel(measure, playing, sessions), strict=True)
    shared = []
    for direction in _suspicious(results)[:MOST_REPEATED]:
        if is_stopping() or _is_lost(sessions, direction):
            continue
        tell(f"bandwidth: {direction.sender} to {direction.receiver} again, alone")
        before, again = results[direction], measure(direction)
        if isinstance(again, Transfer) and isinstance(before, Transfer):
            together, alone = _best(before), _best(again)
            results[direction] = again if alone > together else before
            if together < SLOW * alone:
                shared.append(Shared(direction, together, alone))
    return Played(
        tuple(r for r in results.values() if isinstance(r, Transfer)),
        tuple(
            r for d, r in results.items() if isinstance(r, Failure) and not _is_lost(sessions, d)
        ),
        tuple(shared),
    )


def shared_findings(shared: Sequence[Shared], had_company: bool) -> list[Finding]:
    """Returns the ways whose speed depends on who else sends; without company it was a passing
    disturbance, which is not worth a line."""
    if not shared or not had_company:
        return []
    worst = min(shared, key=lambda s: s.together_bytes_per_s / s.alone_bytes_per_s)
    hosts = sorted({name for s in shared for name in s.direction})
    return [
        Finding(
            subject="path",
            verdict="warning",
            sentence=f"From {worst.direction.sender} to {worst.direction.receiver} "
            f"{bit_rate(worst.alone_bytes_per_s)} pass alone, and "
            f"{bit_rate(worst.together_bytes_per_s)} while other pairs send too: they share an "
            "uplink, a machine or its processors; in training all hosts send at once.",
            hosts=tuple(hosts),
        )
    ]


def _suspicious(results: Mapping[Direction, Transfer | Failure]) -> list[Direction]:
    """Returns ways that are slower than both ends have shown to be, or with two hosts than the way
    back, the slowest first."""
    rates = rates_of([r for r in results.values() if isinstance(r, Transfer)])
    slow = set(slow_pairs(rates))
    if len(rates) == 2:
        slow = {pair for pair, rate in rates.items() if rate < SLOW * max(rates.values())}
    return sorted((Direction(*pair) for pair in slow), key=lambda pair: rates[pair])


def _best(transfer: Transfer) -> float:
    return max(transfer.one_flow_bytes_per_s, transfer.several_flows_bytes_per_s)


def _is_lost(sessions: Mapping[str, Session], direction: Direction) -> bool:
    return any(sessions[name].loss for name in direction)


def _measured(
    sessions: Mapping[str, Session],
    addresses: Mapping[str, str],
    direction: Direction,
    several: int,
) -> Transfer | Failure:
    sender, receiver = sessions[direction.sender], sessions[direction.receiver]
    target, secret = addresses[receiver.name], secrets.token_hex(32)
    listening = receiver.order("listen", address=target, secret=secret, several=several)
    try:
        port = receiver.answer(listening, CONNECT_S)["port"]
    except DragomanError as error:
        return Failure(sender.name, receiver.name, str(error), may_listen=False)
    try:
        try:
            trip = sender.ask(
                "send",
                CONNECT_S + DEADLINE_S + GRACE_S,
                own=addresses[sender.name],
                address=target,
                port=port,
                secret=secret,
                several=several,
            )
        except DragomanError:
            # The receiver is not needed any more, but busy until it gives up; it may be the cause.
            receiver.answer(listening, CONNECT_S + DEADLINE_S + GRACE_S)
            raise
        received = receiver.answer(listening, GRACE_S)
    except DragomanError as error:
        return Failure(sender.name, receiver.name, str(error))
    return Transfer(
        sender=sender.name,
        receiver=receiver.name,
        one_flow_bytes_per_s=received["one_flow_bytes_per_s"],
        several_flows_bytes_per_s=received["several_flows_bytes_per_s"],
        round_trip_s=trip["round_trip_s"],
    )
