"""The roles' prompts: one YAML file each, with jinja templates over the role's input."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml
from jinja2 import Environment, StrictUndefined, Template

from astra_integrate.records import Record

_FOLDER = Path(__file__).parent


def render(role: str, input: Record, output: type[Record]) -> tuple[str, str]:
    """(system, prompt) for ``role``: templates see ``input``'s fields and the names of ``output``'s."""
    system, prompt = _templates(role)
    # The fields, not model_dump: a template may use the records' own methods.
    values = {name: getattr(input, name) for name in type(input).model_fields}
    return system.render(values).strip(), prompt.render(values, fields=list(output.model_fields)).strip()


@cache
def _templates(role: str) -> tuple[Template, Template]:
    document = yaml.safe_load((_FOLDER / f"{role}.yaml").read_text(encoding="utf-8"))
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    return environment.from_string(document["system"]), environment.from_string(document["prompt"])
