package sources

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/engine/listing"
	"github.com/toolreg/toolreg/internal/engine/programs"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/lazy"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/openapi"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
)

// NoServerError reports that the settings have no server of this name. It
// matches [registry.ErrNotFound].
type NoServerError struct {
	Name  string
	Known []string // names of all servers
}

func (e *NoServerError) Error() string {
	message := fmt.Sprintf("no server named %q (%d in the settings)", e.Name, len(e.Known))
	if near := registry.Near(e.Name, e.Known); len(near) > 0 {
		message += "; did you mean " + strings.Join(near, ", ") + "?"
	}
	return message
}

// Hint says where to look.
func (e *NoServerError) Hint() string { return "run toolreg servers to see all servers" }

// Is reports whether target is [registry.ErrNotFound].
func (e *NoServerError) Is(target error) bool { return target == registry.ErrNotFound }

// Servers are the MCP servers and APIs of a run, in settings order.
type Servers struct {
	on       []*mcpclient.Source // started only if needed
	Off      []DisabledServer    // disabled or not allowed, never started
	apis     []*openapi.Source
	listings *listing.Store
	// recorded are the servers of the recording that is replayed. Their tools come from other
	// sources.
	recorded []*mcpclient.Source
}

// InUse returns the servers and APIs in use, in the order of registration.
func (s *Servers) InUse() []registry.Source { return List(s.on, s.apis) }

// List returns servers, then APIs.
func List(servers []*mcpclient.Source, apis []*openapi.Source) []registry.Source {
	out := make([]registry.Source, 0, len(servers)+len(apis))
	for _, server := range servers {
		out = append(out, server)
	}
	for _, api := range apis {
		out = append(out, api)
	}
	return out
}

// APIs returns the APIs whose names match one of the patterns, or all without patterns. It
// reads no document.
func (s *Servers) APIs(patterns ...string) []*openapi.Source {
	var out []*openapi.Source
	for _, api := range s.apis {
		name := api.Settings().Name
		if len(patterns) == 0 ||
			slices.ContainsFunc(patterns, func(pattern string) bool { return text.MatchName(pattern, name) }) {
			out = append(out, api)
		}
	}
	return out
}

// On returns the MCP servers that are not turned off.
func (s *Servers) On() []*mcpclient.Source { return slices.Concat(s.on, s.recorded) }

// Named returns the MCP servers whose names match one of the patterns, or all without patterns.
// Servers and APIs that are turned off are returned separately. A pattern that matches neither a
// server nor an API is a *NoServerError. It starts no server.
func (s *Servers) Named(patterns ...string) (on []*mcpclient.Source, off []DisabledServer, err error) {
	if len(patterns) == 0 {
		return s.On(), s.Off, nil
	}
	for _, pattern := range patterns {
		apis := s.APIs(pattern)
		matched := len(apis) > 0
		for _, api := range apis {
			s.listings.ForgetFailure(api.Name())
		}
		for _, server := range s.On() {
			if text.MatchName(pattern, server.Info().Name) {
				matched = true
				s.listings.ForgetFailure(server.Name()) // a named server is started even if it failed recently
				on = text.AppendNew(on, server)
			}
		}
		for _, server := range s.Off {
			if text.MatchName(pattern, server.Name) {
				matched = true
				if !slices.ContainsFunc(off, func(o DisabledServer) bool { return o.Name == server.Name }) {
					off = append(off, server)
				}
			}
		}
		if !matched {
			return nil, nil, &NoServerError{pattern, s.Names()}
		}
	}
	return on, off, nil
}

// Failed returns the servers and APIs of a registry that did not list their tools.
func (s *Servers) Failed(reg *registry.Registry) []registry.Source {
	return slices.DeleteFunc(s.InUse(), func(source registry.Source) bool { return reg.Failure(source.Name()) == nil })
}

// Has reports whether a source is a server or an API in use.
func (s *Servers) Has(source registry.Source) bool { return slices.Contains(s.InUse(), source) }

// Infos describes the servers of a registry, with servers that are turned off
// last. Their tools are the registered ones.
func Infos(reg *registry.Registry, on []*mcpclient.Source, off []DisabledServer) []mcpclient.Info {
	out := make([]mcpclient.Info, 0, len(on)+len(off))
	for _, server := range on {
		info := server.Info()
		info.Tools = len(reg.ByServer(info.Name))
		out = append(out, info)
	}
	for _, server := range off {
		out = append(out, server.info())
	}
	return out
}

