"""What one step takes with given settings: computing, sending, and what of it is exposed. Pure.

Everything is a number here; intervals come from forecasting the fastest and the slowest case.
"""

from collections.abc import Sequence
from typing import NamedTuple

from dragoman.config import ModelSettings, SyncSettings
from dragoman.distributed.fragments import FragmentSchedule
from dragoman.distributed.ring_bytes import bytes_per_step, mean_bytes_of_mode
from dragoman.distributed.wire_bytes import WireKind, is_gathered, sent_bytes
from dragoman.forecast.collectives import (
    Network,
    all_gather_s,
    all_reduce_s,
    all_to_all_s,
    broadcast_s,
    reduce_scatter_s,
)
from dragoman.forecast.layout import FP32_BYTES, Bucket, buckets_of, fragments_of
from dragoman.forecast.overlap import Message, Timeline
from dragoman.forecast.processing import Processor, average_s, outer_step_s, sum_in_bf16_s

MOST_WINDOWS = 12
"""Simulated until two windows take the same: what departs late in one arrives in the next."""


class Work(NamedTuple):
    """The computing of a step on the slowest worker, while nothing travels, in seconds."""

    forward_s: float
    """Of all micro-batches."""
    backward_s: float
    """Of all micro-batches."""
    last_backward_s: float
    """Of the last micro-batch, beside which gradients travel."""
    update_s: float
    rest_s: float = 0.0
    """Waiting for data, and what else a step does."""

    @property
    def seconds(self) -> float:
        return self.forward_s + self.backward_s + self.update_s + self.rest_s

    def times(self, factor: float) -> "Work":
        return Work(*(factor * part for part in self))


class Model(NamedTuple):
    """What the bytes of a step depend on."""

    settings: ModelSettings
    vocabulary: int
    parameters: int
    is_sharded: bool = False
    """Each worker holds a part of weights, gradients and optimizer."""
    passes: int = 1
    """Micro-batches of a worker; with sharded states, each gathers all weights twice."""


class StepForecast(NamedTuple):
    """Of a step, in the mean over a window, in seconds."""

    settings: SyncSettings
    bytes_per_step: float
    """Sent by a host, without headers."""
    compute_s: float
    """Forward, backward, update and whatever a mode computes in addition."""
    sending_s: float
    """While messages are on their way or being coded, computing beside it or not."""
    exposed_s: float
    """Of sending: what no computing hides."""
    slowed_s: float
    """By which computing is slower since communication uses the same cores."""
    message_s: float
    """Of the small message in which all workers agree."""

    @property
    def step_s(self) -> float:
        return self.compute_s + self.exposed_s + self.slowed_s + self.message_s

    @property
    def communication_s(self) -> float:
        """Returns the seconds by which a step is longer than its computing."""
        return self.step_s - self.compute_s


def forecast_step(
    settings: SyncSettings, model: Model, work: Work, network: Network, processor: Processor
) -> StepForecast:
    """Returns bytes and seconds of a step; `settings.mode` must not be auto."""
    if network.ranks == 1:
        return StepForecast(settings, 0.0, work.seconds, 0.0, 0.0, 0.0, 0.0)
    message_s = all_reduce_s(0.0, network)
    if model.is_sharded:
        return _sharded(settings, model, work, network)._replace(message_s=message_s)
    sent = mean_bytes_of_mode(
        settings, model.parameters, network.ranks, network.ranks_on_host, network.hosts
    )
    # On one host, all of its workers are one island, which sums gradients in every step.
    is_exact = not settings.is_local or (settings.group == "host" and network.hosts == 1)
    found = _with_gradients if is_exact else _with_weights
    step = found(settings, model, work, network, processor)
    if not is_exact:
        # Weights are on their way while the workers agree; gradients have arrived by then.
        busy = min(1.0, step.sending_s / step.step_s)
        message_s += busy * all_reduce_s(0.0, network._replace(latency_s=network.queue_s))
    return step._replace(bytes_per_step=sent, message_s=message_s)


def _with_gradients(
    settings: SyncSettings, model: Model, work: Work, network: Network, processor: Processor
) -> StepForecast:
    """Buckets leave one after the other while the last micro-batch's backward makes the next."""
    in_bf16 = settings.mode == "bf16"
    buckets = buckets_of(model.settings, model.vocabulary, settings.bucket_mb)
    messages = [gradient_message(bucket, network, processor, in_bf16) for bucket in buckets]
    timeline = beside_backward(buckets, messages, work.last_backward_s)
    return StepForecast(
        settings,
        bytes_per_step=0.0,
        compute_s=work.seconds,
        sending_s=sum(message.alone_s for message in messages),
        exposed_s=timeline.exposed_s,
        slowed_s=timeline.slowed_s,
        message_s=0.0,
    )


def beside_backward(
    buckets: Sequence[Bucket], messages: Sequence[Message], backward_s: float
) -> Timeline:
    """Simulates one backward that hands over each bucket when it is ready, then waits for all."""
    timeline, done = Timeline(), 0.0
    for bucket, message in zip(buckets, messages, strict=True):
        timeline.compute((bucket.ready_share - done) * backward_s)
        done = bucket.ready_share
        timeline.send(message)
    timeline.compute((1.0 - done) * backward_s)
    timeline.wait()
    return timeline


