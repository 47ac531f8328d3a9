"""The models apart from the rules: what a script replays, and what a real server over HTTP may do to a client."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from pydantic import SecretStr

from astra_integrate.agents.messages import PlanningOutput
from astra_integrate.agents.models import Request, open_model
from astra_integrate.agents.models.openai_ import OpenAIModel
from astra_integrate.agents.models.scripted import ScriptedModel
from astra_integrate.errors import BadInput, FetchFailed
from astra_integrate.settings import Settings


def request(role: str = "planning", turn: int = 0) -> Request:
    return Request(role, PlanningOutput(strategy="", reason=""), "be brief", "what next?", turn)  # type: ignore[arg-type]


class Server:
    """An OpenAI-compatible server whose replies are set by the test: (status, body) one after the other."""

    def __init__(self) -> None:
        self.replies: list[tuple[int, object]] = []
        self.asked: list[dict[str, object]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                outer.asked.append(json.loads(self.rfile.read(length)))
                status, body = outer.replies.pop(0) if len(outer.replies) > 1 else outer.replies[0]
                data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}/v1"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    made = Server()
    yield made
    made.http.shutdown()


def completion(content: str | None, finish: str = "stop", choices: int = 1) -> dict[str, object]:
    message = {"role": "assistant", "content": content}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": finish, "message": message}] * choices,
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }


def model(server: Server, attempts: int = 3) -> OpenAIModel:
    return OpenAIModel("m", Settings(base_url=server.url), seconds=5, attempts=attempts, longest_wait=0.01)


def test_the_answer_and_its_cost_come_back(server: Server) -> None:
    server.replies = [(200, completion("hello"))]
    reply = model(server).answer(request())
    assert reply.text == "hello"
    assert (reply.cost.calls, reply.cost.prompt_tokens, reply.cost.completion_tokens) == (1, 7, 3)
    assert [m["content"] for m in server.asked[0]["messages"]] == ["be brief", "what next?"]  # type: ignore[attr-defined]


def test_passing_failures_are_tried_again(server: Server) -> None:
    server.replies = [(429, {"error": {"message": "slow down"}}), (503, "busy"), (200, completion("at last"))]
    assert model(server).answer(request()).text == "at last"
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("status", "body", "asked"), [(401, {"error": {"message": "no key"}}, 1), (500, "broken", 3), (404, "none", 1)]
)
def test_lasting_failures_are_one_clear_error(server: Server, status: int, body: object, asked: int) -> None:
    server.replies = [(status, body)]
    with pytest.raises(FetchFailed, match=r"openai:m didn't answer the planning role"):
        model(server).answer(request())
    assert len(server.asked) == asked


@pytest.mark.parametrize("body", [completion(None), completion("", "length"), completion("x", choices=0)])
def test_an_empty_answer_is_an_empty_text(server: Server, body: dict[str, object]) -> None:
    server.replies = [(200, body)]
    assert model(server).answer(request()).text == ""


def test_a_body_that_is_no_completion_is_one_clear_error(server: Server) -> None:
    server.replies = [(200, "<html>proxy</html>")]
    with pytest.raises(FetchFailed):
        model(server).answer(request())


def test_a_key_is_needed_for_a_server_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(BadInput, match="needs a key"):
        OpenAIModel("m", Settings())
    secret = OpenAIModel("m", Settings(api_key=SecretStr("hidden")))
    assert "hidden" not in repr(secret.__dict__.get("name"))


def test_a_script_answers_by_role_and_turn(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text("coding: [one, two]\n", encoding="utf-8")
    script = ScriptedModel.from_file(str(path))
    assert script.name == "scripted"
    assert [script.answer(request("coding", turn)).text for turn in (1, 0, 2)] == ["two", "one", ""]
    assert "the script has ended" in script.answer(request("planning")).text


@pytest.mark.parametrize("text", ["[1, 2]", "coding: one", "{", "a: [\x00]"])
def test_a_wrong_script_is_one_clear_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match="The script"):
        open_model(f"scripted:{path}", Settings())


@pytest.mark.parametrize("name", ["", "rule", "openai:", "scripted:", "rules:x"])
def test_an_unknown_model_names_those_there_are(name: str) -> None:
    with pytest.raises(BadInput, match="Use rules, scripted:FILE or openai:MODEL"):
        open_model(name, Settings())
