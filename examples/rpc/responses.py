#!/usr/bin/env python3
"""An agent in Python, with the standard library and one toolreg process: OpenAI's Responses API, as a stream.

    OPENAI_API_KEY=... examples/rpc/responses.py 'What does go.mod say?'
"""
import json
import os
import subprocess
import sys
import urllib.request

URL = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1") + "/responses"
MODEL = os.environ.get("OPENAI_MODEL", "gpt-5-mini")
HEADERS = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
toolreg = subprocess.Popen(["toolreg", "rpc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", bufsize=1)


def send(**message):
    toolreg.stdin.write(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")) + "\n")


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
    """Prints the text as it comes, and returns the stream and the items of the response."""
    stream, output = [], []
    with urllib.request.urlopen(urllib.request.Request(URL, json.dumps(body).encode(), HEADERS)) as response:
        for line in map(bytes.decode, response):
            stream.append(line)
            event = json.loads(line[len("data:"):]) if line.startswith("data:") else {}
            print(event.get("delta", "") if event.get("type") in ("response.output_text.delta", "response.refusal.delta") else "", end="", flush=True)
            output = event.get("response", {}).get("output", output)
    return "".join(stream), output


request("initialize", client={"name": "responses.py"}, capabilities={"approve": True})
tools = request("declare", format="openai-responses", request=True, defer="auto")["declarations"]
conversation, reply = [], [{"role": "user", "content": sys.argv[1]}]
while reply:  # until no tool is called: the model is done
    conversation += reply
    stream, output = ask({"model": MODEL, "tools": tools, "input": conversation, "stream": True})
    reply = request("answer", format="openai-responses", stream=stream)["messages"]
    conversation += output
print()
