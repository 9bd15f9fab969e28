// Package settings finds, reads, checks and merges the settings into plain structs.
//
// Load finds the files and reads each scope in order of precedence with package layers, which
// checks each value against its row in package table, and files of other programs with package
// imports. Package consent tells it what a project's own files would do. Package merge merges what
// applies; for scalars, viper decides between flag, variable and file. Strings stay as written
// until they are used; package values then expands variables and references. Package edit changes
// settings files.
package settings

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/consent"
	"github.com/toolreg/toolreg/internal/settings/decode"
	"github.com/toolreg/toolreg/internal/settings/imports"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/merge"
	"github.com/toolreg/toolreg/internal/settings/table"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/trust"
)

// Settings holds the merged, unexpanded settings. Load fills it: a tag names the
// setting that a field holds.
type Settings struct {
	ProjectRoot string // absolute; where discovery and call commands run
	Workspace   string // absolute; the tree that file tools may touch
	// NoWorkspace is set if Workspace is the root of the file system only because the run started
	// there. File and shell tools are then left out.
	NoWorkspace bool

	DiscoveryCommand Command       `setting:"toolDiscoveryCommand"`
	DiscoveryTimeout time.Duration `setting:"toolDiscoveryTimeout"` // default 30s; 0 means none
	CallCommand      Command       `setting:"toolCallCommand"`
	Env              []Pair        `setting:"env"` // added for discovery, call and plugin commands
	InheritEnv       bool          `setting:"inheritEnv"`

	Servers []Server // in file order, followed by new ones of later files

	APIs []API // entries of openapi, in file order

	Registries []Registry `setting:"registries"` // the official one if the setting is absent

	KeepServers time.Duration `setting:"servers.keep"` // Keep of the servers that do not set it

	CoreTools     List              `setting:"coreTools"` // all built-ins if absent
	ExcludeTools  List              `setting:"excludeTools"`
	AllowedTools  List              `setting:"allowedTools"`
	OnlyTools     List              `setting:"tools.only"`
	AllowOptional List              `setting:"tools.allow"`
	Permissions   map[string]bool   // filesystem, network, shell, database; true if absent
	DeniedBy      map[string]Origin // for the permissions that are false, where that was set
	Conflicts     string            `setting:"conflicts.discovered"` // overwrite (default), reject, qualify
	ServerNames   string            `setting:"names.servers"`        // first (default), qualified

	ApprovalMode   string `setting:"approvalMode"` // default, auto-edit, plan, yolo
	ApprovalOrigin Origin
	Rules          []Rule
	PolicyDefaults map[string]Rule // by category; Decision and Origin set

	ShellBanned List `setting:"shell.banned"` // the default if Set is false

	ShellCatastrophic string        `setting:"shell.catastrophic"` // deny, ask
	ShellTimeout      time.Duration `setting:"shell.timeout"`      // default 120s; 0 means none
	ShellMaxTimeout   time.Duration `setting:"shell.maxTimeout"`   // default 1h; 0 means any

	PluginPaths  List          `setting:"plugins.paths"`
	PluginsOff   List          `setting:"plugins.disabled"`
	FetchAllow   List          `setting:"fetch.allowHosts"`
	Fetch        Fetch         // the other fetch.* settings
	Approval     Approval      // approval.*
	Sampling     Sampling      // sampling.*
	Search       Search        // search.*
	Script       Scripts       // scripts.*
	Serve        Serve         // serve.*
	DiscoveryTTL time.Duration `setting:"cache.discovery"` // 0 means off
	FailuresTTL  time.Duration `setting:"cache.failures"`  // default 1m; 0 means off. Applies only with DiscoveryTTL
	AuditParams  bool          `setting:"audit.params"`
	Audit        Audit         // the other audit.* settings
	Telemetry    Telemetry     // telemetry.*
	Images       string        `setting:"display.images"`
	ToolOptions  []ToolOption  `setting:"toolOptions"` // in file order
	// OwnToolOptions are those without the entries of the project; nil if it has none.
	OwnToolOptions []ToolOption
	Hooks          []Hook      // of all scopes, in order
	Silences       []Silence   `setting:"check.silence"` // of all scopes
	CallLimits     []CallLimit `setting:"serve.limits"`  // of all scopes
	Profiles       []Profile   `setting:"serve.profiles"`
	Limits         Limits

	// Globals holds the global flags and their variables.
	Globals Globals

	// View is the program whose servers alone are the registry of this run; nil for the whole
	// registry.
	View *imports.Program

	// NothingImported is set if a program of --import has no servers. Commands that look at tools
	// return it as an error.
	NothingImported *NothingImportedError

	// Project is the state of the project's own settings and plugins; nil if it has none.
	Project *Project

	merged      *merge.Merged // see [Settings.Merged]
	importPaths []string      // where to look for the files of imports
	serverFiles serverFiles
	namedInside bool // --settings names a file in the project
}

