#!/usr/bin/env python3
"""An agent in Python, with the standard library and one toolreg process: the Gemini API.

    GEMINI_API_KEY=... examples/rpc/gemini.py 'What does go.mod say?'
"""
import json
import os
import subprocess
import sys
import urllib.request

MODEL = os.environ.get("GEMINI_MODEL", "gemini-2.5-flash")
URL = os.environ.get("GEMINI_BASE_URL", "https://generativelanguage.googleapis.com") + f"/v1beta/models/{MODEL}:generateContent"
HEADERS = {"x-goog-api-key": os.environ["GEMINI_API_KEY"], "Content-Type": "application/json"}
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


request("initialize", client={"name": "gemini.py"}, capabilities={"approve": True})
tools = request("declare", format="gemini", request=True, defer="auto")["declarations"]
contents = [{"role": "user", "parts": [{"text": sys.argv[1]}]}]
while True:
    response = ask({"tools": tools, "contents": contents})
    candidate = response["candidates"][0]
    reply = request("answer", format="gemini", response=response)["messages"]
    if not reply:  # no function was called: the model is done
        break
    contents += [candidate["content"], *reply]
parts = candidate.get("content", {}).get("parts", [])
print("".join(p.get("text", "") for p in parts if not p.get("thought")) or candidate["finishReason"])
