"""Hypothesis strategies: labels and diagrams of any content."""

from __future__ import annotations

from hypothesis import strategies as st

from graph2mermaid.mermaid.diagram import Box, Diagram, Frame, Link, Look

# What some version of Mermaid, or the Markdown it reads labels as, acts on; and plain parts
# between, so that whole constructs come together.
_WORDS = """
_ __ ___ * ** ~~ ` ``` # ## #35; #lt; $ $$ % %% %%{ }%% @ @{ \\ \\n [ ] ( ) { } < > & &amp;
" ' | ; : :: , . ! ? = == === - -- --- -> --> + ^ / // /* */ ]( ]: ![ 1. 2) 10. - :- |- ||
http https ftp :// www. x@y.z mailto: <br/> <b> </b> <lambda> fa:fa-car fas: fa- $$x$$
end graph subgraph style classDef class click call href default direction TB TD LR
a b1 x 7 while/body/_23 _arg0 __inference_f_12 __init__ constructor __proto__ ﬂ° ¶ß \u2060
é e\u0301 ж 漢字 שלום مرحبا 🙂 👨‍👩‍👧 🇦🇹 \u200b \u200d \u202e \ufeff \ufe0f \x00 \x1b \x7f \ud800 \uffff
"""
FRAGMENTS = (
    *_WORDS.split(),
    " ",
    "  ",
    "\n",
    "\t",
    "\r\n",
    "\u00a0",
    "\u2028",
)


def labels() -> st.SearchStrategy[str]:
    """Any text, and texts put together from what Mermaid acts on."""
    constructs = st.lists(st.sampled_from(FRAGMENTS), max_size=8).map("".join)
    return st.one_of(constructs, st.text(max_size=50), st.text(st.characters(codec="ascii")))


def lines() -> st.SearchStrategy[tuple[str, ...]]:
    """The lines of one label, also more of them than are shown."""
    return st.lists(labels(), max_size=4).map(tuple)


@st.composite
def diagrams(draw: st.DrawFn, max_boxes: int = 6) -> Diagram:
    """Small, sparse diagrams under any names, with frames at most two deep.

    Sparse, because a densely linked fuzz hides edges that get lost.
    """
    keys = draw(st.lists(labels(), min_size=1, max_size=max_boxes, unique=True))
    boxes = {key: Box(draw(lines()), draw(st.sampled_from(Look))) for key in keys}
    ends = st.sampled_from(keys)
    pairs = draw(st.lists(st.tuples(ends, ends), max_size=max_boxes, unique=True))
    links = tuple(Link(*pair, draw(lines()), draw(st.booleans())) for pair in pairs)
    return Diagram(
        title=draw(labels()),
        description=draw(labels()),
        boxes=boxes,
        links=links,
        frames=_frames(draw, keys),
        direction=draw(st.sampled_from(["TD", "LR"])),
    )


def _frames(draw: st.DrawFn, keys: list[str]) -> tuple[Frame, ...]:
    """Put each box outside all frames, into one of two frames, or into a frame in the first."""
    homes = {key: draw(st.sampled_from(["", "a", "b", "a/c"])) for key in keys}
    inside = {home: tuple(key for key in keys if homes[key] == home) for home in ("a", "b", "a/c")}
    inner = Frame("a/c", draw(lines()), inside["a/c"])
    outer = Frame("a", draw(lines()), inside["a"], (inner,))
    return (outer, Frame("b", draw(lines()), inside["b"]))
