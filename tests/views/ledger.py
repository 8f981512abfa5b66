"""The accounts of a whole drawing: what its pages say, and whether that sums to what was drawn.

Nothing here knows how pages are made. Boxes, edges and numbers are read from the Mermaid text and
from the sentences under it; what they have to say is counted in the graph.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from graph2mermaid.graph import EdgeKind, Graph
from graph2mermaid.mermaid.budget import GITLAB_UNITS, MAX_EDGES, MAX_UNITS
from graph2mermaid.mermaid.diagram import Look
from graph2mermaid.mermaid.write import write
from graph2mermaid.views.drawing import Picture, draw
from graph2mermaid.views.flat import Flat, flatten
from graph2mermaid.views.options import Options

_BOX = re.compile(r'(n\d+)(?:\[\(|\(\[|\[\[|\[/|\{\{|\[|\(|\{)"([^"\n]*)"[\])}/\\]+')
_LINK = re.compile(r'(n\d+) (-->|-\.->)(?:\|"([^"\n]*)"\|)? (n\d+)')
_FRAME = re.compile(r'subgraph (s\d+)\["([^"\n]*)"\]')
_OTHER = re.compile(
    r"graph (?:TD|LR)|direction (?:TB|LR)|end|acc(?:Title|Descr): .+"
    r"|classDef \w+ [\w:#,. -]+|class [\w,]+ \w+|style s\d+ [\w:#,. -]+|linkStyle [\d,]+ [\w:#,. -]+"
)
_INSIDE = re.compile(r"([\d,]+) nodes? (?:is|are) inside ([\d,]+) closed groups?\.")
_COPIES = re.compile(r"It is drawn once for ([\d,]+) parts that are ")
_PLUMBING = re.compile(r"([\d,]+) ops? of plumbing ")
_HIDDEN = re.compile(r"([\d,]+) ops? (?:is|are) hidden on request\.")
_NOT_DRAWN = re.compile(r"([\d,]+) (?:control )?edges? .*(?:is|are) not drawn\.")
_SELECTED = re.compile(
    r"This is .*: ([\d,]+) of ([\d,]+) nodes?(?:; ([\d,]+) edges? to or from others (?:is|are) cut)?\."
)
_SIZE = re.compile(r"(?:([\d,]+) × )?([\d,]+) ops?(?:, shapes differ)?")
_PARAMETERS = re.compile(r"([\d.]+)( [kMG])? parameters")
_TIMES = re.compile(r"× ([\d,]+)")
_TENSORS = re.compile(r"([\d,]+) tensors")

NOT_OPS = (Look.INPUT, Look.OUTPUT, Look.CONST, Look.VARIABLE)


@dataclass(frozen=True)
class Line:
    """An arrow of a Mermaid text, by the keys of its ends."""

    source: str
    target: str
    words: tuple[str, ...]
    dotted: bool


@dataclass
class Meant:
    """What a page has to show: edges by the boxes that they run between."""

    solid: dict[tuple[str, str], list[tuple[str, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    dotted: Counter[tuple[str, str]] = field(default_factory=Counter)
    back: set[tuple[str, str]] = field(default_factory=set)


class Page:
    """One picture, read back from its text."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.key = picture.key
        self.text = write(picture.diagram)
        keys = list(picture.diagram.boxes)
        self.words: dict[str, tuple[str, ...]] = {}
        self.links: list[Line] = []
        self.frames: list[str] = []
        for line in map(str.strip, self.text.splitlines()):
            if box := _BOX.fullmatch(line):
                self.words[keys[int(box[1][1:])]] = tuple(box[2].split("<br/>"))
            elif link := _LINK.fullmatch(line):
                ends = (keys[int(link[1][1:])], keys[int(link[4][1:])])
                words = tuple(link[3].split("<br/>")) if link[3] else ()
                self.links.append(Line(*ends, words, link[2] == "-.->"))
            elif frame := _FRAME.fullmatch(line):
                self.frames.append(frame[2])
            else:
                assert _OTHER.fullmatch(line), f"not a line of a drawing: {line!r}"
        assert list(self.words) == keys or set(self.words) == set(keys)

    @cached_property
    def leaves(self) -> list[str]:
        """The ops that are drawn here themselves."""
        return [
            key for key in self.words if key.partition(":")[0] not in ("group", "stub", "tensor")
        ]

    @cached_property
    def groups(self) -> dict[str, str]:
        """For each box that stands for several ops, the key of its page."""
        boxes = [key for key in self.words if key.startswith("group:")]
        assert len(boxes) <= len(self.picture.parts)
        return {box: key for box, (_, key) in zip(boxes, self.picture.parts, strict=False)}

    def number(self, pattern: re.Pattern[str]) -> int:
        """Return the number that a sentence under the picture says; 0 without the sentence."""
        found = (pattern.match(said) for said in self.picture.diagram.left_out)
        return sum(_int(match[1]) for match in found if match)

    @property
    def instances(self) -> int:
        """How many equal parts the page stands for."""
        return self.number(_COPIES) or 1


