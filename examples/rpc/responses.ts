#!/usr/bin/env node
// An agent in TypeScript with Node.js (22.18 or newer) and one toolreg process: OpenAI's Responses API, as a stream.
//
//   OPENAI_API_KEY=… examples/rpc/responses.ts 'What does go.mod say?'
import { spawn } from "node:child_process";
import { createInterface } from "node:readline/promises";
import { Readable } from "node:stream";

const url = `${process.env.OPENAI_BASE_URL ?? "https://api.openai.com/v1"}/responses`;
const headers = { Authorization: `Bearer ${process.env.OPENAI_API_KEY}`, "Content-Type": "application/json" };
const toolreg = spawn("toolreg", ["rpc"], { stdio: ["pipe", "pipe", "inherit"] });
const lines = createInterface({ input: toolreg.stdout })[Symbol.asyncIterator]();
const send = (message: object) => toolreg.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");

// approve asks the user whether a call may run.
async function approve(question: { text: string; choices: string[] }) {
  console.error(question.text);
  if (!process.stdin.isTTY) return { choice: "no" };
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal.question(`Allow? (${question.choices.join(", ")}) `);
  terminal.close();
  return { choice: question.choices.includes(answer) ? answer : "no" };
}

// request makes a request of toolreg, and answers its questions until the result arrives.
async function request(method: string, params: object): Promise<any> {
  send({ id: method, method, params });
  for (let line = await lines.next(); !line.done; line = await lines.next()) {
    const message = JSON.parse(line.value);
    if (message.method === "approve") send({ id: message.id, result: await approve(message.params) });
    else if (message.error) throw new Error(message.error.message);
    else if (message.id === method && !message.method) return message.result;
  }
  throw new Error("toolreg has ended");
}

// ask prints the text as it comes, and returns the stream and the items of the response.
async function ask(body: object) {
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok || !response.body) throw new Error(`${response.status}: ${await response.text()}`);
  let stream = "", output: object[] = [];
  for await (const line of createInterface({ input: Readable.fromWeb(response.body as any) })) {
    stream += line + "\n";
    const event = line.startsWith("data:") ? JSON.parse(line.slice("data:".length)) : {};
    if (["response.output_text.delta", "response.refusal.delta"].includes(event.type)) process.stdout.write(event.delta);
    output = event.response?.output ?? output;
  }
  return { stream, output };
}

await request("initialize", { client: { name: "responses.ts" }, capabilities: { approve: true } });
const tools = (await request("declare", { format: "openai-responses", request: true, defer: "auto" })).declarations;
let input: object[] = [{ role: "user", content: process.argv[2] }], reply: object[];
do {
  const { stream, output } = await ask({ model: process.env.OPENAI_MODEL ?? "gpt-5-mini", tools, input, stream: true });
  reply = (await request("answer", { format: "openai-responses", stream })).messages;
  input.push(...output, ...reply);
} while (reply.length > 0); // until no tool is called
console.log();
toolreg.stdin.end();
