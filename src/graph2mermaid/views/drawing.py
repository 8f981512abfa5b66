"""How a graph becomes pictures: an overview, and a page for each part that it shows closed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from graph2mermaid.graph import Graph, Node, NodeKind
from graph2mermaid.mermaid.budget import (
    GITLAB_UNITS,
    READABLE_CHAIN,
    READABLE_NODES,
    fits,
    measure,
    readable,
)
from graph2mermaid.mermaid.build import FrameSpec, box_lines, build
from graph2mermaid.mermaid.diagram import Diagram
from graph2mermaid.mermaid.write import write
from graph2mermaid.passes.asides import without_asides
from graph2mermaid.passes.fold import Opened, group_node, open_within, page_graph
from graph2mermaid.passes.groups import MAX_CHILDREN, Group, group_tree
from graph2mermaid.passes.inline import MAX_DEPTH
from graph2mermaid.passes.tensors import with_tensor_nodes
from graph2mermaid.views.flat import Flat, counted, flatten, is_or_are, selections
from graph2mermaid.views.options import Options

MOST_COPIES = 6
"""More copies than this are not all named under a diagram."""

MAX_STUBS = 6
"""More neighbors than this are one box, so that a page is about its own part."""


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


def draw(graph: Graph, options: Options) -> Iterator[Picture]:
    """Yield the pictures of a graph: the overview first, then its parts, the nearest first.

    What `focus`, `from_` and `to` select comes before the overview. Functions that are called too
    deep inside others have pictures of their own at the end. Each picture is made when it is asked
    for.

    Raises:
        Graph2MermaidError: The options name what is not in the graph.
    """
    flat = flatten(graph, options)
    drawing = _Drawing(flat, options)
    drawings = [
        *(_Drawing(part, options, key, title) for key, title, part in selections(flat, options)),
        drawing,
    ]
    rest = [one.pictures() for one in drawings]
    firsts = [next(pictures) for pictures in rest]
    for number, picture in enumerate(firsts):
        others = tuple((other.title, other.key) for other in firsts[number + 1 :])
        yield replace(picture, parts=(*picture.parts, *others))
    for pictures in rest:
        yield from pictures
    queue = list(drawing.not_drawn)
    shown: set[str] = set()
    while queue:
        name = queue.pop(0)
        if name not in shown:
            shown.add(name)
            body = replace(graph.functions[name], functions=graph.functions)
            drawing = _Drawing(flatten(body, options), options, f"function:{name}")
            yield from drawing.pictures()
            queue += drawing.not_drawn


class _Drawing:
    """The pictures of one graph."""

    def __init__(
        self, flat: Flat, options: Options, key: str = "", title: str | None = None
    ) -> None:
        self._options = options
        self._key = key
        self._pages: dict[str, str] = {}
        self._inlined = flat.inlined
        self._left_out = flat.left_out
        self._graph = flat.graph
        most = MAX_CHILDREN if options.max_nodes is None else min(options.max_nodes, MAX_CHILDREN)
        self._tree = group_tree(flat.inlined, flat.graph, fold=options.fold, most=most)
        self._name = flat.name if title is None else title
        bodies = self._inlined.bodies
        self._frames = [FrameSpec(body.key, (body.title,), body.parent) for body in bodies.values()]

    @property
    def not_drawn(self) -> tuple[str, ...]:
        """The functions that are called here and have no frame."""
        return self._inlined.not_drawn

    def pictures(self) -> Iterator[Picture]:
        queue = deque([_Page(self._tree, None)])
        while queue:
            page = queue.popleft()
            opened, diagram = self._best(page)
            parts: list[tuple[str, str]] = []
            for group in opened.closed():
                page.units.update(dict.fromkeys(group.leaves(), group))
                key = self._full_key(group)
                same = group.signature if self._options.fold else ""
                shared = self._pages.setdefault(same or key, key)
                parts.append((self._title(group), shared))
                if shared == key:
                    queue.append(_Page(group, page))
            title = self._title(page.group) if page.parent else self._name
            parent = self._full_key(page.parent.group) if page.parent else None
            yield Picture(self._full_key(page.group), title, diagram, tuple(parts), parent)

    def _full_key(self, group: Group) -> str:
        return f"{self._key}{group.key}"

    def _title(self, group: Group) -> str:
        return group.body.title if group.body else group.title

    def _best(self, page: _Page) -> tuple[Opened, Diagram]:
        diagrams: dict[frozenset[str], Diagram] = {}

        def diagram(opened: Opened) -> Diagram:
            if opened.open not in diagrams:
                diagrams[opened.open] = self._diagram(page, opened)
            return diagrams[opened.open]

        def good(opened: Opened) -> bool:
            if not self._small(diagram(opened)):
                return False
            text = write(diagram(opened))
            wanted = self._options.host != "gitlab" or measure(text).units <= GITLAB_UNITS
            return wanted and fits(text)

        size = sum(1 for _ in page.group.leaves())
        room = READABLE_CHAIN if size <= READABLE_CHAIN else READABLE_NODES
        most = self._options.max_nodes
        depth = self._options.depth if page.parent is None else None
        eager = most is not None and most > READABLE_NODES
        opened = open_within(page.group, most or room, good, depth=depth, eager=eager)
        return opened, diagram(opened)

    def _small(self, diagram: Diagram) -> bool:
        """Tell whether a page has as few nodes as asked for, or is one that a person reads."""
        most = self._options.max_nodes
        if most is None:
            return readable(diagram)
        own = sum(not name.startswith("stub:") for name in diagram.boxes)
        return own <= most and (most > READABLE_NODES or readable(diagram))

    def _diagram(self, page: _Page, opened: Opened) -> Diagram:
        place: dict[str, Node] = {}
        for group in opened.closed():
            node = group_node(self._graph, group)
            place.update(dict.fromkeys(group.leaves(), node))
        graph = page_graph(self._graph, opened, place, self._outside(page))
        roles = {f"group:{group.key}": group.role for group in opened.closed() if group.role}
        graph, beside = without_asides(graph, roles) if roles else (graph, [])
        home = self._home(opened)
        if self._options.tensors == "nodes":
            graph = with_tensor_nodes(graph)
        left_out = list(self._left_out) if page.parent is None else []
        closed = opened.closed()
        if closed:
            hidden = sum(1 for group in closed for _ in group.leaves())
            left_out.append(
                f"{counted(hidden, 'node')} {is_or_are(hidden)} inside "
                f"{counted(len(closed), 'closed group')}."
            )
        left_out += _said_of_copies(page.group)
        left_out += beside
        return build(
            graph,
            title=self._title(page.group) if page.parent else self._name,
            frames=self._frames,
            home=home,
            names=self._options.level == "ops",
            by_device=self._options.color == "device",
            direction=self._options.direction,
            left_out=left_out,
        )

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

    def _outside(self, page: _Page) -> Callable[[str], Node]:
        """Return the function that names the page on the other side of the border."""
        stubs: dict[str, Node] = {}

        def stub(name: str) -> Node:
            above = page.parent
            while above is not None:
                if name in above.leaves:
                    break
                above = above.parent
            group = above.units.get(name) if above else None
            key = group.key if group else name
            if key not in stubs and len(stubs) >= MAX_STUBS:
                return Node("stub:more", "stub", NodeKind.ELIDED, label="other parts")
            if key not in stubs:
                node = self._graph[name]
                label = self._title(group) if group else next(iter(box_lines(node)))
                stubs[key] = Node(f"stub:{key}", "stub", NodeKind.ELIDED, label=label)
            return stubs[key]

        return stub


@dataclass
class _Page:
    group: Group
    parent: _Page | None
    units: dict[str, Group] = field(default_factory=dict)
    """For each node inside a closed group of the page, that group."""
    leaves: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.leaves = frozenset(self.group.leaves())


def _said_of_copies(group: Group) -> list[str]:
    """Say what a fold stands for."""
    if not group.copies:
        return []
    names = [copy.title for copy in group.copies]
    shown = names if len(names) <= MOST_COPIES else [*names[:2], "...", names[-1]]
    alike = "wired in the same way; only shapes differ" if group.varied else "equal"
    return [
        f"It is drawn once for {group.instances} parts that are {alike}; the others are {', '.join(shown)}."
    ]


__all__ = ["MAX_DEPTH", "Picture", "draw"]
