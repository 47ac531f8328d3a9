"""Every setting of astra: ``ASTRA_*`` variables, ``astra.toml`` and defaults, read in this one file."""

from __future__ import annotations

import os
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from platformdirs import user_data_path
from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from .errors import BadInput


class TomlFile(PydanticBaseSettingsSource):
    """Values of the table ``[astra]`` of the nearest ``astra.toml`` upwards from the working folder."""

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:
        """Required by pydantic-settings; the whole table is read in ``__call__``."""
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        """The table as a dictionary; raises :class:`BadInput` where the file isn't TOML."""
        path = find_toml(Path.cwd())
        if path is None:
            return {}
        try:
            document = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise BadInput(f"{path} is not valid TOML: {error}", "Correct the file or remove it") from error
        table = document.get("astra", {})
        return dict(table) if isinstance(table, dict) else {}


def find_toml(folder: Path) -> Path | None:
    """The nearest ``astra.toml`` in ``folder`` or above it."""
    for candidate in (folder, *folder.parents):
        if (candidate / "astra.toml").is_file():
            return candidate / "astra.toml"
    return None


class Settings(BaseSettings):
    """All settings; a field ``name`` is set by ``ASTRA_NAME`` or by ``name`` in ``astra.toml``."""

    model_config = SettingsConfigDict(env_prefix="ASTRA_", frozen=True, extra="forbid")

    home: Path = Field(default_factory=lambda: user_data_path("astra-integrate"))
    patches: Path | None = None
    index_url: str | None = None
    arch: str = "sm_90a"
    jobs: int = Field(default_factory=lambda: max(1, os.cpu_count() or 1), ge=1)
    gpu: int | None = None
    model: str = "rules"
    base_url: str | None = None
    api_key: SecretStr | None = None
    rounds: int = Field(default=5, ge=1)
    seed: int = 0
    cuda_home: Path | None = None
    cxx: str | None = None
    vllm_repository: str | None = None
    sglang_repository: str | None = None
    offline: bool = False
    worker_seconds: float = Field(default=120.0, gt=0)
    worker_bytes: int = Field(default=8 << 30, gt=0)
    parse_seconds: float = Field(default=300.0, gt=0)
    compile_seconds: float = Field(default=600.0, gt=0)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Order of precedence: arguments, environment, ``astra.toml``."""
        return init_settings, env_settings, TomlFile(settings_cls)

    @property
    def cache(self) -> Path:
        """Downloads, headers, toolchain, parses: always safe to delete."""
        return self.home / "cache"

    @property
    def runs(self) -> Path:
        """One folder per run."""
        return self.home / "runs"

    @property
    def patch_home(self) -> Path:
        """Where runs write their patches."""
        return self.patches or self.home / "patches"


@cache
def settings() -> Settings:
    """The process's settings; raises :class:`BadInput` that names the wrong one."""
    return load()


def load(**overrides: Any) -> Settings:
    """Read the settings afresh; ``overrides`` win over environment and file."""
    try:
        return Settings(**overrides)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"]) or "setting"
        raise BadInput(
            f"The setting {name!r} is wrong: {first['msg']}",
            f"Correct ASTRA_{name.upper()} or {name} in astra.toml",
        ) from error
