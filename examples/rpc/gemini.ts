#!/usr/bin/env node
// An agent in TypeScript with Node.js (22.18 or newer) and one toolreg process: the Gemini API.
//
//   GEMINI_API_KEY=… examples/rpc/gemini.ts 'What does go.mod say?'
import { spawn } from "node:child_process";
import { createInterface } from "node:readline/promises";

const model = process.env.GEMINI_MODEL ?? "gemini-2.5-flash";
const url = `${process.env.GEMINI_BASE_URL ?? "https://generativelanguage.googleapis.com"}/v1beta/models/${model}:generateContent`;
const headers = { "x-goog-api-key": process.env.GEMINI_API_KEY!, "Content-Type": "application/json" };
const prompt = process.argv[2];
const toolreg = spawn("toolreg", ["rpc"], { stdio: ["pipe", "pipe", "inherit"] });
const lines = createInterface({ input: toolreg.stdout })[Symbol.asyncIterator]();

function send(message: object) {
  toolreg.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
}

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

async function ask(body: object): Promise<any> {
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return response.json();
}

await request("initialize", { client: { name: "gemini.ts" }, capabilities: { approve: true } });
const tools = (await request("declare", { format: "gemini", request: true, defer: "auto" })).declarations;
const contents: object[] = [{ role: "user", parts: [{ text: prompt }] }];
while (true) {
  const response = await ask({ tools, contents });
  const { content, finishReason } = response.candidates[0];
  const reply = (await request("answer", { format: "gemini", response })).messages;
  if (reply.length === 0) { // no function was called: the model is done
    console.log(content?.parts?.map((p: any) => (p.thought ? "" : p.text ?? "")).join("") || finishReason);
    break;
  }
  contents.push(content, ...reply);
}
toolreg.stdin.end();
