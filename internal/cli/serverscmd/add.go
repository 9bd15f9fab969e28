package serverscmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/agents"
	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/install"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/serverjson"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/edit"
	"github.com/toolreg/toolreg/internal/settings/table"
)

type addOptions struct {
	target
	describedOptions
	url, kind, cwd, description string
	spec                        string
	headers, env                []string
	trust                       bool
}

func newAddCommand(e *cli.Env) *cobra.Command {
	o := &addOptions{}
	cmd := &cobra.Command{
		Use:   "add NAME[@VERSION] [--url URL | --openapi SPEC | -- COMMAND…]",
		Short: "Add an MCP server or an API to the settings",
		Long: editHelp(`Add an MCP server, or an API that an OpenAPI document describes, to a settings
file, your own by default.

A NAME with a slash, such as io.github.owner/server, names a server in a registry
(see servers find). A file server.json, or a bundle (a file or address that ends with
.mcpb), is added in the same way. The entry is named by the part behind the slash,
and runs exactly the version that is shown before you are asked. A form asks for the
values that the server needs, or --set gives them; without a terminal, --yes agrees.
A value is literal text unless it is env:NAME, file:PATH, cmd:COMMAND or $NAME as a
whole. Any other secret is kept in a file that only you can read.

toolreg connects to the server at once and prints what it offers. If that fails,
the entry is kept. Of an API it reads the document and calls the first operation that
only reads and needs no params. If servers check has a finding of severity high,
toolreg asks whether to keep the server enabled; without a terminal it disables it,
and the exit code is 9. --no-test skips all of this.

Refer to secrets instead of writing them into the file, as in
--env TOKEN=env:GITHUB_TOKEN or --header 'Authorization: Bearer ${TOKEN}'.`, describedCodes),
		Example: `  toolreg servers add io.github.github/github-mcp-server --set GITHUB_PERSONAL_ACCESS_TOKEN=env:GITHUB_TOKEN
  toolreg servers add files -- npx -y @modelcontextprotocol/server-filesystem .
  toolreg servers add github --url https://api.githubcopilot.com/mcp/ --header 'Authorization: Bearer ${GITHUB_TOKEN}'
  toolreg servers add pets --openapi https://pets.example.com/openapi.json`,
		RunE: func(cmd *cobra.Command, argv []string) error {
			if len(argv) == 1 && cmd.ArgsLenAtDash() < 0 && install.IsDescribed(argv[0]) &&
				!cmd.Flags().Changed("url") && o.spec == "" {
				if err := onlyDescribed(cmd); err != nil {
					return err
				}
				return addDescribed(cmd.Context(), e, &o.target, &o.describedOptions, argv[0])
			}
			if len(o.set) > 0 || o.as != "" || o.runtime != "" {
				return cli.Usage("--as, --runtime and --set are for servers of a registry",
					"see toolreg servers add --help")
			}
			if err := o.placeSpec(e.Config); err != nil {
				return err
			}
			entry, err := o.entry(argv, cmd.ArgsLenAtDash())
			if err != nil {
				return &cli.UsageError{Err: err, Hint: "see toolreg servers add --help"}
			}
			return o.target.addServers(cmd.Context(), e, []edit.Change{entry}, false)
		},
	}
	f := cmd.Flags()
	o.target.flags(cmd)
	f.StringVar(&o.url, "url", "",
		"`address` of a running server; with --openapi, that of the API in place of the servers in the document")
	f.StringVar(&o.spec, "openapi", "", "`file` or address of an OpenAPI document")
	f.StringVar(&o.kind, "type", "", "`transport`: stdio, http or sse; by default as --url or COMMAND requires")
	f.StringArrayVar(&o.headers, "header", nil,
		"`header` sent with each request, as \"Name: value\" or Name=value (repeatable)")
	f.StringArrayVar(&o.env, "env", nil, "`K=V` in the server's environment (repeatable)")
	f.StringVar(&o.cwd, "cwd", "", "`folder` in which the server runs, relative to the project root")
	f.StringVar(&o.description, "description", "", "`text` that describes the server")
	f.StringVar(&o.as, "as", "", "`name` of the entry for a server of a registry")
	f.StringVar(&o.runtime, "runtime", "", "how to run a server of a registry: `npm`, pypi, oci, nuget, mcpb or remote")
	f.StringArrayVar(&o.set, "set", nil,
		"`NAME=VALUE`: a variable, header, argument or part of an address of a server of a registry (repeatable)")
	f.BoolVar(&o.trust, "trust", false, "run its tools without asking")
	complete.Flag(cmd, "type", complete.Words("stdio", "http", "sse"))
	complete.Flag(cmd, "runtime", complete.Words(serverjson.Runtimes()...))
	complete.Flag(cmd, "cwd", complete.Dirs)
	complete.Flag(cmd, "openapi", complete.Files)
	return cmd
}

