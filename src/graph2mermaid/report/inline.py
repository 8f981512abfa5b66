"""Words inside a line of Markdown: escaped so that every host shows the letters that were meant.

Hosts read different dialects: GitHub's, CommonMark with directives (MyST), Python-Markdown (MkDocs)
and others. So only what all of them agree on is used: a backslash before the characters that the
oldest dialect knows, and a numeric entity for the rest.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from graph2mermaid.report.model import Code, Link, Ref, Text, parts

_BACKSLASH = frozenset("\\`*[]{}#")
_ENTITY = frozenset("<>&|~$^")
_URL = re.compile(r"(https?://[^\s<>|`\"\\^{}]*[\w/=&#%-])")
_LINE_START = re.compile(r"[-+](?=[-+\s]|$)|[=:%]|!(?=!)|\?(?=\?)|/(?=/)|\((?=.*\)=)")
_NUMBER = re.compile(r"(\d+)([.)])(?=\s|$)")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_NO_NAME = "(empty)"
_IN_TARGET = frozenset(string.ascii_letters + string.digits + "#/._~-:?=@%+,;!")


def line(text: Text, targets: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return words as one line of Markdown that can stand anywhere, a table's cell included.

    Args:
        text: The words.
        targets: For each key that a `Ref` may have, the target of its link.
    """
    written: list[str] = []
    for part in _joined(_resolved(part, targets) for part in parts(text)):
        # Two runs of backticks would read as one longer run.
        touching = bool(written) and written[-1].endswith("`")
        if isinstance(part, Link) and written:
            written[-1] = _before_link(written[-1])
        written.append(_part(part, element=touching))
    return _start("".join(written).strip())


def seen(text: Text) -> str:
    """Return the words that a reader of the line sees."""
    words = (part if isinstance(part, str | Code) else part.words for part in parts(text))
    return _clean("".join(w if isinstance(w, str) else _code_words(w) for w in words)).strip()


def escape(text: str) -> str:
    """Return plain words with everything escaped that Markdown could take for a mark.

    A web address becomes an explicit link: hosts make one of it anyway, and then show the escapes.
    """
    pieces = _URL.split(_clean(text))
    for at, piece in enumerate(pieces):
        escaped = _escape(piece)
        pieces[at] = f"[{escaped}]({_target(piece)})" if at % 2 else _before_link(escaped)
    return "".join(pieces)


def code(text: str, *, element: bool = False) -> str:
    """Return a name as code.

    Backticks, wherever no dialect can misread them. A backtick or a pipe in the name makes it an
    HTML element instead: dialects disagree about both inside a table's cell.
    """
    text = _code_words(Code(text))
    if text == _NO_NAME:
        return text
    if element or "`" in text or "|" in text:
        return f"<code>{''.join(_entity_if_mark(letter) for letter in text)}</code>"
    return f"`{text}`"


def _code_words(code: Code) -> str:
    return _clean(code.text).strip() or _NO_NAME


def _part(part: str | Code | Link, *, element: bool = False) -> str:
    if isinstance(part, str):
        return escape(part)
    if isinstance(part, Code):
        return code(part.text, element=element)
    words = part.words
    shown = code(words.text) if isinstance(words, Code) else _escape(_clean(words).strip())
    return f"[{shown}]({_target(part.target)})"


def _escape(text: str) -> str:
    out = []
    for at, letter in enumerate(text):
        if letter in _BACKSLASH or (letter == "_" and not _inside_word(text, at)):
            out.append("\\" + letter)
        elif letter in _ENTITY:
            out.append(_entity(letter))
        else:
            out.append(letter)
    return "".join(out)


def _before_link(written: str) -> str:
    """Keep an exclamation mark from making an image of the link that follows."""
    return f"{written[:-1]}&#33;" if written.endswith("!") else written


def _resolved(part: str | Code | Link | Ref, targets: Mapping[str, str]) -> str | Code | Link:
    if not isinstance(part, Ref):
        return part
    return Link(part.words, targets[part.key]) if part.key in targets else part.words


def _joined(parts: Iterable[str | Code | Link]) -> list[str | Code | Link]:
    """Join neighboring plain words, so that a mark cannot arise where two of them meet."""
    joined: list[str | Code | Link] = []
    for part in parts:
        if part == "":
            continue
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        else:
            joined.append(part)
    return joined


def _clean(text: str) -> str:
    """Replace what cannot be written or shown, and make every run of whitespace one space."""
    return re.sub(r"\s+", " ", _UNPRINTABLE.sub("\ufffd", text))


def _inside_word(text: str, at: int) -> bool:
    """Tell whether an underscore has letters or digits around its run, which no dialect reads."""
    before = text[:at].rstrip("_")[-1:]
    after = text[at:].lstrip("_")[:1]
    return before.isalnum() and after.isalnum()


def _entity(letter: str) -> str:
    names = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
    return names.get(letter, f"&#{ord(letter)};")


def _entity_if_mark(letter: str) -> str:
    return _entity(letter) if letter in string.punctuation else letter


def _start(text: str) -> str:
    """Disarm what means something only at the start of a line: a list, a rule, a directive."""
    numbered = _NUMBER.match(text)
    if numbered:
        digits, mark = numbered.groups()
        return f"{digits}{_entity(mark)}{text[numbered.end() :]}"
    return _entity(text[0]) + text[1:] if _LINE_START.match(text) else text


def _target(target: str) -> str:
    """Write a link's target so that nothing in it can end it."""
    return "".join(
        letter if letter in _IN_TARGET else "&amp;" if letter == "&" else _percent(letter)
        for letter in target
    )


def _percent(letter: str) -> str:
    return "".join(f"%{byte:02X}" for byte in letter.encode("utf-8", "replace"))
