package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolreg/toolreg/internal/agents"
	"github.com/toolreg/toolreg/internal/atomicfile"
	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/timing"
	"github.com/toolreg/toolreg/internal/trust"
)

// Config holds the input of a run: flags, environment, files named on the command line,
// and settings. Each is read once, when first used.
type Config struct {
	Environ  []string // of the process, "K=V"
	CalledAs string   // the name by which the program was started, os.Args[0]
	Dir      string   // the working directory; "" until the settings are read
	Globals  settings.Globals
	Folders  *state.Folders

	io      *IO
	person  *Person
	trust   *Trust
	command *cobra.Command // the running command

	// The settings after they are read, with their diagnostics; nil before.
	set   *settings.Settings
	diags []registry.Diagnostic
	piped map[string][]byte // --settings files that can be read only once, by name
}

// follow reads the global flags of a command and the environment variables that set them.
func (c *Config) follow(cmd *cobra.Command) error {
	c.command = cmd
	g, err := settings.ResolveGlobals(c.globalFlags())
	if err == nil {
		c.Globals = g
	}
	return err
}

func (c *Config) globalFlags() *pflag.FlagSet { return c.command.Root().PersistentFlags() }

// Getenv returns an environment variable; "" if it is not set.
func (c *Config) Getenv(name string) string {
	return c.io.vars.Get(name)
}

// Settings reads the settings once and prints their diagnostics. On a terminal
// the first run in a project may ask whether to trust it.
func (c *Config) Settings(ctx context.Context) (*settings.Settings, error) {
	set, diags, err := c.Load(ctx)
	c.io.Diagnose(diags)
	return set, err
}

// Load is [Config.Settings] for results that include the diagnostics. With
// an error they are already printed.
func (c *Config) Load(ctx context.Context) (*settings.Settings, []registry.Diagnostic, error) {
	if c.set != nil {
		return c.set, c.diags, nil
	}
	options, err := c.Options()
	if err != nil {
		return nil, nil, err
	}
	set, diags, err := settings.Load(options)
	if err != nil {
		c.io.Diagnose(diags) // an unknown key may have caused the mistake
		return nil, nil, err
	}
	changed, err := c.trust.offer(ctx, c.command.CommandPath(), set.Project)
	if err != nil {
		return nil, nil, err
	}
	if changed {
		if set, diags, err = settings.Load(options); err != nil {
			return nil, nil, err
		}
	}
	c.set, c.diags = set, c.trust.withRefusal(set.Project, diags)
	return c.set, c.diags, nil
}

// Forget makes the next use read the settings again, after a file has changed.
func (c *Config) Forget() { c.set, c.diags = nil, nil }

// Options returns the options for reading settings. It determines the
// working directory.
func (c *Config) Options() (settings.Options, error) {
	if c.Dir == "" {
		dir, err := os.Getwd()
		if err != nil {
			return settings.Options{},
				fmt.Errorf("finding the working directory: %w; change to an existing folder", err)
		}
		c.Dir = dir
	}
	if err := c.readPiped(c.Globals.Files); err != nil {
		return settings.Options{}, err
	}
	o := settings.Options{
		Dir: c.Dir, Root: c.Globals.Root, Files: c.Globals.Files, Piped: c.piped,
		NoProject: c.Globals.NoProject, NoUser: c.Globals.NoUser, TrustProject: c.Globals.TrustProject,
		Environ: c.Environ, Flags: c.globalFlags(), Import: agents.Importer{}, View: c.showsProgram(), Builtin: builtin.Named,
	}
	if store, err := c.trust.Store(); err == nil {
		o.Trust = store
	} else {
		c.io.Log.Info("no state directory", "err", err)
	}
	return o, nil
}

// showsProgram reports whether --import makes the command show only the tools of that program. With
// --preset, its servers join the registry instead.
func (c *Config) showsProgram() bool {
	_, command, _ := strings.Cut(c.command.CommandPath(), " ")
	if !slices.Contains([]string{"list", "search", "why", "schema", "servers", "discover", "doctor"}, command) {
		return false
	}
	preset := c.command.Flags().Lookup("preset")
	return preset == nil || !preset.Changed
}

// RefuseInside returns an error inside a tool's run, because a tool must not extend what it may do.
// what names the refused action, such as "granting trust".
func (c *Config) RefuseInside(what string) error {
	switch {
	case process.Depth(c.Environ) > 0:
		return fmt.Errorf("%w: %s is not possible inside a tool's run (%s is set)",
			registry.ErrDenied, what, process.DepthVariable)
	case process.InsideTool(c.Environ):
		return fmt.Errorf("%w: %s is not possible inside a tool's run (toolreg started this process)",
			registry.ErrDenied, what)
	}
	return nil
}

// MaxArgument is the maximum size of a file that is the value of an argument, in bytes.
const MaxArgument = 64 << 20