func onlyDescribed(cmd *cobra.Command) error {
	for _, name := range []string{"type", "header", "env", "cwd", "description", "trust"} {
		if cmd.Flags().Changed(name) {
			return cli.Usage(fmt.Sprintf("--%s cannot be used with a server of a registry", name),
				"give values with --set, or change the entry afterwards with toolreg servers edit")
		}
	}
	return nil
}

// entry converts the command line to an entry. dash is the number of arguments
// before --, -1 without one.
func (o *addOptions) entry(argv []string, dash int) (edit.Change, error) {
	if dash < 0 {
		dash = len(argv)
	}
	before, command := argv[:dash], argv[dash:]
	switch {
	case len(before) == 0 || before[0] == "":
		return edit.Change{}, errors.New("give a NAME")
	case strings.HasPrefix(before[0], "{"):
		return edit.Change{}, errors.New("add JSON with toolreg servers add-json")
	case table.CheckServerName(before[0]) != nil:
		return edit.Change{}, table.CheckServerName(before[0])
	case len(before) > 1 && strings.Contains(before[1], "://"):
		return edit.Change{}, fmt.Errorf("unexpected argument %q; give the address with --url", before[1])
	case len(before) > 1:
		return edit.Change{}, fmt.Errorf("unexpected argument %q; put -- before the command", before[1])
	case o.spec != "":
		return o.apiEntry(before[0], command)
	case len(command) == 0 && o.url == "":
		return edit.Change{}, errors.New("give --url URL, --openapi SPEC or -- COMMAND")
	case len(command) > 0 && o.url != "":
		return edit.Change{}, errors.New("--url and a command cannot be used together")
	case len(command) > 0 && len(o.headers) > 0:
		return edit.Change{}, errors.New("--header is for servers with a --url")
	case len(command) == 0 && (len(o.env) > 0 || o.cwd != ""):
		return edit.Change{}, errors.New("--env and --cwd are for servers with a command")
	}
	entry := install.Entry{Type: o.kind, URL: o.url, Cwd: o.cwd, Description: o.description, Trust: o.trust}
	if len(command) > 0 {
		entry.Command, entry.Args = command[0], command[1:]
	}
	var err error
	if entry.Env, err = pairsObject("--env", "NAME=VALUE", "=", o.env); err != nil {
		return edit.Change{}, err
	}
	if entry.Headers, err = pairsObject("--header", `"Name: value"`, ":=", o.headers); err != nil {
		return edit.Change{}, err
	}
	data, err := jsonx.Marshal(entry)
	return edit.Change{Name: before[0], Entry: data}, err
}

// placeSpec converts the path of a document from relative to the working directory to one that is
// valid wherever the entry applies: the settings of a project are used in every checkout.
func (o *addOptions) placeSpec(config *cli.Config) error {
	if o.spec == "" || strings.Contains(o.spec, "://") || strings.HasPrefix(o.spec, "$") {
		return nil
	}
	root, err := config.ProjectRoot() // also determines the working directory
	if err != nil {
		return err
	}
	o.spec = config.Absolute(o.spec)
	if rel, err := filepath.Rel(root, o.spec); err == nil && filepath.IsLocal(rel) && o.scope == "project" {
		o.spec = filepath.ToSlash(rel)
	}
	return nil
}

