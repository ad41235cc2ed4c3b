"""Which modules of the operator's page import which, so that a browser asks for all of them at once."""

import posixpath
import re
from collections.abc import Mapping

IMPORT = re.compile(rb'^(?:import|export) (?:[^"\n]* )?"(\.[^"]+)";', re.MULTILINE)
PAGES = "/pages/"


def imports_of(path: str, source: bytes) -> list[str]:
    here = posixpath.dirname(path)
    return [posixpath.normpath(posixpath.join(here, name.decode())) for name in IMPORT.findall(source)]


class Modules:
    """The scripts among `files`, each with what it imports."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._imports = {path: imports_of(path, body) for path, body in files.items() if path.endswith(".js")}

    def needed_by(self, *scripts: str) -> list[str]:
        """These scripts and all that must be there before they run: what they import, and what that imports."""
        found = dict.fromkeys(scripts)
        waiting = [*scripts]
        while waiting:
            fresh = [one for one in self._imports.get(waiting.pop(), ()) if one not in found]
            found |= dict.fromkeys(fresh)
            waiting += fresh
        return [*found]

    def needed_by_pages(self, frame: list[str]) -> dict[str, list[str]]:
        """What each page needs beside the frame around it."""
        pages = [path for path in self._imports if path.startswith(PAGES)]
        names = [path.removeprefix(PAGES).removesuffix(".js") for path in pages]
        return {
            name: [one for one in self.needed_by(path) if one not in frame]
            for name, path in zip(names, pages, strict=True)
        }
