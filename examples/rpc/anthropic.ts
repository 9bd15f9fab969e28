#!/usr/bin/env node
// An agent in TypeScript with Node.js (22.18 or newer) and one toolreg process: Anthropic's Messages API, as a stream.
// Usage: ANTHROPIC_API_KEY=… examples/rpc/anthropic.ts 'What does go.mod say?'
import { spawn } from "node:child_process";
import { createInterface } from "node:readline/promises";

const url = `${process.env.ANTHROPIC_BASE_URL ?? "https://api.anthropic.com"}/v1/messages`;
const headers = { "x-api-key": process.env.ANTHROPIC_API_KEY!, "anthropic-version": "2023-06-01", "Content-Type": "application/json" };
const toolreg = spawn("toolreg", ["rpc"], { stdio: ["pipe", "pipe", "inherit"] });
const lines = createInterface({ input: toolreg.stdout })[Symbol.asyncIterator]();
const send = (message: object) => toolreg.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");

async function approve(question: { text: string; choices: string[] }) { // asks the user whether a call may run
  console.error(question.text);
  if (!process.stdin.isTTY) return { choice: "no" };
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal.question(`Allow? (${question.choices.join(", ")}) `);
  terminal.close();
  return { choice: question.choices.includes(answer) ? answer : "no" };
}

async function request(method: string, params: object): Promise<any> { // answers questions until the result arrives
  send({ id: method, method, params });
  while (true) {
    const message = JSON.parse((await lines.next()).value ?? '{"error": {"message": "toolreg has ended"}}');
    if (message.method === "approve") send({ id: message.id, result: await approve(message.params) });
    else if (message.error) throw new Error(message.error.message);
    else if (message.id === method && !message.method) return message.result;
  }
}

async function ask(body: object) { // prints the text as it comes, and returns the stream and the content of the message in it
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok || !response.body) throw new Error(`${response.status}: ${await response.text()}`);
  let stream = "", read = 0, stop = "", content: any[] = [];
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    for (stream += chunk; stream.includes("\n", read); read = stream.indexOf("\n", read) + 1) {
      const line = stream.slice(read, stream.indexOf("\n", read));
      const event = line.startsWith("data:") && line.includes("{") ? JSON.parse(line.slice("data:".length)) : {};
      if (event.content_block) content.push(event.content_block);
      for (const key of ["text", "thinking", "signature", "partial_json"])
        if (event.delta?.[key]) content.at(-1)[key] = (content.at(-1)[key] ?? "") + event.delta[key];
      process.stdout.write(event.delta?.text ?? "");
      stop = event.delta?.stop_reason ?? stop;
    }
  }
  if (content.some((b) => b.text)) console.log();
  const whole = ({ partial_json: input, ...block }: any) => (input && stop !== "max_tokens" ? { ...block, input: JSON.parse(input) } : block);
  return { stream, content: content.map(whole) };
}

await request("initialize", { client: { name: "anthropic.ts" }, capabilities: { approve: true } });
const tools = (await request("declare", { format: "anthropic", request: true, defer: "auto" })).declarations;
const messages: object[] = [{ role: "user", content: process.argv[2] }], model = process.env.ANTHROPIC_MODEL ?? "claude-sonnet-4-5";
for (let reply: object[] | undefined; reply?.length !== 0; ) { // until no tool is called
  const { stream, content } = await ask({ model, max_tokens: 8192, tools, messages, stream: true });
  reply = (await request("answer", { format: "anthropic", stream })).messages as object[];
  messages.push({ role: "assistant", content }, ...reply);
}
toolreg.stdin.end();