func (o *addOptions) apiEntry(name string, command []string) (edit.Change, error) {
	if len(command) > 0 || len(o.env) > 0 || o.cwd != "" || o.kind != "" {
		return edit.Change{}, errors.New("--openapi cannot be used with a command, --env, --cwd or --type")
	}
	headers, err := pairsObject("--header", `"Name: value"`, ":=", o.headers)
	if err != nil {
		return edit.Change{}, err
	}
	data, err := jsonx.Marshal(struct {
		Spec        string          `json:"spec"`
		BaseURL     string          `json:"baseUrl,omitempty"`
		Headers     json.RawMessage `json:"headers,omitempty"`
		Description string          `json:"description,omitempty"`
		Trust       bool            `json:"trust,omitempty"`
	}{o.spec, o.url, headers, o.description, o.trust})
	return edit.Change{Name: name, API: true, Entry: data}, err
}

// pairsObject returns a JSON object of names and values in order; nil if given is empty.
// The first separator in a text ends the name. Errors never contain a value.
func pairsObject(flag, form, separators string, given []string) (json.RawMessage, error) {
	if len(given) == 0 {
		return nil, nil
	}
	object := jsonx.NewObject()
	for _, text := range given {
		at := strings.IndexAny(text, separators)
		if at <= 0 {
			return nil, fmt.Errorf("%s takes %s", flag, form)
		}
		name, value := text[:at], text[at+1:]
		if text[at] == ':' {
			value = strings.TrimSpace(value)
		}
		if object.Get(name) != nil {
			return nil, fmt.Errorf("%s sets %s twice", flag, name)
		}
		object.Set(name, jsonx.NewString(value))
	}
	return object.JSON(), nil
}

func newAddJSONCommand(e *cli.Env) *cobra.Command {
	t := &target{}
	cmd := &cobra.Command{
		Use:   "add-json [NAME] [JSON]",
		Short: "Add MCP servers from the JSON in their documentation",
		Long: editHelp(`Add MCP servers to a settings file, your own by default.

JSON has the form shown in servers' documentation: {"mcpServers": {…}}, also those
of VS Code ("mcp": {"servers": …}), Zed and opencode, a single entry with its name,
with or without braces around, or an entry without a name, for which you give NAME.
Without JSON, or with -, it is read from stdin. Either all servers are added or none.
toolreg connects to each at once, as servers add does.`, editCodes),
		Example: `  toolreg servers add-json '{"mcpServers": {"memory": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]}}}'
  toolreg servers add-json github '{"type": "http", "url": "https://api.githubcopilot.com/mcp/"}'
  toolreg servers add-json < claude_desktop_config.json`,
		Args: cli.ArgsBetween(0, 2, "at most a NAME and JSON"),
		RunE: func(cmd *cobra.Command, argv []string) error {
			all, err := readServers(e.IO, argv)
			if err != nil {
				return err
			}
			return t.addServers(cmd.Context(), e, all, true)
		},
	}
	t.flags(cmd)
	return cmd
}

func readServers(ios *cli.IO, argv []string) ([]edit.Change, error) {
	const hint = `toolreg servers add-json NAME '{"command": "npx", "args": ["-y", "x"]}'`
	name, data := "", "-"
	isJSON := func(s string) bool {
		s = strings.TrimSpace(s)
		return s != "" && strings.Contains("{\"`", s[:1])
	}
	switch {
	case len(argv) == 2:
		name, data = argv[0], argv[1]
	case len(argv) == 1 && isJSON(argv[0]):
		data = argv[0]
	case len(argv) == 1 && argv[0] != "-":
		name = argv[0]
	}
	if name != "" { // names that are in the JSON are kept, as in settings
		if err := table.CheckServerName(name); err != nil {
			return nil, &cli.UsageError{Err: err}
		}
	}
	if data == "-" {
		if ios.InTTY {
			return nil, cli.Usage("give the JSON as an argument or on stdin", hint)
		}
		read, err := ios.ReadStdin("servers", document.MaxFile)
		if err != nil {
			return nil, err
		}
		data = string(read)
	}
	servers, err := agents.ParsePasted([]byte(data), name)
	if err != nil {
		return nil, &cli.UsageError{Err: err, Hint: hint}
	}
	if len(servers) == 0 {
		return nil, cli.Usage("the JSON has no servers", hint)
	}
	var all []edit.Change
	for _, s := range servers {
		if s.Problem != "" {
			return nil, &cli.UsageError{Err: fmt.Errorf("server %q cannot be added: %s", s.Name, s.Problem)}
		}
		all = append(all, edit.Change{Name: s.Name, Entry: s.JSON})
	}
	return all, nil
}
