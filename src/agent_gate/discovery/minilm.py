"""Turns sentences into unit vectors with the all-MiniLM-L6-v2 weights, on numpy alone.

The network is small enough (six layers of 384) that a few matrix products replace a deep-learning runtime.
Weights are mapped from the installed file, not copied.
"""

import re
import unicodedata
from collections.abc import Sequence
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

LAYERS, HEADS, WIDTH, LONGEST, BATCH = 6, 12, 384, 128, 16

Array = NDArray[np.float32]

_PIECE = re.compile(r"[^\W_]+|[^\w\s]|_")
_IDEOGRAPH = re.compile("([\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])")


class MiniLM:
    """The encoder. Vectors are remembered by text, so a catalog change embeds only what is new."""

    def __init__(self, folder: Path) -> None:
        self.weights = _map(folder / "model.safetensors")
        lines = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
        self.vocabulary = {word: number for number, word in enumerate(lines)}
        self._known: dict[bytes, Array] = {}

    def place(self, texts: Sequence[str]) -> "Placed":
        keys = [sha256(text.encode("utf-8", "replace")).digest() for text in texts]
        missing = sorted(
            {(len(text), key, text) for key, text in zip(keys, texts, strict=True) if key not in self._known}
        )
        waiting = iter(missing)
        while batch := list(islice(waiting, BATCH)):
            vectors = self.embed([text for _, _, text in batch])
            self._known.update({key: vector for (_, key, _), vector in zip(batch, vectors, strict=True)})
        rows = [self._known[key] for key in keys]
        return Placed(self, np.stack(rows) if rows else np.zeros((0, WIDTH), np.float32))

    def embed(self, texts: Sequence[str]) -> Array:
        """One unit vector per text."""
        rows = [self._tokens(text) for text in texts]
        width = max(map(len, rows))
        ids = np.zeros((len(rows), width), np.int64)
        mask = np.zeros((len(rows), width), np.float32)
        for at, row in enumerate(rows):
            ids[at, : len(row)], mask[at, : len(row)] = row, 1.0
        hidden = self._encode(ids, mask)
        pooled = (hidden * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return np.asarray(pooled / np.linalg.norm(pooled, axis=1, keepdims=True), np.float32)

    def _encode(self, ids: NDArray[np.int64], mask: Array) -> Array:
        w = self.weights
        hidden = w["embeddings.word_embeddings.weight"][ids]
        hidden = hidden + w["embeddings.position_embeddings.weight"][: ids.shape[1]]
        hidden = self._norm(hidden + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        bias = ((1.0 - mask) * np.float32(-1e9))[:, None, None, :]
        for layer in range(LAYERS):
            at = f"encoder.layer.{layer}"
            mixed = self._dense(
                self._attend(hidden, bias, f"{at}.attention.self"), f"{at}.attention.output.dense"
            )
            hidden = self._norm(hidden + mixed, f"{at}.attention.output.LayerNorm")
            inner = _gelu(self._dense(hidden, f"{at}.intermediate.dense"))
            hidden = self._norm(hidden + self._dense(inner, f"{at}.output.dense"), f"{at}.output.LayerNorm")
        return hidden

    def _attend(self, hidden: Array, bias: Array, at: str) -> Array:
        size, length, _ = hidden.shape
        shape = (size, length, HEADS, WIDTH // HEADS)
        query, key, value = (
            self._dense(hidden, f"{at}.{part}").reshape(shape).transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(WIDTH // HEADS)) + bias
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = (weights / weights.sum(axis=-1, keepdims=True)) @ value
        return np.asarray(mixed.transpose(0, 2, 1, 3).reshape(size, length, WIDTH))

    def _dense(self, value: Array, at: str) -> Array:
        return np.asarray(value @ self.weights[f"{at}.weight"].T + self.weights[f"{at}.bias"])

    def _norm(self, value: Array, at: str) -> Array:
        centred = value - value.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + np.float32(1e-12))
        return np.asarray(centred / spread * self.weights[f"{at}.weight"] + self.weights[f"{at}.bias"])

    def _tokens(self, text: str) -> list[int]:
        plain = unicodedata.normalize("NFD", text[: LONGEST * 16].lower())
        plain = "".join(letter for letter in plain if unicodedata.category(letter) != "Mn")
        found = [self.vocabulary["[CLS]"]]
        for word in _PIECE.findall(_IDEOGRAPH.sub(r" \1 ", plain)):
            found.extend(self._pieces(word))
            if len(found) >= LONGEST - 1:
                break
        return [*found[: LONGEST - 1], self.vocabulary["[SEP]"]]

    def _pieces(self, word: str) -> list[int]:
        """The longest known pieces from the left; a word that cannot be cut so is unknown as a whole."""
        pieces, start = [], 0
        while start < len(word):
            lead = "##" if start else ""
            stops = (
                stop for stop in range(len(word), start, -1) if lead + word[start:stop] in self.vocabulary
            )
            stop = next(stops, None)
            if stop is None or len(word) > 100:
                return [self.vocabulary["[UNK]"]]
            pieces.append(self.vocabulary[lead + word[start:stop]])
            start = stop
        return pieces


class Placed:
    """Embedded texts, to be compared with queries."""

    def __init__(self, encoder: MiniLM, vectors: Array) -> None:
        self._encoder, self._vectors = encoder, vectors

    def similarities(self, query: str) -> list[float]:
        values: list[float] = (self._vectors @ self._encoder.embed([query])[0]).tolist()
        return values


def _gelu(value: Array) -> Array:
    """The exact form, with the error function by a rational approximation (below 2e-7 off)."""
    scaled = np.abs(value) * np.float32(0.7071067811865476)
    t = 1.0 / (1.0 + np.float32(0.3275911) * scaled)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    error = 1.0 - series * np.exp(-scaled * scaled)
    return np.asarray(0.5 * value * (1.0 + np.sign(value) * error), np.float32)


def _map(path: Path) -> dict[str, Array]:
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header: dict[str, Any] = msgspec.json.decode(file.read(size))
    body = np.memmap(path, np.uint8, "r", offset=8 + size)
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        start, stop = entry["data_offsets"]
        tensors[name] = body[start:stop].view(np.float32).reshape(entry["shape"])
    return tensors