// Telemetry holds the telemetry.* settings.
type Telemetry struct {
	Endpoint string `setting:"telemetry.endpoint"` // "" means none
	Headers  []Pair `setting:"telemetry.headers"`  // unexpanded
	Content  bool   `setting:"telemetry.content"`
}

// Search holds the search.* settings.
type Search struct {
	Command Command       `setting:"search.command"` // unexpanded; if it is not set, the order is that of BM25
	Timeout time.Duration `setting:"search.timeout"`
	Budget  int           `setting:"search.budget"` // tokens of the declarations that are not deferred; default 10,000
	Always  List          `setting:"search.always"` // names or globs of tools that are never deferred
	Client  bool          `setting:"search.client"` // toolreg answers the searches of OpenAI's Responses API
}

// Scripts holds the scripts.* settings.
type Scripts struct {
	On      bool          `setting:"scripts"` // short for Declare
	Declare bool          `setting:"scripts.declare"`
	Steps   int           `setting:"scripts.steps"`
	Calls   int           `setting:"scripts.calls"`
	Timeout time.Duration `setting:"scripts.timeout"`
	Memory  int64         `setting:"scripts.memory"` // bytes
}

// Declared reports whether the tool run_script is declared.
func (s Scripts) Declared() bool { return s.On || s.Declare }

// Approval holds the approval.* settings.
type Approval struct {
	Command Command       `setting:"approval.command"` // unexpanded
	Timeout time.Duration `setting:"approval.timeout"` // default 10m; 0 means none
}

// Sampling holds the sampling.* settings.
type Sampling struct {
	Command Command       `setting:"sampling.command"` // unexpanded
	Timeout time.Duration `setting:"sampling.timeout"` // default 2m; 0 means none
	// Requests is the maximum number of a server's requests during one call; by default 10.
	Requests int `setting:"sampling.requests"`
}

// Limits holds the limits.* settings, in bytes unless noted.
type Limits struct {
	// DiscoveryOutput is the limit of the discovery command, for stdout and stderr each; by default
	// 10 MiB.
	DiscoveryOutput int64 `setting:"limits.discoveryOutput"`
	Document        int64 `setting:"limits.document"`    // of a file of an OpenAPI document; default 64 MiB
	Frame           int64 `setting:"limits.frame"`       // of one message of an MCP server; default 16 MiB
	Result          int64 `setting:"limits.result"`      // of the result of a call; default 64 MiB
	Output          int64 `setting:"limits.output"`      // of a call's output; default 10 MiB
	Answer          int64 `setting:"limits.answer"`      // of the text of a result for a model; default 100 KB
	Spill           int64 `setting:"limits.spill"`       // of the file with the whole output; default 1 GiB
	Schema          int64 `setting:"limits.schema"`      // of one tool's schema; default 1 MiB
	Description     int64 `setting:"limits.description"` // of one tool's description; default 16 KiB
	Tools           int   `setting:"limits.tools"`       // number of tools of a source; default 10,000
	Pages           int   `setting:"limits.pages"`       // number of pages of a listing; default 100
}

