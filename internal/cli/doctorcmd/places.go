package doctorcmd

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/audit"
	"github.com/toolreg/toolreg/internal/builtin/shell"
	"github.com/toolreg/toolreg/internal/confine"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/engine/record"
	"github.com/toolreg/toolreg/internal/engine/sources"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/values"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
)

// folders checks whether the state and cache folders are writable.
func (x *examination) folders() {
	d, err := x.env.Config.Folders.State()
	if err == nil {
		err = probe(d)
	}
	if err != nil {
		x.addFinding(stateError, "state folder", "set XDG_STATE_HOME to a folder that you can write to",
			"answers, trust and the audit log cannot be saved: %s", err)
	} else {
		x.addFinding(stateOK, "state folder", "", "%s", d.Path)
	}
	d, err = x.env.Config.Folders.Cache("output")
	if err == nil {
		err = probe(d)
	}
	if err != nil {
		x.addFinding(stateWarning, "cache folder", "set XDG_CACHE_HOME to a folder that you can write to",
			"output that is too large for a result cannot be saved: %s", err)
	} else {
		x.addFinding(stateOK, "cache folder", "", "%s", filepath.Dir(d.Path))
	}
}

// cache describes the discovery cache. Doctor itself queries all sources.
func (x *examination) cache(s *engine.Session) {
	kept, err := s.Records.List()
	ttl := s.Settings.DiscoveryTTL
	var bytes int64
	for _, k := range kept {
		bytes += k.Bytes
	}
	switch {
	case err != nil:
		x.addFinding(stateWarning, "discovery cache",
			"set XDG_CACHE_HOME to a folder that you can write to", "it cannot be read: %s", err)
	case len(kept) == 0 && ttl == 0:
		x.addFinding(stateInfo, "discovery cache", "",
			"disabled; set cache.discovery: 1h to use cached tool lists for an hour")
	case len(kept) == 0:
		x.addFinding(stateOK, "discovery cache", "", "empty (cache.discovery is %s)", ui.AgeText(ttl.Milliseconds()))
	default:
		oldest := time.Since(kept[0].Stored).Milliseconds()
		x.addFinding(stateOK, "discovery cache", "", "%s, %d KiB, the oldest %s old (cache.discovery is %s)",
			text.Count(len(kept), "listing"), (bytes+1023)/1024, ui.AgeText(max(oldest, 0)),
			ui.AgeText(ttl.Milliseconds()))
	}
}

