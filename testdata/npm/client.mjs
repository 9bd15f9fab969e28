// client.mjs FEATURES SDK REVISION TRANSPORT…: does with toolreg what a client of the
// TypeScript SDK can do, and prints "ok FEATURE" for each, or why not. SDK is v1 or v2,
// TRANSPORT "stdio COMMAND ARGUMENT…" or "http URL TOKEN". The server has the built-in tools
// and those of mcp-testserver -dialogs and -tasks; FILE of "changed:FILE" is its settings file.
import { appendFileSync, existsSync, rmSync } from "node:fs";

const [features, sdk, revision, transport, ...where] = process.argv.slice(2);
const modules = {
  v1: async () => ({
    ...(await import("@modelcontextprotocol/sdk/client/index.js")),
    ...(await import("@modelcontextprotocol/sdk/client/stdio.js")),
    ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")),
    ...(await import("@modelcontextprotocol/sdk/types.js")),
  }),
  v2: async () => ({
    ...(await import("@modelcontextprotocol/client")),
    ...(await import("@modelcontextprotocol/client/stdio")),
  }),
};
const m = await modules[sdk]();

let questions = [];
let answer = () => ({ action: "cancel" });
let changed = () => {};
const client = new m.Client(
  { name: `typescript-${sdk}`, version: "1" },
  {
    capabilities: { elicitation: { form: {} } },
    listChanged: { tools: { debounceMs: 0, onChanged: (error, tools) => changed(error, tools) } },
    ...(revision === "2026-07-28" && { versionNegotiation: { mode: "auto" } }),
  },
);
client.setRequestHandler(sdk === "v1" ? m.ElicitRequestSchema : "elicitation/create", async (request) => {
  questions.push(request.params);
  return answer(request.params);
});
await client.connect(
  transport === "stdio"
    ? new m.StdioClientTransport({ command: where[0], args: where.slice(1), env: process.env })
    : new m.StreamableHTTPClientTransport(new URL(where[0]), { requestInit: { headers: { Authorization: `Bearer ${where[1]}` } } }),
);

function want(what, is) {
  if (!is) throw new Error(what);
}

// call calls a tool and returns the text of the result.
async function call(name, args, options) {
  const result = sdk === "v1" ? await client.callTool({ name, arguments: args }, undefined, options) : await client.callTool({ name, arguments: args }, options);
  return (result.isError ? "error: " : "") + result.content.map((part) => part.text).join("");
}

const run = {
  async list() {
    const { tools } = await client.listTools();
    for (const name of ["read_file", "echo", "form"]) want(`no tool ${name}`, tools.some((tool) => tool.name === name));
  },
  async call() {
    want("echo", (await call("echo", { text: "hello" })) === "hello");
    want("a wrong param", (await call("read_file", { path: 5 })).startsWith("error: "));
  },
  async asked() {
    const file = `${sdk}-${revision}-${transport}.txt`;
    answer = ({ requestedSchema }) => ({ action: "accept", content: { decision: requestedSchema.properties.decision.enum[0] } });
    questions = [];
    await call("write_file", { file_path: file, content: "x" });
    want("nothing was written", existsSync(file));
    rmSync(file);
    want(`asked ${questions.length} times`, questions.length === 1 && questions[0].message.includes(file));
    answer = () => ({ action: "decline" });
    want("a no", (await call("write_file", { file_path: file, content: "x" })).startsWith("error: "));
    want("it was written", !existsSync(file));
    answer = () => ({ action: "accept", content: { who: "me" } });
    const schema = { type: "object", properties: { who: { type: "string" } } };
    want("the server's question", (await call("form", { message: "m", schema })) === `accept {"who":"me"}`);
  },
  async cancel() {
    const stop = new AbortController();
    const working = call("work", { steps: 100000, pause: 20 }, { signal: stop.signal, onprogress: () => stop.abort(), resetTimeoutOnProgress: true });
    want("the call ended by itself", await working.then(() => false, () => true));
    want("echo after it", (await call("echo", { text: "hello" })) === "hello");
  },
  async task() {
    answer = () => ({ action: "accept", content: {} });
    questions = [];
    const seen = [];
    for await (const step of client.experimental.tasks.callToolStream({ name: "multi_input", arguments: {} }, m.CallToolResultSchema, { task: {} })) seen.push(step);
    want(`asked ${questions.length} times`, questions.length === 2);
    want(`saw ${JSON.stringify(seen)}`, seen[0].type === "taskCreated" && seen.at(-1).result?.content[0].text === "both");
  },
  async progress() {
    const seen = [];
    await call("work", { steps: 3, message: "step" }, { onprogress: (p) => seen.push(p) });
    // The SDK drops progress that it reads together with the result.
    want(`saw ${JSON.stringify(seen)}`, seen.length > 0 && seen.every((p, i) => p.progress === i + 1 && p.total === 3 && p.message.includes("step")));
  },
  async changed(file) {
    const told = new Promise((resolve, reject) => { // a notification may be left from the start
      changed = (error, tools) => (error ? reject(error) : tools.some((tool) => tool.name === "echo") || resolve());
      setTimeout(() => reject(new Error("echo is still there")), 30000).unref();
    });
    appendFileSync(file, "excludeTools: [echo]\n");
    await told;
  },
};

let status = 0;
for (const feature of features.split(",")) {
  const [name, arg] = feature.split(":");
  try {
    await run[name](arg);
    console.log("ok", name);
  } catch (error) {
    status = 1;
    console.log("failed", name, error.message);
  }
}
await client.close();
process.exit(status);
