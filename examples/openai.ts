#!/usr/bin/env node
// An agent in TypeScript with Node.js (22.18 or newer) and toolreg: OpenAI's chat
// completions.
//
//   OPENAI_API_KEY=… examples/openai.ts 'What does go.mod say?'
import { spawnSync } from "node:child_process";

interface Message {
  role: string;
  content: string | null;
}

const base = process.env.OPENAI_BASE_URL ?? "https://api.openai.com/v1";
const model = process.env.OPENAI_MODEL ?? "gpt-5-mini";
const prompt = process.argv[2];
if (!prompt || !process.env.OPENAI_API_KEY) {
  console.error("usage: OPENAI_API_KEY=… openai.ts PROMPT");
  process.exit(2);
}

// toolreg runs toolreg and returns what it printed; its messages go to our stderr.
function toolreg(args: string[], input = ""): string {
  const run = spawnSync("toolreg", args, {
    input,
    encoding: "utf8",
    stdio: ["pipe", "pipe", "inherit"],
    maxBuffer: 1 << 30,
  });
  if (run.error) throw run.error;
  if (run.status !== 0) process.exit(run.status ?? 1);
  return run.stdout;
}

// ask sends the conversation and returns the response as text.
async function ask(tools: unknown, messages: Message[]): Promise<string> {
  const response = await fetch(`${base}/chat/completions`, {
    method: "POST",
    headers: {
      Authorization: `Bearer ${process.env.OPENAI_API_KEY}`,
      "Content-Type": "application/json",
    },
    body: JSON.stringify({ model, tools, messages }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status}: ${text}`);
  return text;
}

const tools: unknown = JSON.parse(toolreg(["schema", "--format", "openai", "--request", "--defer", "auto"]));
const messages: Message[] = [{ role: "user", content: prompt }];
while (true) {
  const response = await ask(tools, messages);
  const message: Message = JSON.parse(response).choices[0].message;
  messages.push(message);
  const reply = toolreg(["call", "--format", "openai"], response);
  if (reply === "") { // no tool was called: the model is done
    console.log(message.content);
    break;
  }
  for (const line of reply.trimEnd().split("\n")) messages.push(JSON.parse(line));
}
