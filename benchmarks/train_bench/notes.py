"""How each candidate is measured, and what it does differently from the others."""

NOTES = {
    "ours": (
        "The three loops take turns batch by batch in one process, on the same tensors, with "
        "torch's fused Adam. Memory and first step come from a process of its own for each. "
        "Pre-norm, no biases in attention; the loss is computed in chunks, without padding."
    ),
    "hugging-face": (
        "MarianMTModel with sdpa, cross-entropy over all positions. Post-norm, biases in attention."
    ),
    "torch": (
        "nn.Transformer, pre-norm, with a causal hint, so that it uses sdpa. Its constructor has "
        "one share for all kinds of dropout; the loop sets them layer by layer."
    ),
    "dragoman": (
        "The whole command, one worker with two threads, data prepared before. Steps from its own "
        "events; memory is that of the worker, its largest process, and CPU time that of all."
    ),
    "eole": (
        "Whole tool; ends of steps from a hook of torch's optimizer, tokens counted in its "
        "batches. No option for activation dropout: the benchmark sets it in the built "
        "model. Reading of text is in the first step, since one bucket holds the whole corpus."
    ),
    "opennmt": "As eole.",
    "joeynmt": (
        "Whole tool, measured as eole. One option for all kinds of dropout: the benchmark sets "
        "them in the built model. No length bucketing, so much of a batch is padding, "
        "and a batch may exceed the limit by one pair."
    ),
    "marian": (
        "Whole tool in C++. Label counts from its log, a line an update; the benchmark's clock. "
        "Two threads with a batch each, asynchronous updates; two updates count as one step. Its "
        "limit counts source words without padding, so its batches are a little larger."
    ),
}
