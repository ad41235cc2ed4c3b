"""`python -m bench`: what a governed call costs on this machine, beside the limit and beside others.

CPU per call is that of the whole process tree, with the program on one core and load and upstream on another.
Compare ratios within one run; wall-clock figures depend on who else uses the machine.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from bench import scenarios
from bench.subjects import RAW, SDK

Found = dict[str, Any]


def table(found: Mapping[str, Any], others: Mapping[str, Any]) -> str:
    """One line per kind of call and number of connections."""
    lines = [
        "| call | connections | CPU µs | calls/s | p50 ms | p99 ms | CPU ÷ raw proxy | SDK ÷ CPU |",
        "|---|---|---|---|---|---|---|---|",
    ]
    raw, sdk = found[RAW.name], found[SDK.name]
    for kind, at in {**found, **others}.items():
        if isinstance(at, str):
            lines.append(f"| {kind} | {at} |||||||")
            continue
        for connections, got in at.items():
            cpu = got["cpu_us"]
            lines.append(
                f"| {kind} | {connections} | {cpu:.0f} | {got['calls_per_second']:.0f} | {got['p50_ms']:.2f} | "
                f"{got['p99_ms']:.2f} | {cpu / raw[connections]['cpu_us']:.2f} | "
                f"{sdk[connections]['cpu_us'] / cpu:.1f} |"
            )
    return "\n".join(lines)


def small(title: str, found: Mapping[str, Any]) -> str:
    return f"{title}: " + ", ".join(f"{name} {value}" for name, value in found.items())


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "only",
        nargs="*",
        help="calls, credentials, stores, workers, several, single, hosts, lists, start, many, large, endurance, parts; all by default",
    )
    parser.add_argument("--connections", default="1,16,64", help="numbers of connections, with commas")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one measurement")
    parser.add_argument("--rounds", type=int, default=3, help="medians are of this many rounds")
    parser.add_argument("--endurance", type=float, default=30.0, help="seconds at 1,000 calls per second")
    parser.add_argument(
        "--peers", action="store_true", help="install and measure FastMCP, mcp-proxy and ContextForge too"
    )
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    return parser.parse_args()


def main() -> None:
    wanted = arguments()
    connections = [int(n) for n in wanted.connections.split(",")]
    parts: dict[str, Callable[[], Found]] = {
        "calls": lambda: scenarios.calls(connections, wanted.seconds, wanted.rounds),
        "credentials": lambda: scenarios.credentials(wanted.seconds, wanted.rounds),
        "stores": lambda: scenarios.stores(wanted.seconds, wanted.rounds),
        "workers": lambda: scenarios.workers(wanted.seconds, wanted.rounds),
        "several": lambda: scenarios.several(wanted.seconds),
        "single": lambda: scenarios.single(connections, wanted.seconds),
        "hosts": lambda: scenarios.hosts(wanted.seconds, wanted.rounds),
        "lists": lambda: scenarios.lists(wanted.seconds),
        "start": scenarios.start,
        "many": lambda: scenarios.many(wanted.seconds),
        "large": scenarios.large,
        "endurance": lambda: scenarios.endurance(wanted.endurance),
        "parts": scenarios.parts,
    }
    unknown = set(wanted.only) - parts.keys()
    if unknown:
        sys.exit(
            f"There is no measurement called {', '.join(sorted(unknown))}; there are {', '.join(parts)}."
        )
    found: dict[str, Found] = {}
    for name in wanted.only or parts:
        print(f"measuring {name} …", file=sys.stderr)
        found[name] = parts[name]()
    if wanted.peers:
        found["peers"] = scenarios.peers(connections, wanted.seconds)
    if wanted.json:
        print(json.dumps(found, indent=2))
        return
    if "calls" in found:
        print(table(found["calls"], found.get("peers", {})))
    for name, values in found.items():
        if name == "parts":
            print(*values.values(), sep="\n")
        elif name not in ("calls", "peers"):
            print(small(name, values))


if __name__ == "__main__":
    main()
