"""How a graph becomes pictures: an overview, and a page for each part that it shows closed."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import chain

from graph2mermaid.graph import Graph, Node, NodeKind, Stage
from graph2mermaid.mermaid.budget import (
    GITLAB_UNITS,
    READABLE_CHAIN,
    READABLE_NODES,
    fits,
    measure,
    readable,
)
from graph2mermaid.mermaid.build import FrameSpec, Mark, box_lines, build
from graph2mermaid.mermaid.diagram import Diagram
from graph2mermaid.mermaid.write import write
from graph2mermaid.passes.asides import without_asides
from graph2mermaid.passes.fold import Opened, group_node, open_within, page_graph
from graph2mermaid.passes.ghosts import Ghosts
from graph2mermaid.passes.groups import MAX_CHILDREN, Group, group_tree
from graph2mermaid.passes.inline import MAX_DEPTH
from graph2mermaid.passes.narrow import narrower
from graph2mermaid.passes.tensors import homes_of_tensors, with_tensor_nodes
from graph2mermaid.views.flat import Flat, counted, flatten, is_or_are, selections
from graph2mermaid.views.options import Options

MOST_COPIES = 6
"""More copies than this are not all named under a diagram."""

MAX_STUBS = 6
"""More neighbors than this are one box, so that a page is about its own part."""


_OTHERS = "stub:more"
_FUNCTION = "function:"
"""How the keys of the pictures of functions begin that are called too deep for a frame."""


@dataclass(frozen=True)
class Picture:
    """One diagram of a drawing, and where it stands among the others."""

    key: str
    """The group it shows; the empty string for the overview."""
    title: str
    diagram: Diagram
    parts: tuple[tuple[str, str], ...] = ()
    """(title, key) of the parts that have a picture of their own."""
    parent: str | None = None
    text: str = ""
    """The diagram's Mermaid text; written when it is not given."""

    def __post_init__(self) -> None:
        """Write the text."""
        if not self.text:
            object.__setattr__(self, "text", write(self.diagram))


@dataclass(frozen=True)
class _Draft:
    """A diagram that a page may have, and how much of the page's group is open in it."""

    opened: Opened
    diagram: Diagram

    @cached_property
    def text(self) -> str:
        """The diagram's Mermaid text."""
        return write(self.diagram)


@dataclass(frozen=True)
class Overlay:
    """What a view says of the ops of a graph beside what they are."""

    marks: Mapping[str, Mark] = field(default_factory=dict)
    """For ops by name."""
    of_group: Callable[[Iterable[str]], str] | None = None
    """Says in a few words what is to say of several ops together; the empty string for nothing."""
    traced: Graph | None = None
    """The graph that an optimized one was made of."""
    firsts: Mapping[str, str] = field(default_factory=dict)
    """For ops that stand for several traced ones, the first of these; it says where they belong."""
    ghosts: Ghosts = field(default_factory=Ghosts)
    """The ops that an optimized graph has no more, to be drawn beside the others."""

    def of_page(self, graph: Graph, flat: Graph, groups: Iterable[Group]) -> Mapping[str, Mark]:
        """Return the marks of a page: those of its ops, and what is to say of its closed groups."""
        found = {node.name: mark for node in graph.nodes() for mark in self._marks(node)}
        if self.of_group is None:
            return found
        for group in groups:
            leaves = list(group.leaves())
            inside = [name for leaf in leaves for name in (leaf, *_members(flat[leaf]))]
            words = self.of_group(inside)
            removed = sum(flat[name].kind is NodeKind.GHOST for name in leaves)
            words = ", ".join(filter(None, (words, f"{removed:,} removed" if removed else "")))
            if words:
                found[f"group:{group.key}"] = Mark(lines=(words,))
        return found

    def _marks(self, node: Node) -> Iterator[Mark]:
        """Yield the mark of a node; one of several copies of a constant has what they share."""
        if node.name in self.marks:
            yield self.marks[node.name]
        elif node.kind is NodeKind.CONST:
            yield from (
                mark
                for mark in map(self.marks.get, node.members)
                if mark is not None and mark.look is not None
            )


_NOTHING = Overlay()


def _members(node: Node) -> Sequence[str]:
    """Return what else a node stands for; a copy of a constant is counted as little as others."""
    return () if node.kind is NodeKind.CONST else node.members