// Project is the state of a project's own settings and plugins.
type Project struct {
	Root     string         // the project root
	Files    []string       // files that the hash covers, absolute
	Hash     string         // sha256 over the covered bytes, hex
	Trusted  bool           // granted, or --trust-project, or --settings named every file
	Runs     []string       // what would run, one command per line, for the trust prompt
	Loosens  []string       // settings that loosen the policy or pass on the environment, file:line: key = value
	Expands  []string       // variables and references that would be read, file:line: key: NAME
	Covered  []trust.File   // contents of Files, for trust.Store.Grant
	Granted  time.Time      // of the last grant; zero if there was none
	Changes  []trust.Change // since the last grant
	Outside  bool           // it is trusted, but programs on PATH have changed, as in Changes
	Obstacle string         // why no grant is possible; "" if one is
}

// Merged returns what all scopes in effect say, as written.
func (s *Settings) Merged() *merge.Merged {
	if s.merged == nil {
		return merge.Of(table.NewIndex(), nil)
	}
	return s.merged
}

// RawNamed returns the entries of composites, overrides, toolOptions, context or mcpServers, merged
// by name, in file order.
func (s *Settings) RawNamed(key string) []Named { return s.Merged().Named(key) }

// Setting returns the effective value of a setting that is replaced as a whole. Its name is empty,
// and its Value is null if there is neither a value nor a default.
func (s *Settings) Setting(key string) Named {
	if e, ok := s.Merged().Last(key); ok {
		return Named{Value: e.Value, Origin: e.Origin}
	}
	return Named{Value: s.Merged().Index.Row(key).DefaultValue()}
}

// For returns the settings with the env, inheritEnv and sandbox that apply to a program which a
// setting of this scope names. A project's apply only to the project's programs: they could keep a
// program of the person's settings from its own files, or point it at others. It returns s if there
// is no difference.
func (s *Settings) For(scope Scope) *Settings {
	if scope == ScopeProject || s.merged == nil {
		return s
	}
	own := s.merged.Without(func(e layers.Setting) bool {
		holds := e.Row.Name == "env" || e.Row.Name == "inheritEnv" || strings.HasPrefix(e.Row.Name, table.Sandbox)
		return holds && e.Origin.Scope == ScopeProject
	})
	if own == s.merged {
		return s
	}
	out := *s
	out.merged = own
	decode.Setting(own, &out.Env, own.Index.Row("env"))
	decode.Setting(own, &out.InheritEnv, own.Index.Row("inheritEnv"))
	return &out
}

// StartsOutside reports whether a stdio server without a cwd must not start in the project root.
// That is the case for the person's own servers, because many programs, such as npx and python3 -m,
// run code that they find in their working directory. That code may run once the person has trusted
// the project. A blank or missing settings file needs no trust, and so gives none.
func (s *Settings) StartsOutside(server Server) bool {
	if !server.isOwn() {
		return false
	}
	return !s.trustsProject()
}

// trustsProject reports whether the person has trusted the project, by a grant or for this run.
// Settings that need no trust, such as a blank file, are not enough.
func (s *Settings) trustsProject() bool {
	return s.Globals.TrustProject || s.Project != nil && s.Project.Trusted && !s.Project.Granted.IsZero()
}

// TrustsLock reports whether the project's lock file may say which server a name belongs to, even
// if that is one of the person's own. It may if the person has trusted the project, or has named a
// settings file in it, which could say the same.
func (s *Settings) TrustsLock() bool { return s.trustsProject() || s.namedInside }

// KeepOf returns how long a server is kept while no run uses it; zero means that it is not kept.
func (s *Settings) KeepOf(server Server) time.Duration {
	switch {
	case server.PerClient || server.Type == "sse":
		return 0
	case server.Keep != nil:
		return *server.Keep
	}
	return s.KeepServers
}

// Scripts returns the absolute paths of programs and scripts in the workspace that commands in
// effect run, see [trust.Scripts], and of manifests of plugins there. folders are the folders where
// a new plugin would be used, except those that contain the workspace.
func (s *Settings) Scripts(environ []string) (scripts, folders []string, err error) {
	folders, manifests, programs := s.programs(environ)
	scripts, err = trust.Scripts(s.Workspace, programs)
	return append(manifests, scripts...), slices.DeleteFunc(folders, func(folder string) bool {
		return trust.Within(trust.Real(s.Workspace), trust.Real(folder))
	}), err
}

