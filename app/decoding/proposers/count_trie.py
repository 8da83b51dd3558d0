"""How often each run of at most so many tokens stands in some texts, and how it mostly goes on.

Source: SuffixDecoding, Oliaro et al. 2024 (arXiv 2411.04975): a trie of all suffixes, cut at a
depth, with a count in every node. A suffix that no other shares is not spelled out: its node, a
*lone* one, points into its text, so that memory grows with the texts and not with their depth.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

NODE_BYTES = 310
"""Memory of a node and of its place in its parent, measured; lone ones take less."""


class Node:
    """A run of tokens that stands in the texts."""

    __slots__ = ("best", "children", "count", "place", "text")

    def __init__(self, text: Sequence[int] | None, place: int) -> None:
        self.count = 1
        self.children: dict[int, Node] = {}
        """What follows the run, in the order in which it was last counted."""
        self.best = -1
        """The commonest token that follows; of equals the one that was counted last."""
        self.text = text
        """The only text with this run, while the node is a lone one."""
        self.place = place
        """Where in that text the run goes on."""

    def count_child(self, token: int, child: Node) -> None:
        """Takes in that a child was counted."""
        self.children.pop(token, None)
        self.children[token] = child
        if self.best < 0 or child.count >= self.children[self.best].count:
            self.best = token

    def uncount_child(self, token: int) -> Node:
        """Takes one off a child's count, and the child away where nothing is left."""
        child = self.children[token]
        child.count -= 1
        if not child.count:
            del self.children[token]
        if token == self.best:
            commonest = max((one.count for one in self.children.values()), default=0)
            latest = (t for t, one in reversed(self.children.items()) if one.count == commonest)
            self.best = next(latest, -1)
        return child

    def lineage(self) -> int:
        """How many nodes there are of a run that stood in one text only: it and what follows it."""
        count, node = 1, self
        while node.children:
            (node,) = node.children.values()
            count += 1
        return count


@dataclass(frozen=True, slots=True)
class Spot:
    """The end of a run in the trie: a node and, within a lone one, so many tokens ahead."""

    node: Node
    length: int
    """Tokens of the run."""
    ahead: int = 0


@dataclass(frozen=True, slots=True)
class Continuation:
    """How a run goes on: tokens, and the sum of their estimated probabilities."""

    tokens: tuple[int, ...] = ()
    score: float = 0.0
    matched: int = 0
    """Tokens of the run that it follows."""


class CountTrie:
    """The counts of all runs of at most `depth` tokens of the texts that were added."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.root = Node(None, 0)
        self.nodes = 0
        """Runs that are spelled out; memory goes by them."""

    @property
    def byte_count(self) -> int:
        """The memory that it takes, at most."""
        return self.nodes * NODE_BYTES

    def add(self, tokens: Iterable[int]) -> None:
        """Counts a whole text."""
        text = GrowingText(self)
        for token in tokens:
            text.append(token)

    def remove(self, tokens: Sequence[int]) -> None:
        """Takes off what was counted of a text that was added, the oldest of all there are.

        The trie is then as if the text had never been there.
        """
        for start in range(len(tokens)):
            node = self.root
            for token in tokens[start : start + self.depth]:
                node = node.uncount_child(token)
                if not node.count:
                    self.nodes -= node.lineage()
                    break

    def find(self, run: Sequence[int]) -> Spot | None:
        """Where a run ends in the trie; None for one that is in no text."""
        node = self.root
        for place, token in enumerate(run):
            if node.text is not None:
                rest = list(run[place:])
                there = list(node.text[node.place : node.place + len(rest)])
                return Spot(node, len(run), len(rest)) if there == rest else None
            child = node.children.get(token)
            if child is None:
                return None
            node = child
        return Spot(node, len(run))

    def ends_of(self, text: Sequence[int]) -> Iterator[Spot]:
        """The end of the text in the trie: its last token, its last two, while they are there."""
        for length in range(1, min(self.depth, len(text) + 1)):
            spot = self.find(text[-length:])
            if spot is None:
                return
            yield spot

    def going_on(self, spot: Spot, *, limit: int, least: float) -> Continuation:
        """The likeliest tokens behind a run, greedily: at most `limit`, while the estimated
        probability of the whole path is at least `least`.
        """
        node, length = spot.node, spot.length
        tokens: list[int] = []
        counted = 0  # summed before it is divided, so that equal scores are equal
        while len(tokens) < limit and node.text is None and node.children:
            token, child = node.best, node.children[node.best]
            # The shares of all steps, multiplied: all counts but the first and the last cancel out.
            if child.count / spot.node.count < least:
                break
            tokens.append(token)
            counted += child.count
            node, length = child, length + 1
        if node.text is not None:
            start = node.place + (spot.ahead if node is spot.node else 0)
            most = max(min(limit - len(tokens), self.depth - length), 0)
            rest = node.text[start : start + most]
            tokens += rest
            counted += len(rest)
        return Continuation(tuple(tokens), counted / spot.node.count, spot.length)

    def best_of(
        self, spots: Iterable[Spot], *, limit: int, factor: float, offset: float, least: float
    ) -> Continuation:
        """The continuation of the highest score, of equals that behind the longest run.

        Behind a run of m tokens it has at most m * factor + offset tokens.
        """
        best = Continuation()
        for spot in spots:
            # So that 0.29 * 100 is 29, whatever its last digit.
            most = int(spot.length * factor + offset + 1e-6)
            found = self.going_on(spot, limit=min(limit, most), least=least)
            if found.score >= best.score:
                best = found
        return best


class GrowingText:
    """A text that is counted token by token; what was counted knows where the text stands."""

    def __init__(self, trie: CountTrie) -> None:
        self._trie = trie
        self.tokens: list[int] = []
        self._ends: deque[Node] = deque()
        """The nodes of the text's last tokens: of the longest suffix first, of one token last."""

    def append(self, token: int) -> None:
        """Counts the runs that end with this token."""
        self.tokens.append(token)
        self._ends.append(self._trie.root)
        if len(self._ends) > self._trie.depth:
            self._ends.popleft()
        for place, node in enumerate(self._ends):
            if node.text is None:  # a lone node's only suffix is this text's own: it goes on
                self._ends[place] = self._step(node, token, len(self._ends) - place)

    def ends(self) -> Iterator[Spot]:
        """The end of the text in its trie: its last token, its last two, while they stood before.

        Only for a text that was added last: others may have met its nodes.
        """
        for length, node in enumerate(reversed(self._ends), 1):
            if node.text is not None:  # only here
                return
            yield Spot(node, length)

    def _step(self, node: Node, token: int, length: int) -> Node:
        """The node of a suffix that grew to this length with this token."""
        child = node.children.get(token)
        if child is None:
            child = Node(self.tokens, len(self.tokens))
            self._trie.nodes += 1
        else:
            if child.text is not None:
                self._spell_out(child, child.text, length)
            child.count += 1
        node.count_child(token, child)
        return child

    def _spell_out(self, node: Node, text: Sequence[int], length: int) -> None:
        """Another suffix comes to a lone node: what follows there gets a lone node of its own."""
        node.text = None
        if length == self._trie.depth or node.place >= len(text):
            return
        token = text[node.place]
        child = Node(text, node.place + 1)
        self._trie.nodes += 1
        node.count_child(token, child)
        if text is self.tokens:
            place = node.place - length - (len(text) - len(self._ends))
            if place >= 0:  # the suffix that was alone here still grows
                self._ends[place] = child