def draw(graph: Graph, options: Options, overlay: Overlay = _NOTHING) -> Iterator[Picture]:
    """Yield the pictures of a graph: the overview first, then its parts, the nearest first.

    What `focus`, `from_` and `to` select comes before the overview. Functions that are called too
    deep inside others have pictures of their own at the end. Each picture is made when it is asked
    for.

    Raises:
        Graph2MermaidError: The options name what is not in the graph.
    """
    pictures = _pictures(graph, options, overlay)
    return pictures if graph.stage is Stage.TRACED else _keyed(pictures, graph.stage.value)


def _keyed(pictures: Iterable[Picture], stage: str) -> Iterator[Picture]:
    """Put the stage before the keys: groups of two stages of one function have the same."""
    for picture in pictures:
        parts = tuple((title, f"{stage} {key}") for title, key in picture.parts)
        parent = None if picture.parent is None else f"{stage} {picture.parent}"
        yield replace(picture, key=f"{stage} {picture.key}", parts=parts, parent=parent)


def _pictures(graph: Graph, options: Options, overlay: Overlay) -> Iterator[Picture]:
    flat = flatten(
        graph, options, traced=overlay.traced, ghosts=overlay.ghosts, firsts=overlay.firsts
    )
    drawing = _Drawing(flat, options, overlay)
    drawings = [
        *(
            _Drawing(part, options, overlay, key, title)
            for key, title, part in selections(flat, options)
        ),
        drawing,
    ]
    rest = [one.pictures() for one in drawings]
    firsts = [next(pictures) for pictures in rest]
    for number, picture in enumerate(firsts):
        others = tuple((other.title, other.key) for other in firsts[number + 1 :])
        yield replace(picture, parts=(*picture.parts, *others))
    for pictures in rest:
        yield from pictures
    queue = deque(drawing.called.items())
    shown: set[str] = set()
    while queue:
        key, parent = queue.popleft()
        if key not in shown:
            shown.add(key)
            name = key.removeprefix(_FUNCTION)
            body = replace(graph.functions[name], functions=graph.functions)
            drawing = _Drawing(flatten(body, options, whole=False), options, _NOTHING, key)
            for picture in drawing.pictures():
                yield picture if picture.parent is not None else replace(picture, parent=parent)
            queue += drawing.called.items()


