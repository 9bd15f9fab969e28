#!/usr/bin/env python3
"""An agent in Python, with the standard library and one toolreg process: OpenAI's chat completions, as a stream.
Usage: OPENAI_API_KEY=... examples/rpc/openai.py 'What does go.mod say?'"""
import json, os, subprocess, sys, urllib.request

URL = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1") + "/chat/completions"
HEADERS = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
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


def ask(body):  # prints the text as it comes, and returns the stream and the message in it
    stream, text, calls = "", "", {}
    try:
        response = urllib.request.urlopen(urllib.request.Request(URL, json.dumps(body).encode(), HEADERS))
    except urllib.request.HTTPError as error:
        sys.exit(f"{error}: {error.read().decode(errors='replace')}")
    for line in map(bytes.decode, response):
        stream += line
        event = json.loads(line[len("data:"):]) if line.startswith("data:") and "{" in line else {}
        for delta in (choice["delta"] for choice in event.get("choices", [])):
            print(said := delta.get("content") or "", end="", flush=True)
            text += said
            for part in delta.get("tool_calls") or []:
                new = {"id": part.get("id"), "type": "function", "function": {"name": part["function"].get("name"), "arguments": ""}}
                calls.setdefault(part["index"], new)["function"]["arguments"] += part["function"].get("arguments") or ""
    print(end="\n" if text else "")
    return stream, {"role": "assistant", "content": text or None, "tool_calls": list(calls.values())}


request("initialize", client={"name": "openai.py"}, capabilities={"approve": True})
tools = request("declare", format="openai", request=True, defer="auto")["declarations"]
messages, reply = [{"role": "user", "content": sys.argv[1]}], True
while reply:  # until no tool is called: the model is done
    stream, message = ask({"model": os.environ.get("OPENAI_MODEL", "gpt-5-mini"), "tools": tools, "messages": messages, "stream": True})
    reply = request("answer", format="openai", stream=stream)["messages"]
    messages += [message, *reply]
