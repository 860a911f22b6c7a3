import dataclasses

import pytest
import torch
from recorded import events

from dragoman.distributed.group import Group
from dragoman.errors import WeightsDifferError
from dragoman.rundir import RunDir
from dragoman.telemetry.events import Incident
from dragoman.telemetry.record.writer import EventWriter
from dragoman.training import weight_check
from dragoman.training.weight_check import WeightCheck, described, tensor_hashes


def hash_of(tensor):
    return tensor_hashes({"x": tensor})["x"]


@pytest.fixture
def weights():
    return torch.randn(40, 25, generator=torch.Generator().manual_seed(1))


def test_equal_tensors_have_equal_hashes_however_they_are_cut(weights, monkeypatch):
    whole = hash_of(weights)
    assert hash_of(weights.clone()) == whole
    monkeypatch.setattr(weight_check, "CHUNK", 7)
    assert hash_of(weights) == whole
    assert hash_of(weights.t().contiguous().t()) == whole


def test_the_lowest_bit_of_one_weight_is_noticed(weights):
    whole = hash_of(weights)
    for place in (0, 499, 999):
        changed = weights.clone()
        changed.view(-1).view(torch.int32)[place] ^= 1
        assert hash_of(changed) != whole


def test_swapped_weights_are_noticed(weights):
    swapped = weights.clone().view(-1)
    swapped[[3, 700]] = swapped[[700, 3]]
    assert hash_of(swapped.view_as(weights)) != hash_of(weights)


def test_changes_that_would_cancel_in_a_plain_sum_are_noticed(weights):
    changed = weights.clone()
    bits = changed.view(-1).view(torch.int32)
    bits[5] += 1
    bits[6] -= 1
    assert hash_of(changed) != hash_of(weights)


def test_zeros_of_either_sign_and_sizes_differ():
    assert hash_of(torch.zeros(3)) != hash_of(-torch.zeros(3))
    assert hash_of(torch.zeros(3)) != hash_of(torch.zeros(4))


def signed(number):
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def test_the_arithmetic_is_exact_modulo_two_to_the_64(weights):
    """Ranks on different devices compare these numbers, so that none may depend on rounding."""
    total = 0
    for place, bits in enumerate(weights.view(-1).view(torch.int32).tolist()):
        mixed = signed((place * weight_check._SPREAD + bits) * weight_check._MIX)
        total += (mixed ^ (mixed >> 29)) * weight_check._SPREAD
    assert hash_of(weights) == signed(total)


def test_only_fp32_is_compared():
    with pytest.raises(TypeError, match="fp32"):
        hash_of(torch.zeros(2, dtype=torch.float16))


def hashes(**changed):
    return dict.fromkeys("abcde", 1) | changed


def test_the_minority_is_named():
    told = described(["n1", "n2", "n3"], [hashes(), hashes(b=2), hashes()], 500)
    assert told == (
        "rank 1 on n2 has other weights than the rest, since after step 500: b (1 of 5 tensors)"
    )


def test_two_ranks_merely_differ():
    told = described(["n1", "n2"], [hashes(), hashes(b=2, c=2, d=2, e=2)], None)
    assert told == (
        "rank 0 on n1, rank 1 on n2 hold different weights, since the start: "
        "b, c, d and 1 more (4 of 5 tensors)"
    )


@dataclasses.dataclass(frozen=True)
class Gathered(Group):
    """One of several ranks, where the others answer what rank 0 does but for one flipped bit."""

    odd: int = 0

    def gather(self, message):
        changed = message
        if isinstance(message, dict):
            changed = message | {"weight": message["weight"] ^ 1}
        elif message != self.host:
            changed = f"not {message}"
        return [changed if rank == self.odd else message for rank in range(self.ranks)]


@pytest.fixture
def check(digits_config, tmp_path):
    """Checks a small model as a rank of `group`; the recorded incidents."""

    def checked(group, every_steps=5):
        run = RunDir(tmp_path)
        writer = EventWriter(run.events_of(1, 0))
        settings = digits_config.training.model_copy(update={"compare_every_steps": every_steps})
        tensors = dict(torch.nn.Linear(2, 2).named_parameters())
        found = WeightCheck(lambda: tensors, group, settings, writer)
        try:
            found.check(5)
        finally:
            writer.close()
        return found

    return checked


def test_the_odd_rank_is_the_culprit_and_its_incident_names_it(check, tmp_path):
    with pytest.raises(WeightsDifferError) as found:
        check(Gathered(0, 3, 0, torch.device("cpu"), odd=2))
    assert found.value.culprit.rank == 2
    (incident,) = events(RunDir(tmp_path), Incident)
    assert (incident.step, incident.category, incident.ranks) == (5, "weights-differ", (2,))


def test_of_two_that_differ_nobody_is_the_culprit(check, tmp_path):
    with pytest.raises(WeightsDifferError) as found:
        check(Gathered(0, 2, 0, torch.device("cpu"), odd=1))
    assert found.value.culprit is None
    assert events(RunDir(tmp_path), Incident)[0].ranks == (0, 1)


def test_alone_or_turned_off_nothing_is_compared(check):
    assert not check(Group(0, 1, 0, torch.device("cpu"))).is_due(5)
    assert not check(Gathered(0, 3, 0, torch.device("cpu"), odd=2), every_steps=0).is_due(5)
