// Counts the tokens of the messages of the workflows in examples/scripts: calls one by one,
// and one call of run_script.
//
//   node scripts.mjs TOOLREG    (after make npm)
//
// Each workflow runs against the published servers of testdata/npm. The audit log has its calls,
// which are then made one by one. The messages are those of the Messages API: a tool_use and a
// tool_result for each call.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { countTokens } from '@anthropic-ai/tokenizer'
import * as o200k from 'gpt-tokenizer/encoding/o200k_base'

const repo = join(import.meta.dirname, '../..')
const toolreg = process.argv[2]
const dir = mkdtempSync(join(tmpdir(), 'scripts-'))
const folder = join(dir, 'docs')
cpSync(join(repo, 'docs'), folder, { recursive: true })
const server = (name, args, env = {}) => ({ command: 'node', args: [join(repo, 'testdata/npm/node_modules/@modelcontextprotocol', 'server-' + name, 'dist/index.js'), ...args], env, trust: true })
const memory = join(dir, 'memory.jsonl')
writeFileSync(join(dir, 'settings.json'), JSON.stringify({ audit: { params: true }, mcpServers: {
  files: server('filesystem', [folder]), memory: server('memory', [], { MEMORY_FILE_PATH: memory }), everything: server('everything', []),
} }))
const run = (args, input) => execFileSync(toolreg, ['--settings', join(dir, 'settings.json'), ...args],
  { cwd: dir, input, encoding: 'utf8', maxBuffer: 1 << 28, env: { PATH: process.env.PATH, HOME: dir } })
const messages = (calls) => calls.map(([name, input, content], i) =>
  JSON.stringify({ role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_' + i, name, input }] }) + '\n' +
  JSON.stringify({ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_' + i, content }] })).join('\n')
const count = (text) => [Math.round(countTokens(text) * 1.1), o200k.encode(text).length]

const params = { folder, word: 'sandbox', numbers: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] }
const sum = [0, 0, 0, 0]
console.log('| workflow | calls | Claude: calls | script | GPT: calls | script | fewer |\n|---|---:|---:|---:|---:|---:|---:|')
for (const name of ['largest', 'headings', 'mentions', 'links', 'commands', 'index', 'hubs', 'sum', 'weather', 'clean']) {
  const file = join(repo, 'examples/scripts', name + '.star')
  rmSync(join(dir, '.local'), { recursive: true, force: true })
  writeFileSync(join(dir, 'params.json'), JSON.stringify(params))
  const result = run(['run', file, '--params-file', join(dir, 'params.json')]).trimEnd()
  const log = JSON.parse(run(['audit', '--json'])).entries.filter((e) => e.parent)
  const batch = log.map((e, id) => JSON.stringify({ id, name: e.tool, params: e.params })).join('\n')
  const answers = run(['call', '--batch'], batch).trimEnd().split('\n').map((line) => JSON.parse(line))
  const direct = messages(log.map((e, i) => [e.tool, e.params, answers[i].llmContent ?? '']))
  const script = messages([['run_script', { script: readFileSync(file, 'utf8'), params }, result]])
  const row = [...count(direct), ...count(script)]
  row.forEach((n, i) => { sum[i] += n })
  console.log(`| ${name} | ${log.length} | ${row[0]} | ${row[2]} | ${row[1]} | ${row[3]} | ${Math.round(100 - 100 * row[2] / row[0])} % |`)
}
console.log(`| all | | ${sum[0]} | ${sum[2]} | ${sum[1]} | ${sum[3]} | ${Math.round(100 - 100 * sum[2] / sum[0])} % |`)
rmSync(dir, { recursive: true })
