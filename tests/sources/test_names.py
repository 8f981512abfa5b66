"""Names of library functions: the counters go, what the user wrote stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph2mermaid.sources.names import function_name, unique_names


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("__inference_inner_20", "inner"),
        ("__inference_layer_2_55", "layer_2"),
        ("__inference_<lambda>_12", "<lambda>"),
        ("__inference___call___468", "__call__"),
        ("__inference_my_body_2_9", "my_body_2"),
        ("__inference_encoder_frozen_9", "encoder_frozen"),
        ("__inference_inner_41_const_0", "inner"),
        ("__inference_inner_41_specialized_for_PartitionedCall_at_tf_graph", "inner"),
        ("__inference_Dataset_map_<lambda>_95", "Dataset_map_<lambda>"),
        ("__inference_Dataset_scan_scan_body_113", "Dataset_scan_scan_body"),
        ("__forward_f_3", "f (forward)"),
        ("__backward_f_9", "f (backward)"),
        ("__inference___backward_layer_2_352_368", "layer_2 (backward)"),
        ("__inference___backward___backward_f_981_1212_2559", "f (backward) (backward)"),
        ("__inference___forward_f_1677_2792", "f (forward)"),
        ("while_body_17", "while_body"),
        ("while_cond_true_43", "while_cond_true"),
        ("cond_1_false_55", "cond_1_false"),
        ("true_3", "true"),
        ("switch_case_indexed_case_branch2_179", "switch_case_indexed_case_branch2"),
        ("while_body_225_rewritten", "while_body"),
        ("while_cond_frozen_5865", "while_cond"),
        ("while_cond_224_grad_308", "while_cond (gradient)"),
        ("map_while_body_79_rewritten_grad_636", "map_while_body (gradient)"),
        ("__inference_while_cond_true_898_2284", "while_cond_true"),
        (
            "__inference_while_cond_false_899_grad_1127_rewritten_1967",
            "while_cond_false (gradient)",
        ),
        ("__inference_case_indexed_case_branch0_12_30", "case_indexed_case_branch0"),
        ("old_1_t0wOLIYebvc", "old_1_t0wOLIYebvc"),
        ("my_rewritten", "my_rewritten"),
        ("x_const_0", "x_const_0"),
        ("body", "body"),
        ("__inference_", "__inference_"),
        ("", ""),
    ],
)
def test_counters_go_and_the_users_own_digits_stay(raw, name):
    """A library name is reduced to what the user wrote, or left alone when it has no counter."""
    assert function_name(raw) == name


def test_a_second_function_of_a_name_is_numbered():
    """Functions that are left with one name are numbered in the order they are reached."""
    raw = ["__inference_inner_20", "while_body_17", "__inference_inner_60", "__inference_inner_5"]
    assert list(unique_names(raw).values()) == ["inner", "while_body", "inner_2", "inner_3"]


def test_a_number_never_takes_the_name_of_another_function():
    """A number is given that makes no other function's own name."""
    raw = ["__inference_inner_1", "__inference_inner_5", "__inference_inner_2_9"]
    assert list(unique_names(raw).values()) == ["inner", "inner_3", "inner_2"]


def test_the_number_stands_before_the_role():
    """A numbered gradient still reads as one."""
    assert list(unique_names(["__backward_f_1", "__backward_f_2"]).values()) == [
        "f (backward)",
        "f_2 (backward)",
    ]


_PARTS = st.sampled_from(
    ["__inference_", "__forward_", "__backward_", "f", "while_body", "_2", "_17", "_rewritten"]
)


@given(st.lists(st.lists(_PARTS, max_size=6).map("".join), unique=True))
def test_names_are_unique_and_keep_the_order(raw):
    """Whatever the names, none is lost, none is shared, and the order is that of the input."""
    names = unique_names(raw)
    assert list(names) == raw
    assert len(set(names.values())) == len(raw)


@given(st.lists(_PARTS, max_size=6).map("".join), st.integers(0, 10**6))
def test_the_counter_does_not_show(stem, counter):
    """Two traces of one function have the same name, whatever was traced between them."""
    names = {function_name(f"__inference_{stem}x_{n}") for n in (7, counter)}
    assert len(names) == 1
