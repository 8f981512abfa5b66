"""What stands after `--input`: names, paths and specs, and the lines that correct them."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph2mermaid.errors import SignatureError
from graph2mermaid.graph import TensorSpec
from graph2mermaid.sources.signature import (
    Given,
    input_option,
    parse_input,
    parse_inputs,
    parse_spec,
    path_text,
    quoted,
    split_input,
)


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("float32[8,64]", TensorSpec("float32", (8, 64))),
        ("f32[?,64]", TensorSpec("float32", (None, 64))),
        ("float32[None,64]", TensorSpec("float32", (None, 64))),
        ("f32[ None , 64 ]", TensorSpec("float32", (None, 64))),
        ("int32[]", TensorSpec("int32", ())),
        ("float32", TensorSpec("float32", None)),
        ("float32[...]", TensorSpec("float32", None)),
        ("f16[1]", TensorSpec("float16", (1,))),
        ("half[1]", TensorSpec("float16", (1,))),
        ("bf16[1]", TensorSpec("bfloat16", (1,))),
        ("f64[1]", TensorSpec("float64", (1,))),
        ("i8[1]", TensorSpec("int8", (1,))),
        ("i64[0]", TensorSpec("int64", (0,))),
        ("u8[224,224,3]", TensorSpec("uint8", (224, 224, 3))),
        ("u64[]", TensorSpec("uint64", ())),
        ("bool[?]", TensorSpec("bool", (None,))),
        ("str[?]", TensorSpec("string", (None,))),
        ("string", TensorSpec("string", None)),
        ("c64[2]", TensorSpec("complex64", (2,))),
        ("FLOAT32[2]", TensorSpec("float32", (2,))),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_specs(text: str, spec: TensorSpec):
    """Short and long dtypes, unknown dimensions, scalars and unknown ranks are understood."""
    assert parse_spec(text) == spec


@pytest.mark.parametrize(
    ("typed", "name", "path"),
    [
        ("x=f32[]", "x", ()),
        ("batch['image']=f32[]", "batch", ("image",)),
        ('batch["image"]=f32[]', "batch", ("image",)),
        ("batch[image]=f32[]", "batch", ("image",)),
        ("batch.image=f32[]", "batch", ("image",)),
        ("batch[0]=f32[]", "batch", (0,)),
        ("batch['alpha'][1].x=f32[]", "batch", ("alpha", 1, "x")),
        ("batch['a=b']=f32[]", "batch", ("a=b",)),
        ("batch['two words']=f32[]", "batch", ("two words",)),
        ("batch['']=f32[]", "batch", ("",)),
        ("größe=f32[]", "größe", ()),
        (" x = f32[] ", "x", ()),
    ],
)
def test_names(typed: str, name: str, path: tuple[str | int, ...]):
    """A name may lead into a structure, as an item or as an attribute."""
    assert parse_input(*split_input(typed)) == Given(name, path, TensorSpec("float32", ()))


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("x", "--input x: there is no '='; type --input 'x=float32[?,64]'"),
        ("x:f32[2]", "--input 'x:f32[2]': there is no '='; type --input 'x=float32[2]'"),
        ("f32[2,?]", "--input 'f32[2,?]': there is no '='; type --input 'x=float32[2,?]'"),
        (
            "2x=f32[1]",
            (
                "--input '2x=f32[1]': '2x' is not a parameter's name; type a name, with a path where the"
                " parameter is a structure: --input \"batch['image']=float32[?,64]\""
            ),
        ),
        (
            "b['x=f32[1]",
            (
                '--input "b[\'x=f32[1]": "b[\'x" is not a parameter\'s name; type a name, with a path'
                " where the parameter is a structure: --input \"batch['image']=float32[?,64]\""
            ),
        ),
        (
            "x=[8,64]",
            (
                "--input 'x=[8,64]': '[8,64]' is not of the form DTYPE[DIMENSIONS];"
                " type --input 'x=float32[8,64]'"
            ),
        ),
        (
            "x=8,64",
            (
                "--input x=8,64: '8,64' is not of the form DTYPE[DIMENSIONS];"
                " type --input 'x=float32[8,64]'"
            ),
        ),
        (
            "x=f32(8,64)",
            (
                "--input 'x=f32(8,64)': 'f32(8,64)' is not of the form DTYPE[DIMENSIONS];"
                " type --input 'x=float32[8,64]'"
            ),
        ),
        (
            "x=tf.int32[2]",
            (
                "--input 'x=tf.int32[2]': 'tf.int32[2]' is not of the form DTYPE[DIMENSIONS];"
                " type --input 'x=int32[2]'"
            ),
        ),
        (
            "x=",
            "--input x=: '' is not of the form DTYPE[DIMENSIONS]; type --input 'x=float32[?,64]'",
        ),
        (
            "x=float[8]",
            "--input 'x=float[8]': there is no dtype 'float'; type --input 'x=float32[8]'",
        ),
        ("x=int[8]", "--input 'x=int[8]': there is no dtype 'int'; type --input 'x=int32[8]'"),
        (
            "x=flaot32[8]",
            "--input 'x=flaot32[8]': there is no dtype 'flaot32'; type --input 'x=float32[8]'",
        ),
        (
            "x=resource[]",
            "--input 'x=resource[]': there is no dtype 'resource'; type --input 'x=float32[]'",
        ),
        (
            "x=f32[8x64]",
            (
                "--input 'x=f32[8x64]': the dimension '8x64' is neither a number nor '?';"
                " type --input 'x=float32[8,64]'"
            ),
        ),
        (
            "x=f32[-1,3]",
            (
                "--input 'x=f32[-1,3]': the dimension '-1' is neither a number nor '?';"
                " type --input 'x=float32[?,3]'"
            ),
        ),
        (
            "x=f32[8,]",
            "--input 'x=f32[8,]': a dimension is empty; type --input 'x=float32[8]'",
        ),
        (
            "batch['image']=f[8]",
            (
                "--input \"batch['image']=f[8]\": there is no dtype 'f';"
                " type --input \"batch['image']=float32[8]\""
            ),
        ),
    ],
)
def test_wrong_forms(typed: str, message: str):
    """Whatever is wrong, one line says what it is and what to type instead."""
    with pytest.raises(SignatureError) as caught:
        split_input(typed)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["x=f32[1]", "x=f32[2]"], "--input x: x is given twice"),
        (
            ["b['i']=f32[1]", "b=f32[2]"],
            "--input \"b['i']\": b['i'] is part of b: give one",
        ),
        (["b.i=f32[1]", "b['i']=f32[1]"], "--input \"b['i']\": b['i'] is given twice"),
    ],
    ids=["twice", "part and whole", "two spellings"],
)
def test_two_options_for_one_place(typed: list[str], message: str):
    """Two options may not be for the same place."""
    with pytest.raises(SignatureError) as caught:
        parse_inputs(map(split_input, typed))
    assert str(caught.value) == message


def test_options_are_grouped_by_parameter():
    """The parts of one parameter are kept together, in the order they were typed."""
    found = parse_inputs(map(split_input, ["b.z=f32[1]", "x=f32[2]", "b.a=i32[3]"]))
    assert [(name, [one.name for one in several]) for name, several in found.items()] == [
        ("b", ["b['z']", "b['a']"]),
        ("x", ["x"]),
    ]


_keys = st.text(max_size=12).filter(lambda key: "\n" not in key and "\\" not in key)
_paths = st.lists(
    st.one_of(
        st.integers(0, 99),
        _keys.filter(lambda key: not ("'" in key and '"' in key)),
    ),
    max_size=3,
).map(tuple)
_specs = st.builds(
    TensorSpec,
    st.sampled_from(["float32", "int8", "bool", "string", "bfloat16"]),
    st.one_of(
        st.none(), st.lists(st.one_of(st.none(), st.integers(0, 999)), max_size=4).map(tuple)
    ),
)


@given(st.from_regex(r"[a-z_]\w{0,8}", fullmatch=True), _paths, _specs)
def test_what_is_suggested_can_be_typed(name: str, path: tuple[str | int, ...], spec: TensorSpec):
    """An option that a message shows reads back, through the shell, as what was meant."""
    if any(isinstance(step, str) and not step.isprintable() for step in path):
        return  # repr() writes escapes, which an option does not have
    _, word = shlex.split(input_option(path_text(name, path), spec))
    assert parse_input(*split_input(word)) == Given(name, path, spec)


@given(st.text().filter(lambda text: "\0" not in text))
def test_quoting_survives_the_shell(text: str):
    """A quoted word is one word to the shell, and the same one."""
    assert shlex.split(quoted(text)) == [text]