// Of returns the server or API that a name of the form server__tool refers to,
// or nil. The longest server name wins.
func (s *Servers) Of(name string) registry.Source {
	var found registry.Source
	longest := 0
	for _, server := range s.InUse() {
		if raw, _ := registry.ServerOf(server.Name()); len(raw) > longest && isToolOf(raw, name) {
			found, longest = server, len(raw)
		}
	}
	return found
}

// FindDisabled returns the turned-off server to which a name of the form server__tool refers, or
// nil. The longest server name wins, including names of servers in use.
func (s *Servers) FindDisabled(name string) *DisabledServer {
	var found *DisabledServer
	longest := 0
	if on := s.Of(name); on != nil {
		raw, _ := registry.ServerOf(on.Name())
		longest = len(raw)
	}
	for i, off := range s.Off {
		if len(off.Name) > longest && isToolOf(off.Name, name) {
			found, longest = &s.Off[i], len(off.Name)
		}
	}
	return found
}

// isToolOf reports whether a name has the form server__tool for this server.
func isToolOf(server, name string) bool {
	return strings.HasPrefix(name, server+"__") || strings.HasPrefix(name, registry.ValidName(server+"__"))
}

// Names returns the names of all servers, with those that are turned off
// last.
func (s *Servers) Names() []string {
	var out []string
	for _, server := range slices.Concat(s.on, s.recorded) {
		out = append(out, server.Info().Name)
	}
	for _, api := range s.apis {
		out = append(out, api.Settings().Name)
	}
	for _, off := range s.Off {
		out = append(out, off.Name)
	}
	return out
}

// DisabledServer is a server that is not started, or an API that is not used, because the settings
// turn it off or it is skipped.
type DisabledServer struct {
	settings.Server
	isAPI   bool
	options mcpclient.Options // of a server
	skipped string            // why it is skipped; "" if the settings turn it off
}

// Source returns the name of its source.
func (o DisabledServer) Source() string {
	if o.isAPI {
		return registry.APIPrefix + o.Name
	}
	return registry.MCPPrefix + o.Name
}

// Reason says which setting turns it off, or why it is skipped.
func (o DisabledServer) Reason() string {
	why, _ := o.Off()
	return why
}

// Off returns the same reason, and the place of the setting or of the entry.
func (o DisabledServer) Off() (why, setting string) {
	if o.skipped != "" {
		return o.skipped, o.Origin.String()
	}
	return o.Server.Off()
}

// Hint returns the command that turns the server on; "" for a skipped server.
func (o DisabledServer) Hint() string {
	if o.skipped != "" {
		return ""
	}
	return "toolreg servers enable NAME"
}

func (o DisabledServer) info() mcpclient.Info {
	info := mcpclient.Info{Name: o.Name, Transport: APITransport, BaseURL: secret.Text(o.URL, nil), Origin: o.Origin.String()}
	if !o.isAPI {
		info = mcpclient.New(o.options).Info()
	}
	info.State, info.Error = mcpclient.StateDisabled, o.Reason()
	return info
}

// APITransport is the transport of APIs in [mcpclient.Info].
const APITransport = "openapi"

// APIInfos describes the APIs of a registry. Their tools are the registered ones.
func APIInfos(ctx context.Context, reg *registry.Registry, apis []*openapi.Source) []mcpclient.Info {
	var out []mcpclient.Info
	for _, api := range apis {
		a := api.Info()
		info := mcpclient.Info{Name: a.Name, Transport: APITransport, State: mcpclient.StateDisconnected,
			BaseURL: secret.Text(a.BaseURL, nil), Tools: len(reg.ByServer(a.Name)),
			ConnectMs: a.Duration.Milliseconds(), Origin: api.Settings().Origin.String()}
		err := a.Err
		if a.State == openapi.Ready {
			err = api.NeedsLogin(ctx)
		}
		switch {
		case errors.Is(err, registry.ErrNeedsLogin):
			info.State, info.Error = mcpclient.StateNeedsLogin, err.Error()
		case err != nil:
			info.State, info.Error = mcpclient.StateFailed, err.Error()
		case a.State == openapi.Ready && !a.CachedAt.IsZero():
			info.State, info.CachedAt, info.AgeMs = mcpclient.StateCached, &a.CachedAt,
				max(time.Since(a.CachedAt).Milliseconds(), 0)
		case a.State == openapi.Ready:
			info.State = mcpclient.StateConnected
		}
		out = append(out, info)
	}
	return out
}