// ReadFile reads a file of at most max bytes that is named on the command line.
func (c *Config) ReadFile(ctx context.Context, name string, max int64) ([]byte, error) {
	return timing.UntilDone(ctx, func() ([]byte, error) {
		f, err := os.Open(c.Absolute(name))
		if err != nil {
			return nil, withName(name, err)
		}
		defer f.Close()
		data, err := io.ReadAll(io.LimitReader(f, max+1))
		return limited(data, withName(name, err), name, max)
	})
}

// withName returns an error of package os with the file's name as the user wrote it.
func withName(name string, err error) error {
	if err != nil {
		err = fmt.Errorf("%s: %w", name, text.Cause(err))
	}
	return err
}

func limited(data []byte, err error, name string, max int64) ([]byte, error) {
	if err == nil && int64(len(data)) > max {
		err = fmt.Errorf("%s is larger than the limit of %d bytes", name, max)
	}
	return data, err
}

// WriteFile writes a file named on the command line. Links in the project at root may not be the
// user's own: a link in place of the file is replaced, and a link to a folder must not lead out of
// the project.
func (c *Config) WriteFile(root, name string, content []byte) error {
	file := c.Absolute(name)
	folder, inside, err := c.folder(root, file)
	if err != nil {
		return withName(name, err)
	}
	defer folder.Close()
	if !inside {
		return withName(name, os.WriteFile(file, content, 0o666))
	}
	return withName(name, atomicfile.Write(folder, filepath.Base(file), content, atomicfile.Options{}))
}

// folder opens the folder of a file; inside reports whether it is in the project at root.
func (c *Config) folder(root, file string) (folder *os.Root, inside bool, err error) {
	if info, err := os.Lstat(file); err == nil && info.IsDir() {
		return nil, false, syscall.EISDIR
	}
	if !trust.Within(file, root) { // the working directory may be spelled otherwise
		root, file = trust.Real(root), filepath.Join(trust.Real(filepath.Dir(file)), filepath.Base(file))
	}
	rel, err := filepath.Rel(root, file)
	if err != nil || !filepath.IsLocal(rel) {
		folder, err = os.OpenRoot(filepath.Dir(file))
		return folder, false, err
	}
	project, err := os.OpenRoot(root)
	if err != nil {
		return nil, true, err
	}
	defer project.Close()
	folder, err = project.OpenRoot(filepath.Dir(rel))
	return folder, true, err
}

// ProjectRoot returns the root folder of the project. It determines the working directory.
func (c *Config) ProjectRoot() (string, error) {
	options, err := c.Options()
	if err != nil {
		return "", err
	}
	return settings.Root(options)
}

// UserFolder returns the folder of the user's own settings.
func (c *Config) UserFolder() (string, error) {
	folder := settings.UserFolder(c.Environ)
	if folder == "" {
		return "", Usage("there is no folder for your settings", "set HOME or XDG_CONFIG_HOME")
	}
	return folder, nil
}

// readPiped reads the --settings files that can be read only once: stdin (-) and
// pipes, such as a shell's <(…). If stdin is among them, the command cannot read
// it again.
func (c *Config) readPiped(files []string) error {
	for _, name := range files {
		if info, err := os.Stat(c.Absolute(name)); name != "-" && (err != nil || info.Mode()&fs.ModeNamedPipe == 0) {
			continue
		}
		if _, read := c.piped[name]; read {
			continue
		}
		var data []byte
		var err error
		if name != "-" {
			data, err = c.ReadFile(c.command.Context(), name, document.MaxFile)
		} else {
			data, err = io.ReadAll(io.LimitReader(c.io.In, document.MaxFile+1))
			c.io.In = readerFunc(func([]byte) (int, error) {
				return 0, Usage("stdin holds the settings (--settings -)", "give params with --params or k=v")
			})
		}
		if err != nil {
			return fmt.Errorf("reading the settings of --settings %s: %w", name, err)
		}
		c.piped[name] = data
	}
	return nil
}

// IsPiped reports whether a --settings file was read from a pipe.
func (c *Config) IsPiped(name string) bool {
	_, piped := c.piped[name]
	return piped
}

// Absolute returns a path of the command line as an absolute path.
func (c *Config) Absolute(path string) string {
	return filepath.Clean(expand.From(c.Dir, path))
}

