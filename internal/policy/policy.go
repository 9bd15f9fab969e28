// Package policy decides whether a call is allowed, denied or needs confirmation,
// and remembers "always" answers.
//
// The executor calls [Policy.Decide] after validation and before the run. Rules
// are tried first, in the given order, then remembered approvals, then defaults by
// category. The package internal/policy/shell finds the commands in a shell
// command line, so that rules match commands rather than text.
//
// Everything here fails closed: if something is missing, fails or is in doubt, the
// call is denied or needs confirmation. The analysis of shell commands protects
// against accidents and simple tricks; it is not a sandbox.
package policy

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/registry"
)

// Limit is a setting, coreTools or tools.only, that restricts the shell tool to certain commands.
type Limit struct {
	Setting  string
	Commands []Rule // not empty
}

// Policy decides whether calls may run. Its fields must not change once it is in
// use; it is then safe for concurrent use. The zero value allows tools that only
// read and asks about others.
type Policy struct {
	// Rules are tried in order, and the first that matches decides. The caller
	// must order them: exclusions, flags, then system, user and project settings.
	Rules []Rule
	// Callers caches which rules apply to which caller. If nil, each decision compares all rules.
	Callers *Callers
	// Mode is the approval mode; "" means ModeDefault. ModeOrigin says where it
	// was set, for messages.
	Mode       Mode
	ModeOrigin string
	// Defaults override the built-in defaults by category. Only the fields
	// Decision, Reason and Origin of the rules are used.
	Defaults map[registry.Category]Rule
	// Banned are programs that no shell command may run, regardless of rules and
	// mode (setting shell.banned).
	Banned []registry.Entry
	// Core limit the commands that the shell tool may run, regardless of rules and mode.
	Core []Limit
	// AskCatastrophic makes commands that would ruin the machine ask a person,
	// regardless of the mode, instead of being denied (setting
	// shell.catastrophic).
	AskCatastrophic bool
	// Shell is the grammar of shell commands, as in [shell.Read]. Rules on
	// commands never allow a line in an unsupported grammar.
	Shell string
	// Canonical returns the name of the built-in tool for a name or alias, or ""
	// if there is none. If nil, there are no aliases.
	Canonical func(name string) string
	// Guarded reports whether changing a file always requires confirmation. The
	// path is relative to the workspace. If nil, no path does.
	Guarded func(path string) bool
	// NewHidden reports whether a change creates a file or folder whose name begins with a dot, or
	// a file of a home folder that programs may act on. Such a change requires confirmation unless
	// a rule allows the path. The path is relative to the workspace. If nil, no change does.
	NewHidden func(path string) bool
	// Credentials returns a function that says why an absolute path may lead to credentials, as the
	// end of a sentence, or ""; it returns nil if no path does. Only a rule about the path allows
	// such a path. It is called for each decision. If nil, no path leads to credentials.
	Credentials func() func(path string) string
	// Workspace is the absolute path of the workspace, which paths of calls are relative to.
	Workspace string
	// Root is the absolute path of the project root, which paths of rules are relative to;
	// "" means Workspace. Those of rules that deny or ask are relative to Workspace as well.
	Root string
	// ShellHome is the home folder that shells substitute for ~; "" if it is unknown.
	ShellHome string
	// TrustOrigins maps the name of each trusted server to the setting that trusts
	// it.
	TrustOrigins map[string]string
	// Means returns how programs of a kind, as in [registry.Tool.Program], can be
	// confined. If nil, none can.
	Means func(kind string) Means
	// Approvals are the remembered answers. If nil, there are none, and none can
	// be stored.
	Approvals *Approvals
}

