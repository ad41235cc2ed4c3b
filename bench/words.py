"""Writes the tables of words that the ranking ships with: `python -m bench.words --related FILE --vectors FILE --corpus FILE`.

Both come from the encoder of the `semantic` extra. `--related` needs nothing else. `--vectors` also needs a
corpus, a text a line, and takes minutes; any plain English prose will do, ours is described beside the table.
`--more FILE`, with both tables there, adds words that the encoder's own list lacks, one a line.
"""

import argparse
import struct
import zlib
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gate.discovery.semantic import MODEL_PACKAGE, load
from agent_gate.discovery.senses import WIDTH
from agent_gate.discovery.stemmer import stem
from agent_gate.discovery.text import STOP, terms

Matrix = NDArray[np.float32]

HOLD, PULL, ROUNDS, BLOCK = 1.0, 0.5, 40, 16
"""How firmly a word is held to its own vector, how much of that it starts from, the steps of the fit, and columns at a time."""


def known_words() -> list[str]:
    """The encoder's own word list, most common first."""
    module = __import__(MODEL_PACKAGE)
    listed = (Path(str(module.__file__)).parent / "model" / "vocab.txt").read_text().splitlines()
    return [word for word in listed if word.isascii() and word.isalpha() and len(word) > 2]


def roots(known: list[str]) -> dict[str, int]:
    order: dict[str, int] = {}
    for word in known:
        order.setdefault(stem(word), len(order))
    return order


def write_related(path: Path) -> None:
    """Neighbours of each of the encoder's words, as the thesaurus reads them."""
    encoder: Any = load()
    known = known_words()
    path.write_bytes(neighbours(known, encoder.place(known)._vectors, roots(known)))


def neighbours(
    known: list[str], vectors: Matrix, order: dict[str, int], most: int = 16, floor: float = 0.46
) -> bytes:
    near: dict[str, dict[str, float]] = defaultdict(dict)
    useful = [at for at, word in enumerate(known) if word not in STOP]
    candidates = vectors[useful]
    for at in useful:
        likeness = candidates @ vectors[at]
        nearest = np.argpartition(-likeness, most * 3)[: most * 3]
        for place in nearest[np.argsort(-likeness[nearest], kind="stable")]:
            other = stem(known[useful[int(place)]])
            if other != stem(known[at]) and likeness[place] >= floor:
                row = near[stem(known[at])]
                row[other] = max(row.get(other, 0.0), float(likeness[place]))
    body = bytearray()
    for root in order:
        row_items = sorted(near[root].items(), key=lambda item: (-item[1], item[0]))[:most]
        body.append(len(row_items))
        for other, value in row_items:
            body += struct.pack("<HB", order[other], min(255, round(value * 255)))
    text = "\n".join(order).encode()
    return zlib.compress(struct.pack("<I", len(text)) + text + bytes(body), 9)


def listed(related: Path) -> dict[str, int]:
    """The words of a table that is there, in its order."""
    raw = zlib.decompress(related.read_bytes())
    (size,) = struct.unpack_from("<I", raw)
    return {word: at for at, word in enumerate(raw[4 : 4 + size].decode().split("\n"))}


def own_rows(known: list[str], vectors: Matrix, order: dict[str, int]) -> Matrix:
    """For each root the mean of what the encoder makes of its words."""
    rows = np.zeros((len(order), vectors.shape[1]), np.float32)
    counts = np.zeros(len(order), np.float32)
    for word, vector in zip(known, vectors, strict=True):
        rows[order[stem(word)]] += vector
        counts[order[stem(word)]] += 1
    rows /= np.maximum(counts, 1)[:, None]
    return rows


def add_words(related: Path, vectors: Path, more: list[str]) -> None:
    """Both tables with further words behind those they have.

    Their rows follow from the encoder's own vectors by the linear map that comes nearest for the words that were
    fitted to the corpus; those stay as they are.
    """
    encoder: Any = load()
    known = [*known_words(), *more]
    found = encoder.place(known)._vectors
    order = listed(related)
    fitted = len(order)
    for word in known:
        order.setdefault(stem(word), len(order))
    old = np.frombuffer(zlib.decompress(vectors.read_bytes()), np.int8).reshape(fitted, WIDTH)
    own = own_rows(known, found, order)
    own -= own[:fitted].mean(0)
    lean = own[:fitted].T @ own[:fitted] + np.eye(own.shape[1], dtype=np.float32)
    turn = np.linalg.solve(lean, own[:fitted].T @ old.astype(np.float32))
    added = np.clip(np.round(own[fitted:] @ turn), -127, 127).astype(np.int8)
    related.write_bytes(neighbours(known, found, order))
    vectors.write_bytes(zlib.compress(np.concatenate([old, added]).tobytes(), 9))


