package engine

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/engine/programs"
	"github.com/toolreg/toolreg/internal/engine/sources"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/openapi"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/text"
)

// Tools finds the tools of a session. It is safe for concurrent use.
type Tools struct {
	*finder
	offers  *Offers
	scripts *Scripts
}

// Find returns the tool with a name. It starts only sources that may have it: for the name of a
// built-in tool neither plugins nor servers, for server__tool only that server, for the name of any
// other local tool no server, and for every other name all servers. If the source that the name
// refers to failed, Find returns its error and starts no other.
//
// The error is a *registry.NotFoundError, which matches registry.ErrSourceFailed if a failed source
// may have the tool; the failure of the source; or the cause of ctx. Except with the last,
// Found.Registry is the registry that was searched last, which has the diagnostics of loading it.
func (t *Tools) Find(ctx context.Context, name string, q Query) (Found, error) {
	f, err := t.registered(ctx, name, q)
	if missing, ok := errors.AsType[*registry.NotFoundError](err); ok &&
		(q.Reach || q.Script) && missing.Hidden == nil {
		own, ok := t.scripts.findRunScript(f.Registry, name, q.Format)
		var reachErr error
		if !ok && q.Reach {
			own, ok, reachErr = t.offers.reaching(ctx, f.Registry, name, q.Format)
		}
		if ok || reachErr != nil {
			f, err = own, reachErr
		} else if isScriptName(name) {
			_, hidden, listErr := t.scripts.Listed(ctx, f.Registry)
			if hidden != nil && hidden.Name == name {
				missing.Hidden = hidden
			}
			err = cmp.Or(listErr, err)
		}
	}
	return t.shown(ctx, name, q, f, err)
}

// Loaded returns the whole registry if it has been loaded, else nil.
func (t *Tools) Loaded() *registry.Registry {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.registries[stepAll]
}

// FindAll finds several tools in one registry, in its order and in the named versions. A name may
// be a glob, which must match a tool. If one of the names is a glob or may be a server's tool, the
// whole registry is loaded, because names of servers' tools depend on all servers. Errors are those
// of [Tools.Find], with the registry that was searched.
func (t *Tools) FindAll(ctx context.Context, names ...string) (*registry.Registry, []*registry.Tool, error) {
	if slices.ContainsFunc(names, text.IsGlob) {
		return t.matchAll(ctx, names)
	}
	var reg *registry.Registry
	found := make([]Found, len(names))
	for i, name := range names {
		f, err := t.Find(ctx, name, Query{Whole: true})
		if err != nil {
			return f.Registry, nil, err
		}
		if found[i] = f; reg == nil || f.Registry.Len() > reg.Len() { // the larger registry includes the others
			reg = f.Registry
		}
	}
	wanted := map[*registry.Tool]bool{}
	for i, f := range found {
		t := f.Tool
		if f.Registry != reg {
			var err error
			if t, err = reg.Lookup(names[i]); err != nil {
				return reg, nil, err
			}
		}
		wanted[t] = true
	}
	return reg, inOrder(reg, wanted), nil
}

// matchAll finds tools by names and globs in the whole registry.
func (t *Tools) matchAll(ctx context.Context, names []string) (*registry.Registry, []*registry.Tool, error) {
	reg, err := t.All(ctx)
	if err != nil {
		return reg, nil, err
	}
	wanted := map[*registry.Tool]bool{}
	for _, name := range names {
		tools, err := t.Matching(reg, name)
		if err != nil {
			return reg, nil, err
		}
		for _, t := range tools {
			wanted[t] = true
		}
	}
	return reg, inOrder(reg, wanted), nil
}

// Matching is [registry.Registry.Matching] with the errors of [Tools.Find].
func (t *Tools) Matching(reg *registry.Registry, glob string) ([]*registry.Tool, error) {
	tools, err := reg.Matching(glob)
	if err != nil {
		return nil, t.explain(reg, err)
	}
	return tools, nil
}