class Ledger:
    """A whole drawing."""

    def __init__(self, graph: Graph, options: Options) -> None:
        self.graph = graph
        self.options = options
        self.pages = {page.key: page for page in map(Page, draw(graph, options))}
        self.flat = flatten(graph, options)
        self._known: dict[str, set[str]] = {}
        self._placed: dict[str, dict[str, str]] = {}

    def check(self) -> None:
        """Fail unless every account is in order."""
        for page in self.pages.values():
            self._budget(page)
            self._links(page)
            self._numbers(page)
        self._reachable()
        self._drawing("", self.flat)
        for key in self.pages:
            if key.startswith("function:"):
                name = key.removeprefix("function:")
                if name in self.graph.functions:
                    self._drawing(key, flatten(_alone(self.graph, name), self.options))

    @property
    def total(self) -> int:
        """How many boxes the pages of the graph itself show or count."""
        return self.total_of(self.pages[""])

    def total_of(self, page: Page) -> int:
        """How many boxes are on a page and the pages of its parts, copies by themselves."""
        return self._count(page)

    @property
    def absorbed(self) -> int:
        """How many ops are said to have no box."""
        return self.absorbed_in(self.pages[""])

    def absorbed_in(self, page: Page) -> int:
        """The same for one drawing."""
        return page.number(_PLUMBING) + page.number(_HIDDEN)

    @property
    def functions(self) -> dict[str, Page]:
        """The first pages of functions that are called too deep for a frame."""
        return {
            name: self.pages[f"function:{name}"]
            for name in self.graph.functions
            if f"function:{name}" in self.pages
        }

    def selected(self, prefix: str) -> set[str]:
        """Return the ops of a selection; what it says of itself is checked on the way."""
        page = self.pages[prefix]
        (said,) = [m for s in page.picture.diagram.left_out if (m := _SELECTED.fullmatch(s))]
        flat = self.flat.graph
        assert _int(said[1]) == self._count(page)
        assert _int(said[2]) == len(flat)
        chosen = self._inside(page)
        if not self.options.fold:
            arrows = (*flat.arrows(), *flat.back_edges)
            cut = sum((a.source in chosen) != (a.target in chosen) for a in arrows)
            assert _int(said[3] or "0") == cut
        return chosen

    # -- one page -----------------------------------------------------------------------------

    def _budget(self, page: Page) -> None:
        boxes, links = len(page.words), len(page.links)
        assert links <= MAX_EDGES, page.text
        assert _units(page.text) <= MAX_UNITS, page.text
        if self.options.host == "gitlab":
            assert _units(page.text) <= GITLAB_UNITS, page.text
        most = self.options.max_nodes
        if most is not None:
            own = sum(not key.startswith("stub:") for key in page.words)
            assert own <= most, page.text
        if most is None or most <= 30:
            assert (boxes <= 30 and links <= 40) or (boxes <= 60 and _chain(page)), page.text
        for lines in (*page.words.values(), *(link.words for link in page.links)):
            assert len(lines) <= 3, lines
            assert all(len(line.replace("\u2060", "")) <= 40 for line in lines), lines
        assert all(len(title.replace("\u2060", "")) <= 40 for title in page.frames)

    def _links(self, page: Page) -> None:
        """Every part has a page; stubs are called as the page, or the op, on the other side."""
        for _, key in page.picture.parts:
            assert key in self.pages, f"{page.key!r} leads to {key!r}, which is nowhere"
        parent = page.picture.parent
        assert parent is None or parent in self.pages
        if parent is not None:
            assert page.key in [key for _, key in self.pages[parent].picture.parts]
        prefix = self._prefix(page.key)
        for stub in (key for key in page.words if key.startswith("stub:")):
            other = stub.removeprefix("stub:")
            if stub == "stub:more":
                assert re.fullmatch(r"[\d,]+ other parts?", page.words[stub][0]), page.words[stub]
            elif prefix + other in self.pages:
                title = self.pages[prefix + other].picture.title
                lines = page.picture.diagram.boxes[stub].lines
                fold = title.partition(" × ")[0]  # the page shows one of its instances
                assert lines in ((title,), (f"next {fold}",)), (lines, title)
            else:
                assert any(other in p.leaves for p in self._above(page)) or self._shared(other)

    def _numbers(self, page: Page) -> None:
        """What is said of closed groups is what their pages show."""
        closed = [(box, self.pages[key]) for box, key in page.groups.items()]
        said = [m for s in page.picture.diagram.left_out if (m := _INSIDE.fullmatch(s))]
        assert len(said) == bool(closed)
        for match in said:
            assert _int(match[2]) == len(closed)
            assert _int(match[1]) == sum(self._count(inner) for _, inner in closed)
        for box, inner in closed:
            ops = self._count(inner, ops=True)
            sizes = [m for line in page.words[box] if (m := _SIZE.fullmatch(line))]
            assert len(sizes) == bool(ops), page.words[box]
            for match in sizes:
                assert _int(match[1] or "1") * _int(match[2]) == ops, page.words[box]

    def _count(self, page: Page, *, ops: bool = False) -> int:
        """Count what is on a page and in all pages below it, each copy by itself."""
        looks = page.picture.diagram.boxes
        own = sum(not (ops and looks[leaf].look in NOT_OPS) for leaf in page.leaves)
        below = (self.pages[key] for key in page.groups.values())
        return page.instances * (own + sum(self._count(inner, ops=ops) for inner in below))

    def _reachable(self) -> None:
        first = next(iter(self.pages))
        reached = {first}
        queue = [first]
        while queue:
            for _, key in self.pages[queue.pop()].picture.parts:
                if key not in reached:
                    reached.add(key)
                    queue.append(key)
        assert reached == set(self.pages), f"never led to: {set(self.pages) - reached}"

    # -- one drawing ----------------------------------------------------------------------------

    def _drawing(self, prefix: str, flat: Flat) -> None:
        """Compare the pages of one drawing with the flat graph that is drawn."""
        overview = self.pages[prefix]
        pages = [page for page in self.pages.values() if self._prefix(page.key) == prefix]
        assert self._count(overview) == len(flat.graph)
        boxes = Counter(leaf for page in pages for leaf in page.leaves)
        assert set(boxes.values()) <= {1}, "an op is on two pages"
        assert set(boxes) <= set(flat.graph.dag)
        if not self.options.fold:
            assert set(boxes) == set(flat.graph.dag)
        for page in pages:
            self._parameters(page, flat.graph)
            self._edges(page, flat.graph)

    def _parameters(self, page: Page, graph: Graph) -> None:
        for box, key in page.groups.items():
            said = [m for line in page.words[box] if (m := _PARAMETERS.fullmatch(line))]
            inner = self.pages[key]
            if self.options.fold and self._varied(inner):
                continue  # the shapes of its copies are not drawn
            known = self._parameters_in(inner, graph)
            assert len(said) == (known >= 1000), page.words[box]
            for match in said:
                unit = {"k": 1e3, "M": 1e6, "G": 1e9}[(match[2] or " ").strip()]
                assert abs(float(match[1]) * unit - known) <= known / 15

    def _varied(self, page: Page) -> bool:
        """Tell whether a page, or one below it, stands for parts of other shapes."""
        here = any("but differ in shape" in said for said in page.picture.diagram.left_out)
        return here or any(self._varied(self.pages[key]) for key in page.groups.values())

    def _parameters_in(self, page: Page, graph: Graph) -> int:
        held = (graph[leaf].holds for leaf in page.leaves)
        own = sum((spec.size or 0) for spec in held if spec)
        below = sum(self._parameters_in(self.pages[key], graph) for key in page.groups.values())
        return page.instances * (own + below)

    def _edges(self, page: Page, graph: Graph) -> None:
        """Each edge with an end on a page is an arrow there, or counted among those left out."""
        meant = self._meant(page, graph)
        drawn: dict[tuple[str, str, bool], list[Line]] = defaultdict(list)
        for link in page.links:
            drawn[link.source, link.target, link.dotted].append(link)
        said = page.number(_NOT_DRAWN)
        unsure = "stub:more" if said else ""  # or the stub of an edge that is left out
        lost: Counter[tuple[str, str]] = Counter()
        for ends, tensors in meant.solid.items():
            found = drawn.pop((*ends, False), [])
            if found and unsure not in ends:
                self._counts(found, tensors, graph)
            # Edges that close a cycle of merged nodes are back edges of the page.
            if not (found or drawn.get((*ends, True)) or _by_tensor_node(page, *ends)):
                lost[ends] += len(tensors)
        for ends, count in meant.dotted.items():
            lost[ends] += 0 if drawn.get((*ends, True)) else count
        for ends in meant.back:
            assert drawn.get((*ends, True)), f"no way back: {ends}"
        missing = lost.total()
        words = f"{missing} edges are missing, {said} are counted as left out: {+lost}"
        if self.options.fold or said:  # a way back may stand where an edge is left out
            assert missing <= said, words
            return
        assert missing == said, words
        known = {*meant.solid, *meant.dotted, *meant.back}
        for link in (link for links in drawn.values() for link in links):
            tensor = "tensor:" in (link.source[:7], link.target[:7])
            # A result is the tensor that it returns, where tensors are nodes.
            tensor |= self.options.tensors == "nodes" and link.source.startswith("output:")
            assert tensor or (link.source, link.target) in known, f"stands for nothing: {link}"

    def _meant(self, page: Page, graph: Graph) -> Meant:
        """Find the edges of a graph that show on a page, by the boxes that they run between."""
        place = self._places(page)
        meant = Meant()
        for name in place:
            leaving = (a for a in graph.outgoing(name) if a.target not in place)
            for arrow in (*graph.incoming(name), *leaving):
                ends = self._ends(page, place, arrow.source, arrow.target)
                if ends and arrow.edge.kind is EdgeKind.DATA:
                    meant.solid[ends].append((arrow.source, arrow.edge.source_port or 0))
                elif ends:
                    meant.dotted[ends] += 1
        for arrow in graph.back_edges:
            ends = self._ends(page, place, arrow.source, arrow.target)
            if ends:
                meant.back.add(ends)
        return meant

    def _counts(self, found: list[Line], tensors: list[tuple[str, int]], graph: Graph) -> None:
        """Arrows between two boxes say how many edges, or different tensors, they stand for."""
        tens = [m for link in found for word in link.words if (m := _TENSORS.fullmatch(word))]
        times = [
            _int(m[1]) if (m := _TIMES.fullmatch(link.words[-1] if link.words else "")) else 1
            for link in found
        ]
        different = len(set(tensors))
        if tens:
            said = _int(tens[0][1])
            assert len(found) == 1
            assert said == different or (self.options.fold and said > different), found
        elif self.options.tensors == "edges" and all(
            end in graph for end in (found[0].source, found[0].target)
        ):
            assert sum(times) in (len(tensors), different), (found, tensors)
        elif len(found) == 1 and self.options.tensors == "edges":
            counts = re.match(r"([\d,]+) (?:×|variables)", " ".join(found[0].words))
            said = _int(counts[1]) if counts else 1
            assert said == different or (self.options.fold and said > different), (found, tensors)

    # -- where things are -----------------------------------------------------------------------

    def _prefix(self, key: str) -> str:
        found = re.match(r"function:[^|]*?(?=\||$)|focus:|paths:", key)
        if found and found[0].startswith("function:"):
            return next(
                f"function:{name}"
                for name in sorted(self.graph.functions, key=len, reverse=True)
                if key.startswith(f"function:{name}")
            )
        return found[0] if found else ""

    def _above(self, page: Page) -> Iterator[Page]:
        while page.picture.parent is not None:
            page = self.pages[page.picture.parent]
            yield page

    def _shared(self, name: str) -> bool:
        return self.options.fold and not any(name in page.leaves for page in self.pages.values())

    def _inside(self, page: Page) -> set[str]:
        """Return the ops that are known to be on a page or below it: of a fold, the first ones."""
        if page.key not in self._known:
            found = set(page.leaves)
            for box, key in page.groups.items():
                if self._own(box, key):
                    found |= self._inside(self.pages[key])
            self._known[page.key] = found
        return self._known[page.key]

    def _own(self, box: str, key: str) -> bool:
        """Tell whether a box has a page of its own, and not that of an equal one."""
        return key == self._prefix(key) + box.removeprefix("group:")

    def _places(self, page: Page) -> dict[str, str]:
        """Return the box of each op that is known to be on a page."""
        if page.key not in self._placed:
            found = {leaf: leaf for leaf in page.leaves}
            for box, key in page.groups.items():
                if self._own(box, key):
                    found |= dict.fromkeys(self._inside(self.pages[key]), box)
            self._placed[page.key] = found
        return self._placed[page.key]

    def _ends(
        self, page: Page, place: dict[str, str], source: str, target: str
    ) -> tuple[str, str] | None:
        """Return the boxes that an edge runs between on a page, or None if it does not show."""
        if source not in place and target not in place:
            return None
        ends = [place.get(end) or self._stub(page, end) for end in (source, target)]
        if None in ends or ends[0] == ends[1]:
            return None
        return ends[0] or "", ends[1] or ""

    def _stub(self, page: Page, name: str) -> str | None:
        """Return the stub for an op that is not on the page; None where a fold hides it."""
        for above in self._above(page):
            place = self._places(above).get(name)
            if place is None:
                continue
            stub = f"stub:{place.removeprefix('group:')}"
            return stub if stub in page.words else "stub:more"
        assert self.options.fold, f"{name} is on no page above {page.key!r}"
        return None


def _alone(graph: Graph, name: str) -> Graph:
    return replace(graph.functions[name], functions=graph.functions)


def _by_tensor_node(page: Page, source: str, target: str) -> bool:
    """Tell whether a tensor drawn as a node lies between two boxes."""
    after = {link.target for link in page.links if link.source == source}
    before = {link.source for link in page.links if link.target == target}
    return any(key.startswith(("tensor:", "output:")) for key in after & before)


def _chain(page: Page) -> bool:
    out = Counter(link.source for link in page.links)
    into = Counter(link.target for link in page.links)
    return max([*out.values(), *into.values()], default=0) <= 1


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _int(text: str) -> int:
    return int(text.replace(",", ""))
