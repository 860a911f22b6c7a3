import numpy as np

from dragoman.batches.merges import proto_fields
from dragoman.export.onnx_file import FLOAT, model_bytes, node, value_info


def test_the_bytes_are_fields_that_a_reader_of_protocol_buffers_finds_again():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    written = model_bytes(
        [node("Conv", ["x", "weight"], "y", kernel_shape=[3, 300])],
        {"weight": array},
        [value_info("x", FLOAT, ["B", 3])],
        [value_info("y", FLOAT, ["B", "N"])],
        {"key": "value"},
    )
    model = dict(proto_fields(written))
    assert model[1] == 8
    assert dict(proto_fields(model[14])) == {1: b"key", 2: b"value"}
    graph = dict(proto_fields(model[7]))
    convolution = dict(proto_fields(graph[1]))
    assert (convolution[2], convolution[4]) == (b"y", b"Conv")
    attribute = list(proto_fields(convolution[5]))
    assert [value for number, value in attribute if number == 8] == [3, 300]
    tensor = list(proto_fields(graph[5]))
    assert [value for number, value in tensor if number == 1] == [2, 3]
    assert np.array_equal(np.frombuffer(dict(tensor)[9], "<f4"), array.ravel())
