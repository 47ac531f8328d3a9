"""Python in, callers of ops out: direct uses, wrappers under every way of importing them."""

from __future__ import annotations

import textwrap

from astra_integrate.frameworks.python_calls import torch_op_callers

FILES = {
    "fw/_ops.py": """
        import torch
        def fold(x):
            torch.ops._X.fold(x)
        """,
    "fw/direct.py": """
        import torch
        class Layer:
            def forward(self, x):
                return torch.ops._X.fold.default(x)
        if hasattr(torch.ops._X, "bare"):
            pass
        """,
    "fw/one.py": "from fw import _ops as ops\ndef a(x):\n    ops.fold(x)\n",
    "fw/two.py": "import fw._ops as ops\ndef b(x):\n    ops.fold(x)\n",
    "fw/three.py": "from fw._ops import fold as g\ndef c(x):\n    g(x)\n",
    "fw/other.py": "ops = object()\n# _ops torch.ops\ndef d(x):\n    ops.fold(x)\n",
    "fw/broken.py": "torch.ops._X.fold( {{ template }}\n",
}


def test_callers_of_an_op(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text))
    callers = torch_op_callers(tmp_path, tmp_path / "fw", "fw._ops")
    fold = {(c.file, c.function) for c in callers["_X", "fold"]}
    assert fold == {
        ("fw/_ops.py", "fold"),
        ("fw/direct.py", "Layer.forward"),
        ("fw/one.py", "a"),
        ("fw/two.py", "b"),
        ("fw/three.py", "c"),
    }
    assert [(c.file, c.line, c.function) for c in callers["_X", "bare"]] == [("fw/direct.py", 6, "<module>")]
