"""What a job file may say: the keys that ours use, as their programs' documentation has them.

A key that is not here is refused, since these programs refuse it, or silently ignore it, only when
machines are already rented. Whoever uses another one looks it up and adds it; `make test-jobs` asks
the programs themselves.
"""

from typing import Any

Schema = dict[str, Any]

NAME = {"type": "string", "pattern": "^[a-z][a-z0-9-]*$"}
TEXT = {"type": "string", "minLength": 1}
PATH = {"type": "string", "pattern": "^/"}
COUNT = {"type": "integer", "minimum": 0}
SIZE = {"type": "string", "pattern": "^[0-9]+(MB|GB|TB)$"}
SIZE_OR_MORE = {"type": "string", "pattern": r"^[0-9]+(MB|GB|TB)(\.\.)?$"}
VARIABLE = "^[A-Z_][A-Z0-9_]*$"


def closed(optional: Schema | None = None, **required: Schema) -> Schema:
    """Returns the schema of an object that has these keys, and perhaps those, and no other."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def many(item: Schema) -> Schema:
    return {"type": "array", "items": item, "minItems": 1}


def one_of(*values: str) -> Schema:
    return {"enum": list(values)}


def variables(value: Schema) -> Schema:
    return {"type": "object", "patternProperties": {VARIABLE: value}, "additionalProperties": False}


SKYPILOT = closed(
    name=NAME,
    num_nodes={"type": "integer", "minimum": 1},
    workdir=TEXT,
    resources=closed(
        accelerators={"type": "string", "pattern": "^[A-Za-z0-9-]+:[0-9]+$"},
        use_spot={"type": "boolean"},
        disk_size={"type": "integer", "minimum": 1},
        job_recovery=closed(
            recover_on_exit_codes=many({"type": "integer", "minimum": 1, "maximum": 255}),
            max_restarts_on_errors=COUNT,
        ),
    ),
    envs=variables(TEXT),
    secrets=variables({"type": "null"}),
    file_mounts={
        "type": "object",
        "patternProperties": {"^/": closed(name=NAME, mode=one_of("MOUNT", "COPY"))},
        "additionalProperties": False,
    },
    setup=TEXT,
    run=TEXT,
)

SPOT = one_of("spot", "on-demand", "auto")
GPU = {"type": "string", "pattern": r"^[0-9]+GB(\.\.)?:[0-9]+$"}
FLEET = closed(
    type=one_of("fleet"),
    name=NAME,
    nodes={"type": "string", "pattern": r"^[0-9]+\.\.[0-9]+$"},
    placement=one_of("any", "cluster"),
    spot_policy=SPOT,
    resources=closed(gpu=GPU, disk=SIZE_OR_MORE),
)
TASK = closed(
    type=one_of("task"),
    name=NAME,
    nodes={"type": "integer", "minimum": 1},
    python=one_of("3.11", "3.12", "3.13"),
    repos=many({"type": "string", "pattern": "^[^:]+:/"}),
    working_dir=PATH,
    env=many({"type": "string", "pattern": "^[A-Z_][A-Z0-9_]*(=.*)?$"}),
    commands=many(TEXT),
    volumes=many(closed(name=TEXT, path=PATH)),
    resources=closed(gpu=GPU, shm_size=SIZE),
    spot_policy=SPOT,
    retry=closed(
        on_events=many(one_of("no-capacity", "interruption", "error")),
        duration={"type": "string", "pattern": "^[0-9]+[smhdw]$"},
    ),
)
VOLUME = closed(type=one_of("volume"), backend=NAME, region=NAME, size=SIZE)

CONTAINER = closed(
    name={"const": "pytorch"},  # the operator sets RANK and its like in no container but this
    image=TEXT,
    workingDir=PATH,
    command=many(TEXT),
    resources=closed(limits=closed(**{"nvidia.com/gpu": {"type": "string", "pattern": "^[1-9]"}})),
    volumeMounts=many(closed(name=NAME, mountPath=PATH)),
)
CLAIM = closed(name=NAME, persistentVolumeClaim=closed(claimName=NAME))
EMPTY = closed(name=NAME, emptyDir=closed(medium=one_of("Memory")))
POD = closed(
    terminationGracePeriodSeconds=COUNT,
    containers={**many(CONTAINER), "maxItems": 1},
    volumes=many({"anyOf": [CLAIM, EMPTY]}),
)


def _replicas(number: Schema) -> Schema:
    restart = one_of("Always", "OnFailure", "Never", "ExitCode")
    return closed(replicas=number, restartPolicy=restart, template=closed(spec=POD))


PYTORCH_JOB = closed(
    apiVersion=one_of("kubeflow.org/v1"),
    kind=one_of("PyTorchJob"),
    metadata=closed(name=NAME),
    spec=closed(
        runPolicy=closed(backoffLimit=COUNT, cleanPodPolicy=one_of("All", "Running", "None")),
        pytorchReplicaSpecs=closed(
            Master=_replicas({"const": 1}), Worker=_replicas({"type": "integer", "minimum": 1})
        ),
    ),
)

SCHEMAS = {
    "skypilot.yaml": SKYPILOT,
    "fleet.dstack.yml": FLEET,
    "train.dstack.yml": TASK,
    "volume.dstack.yml": VOLUME,
    "kubernetes.yaml": PYTORCH_JOB,
}