func inOrder(reg *registry.Registry, wanted map[*registry.Tool]bool) []*registry.Tool {
	var tools []*registry.Tool
	for _, t := range reg.Tools() {
		for _, v := range reg.Versions(t.Name) {
			if wanted[v] {
				tools = append(tools, v)
			}
		}
	}
	return tools
}

// LoadServers connects to servers, reads the documents of APIs, and lists their tools, which have qualified
// names. The error is the cause of ctx.
func (t *Tools) LoadServers(ctx context.Context, servers []*mcpclient.Source,
	apis ...*openapi.Source) (*registry.Registry, error) {
	from := sources.List(servers, apis)
	return t.loadSources(ctx, from, true), context.Cause(ctx)
}

// Discovery runs all sources, or only the named servers, and returns a report
// on each; the tools are in the registry. The error is a *NoServerError or the
// cause of ctx.
func (t *Tools) Discovery(ctx context.Context, servers ...string) (*registry.Registry, []SourceReport, error) {
	from := t.sources.All()
	on, off, err := t.sources.Named(servers...)
	if err != nil {
		return nil, nil, err
	}
	if len(servers) > 0 {
		from = sources.List(on, t.sources.APIs(servers...))
	}
	reg := t.loadSources(ctx, from, len(servers) > 0)
	if err := context.Cause(ctx); err != nil {
		return nil, nil, err
	}
	if len(servers) == 0 {
		reg = t.resolveComposites(ctx, reg)
	}
	return reg, t.Reports(reg, off), nil
}

// SourceReport describes the outcome of one source.
type SourceReport struct {
	Name       string         `json:"name"`
	Kind       string         `json:"kind"`
	State      registry.State `json:"state"`
	Tools      int            `json:"tools"`              // tools found, before filters and conflicts
	DurationMs int64          `json:"durationMs"`         // time that it took
	Error      string         `json:"error,omitempty"`    // why it failed
	CachedAt   *time.Time     `json:"cachedAt,omitempty"` // for a cached list: when the source was queried
	AgeMs      int64          `json:"ageMs,omitempty"`    // for a cached list: milliseconds since then
}

// Reports returns the outcome of each source of a registry, with servers that
// are turned off last.
func (t *Tools) Reports(reg *registry.Registry, off []sources.DisabledServer) []SourceReport {
	out := []SourceReport{}
	for _, r := range reg.Reports() {
		kind, _, _ := strings.Cut(r.Name, ":")
		report := SourceReport{
			Name:       r.Name,
			Kind:       kind,
			State:      r.State,
			Tools:      r.Tools,
			DurationMs: r.Duration.Milliseconds(),
		}
		if r.Err != nil {
			report.Error = r.Err.Error()
		}
		if at, cached := t.listings.Records.Served(r.Name); cached {
			report.CachedAt, report.AgeMs = &at, t.listings.Records.Age(r.Name).Milliseconds()
		}
		out = append(out, report)
	}
	for _, server := range off {
		kind, _, _ := strings.Cut(server.Source(), ":")
		out = append(out, SourceReport{Name: server.Source(), Kind: kind,
			State: registry.StateSkipped, Error: server.Reason()})
	}
	return out
}

// Diagnostics returns all diagnostics so far: those of the session, then those
// of loading reg. If both report the same, it appears once.
func (t *Tools) Diagnostics(reg *registry.Registry) []registry.Diagnostic {
	return t.reports.with(reg.Diagnostics())
}

// NameOwner returns the server in the settings that a plain name of a server's tool belongs to; ""
// if it belongs to none.
func (t *Tools) NameOwner(name string) string {
	owner := t.names.Owner(name).Server
	if slices.Contains(t.set.ServerNamesKnown(), owner) {
		return owner
	}
	return ""
}

// Unasked says why a source has listed no tools in this run, although the settings still have it.
// The zero value means that it listed them or is gone.
type Unasked struct {
	Reason string
	// Unknown is set if the source failed, or if this run cannot know whether it still exists.
	// Otherwise a setting has turned the source off.
	Unknown bool
}

