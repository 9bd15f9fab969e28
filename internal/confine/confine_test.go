package confine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/sandbox"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/values"
	"github.com/toolreg/toolreg/internal/trust"
)

// place creates a home, a workspace next to it, and a Confiner with settings.
func place(t *testing.T, text string, support sandbox.Support, change ...func(*Options)) (c *Confiner, home, workspace string) {
	t.Helper()
	dir := t.TempDir()
	home, workspace = filepath.Join(dir, "home"), filepath.Join(dir, "work")
	for _, sub := range []string{home + "/.ssh", workspace + "/.git", home + "/data"} {
		if err := os.MkdirAll(sub, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{home + "/.ssh/id", workspace + "/.envrc", dir + "/s.yaml"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	environ := []string{"HOME=" + home, "PATH=/usr/bin:/bin", "DATA=" + home + "/data"}
	set, _, err := settings.Load(settings.Options{Dir: workspace, Environ: environ, SystemDir: dir + "/none", Files: []string{dir + "/s.yaml"}})
	if err != nil {
		t.Fatal(err)
	}
	opts := Options{Settings: set, Environ: environ, Env: func() []string { return environ }, Expand: values.NewExpander(workspace, environ).Expand,
		Warn: func(d registry.Diagnostic) { t.Errorf("warned: %s", d.Message) }, Probe: func() sandbox.Support { return support }}
	for _, f := range change {
		f(&opts)
	}
	c = New(opts)
	t.Cleanup(func() { c.Close() })
	return c, home, workspace
}

var full = sandbox.Support{Parts: []sandbox.Part{{Name: "all", OK: true}}}

func TestProfileFollowsSettings(t *testing.T) {
	c, home, workspace := place(t, `sandbox:
  mode: auto
  shell: {read: [~/.ssh, nowhere], write: [$UNSET/x, $DATA], network: [a.example]}
  hooks: {mode: off}
  servers: {s: {mode: require, network: none}}
`, full)
	p := c.profile(c.kind(Shell), sandbox.Place{}, true)
	guarded, err := c.protect(t.Context(), c.kind(Shell), &p)
	if err != nil {
		t.Fatal(err)
	}
	guarded.Forget()
	if !slices.Contains(p.Opened, home+"/.ssh") || !slices.Contains(p.Write, home+"/data") || !slices.Contains(p.Write, workspace) || slices.Contains(p.Opened, workspace+"/nowhere") {
		t.Errorf("reads %q, writes %q", p.Opened, p.Write)
	}
	if p.Network.Mode != sandbox.NetworkHosts || !slices.Equal(p.Network.Hosts, []string{"a.example"}) {
		t.Errorf("network %+v", p.Network)
	}
	if p := c.profile(c.kind(Plugins), sandbox.Place{}, true); p.Network.Mode != sandbox.NetworkAll {
		t.Errorf("network %+v", p.Network)
	}
	if p := c.profile(c.kind(Server("s")), sandbox.Place{Own: []string{home, "/usr/share"}}, false); p.Network.Mode != sandbox.NetworkNone || slices.Contains(p.Read, home) || !slices.Contains(p.Read, "/usr/share") {
		t.Errorf("network %+v, reads %q", p.Network, p.Read)
	}
	for kind, want := range map[string]bool{Hooks: false, References: false, Plugins: true, Discovery: true, Server("s"): true, Server("other"): true} {
		if plan, err := c.Plan(kind, &process.Spec{Argv: []string{"true"}, Dir: workspace}); (plan != nil) != want || err != nil {
			t.Errorf("%s is confined: %v, %v", kind, plan != nil, err)
		}
	}
}

func TestProgramsOnASystemWithoutSandbox(t *testing.T) {
	c, _, _ := place(t, "sandbox: {mode: auto, hooks: {mode: require}}\n", sandbox.Support{Parts: []sandbox.Part{{Name: "Landlock", Detail: "none"}}})
	spec := process.Spec{Argv: []string{"true"}}
	after, err := c.Programs(Plugins).Apply(t.Context(), &spec)
	if err != nil || spec.Confine != nil {
		t.Errorf("auto: %v, %v", spec.Confine, err)
	} else {
		after()
	}
	_, err = c.Programs(Hooks).Apply(t.Context(), &spec)
	if err == nil || !strings.Contains(err.Error(), "Landlock (none)") || !strings.Contains(err.Error(), "s.yaml:1") {
		t.Errorf("require: %v", err)
	}
	if m := c.Means(Shell); !m.Auto || m.Missing() == "" || m.Allows(false) != "" || !m.YoloAuto {
		t.Errorf("%+v", m)
	}
}

func TestDenied(t *testing.T) {
	c, home, workspace := place(t, "sandbox: {mode: auto}\n", full)
	c.opts.Closed = func() []string { return []string{home + "/closed"} }
	lib := home + "/.rustup" // which programs may read
	for _, dir := range []string{home + "/closed", lib} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{lib + "/file", home + "/data/file"} {
		write(t, file, 0o600)
	}
	tests := []struct{ output, want string }{
		{"cat: LIB/file: Permission denied", ""}, // programs may read it
		{"cat: .envrc: Permission denied", ""},
		{"cat: .git/config: Permission denied", ""},
		{"cat: " + home + "/data/file: No such file or directory", "reading " + home + "/data/file (sandbox.shell.read would allow it)"},
		{"touch: cannot touch 'LIB/file/x': Read-only file system", ""}, // no folder
		{"touch: cannot touch 'LIB/config': Read-only file system", "writing LIB/config (sandbox.shell.write would allow it)"},
		{"touch: cannot touch '.git/hooks': Read-only file system", "changing " + workspace + "/.git/hooks (other programs run commands from it; no setting allows it)"},
		{"ls: cannot access '" + home + "/closed': No such file or directory", "access to " + home + "/closed (no setting allows it)"},
		{"cat: ~/.ssh/id: No such file or directory", "reading " + home + "/.ssh/id (sandbox.shell.read would allow it)"},
		{"open " + home + "/data: no such file or directory: No such file or directory", "reading " + home + "/data (sandbox.shell.read would allow it)"},
		{"touch: cannot touch 'LIB/x': Read-only file system", "writing LIB/x (sandbox.shell.write would allow it)"},
		{"bash: line 1: .envrc: Read-only file system", "changing " + workspace + "/.envrc (other programs run commands from it; no setting allows it)"},
		{"PermissionError: [Errno 13] Permission denied: 'LIB/y'", ""}, // the sandbox lets it be read, and says that it is read-only
		{"OSError: [Errno 30] Read-only file system: 'LIB/y'", "writing LIB/y (sandbox.shell.write would allow it)"},
		{"ls: cannot open directory '" + home + "/data': Permission denied", "reading " + home + "/data (sandbox.shell.read would allow it)"},
		{"bash: line 1: " + home + "/.ssh/id: Permission denied", "reading " + home + "/.ssh/id (sandbox.shell.read would allow it)"},
		{"mkdir: cannot create directory '" + home + "/.ssh/x': Permission denied", "writing " + home + "/.ssh/x (sandbox.shell.write would allow it)"},
		{"bash: line 1: " + home + "/.ssh/id: Read-only file system", "writing " + home + "/.ssh/id (sandbox.shell.write would allow it)"},
		{"error: could not lock config file .git/config", "changing " + workspace + "/.git/config (git runs commands from it; no setting allows more than what branches follow, so a person must run the command outside of the sandbox)"},
		{"touch: cannot touch '/proc/none/x': Permission denied", ""},
		{"strace: ptrace(PTRACE_TRACEME, ...): Operation not permitted", "tracing another process (no setting allows it)"},
		{"unshare: unshare failed: Operation not permitted", "creating namespaces (no setting allows it)"},
		{"mount: /mnt: permission denied.", "mounting a file system (no setting allows it)"},
		{"Error: EROFS: read-only file system, open 'LIB/z'", "writing LIB/z (sandbox.shell.write would allow it)"},
		{"curl: (6) Could not resolve host: a.example", "the connection to a.example (its network is a private loopback; sandbox.shell.network would allow it)"},
		{"Error: getaddrinfo EAI_AGAIN packages.example.com", "the connection to packages.example.com (its network is a private loopback; sandbox.shell.network would allow it)"},
		{"dial tcp: lookup modules.example.com on 10.0.0.1:53: no such host", "the connection to modules.example.com (its network is a private loopback; sandbox.shell.network would allow it)"},
		{"fatal: unable to access 'https://git.example/x.git/': Could not resolve host", "the connection to git.example (its network is a private loopback; sandbox.shell.network would allow it)"},
		{"curl: (7) Failed to connect to 127.0.0.1 port 5432 after 0 ms: Couldn't connect to server", "the connection to 127.0.0.1 (its network is a private loopback; sandbox.shell.network would allow it)"},
		{"psql: error: connection to server at \"localhost\" (127.0.0.1), port 5432 failed: Connection refused", "a connection (its network is a private loopback; sandbox.shell.network would allow it)"},
		{"Cannot connect to the Docker daemon at unix://" + home + "/data. Is the docker daemon running?", "reading " + home + "/data (sandbox.shell.read would allow it)"},
		{"bash: line 1: " + home + "/data/new: No such file or directory", "writing " + home + "/data/new (sandbox.shell.write would allow it)"},
		{"cat: " + home + "/data/missing: No such file or directory", ""}, // nor outside
		{"ls: cannot access '" + home + "/data/missing': No such file or directory", ""},
		{"cp: cannot create regular file '" + home + "/data/sub/new': No such file or directory", ""}, // there is no such folder
		{"cat: " + home + "/missing: No such file or directory", ""},                                  // the home folder is visible
		{"bash: line 1: " + home + "/new: No such file or directory", ""},
		{"OSError: [Errno 101] Network is unreachable", "a connection (its network is a private loopback; sandbox.shell.network would allow it)"},
		{"cat: nowhere/x: No such file or directory", ""},
		{"grep: /nowhere: No such file or directory", ""},
		{"all is well at LIB and https://a.example", ""},
		{"rm: cannot remove 'src/a': Permission denied", ""},
		{"sh: cannot create /dev/x: Permission denied", ""},
		{"error: 'not closed: LIB: Read-only file system", "writing LIB (sandbox.shell.write would allow it)"},
		{"error: closed' at LIB: Read-only file system", "writing LIB (sandbox.shell.write would allow it)"},
		{"Cannot connect to the Docker daemon at unix://. Is it running?", "a connection (its network is a private loopback; sandbox.shell.network would allow it)"},
	}
	for _, test := range tests {
		test.output, test.want = strings.ReplaceAll(test.output, "LIB", lib), strings.ReplaceAll(test.want, "LIB", lib)
		k := c.kind(Shell)
		p := c.profile(k, sandbox.Place{}, false)
		p.ReadOnly, p.Hide = append(p.ReadOnly, workspace+"/.envrc"), append(p.Hide, home+"/.ssh")
		p.Brokered = []sandbox.Brokered{{Path: workspace + "/.git"}}
		r := registry.TextResult(test.output)
		if got := strings.Join(c.denied(k, &process.Confinement{Profile: &p}, &r), "; "); got != test.want {
			t.Errorf("%s\n got %q\nwant %q", test.output, got, test.want)
		}
	}
	p := c.profile(c.kind(Shell), sandbox.Place{}, false)
	r := registry.TextResult("")
	confined := &process.Confinement{Profile: &p, Refused: []string{"b.example:443", "b.example:443"}}
	if got := strings.Join(c.denied(c.kind(Shell), confined, &r), "; "); got != "the connection to b.example:443 (sandbox.shell.network: [b.example:443] would allow it)" {
		t.Error(got)
	}
}

// The environment of a program decides what it reads, unless it has none of its own, and no program reads
// everything as its own file.
func TestProfileOfProgram(t *testing.T) {
	c, _, _ := place(t, "", full)
	bin := t.TempDir()
	for want, environ := range map[string][]string{bin: {"PATH=" + bin}, "/usr/bin": nil} {
		c.home = "" // it may be unknown
		p := c.profile(c.kind(Shell), sandbox.Place{Environ: environ, Own: []string{"", "/"}}, false)
		if !slices.ContainsFunc(p.Read, func(path string) bool { return trust.Within(want, path) }) || slices.Contains(p.Read, "") || slices.Contains(p.Read, "/") {
			t.Errorf("with %q it reads %q", environ, p.Read)
		}
	}
}

// A workspace with credentials hides them, but not those in a folder that is opened.
func TestCredentialsOfWorkspace(t *testing.T) {
	c, home, _ := place(t, "", full)
	none := func() string { return "" }
	if c.Credentials(none) != nil {
		t.Error("a workspace beside the home folder has credentials")
	}
	c.opts.Settings.Workspace = home
	for folder, hidden := range map[string]bool{"": true, home + "/.ssh": false} {
		why := c.Credentials(func() string { return folder })
		if why == nil || (why(home+"/.ssh/id") != "") != hidden {
			t.Errorf("with %q opened", folder)
		}
	}
}
