"""All scenarios, in the order in which the table shows them."""

from scenarios.damaged_cases import DAMAGED_CASES
from scenarios.device_cases import DEVICE_CASES
from scenarios.learning_cases import LEARNING_CASES
from scenarios.life_cases import LIFE_CASES
from scenarios.network_cases import NETWORK_CASES
from scenarios.overfitting_cases import OVERFITTING_CASES
from scenarios.scenario import Scenario
from scenarios.small_cases import SMALL_CASES
from scenarios.stories import STORIES
from scenarios.waiting_cases import WAITING_CASES

SCENARIOS: list[Scenario] = [
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
