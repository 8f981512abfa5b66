"""Any text as a Mermaid label, without entities.

Mermaid has no escape that works everywhere: some versions decode entities twice, some show them
as they are, and 11.0 to 11.12 read every label as Markdown. So a character that Mermaid would act
on is shown by a look-alike, and a sequence that it would act on is broken by a word joiner
(U+2060), which has no width and allows no line break. The names that TensorFlow makes itself,
such as `while/body/_23`, `_arg0` and `__inference_f_12`, need neither.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

MAX_LINES = 3
MAX_WIDTH = 40
"""Columns of a line; a wide character (CJK, emoji) takes two."""

_BREAK = "<br/>"
_JOINER = "\u2060"
_ELLIPSIS = "…"
_UNSHOWABLE = "\ufffd"

_LOOK_ALIKES = {
    '"': "\N{DOUBLE PRIME}",
    "'": "\N{RIGHT SINGLE QUOTATION MARK}",
    "&": "\N{FULLWIDTH AMPERSAND}",
    "<": "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}",
    ">": "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}",
    "*": "\N{ASTERISK OPERATOR}",
    "`": "\N{MODIFIER LETTER GRAVE ACCENT}",
    "~": "\N{TILDE OPERATOR}",
}
_TO_LOOK_ALIKE = str.maketrans(_LOOK_ALIKES)
_FROM_LOOK_ALIKE = str.maketrans({look: char for char, look in _LOOK_ALIKES.items()})

# A joiner goes to the end of each match. Lines are separated by a line feed at this point.
_BROKEN = tuple(
    re.compile(pattern)
    for pattern in (
        r"#",  # entities, headings
        r"\\",  # \n as a line break, Markdown escapes
        r"@",  # mail addresses become links
        r"%(?=%)",  # directives: %%{
        r"\$(?=\$)",  # formulas: $$
        r":(?=//)",  # URLs become links
        r"(?i:www)(?=\.)",
        r"\](?=\()",  # Markdown links and images
        r"(?m:^)\[[^\[\]]*\](?=:)",  # Markdown link definitions vanish
        r"(?m:^)(?:[-+]|[0-9]{1,9}[.)])(?=\s|\Z)",  # lists
        r"(?m:^)=(?==*(?m:$))",  # underlines of headings
        r"(?m:^)[|: ]*-(?=[-|: ]*(?m:$))",  # the same, rules, and rows of tables
        r"fa[bklrs]?:(?=fa-)",  # icons
        r"ﬂ(?=°)",  # what Mermaid itself writes for & and ; on the way
        r"¶(?=ß)",
        r"direction(?=\s+(?:TB|BT|RL|LR|TD))",  # a statement wherever it stands in a line
        r"styl(?=e[\s\S]*#[\s\S]*;)",  # would lose its last semicolon
        r"classDe(?=f[\s\S]*#[\s\S]*;)",
    )
)
_TO_BREAK = re.compile("|".join(f"(?:{pattern.pattern})" for pattern in _BROKEN))
"""Finds nothing in a text that none of them changes, as most are."""
_ZERO_WIDTH = "\u200c\u200d"  # joins and parts letters and emoji; kept only inside such text
_STRAY_ZERO_WIDTH = re.compile(
    f"(?<![^\x00-\x7f{_ZERO_WIDTH}])[{_ZERO_WIDTH}]+|[{_ZERO_WIDTH}]+(?![^\x00-\x7f{_ZERO_WIDTH}])"
)
_NOT_WORDS = re.compile(r"[\"<>&#;%{}\\`$@*~|^]")

_FLAG_LETTERS = range(0x1F1E6, 0x1F200)
"""Two of these make a flag."""
_MAX_CLUSTER = 12
"""Code points of one visible character; the longest emoji in use has ten."""
_HEAD = 16
"""Columns kept at the start of a name that is cut. Its end tells more and gets the rest."""
_SNAP = 8
"""How far a cut moves to fall on a slash or a space."""


def label(lines: Iterable[str]) -> str:
    """Return what stands between the quotes of `id["..."]`. Never empty."""
    return _label(shown(lines))


# The pages of one report say the same words again and again: op types, tensor types.
@functools.lru_cache(maxsize=4096)
def _label(lines: tuple[str, ...]) -> str:
    text = "\n".join(lines).translate(_TO_LOOK_ALIKE)
    return _with_joiners(_without_emphasis(text)).replace("\n", _BREAK) or " "


def shown(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the lines that a reader of the label sees, before anything is escaped.

    Empty lines are left out and long ones cut; an ellipsis stands for all after the third.
    """
    return _shown(tuple(lines))


@functools.lru_cache(maxsize=4096)
def _shown(lines: tuple[str, ...]) -> tuple[str, ...]:
    kept = [line for line in map(_cleaned, lines) if line]
    if len(kept) > MAX_LINES:
        kept[MAX_LINES - 1] = f"{cut(kept[MAX_LINES - 1], MAX_WIDTH - 2)} {_ELLIPSIS}"
    return tuple(cut(line) for line in kept[:MAX_LINES])


