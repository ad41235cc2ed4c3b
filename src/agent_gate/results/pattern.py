"""Turns a regular expression into a matcher that reads each character once, whatever the pattern.

The pattern becomes a graph of states, and sets of states become cached transitions as the text is read, so no
pattern can make a search slow. Literals, `.`, classes, `\\d \\w \\s`, groups, `|`, `* + ?`,
`{m,n}`, `^` and `$` are understood; back references and look-around are not.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from agent_gate.errors import InvalidArgs

MAX_STATES, MAX_CACHED, MAX_REPEAT = 2000, 2000, 200
MAX_EFFORT = 10_000_000
"""States entered while no cached transition helped: a few seconds' worth."""

Test = Callable[[str], bool]
START, END = "start", "end"


@dataclass(slots=True, eq=False)
class State:
    """`test` consumes a character and goes to `next`; without one, `next` and `also` are entered at once."""

    test: Test | None = None
    edge: str = ""
    next: "State | None" = None
    also: "State | None" = None


@dataclass(slots=True)
class Piece:
    """Part of the graph: where it is entered, and the states that still lead nowhere."""

    enter: State
    open: list[State] = field(default_factory=list)


def refuse(why: str) -> InvalidArgs:
    return InvalidArgs(
        f"The pattern cannot be used: {why}. Simplify it, or escape special characters with \\."
    )


_ESCAPES: dict[str, Test] = {
    "d": str.isdigit,
    "D": lambda c: not c.isdigit(),
    "w": lambda c: c.isalnum() or c == "_",
    "W": lambda c: not (c.isalnum() or c == "_"),
    "s": str.isspace,
    "S": lambda c: not c.isspace(),
}
_CONTROL = {"n": "\n", "t": "\t", "r": "\r"}


def equals(letter: str, fold: bool) -> Test:
    wanted = letter.casefold()
    return (lambda c: c.casefold() == wanted) if fold else (lambda c: c == letter)


class Parser:
    """Recursive descent over the pattern; builds the graph as it goes."""

    def __init__(self, pattern: str, fold: bool) -> None:
        self.pattern, self.at, self.fold, self.states, self.depth = pattern, 0, fold, 0, 0

    def peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def take(self) -> str:
        letter = self.peek()
        if not letter:
            raise refuse("it ends too early")
        self.at += 1
        return letter

    def state(self, test: Test | None = None, edge: str = "") -> State:
        self.states += 1
        if self.states > MAX_STATES:
            raise refuse("it is too large")
        return State(test, edge)

    def parse(self) -> Piece:
        piece = self.choice()
        if self.peek():
            raise refuse(f"there is a stray {self.peek()} at position {self.at + 1}")
        return piece

    def choice(self) -> Piece:
        piece = self.sequence()
        while self.peek() == "|":
            self.at += 1
            other = self.sequence()
            fork = self.state()
            fork.next, fork.also = piece.enter, other.enter
            piece = Piece(fork, piece.open + other.open)
        return piece

    def sequence(self) -> Piece:
        first = self.state()
        piece = Piece(first, [first])
        while self.peek() and self.peek() not in "|)":
            piece = self.join(piece, self.repeated())
        return piece

    def join(self, first: Piece, second: Piece) -> Piece:
        for state in first.open:
            state.next = second.enter
        return Piece(first.enter, second.open)

    def repeated(self) -> Piece:
        begin = self.at
        piece = self.atom()
        finish = self.at
        while self.peek() and self.peek() in "*+?{":
            low, high = self.bounds()
            if self.peek() == "?":
                self.at += 1
            piece = self.times(piece, begin, finish, low, high)
            finish = self.at
        return piece

    def bounds(self) -> tuple[int, int | None]:
        symbol = self.take()
        if symbol != "{":
            return (1 if symbol == "+" else 0), (1 if symbol == "?" else None)
        inside = ""
        while (letter := self.take()) != "}":
            inside += letter
        low, comma, high = inside.partition(",")
        if (
            not low.isascii()
            or not (low or "0").isdigit()
            or (high and not (high.isascii() and high.isdigit()))
        ):
            raise refuse(f"{{{inside}}} is not a repetition; write \\{{ for a brace")
        least = int(low or 0)
        most = (int(high) if high else None) if comma else least
        if least > MAX_REPEAT or (most or 0) > MAX_REPEAT or (most is not None and most < least):
            raise refuse(f"a repetition counts up to {MAX_REPEAT}")
        return least, most

    def times(self, piece: Piece, begin: int, finish: int, low: int, high: int | None) -> Piece:
        """The piece `low` to `high` times; further copies are parsed again from the same text."""
        copies = [piece] + [self.again(begin, finish) for _ in range(max(low, high or 0, 1) - 1)]
        if high is None:
            copies[-1] = self.loop(copies[-1])
        first = self.state()
        result = Piece(first, [first])
        for place, copy in enumerate(copies):
            if high == 0:
                break
            result = self.join(result, self.optional(copy) if place >= low else copy)
        return result

    def again(self, begin: int, finish: int) -> Piece:
        resume, self.at = self.at, begin
        piece = self.atom()
        while self.at < finish:
            low, high = self.bounds()
            if self.peek() == "?" and self.at < finish:
                self.at += 1
            piece = self.times(piece, begin, self.at, low, high)
        self.at = resume
        return piece

    def loop(self, piece: Piece) -> Piece:
        fork = self.state()
        fork.also = piece.enter
        for state in piece.open:
            state.next = fork
        return Piece(piece.enter, [fork])

    def optional(self, piece: Piece) -> Piece:
        fork, skip = self.state(), self.state()
        fork.next, fork.also = piece.enter, skip
        return Piece(fork, [*piece.open, skip])

    def atom(self) -> Piece:
        letter = self.take()
        if letter == "(":
            return self.group()
        if letter in "^$":
            return self.single(edge=START if letter == "^" else END)
        if letter == ".":
            return self.single(lambda c: c != "\n")
        if letter == "[":
            return self.single(self.char_class())
        if letter == "\\":
            return self.single(self.escape())
        if letter in "*+?{":
            raise refuse(f"{letter} has nothing to repeat")
        return self.single(equals(letter, self.fold))

    def single(self, test: Test | None = None, edge: str = "") -> Piece:
        state = self.state(test, edge)
        return Piece(state, [state])

    def group(self) -> Piece:
        self.depth += 1
        if self.depth > 50:
            raise refuse("groups are nested too deeply")
        if self.peek() == "?":
            if self.pattern[self.at : self.at + 2] != "?:":
                raise refuse("only plain groups and (?:…) are understood")
            self.at += 2
        piece = self.choice()
        if self.take() != ")":
            raise refuse("a group is not closed")
        self.depth -= 1
        return piece

    def escape(self) -> Test:
        letter = self.take()
        if letter in _ESCAPES:
            return _ESCAPES[letter]
        if letter.isalnum() and letter not in _CONTROL:
            raise refuse(f"\\{letter} is not understood")
        return equals(_CONTROL.get(letter, letter), self.fold)

    def char_class(self) -> Test:
        negated = self.peek() == "^"
        self.at += negated
        tests: list[Test] = []
        while self.peek() != "]" or not tests:
            tests.append(self.member())
        self.at += 1
        return (
            (lambda c: not any(test(c) for test in tests))
            if negated
            else (lambda c: any(test(c) for test in tests))
        )

    def member(self) -> Test:
        low = self.take()
        if low == "\\":
            return self.escape()
        if self.peek() != "-" or self.pattern[self.at + 1 : self.at + 2] in ("]", ""):
            return equals(low, self.fold)
        self.at += 1
        high = self.take()
        if high < low:
            raise refuse(f"the range {low}-{high} is empty")
        if self.fold:
            return lambda c: low <= c <= high or low <= c.lower() <= high or low <= c.upper() <= high
        return lambda c: low <= c <= high


