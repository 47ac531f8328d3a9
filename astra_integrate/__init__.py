"""astra-integrate: take a GPU kernel out of vLLM or SGLang, make it faster, put it back, prove it."""

from pathlib import Path

__version__ = "0.1.0"

_missing = [
    name for name in ("extract", "reinject", "agents", "patches") if not (Path(__file__).parent / name).is_dir()
]
if _missing:
    raise ImportError(
        f"astra_integrate is incomplete: {', '.join(_missing)} missing. A .zip of the source drops symbolic links; "
        "install from a git clone, a wheel or an sdist."
    )
