"""Time each stage of the demo, cold and warm, with its peak memory; the result goes to ``benchmarks/results/``.

    python benchmarks/demo_stages.py [--out FILE]

*Cold* is an empty ``ASTRA_HOME``: everything is downloaded, unpacked, parsed and compiled. *Warm* is the same folder
again, in a new process and a new run. The virtual environment is there already in both (``make demo`` makes it).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from astra_integrate.toolchain.machine import machine

RESULTS = Path(__file__).parent / "results"


def folder_bytes(folder: Path) -> int:
    """Bytes of all files under ``folder``."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


def demo(home: Path) -> dict[str, object]:
    """One run of the demo over ``home``: wall seconds, CPU seconds, peak memory of its largest process, stages."""
    environment = {**os.environ, "ASTRA_HOME": str(home)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "astra_integrate.demo", "--json"], env=environment, stdout=subprocess.PIPE, check=True
    )
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    document = json.loads(done.stdout)
    return {
        "wall_s": round(wall, 2),
        "cpu_s": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2),
        # Of all children so far: the cold run comes first, so the warm figure can only be an upper bound.
        "peak_bytes_one_process": after.ru_maxrss * 1024,
        "stages_s": dict(document["result"]["stages"]),
        "survey_s": document["survey"]["seconds"],
    }


def main() -> None:
    """Run the demo cold and warm and write the figures."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--out", type=Path, default=RESULTS / f"demo-stages-{datetime.now(UTC):%Y-%m-%d}.json")
    options = arguments.parse_args()
    home = Path(tempfile.mkdtemp(prefix="astra-bench-"))
    try:
        cold = demo(home)
        cold["bytes_in_cache"] = folder_bytes(home / "cache")
        cold["bytes_downloaded"] = folder_bytes(home / "cache" / "downloads")
        warm = demo(home)
    finally:
        shutil.rmtree(home)
    document = {
        "benchmark": "demo stages",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(None).model_dump(),
        "cold": cold,
        "warm": warm,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(document, indent=2))


if __name__ == "__main__":
    main()
