"""Any model behind an OpenAI-compatible address."""

from __future__ import annotations

import os
import time

import openai
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from astra_integrate.agents.models.base import Reply, Request
from astra_integrate.errors import BadInput, FetchFailed
from astra_integrate.records import Cost
from astra_integrate.settings import Settings

_PASSING = (openai.APIConnectionError, openai.RateLimitError, openai.InternalServerError)


class OpenAIModel:
    """Asks ``model`` at ``settings.base_url`` (default: OpenAI's own) with a time-out and patient repetition.

    Whatever text comes back is handed on as it is, a truncated or empty one too: the roles judge it.
    """

    def __init__(
        self, model: str, settings: Settings, *, seconds: float = 300.0, attempts: int = 5, longest_wait: float = 60.0
    ) -> None:
        key = settings.api_key.get_secret_value() if settings.api_key else os.environ.get("OPENAI_API_KEY", "")
        if not key and settings.base_url is None:
            raise BadInput(f"The model {model} needs a key", "Set ASTRA_API_KEY, or ASTRA_BASE_URL for a local server")
        self.name = f"openai:{model}"
        self._model = model
        self._seed = settings.seed
        self._attempts = attempts
        self._longest_wait = longest_wait
        # A local server wants no key, but the client insists on one. Retries are tenacity's.
        self._client = openai.OpenAI(api_key=key or "none", base_url=settings.base_url, timeout=seconds, max_retries=0)

    def answer(self, request: Request) -> Reply:
        """Ask once, again after passing failures; raises :class:`FetchFailed` when the server can't or won't answer."""
        messages: list[ChatCompletionMessageParam] = [
            {"role": "system", "content": request.system},
            {"role": "user", "content": request.prompt},
        ]
        started = time.monotonic()
        retrying = Retrying(
            retry=retry_if_exception_type(_PASSING),
            wait=wait_random_exponential(multiplier=min(1.0, self._longest_wait), max=self._longest_wait),
            stop=stop_after_attempt(self._attempts),
            reraise=True,
        )
        try:
            completion = retrying(
                self._client.chat.completions.create, model=self._model, messages=messages, seed=self._seed
            )
        except (openai.OpenAIError, ValueError) as error:  # ValueError: a body that is not JSON
            raise self._failed(request, f"{type(error).__name__}: {error}") from error
        if not isinstance(completion, ChatCompletion):
            raise self._failed(request, "what came back is no chat completion")
        seconds = time.monotonic() - started
        usage = completion.usage
        cost = Cost(
            calls=1,
            prompt_tokens=(usage.prompt_tokens or 0) if usage else 0,
            completion_tokens=(usage.completion_tokens or 0) if usage else 0,
            seconds=seconds,
        )
        choice = completion.choices[0] if completion.choices else None
        text = (choice.message.content or choice.message.refusal or "") if choice else ""
        return Reply(text=text, cost=cost)

    def _failed(self, request: Request, why: str) -> FetchFailed:
        way_out = "Check ASTRA_BASE_URL, ASTRA_API_KEY and the model's name"
        return FetchFailed(f"{self.name} didn't answer the {request.role} role: {why}", way_out)
