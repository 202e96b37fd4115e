"""Results as a table that can be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TITLES = {"run": "Results", "time": "Times", "framework": "Times", "mechanism": "Mechanisms"}


def as_table(data: Mapping[str, Any]) -> str:
    """Markdown: what the device is, then a table for each part."""
    device = data.get("device")
    lines = ["# GPU kit", ""]
    if device:
        lines += [f"{device['name']}, {device['sms']} SMs, driver {device['driver']}, "
                  f"cubins for {data['target']}, {data['began']}", ""]  # fmt: skip
        if device["simulated"]:
            lines += ["**A simulated driver: nothing here was measured.**", ""]
    for name, cases in data["parts"].items():
        good = sum(case["ok"] is True for case in cases)
        skipped = sum(case["ok"] is None for case in cases)
        lines += [f"## {name}: {good} of {len(cases)} good, {skipped} skipped", "",
                  "| case | | |", "|---|---|---|"]  # fmt: skip
        lines += [f"| {case['name']} | {_state(case)} | {_detail(case)} |" for case in cases]
        lines.append("")
    return "\n".join(lines)


def _state(case: Mapping[str, Any]) -> str:
    return {True: "good", None: "skipped", False: "**failed**"}[case["ok"]]


def _detail(case: Mapping[str, Any]) -> str:
    if case.get("skipped"):
        return str(case["skipped"])
    if case.get("accepted"):
        return "works"
    if "error" in case:
        return str(case["error"]).replace("|", "\\|")[:200]
    if "us" in case:
        parts = [f"{case['us']:.2f} us"]
        parts += [f"{case['tflops']:.1f} TFLOP/s"] if case.get("tflops") else []
        parts += [f"{case['gbps']:.0f} GB/s"] if case.get("gbps") else []
        clock = case.get("clocks", {}).get("sm_mhz")
        return ", ".join(parts) + (f" at {clock:.0f} MHz" if clock else "")
    if "value" in case:
        return f"{case['value']:.2f}"
    wrong = [array for array in case.get("arrays", ()) if array["different"]]
    return "; ".join(
        f"array {one['array']}: {one['different']} of {one['elements']} differ in bits"
        + (f", largest error {one['largest_relative']:.2e}" if "largest_relative" in one else "")
        + (f", first {one['first']}: {one['got']} for {one['wanted']}" if "first" in one else "")
        for one in wrong
    )
