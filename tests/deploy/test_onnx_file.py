"""What the writer of ONNX files writes is read by ONNX's own reader and gives the same numbers."""

import numpy as np
import onnx
import onnxruntime
import pytest

from sfumato.deploy.onnx_file import IR_VERSION, OPSET, Graph


def _ran(graph: Graph, output: str, truth: np.ndarray, chance: np.ndarray) -> np.ndarray:
    stored = graph.model(output, draws=chance.shape[1], version="1.2")
    onnx.checker.check_model(onnx.load_from_string(stored), full_check=True)
    session = onnxruntime.InferenceSession(stored, providers=["CPUExecutionProvider"])
    (report,) = session.run(["report"], {"truth": truth, "chance": chance})
    return np.asarray(report)


TRUTH = np.array([[10.0, -20.0], [0.25, 1e6]])
CHANCE = np.array([[0.1, 0.9, 0.5], [0.0, 1 - 2.0**-53, 0.75]])


def test_a_graph_says_who_made_it_and_what_goes_in_and_out() -> None:
    graph = Graph()
    model = onnx.load_from_string(graph.model("truth", draws=3, version="1.2"))
    assert (model.ir_version, model.opset_import[0].version) == (IR_VERSION, OPSET)
    assert (model.producer_name, model.producer_version) == ("sfumato", "1.2")
    shapes = {
        value.name: [one.dim_value or one.dim_param for one in value.type.tensor_type.shape.dim]
        for value in (*model.graph.input, *model.graph.output)
    }
    assert shapes == {"truth": ["n", 2], "chance": ["n", 3], "report": ["n", 2]}
    np.testing.assert_array_equal(_ran(graph, "truth", TRUTH, CHANCE), TRUTH)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
def test_numbers_of_every_kind_arrive_to_the_last_bit(kind: type) -> None:
    graph = Graph()
    given = np.array([[1 / 3, -7.0]]).astype(kind)
    number = graph.constant(given)
    if kind is np.int64:
        number = graph.add("Cast", number, to=11)
    found = _ran(graph, graph.add("Add", graph.add("Mul", "truth", 0.0), number), TRUTH, CHANCE)
    np.testing.assert_array_equal(found, np.repeat(given.astype(float), 2, axis=0))


def test_columns_and_lists_of_axes_are_written() -> None:
    graph = Graph()
    last = graph.column("chance", 2)
    tall = graph.add("Concat", last, graph.column("truth", 0), axis=-1)  # a number below 0
    turned = graph.add("Transpose", graph.add("Transpose", tall, perm=[1, 0]), perm=[1, 0])
    found = _ran(graph, turned, TRUTH, CHANCE)
    np.testing.assert_array_equal(found, np.column_stack([CHANCE[:, 2], TRUTH[:, 0]]))
    assert graph.operators == {"Gather", "Concat", "Transpose"}


def test_a_constant_is_stored_once() -> None:
    graph = Graph()
    table = np.arange(1000.0)
    first, again, other = (graph.constant(one) for one in (table, table.copy(), table + 1))
    assert first == again != other
    assert len(graph.model("truth", draws=1, version="1")) < 2.1 * table.nbytes