class _Drawing:
    """The pictures of one graph."""

    def __init__(
        self,
        flat: Flat,
        options: Options,
        overlay: Overlay,
        key: str = "",
        title: str | None = None,
    ) -> None:
        self._options = options
        self._overlay = overlay
        self._key = key
        self._pages: dict[str, str] = {}
        self._group_nodes: dict[str, Node] = {}
        self.called: dict[str, str] = {}
        """For each function that is called here and has no frame: the first picture that calls it."""
        self._inlined = flat.inlined
        self._left_out = flat.left_out
        self._graph = flat.graph
        most = MAX_CHILDREN if options.max_nodes is None else min(options.max_nodes, MAX_CHILDREN)
        self._tree = group_tree(
            flat.inlined, flat.graph, scopes=flat.scopes, fold=options.fold, most=most
        )
        self._name = flat.name if title is None else title
        bodies = self._inlined.bodies
        self._frames = [FrameSpec(body.key, (body.title,), body.parent) for body in bodies.values()]

    def pictures(self) -> Iterator[Picture]:
        queue = deque([_Page(self._tree, None)])
        while queue:
            page = queue.popleft()
            draft = self._best(page)
            opened = draft.opened
            parts: list[tuple[str, str]] = []
            for group in opened.closed():
                page.units.update(dict.fromkeys(group.leaves(), group))
                key = self._full_key(group)
                same = group.signature if self._options.fold else ""
                shared = self._pages.setdefault(same or key, key)
                parts.append((self._title(group), shared))
                if shared == key:
                    queue.append(_Page(group, page))
            for function in self._called_on(opened):
                parts.append((function, f"{_FUNCTION}{function}"))
                self.called.setdefault(f"{_FUNCTION}{function}", self._full_key(page.group))
            title = self._title(page.group) if page.parent else self._name
            parent = self._full_key(page.parent.group) if page.parent else None
            key = self._full_key(page.group)
            yield Picture(key, title, draft.diagram, tuple(parts), parent, draft.text)

    def _called_on(self, opened: Opened) -> Iterator[str]:
        """Yield the functions that a page's ops call and that have no frame, once each."""
        names = (unit for unit in opened.units() if isinstance(unit, str))
        calls = (call.function for name in names for call in self._graph[name].calls)
        yield from (name for name in dict.fromkeys(calls) if name in self._inlined.not_drawn)

    def _full_key(self, group: Group) -> str:
        return f"{self._key}{group.key}"

    def _title(self, group: Group) -> str:
        return group.body.title if group.body else group.title

    def _best(self, page: _Page) -> _Draft:
        """Return as much of a page as a reader can take in.

        Where even a page of closed groups is too much, its parts are put together, and last the
        edges side by side.
        """
        last = page.group
        for group in chain([page.group], narrower(page.group)):
            draft = self._open(page, group)
            if self._good(draft):
                return draft
            last = group
        opened = Opened(last, frozenset())
        return _Draft(opened, self._diagram(page, opened, tight=True))

    def _open(self, page: _Page, group: Group) -> _Draft:
        """Open as much of a group as makes a good diagram; with none, nothing is open."""
        drafts: dict[frozenset[str], _Draft] = {}

        def draft(opened: Opened) -> _Draft:
            if opened.open not in drafts:
                drafts[opened.open] = _Draft(opened, self._diagram(page, opened))
            return drafts[opened.open]

        room = READABLE_CHAIN if group.size <= READABLE_CHAIN else READABLE_NODES
        most = self._options.max_nodes
        depth = self._options.depth if page.parent is None else None
        eager = most is not None and most > READABLE_NODES
        opened = open_within(
            group, most or room, lambda o: self._good(draft(o)), depth=depth, eager=eager
        )
        return draft(opened)

    def _good(self, draft: _Draft) -> bool:
        if not self._small(draft.diagram):
            return False
        wanted = self._options.host != "gitlab" or measure(draft.text).units <= GITLAB_UNITS
        return wanted and fits(draft.text)

    def _small(self, diagram: Diagram) -> bool:
        """Tell whether a page has as few nodes as asked for, or is one that a person reads."""
        most = self._options.max_nodes
        if most is None:
            return readable(diagram)
        own = sum(not name.startswith("stub:") for name in diagram.boxes)
        return own <= most and (most > READABLE_NODES or readable(diagram))

    def _diagram(self, page: _Page, opened: Opened, *, tight: bool = False) -> Diagram:
        place: dict[str, Node] = {}
        for group in opened.closed():
            node = self._group_node(group)
            place.update(dict.fromkeys(group.leaves(), node))
        more: set[str] = set()
        graph = page_graph(
            self._graph,
            opened,
            place,
            self._outside(page, more, 0 if tight else MAX_STUBS),
            tight=tight,
        )
        roles = {f"group:{group.key}": group.role for group in opened.closed() if group.role}
        roles |= {n.name: str(n.attrs["role"]) for n in graph.nodes() if "role" in n.attrs}
        graph, beside = without_asides(graph, roles, forward=not page.role)
        home = self._home(opened)
        if self._options.tensors == "nodes" and not tight:
            graph = with_tensor_nodes(graph)
            home |= homes_of_tensors(graph, home)
        left_out = list(self._left_out) if page.parent is None else []
        closed = opened.closed()
        if closed:
            hidden = sum(group.size for group in closed)
            left_out.append(
                f"{counted(hidden, 'node')} {is_or_are(hidden)} inside "
                f"{counted(len(closed), 'closed group')}."
            )
        left_out += _said_of_copies(self._graph, page.group)
        left_out += beside
        drawn = build(
            graph,
            title=self._title(page.group) if page.parent else self._name,
            frames=self._frames,
            home=home,
            names=self._options.level == "ops",
            by_device=self._options.color == "device",
            direction=self._options.direction,
            left_out=left_out,
            marks=self._overlay.of_page(graph, self._graph, closed),
        )
        return _with_number_of_others(drawn, len(more))

    def _group_node(self, group: Group) -> Node:
        node = self._group_nodes.get(group.key)
        if node is None:
            node = self._group_nodes[group.key] = group_node(self._graph, group)
        return node

    def _home(self, opened: Opened) -> dict[str, str]:
        """Return the innermost frame of everything shown; a page's own frame is not drawn."""
        home: dict[str, str] = {}

        def walk(group: Group, frame: str | None) -> None:
            for child in group.children:
                if isinstance(child, str):
                    if frame is not None:
                        home[child] = frame
                elif child.key in opened.open:
                    walk(child, child.body.key if child.body else frame)
                elif frame is not None:
                    home[f"group:{child.key}"] = frame

        walk(opened.group, None)
        return home

    def _outside(self, page: _Page, more: set[str], most: int) -> Callable[[str], Node]:
        """Return the function that names the page on the other side of the border.

        It names so many at `most`, and puts the keys of all others into `more`.
        """
        stubs: dict[str, Node] = {}

        @cache
        def stub(name: str) -> Node:
            above = page.parent
            while above is not None and not above.shows(name):
                above = above.parent
            group = above.units.get(name) if above else None
            key = group.key if group else name
            if key not in stubs:
                node = self._graph[name]
                role = group.role if group else "result" if node.kind is NodeKind.OUTPUT else ""
                if len(stubs) >= most and not (role and most):
                    more.add(key)
                    return Node(_OTHERS, "stub", NodeKind.ELIDED, label="other parts")
                label = self._title(group) if group else next(iter(box_lines(node)))
                if group and page.inside(group):  # the page shows one of a fold's instances
                    label = f"next {label.partition(' × ')[0]}"
                attrs = {"role": role} if role else {}
                stubs[key] = Node(f"stub:{key}", "stub", NodeKind.ELIDED, label=label, attrs=attrs)
            return stubs[key]

        return stub