def cut(text: str, width: int = MAX_WIDTH) -> str:
    """Return the text shortened to so many columns, with an ellipsis where it was cut.

    A sentence loses its end. A name loses its middle, at slashes where there are any near, since
    the names of one scope differ at their ends. No character is parted from its accents.
    """
    if text.isascii() and len(text) <= width:
        return text
    clusters = list(_clusters(text))
    if sum(map(_width, clusters)) <= width:
        return "".join(clusters)
    if " " in text and "/" not in text:
        return _without_end(clusters, width)
    return _without_middle(clusters, width)


def plain(text: str, width: int = 200) -> str:
    """Return the text as one line of plain words, for a title or a description.

    Nobody sees these; screen readers speak them. Mermaid drops tags from them and decodes
    entities, so punctuation that could mean something to it becomes a space.
    """
    words = _cleaned(_NOT_WORDS.sub(" ", text))
    clusters = list(_clusters(words))
    if sum(map(_width, clusters)) > width:
        words = _without_end(clusters, width)
    return _with_joiners(words)


def readable(label_text: str) -> str:
    """Return what a label looks like: no joiners, and for each look-alike what it stands for.

    Labels that look the same give the same text, so that tests can compare what a browser shows
    with what was meant.
    """
    lines = label_text.replace(_JOINER, "").translate(_FROM_LOOK_ALIKE).split("\n")
    return "\n".join(" ".join(line.split()) for line in lines).strip()


def _cleaned(text: str) -> str:
    """Return one line in which every character shows, or is needed by one that does."""
    if not (text.isascii() and text.isprintable()):
        text = _STRAY_ZERO_WIDTH.sub("", "".join(map(_showing, text)))
    return " ".join(text.split())


def _showing(char: str) -> str:
    if char.isspace():
        return " "
    category = unicodedata.category(char)
    if category in {"Cc", "Cs"} or ord(char) & 0xFFFE == 0xFFFE or "\ufdd0" <= char <= "\ufdef":
        return _UNSHOWABLE
    # Format characters: soft hyphens, our own joiners, direction overrides that would reorder
    # the rest of the label.
    return "" if category == "Cf" and char not in _ZERO_WIDTH else char


def _with_joiners(text: str) -> str:
    if not _TO_BREAK.search(text):
        return text
    for pattern in _BROKEN:
        text = pattern.sub(rf"\g<0>{_JOINER}", text)
    return text


def _without_emphasis(text: str) -> str:
    """Put a joiner after each underscore that would close an emphasis begun before it."""
    if "_" not in text:
        return text
    pieces: list[str] = []
    done = 0
    opened = False
    for run in re.finditer("_+", text):
        before, after = text[: run.start()][-1:], text[run.end() :][:1]
        # Markdown looks at UTF-16 units, so it takes letters beyond the first plane for none.
        opened = opened or not _is(before, "LN") or before > "\uffff"
        if opened and not _is(after, "LMN"):
            pieces += [text[done : run.end()], _JOINER]
            done = run.end()
    return "".join((*pieces, text[done:]))


def _is(char: str, categories: str) -> bool:
    return char != "" and unicodedata.category(char)[0] in categories


def _clusters(text: str) -> Iterator[str]:
    """Yield what a reader takes for one character: a letter with its accents, an emoji."""
    cluster = ""
    for char in text:
        if cluster and _extends(cluster, char):
            cluster += char if len(cluster) < _MAX_CLUSTER else ""
        else:
            if cluster:
                yield cluster
            cluster = char
    if cluster:
        yield cluster


def _extends(cluster: str, char: str) -> bool:
    if cluster[-1] == "\u200d" or char in _ZERO_WIDTH or unicodedata.category(char)[0] == "M":
        return True
    if "\U0001f3fb" <= char <= "\U0001f3ff":  # skin tones
        return True
    return len(cluster) == 1 and ord(cluster) in _FLAG_LETTERS and ord(char) in _FLAG_LETTERS


def _width(cluster: str) -> int:
    wide = unicodedata.east_asian_width(cluster[0]) in "WF" or ord(cluster[0]) in _FLAG_LETTERS
    return 2 if wide else 1


def _first(clusters: Iterable[str], width: int) -> list[str]:
    kept: list[str] = []
    for cluster in clusters:
        width -= _width(cluster)
        if width < 0:
            break
        kept.append(cluster)
    return kept


def _without_end(clusters: Sequence[str], width: int) -> str:
    kept = _first(clusters, width - 1)
    start = "".join(kept)
    before, space, after = start.rpartition(" ")
    if clusters[len(kept)] != " " and space and len(after) <= _SNAP:
        start = before  # rather a word less than a part of one
    return start.rstrip(" ,;:") + _ELLIPSIS


def _without_middle(clusters: Sequence[str], width: int) -> str:
    end = _first(reversed(clusters), width - 1 - min(_HEAD, width // 2))
    tail = _from_slash("".join(reversed(end)))
    start = _first(clusters, width - 1 - sum(map(_width, _clusters(tail))))
    head = _from_slash("".join(start)[::-1])[::-1]
    return head.rstrip() + _ELLIPSIS + tail.lstrip()


def _from_slash(text: str) -> str:
    slash = text.find("/")
    return text[slash:] if 0 <= slash <= _SNAP else text
