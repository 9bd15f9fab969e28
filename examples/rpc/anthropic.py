#!/usr/bin/env python3
"""An agent in Python, with the standard library and one toolreg process: Anthropic's Messages API, as a stream.
Usage: ANTHROPIC_API_KEY=... examples/rpc/anthropic.py 'What does go.mod say?'"""
import json, os, subprocess, sys, urllib.request

URL = os.environ.get("ANTHROPIC_BASE_URL", "https://api.anthropic.com") + "/v1/messages"
HEADERS = {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "anthropic-version": "2023-06-01", "Content-Type": "application/json"}
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


def ask(body):  # prints the text as it comes, and returns the stream and the content of the message in it
    stream, content, stop = "", [], ""
    try:
        response = urllib.request.urlopen(urllib.request.Request(URL, json.dumps(body).encode(), HEADERS))
    except urllib.request.HTTPError as error:
        sys.exit(f"{error}: {error.read().decode(errors='replace')}")
    for line in map(bytes.decode, response):
        stream += line
        event = json.loads(line[len("data:"):]) if line.startswith("data:") and "{" in line else {}
        content += [event["content_block"]] if "content_block" in event else []
        for key, value in event.get("delta", {}).items():
            if key in ("text", "thinking", "signature", "partial_json"):
                name = key.replace("partial_json", "input")
                content[-1][name] = (content[-1].get(name) or "") + value
        print(event.get("delta", {}).get("text", ""), end="", flush=True)
        stop = event.get("delta", {}).get("stop_reason") or stop
    for block in (b for b in content if isinstance(b.get("input"), str)):
        block["input"] = json.loads(block["input"] or "{}") if stop != "max_tokens" else {}
    print(end="\n" if any(b.get("text") for b in content) else "")
    return stream, content


request("initialize", client={"name": "anthropic.py"}, capabilities={"approve": True})
tools = request("declare", format="anthropic", request=True, defer="auto")["declarations"]
messages, reply = [{"role": "user", "content": sys.argv[1]}], True
while reply:  # until no tool is called: the model is done
    stream, content = ask({"model": os.environ.get("ANTHROPIC_MODEL", "claude-sonnet-4-5"), "max_tokens": 8192, "tools": tools, "messages": messages, "stream": True})
    reply = request("answer", format="anthropic", stream=stream)["messages"]
    messages += [{"role": "assistant", "content": content}, *reply]
