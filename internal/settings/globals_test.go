package settings

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/toolreg/toolreg/internal/settings/document"
)

// newFlags parses args with flags as the command line defines them.
func newFlags(t *testing.T, args ...string) *pflag.FlagSet {
	t.Helper()
	f := pflag.NewFlagSet("toolreg", pflag.ContinueOnError)
	f.String("root", "", "")
	f.StringArray("settings", nil, "")
	f.String("approval-mode", "", "")
	f.String("color", "auto", "")
	f.Duration("timeout", 0, "")
	f.String("connect-timeout", "", "")
	f.String("channel", "", "")
	for _, name := range []string{"no-project-settings", "no-user-settings", "trust-project", "non-interactive", "yes", "json", "quiet", "verbose"} {
		f.Bool(name, false, "")
	}
	if err := f.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestGlobals(t *testing.T) {
	tests := []struct {
		name string
		env  map[string]string
		args []string
		want Globals
	}{
		{"nothing given", nil, nil, Globals{Color: "auto"}},
		{"flags", nil, []string{"--root=r", "--settings=a,b", "--settings=c", "--yes", "--timeout=5s", "--connect-timeout=0", "--approval-mode=plan", "--color=never"},
			Globals{Root: "r", Files: []string{"a,b", "c"}, Yes: true, Timeout: 5 * time.Second, TimeoutSet: true, ConnectSet: true, Color: "never"}},
		{"variables", map[string]string{"TOOLREG_ROOT": "r", "TOOLREG_SETTINGS": "a" + string(os.PathListSeparator) + "b", "TOOLREG_NON_INTERACTIVE": "1", "TOOLREG_JSON": "true",
			"TOOLREG_CONNECT_TIMEOUT": "1500", "TOOLREG_CHANNEL": "dev", "TOOLREG_TRUST_PROJECT": "true", "TOOLREG_NO_USER_SETTINGS": "1"}, nil,
			Globals{Root: "r", Files: []string{"a", "b"}, NonInteractive: true, JSON: true, ConnectTimeout: 1500 * time.Millisecond, ConnectSet: true,
				Channel: "dev", TrustProject: true, NoUser: true, Color: "auto"}},
		{"flags before variables", map[string]string{"TOOLREG_ROOT": "e", "TOOLREG_YES": "true", "TOOLREG_COLOR": "never"}, []string{"--root=f", "--yes=false", "--color=auto"},
			Globals{Root: "f", Color: "auto"}},
		{"an empty variable is not set", map[string]string{"TOOLREG_YES": "", "TOOLREG_COLOR": ""}, nil, Globals{Color: "auto"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for name, value := range test.env {
				t.Setenv(name, value)
			}
			got, err := ResolveGlobals(newFlags(t, test.args...))
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestGlobalsWithoutFlags(t *testing.T) {
	t.Setenv("TOOLREG_VERBOSE", "1")
	g, err := ResolveGlobals(nil)
	if err != nil || !g.Verbose {
		t.Errorf("%+v, %v", g, err)
	}
}

func TestInvalidGlobals(t *testing.T) {
	t.Setenv("TOOLREG_YES", "yes")
	t.Setenv("TOOLREG_TIMEOUT", "soon")
	t.Setenv("TOOLREG_SHELL_TIMEOUT", "-1s")
	want := "TOOLREG_YES: expected true or false\n" +
		"--color: unknown value \"pink\" (one of auto, always, never)\n" +
		"TOOLREG_TIMEOUT: expected whole milliseconds or a duration such as \"30s\", 0 or more"
	_, err := ResolveGlobals(newFlags(t, "--color=pink"))
	var e *document.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v, want an *document.Error", err)
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	b := newSandbox(t)
	_, _, err = Load(b.options())
	if !errors.As(err, &e) || len(e.Problems) != 3 || e.Problems[2].File != "TOOLREG_SHELL_TIMEOUT" {
		t.Errorf("loading: %v", err)
	}
}

func TestPrecedenceOfScalars(t *testing.T) {
	b := newSandbox(t)
	user := b.user("settings.yaml", "approvalMode: plan\npermissions: {shell: false}\ntoolDiscoveryTimeout: 1s\nconflicts: {discovered: reject}\n")
	t.Setenv("TOOLREG_APPROVAL_MODE", "auto-edit")
	t.Setenv("TOOLREG_PERMISSIONS_SHELL", "true")
	t.Setenv("TOOLREG_TOOL_DISCOVERY_TIMEOUT", "2000")
	t.Setenv("TOOLREG_TOOL_CALL_COMMAND", "run 'a b'")
	t.Setenv("TOOLREG_MCPSERVERS_X_COMMAND", "evil") // names chosen by the user have no variables
	o := b.options()
	s := b.load(o)
	if s.ApprovalMode != "auto-edit" || s.ApprovalOrigin.String() != "TOOLREG_APPROVAL_MODE" || s.ApprovalOrigin.Scope != ScopeEnv {
		t.Errorf("approvalMode %s from %s", s.ApprovalMode, s.ApprovalOrigin)
	}
	if !s.Permissions["shell"] || len(s.DeniedBy) > 0 || s.DiscoveryTimeout != 2*time.Second || s.Conflicts != "reject" || len(s.Servers) > 0 {
		t.Errorf("permissions %v, discovery %s, conflicts %s, servers %v", s.Permissions, s.DiscoveryTimeout, s.Conflicts, s.Servers)
	}
	if diff := cmp.Diff([]string{"run", "a b"}, s.CallCommand.Argv); diff != "" {
		t.Errorf("call command (-want +got):\n%s", diff)
	}
	o.Flags = newFlags(t, "--approval-mode=default")
	if s := b.load(o); s.ApprovalMode != "default" || s.ApprovalOrigin.String() != "--approval-mode" || s.ApprovalOrigin.Scope != ScopeFlag {
		t.Errorf("approvalMode %s from %s, want the flag even with the default value", s.ApprovalMode, s.ApprovalOrigin)
	}
	origins := map[string]string{}
	for _, v := range s.Merged().Effective() {
		origins[v.Key] = string(v.JSON) + " " + v.Origin.String()
	}
	for key, want := range map[string]string{"approvalMode": `"auto-edit" TOOLREG_APPROVAL_MODE`, "toolDiscoveryTimeout": "2000 TOOLREG_TOOL_DISCOVERY_TIMEOUT",
		"conflicts.discovered": `"reject" ` + user + ":4", "shell.timeout": `"120s" default`} {
		if origins[key] != want {
			t.Errorf("%s: %s, want %s", key, origins[key], want)
		}
	}
}

func TestTimeoutFlagsApplyToServers(t *testing.T) {
	b := newSandbox(t)
	b.user("settings.yaml", "mcpServers: {a: {command: x, timeout: 1s, connectTimeout: 2s}}\n")
	o := b.options()
	o.Flags = newFlags(t, "--timeout=3s", "--connect-timeout=4s")
	s := b.load(o)
	if got := s.Servers[0]; got.Timeout != 3*time.Second || got.ConnectTimeout != 4*time.Second {
		t.Errorf("timeouts %s and %s", got.Timeout, got.ConnectTimeout)
	}
}

func TestTrustProjectByVariable(t *testing.T) {
	b := hostileProject(t)
	t.Setenv("TOOLREG_TRUST_PROJECT", "true")
	if s := b.load(b.options()); !s.Project.Trusted {
		t.Error("TOOLREG_TRUST_PROJECT has no effect")
	}
	t.Setenv("TOOLREG_TRUST_PROJECT", "false")
	t.Setenv("TOOLREG_YES", "true")
	if s := b.load(b.options()); s.Project.Trusted {
		t.Error("--yes trusts the project")
	}
}
