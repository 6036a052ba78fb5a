"""A chat in which the provider never learns a name: two lines around the call.

    pip install 'memseal[sanitize]'
    python examples/sanitize_chat.py

The provider here is a function on this machine. With a real one it is the client of its own library.
"""

from types import SimpleNamespace
from typing import Any

import memseal


class Provider:
    """Stands for a provider's client: it says what it read, so that one sees what left the device."""

    def __init__(self) -> None:
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self._create))

    def _create(self, *, model: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
        question = messages[-1]["content"]
        print(f"{model} read:  {question}")
        name = question.split(",")[0].removeprefix("Dear ")
        return {"choices": [{"message": {"role": "assistant", "content": f"I would call {name.upper()} first."}}]}


def main() -> None:
    sanitizer = memseal.Sanitizer(owner=["Tom Ito"])
    with sanitizer.guard(Provider()) as client:
        answer = client.chat.completions.create(
            model="the provider",
            messages=[{"role": "user", "content": "Dear Sarah Chen, your mail s.chen@example.com bounced. tom ito"}],
        )
    print(f"the user reads:     {answer['choices'][0]['message']['content']}")


if __name__ == "__main__":
    main()
