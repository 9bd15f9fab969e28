#!/usr/bin/env python3
"""An agent in Python, with the standard library and one toolreg process: the Gemini API, as a stream.
Usage: GEMINI_API_KEY=... examples/rpc/gemini.py 'What does go.mod say?'"""
import datetime, json, os, subprocess, sys, urllib.request

MODEL = os.environ.get("GEMINI_MODEL", "gemini-2.5-flash")
URL = os.environ.get("GEMINI_BASE_URL", "https://generativelanguage.googleapis.com") + f"/v1beta/models/{MODEL}:streamGenerateContent?alt=sse"
HEADERS = {"x-goog-api-key": os.environ["GEMINI_API_KEY"], "Content-Type": "application/json"}
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
        said = "".join(part.get("text", "") for c in event.get("candidates", []) for part in c.get("content", {}).get("parts", []) if not part.get("thought"))
        print(said, end="", flush=True)
        text += said
    print(end="\n" if text else "")
    return stream


request("initialize", client={"name": "gemini.py"}, capabilities={"approve": True})
request("provide", tools=[{"name": "today", "description": "Today's date.", "category": "read"}])
tools = request("declare", format="gemini", request=True, defer="auto")["declarations"]
contents, reply = [{"role": "user", "parts": [{"text": sys.argv[1]}]}], True
while reply:  # until no tool is called: the model is done
    answer = request("answer", format="gemini", stream=ask({"tools": tools, "contents": contents}))
    reply = answer["messages"]
    contents += [answer["message"], *reply]
