import importlib.util
import json
import struct

import pytest
from unit.telemetry.export.exporting import export

from dragoman.rundir import read_json


@pytest.mark.skipif(not importlib.util.find_spec("wandb"), reason="needs dragoman[wandb]")
def test_wandb_writes_files_that_hold_the_figures(run, tmp_path):
    export(run, "telemetry.wandb=offline", home=tmp_path)
    identity = read_json(run.root / "wandb.json")["id"]
    (path,) = run.root.glob(f"wandb/offline-run-*/run-{identity}.wandb")
    history = {}
    config_keys = set()
    for record in wandb_records(path.read_bytes()):
        config_keys |= {item.key for item in record.run.config.update}
        for item in record.history.item:
            key = item.key or "/".join(item.nested_key)
            history[key] = json.loads(item.value_json)
    assert history["loss/train (smoothed, with dropout)"] == 3.5
    assert history["quality/BLEU"] == 31.5
    assert history["node1 gpu/0 power w"] == 251.5
    assert history["step"] == 1
    assert {"model", "training", "telemetry"} <= config_keys


def wandb_records(data):
    """The file is LevelDB's log: blocks of 32 KB, records with checksum, length and place."""
    from wandb.proto import wandb_internal_pb2

    whole, at = b"", 7
    while at + 7 <= len(data):
        if (left := 32768 - at % 32768) < 7:
            at += left
            continue
        length, place = struct.unpack("<HB", data[at + 4 : at + 7])
        whole += data[at + 7 : at + 7 + length]
        at += 7 + length
        if place in (1, 4):  # whole, or the last piece
            record = wandb_internal_pb2.Record()
            record.ParseFromString(whole)
            yield record
            whole = b""
