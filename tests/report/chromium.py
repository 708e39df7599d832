"""A headless Chromium that fetches nothing by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars --window-size=1280,900"
).split()


def chrome(chromium: str, chromedriver: str, profile: Path) -> Any:
    """A driver with a profile of its own that keeps the console's messages."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(chromedriver))


def resize(driver: Any, width: int, height: int) -> None:
    """Show the page in a window of this size, as a phone does if it is narrow."""
    view = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", view)
