package servecmd

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve/question"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/store"
)

// clientConfig is the settings entry with which a program uses an MCP server.
type clientConfig struct {
	name string
	file string // file for the entry
	// stdio is the entry of a server that the client starts, http that of one at an
	// address; COMMAND, ARGS, ALL (both), URL and HEADERS stand for JSON.
	stdio, http string
	// token is how the client refers to the variable TOOLREG_TOKEN in a header; "" if the
	// entry does it otherwise.
	token string
}

// clients returns the programs whose settings are known, in the format of their
// documentation of November 2026. All of them have file and shell tools of their own.
func clients() []clientConfig {
	const stdio = `{"mcpServers":{"toolreg":{"command":COMMAND,"args":ARGS}}}`
	return []clientConfig{
		{"claude", ".mcp.json in the project, or ~/.claude.json", stdio,
			`{"mcpServers":{"toolreg":{"type":"http","url":URLHEADERS}}}`, "${TOOLREG_TOKEN}"},
		{
			"gemini", ".gemini/settings.json in the project, or ~/.gemini/settings.json", stdio,
			`{"mcpServers":{"toolreg":{"httpUrl":URLHEADERS}}}`, "${TOOLREG_TOKEN}",
		},
		{
			"antigravity", ".agents/mcp_config.json in the project, or ~/.gemini/config/mcp_config.json",
			stdio, `{"mcpServers":{"toolreg":{"serverUrl":URLHEADERS}}}`, "${TOOLREG_TOKEN}",
		},
		{
			"vscode", ".vscode/mcp.json in the project",
			`{"servers":{"toolreg":{"type":"stdio","command":COMMAND,"args":ARGS}}}`,
			`{"servers":{"toolreg":{"type":"http","url":URLHEADERS}}}`, "${env:TOOLREG_TOKEN}",
		},
		{
			"cursor", ".cursor/mcp.json in the project, or ~/.cursor/mcp.json",
			`{"mcpServers":{"toolreg":{"type":"stdio","command":COMMAND,"args":ARGS}}}`,
			`{"mcpServers":{"toolreg":{"url":URLHEADERS}}}`, "${env:TOOLREG_TOKEN}",
		},
		{
			"codex", "~/.codex/config.toml", "[mcp_servers.toolreg]\ncommand = COMMAND\nargs = ARGS",
			"[mcp_servers.toolreg]\nurl = URL\nbearer_token_env_var = \"TOOLREG_TOKEN\"", "",
		},
		{
			"windsurf", ".devin/mcp_config.json in the project, or ~/.config/devin/mcp_config.json", stdio,
			`{"mcpServers":{"toolreg":{"transport":"http","url":URLHEADERS}}}`, "${env:TOOLREG_TOKEN}",
		},
		{
			"opencode", "opencode.json in the project, or ~/.config/opencode/opencode.json",
			`{"mcp":{"toolreg":{"type":"local","command":ALL}}}`,
			`{"mcp":{"toolreg":{"type":"remote","url":URLHEADERS}}}`, "{env:TOOLREG_TOKEN}",
		},
		{
			"zed",
			"settings.json of Zed, which does not expand variables: replace TOOLREG_TOKEN by the token",
			`{"context_servers":{"toolreg":{"command":COMMAND,"args":ARGS}}}`,
			`{"context_servers":{"toolreg":{"url":URLHEADERS}}}`, "TOOLREG_TOKEN",
		},
	}
}

func clientNames() []string {
	var names []string
	for _, c := range clients() {
		names = append(names, c.name)
	}
	return names
}

func printConfig(e *cli.Env, o *options, cmd *cobra.Command) error {
	for _, c := range clients() {
		if c.name != o.printConfig {
			continue
		}
		set, _, err := e.Config.Load(cmd.Context())
		if err != nil {
			return err
		}
		if err := engine.CheckPreset(o.preset); err != nil {
			return err
		}
		args, err := givenFlags(e.Config, cmd.Flags())
		if err != nil {
			return err
		}
		if o.preset == "" && o.profile == "" {
			args = append([]string{"--preset", builtin.PresetMCP}, args...)
			e.IO.Notef("%s has file and shell tools of its own, so the built-in ones are left out; --preset full keeps them", c.name)
		}
		return o.printEntry(e, c, append([]string{"serve"}, args...), set.Serve)
	}
	return cli.Usage(fmt.Sprintf("unknown client %q", o.printConfig),
		"one of "+strings.Join(clientNames(), ", "))
}

