package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/provider/deferred"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/script"
)

// RunScript is the name of the tool that runs a script, unless the registry has a tool of that
// name.
const RunScript = "run_script"

// scriptHelp tells a model how to write scripts.
const scriptHelp = "Runs a script that calls tools, in one turn and without their results in the conversation. " +
	"It is Starlark: Python without imports, while, try, classes, ** and f-strings. " +
	"tools.NAME(param=value) returns the structured result of a tool, else its text, and ends the script if the call fails; " +
	"call(\"NAME\", {\"param\": value}) returns r.ok, r.value, r.text, r.category and r.error instead. " +
	"parallel(f, list) calls f for each item at once and returns the results in order. " +
	"search(\"words\") finds tools and describe(\"NAME\") shows the params of one. " +
	"json and math are there, params has the params. " +
	"print(text) adds lines to the result, which is what main(params) returns, else the variable result. Return only what you need."

// scriptSchema is the input schema of run_script.
const scriptSchema = `{"type":"object","properties":{` +
	`"script":{"type":"string","description":"The script, in Starlark","minLength":1},` +
	`"params":{"type":"object","description":"What the script finds in the variable params"}},` +
	`"required":["script"],"additionalProperties":false}`

// tool returns the tool run_script without signatures.
func (s *Scripts) tool(name, file string) *registry.Tool {
	t := &registry.Tool{Definition: registry.Definition{Name: name,
		DisplayName: "Run a script", Source: registry.SourceComposite,
		Category: registry.CategoryOther, InputSchema: json.RawMessage(scriptSchema), Description: scriptHelp}}
	t.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
		var p struct {
			Script string          `json:"script"`
			Params json.RawMessage `json:"params"`
		}
		if err := json.Unmarshal(call.Params, &p); err != nil {
			return registry.Result{}, err
		}
		return s.Run(ctx, file, []byte(p.Script), p.Params, call, false)
	}
	return t
}

// Tool returns the tool that runs a script, for positions in file. It loads nothing. The
// params are {script, params}.
func (s *Scripts) Tool(ctx context.Context, file string) Found {
	return Found{Registry: s.finder.BuiltIn(ctx), Tool: s.tool(RunScript, file)}
}

func isScriptName(name string) bool {
	for strings.HasPrefix(name, takenPrefix) {
		name = name[len(takenPrefix):]
	}
	return name == RunScript
}

const takenPrefix = "toolreg_"

// name returns the name of run_script in declarations of a format. It has a prefix if the registry
// has a tool of that name.
func (s *Scripts) name(whole *registry.Registry, format string) string {
	name := RunScript
	for taken := deferred.Taken(format, Names(whole)); taken(name); {
		name = takenPrefix + name
	}
	return name
}

// Has reports whether name is that of the tool run_script. It loads the whole registry only if the
// name could be.
func (s *Scripts) Has(ctx context.Context, name string) (bool, error) {
	if !isScriptName(name) {
		return false, nil
	}
	whole, err := s.finder.All(ctx)
	return err == nil && s.name(whole, "") == name, err
}

// findRunScript returns the tool run_script if name refers to it and it may be called. A model
// whose response is answered in a format may always call it; otherwise the settings must declare
// it.
func (s *Scripts) findRunScript(whole *registry.Registry, name, format string) (Found, bool) {
	if !isScriptName(name) || format == "" && !s.finder.set.Script.Declared() || s.name(whole, format) != name {
		return Found{}, false
	}
	return Found{Registry: whole, Tool: s.tool(name, "script")}, true
}

// Listed returns the tool run_script for listings. If models do not see it, hidden says why: no
// setting declares it, or rules deny all its calls.
func (s *Scripts) Listed(ctx context.Context, whole *registry.Registry) (*registry.Tool, *registry.Hidden, error) {
	t := s.tool(s.name(whole, ""), "script")
	if !s.finder.set.Script.Declared() {
		return nil, &registry.Hidden{Name: t.Name, Source: t.Source,
			Reason: "only scripts: true, schema --scripts and serve --expose scripts declare it"}, nil
	}
	offered, denied, err := s.offers.Split(ctx, whole, []*registry.Tool{t})
	if err != nil || len(offered) > 0 {
		return t, nil, err
	}
	return nil, &denied[0], nil
}