// Means describes whether and how programs of one kind can be confined, according
// to the settings and the system. The zero value never confines.
type Means struct {
	// Auto confines calls if full confinement is available. Require also refuses
	// them if it is not. Origin says where this is set.
	Auto, Require bool
	Origin        string
	// Off is set if the settings forbid confining this kind, even for a rule.
	Off bool
	// YoloAuto, YoloRequire and YoloOrigin have the same meaning for calls in
	// ModeYolo.
	YoloAuto, YoloRequire bool
	YoloOrigin            string
	// Missing returns the reason why full confinement is unavailable, or "" if it
	// is available. It may query the system. Allows describes what a confined
	// program may do.
	Missing func() string
	Allows  func(online bool) string
	// Changed returns the absolute paths of the files that a command starts with and that a
	// sandboxed program may have changed. argv has its program and the arguments that may name
	// code, and dir is the absolute folder where it runs. If nil, there are none.
	Changed func(argv []string, dir string) []string
	// Accept records that a person accepts these files as they were at a time. It is set if
	// Changed is.
	Accept func(ctx context.Context, paths []string, at time.Time) error
	// Uncleaned reports whether the workspace may still have files of a sandboxed program that
	// make other programs run commands. If nil, it has none.
	Uncleaned func() bool
}

// leadsToCredentials is what Credentials returns.
func (p *Policy) leadsToCredentials() func(path string) string {
	if p.Credentials == nil {
		return nil
	}
	return p.Credentials()
}

func (p *Policy) modeOrigin() string {
	return cmp.Or(p.ModeOrigin, "approvalMode")
}

// maxCallers is how many callers [Callers] remembers.
const maxCallers = 1000

// Callers caches which rules of one policy apply to a caller, so that a decision need not compare
// all rules. The zero value is ready to use. It is safe for concurrent use.
type Callers struct {
	mu    sync.Mutex
	rules map[string][]*Rule
}

// rulesFor returns the rules that apply to a caller; see [Rule.unmetCaller].
func (p *Policy) rulesFor(who *caller.Caller, any bool) []*Rule {
	c := p.Callers
	if c == nil || any {
		return p.selectRules(who, any)
	}
	key := callerKey(who)
	c.mu.Lock()
	defer c.mu.Unlock()
	rules, known := c.rules[key]
	if !known {
		if rules = p.selectRules(who, false); c.rules == nil || len(c.rules) >= maxCallers {
			c.rules = map[string][]*Rule{}
		}
		c.rules[key] = rules
	}
	return rules
}

func (p *Policy) selectRules(who *caller.Caller, any bool) []*Rule {
	out := []*Rule{}
	for i := range p.Rules {
		if r := &p.Rules[i]; r.unmetCaller(who, any) == "" {
			out = append(out, r)
		}
	}
	return out
}

// callerKey returns a key for a caller. The same rules apply to callers with the same key.
func callerKey(who *caller.Caller) string {
	if who == nil {
		return ""
	}
	var key []byte
	for _, part := range append([]string{who.Name, who.Profile}, who.Groups...) {
		key = append(strconv.AppendInt(key, int64(len(part)), 10), ':')
		key = append(key, part...)
	}
	return string(key)
}

// allows describes what a program may do in the sandbox; nil if that is unknown.
func (m Means) allows(online bool) func() string {
	if m.Allows == nil {
		return nil
	}
	return func() string { return m.Allows(online) }
}

func (m *Means) missing() string {
	if m.Missing == nil {
		return "no sandbox is available"
	}
	return m.Missing()
}

// Mode is the setting approvalMode. The zero value is ModeDefault.
type Mode string

// The approval modes.
const (
	ModeDefault  Mode = "default"
	ModeAutoEdit Mode = "auto-edit" // allows edits inside the workspace
	ModePlan     Mode = "plan"      // denies everything except reading
	ModeYolo     Mode = "yolo"      // allows calls that would ask, as --yes does
)

// ParseMode parses a mode; "" means ModeDefault. It also accepts the spellings
// "autoEdit" and "auto_edit", which other programs use.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case "":
		return ModeDefault, nil
	case "autoEdit", "auto_edit":
		return ModeAutoEdit, nil
	case ModeDefault, ModeAutoEdit, ModePlan, ModeYolo:
		return m, nil
	}
	return ModeDefault, fmt.Errorf("unknown approval mode %q; use default, auto-edit, plan or yolo", s)
}