// printEntry prints the entry of a client for a command line of toolreg.
func (o *options) printEntry(e *cli.Env, c clientConfig, args []string, set settings.Serve) error {
	entry, file := c.stdio, c.file
	url, login := "", o.http != "" && usesOAuth(set.OAuth)
	noToken := o.noAuth || login
	if o.http != "" {
		var err error
		if url, err = address(o.http); err != nil {
			return err
		}
		if set.Cert.Value != "" {
			url = "https" + strings.TrimPrefix(url, "http")
		}
		if login {
			url = set.OAuth.Audience.Value
		}
		entry = c.http
		if noToken {
			entry = strings.Split(entry, "\nbearer_token")[0]
		}
	}
	file, _, _ = strings.Cut(file, ", which")
	if o.http != "" && !noToken {
		file = c.file
	}
	command := calledAs(e.Config)
	headers := ""
	if c.token != "" && !noToken {
		headers = `,"headers":{"Authorization":` + jsonx.Quote("Bearer "+c.token) + `}`
	}
	text := strings.NewReplacer("URL", jsonx.Quote(url), "HEADERS", headers, "COMMAND", jsonx.Quote(command),
		"ARGS", quoteAll(args), "ALL", quoteAll(append([]string{command}, args...))).Replace(entry)
	if e.IO.JQ != nil && !strings.HasPrefix(text, "{") {
		return cli.Usage("--jq cannot be used with "+c.name+", whose settings are TOML", "")
	}
	e.IO.Notef("add this to %s", file)
	switch line := cli.QuoteWords(append([]string{command}, args...)); {
	case login:
		e.IO.Notef("the client logs in to %s; the server is started with %s", set.OAuth.Issuer.Value, line)
	case o.http != "" && o.noAuth:
		e.IO.Notef("the server is started with %s", line)
	case o.http != "":
		e.IO.Notef("the token of the server is expected in the variable TOOLREG_TOKEN; it is started with %s", line)
	}
	if e.IO.JQ != nil {
		return e.IO.PrintFiltered([]byte(text))
	}
	_, err := io.WriteString(e.IO.Out, text+"\n")
	return err
}

func quoteAll(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = jsonx.Quote(word)
	}
	return "[" + strings.Join(quoted, ",") + "]"
}

// givenFlags returns the flags of the command line that serve needs, with absolute paths.
func givenFlags(config *cli.Config, flags *pflag.FlagSet) (args []string, err error) {
	flags.Visit(func(f *pflag.Flag) {
		kind, _ := pflag.UnquoteUsage(f)
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			switch {
			case f.Name == "print-config" || f.Name == "json" || f.Name == "jq":
			case f.Name == "settings" && value == "-":
				err = cli.Usage("--settings - cannot be part of an entry", "name a file")
			case kind == "file" || kind == "folder":
				args = append(args, "--"+f.Name, config.Absolute(value))
			case f.Value.Type() == "bool" && value == "true":
				args = append(args, "--"+f.Name)
			case f.NoOptDefVal != "":
				args = append(args, "--"+f.Name+"="+value)
			default:
				args = append(args, "--"+f.Name, value)
			}
		}
	})
	return args, err
}

// address returns the URL for clients of a server that listens on an address.
func address(listen string) (string, error) {
	host, port, err := hostPort("--http", listen)
	if err != nil {
		return "", err
	}
	if port == "" || port == "0" {
		return "", cli.Usage(fmt.Sprintf("--http %q: an entry needs the port, which is chosen at each start", listen),
			"such as 127.0.0.1:8080")
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port) + "/mcp", nil
}

// calledAs returns the absolute path of this program as it was called, with links.
func calledAs(config *cli.Config) string {
	name := config.CalledAs
	if strings.ContainsAny(name, `/\`) {
		return config.Absolute(name)
	}
	if path, err := (process.Spec{Argv: []string{name}, Env: config.Environ}).Program(); err == nil {
		return path
	}
	self, err := os.Executable()
	if err != nil {
		return filepath.Base(name)
	}
	return self
}

// awaitStore waits until the store can be used, and reports from then on when
// it goes away and comes back. It returns false if a signal ends the process before.
func awaitStore(ctx context.Context, e *cli.Env, shared *store.Store) bool {
	hint := "until it can be, this process waits and serves nothing"
	shared.Changed = func(err error) {
		if err == nil {
			e.IO.Log.Warn("serve.store can be used again")
			return
		}
		e.IO.Warn(registry.Warning("store_away", "", "serve.store cannot be used: "+err.Error(), hint))
	}
	if shared.Wait(ctx) != nil {
		return false
	}
	hint = "until it is back, calls that need an answer or are limited are refused"
	return true
}

// questions returns the options for questions that carry a state, as newer protocol
// revisions require.
func questions(ctx context.Context, e *cli.Env, from *engine.Session) (question.Options, error) {
	key, err := stateKey(ctx, from)
	if err != nil {
		return question.Options{}, err
	}
	q := question.Options{Key: key, Warn: func(err error) {
		e.IO.Warn(registry.Warning("answers_not_shared", "",
			"other processes do not learn which questions were answered here, so an answer that a client sends twice may be accepted twice: "+err.Error(),
			""))
	}}
	if q.Store = from.Store; q.Store != nil {
		return q, nil
	}
	dir, err := e.Config.Folders.State()
	if err == nil {
		q.Answered, err = state.OpenDir(filepath.Join(dir.Path, "answered"))
	}
	if err != nil && key != "" {
		q.Warn(err)
	}
	return q, nil
}

func stateKey(ctx context.Context, from *engine.Session) (string, error) {
	key, err := from.Expander.StateKey(ctx, from.Settings.Serve.StateKey)
	if err != nil {
		return "", &settings.InputError{Err: err}
	}
	return key, nil
}
