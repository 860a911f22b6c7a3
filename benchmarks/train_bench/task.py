"""What every candidate trains: the model's shape, the batches, the dropout, the precision."""

from typing import NamedTuple

VOCABULARY = 8000
LAYERS, WIDTH, HEADS, FILTER = 3, 256, 4, 1024
BATCH_TOKENS = 4096
"""Most padded tokens of a batch, on its longer side."""
LABEL_SMOOTHING = 0.1
THREADS = 2
WARM_UP_STEPS = 1
"""Steps at the start of a measurement that are not counted."""


class Setting(NamedTuple):
    """One share for each kind of dropout, and what products are computed in."""

    name: str
    residual: float
    """On embeddings and on the output of each sublayer."""
    attention: float
    """On attention weights."""
    activation: float
    """Inside the feed-forward layers."""
    precision: str = "fp32"


SETTINGS = {
    "residual": Setting("residual dropout only", 0.1, 0.0, 0.0),
    "all": Setting("residual, attention and activation dropout", 0.1, 0.1, 0.1),
    "residual-bf16": Setting("residual dropout only, in bf16", 0.1, 0.0, 0.0, "bf16"),
    "all-bf16": Setting("all kinds of dropout, in bf16", 0.1, 0.1, 0.1, "bf16"),
}