class Bags:
    """Texts as bags of known words, to be multiplied from either side."""

    def __init__(self, texts: list[str], order: dict[str, int]) -> None:
        found = [[order[each] for each in terms(text) if each in order] for text in texts]
        self.used = [at for at, bag in enumerate(found) if bag]
        bags = [found[at] for at in self.used]
        sizes = np.array([len(bag) for bag in bags])
        self.words = np.concatenate([np.array(bag) for bag in bags])
        self.texts = np.repeat(np.arange(len(bags)), sizes)
        self.weights = (1.0 / sizes**0.75)[self.texts].astype(np.float32)
        self.by_word = np.argsort(self.words, kind="stable")

    def sums(self, table: Matrix) -> Matrix:
        """For each text the weighed sum of its words' rows."""
        starts = np.flatnonzero(np.diff(self.texts, prepend=-1))
        summed: Matrix = np.add.reduceat(table[self.words] * self.weights[:, None], starts)
        return summed

    def spread(self, values: Matrix, size: int) -> Matrix:
        """For each word the weighed sum over the texts that have it."""
        words = self.words[self.by_word]
        starts = np.flatnonzero(np.diff(words, prepend=-1))
        rows = values[self.texts[self.by_word]] * self.weights[self.by_word][:, None]
        result = np.zeros((size, values.shape[1]), np.float32)
        result[words[starts]] = np.add.reduceat(rows, starts)
        return result


def fit(bags: Bags, target: Matrix, start: Matrix) -> Matrix:
    """Rows whose sums come near the targets, held to the start: least squares by conjugate gradients."""
    change = np.zeros_like(start)
    residue = bags.spread(target - bags.sums(start), len(start))
    direction, error = residue.copy(), (residue * residue).sum(0)
    for _ in range(ROUNDS):
        image = bags.spread(bags.sums(direction), len(start)) + HOLD * direction
        step = error / (direction * image).sum(0)
        change += step * direction
        residue -= step * image
        before, error = error, (residue * residue).sum(0)
        direction = residue + (error / before) * direction
    return start + change


def write_vectors(path: Path, corpus: Path) -> None:
    """A row of small integers for each word, in the order of the related words."""
    encoder: Any = load()
    known = known_words()
    order = roots(known)
    start = own_rows(known, encoder.place(known)._vectors, order)
    texts = corpus.read_text(encoding="utf-8").splitlines()
    bags = Bags(texts, order)
    target = encoder.place(texts)._vectors
    target, start = (target - target.mean(0))[bags.used], PULL * (start - start.mean(0))
    blocks = [slice(at, at + BLOCK) for at in range(0, start.shape[1], BLOCK)]
    rows = np.concatenate([fit(bags, target[:, at], start[:, at]) for at in blocks], axis=1)
    commonness = 1 / np.sqrt(np.arange(len(order)) + 50)
    axes = np.linalg.svd(rows * commonness[:, None], full_matrices=False)[2]
    narrow = rows @ axes[:WIDTH].T
    scale = np.percentile(np.abs(narrow), 99.9) / 127
    path.write_bytes(zlib.compress(np.clip(np.round(narrow / scale), -127, 127).astype(np.int8).tobytes(), 9))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--related", type=Path)
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--more", type=Path)
    options = parser.parse_args()
    if options.more:
        if not (options.related and options.vectors):
            parser.error("--more needs both tables, as --related FILE and --vectors FILE")
        add_words(options.related, options.vectors, options.more.read_text().split())
        return
    if options.vectors and not options.corpus:
        parser.error("--vectors needs --corpus FILE, a text a line")
    if options.related:
        write_related(options.related)
    if options.vectors:
        write_vectors(options.vectors, options.corpus)


if __name__ == "__main__":
    main()