// Unasked returns why a source, by its name, is not in a registry.
func (t *Tools) Unasked(reg *registry.Registry, source string) Unasked {
	if id, ok := strings.CutPrefix(source, registry.PluginPrefix); ok {
		for _, p := range t.sources.Plugins.Found {
			if p.ID == id && p.Disabled != nil {
				return Unasked{Reason: "disabled at " + p.Disabled.Setting}
			}
		}
	}
	for _, r := range reg.Reports() {
		switch {
		case r.Name != source:
		case r.Err != nil:
			return Unasked{"it failed", true}
		default:
			return Unasked{}
		}
	}
	for _, off := range t.sources.Off {
		if off.Source() == source {
			return Unasked{Reason: off.Reason()}
		}
	}
	server, ofServer := registry.ServerOf(source)
	switch {
	case t.set.Globals.NoProject:
		return Unasked{"the settings of the project are not read", true}
	case !t.ReadsProject(), ofServer && t.set.EntryState(server, "") == settings.EntryUntrusted:
		return Unasked{"the settings of this project are not trusted", true}
	case t.set.Globals.NoUser:
		return Unasked{"the settings of the user are not read", true}
	}
	return Unasked{}
}

// ReadsProject reports whether the settings of the project, if any, are in effect.
func (t *Tools) ReadsProject() bool {
	return !t.set.Globals.NoProject && (t.set.Project == nil || t.set.Project.Trusted)
}

// Task is a call that its server continues by itself, as stored in the state folder.
type Task struct {
	ID         string `json:"id"` // ours
	Tool       string `json:"tool"`
	Server     string `json:"server"`
	ServerTool string `json:"serverTool"`
	registry.RemoteTask
	Identity json.RawMessage `json:"identity"` // of the server
	Created  time.Time       `json:"created"`
}

const (
	taskPrefix, taskSuffix = "task-", ".json"
	// keptTasks is how long a task is known.
	keptTasks = 30 * 24 * time.Hour
)

// NoTask returns the error for an unknown task. It matches [registry.ErrNotFound].
func NoTask(format string, args ...any) error {
	return &registry.Failure{Text: fmt.Sprintf(format, args...) + ": no such task", Help: "toolreg tasks lists them",
		Kind: registry.ErrNotFound}
}

// Tasks are the calls that their servers continue (call --detach). It is safe for concurrent use.
type Tasks struct {
	finder   *finder
	servers  *sources.Servers
	kept     *sources.KeptServers
	programs *programs.Set
	runs     *toolRuns
}

// Detach prepares a call that its server continues after the run. saved is called with the task, if
// the server makes one. The error is a *settings.InputError.
func (t *Tasks) Detach(ctx context.Context, tool *registry.Tool, call *registry.Call, saved func(Task)) error {
	server, ok := t.servers.Of(tool.Qualified()).(*mcpclient.Source)
	if !ok || !tool.IsMCP() {
		return &settings.InputError{
			Err: fmt.Errorf("calls of %s cannot be detached, because it is not a tool of an MCP server", tool.Name),
		}
	}
	if set := server.Settings(); set.Command != "" && t.kept.KeepFor(set) <= 0 {
		return &settings.InputError{
			Err:  fmt.Errorf("server %q would end with this run, and its task with it", set.Name),
			Hint: "set mcpServers." + set.Name + ".keep: true",
		}
	}
	call.Last = false
	call.Detach = func(remote registry.RemoteTask) error {
		task := Task{
			ID: strings.ToLower(rand.Text()), Tool: tool.Qualified(), Server: tool.Server,
			ServerTool: tool.ServerTool, RemoteTask: remote, Identity: tool.Identity,
			Created: time.Now().UTC(),
		}
		data, err := json.Marshal(task)
		if err != nil {
			return err
		}
		dir, err := t.programs.Folders.State()
		if err == nil {
			_, over, _ := tasksIn(dir)
			for _, old := range over {
				_ = dir.Remove(ctx, old.file()) // what stays is removed the next time
			}
			err = dir.Put(task.file(), data)
		}
		if err != nil {
			return fmt.Errorf("the task %q of server %q continues, but could not be stored: %w",
				remote.ID, tool.Server, err)
		}
		saved(task)
		return nil
	}
	return nil
}

