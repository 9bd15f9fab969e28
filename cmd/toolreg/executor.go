package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/terminal"
)

// depthVariable tells a child how many tool runs it is inside of. Inside one,
// nobody is asked and no trust is granted: a tool must not approve itself.
const depthVariable = "TOOLREG_DEPTH"

// depth returns how many tool runs this process is inside of. Text that is no
// number counts as inside.
func depth(environ []string) int {
	v, ok := lookupEnv(environ, depthVariable)
	if !ok || v == "" {
		return 0
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		return 1
	}
	return n
}

func nextDepth(environ []string) string { return strconv.Itoa(depth(environ) + 1) }

// lookupEnv returns the last entry of a variable, which is the one that counts.
func lookupEnv(environ []string, name string) (string, bool) {
	for _, kv := range slices.Backward(environ) {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			return v, true
		}
	}
	return "", false
}

// executor builds what runs a call: policy from the settings, approvals from
// the state directory, questions at the terminal. done closes the terminal.
func (a *app) executor(ctx context.Context, reg *registry.Registry) (x *exec.Executor, done func(), err error) {
	s, err := a.settings(ctx)
	if err != nil {
		return nil, nil, err
	}
	p, err := a.policy(s, reg)
	if err != nil {
		return nil, nil, err
	}
	x = &exec.Executor{Validate: reg.Validate, Decider: p, Approvals: p.Approvals, Warn: a.warn}
	if a.globals.TimeoutSet {
		x.Timeout = a.globals.Timeout
		if x.Timeout == 0 {
			x.Timeout = -1 // 0 on the command line is "no limit"
		}
	}
	if err := a.surround(ctx, s, x); err != nil {
		return nil, nil, err
	}
	if a.globals.NonInteractive || depth(a.environ) > 0 {
		return x, func() {}, nil
	}
	tty, err := terminal.OpenTTY()
	if err != nil {
		a.log.Debug("no terminal to ask on", "err", err)
		return x, func() {}, nil
	}
	x.Confirmer = &inTurn{&a.asking, &terminal.Confirmer{TTY: tty, Color: a.color(true), Editor: a.editor(), Before: a.holdScreen}}
	return x, func() { _ = tty.Close() }, nil
}

func (a *app) editor() string {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if v, ok := lookupEnv(a.environ, name); ok && v != "" {
			return v
		}
	}
	return ""
}

// color decides on colours for an output that is a terminal or not.
func (a *app) color(isTTY bool) bool {
	switch a.globals.Color {
	case "always":
		return true
	case "never":
		return false
	}
	noColor, _ := lookupEnv(a.environ, "NO_COLOR")
	term, _ := lookupEnv(a.environ, "TERM")
	return isTTY && noColor == "" && term != "dumb"
}

func (a *app) warn(d registry.Diagnostic) { a.diagnose([]registry.Diagnostic{d}) }

// policy puts the rules in their order (spec section 8.3): exclusions and bans
// deny before anything allows; then the rules of the settings, then allowedTools.
func (a *app) policy(s *settings.Settings, reg *registry.Registry) (*policy.Policy, error) {
	mode, err := policy.ParseMode(s.ApprovalMode)
	if err != nil {
		return nil, &usageError{err: err}
	}
	p := &policy.Policy{Mode: mode, ModeOrigin: s.ApprovalOrigin.String(), Workspace: s.Workspace, Guarded: builtin.Guarded}
	if a.globals.Yes && mode != policy.ModePlan {
		p.Mode, p.ModeOrigin = policy.ModeYolo, "--yes"
	}
	aliases := builtin.Aliases()
	for _, name := range builtin.Names() {
		aliases[name] = name
	}
	p.Canonical = func(name string) string { return aliases[name] }
	if p.Rules, err = rules(s); err != nil {
		return nil, err
	}
	if p.Defaults, err = policyDefaults(s); err != nil {
		return nil, err
	}
	p.Banned = entries(s.ShellBanned)
	if a.sources != nil {
		p.Shell = builtin.Shell(a.sources.env) // the grammar is that of the shell that will run
	}
	p.Approvals = a.approvalStore(s)
	p.Approvals.Siblings = siblings(reg)
	return p, nil
}

// approvalStore is where answers for the project are remembered. Without a
// state directory nothing is found there, and remembering fails with the reason.
func (a *app) approvalStore(s *settings.Settings) *policy.Approvals {
	d, err := a.stateDir()
	project := s.ProjectRoot
	if path, linkErr := filepath.EvalSymlinks(project); linkErr == nil {
		project = path // however the person came here, it is one project
	}
	return &policy.Approvals{Dir: d, Unavailable: err, Project: project, Warn: a.warn}
}

// siblings finds the tools that an approval of a server or of edits covers.
func siblings(reg *registry.Registry) func(string) []*registry.Tool {
	return func(source string) []*registry.Tool {
		return slices.DeleteFunc(reg.Tools(), func(t *registry.Tool) bool { return t.Source != source })
	}
}

func rules(s *settings.Settings) ([]policy.Rule, error) {
	var out []policy.Rule
	for _, e := range entries(s.ExcludeTools) {
		r, err := policy.EntryRule(e, policy.Deny)
		if err != nil {
			return nil, entryError(e, err)
		}
		out = append(out, r)
	}
	for _, r := range s.Rules {
		decision, err := policy.ParseDecision(r.Decision)
		if err != nil {
			return nil, &usageError{err: fmt.Errorf("%s: %w", r.Origin, err)}
		}
		rule := policy.Rule{Tool: r.Tool, Source: r.Source, Server: r.Server, Category: r.Category, Command: r.Command,
			Path: r.Path, Decision: decision, Reason: r.Reason, Origin: r.Origin.String()}
		if err := rule.Validate(); err != nil {
			return nil, &usageError{err: fmt.Errorf("%s: %w", r.Origin, err)}
		}
		out = append(out, rule)
	}
	for _, e := range entries(s.AllowedTools) {
		r, err := policy.EntryRule(e, policy.Allow)
		if err != nil {
			return nil, entryError(e, err)
		}
		out = append(out, r)
	}
	return out, nil
}

func entryError(e registry.Entry, err error) error {
	return &usageError{err: fmt.Errorf("%s: %w", e.Setting, err)}
}

func policyDefaults(s *settings.Settings) (map[registry.Category]policy.Rule, error) {
	out := map[registry.Category]policy.Rule{}
	for category, r := range s.PolicyDefaults {
		if r.Origin.Scope == settings.ScopeDefault {
			continue // the policy's own, which says more of servers and discovered tools
		}
		decision, err := policy.ParseDecision(r.Decision)
		if err != nil {
			return nil, &usageError{err: fmt.Errorf("%s: %w", r.Origin, err)}
		}
		rule := policy.Rule{Category: category, Decision: decision, Reason: r.Reason, Origin: r.Origin.String()}
		if err := rule.Validate(); err != nil {
			return nil, &usageError{err: fmt.Errorf("%s: %w", r.Origin, err)}
		}
		out[registry.Category(category)] = rule
	}
	return out, nil
}
