"""The one browser process behind all sessions: started on first use, replaced when it died, gone with the gateway."""

import asyncio
import contextlib
import logging
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_gate.errors import DependencyUnavailable
from agent_gate.sources.browser.finding import NO_EXTRA, find_browser, why_no_sandbox
from agent_gate.sources.browser.settings import BrowserSettings

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Playwright

log = logging.getLogger("agent_gate.sources.browser")
START_SECONDS = 30.0
CLOSE_SECONDS = 5.0
PAGE = os.sysconf("SC_PAGE_SIZE")
KEPT_VARIABLES = (
    "HOME",
    "LANG",
    "LANGUAGE",
    "PATH",
    "TZ",
    "USER",
    "LOGNAME",
    "FONTCONFIG_PATH",
    "DBUS_SESSION_BUS_ADDRESS",
)
ARGUMENTS = (
    "--disable-quic",
    # Without this, WebRTC asks its servers over UDP, past every proxy. A headless shell knows only the second name.
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-background-networking",
    "--no-default-browser-check",
)


def load_playwright() -> Any:
    """Playwright's entry, imported when a browser is wanted: it takes a third of a second."""
    try:
        from playwright.async_api import async_playwright
    except ImportError:
        raise DependencyUnavailable(NO_EXTRA) from None
    return async_playwright


def page_errors() -> tuple[type[Exception], ...]:
    """What Playwright raises where a page, or the browser, cannot do what it is told; nothing while it is not loaded."""
    loaded = sys.modules.get("playwright.async_api")
    return () if loaded is None else (loaded.Error,)


def environment(temporary: Path) -> dict[str, str]:
    """What the browser and its driver see: nothing that could hold a secret of the gateway."""
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    return {**kept, "TMPDIR": str(temporary), "CI": "1"}


@contextlib.contextmanager
def driver_environment(temporary: Path) -> Any:
    """Playwright gives its driver all of our environment; while one is started, it gets what the browser gets."""
    from playwright._impl import transport

    usual: Callable[[], dict[str, str]] = transport.get_driver_env  # type: ignore[attr-defined]

    def small() -> dict[str, str]:
        own = {name: value for name, value in usual().items() if name.startswith("PW_")}
        return {**own, **environment(temporary)}

    transport.get_driver_env = small  # type: ignore[attr-defined]
    try:
        yield
    finally:
        transport.get_driver_env = usual  # type: ignore[attr-defined]