// programs returns the folders of plugins, their manifests, and what the settings and plugins run.
func (s *Settings) programs(environ []string) (folders, manifests []string, programs []trust.Program) {
	f := &consent.File{Layer: &layers.Layer{Settings: slices.Collect(s.merged.All())}}
	expanded := expandKnown(expand.NewEnviron(environ))
	all := consent.Programs(f)
	folders = []string{filepath.Join(s.ProjectRoot, projectFolder, "plugins")}
	for _, e := range s.PluginPaths.Entries {
		if folder, err := s.PluginFolder(e, expanded); err == nil {
			folders = append(folders, folder)
		}
	}
	if user := UserFolder(environ); user != "" {
		folders = append(folders, filepath.Join(user, "plugins"))
	}
	for _, p := range consent.Plugins(f, s.ProjectRoot, folders) {
		manifests, all = append(manifests, p.Path), append(all, p.Programs...)
	}
	return folders, manifests, consent.Expand(all, s.ProjectRoot, expanded, nil)
}

// PluginFolder returns the absolute path of an entry of plugins.paths. Relative paths are
// resolved from the project root; those of the system's and the user's settings from the
// folder of the file, because a project must not be able to put plugins there.
func (s *Settings) PluginFolder(e Entry, word func(string) (string, error)) (string, error) {
	path, err := word(e.Value)
	if err != nil || filepath.IsAbs(path) {
		return path, err
	}
	base := s.ProjectRoot
	if e.Origin.Scope == ScopeUser || e.Origin.Scope == ScopeSystem {
		base = filepath.Dir(e.Origin.Name)
	}
	return filepath.Join(base, path), nil
}

// Missing returns the absolute paths of files outside the workspace that do not exist, but that
// programs of the settings might run or load if they did.
func (s *Settings) Missing(environ []string) map[string]bool {
	_, _, programs := s.programs(environ)
	return trust.Missing(s.Workspace, programs)
}

// Unasked returns the absolute paths of files and folders that are run or obeyed without a
// question, as far as they are known: scripts of the settings, folders of plugins, where a new one
// would be used, and what trust in the project covers or would cover.
func (s *Settings) Unasked(environ []string) []string {
	folders, out, programs := s.programs(environ)
	scripts, _ := trust.Scripts(s.Workspace, programs)
	out = append(out, scripts...)
	for _, folder := range folders {
		out = append(out, trust.Real(folder))
	}
	if s.Project != nil {
		out = append(out, s.Project.Files...)
	}
	return out
}

// ProtectedPaths returns the absolute paths, files and folders, where toolreg
// looks for settings. No tool may change them, because settings decide what tools
// may do. files are the arguments of --settings, relative to dir.
func (s *Settings) ProtectedPaths(environ []string, dir string, files []string) []string {
	env := expand.NewEnviron(environ)
	out := []string{filepath.Join(s.ProjectRoot, projectFolder), systemFolder(env)}
	if user := userFolder(env); user != "" {
		out = append(out, user)
	}
	out = append(out, s.importPaths...)
	for _, f := range files {
		f = expand.From(dir, f)
		out = append(out, f)
	}
	return out
}

// InputError is a mistake in a flag, a variable, or an entry of the settings that is
// invalid only in combination with others.
type InputError struct {
	Err  error
	Hint string // what to do; may be empty
}

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

// Entries returns the entries of all servers: those of mcpServers and of openapi.
func (s *Settings) Entries() []Server {
	out := slices.Clip(s.Servers)
	for i := range s.APIs {
		out = append(out, s.APIs[i].Server)
	}
	return out
}

// EntryNames returns the names of all servers and APIs.
func (s *Settings) EntryNames() []string {
	names := []string{}
	for _, entry := range s.Entries() {
		names = append(names, entry.Name)
	}
	return names
}

// Server returns the entry of mcpServers with a name; nil if there is none.
func (s *Settings) Server(name string) *Server {
	for i := range s.Servers {
		if s.Servers[i].Name == name {
			return &s.Servers[i]
		}
	}
	return nil
}

// API returns the entry of openapi with a name; nil if there is none.
func (s *Settings) API(name string) *API {
	for i := range s.APIs {
		if s.APIs[i].Name == name {
			return &s.APIs[i]
		}
	}
	return nil
}