// Context reads TOOLREG_CONTEXT, a JSON object, then --context k=v and --channel, which override the
// setting context. Numbers, true and false are converted; the value of k:=JSON is JSON.
func (c *Config) Context() (out []settings.Named, err error) {
	if text := c.Getenv("TOOLREG_CONTEXT"); text != "" {
		given, err := jsonx.Parse([]byte(text), jsonx.Options{})
		if err != nil || given.Kind != jsonx.Object {
			return nil, Usage("TOOLREG_CONTEXT is not a JSON object", `for example {"agentId":"a1"}`)
		}
		for _, m := range given.Members {
			out = append(out, settings.Named{Name: m.Name, Value: m.Value,
				Origin: settings.Origin{Scope: settings.ScopeEnv, Name: "TOOLREG_CONTEXT"}})
		}
	}
	flags, err := c.globalFlags().GetStringArray("context")
	for _, f := range flags {
		name, text, ok := strings.Cut(f, "=")
		raw := strings.HasSuffix(name, ":")
		name = strings.TrimSuffix(name, ":")
		if !ok || name == "" {
			return nil, Usage(fmt.Sprintf("--context %q: expected k=v", f),
				"for example --context sandboxed=true")
		}
		value, err := jsonx.Parse([]byte(text), jsonx.Options{})
		switch {
		case raw && err != nil:
			return nil, &UsageError{Err: fmt.Errorf("--context %s:= needs JSON", name)}
		case !raw && (err != nil || !slices.Contains([]jsonx.Kind{jsonx.Number, jsonx.True, jsonx.False}, value.Kind)):
			value = jsonx.NewString(text)
		}
		out = append(out, settings.Named{Name: name, Value: value,
			Origin: settings.Origin{Scope: settings.ScopeFlag, Name: "--context"}})
	}
	if channel := c.Globals.Channel; channel != "" {
		origin := settings.Origin{Scope: settings.ScopeFlag, Name: "--channel"}
		if !c.globalFlags().Changed("channel") {
			origin = settings.Origin{Scope: settings.ScopeEnv, Name: "TOOLREG_CHANNEL"}
		}
		out = append(out, settings.Named{Name: "channel", Value: jsonx.NewString(channel), Origin: origin})
	}
	return out, err
}

// cacheMode returns how cached listings are used.
func (c *Config) cacheMode(ask bool) cache.Mode {
	switch {
	case c.Globals.Refresh:
		return cache.Renew
	case c.Globals.Cached:
		return cache.Offline
	case ask:
		return cache.Live
	}
	return cache.Fresh
}

// wantsJSON reports whether the command line or the environment requests JSON. It does
// not use the flag parser, which stops at the first mistake: that mistake must be
// reported in JSON too. The last flag wins.
func wantsJSON(argv []string, variable string) bool {
	wanted, _ := strconv.ParseBool(cmp.Or(variable, "false")) // invalid values are reported elsewhere
	for _, word := range argv {
		name, value, given := strings.Cut(word, "=")
		switch {
		case word == "--":
			return wanted
		case name == "--jq":
			wanted = true
		case name == "--json":
			on, err := strconv.ParseBool(value)
			wanted = !given || on || err != nil
		}
	}
	return wanted
}

// checkFlags returns an error for mistakes in the global flags that would otherwise be found
// only after a command has started to work, or not at all.
func (c *Config) checkFlags() error {
	if c.Globals.Refresh && c.Globals.Cached {
		return Usage("--refresh and --cached cannot be used together",
			"TOOLREG_REFRESH and TOOLREG_CACHED act like the flags")
	}
	if c.Globals.Record != "" && c.Globals.Replay != "" {
		return Usage("--record and --replay cannot be used together",
			"TOOLREG_RECORD and TOOLREG_REPLAY act like the flags")
	}
	_, err := c.Context()
	return err
}

// GeminiSettings returns a note that the project contains settings of the Gemini CLI,
// and how to use them. Both are empty if there are no such settings or --settings
// names them.
func (c *Config) GeminiSettings(s *settings.Settings) (note, how string) {
	name := filepath.Join(".gemini", "settings.json")
	path := filepath.Join(s.ProjectRoot, name)
	named := func(file string) bool { return c.Absolute(file) == path }
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() ||
		slices.ContainsFunc(c.Globals.Files, named) {
		return "", ""
	}
	if rel, err := filepath.Rel(c.Dir, path); err == nil {
		name = rel
	}
	return name + " contains settings of the Gemini CLI, which toolreg can read",
		"toolreg list --settings " + Quote(name) +
			" uses them; to keep them, copy the file to .toolreg/settings.json, or set imports: [gemini] for only its MCP servers"
}

// NoteGeminiSettings prints that note for a person at the terminal, once per
// project.
func (c *Config) NoteGeminiSettings(s *settings.Settings) {
	if !c.person.AtKeyboard() {
		return
	}
	note, how := c.GeminiSettings(s)
	sum := sha256.Sum256([]byte(s.ProjectRoot))
	if note == "" || !c.firstTime("gemini-"+hex.EncodeToString(sum[:8])) {
		return
	}
	c.io.noteText(ErrorBody{Message: note, Hint: how})
}

// firstTime reports whether a note has not yet been shown to this user, and records
// that it is shown now. name is the name of the record's file in the state folder.
func (c *Config) firstTime(name string) bool {
	dir, err := c.Folders.State()
	if err != nil {
		return false
	}
	if _, err := dir.Read(name); err == nil {
		return false
	}
	if err := dir.Put(name, nil); err != nil {
		c.io.Log.Debug("cannot remember that a note was shown", "name", name, "err", err)
	}
	return true
}
