package cli

// docs is the address of the documentation.
const docs = "https://github.com/toolreg/toolreg/blob/main/docs/"

const rulesHelp = `The first rule that matches a call decides: allow, sandbox, ask or deny.

  policy:
    rules:
      - {tool: run_shell_command, command: git push, decision: ask}
      - {path: "secrets/**", decision: deny, reason: private}
      - {server: github, annotations: {readOnlyHint: true}, decision: allow}
    defaults: {network: deny}

A rule matches if all of its fields match: tool, source, server, category,
annotations, command, path, when (a jq expression over the params).

The order is: --settings files, the settings of the system, the user and the
trusted project, then "always" answers, then policy.defaults by category. What
excludeTools and shell.banned deny stays denied in every approval mode.

  toolreg why TOOL k=v… --explain   every rule, and why it matches or not
  toolreg policy import claude      rules from the permissions of another agent

See ` + docs + `policy.md
`

const sandboxHelp = `In the sandbox a program reads the system's programs and the project, writes only
the project, and has no network. Keys, logins and shell startup files are out of
reach, so that it can run without a question. It needs Linux 6.12 or newer.

  policy:
    rules:
      - {tool: run_shell_command, decision: sandbox}
  sandbox:
    mode: auto                                  # off, auto or require
    shell: {network: ["proxy.example.com"], read: [~/data]}

A program reads the folders on PATH and the installations behind them, the caches
of go, npm, pip and cargo, git's settings and the workspace. It never reads
~/.ssh, ~/.aws, ~/.gnupg, ~/.npmrc, keyrings, and the files of browsers and of
toolreg, unless an entry of read names them.

  toolreg doctor            whether the sandbox is available, and what is missing
  toolreg why TOOL k=v…     whether a call would run in it

See ` + docs + `sandbox.md
`

const servingHelp = `toolreg serve offers the registry as one MCP server: over stdio to the program
that starts it, or with --http ADDR to many clients, which send a bearer token.

  toolreg serve --print-config claude     the entry for a client's settings
  toolreg serve --http 127.0.0.1:8080 --token-file tokens
  toolreg serve --expose search           three tools that find the others

A line of the token file is a name and a token. What would need a question is
asked of the client; a client that cannot ask gets an error that names the rule.
Trust in a project is never asked about over MCP: run toolreg trust grant first.

See ` + docs + `serve.md
`

const namingHelp = `A tool is called by its registered name. Names have letters, digits, "_", "." and
"-", and at most 63 characters.

  read_file               a built-in tool, or a tool of any source with that name
  github__create_issue    the tool create_issue of the server github; always works
  deploy@1.2.0            one version of a tool

If the name of a server's tool is taken, the tool is registered as SERVER__TOOL.
Prefer this form in rules and in excludeTools: it cannot mean another server.
A plain name stays with the server that had it first, even while that server is
disabled or fails.

  toolreg list --all      every name, and the tools that a setting hides
  toolreg why TOOL        where a tool comes from

See ` + docs + `servers.md
`
