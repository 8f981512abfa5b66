"""Labels: what is shown, how it is cut, and that nothing in them is left for Mermaid to act on."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given

from graph2mermaid.mermaid import escape
from tests.strategies import labels, lines

JOINER = "\u2060"


@pytest.mark.parametrize(
    "name",
    [
        "while/body/_23",
        "_arg0",
        "__inference_f_12",
        "StatefulPartitionedCall",
        "float32[?,4]",
        "tf.nn.relu",
        "1.2 ms · 31% · × 3",
        "-1.0",
        "then: h",
        "model.py:7",
        "x_/y_",
        "a+b=c",
    ],
)
def test_ordinary_names_stay_as_they_are(name):
    """What TensorFlow and our own views write needs no joiner and no look-alike."""
    assert escape.label([name]) == name


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        pytest.param("<lambda>", "‹lambda›", id="angle brackets"),
        pytest.param("a & b", "a ＆ b", id="ampersand"),
        pytest.param('"q"', "″q″", id="double quotes"),
        pytest.param("batch['zeta']", "batch[’zeta’]", id="single quotes"),
        pytest.param("*x*", "∗x∗", id="stars"),
        pytest.param("`x`", "ˋxˋ", id="backticks"),
        pytest.param("~~x~~", "∼∼x∼∼", id="tildes"),
        pytest.param("__init__", "__init__|", id="strong"),
        pytest.param("_a_", "_a_|", id="emphasis"),
        pytest.param("x _a_/b", "x _a_|/b", id="emphasis inside"),
        pytest.param("e\u0301_a_", "e\u0301_a_|", id="emphasis after an accent"),
        pytest.param("\U0001d54f_a_", "\U0001d54f_a_|", id="emphasis after a rare letter"),
        pytest.param("x_a_", "x_a_", id="underscores within a word"),
        pytest.param("#35;", "#|35;", id="entity"),
        pytest.param("# x", "#| x", id="heading"),
        pytest.param(r"a\nb", r"a\|nb", id="backslash"),
        pytest.param("x@y.z", "x@|y.z", id="mail address"),
        pytest.param("%%{init}%%", "%|%{init}%|%", id="directive"),
        pytest.param("91%", "91%", id="one percent sign"),
        pytest.param("$$x$$", "$|$x$|$", id="formula"),
        pytest.param("http://x", "http:|//x", id="URL"),
        pytest.param("www.x.org", "www|.x.org", id="www"),
        pytest.param("[a](b)", "[a]|(b)", id="link"),
        pytest.param("[a]: b", "[a]|: b", id="link definition"),
        pytest.param("1. x", "1.| x", id="numbered list"),
        pytest.param("1) x", "1)| x", id="numbered list with parenthesis"),
        pytest.param("1.5 x", "1.5 x", id="number"),
        pytest.param("- x", "-| x", id="list"),
        pytest.param("+", "+|", id="empty list"),
        pytest.param("===", "=|==", id="underline of a heading"),
        pytest.param("---", "-|--", id="rule"),
        pytest.param("|--|--|", "|-\u2060-|--|", id="row of a table"),
        pytest.param("fa:fa-car", "fa:|fa-car", id="icon"),
        pytest.param("ﬂ°lt¶ß", "ﬂ|°lt¶|ß", id="what Mermaid writes for entities"),
        pytest.param("direction  TB", "direction| TB", id="statement"),
        pytest.param("style:#a;", "styl|e:#|a;", id="style statement"),
        pytest.param("classDef:#a;", "classDe|f:#|a;", id="class statement"),
    ],
)
def test_what_mermaid_acts_on_is_broken(text, meant):
    """Each construct that some version acts on gets a look-alike or a joiner, shown here as |."""
    written = escape.label([text])
    assert written == (meant if JOINER in meant else meant.replace("|", JOINER))
    assert escape.readable(written) == " ".join(text.split())


def test_emphasis_across_lines_is_broken():
    """Markdown joins the lines of a label, so an underscore may close what another line began."""
    assert escape.label(["_a", "b_"]) == f"_a<br/>b_{JOINER}"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        pytest.param("a\nb\r\nc\td", "a b c d", id="line feeds and tabs"),
        pytest.param("  a \u00a0 \u2028 b ", "a b", id="runs of white space"),
        pytest.param("a\x00b\x1bc\x7f", "a\ufffdb\ufffdc\ufffd", id="control characters"),
        pytest.param("a\ud800b", "a\ufffdb", id="lone surrogate"),
        pytest.param("a\uffffb\ufdd0", "a\ufffdb\ufffd", id="noncharacters"),
        pytest.param("a\u202eb\u2066c\u200f", "abc", id="direction controls"),
        pytest.param("a\u200bb\ufeffc\u00add\u2060", "abcd", id="characters without width"),
        pytest.param("a\u200db\u200c", "ab", id="stray joiners"),
        pytest.param("👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧", id="joined emoji"),
        pytest.param("می\u200cخواهم", "می\u200cخواهم", id="letters kept apart"),
    ],
)
def test_what_cannot_be_seen_is_harmless(text, meant):
    """White space is one space, what hides or reorders is dropped, what cannot be drawn shows."""
    assert escape.label([text]) == meant


@pytest.mark.parametrize("empty", [[], [""], ["", " \t"], ["\u200b"], ["\u200d\u200c", "\u2060"]])
def test_a_label_is_never_empty(empty):
    """Mermaid cannot read an empty label, so one that shows nothing is a space."""
    assert escape.label(empty) == " "


def test_lines_are_joined_by_a_break():
    """Empty lines are left out, the others joined by the break that every version knows."""
    assert escape.label(["x", "", "float32[?]"]) == "x<br/>float32[?]"


def test_a_fourth_line_becomes_an_ellipsis():
    """More than three lines are not shown, and the label says so."""
    assert escape.shown(["a", "b", "c", "d"]) == ("a", "b", "c …")
    assert len(escape.shown(["a", "b", "c" * 50, "d"])[2]) == 40


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        pytest.param("x" * 40, "x" * 40, id="just fits"),
        pytest.param(
            "model/encoder/layer_17/self_attention/query/kernel/Read/ReadVariableOp",
            "model/encoder/…/Read/ReadVariableOp",
            id="scoped name",
        ),
        pytest.param(
            "StatefulPartitionedCall/functional_1/conv5_block3_3_bn/batchnorm/mul_1",
            "StatefulPartitionedCall…/batchnorm/mul_1",
            id="scoped name with a long part",
        ),
        pytest.param(
            "__inference_train_function_of_the_large_model_123456",
            "__inference_trai…_the_large_model_123456",
            id="name without scopes",
        ),
        pytest.param(
            "fused: MatMul, BiasAdd, Relu, Mul, Add, Sub, Neg",
            "fused: MatMul, BiasAdd, Relu, Mul, Add…",
            id="sentence",
        ),
        pytest.param("a " + "b" * 60, "a " + "b" * 37 + "…", id="sentence with a long word"),
        pytest.param("漢" * 30, "漢" * 8 + "…" + "漢" * 11, id="wide characters"),
        pytest.param("e\u0301" * 41, "e\u0301" * 16 + "…" + "e\u0301" * 23, id="accents"),
        pytest.param("👍🏽" * 30, "👍🏽" * 8 + "…" + "👍🏽" * 11, id="skin tones"),
        pytest.param("🇦🇹" * 30, "🇦🇹" * 8 + "…" + "🇦🇹" * 11, id="flags"),
        pytest.param("👨\u200d👩" * 30, "👨\u200d👩" * 8 + "…" + "👨\u200d👩" * 11, id="families"),
        pytest.param("a" + "\u0301" * 500, "a" + "\u0301" * 11, id="a tower of accents"),
    ],
)
def test_long_lines_are_cut(text, meant):
    """Names keep both ends, sentences their start, and no character loses its accents."""
    assert escape.cut(text) == meant


@given(labels())
def test_lines_are_short(text):
    """No line is wider than the limit, whatever its characters."""
    [line] = escape.shown([text]) or [""]
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in line)
    bare = sum(unicodedata.category(char)[0] != "M" and char not in "\u200c\u200d" for char in line)
    assert bare <= escape.MAX_WIDTH + wide


@given(lines())
def test_labels_hold_nothing_raw(text):
    """No quote, angle bracket or entity is left beside the breaks, and lines stay apart."""
    written = escape.label(text)
    parts = written.split("<br/>")
    assert 1 <= len(parts) <= escape.MAX_LINES
    assert not re.search(
        r"[\"<>&\x00-\x1f\x7f\u2028\u2029\ud800-\udfff]|#\w|%%|\$\$", " ".join(parts)
    )


@given(lines())
def test_labels_read_as_they_were_meant(text):
    """Taking joiners and look-alikes back gives the lines that were to be shown."""
    written = escape.label(text).replace("<br/>", "\n")
    assert escape.readable(written) == escape.readable("\n".join(escape.shown(text)))


@given(labels())
def test_cutting_twice_changes_nothing(text):
    """A cut line fits, so it is not cut again."""
    once = escape.shown([text])
    assert escape.shown(once) == once


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        pytest.param("multiply_add, traced", "multiply_add, traced", id="words"),
        pytest.param("<lambda> of 'f'", "lambda of 'f'", id="tag"),
        pytest.param('a "b" #1; {c} %%d & e', "a b 1 c d e", id="what Mermaid acts on"),
        pytest.param("one\ntwo", "one two", id="lines"),
        pytest.param("direction TB", "direction\u2060 TB", id="statement"),
        pytest.param("***", "", id="nothing left"),
        pytest.param("word " * 60, "word " * 39 + "word…", id="long"),
    ],
)
def test_titles_are_plain_words(text, meant):
    """A title is one line of words that Mermaid takes as they are."""
    assert escape.plain(text) == meant
