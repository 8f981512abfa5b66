"""Printed HLO, read back."""

from __future__ import annotations

import pytest

from graph2mermaid.errors import TargetError
from graph2mermaid.sources.hlo_text import is_hlo_text, parse_hlo
from tests.hlo.modules import BRANCHES, DENSE, LOOP, module, one_op


def test_everything_of_a_module_is_read():
    """Names, shapes with layouts, operands, called computations, attributes and metadata."""
    found = module(DENSE)
    dot, fusion = found.top.by_name["dot"], found.top.result

    assert (found.name, found.entry, found.scheduled) == ("dense", "main", True)
    assert str(dot.shape) == "f32[8,4]{1,0}"
    assert dot.operands == ("x", "w")
    assert dict(dot.attrs) == {"lhs_contracting_dims": "{1}", "rhs_contracting_dims": "{0}"}
    assert (dot.op_name, dot.op_type) == ("MatMul", "MatMul")
    assert fusion.called == (("calls", "fused"),)
    assert fusion.attrs["kind"] == "kLoop"
    assert [p.parameter for p in found.top.parameters] == [0, 1, 2]
    assert found.computations["fused"].by_name["zero"].value == "0.0"


def test_a_loop_has_its_bodies_and_its_length():
    """Condition and body have roles; how often the loop runs is in its backend's settings."""
    loop = module(LOOP).top.by_name["while"]

    assert dict(loop.called) == {"condition": "condition", "body": "body"}
    assert loop.trip_count == 3
    assert [str(leaf) for leaf in loop.shape.leaves] == ["s32[]", "f32[4]{0}"]


@pytest.mark.parametrize(
    ("line", "shape", "operands"),
    [
        ("f32[2]{0} add(f32[2]{0} %p0, f32[2]{0} %p0)", "f32[2]{0}", ("p0", "p0")),
        ("f32[2]{0} add(p0, p0)", "f32[2]{0}", ("p0", "p0")),
        ("f32[2]{0:T(256)} add(%p0, %p0)", "f32[2]{0}", ("p0", "p0")),
        ("f32[<=2]{0} add(%p0, %p0)", "f32[<=2]{0}", ("p0", "p0")),
        ("(f32[2]{0}, /*index=1*/s32[]) tuple(%p0, %p0)", "(f32[2]{0}, s32[])", ("p0", "p0")),
        ('f32[2]{0} negate(%p0), metadata={op_name="a,b=(c" op_type="Neg"}', "f32[2]{0}", ("p0",)),
        ("f32[2]{0} constant({1, 2})", "f32[2]{0}", ()),
    ],
    ids=["typed operands", "no percent", "tiles", "dynamic", "comment", "brackets quoted", "list"],
)
def test_the_forms_of_different_versions(line: str, shape: str, operands: tuple[str, ...]):
    """Versions and devices print instructions in several ways, all of which are read."""
    _, found = one_op(line, "f32[2]{0}")

    assert str(found.shape) == shape
    assert found.operands == operands


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "does not begin with HloModule"),
        ("def f(): pass", "does not begin with HloModule"),
        ("HloModule m\n", "no ENTRY"),
        ("HloModule m\n\nENTRY %e {\n  %x = f32[2] parameter(0)\n", "cut off inside a computation"),
        ("HloModule m\n\nENTRY %e {\n  %x = f32[2] add(%y, %y)\n}\n", "m.txt:4: .*reads y"),
        ("HloModule m\n\nENTRY %e {\n  %x = what\n}\n", "m.txt:4: .*no shape: what"),
        ("HloModule m\n\nENTRY %e {\n  nonsense\n}\n", "m.txt:4: .*no instruction: nonsense"),
        ("HloModule m\n\nENTRY %e {\n}\n", "is empty"),
        (
            "HloModule m\n\nENTRY %e {\n  %x = s8[] parameter(0)\n  %y = s8[] fusion(%x), calls=%gone\n}",
            "y calls gone, which is missing",
        ),
    ],
    ids=["empty", "python", "header", "cut", "operand", "shape", "line", "no body", "callee"],
)
def test_what_is_no_hlo_is_refused_with_the_line(text: str, words: str):
    """Damage is an error that says where it is, never half a graph."""
    with pytest.raises(TargetError, match=words):
        parse_hlo(text, origin="m.txt")


def test_a_text_is_known_by_its_first_word():
    """Only what begins as a module does is taken for one."""
    assert is_hlo_text(f"\n{BRANCHES}")
    assert not is_hlo_text("import tensorflow")