// probe writes a file and removes it.
func probe(d *state.Dir) error {
	f, err := d.Create("probe-" + rand.Text()[:8])
	if err != nil {
		return err
	}
	_, err = f.WriteString("x")
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

func (x *examination) programs(ctx context.Context, s *settings.Settings) {
	env, err := values.ToolEnviron(ctx, s,
		values.NewExpander(s.ProjectRoot, x.env.Config.Environ), x.env.Config.Environ)
	if err != nil {
		x.addFinding(stateError, "env", "set the variable, or give it a default as in ${NAME:-x}",
			"the setting env: %s", err)
	}
	x.path(env)
	if path, err := (process.Spec{Argv: []string{shell.Name(env)}, Env: env}).Program(); err != nil {
		x.addFinding(stateError, "shell", "install bash, or add its folder to PATH",
			"run_shell_command finds no shell: %s", err)
	} else {
		x.addFinding(stateOK, "shell", "", "%s", path)
	}
	for name, c := range map[string]settings.Command{
		"toolDiscoveryCommand": s.DiscoveryCommand, "toolCallCommand": s.CallCommand,
	} {
		if !c.IsSet() || strings.Contains(c.Argv[0], "$") {
			continue
		}
		if _, err := (process.Spec{Argv: c.Argv, Dir: s.ProjectRoot, Env: env}).Program(); err != nil {
			x.addFinding(stateError, name, "correct the setting at "+c.Origin.String(), "%s", err)
		}
	}
}

// path reports entries of PATH that are ignored.
func (x *examination) path(env []string) {
	value, ok := expand.Find(env, "PATH")
	if !ok || value == "" {
		x.addFinding(stateError, "PATH", "set PATH", "it is empty, so no program can be found by name")
		return
	}
	good, odd := 0, []string{}
	for _, dir := range filepath.SplitList(value) {
		if info, err := os.Stat(dir); filepath.IsAbs(dir) && err == nil && info.IsDir() {
			good++
		} else if !filepath.IsAbs(dir) {
			odd = append(odd, `"`+dir+`"`)
		}
	}
	if len(odd) > 0 {
		x.addFinding(stateWarning, "PATH", "remove them, or make them absolute",
			"entries that are not absolute are ignored: %s", strings.Join(odd, ", "))
		return
	}
	x.addFinding(stateOK, "PATH", "", "%s", text.Count(good, "folder"))
}

func (x *examination) auditLog(ctx context.Context, s *settings.Settings) {
	log, err := record.OpenLog(x.env.Config.Folders, s.Audit)
	if err != nil {
		return // the state folder was reported already
	}
	n, last := 0, time.Time{}
	damaged, err := log.Scan(ctx, audit.ScanOptions{}, func(e audit.Entry) error {
		n, last = n+1, e.Time
		return context.Cause(ctx)
	})
	switch {
	case err != nil:
		x.addFinding(stateError, "audit", "move the file away", "the log cannot be read: %s", err)
	case damaged > 0:
		x.addFinding(stateWarning, "audit", "toolreg audit skips them",
			"calls in the log: %d, damaged lines: %d", n, damaged)
	case n == 0:
		x.addFinding(stateOK, "audit", "", "no calls in the log yet")
	default:
		x.addFinding(stateOK, "audit", "", "%s in the log, the last at %s",
			text.Count(n, "call"), last.Local().Format(time.DateTime))
	}
}

// terminal reports whether questions can be asked.
func (x *examination) terminal() {
	if n := process.Depth(x.env.Config.Environ); n > 0 {
		x.addFinding(stateInfo, "terminal", "",
			"%s is %d: inside a tool's run nobody can be asked", process.DepthVariable, n)
		return
	}
	tty, err := ui.OpenTTY()
	if err != nil {
		x.addFinding(stateInfo, "terminal", "",
			"not available: calls that need an answer fail with exit code 6, or are allowed with --yes")
		return
	}
	_ = tty.Close() // nothing was written
	x.addFinding(stateOK, "terminal", "", "questions can be asked")
}

// kept reports where the sockets of servers that outlast a run are, and what ends with them.
func (x *examination) kept(ctx context.Context, s *settings.Settings) {
	names, folder, err := sources.Kept(ctx, x.env.Config.Folders, s)
	switch {
	case err != nil:
		x.addFinding(stateWarning, "kept servers",
			"set XDG_RUNTIME_DIR to a folder with a short path outside the workspace that only you can access",
			"%s end with each run: %v", strings.Join(names, ", "), err)
	case len(names) > 0:
		x.addFinding(stateOK, "kept servers", "",
			"%s; sockets in %s; if the process that keeps a server is killed, the server and its session end, or its whole sandbox",
			strings.Join(names, ", "), folder)
	}
}

// sandbox reports what the system supports of the sandbox, and settings that need it
// where it is not available.
func (x *examination) sandbox(s *settings.Settings) {
	env := values.Environment(x.env.Config.Environ, nil, false)
	c := confine.New(confine.Options{Settings: s, Environ: x.env.Config.Environ,
		Env: func() []string { return env }, Warn: func(registry.Diagnostic) {}})
	defer c.Close()
	parts, missing, wanted := c.Findings()
	var has []string
	for _, p := range parts {
		if p.OK {
			has = append(has, strings.TrimSpace(p.Name+" "+p.Detail))
		}
	}
	if missing == "" {
		x.addFinding(stateOK, "sandbox", "", "available: %s", strings.Join(has, ", "))
		return
	}
	if len(has) == 0 {
		has = []string{"nothing"}
	}
	x.addFinding(stateInfo, "sandbox", "", "the sandbox is not available: %s; the system supports %s",
		missing, strings.Join(has, ", "))
	for _, setting := range wanted {
		x.addFinding(stateWarning, "sandbox", "", "%s, but the sandbox is not available", setting)
	}
}
