"""What kernels compute and move, against closed forms."""

from __future__ import annotations

import pytest

from graph2mermaid.hlo import cost
from tests.hlo.modules import DENSE, cost_of, module

ADD = """%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}"""


@pytest.mark.parametrize(("m", "k", "n"), [(8, 16, 4), (1, 2048, 1000), (128, 1, 128)])
def test_a_product_of_matrices_is_2mkn(m: int, k: int, n: int):
    """A product computes 2·M·K·N operations, and moves both factors and the result."""
    found = cost_of(
        f"f32[{m},{n}]{{1,0}} dot(%p0, %p1), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
        f"f32[{m},{k}]{{1,0}}",
        f"f32[{k},{n}]{{1,0}}",
    )

    assert found.flops == 2 * m * k * n
    assert found.nbytes == 4 * (m * k + k * n + m * n)


def test_a_batch_of_products_is_as_many_products():
    """Batch dimensions are not contracted: they multiply the count."""
    found = cost_of(
        "f32[3,8,4]{2,1,0} dot(%p0, %p1), lhs_batch_dims={0}, lhs_contracting_dims={2}, "
        "rhs_batch_dims={0}, rhs_contracting_dims={1}",
        "f32[3,8,16]{2,1,0}",
        "f32[3,16,4]{2,1,0}",
    )

    assert found.flops == 3 * 2 * 8 * 16 * 4


@pytest.mark.parametrize(
    ("result", "taken", "kernel", "labels", "expected"),
    [
        pytest.param(
            (1, 112, 112, 64),
            (1, 224, 224, 3),
            (7, 7, 3, 64),
            "b01f_01io->b01f",
            2 * 112 * 112 * 64 * 7 * 7 * 3,
            id="NHWC",
        ),
        pytest.param(
            (2, 8, 5, 5),
            (2, 4, 5, 5),
            (8, 4, 3, 3),
            "bf01_oi01->bf01",
            2 * 2 * 8 * 25 * 36,
            id="NCHW",
        ),
        pytest.param(
            (1, 5, 5, 8),
            (1, 5, 5, 8),
            (3, 3, 1, 8),
            "b01f_01io->b01f",
            2 * 25 * 8 * 9,
            id="depthwise",
        ),
    ],
)
def test_a_convolution_is_its_closed_form(result, taken, kernel, labels, expected):
    """A convolution computes 2·N·OH·OW·K·KH·KW·C operations, C being the channels of a group."""
    shapes = [f"f32[{','.join(map(str, dims))}]" for dims in (result, taken, kernel)]
    line = f"{shapes[0]} convolution(%p0, %p1), window={{size=3x3}}, dim_labels={labels}"

    assert cost_of(line, shapes[1], shapes[2]).flops == expected


@pytest.mark.parametrize(
    ("line", "parameters", "flops"),
    [
        ("f32[8,4] add(%p0, %p1)", ("f32[8,4]", "f32[8,4]"), 32),
        ("f32[8,4] exponential(%p0)", ("f32[8,4]",), 32),
        ("f32[4,8] transpose(%p0), dimensions={1,0}", ("f32[8,4]",), 0),
        ("s32[8] convert(%p0)", ("f32[8]",), 0),
        ("f32[8] reduce(%p0, %p1), dimensions={1}, to_apply=%add", ("f32[8,4]", "f32[]"), 24),
        (
            "f32[4] reduce-window(%p0, %p1), window={size=2 stride=2}, to_apply=%add",
            ("f32[8]", "f32[]"),
            4,
        ),
        ('f32[8] custom-call(%p0), custom_call_target="__onednn$matmul"', ("f32[8]",), None),
    ],
    ids=["add", "exponential", "transpose", "convert", "reduce", "reduce-window", "custom-call"],
)
def test_the_other_formulas(line: str, parameters: tuple[str, ...], flops: int | None):
    """Each opcode has the count that the docstring states; a library's kernel has none."""
    assert cost_of(line, *parameters, before=ADD).flops == flops


def test_a_slice_is_charged_for_what_it_reads():
    """Of an operand that is sliced only the slice is read."""
    found = cost_of(
        "f32[1,8] dynamic-slice(%p0, %p1, %p1), dynamic_slice_sizes={1,8}", "f32[100,8]", "s32[]"
    )

    assert found.nbytes == 4 * 8 + 4 * 8 + 4


def test_an_update_in_place_is_charged_for_the_update():
    """The rest of what is updated is not moved."""
    found = cost_of(
        "f32[100,8] dynamic-update-slice(%p0, %p1, %p2, %p2)", "f32[100,8]", "f32[1,8]", "s32[]"
    )

    assert found.nbytes == 4 * 8 + 4 * 8 + 4


def test_a_fusion_is_the_sum_of_what_is_in_it():
    """A fusion computes what its instructions do, and moves its own operands and result alone."""
    dense = module(DENSE)
    fusion = cost(dense, dense.top, dense.top.result)

    assert fusion.flops == 2 * 8 * 4
    assert fusion.nbytes == 4 * (8 * 4 + 4 + 8 * 4)
    assert fusion.intensity == fusion.flops / fusion.nbytes
