"""All scenarios, in the order in which the table shows them."""

from scenarios.advice_cases import ADVICE_CASES
from scenarios.cap_cases import CAP_CASES
from scenarios.damaged_cases import DAMAGED_CASES
from scenarios.device_cases import DEVICE_CASES
from scenarios.ending_cases import ENDING_CASES
from scenarios.foreign_cases import FOREIGN_CASES
from scenarios.interplay_cases import INTERPLAY_CASES
from scenarios.layout_cases import LAYOUT_CASES
from scenarios.learning_cases import LEARNING_CASES
from scenarios.life_cases import LIFE_CASES
from scenarios.moving_cases import MOVING_CASES
from scenarios.network_cases import NETWORK_CASES
from scenarios.overfitting_cases import OVERFITTING_CASES
from scenarios.quality_cases import QUALITY_CASES
from scenarios.scenario import Scenario
from scenarios.small_cases import SMALL_CASES
from scenarios.stories import STORIES
from scenarios.waiting_cases import WAITING_CASES

FIRST_SCENARIOS: list[Scenario] = [
    *NETWORK_CASES,
    *WAITING_CASES,
    *SMALL_CASES,
    *DEVICE_CASES,
    *LEARNING_CASES,
    *OVERFITTING_CASES,
    *LIFE_CASES,
    *DAMAGED_CASES,
    *STORIES,
]
"""Those with which the diagnosis was made."""
LATER_SCENARIOS: list[Scenario] = [
    *CAP_CASES,
    *FOREIGN_CASES,
    *INTERPLAY_CASES,
    *LAYOUT_CASES,
    *QUALITY_CASES,
    *ENDING_CASES,
    *MOVING_CASES,
    *ADVICE_CASES,
]
"""Written without reading it, after it had been found to share the first ones' assumptions; the
moving ones and those about advice, after a review had found worlds in which it was wrong."""
SCENARIOS = [*FIRST_SCENARIOS, *LATER_SCENARIOS]
