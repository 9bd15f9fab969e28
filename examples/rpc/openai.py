#!/usr/bin/env python3
"""An agent in Python, with the standard library and one toolreg process: OpenAI's chat completions, as a stream.
Usage: OPENAI_API_KEY=... examples/rpc/openai.py 'What does go.mod say?'"""
import datetime, json, os, subprocess, sys, urllib.request

URL = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1") + "/chat/completions"
HEADERS = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
toolreg = subprocess.Popen(["toolreg", "rpc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", bufsize=1)
FUNCTIONS = {"today": lambda params: {"text": datetime.date.today().isoformat()}}  # of this program, which the model may call


def send(**message):
    toolreg.stdin.write(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")) + "\n")


def approve(question):  # asks the user whether a call may run
    print(question["text"], file=sys.stderr)
    answer = input(f"Allow? ({', '.join(question['choices'])}) ") if sys.stdin.isatty() else "no"
    return {"choice": answer if answer in question["choices"] else "no"}


def request(method, **params):  # answers toolreg's requests until the result arrives
    send(id=method, method=method, params=params)
    for message in map(json.loads, toolreg.stdout):
        if message.get("method") == "approve":
            send(id=message["id"], result=approve(message["params"]))
        elif message.get("method") == "run":
            send(id=message["id"], result=FUNCTIONS[message["params"]["tool"]](message["params"]["params"]))
        elif message.get("id") == method and "method" not in message:
            return message["result"] if "result" in message else sys.exit(message["error"]["message"])
    sys.exit("toolreg has ended")


def ask(body):  # prints the text as it comes, and returns the stream
    stream, text = "", ""
    try:
        response = urllib.request.urlopen(urllib.request.Request(URL, json.dumps(body).encode(), HEADERS))
    except urllib.request.HTTPError as error:
        sys.exit(f"{error}: {error.read().decode(errors='replace')}")
    for line in map(bytes.decode, response):
        stream += line
        event = json.loads(line[len("data:"):]) if line.startswith("data:") and "{" in line else {}
        said = "".join(choice.get("delta", {}).get("content") or "" for choice in event.get("choices", []))
        print(said, end="", flush=True)
        text += said
    print(end="\n" if text else "")
    return stream


request("initialize", client={"name": "openai.py"}, capabilities={"approve": True})
request("provide", tools=[{"name": "today", "description": "Today's date.", "category": "read"}])
tools = request("declare", format="openai", request=True, defer="auto")["declarations"]
messages, reply = [{"role": "user", "content": sys.argv[1]}], True
while reply:  # until no tool is called: the model is done
    answer = request("answer", format="openai", stream=ask({"model": os.environ.get("OPENAI_MODEL", "gpt-5-mini"), "tools": tools, "messages": messages, "stream": True}))
    reply = answer["messages"]
    messages += [answer["message"], *reply]