// shells are programs that run a command line. wrappers are programs that run a command among their
// arguments on this machine.
const shells, wrappers = "sh bash dash ash zsh ksh fish cmd powershell pwsh",
	"env nice ionice nohup setsid stdbuf time timeout sudo doas " +
		"npx npm pnpx pnpm yarn bun bunx uvx uv pipx poetry go mise direnv"

// commands finds the commands of a shell line that have serve among their words.
var commands = lazy.NewRegexp(`(?:^|[;&|(])\s*(?:\w+=\S*\s+|exec\s+)*['"]?([^\s'";&|(]+)['"]?\s(?:[^;&|]*\s)?serve\b`)

// StartsToolreg reports whether a command line starts toolreg, as a server that would offer
// this registry to itself: the program is toolreg by name or a link to it, or it is a
// shell, a package runner or another wrapper that runs toolreg with serve among its words.
// Files of scripts are not read.
func StartsToolreg(argv []string, dir string, environ []string) bool {
	if len(argv) == 0 || argv[0] == "" {
		return false
	}
	if programName(argv[0]) == "toolreg" {
		return true
	}
	if !strings.Contains(strings.Join(argv, " "), "serve") {
		return false // without looking at files
	}
	self, err := os.Executable()
	if err != nil {
		self = "toolreg"
	}
	if path, err := (process.Spec{Argv: argv[:1], Dir: dir, Env: environ}).Program(); err == nil &&
		sameFile(path, self) {
		return slices.Contains(argv, "serve")
	}
	isShell := slices.Contains(strings.Fields(shells), programName(argv[0]))
	if !isShell && !slices.Contains(strings.Fields(wrappers), programName(argv[0])) {
		return false
	}
	for i, word := range argv {
		if isToolreg(word, self) && slices.Contains(argv[i:], "serve") {
			return true
		}
		if !isShell {
			continue
		}
		for _, command := range commands.Get().FindAllStringSubmatch(word, -1) {
			if isToolreg(command[1], self) {
				return true
			}
		}
	}
	return false
}

// isToolreg reports whether a word is the name of toolreg, with or without a version, or a path of
// this program.
func isToolreg(word, self string) bool {
	if i := strings.LastIndexByte(word, '@'); i > 0 {
		word = word[:i]
	}
	name := programName(word)
	return name == "toolreg" || name == programName(self) || filepath.IsAbs(word) && sameFile(word, self)
}

// programName returns the last part of a program's path, without .exe.
func programName(path string) string {
	return strings.TrimSuffix(strings.ToLower(path[strings.LastIndexAny(path, `/\`)+1:]), ".exe")
}

// sameFile reports whether two paths are the same file, after resolving links.
func sameFile(a, b string) bool {
	one, err := filepath.EvalSymlinks(a)
	if err != nil {
		return false
	}
	other, err := filepath.EvalSymlinks(b)
	return err == nil && one == other
}

// skipReason returns why a server is not started, or "": it would be toolreg itself, or this run is
// inside a server that a toolreg started, whose list would contain itself without end. inside is
// [process.InsideServer].
func skipReason(p *programs.Set, inside func() (server string, ok bool), server *settings.Server) string {
	if name, ok := inside(); ok && name == "" {
		return "skipped: this toolreg runs inside a server of another"
	} else if ok {
		return fmt.Sprintf("skipped: this toolreg runs inside the server %q of another", name)
	}
	argv := append([]string{server.Command}, server.Args...)
	for i, word := range argv {
		if text, err := p.Expander.Word(word); err == nil {
			argv[i] = text
		}
	}
	if StartsToolreg(argv, expand.From(p.Settings.ProjectRoot, server.Cwd), p.Environ) {
		return "skipped: it starts toolreg itself"
	}
	return ""
}
