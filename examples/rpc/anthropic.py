#!/usr/bin/env python3
"""An agent in Python, with the standard library and one toolreg process: Anthropic's Messages API.

    ANTHROPIC_API_KEY=... examples/rpc/anthropic.py 'What does go.mod say?'
"""
import json
import os
import subprocess
import sys
import urllib.request

URL = os.environ.get("ANTHROPIC_BASE_URL", "https://api.anthropic.com") + "/v1/messages"
MODEL = os.environ.get("ANTHROPIC_MODEL", "claude-sonnet-4-5")
HEADERS = {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "anthropic-version": "2023-06-01", "Content-Type": "application/json"}
toolreg = subprocess.Popen(["toolreg", "rpc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")


def send(**message):
    toolreg.stdin.write(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")) + "\n")
    toolreg.stdin.flush()


def approve(question):
    """Asks the user whether a call may run."""
    print(question["text"], file=sys.stderr)
    answer = input(f"Allow? ({', '.join(question['choices'])}) ") if sys.stdin.isatty() else "no"
    return {"choice": answer if answer in question["choices"] else "no"}


def request(method, **params):
    """Makes a request of toolreg, and answers its questions until the result arrives."""
    send(id=method, method=method, params=params)
    for message in map(json.loads, toolreg.stdout):
        if message.get("method") == "approve":
            send(id=message["id"], result=approve(message["params"]))
        elif message.get("id") == method and "method" not in message:
            return message["result"] if "result" in message else sys.exit(message["error"]["message"])
    sys.exit("toolreg has ended")


def ask(body):
    try:
        with urllib.request.urlopen(urllib.request.Request(URL, json.dumps(body).encode(), HEADERS)) as response:
            return json.load(response)
    except urllib.request.HTTPError as error:
        sys.exit(f"{error}: {error.read().decode(errors='replace')}")


request("initialize", client={"name": "anthropic.py"}, capabilities={"approve": True})
tools = request("declare", format="anthropic", request=True, defer="auto")["declarations"]
messages = [{"role": "user", "content": sys.argv[1]}]
while True:
    response = ask({"model": MODEL, "max_tokens": 8192, "tools": tools, "messages": messages})
    reply = request("answer", format="anthropic", response=response)["messages"]
    if not reply:  # no tool was called: the model is done
        break
    messages += [{"role": "assistant", "content": response["content"]}, *reply]
print("\n".join(b["text"] for b in response["content"] if b["type"] == "text") or response["stop_reason"])