func (t *Task) file() string { return taskPrefix + t.ID + taskSuffix }

// tasksIn returns the stored tasks in a folder, and separately those that have expired.
func tasksIn(dir *state.Dir) (known, over []Task, err error) {
	names, err := dir.Names(taskPrefix, taskSuffix)
	for _, name := range names {
		var task Task
		data, err := dir.Read(name)
		switch {
		case err != nil || json.Unmarshal(data, &task) != nil || task.file() != name: // another run has removed it
		case time.Since(task.Created) >= keptTasks:
			over = append(over, task)
		default:
			known = append(known, task)
		}
	}
	return known, over, err
}

// ListTasks returns the tasks that are kept in the state folder, oldest first.
func ListTasks(folders *state.Folders) ([]Task, error) {
	dir, err := folders.State()
	if err != nil {
		return nil, err
	}
	known, _, err := tasksIn(dir)
	slices.SortFunc(known, func(a, b Task) int { return a.Created.Compare(b.Created) })
	return known, err
}

// Find returns the task whose id begins with prefix, and its server. The error may be
// that of [NoTask].
func (t *Tasks) Find(prefix string) (Task, *mcpclient.Source, error) {
	all, err := ListTasks(t.programs.Folders)
	if err != nil {
		return Task{}, nil, err
	}
	all = slices.DeleteFunc(all,
		func(task Task) bool { return prefix == "" || !strings.HasPrefix(task.ID, strings.ToLower(prefix)) })
	switch len(all) {
	case 0:
		return Task{}, nil, NoTask("%q", prefix)
	case 1:
	default:
		return Task{}, nil, &settings.InputError{Err: fmt.Errorf("%q is the beginning of the ids of %d tasks", prefix, len(all)),
			Hint: "give more of the id"}
	}
	task := all[0]
	on, _, err := t.servers.Named(task.Server)
	if err != nil {
		return task, nil, err
	}
	if len(on) != 1 || !bytes.Equal(on[0].Identity(), task.Identity) {
		return task, nil, &settings.InputError{
			Err: fmt.Errorf("server %q of the settings is not the one that has the task", task.Server),
		}
	}
	return task, on[0], nil
}

// Await waits for the result of a task. The result is checked, reduced, shortened and passed to
// hooks like that of a call, but hooks do not get the params. If the tool is no longer known, the
// result is as the server sent it. It returns the errors of [mcpclient.Source.AwaitTask] and of
// hooks.
func (t *Tasks) Await(ctx context.Context, task Task, server *mcpclient.Source,
	progress func(registry.Progress)) (*registry.Tool, registry.Result, error) {
	tool := registry.Tool{Definition: registry.Definition{
		Name: task.Tool, Server: task.Server, ServerTool: task.ServerTool,
		Source: registry.MCPPrefix + task.Server, OutputMarkdown: true,
	}}
	f, err := t.finder.Find(ctx, task.Tool, Query{Call: true})
	if err == nil && f.Tool.Server == task.Server && f.Tool.ServerTool == task.ServerTool {
		tool = *f.Tool
	}
	tool.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
		return server.AwaitTask(ctx, task.RemoteTask, tool.Upstream(), call.Progress)
	}
	result, err := t.runs.LimitOutput(t.runs.projectResults(tool)).Run(ctx, registry.Call{Progress: progress})
	if screen := t.programs.Hooks(ctx); screen != nil && (err == nil || result.IsError) {
		after, hookErr := screen.After(ctx, &tool, registry.Call{Tool: task.Tool}, result)
		return &tool, after, cmp.Or(hookErr, err)
	}
	return &tool, result, err
}

// Forget removes a task from the state folder.
func (t *Tasks) Forget(ctx context.Context, task Task) error {
	dir, err := t.programs.Folders.State()
	if err != nil {
		return err
	}
	return dir.Remove(ctx, task.file())
}
