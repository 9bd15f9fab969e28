package settings

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/toolreg/toolreg/internal/settings/table"
)

// Globals are the global flags of spec section 3 with their TOOLREG_* twins:
// a flag stands before its variable, the variable before the settings files.
type Globals struct {
	Root           string        // --root, TOOLREG_ROOT
	Files          []string      // --settings, TOOLREG_SETTINGS (separated like PATH)
	NoProject      bool          // --no-project-settings, TOOLREG_NO_PROJECT_SETTINGS
	NoUser         bool          // --no-user-settings, TOOLREG_NO_USER_SETTINGS
	TrustProject   bool          // --trust-project, TOOLREG_TRUST_PROJECT
	ApprovalMode   string        // --approval-mode, TOOLREG_APPROVAL_MODE; "" = not given here
	Timeout        time.Duration // --timeout, TOOLREG_TIMEOUT, of a call; see TimeoutSet
	TimeoutSet     bool          // tells no limit (0) from not given
	ConnectTimeout time.Duration // --connect-timeout, TOOLREG_CONNECT_TIMEOUT, of each server
	ConnectSet     bool          // tells no limit (0) from not given
	NonInteractive bool          // --non-interactive, TOOLREG_NON_INTERACTIVE
	Yes            bool          // --yes, TOOLREG_YES
	JSON           bool          // --json, TOOLREG_JSON
	Color          string        // --color, TOOLREG_COLOR: auto (default), always, never
	Quiet          bool          // --quiet, TOOLREG_QUIET
	Verbose        bool          // --verbose, TOOLREG_VERBOSE
	Imports        []string      // --import, TOOLREG_IMPORT (separated by commas)
	Refresh        bool          // --refresh, TOOLREG_REFRESH: nothing kept of sources counts, all is kept anew
	Cached         bool          // --cached, TOOLREG_CACHED: only what is kept counts
	Channel        string        // --channel, TOOLREG_CHANNEL; Load adds context.channel of the settings
}

// ResolveGlobals reads the global flags and their variables alone, without any
// settings file. Flags may be nil or lack any of the flags. Variables come from
// the process's environment; an empty one is not set. Durations are whole
// milliseconds or Go durations. The error is an [*Error].
func ResolveGlobals(flags *pflag.FlagSet) (Globals, error) {
	s := newScalars(flags)
	return s.globals(), NewError(s.problems)
}

func (s *scalars) globals() Globals {
	g := Globals{
		Files: s.paths("settings"), Imports: s.words("import"),
		NoProject: s.isTrue("no-project-settings"), NoUser: s.isTrue("no-user-settings"), TrustProject: s.isTrue("trust-project"),
		NonInteractive: s.isTrue("non-interactive"), Yes: s.isTrue("yes"), JSON: s.isTrue("json"),
		Quiet: s.isTrue("quiet"), Verbose: s.isTrue("verbose"),
		Refresh: s.isTrue("refresh"), Cached: s.isTrue("cached"),
		Root: s.text("root", table.String), Channel: s.text("channel", table.String),
		Color:        s.text("color", table.Choice, "auto", "always", "never"),
		ApprovalMode: s.text("approvalMode", table.Choice, table.ApprovalModes()...),
	}
	if g.Color == "" {
		g.Color = "auto"
	}
	if n := s.global("timeout", table.Duration); n != nil {
		g.Timeout, g.TimeoutSet = duration(n), true
	}
	if n := s.global("connect-timeout", table.Duration); n != nil {
		g.ConnectTimeout, g.ConnectSet = duration(n), true
	}
	return g
}

func (s *scalars) text(key string, typ table.Type, choices ...string) string {
	if n := s.global(key, typ, choices...); n != nil {
		return n.Text
	}
	return ""
}

func (s *scalars) isTrue(key string) bool {
	n := s.global(key, table.Bool)
	return n != nil && n.Bool
}