// Entry returns the entry of a server or an API with a name; nil if there is none.
func (s *Settings) Entry(name string) *Server {
	if api := s.API(name); api != nil && s.Server(name) == nil {
		return &api.Server
	}
	return s.Server(name)
}

// OptionsOf returns the options of a tool, which entries may refer to by any of its
// names.
func (s *Settings) OptionsOf(t *registry.Tool) ToolOptions {
	var out ToolOptions
	if name, isAPI := strings.CutPrefix(t.Source, registry.APIPrefix); isAPI && s.API(name) != nil {
		out.MaxOutput = s.API(name).MaxOutput
	}
	byProject := false
	for i := range s.ToolOptions {
		o := &s.ToolOptions[i]
		if !o.matches(t) {
			continue
		}
		out.Named = out.Named || !strings.ContainsAny(o.Pattern, "*?[")
		out.Timeout = cmp.Or(o.Timeout, out.Timeout)
		out.RetryDelay = cmp.Or(o.RetryDelay, out.RetryDelay)
		if o.Cache != nil {
			out.Cache, byProject = o.Cache, o.Origin.Scope == ScopeProject
		}
		out.MaxOutput = cmp.Or(o.MaxOutput, out.MaxOutput)
		out.Retries = cmp.Or(o.Retries, out.Retries)
		out.Log = cmp.Or(o.Log, out.Log)
	}
	if byProject {
		if limit := s.ownCache(t); limit != nil && *limit < *out.Cache {
			out.Cache, out.Shortened = limit, true
		}
	}
	return out
}

// ownCache returns how long a project may cache the results of a tool: as long as other scopes do.
// If they set nothing, there is no limit, except for built-in tools, whose results depend on the
// person's own files and rules.
func (s *Settings) ownCache(t *registry.Tool) (limit *time.Duration) {
	if t.Source == registry.SourceBuiltin {
		limit = new(time.Duration)
	}
	for i := range s.OwnToolOptions {
		if o := &s.OwnToolOptions[i]; o.Cache != nil && o.matches(t) {
			limit = o.Cache
		}
	}
	return limit
}

// EntryState returns what has become of a server's entry in a file.
func (s *Settings) EntryState(server, file string) EntryState {
	if s.Entry(server) != nil {
		return EntryInEffect
	}
	for _, entries := range s.serverFiles {
		if slices.ContainsFunc(entries, func(e serverEntry) bool { return e.name == server }) {
			return EntryUntrusted
		}
	}
	entries, read := s.serverFiles[file]
	if !read {
		entries, read = s.serverFiles[filepath.Dir(file)]
	}
	if read && entries == nil {
		return EntryUnreadable
	}
	if _, err := os.Lstat(file); read || errors.Is(err, fs.ErrNotExist) {
		return EntryGone
	}
	return EntryElsewhere
}

// ServerNamesKnown returns the names of all servers in the settings, including those of an
// untrusted project.
func (s *Settings) ServerNamesKnown() []string {
	out := s.EntryNames()
	for _, entries := range s.serverFiles {
		for _, e := range entries {
			out = text.AppendNew(out, e.name)
		}
	}
	return out
}

// ServersWritten returns the entries of servers in each file that was read, as written, by
// file and name.
func (s *Settings) ServersWritten() map[string]map[string]string {
	out := map[string]map[string]string{}
	for file, entries := range s.serverFiles {
		if entries == nil {
			continue
		}
		out[file] = map[string]string{}
		for _, e := range entries {
			out[file][e.name] = string(e.value.JSON())
		}
	}
	return out
}

// Fetch holds the fetch.* settings other than [Settings.FetchAllow].
type Fetch struct {
	Processor Command       `setting:"fetch.processor"` // unexpanded
	Proxy     bool          `setting:"fetch.proxy"`
	Timeout   time.Duration `setting:"fetch.timeout"`
	MaxBytes  int64         `setting:"fetch.maxBytes"`
	Headers   []OriginHeaders
}

// OriginHeaders holds the headers that are sent to one origin only.
type OriginHeaders struct {
	URL     string // the origin, scheme://host:port, in normal form
	Headers []Pair // unexpanded
}
