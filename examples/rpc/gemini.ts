#!/usr/bin/env node
// An agent in TypeScript with Node.js (22.18 or newer) and one toolreg process: the Gemini API, as a stream.
// Usage: GEMINI_API_KEY=… examples/rpc/gemini.ts 'What does go.mod say?'
import { spawn } from "node:child_process";
import { createInterface } from "node:readline/promises";

const base = process.env.GEMINI_BASE_URL ?? "https://generativelanguage.googleapis.com";
const url = `${base}/v1beta/models/${process.env.GEMINI_MODEL ?? "gemini-2.5-flash"}:streamGenerateContent?alt=sse`;
const headers = { "x-goog-api-key": process.env.GEMINI_API_KEY!, "Content-Type": "application/json" };
const toolreg = spawn("toolreg", ["rpc"], { stdio: ["pipe", "pipe", "inherit"] });
const lines = createInterface({ input: toolreg.stdout })[Symbol.asyncIterator]();
const functions: Record<string, (params: any) => object> = { today: () => ({ text: new Date().toISOString().slice(0, 10) }) }; // which the model may call
const send = (message: object) => toolreg.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");

async function approve(question: { text: string; choices: string[] }) { // asks the user whether a call may run
  console.error(question.text);
  if (!process.stdin.isTTY) return { choice: "no" };
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal.question(`Allow? (${question.choices.join(", ")}) `);
  terminal.close();
  return { choice: question.choices.includes(answer) ? answer : "no" };
}

async function request(method: string, params: object): Promise<any> { // answers toolreg's requests until the result arrives
  send({ id: method, method, params });
  while (true) {
    const message = JSON.parse((await lines.next()).value ?? '{"error": {"message": "toolreg has ended"}}');
    if (message.method === "approve") send({ id: message.id, result: await approve(message.params) });
    else if (message.method === "run") send({ id: message.id, result: functions[message.params.tool](message.params.params) });
    else if (message.error) throw new Error(message.error.message);
    else if (message.id === method && !message.method) return message.result;
  }
}

async function ask(body: object) { // prints the text as it comes, and returns the stream
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok || !response.body) throw new Error(`${response.status}: ${await response.text()}`);
  let stream = "", read = 0, text = "";
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    for (stream += chunk; stream.includes("\n", read); read = stream.indexOf("\n", read) + 1) {
      const line = stream.slice(read, stream.indexOf("\n", read));
      const event = line.startsWith("data:") && line.includes("{") ? JSON.parse(line.slice("data:".length)) : {};
      for (const part of event.candidates?.[0]?.content?.parts ?? [])
        if (part.text && !part.thought) process.stdout.write((text = part.text));
    }
  }
  if (text) console.log();
  return stream;
}

await request("initialize", { client: { name: "gemini.ts" }, capabilities: { approve: true } });
await request("provide", { tools: [{ name: "today", description: "Today's date.", category: "read" }] });
const tools = (await request("declare", { format: "gemini", request: true, defer: "auto" })).declarations;
const contents: object[] = [{ role: "user", parts: [{ text: process.argv[2] }] }];
for (let reply: object[] | undefined; reply?.length !== 0; ) { // until no tool is called
  const answer = await request("answer", { format: "gemini", stream: await ask({ tools, contents }) });
  reply = answer.messages as object[];
  contents.push(answer.message, ...reply);
}
toolreg.stdin.end();
