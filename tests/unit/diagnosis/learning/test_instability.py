import numpy as np
import pytest
from unit.diagnosis.learning_run import noise

from dragoman.diagnosis.learning.instability import divergence_of, spikes_of

STEPS = np.arange(1, 3001)


def calm(seed=0, spread=0.08):
    return 2.0 + 7.0 * np.exp(-STEPS / 150) + noise(len(STEPS), spread, seed)


@pytest.mark.parametrize("spread", [0.08, 0.3])
def test_noise_and_a_steep_start_are_no_spikes(spread):
    assert all(spikes_of(STEPS, calm(seed, spread)) == [] for seed in range(200))
    assert all(divergence_of(STEPS, calm(seed, spread)) is None for seed in range(200))


def test_spikes_are_found_with_their_steps_and_height():
    losses = calm()
    losses[1000:1010] += 3.0
    losses[2000] += 1.5
    first, second = spikes_of(STEPS, losses)
    assert (first.first_step, first.last_step) == (1001, 1010)
    assert first.height == pytest.approx(3.0, abs=0.4)
    assert (second.first_step, second.last_step) == (2001, 2001)
    assert divergence_of(STEPS, losses) is None


def test_a_loss_that_stays_up_has_diverged():
    losses = calm()
    losses[2500:] += 4.0
    found = divergence_of(STEPS, losses)
    assert found is not None
    assert 2450 <= found.since_step <= 2550
    assert found.to_loss == pytest.approx(found.from_loss + 4.0, abs=0.2)


def test_a_loss_that_came_back_has_not():
    losses = calm()
    losses[1500:2500] += 4.0
    assert divergence_of(STEPS, losses) is None


@pytest.mark.parametrize("strange", [np.nan, np.inf])
def test_numbers_that_are_none(strange):
    losses = calm()
    losses[700:703] = strange
    assert divergence_of(STEPS, losses) is None
    assert len(spikes_of(STEPS, losses)) <= 1
    losses[2991:] = strange
    assert divergence_of(STEPS, losses) is None  # a few skipped updates may heal
    losses[2990:] = strange
    found = divergence_of(STEPS, losses)
    assert found is not None
    assert found.since_step == 2991
    everything = np.full(len(STEPS), strange)
    lost = divergence_of(STEPS, everything)
    assert lost is not None
    assert lost.since_step == 1
    assert spikes_of(STEPS, everything) == []


@pytest.mark.parametrize("count", [0, 1, 60])
def test_short_runs_are_left_alone(count):
    assert spikes_of(STEPS[:count], calm()[:count]) == []
    assert divergence_of(STEPS[:count], calm()[:count]) is None
