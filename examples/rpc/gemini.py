#!/usr/bin/env python3
"""An agent in Python, with the standard library and one toolreg process: the Gemini API, as a stream.
Usage: GEMINI_API_KEY=... examples/rpc/gemini.py 'What does go.mod say?'"""
import json, os, subprocess, sys, urllib.request

MODEL = os.environ.get("GEMINI_MODEL", "gemini-2.5-flash")
URL = os.environ.get("GEMINI_BASE_URL", "https://generativelanguage.googleapis.com") + f"/v1beta/models/{MODEL}:streamGenerateContent?alt=sse"
HEADERS = {"x-goog-api-key": os.environ["GEMINI_API_KEY"], "Content-Type": "application/json"}
toolreg = subprocess.Popen(["toolreg", "rpc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", bufsize=1)


def send(**message):
    toolreg.stdin.write(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")) + "\n")


def approve(question):  # asks the user whether a call may run
    print(question["text"], file=sys.stderr)
    answer = input(f"Allow? ({', '.join(question['choices'])}) ") if sys.stdin.isatty() else "no"
    return {"choice": answer if answer in question["choices"] else "no"}


def request(method, **params):  # answers questions until the result arrives
    send(id=method, method=method, params=params)
    for message in map(json.loads, toolreg.stdout):
        if message.get("method") == "approve":
            send(id=message["id"], result=approve(message["params"]))
        elif message.get("id") == method and "method" not in message:
            return message["result"] if "result" in message else sys.exit(message["error"]["message"])
    sys.exit("toolreg has ended")


def ask(body):  # prints the text as it comes, and returns the stream and the parts of the message in it
    stream, parts, text = "", [], ""
    try:
        response = urllib.request.urlopen(urllib.request.Request(URL, json.dumps(body).encode(), HEADERS))
    except urllib.request.HTTPError as error:
        sys.exit(f"{error}: {error.read().decode(errors='replace')}")
    for line in map(bytes.decode, response):
        stream += line
        event = json.loads(line[len("data:"):]) if line.startswith("data:") and "{" in line else {}
        for candidate in event.get("candidates", []):
            new = [p for p in candidate.get("content", {}).get("parts", []) if p != {"text": ""}]
            said = "".join(p.get("text", "") for p in new if not p.get("thought"))
            print(said, end="", flush=True)
            parts, text = parts + new, text + said
    print(end="\n" if text else "")
    return stream, parts


request("initialize", client={"name": "gemini.py"}, capabilities={"approve": True})
tools = request("declare", format="gemini", request=True, defer="auto")["declarations"]
contents, reply = [{"role": "user", "parts": [{"text": sys.argv[1]}]}], True
while reply:  # until no function is called: the model is done
    stream, parts = ask({"tools": tools, "contents": contents})
    reply = request("answer", format="gemini", stream=stream)["messages"]
    contents += [{"role": "model", "parts": parts}, *reply]