// Declare returns the tool run_script with the signatures of as many tools as fit in search.budget,
// for the format of its declaration. Its scripts can call only tools for which allowed is true. It
// returns false if rules deny all its calls.
func (s *Scripts) Declare(ctx context.Context, whole *registry.Registry,
	format string, allowed func(*registry.Tool) bool) (Found, bool, error) {
	tools, err := s.offers.inScope(ctx, whole)
	if err != nil {
		return Found{}, false, err
	}
	tools = slices.DeleteFunc(tools, func(t *registry.Tool) bool { return !allowed(t) })
	f := Found{Registry: whole, Tool: s.tool(s.name(whole, format), "script")}
	run := f.Tool.Run
	f.Tool.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
		return run(WithScope(ctx, allowed, nil), call)
	}
	own, _, err := s.offers.Split(ctx, whole, []*registry.Tool{f.Tool})
	if err != nil || len(own) == 0 {
		return Found{}, false, err
	}
	in, err := provider.Lookup(cmp.Or(format, "mcp"))
	if err != nil {
		return Found{}, false, err
	}
	used, shown := in.Tokens([]byte(f.Tool.Description+scriptSchema)), 0
	var stubs strings.Builder
	const rest = 40 // tokens of the last line
	for _, t := range tools {
		stub := script.Stub(&t.Definition)
		cost := in.Tokens([]byte(stub))
		if used+cost+rest > s.finder.set.Search.Budget {
			continue
		}
		used, shown = used+cost, shown+1
		stubs.WriteString(stub)
	}
	text := f.Tool.Description
	if shown > 0 {
		text += "\n\nTools, as fields of tools:\n" + stubs.String()
	}
	if more := len(tools) - shown; more > 0 {
		text += "\n" + s.offers.overview(tools).Rest(more)
	}
	f.Tool.Description = strings.TrimSuffix(text, "\n")
	return f, true, nil
}

// Finding is a mistake in a script.
type Finding struct {
	At      string `json:"at"` // FILE:LINE:COL
	Tool    string `json:"tool,omitempty"`
	Message string `json:"message"`
}

// Check finds mistakes in a script without running it: syntax errors, unknown tools, and params
// that no call can have. Unless the script cannot be parsed, it loads and returns the whole
// registry. The error is the cause of ctx, or that of an engine that failed.
func (s *Scripts) Check(ctx context.Context, file string, text []byte) ([]Finding, *registry.Registry, error) {
	uses, err := script.Check(ctx, script.Script{Name: file, Text: text, Limits: s.limits(), Engine: s.engine})
	findings := []Finding{}
	if f, ok := errors.AsType[*script.Failure](err); ok {
		return append(findings, Finding{At: f.At, Message: strings.TrimPrefix(f.Error(), f.At+": ")}), nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if len(uses) == 0 {
		return findings, nil, nil
	}
	whole, err := s.finder.All(ctx)
	if err != nil {
		return nil, whole, err
	}
	r := &scriptRun{Scripts: s, taken: map[string]bool{}}
	for _, use := range uses {
		name, err := r.name(ctx, use.Path)
		var f Found
		if err == nil {
			f, err = s.finder.Find(ctx, name, Query{})
			err = s.noServer(ctx, use.Path, err)
		}
		if err != nil {
			if len(use.Path) == 1 && !use.Called && s.isServer(ctx, use.Path[0]) {
				continue // its tools are named elsewhere
			}
			findings = append(findings, Finding{use.At, strings.Join(use.Path, "."), err.Error()})
			continue
		}
		if use.Called {
			findings = append(findings, checkUse(ctx, f, &use)...)
		}
	}
	return findings, whole, nil
}

func (s *Scripts) isServer(ctx context.Context, name string) bool {
	return slices.ContainsFunc(s.finder.forCaller(ctx).sources.All(), func(source registry.Source) bool {
		server, ok := registry.ServerOf(source.Name())
		return ok && server == name
	})
}

// checkUse checks the params of a call as far as they are literals in the script.
func checkUse(ctx context.Context, f Found, use *script.Mention) (findings []Finding) {
	if use.Args > 0 {
		return []Finding{{use.At, f.Tool.Name, f.Tool.Name + ": params are given by name"}}
	}
	params := jsonx.NewObject()
	unknown := map[string]bool{}
	places, order := map[string]string{}, map[string]int{use.At: -1}
	for i, p := range use.Params {
		places[p.Name], order[p.At] = p.At, i
		if p.Value == nil {
			unknown[p.Name] = true
		} else if v, err := jsonx.Parse(p.Value, jsonx.Options{}); err == nil {
			params.Set(p.Name, v)
		}
	}
	if known, err := jsonx.Parse(Restored(f.Tool, params.JSON()), jsonx.Options{}); err == nil {
		params = known
	}
	for name := range unknown {
		params.Set(name, jsonx.NewNull())
	}
	invalid, ok := errors.AsType[*registry.ArgsError](f.Registry.Validate(ctx, f.Tool, params.JSON()))
	if !ok {
		return nil
	}
	for _, v := range invalid.Violations {
		param := ""
		for param = range jsonx.Tokens(v.Pointer) {
			break // only the first token is the name of a param
		}
		switch {
		case unknown[param] && v.Keyword != "additionalProperties":
			continue // only known when the script runs
		case v.Pointer == "" && v.Keyword == "required" && use.Open:
			continue
		case v.Pointer == "" && v.Keyword != "required" &&
			v.Keyword != "additionalProperties" && (use.Open || len(unknown) > 0):
			continue // a combination of params
		}
		at := cmp.Or(places[param], use.At)
		message := v.Message
		if v.Pointer != "" {
			message = v.Pointer[1:] + ": " + message
		}
		findings = append(findings, Finding{at, f.Tool.Name, fmt.Sprintf("%s: %s", f.Tool.Name, message)})
	}
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(order[a.At], order[b.At]) })
	return findings
}