@dataclass
class _Page:
    group: Group
    parent: _Page | None
    units: dict[str, Group] = field(default_factory=dict)
    """For each node inside a closed group of the page, that group."""
    leaves: frozenset[str] = frozenset()

    @property
    def role(self) -> str:
        """What the page is for in a training step, or what the group that it is inside is for."""
        return self.group.role or (self.parent.role if self.parent else "")

    def shows(self, name: str) -> bool:
        """Tell whether a node, or the closed group that it is in, is on the page."""
        return name in self.units or name in self.leaves

    def inside(self, group: Group) -> bool:
        """Tell whether the page is of this group or of a part of it."""
        page: _Page | None = self
        while page is not None and page.group is not group:
            page = page.parent
        return page is not None

    def __post_init__(self) -> None:
        self.leaves = frozenset(self.group.shown())


def _with_number_of_others(diagram: Diagram, number: int) -> Diagram:
    """Say in the box for all further neighbors how many they are; known once all edges are seen."""
    if _OTHERS not in diagram.boxes:
        return diagram
    box = replace(diagram.boxes[_OTHERS], lines=(counted(number, "other part"),))
    return replace(diagram, boxes={**diagram.boxes, _OTHERS: box})


def _said_of_copies(graph: Graph, group: Group) -> list[str]:
    """Say what a fold stands for, and the shapes of its instances where they differ."""
    if not group.copies:
        return []
    parts = [replace(group, copies=()), *group.copies]
    names = [part.title for part in group.copies]
    said, counts = "equal", ""
    if group.varied:
        shapes = [_shape(graph, part) for part in parts]
        names = [f"{name} {shape}".rstrip() for name, shape in zip(names, shapes[1:], strict=True)]
        said = "wired in the same way, but differ in shape"
        said += f" (this one: {shapes[0]})" if shapes[0] else ""
        if len(names) > MOST_COPIES:
            ranked = Counter(shapes).most_common()
            most = ", ".join(f"{count:,} of {shape}" for shape, count in ranked[:MOST_COPIES])
            more = len(ranked) - MOST_COPIES
            rest = f" and {counted(more, 'other shape')}" if more > 0 else ""
            counts = f" There are {most}{rest}."
    shown = names if len(names) <= MOST_COPIES else [*names[:2], "...", names[-1]]
    others = "the other is" if len(names) == 1 else "the others are"
    return [
        f"It is drawn once for {group.instances} parts that are {said}; {others} {', '.join(shown)}."
        + counts
    ]


def _shape(graph: Graph, group: Group) -> str:
    """Return the type of what a part works on: the largest tensor that an op in it makes."""
    specs = [
        spec
        for name in group.leaves()
        if graph[name].kind is NodeKind.OP
        for spec in graph[name].outputs
        if spec.dtype != "resource"
    ]
    return str(max(specs, key=lambda s: (s.size or 0, len(s.shape or ())))) if specs else ""


__all__ = ["MAX_DEPTH", "Picture", "draw"]
