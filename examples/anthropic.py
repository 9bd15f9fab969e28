#!/usr/bin/env python3
"""An agent in Python, with the standard library and toolreg: Anthropic's Messages API.

    ANTHROPIC_API_KEY=... examples/anthropic.py 'What does go.mod say?'
"""
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request

URL = os.environ.get("ANTHROPIC_BASE_URL", "https://api.anthropic.com") + "/v1/messages"
MODEL = os.environ.get("ANTHROPIC_MODEL", "claude-sonnet-4-5")


def toolreg(*args, stdin=None):
    """Runs toolreg and returns what it printed; its messages go to our stderr."""
    return subprocess.run(["toolreg", *args], input=stdin, stdout=subprocess.PIPE, check=True).stdout


def ask(tools, messages):
    """Sends the conversation and returns the model's message as bytes."""
    body = {"model": MODEL, "max_tokens": 8192, "tools": tools, "messages": messages}
    request = urllib.request.Request(URL, json.dumps(body).encode(), {
        "x-api-key": os.environ["ANTHROPIC_API_KEY"],
        "anthropic-version": "2023-06-01",
        "Content-Type": "application/json",
    })
    try:
        with urllib.request.urlopen(request) as response:
            return response.read()
    except urllib.error.HTTPError as error:
        sys.exit(f"{error}: {error.read().decode(errors='replace')}")
    except urllib.error.URLError as error:
        sys.exit(f"{URL}: {error.reason}")


def main():
    if len(sys.argv) != 2 or "ANTHROPIC_API_KEY" not in os.environ:
        sys.exit(__doc__)
    tools = json.loads(toolreg("schema", "--format", "anthropic", "--request", "--defer", "auto", stdin=b""))
    messages = [{"role": "user", "content": sys.argv[1]}]
    while True:
        response = ask(tools, messages)
        message = json.loads(response)
        messages.append({"role": "assistant", "content": message["content"]})
        reply = toolreg("call", "--format", "anthropic", stdin=response)
        if not reply:  # no tool was called: the model is done
            break
        messages += [json.loads(line) for line in reply.splitlines()]
    print("\n".join(block["text"] for block in message["content"] if block["type"] == "text"))


if __name__ == "__main__":
    main()