States = frozenset[State]


class Pattern:
    """A compiled pattern. `search(line)` takes time proportional to the line."""

    def __init__(self, pattern: str, *, ignore_case: bool = False) -> None:
        if len(pattern) > 500:
            raise refuse("it has more than 500 characters")
        piece = Parser(pattern, ignore_case).parse()
        self.goal = State()
        for state in piece.open:
            state.next = self.goal
        self.enter = piece.enter
        self.cache: dict[tuple[States, str, bool], States] = {}
        self.effort = 0
        self.begin = self.reach([self.enter], frozenset({START}))
        self.empty = self.reach([self.enter], frozenset({START, END}))

    def search(self, line: str) -> bool:
        return self.end(line) is not None

    def end(self, line: str) -> int | None:
        """Where the first match ends; None where there is none."""
        current = self.begin if line else self.empty
        last = len(line) - 1
        for at, letter in enumerate(line):
            if self.goal in current:
                return at
            current = self.step(current, letter, at == last)
        return len(line) if self.goal in current else None

    def step(self, current: States, letter: str, last: bool) -> States:
        found = self.cache.get((current, letter, last))
        if found is None:
            if len(self.cache) >= MAX_CACHED:
                self.cache.clear()
            found = self.move(current, letter, frozenset({END} if last else ()))
            self.cache[current, letter, last] = found
        return found

    def move(self, current: States, letter: str, edges: frozenset[str]) -> States:
        """Where the states lead by this letter, and the pattern's start again: it may match from anywhere."""
        self.effort += len(current)
        if self.effort > MAX_EFFORT:
            raise refuse("it would take too long to search so large a result for it")
        hits = [state.next for state in current if state.test and state.next and state.test(letter)]
        return self.reach([*hits, self.enter], edges)

    def reach(self, states: list[State], edges: frozenset[str]) -> States:
        """All states entered without reading a character; `edges` says whether a line begins or ends here."""
        found: set[State] = set()
        todo = list(states)
        while todo:
            state = todo.pop()
            if state in found or (state.edge and state.edge not in edges):
                continue
            found.add(state)
            if state.test is None:
                todo.extend(after for after in (state.next, state.also) if after)
        return frozenset(found)