def gradient_message(
    bucket: Bucket, network: Network, processor: Processor, in_bf16: bool
) -> Message:
    """Returns the summing of a bucket over all ranks."""
    payload = FP32_BYTES * bucket.elements
    if not in_bf16:
        return _message(all_reduce_s(payload, network), _ring_bytes(payload, network), processor)
    halved = payload / 2
    carrying_s = all_to_all_s(halved, network) + all_gather_s(halved, network)
    coding_s = sum_in_bf16_s(bucket.elements, network.ranks, processor)
    return _message(carrying_s, _ring_bytes(halved, network), processor, coding_s)


def _ring_bytes(payload_bytes: float, network: Network) -> float:
    """Returns what each rank sends; all-to-all and all-gather together send as much."""
    return 2 * (network.ranks - 1) / network.ranks * payload_bytes


def _message(
    carrying_s: float, sent: float, processor: Processor, coding_s: float = 0.0
) -> Message:
    """Where cores have no part in sending, coding is taken to leave computing alone, too."""
    moving_s = sent * processor.communication_s_per_byte
    alone_s = max(carrying_s, moving_s) + coding_s
    return Message(alone_s, moving_s + coding_s if moving_s else 0.0)


def _with_weights(
    settings: SyncSettings, model: Model, work: Work, network: Network, processor: Processor
) -> StepForecast:
    """Fragments of weights travel beside whole steps, each at its place in the window."""
    inside: StepForecast | None = None
    between, step_s = network, work.seconds
    if settings.group == "host" and network.ranks_on_host > 1:
        between = network.only_hosts()
        exact = SyncSettings()
        inside = _with_gradients(exact, model, work, network.one_host(), processor)
        step_s = inside.step_s
    fragments = fragments_of(model.settings, model.vocabulary, settings.fragments or 1)
    wire: WireKind = settings.wire or "fp32"
    messages = [_weight_message(fragment, wire, between, processor) for fragment in fragments]
    if inside:
        messages = [
            each._replace(
                alone_s=each.alone_s + broadcast_s(FP32_BYTES * fragment.elements, network)
            )
            for each, fragment in zip(messages, fragments, strict=True)
        ]
    outer_s = [outer_step_s(fragment.elements, processor) for fragment in fragments]
    window = simulate_window(FragmentSchedule.of(settings), messages, outer_s, step_s)
    steps = settings.window_steps
    exposed_s, slowed_s = window.exposed_s / steps, window.slowed_s / steps
    return StepForecast(
        settings,
        bytes_per_step=0.0,
        compute_s=work.seconds + sum(outer_s) / steps,
        sending_s=sum(message.alone_s for message in messages) / steps
        + (inside.sending_s if inside else 0.0),
        exposed_s=exposed_s + (inside.exposed_s if inside else 0.0),
        slowed_s=slowed_s + (inside.slowed_s if inside else 0.0),
        message_s=0.0,
    )


def _weight_message(
    fragment: Bucket, wire: WireKind, network: Network, processor: Processor
) -> Message:
    """Returns the averaging of a fragment over all islands."""
    ranks, elements, tensors = network.ranks, fragment.elements, fragment.tensors
    sent = sent_bytes(wire, elements, tensors, ranks)
    if is_gathered(wire, elements, tensors, ranks):
        carrying_s = all_gather_s(sent * ranks / (ranks - 1), network)
    else:
        # Half of the bytes as slices to everyone, half as means around a ring.
        payload = sent / 2 * ranks / (ranks - 1)
        carrying_s = all_to_all_s(payload, network) + all_gather_s(payload, network)
    return _message(
        carrying_s, sent, processor, average_s(wire, elements, tensors, ranks, processor)
    )


class Window(NamedTuple):
    exposed_s: float
    slowed_s: float


def simulate_window(
    schedule: FragmentSchedule,
    messages: Sequence[Message],
    outer_s: Sequence[float],
    step_s: float,
) -> Window:
    """Simulates windows until one takes what the one before took; returns the last one."""
    timeline, number_of = Timeline(), dict[int, int]()
    before, found = Window(-1.0, -1.0), Window(0.0, 0.0)
    for window in range(MOST_WINDOWS):
        exposed_s, slowed_s = timeline.exposed_s, timeline.slowed_s
        for place in range(1, schedule.window_steps + 1):
            step = window * schedule.window_steps + place
            timeline.compute(step_s)
            for fragment in schedule.departing(step):
                timeline.compute(outer_s[fragment] / 2)
                number_of[fragment] = timeline.send(messages[fragment])
            for fragment in schedule.arriving(step):
                if fragment in number_of:
                    timeline.wait(number_of.pop(fragment))
                    timeline.compute(outer_s[fragment] / 2)
        found = Window(timeline.exposed_s - exposed_s, timeline.slowed_s - slowed_s)
        if abs(sum(found) - sum(before)) <= 1e-9 * (1.0 + sum(found)):
            break
        before = found
    return found


def _sharded(settings: SyncSettings, model: Model, work: Work, network: Network) -> StepForecast:
    """Each pass gathers all weights twice, layer by layer and ahead of time; gradients are
    scattered once. All but one layer's share has computing to travel beside."""
    payload = FP32_BYTES * model.parameters
    gathers = 2 * model.passes * all_gather_s(payload, network)
    sending_s = gathers + reduce_scatter_s(payload, network)
    layers = model.settings.encoder_layers + model.settings.decoder_layers
    beside_s = work.forward_s + work.backward_s
    return StepForecast(
        settings,
        bytes_per_step=bytes_per_step(
            model.parameters, network.ranks, network.ranks_on_host, True, model.passes
        ),
        compute_s=work.seconds,
        sending_s=sending_s,
        exposed_s=max(sending_s - beside_s, sending_s / layers),
        slowed_s=0.0,
        message_s=0.0,
    )