class BrowserEngine:
    """Owns the driver and the browser. `lost` is called with the reason when the browser ends by itself."""

    def __init__(self, settings: BrowserSettings, folder: Path, lost: Callable[[str], None]) -> None:
        self._settings, self._folder, self._lost = settings, folder, lost
        self._manager: Any = None
        self._driver: Playwright | None = None
        self._browser: Browser | None = None
        self._starting = asyncio.Lock()
        self._stopping = False
        self._temporary: Path | None = None
        self.warning = ""

    def check(self) -> None:
        """Raise with what to do where no browser can be started here."""
        load_playwright()
        find_browser(self._settings.executable)

    def sweep(self) -> None:
        """Remove what a gateway that was killed left behind."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def megabytes(self) -> int:
        """What the browser and its driver have in memory, as far as the system tells."""
        process = driver_process(self._manager)
        return memory_below(process.pid) >> 20 if process is not None else 0

    @property
    def running(self) -> bool:
        return self._browser is not None and self._browser.is_connected()

    async def ensure_browser(self) -> "Browser":
        """The browser, started where it does not run."""
        async with self._starting:
            if self._browser is not None and self._browser.is_connected():
                return self._browser
            await self._close()
            try:
                async with asyncio.timeout(START_SECONDS):
                    self._browser = await self._start()
            except TimeoutError:
                await self._close()
                raise DependencyUnavailable(f"The browser did not start within {START_SECONDS:g} s") from None
            self._browser.on("disconnected", self._disconnected)
            return self._browser

    async def _start(self) -> "Browser":
        playwright = load_playwright()
        executable, why = find_browser(self._settings.executable), why_no_sandbox()
        self.warning = f"Pages run without Chromium's sandbox: {why}" if why else ""
        if self.warning:
            log.warning("The browser runs without its sandbox", extra={"why": why})
        self._temporary = own_folder(self._folder)
        os.environ.pop("PLAYWRIGHT_DISABLE_FORCED_CHROMIUM_PROXIED_LOOPBACK", None)
        with driver_environment(self._temporary):
            self._manager = playwright()
            self._driver = await self._manager.start()
        try:
            return await self._driver.chromium.launch(
                executable_path=executable,
                headless=True,
                chromium_sandbox=not why,
                args=list(ARGUMENTS),
                # Its own flag opens every window that a page asks for; Chromium alone wants a click for each.
                ignore_default_args=["--disable-popup-blocking"],
                downloads_path=self._temporary / "downloads",
                env={**environment(self._temporary)},
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
                timeout=START_SECONDS * 1000,
            )
        except page_errors() as error:
            await self._close()
            raise DependencyUnavailable(f"{executable} cannot be started: {first_line(error)}") from None

    def _disconnected(self, browser: "Browser") -> None:
        if browser is self._browser and not self._stopping:
            self._browser = None
            log.warning("The browser ended by itself; the next call starts another")
            self._lost("The browser crashed and was replaced; its pages are gone. Navigate again")

    async def kill(self) -> None:
        """End the browser whatever it does; the next call starts another."""
        async with self._starting:
            await self._close()

    async def stop(self) -> None:
        self._stopping = True
        async with self._starting:
            await self._close()
        self.sweep()

    async def _close(self) -> None:
        browser, self._browser = self._browser, None
        driver, self._driver = self._driver, None
        if browser is not None:
            await wait_patiently(browser.close())
        if driver is not None:
            await wait_patiently(driver.stop())
            end_driver(self._manager)
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None


def folder_for(state: Path) -> Path:
    """Where the browser of a gateway with this state keeps its files: short, because a socket's path must be."""
    digest = sha256(str(state).encode()).hexdigest()[:10]
    return Path(tempfile.gettempdir()) / f"agent-gate-{digest}"


def own_folder(folder: Path) -> Path:
    """A new folder in that place, which must be ours alone."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise DependencyUnavailable(f"{folder} is not a folder of this user alone. Remove it")
    return Path(tempfile.mkdtemp(dir=folder))


def driver_process(manager: Any) -> Any:
    return getattr(getattr(getattr(manager, "_client", None), "_transport", None), "_proc", None)


def memory_below(root: int) -> int:
    """Bytes that a process and all below it have for themselves; 0 where the system does not tell."""
    children: dict[int, list[int]] = {}
    resident: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            pages = (entry / "statm").read_text().split()
            children.setdefault(int(fields[1]), []).append(int(entry.name))
            resident[int(entry.name)] = (int(pages[1]) - int(pages[2])) * PAGE
    total, waiting = 0, [root]
    while waiting:
        process = waiting.pop()
        total += resident.get(process, 0)
        waiting += children.get(process, [])
    return total


def end_driver(manager: Any) -> None:
    """Kill the driver where it does not end by itself: without it the browser ends too."""
    process = driver_process(manager)
    if process is not None and process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()


async def wait_patiently(work: Any) -> None:
    """Wait a little for something that should end, whatever it says."""
    with contextlib.suppress(Exception):
        async with asyncio.timeout(CLOSE_SECONDS):
            await work


def first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


async def close_context(context: "BrowserContext") -> bool:
    """Whether it closed in time; one that hangs needs the browser to be replaced."""
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await context.close()
    except TimeoutError:
        return False
    except Exception:  # noqa: BLE001 -- whatever Playwright says of a context that is gone
        return True
    return True
