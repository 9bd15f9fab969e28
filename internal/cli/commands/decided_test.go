package commands_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/commands"
	"github.com/toolreg/toolreg/internal/mcptest"
	"github.com/toolreg/toolreg/internal/ui"
)

// TestMain makes the test binary the program itself: without flags of go test it runs the
// command line that it is given, as the program's own children do.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		os.Exit(commands.Program("test").Run(context.Background(), os.Args, cli.NewStreams(os.Stdin, os.Stdout, os.Stderr), os.Environ()))
	}
	// The runs of TestDecided leave much garbage and little else. With the variable, none of them sets
	// the collector for itself.
	debug.SetGCPercent(800)
	if err := os.Setenv("GOGC", "800"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// TestDecided is a matrix. Its rows (sayings) are what a person can decide about calls in her
// own settings; its columns (changes) are what somebody else can do about it: a project that she
// trusts to run, a server, whoever chooses a name, or the way in which a call is made.
//
// Each cell runs the program with real settings files, programs and servers, and fails if the
// decision becomes looser than without the change. A cell that is meant to become looser is in
// [meant], with the reason.
//
// To add a row or a column, add an element to [sayings] or [changes]. TestMatrixIsComplete
// fails if there is a source, a setting or a command that the matrix does not know.
func TestDecided(t *testing.T) { // not parallel: each run has its own current folder
	servers := newServers(t)
	for _, s := range sayings() {
		t.Run(s.what, func(t *testing.T) {
			s.want = s.baseline(t, servers)
			for _, c := range changes() {
				looser, got := s.cell(t, servers, c)
				e, isMeant := meant(s.what, c.what)
				switch {
				case looser != "" && (!isMeant || got < e.atLeast):
					t.Errorf("%s: %s", c.what, looser)
				case looser == "" && isMeant:
					t.Errorf("%s: it is no looser, but meant to be: %s", c.what, e.why)
				}
			}
		})
	}
}

// attempt is a call as a model makes it.
type attempt struct{ tool, params string }

func (a attempt) String() string { return a.tool + " " + a.params }

// saying is something that a person can decide.
type saying struct {
	what     string
	settings string                                              // lines of her settings
	flags    []string                                            // flags with which she starts the program
	before   func(*world)                                        // what else she did
	through  func(*world, attempt) (args []string, stdin string) // how the call is made, if it matters; else as the column does
	calls    []attempt                                           // what it forbids or asks about; if it allows: what it allows
	covers   string                                              // what else it allows: the beginning of the source and name of tools
	allows   bool                                                // it allows these calls, and must then allow no other tool's

	want []outcome // what comes of the calls without any change
}

// change is something that others can do about what a person has decided.
type change struct {
	what string
	// do makes the change, and returns the calls by which a model could then try to do what
	// the call does. It returns none if the change has nothing to do with the call.
	do func(*world, attempt) []attempt
	// through makes a call by another way than `toolreg call`. nil means by that.
	through func(*world, attempt) (args []string, stdin string)
	// inside is set if the call is made inside another one, which is not what is decided on.
	inside bool
	// sources, settings and commands are what the column covers, for TestMatrixIsComplete.
	sources, settings, commands []string
}

// strictness is what came of a call.
type strictness int

const (
	ran     strictness = iota
	asked              // it needs a person's answer
	denied             // by a rule, a default, a mode, or a hook
	refused            // there is no such tool, or it does not take such params
)

func (s strictness) String() string {
	return []string{"it ran", "it asked", "it was denied", "it was refused"}[s]
}

// outcome is what came of an attempt, and which tools ran, as source and the source's own name.
type outcome struct {
	strictness
	tools  []string
	output string
}

// baseline returns what comes of the calls without any change.
func (s *saying) baseline(t *testing.T, servers *servers) []outcome {
	var out []outcome
	for _, call := range s.calls {
		w := newWorld(t, servers)
		w.says(s)
		o := w.call(change{through: s.through}, call)
		if s.allows != (o.strictness == ran) {
			t.Fatalf("%s: without any change %s\n%s", call, o.strictness, o.output)
		}
		out = append(out, o)
	}
	return out
}

// cell returns in what way the change made the person's decision looser, "" if it did not, and
// the loosest outcome.
func (s *saying) cell(t *testing.T, servers *servers, c change) (looser string, got strictness) {
	got = refused
	if s.through != nil {
		if c.through != nil {
			return "", got // it is about calls that are made in another way
		}
		c.through = s.through
	}
	for i, call := range s.calls {
		want := s.want[i]
		w := newWorld(t, servers)
		w.says(s)
		for _, tried := range c.do(w, call) {
			o := w.call(c, tried)
			if !s.allows && o.strictness < min(want.strictness, got) {
				looser, got = fmt.Sprintf("%s: %s, but %s: %s\n%s", call, want.strictness, tried, o.strictness, o.output), o.strictness
			}
			if s.allows && o.strictness == ran && !slices.Equal(o.tools, want.tools) && !s.allowsToo(o.tools) {
				silent := newWorld(t, servers)
				c.do(silent, call)
				if s.through != nil {
					c.through = byServe // without what the person says, there are no profiles
				}
				if without := silent.call(c, tried); without.strictness > ran {
					return fmt.Sprintf("%s allows %v, but %s ran %v\n%s", s.what, want.tools, tried, o.tools, o.output), ran
				}
			}
		}
	}
	return looser, got
}

// allowsToo reports whether a saying allows tools beside those of its calls.
func (s *saying) allowsToo(tools []string) bool {
	return s.covers != "" && !slices.ContainsFunc(tools, func(tool string) bool { return !strings.HasPrefix(tool, s.covers) })
}

// world is a person's home, a project and what they hold.
type world struct {
	t       *testing.T
	servers *servers
	dir     string
	own     strings.Builder // the person's settings
	project []string        // lines of the project's settings
	tools   []string        // what its discovery command prints
	flags   []string
}

// tempDir returns a new folder, in memory if the system has such: the many small files of the
// matrix cost more than its calls on some file systems.
func tempDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "toolreg-decided-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func newWorld(t *testing.T, servers *servers) *world {
	w := &world{t: t, servers: servers, dir: tempDir(t)}
	w.write("project/.git/HEAD", "ref: refs/heads/main\n")
	w.write("project/secret/key.txt", "key\n")
	w.write("project/notes.txt", "notes\n")
	return w
}

func (w *world) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		w.t.Fatal(err)
	}
}

// says makes the person say it.
func (w *world) says(s *saying) {
	w.own.WriteString(w.servers.expand(s.settings) + "\n")
	w.flags = append(w.flags, s.flags...)
	if s.before != nil {
		s.before(w)
	}
}

// sets adds a line to the project's settings.
func (w *world) sets(format string, args ...any) {
	w.project = append(w.project, fmt.Sprintf(format, args...))
}

// discovers makes the project's discovery command print a tool.
func (w *world) discovers(name string) {
	w.tools = append(w.tools, fmt.Sprintf(`{"name":%q,"description":"does as it likes","category":"read","parameters":{"type":"object","properties":{"any":{}}}}`, name))
}

// plugin gives the project a plugin with a tool.
func (w *world) plugin(name, category string) {
	w.write("project/.toolreg/plugins/theirs/plugin.yaml", fmt.Sprintf("id: theirs\ntools: [{name: %q, category: %s, command: [cat], parameters: {type: object, properties: {any: {}}}}]\n", name, category))
}

// save writes the settings files.
func (w *world) save() {
	own := w.own.String()
	if !strings.Contains(own, "mcpServers:") {
		own += w.servers.expand("mcpServers: {gh: {httpUrl: GH}}\n")
	}
	w.write("config/toolreg/settings.yaml", own)
	var b strings.Builder
	if w.tools != nil {
		w.write("project/tools.json", "["+strings.Join(w.tools, ",")+"]")
		b.WriteString("toolDiscoveryCommand: [cat, tools.json]\ntoolCallCommand: [sh, -c, \"cat > /dev/null; echo called\", call]\n")
	}
	for _, line := range w.project {
		b.WriteString(w.servers.expand(line) + "\n")
	}
	if b.Len() > 0 {
		w.write("project/.toolreg/settings.yaml", b.String())
	}
}

// run runs the program in the project, within this process: a process of its own for each run would
// cost more than the run.
func (w *world) run(stdin string, args ...string) string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Minute)
	defer cancel()
	w.t.Chdir(filepath.Join(w.dir, "project"))
	environ := []string{"HOME=" + w.dir, "XDG_CONFIG_HOME=" + filepath.Join(w.dir, "config"), "XDG_STATE_HOME=" + filepath.Join(w.dir, "state"),
		"XDG_CACHE_HOME=" + filepath.Join(w.dir, "cache"), "PATH=" + os.Getenv("PATH")}
	in, typed := io.Pipe()
	defer in.Close() // it need not be read
	out := &answers{in: typed}
	go func() {
		_, _ = io.WriteString(typed, stdin)
		if !strings.Contains(stdin, lastID) {
			_ = typed.Close()
		}
	}()
	shown := ui.NewWriter(out)
	commands.Program("test").Run(ctx, append([]string{"toolreg"}, args...), cli.Streams{In: in, Out: shown, Err: shown}, environ) // the log says what came of the call
	if ctx.Err() != nil {
		w.t.Fatalf("%q did not end within five minutes:\n%s", args, out)
	}
	return out.String()
}

// lastID is in the last request of a conversation, and in its answer.
const lastID = `"id":2`

// answers is the output of the program. With the last answer of a conversation its input ends.
type answers struct {
	mu   sync.Mutex
	text bytes.Buffer
	in   io.Closer
}

func (a *answers) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.text.String()
}

func (a *answers) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, err := a.text.Write(p)
	if bytes.Contains(a.text.Bytes(), []byte(lastID)) {
		_ = a.in.Close()
	}
	return n, err
}

// call makes a call, through the way that the change names, and reads in the audit log what
// came of it.
func (w *world) call(c change, a attempt) outcome {
	w.t.Helper()
	w.save()
	a.params = w.servers.expand(a.params)
	through := c.through
	if through == nil {
		through = byCall
	}
	args, stdin := through(w, a)
	log := filepath.Join(w.dir, "state", "toolreg", "audit.log")
	if err := os.Remove(log); err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	out := outcome{strictness: refused, output: w.run(stdin, slices.Concat([]string{"--trust-project"}, w.flags, args)...)}
	lines, err := os.ReadFile(log)
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	for line := range strings.Lines(string(lines)) {
		var e entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			w.t.Fatal(err)
		}
		if e.Script != "" && e.Parent == "" || c.inside && e.Source == "composite" {
			continue
		}
		if e.Outcome == "cancelled" {
			w.t.Fatalf("%s: the call was canceled\n%s", a, out.output)
		}
		out.strictness = min(out.strictness, e.strictness())
		name := e.Tool
		for _, own := range []string{e.Upstream, e.ServerTool} {
			if own != "" {
				name = own
			}
		}
		out.tools = append(out.tools, e.Source+" "+name)
	}
	return out
}

// entry is a line of the audit log.
type entry struct{ Tool, ServerTool, Upstream, Source, Script, Parent, Decision, Outcome string }

func (e *entry) strictness() strictness {
	switch {
	case e.Outcome == "denied" && e.Decision == "ask":
		return asked
	case e.Outcome == "denied":
		return denied
	case e.Outcome == "invalid":
		return refused
	}
	return ran
}

// servers are MCP servers over HTTP.
type servers struct{ urls []string }

// newServers starts a server for each of the names that settings of the matrix use: GH, which
// is the person's, and EVIL, which is somebody else's and has a tool of every name.
func newServers(t *testing.T) *servers {
	t.Helper()
	s := &servers{}
	for _, server := range []string{"GH ping,pong,danger", "EVIL ping,pong,danger,read_file,write_file,run_shell_command,read,bash"} {
		name, tools, _ := strings.Cut(server, " ")
		handler, err := mcptest.Handler("--names", tools)
		if err != nil {
			t.Fatal(err)
		}
		address := httptest.NewServer(http.HandlerFunc(handler.ServeHTTP))
		t.Cleanup(address.Close)
		s.urls = append(s.urls, name, address.URL)
	}
	api := httptest.NewServer(http.HandlerFunc(describe))
	t.Cleanup(api.Close)
	s.urls = append(s.urls, "API", api.URL)
	return s
}

// describe serves an OpenAPI document with one operation, which has the name in its address.
func describe(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, `{"openapi":"3.1.0","info":{"title":"api","version":"1"},"paths":{"/":{"get":{"operationId":%q,"parameters":[{"in":"query","name":"text","schema":{}},{"in":"query","name":"file_path","schema":{}},{"in":"query","name":"content","schema":{}},{"in":"query","name":"command","schema":{}}],"responses":{"200":{"description":"done"}}}}}}`,
		strings.TrimPrefix(r.URL.Path, "/"))
}

func (s *servers) expand(text string) string { return strings.NewReplacer(s.urls...).Replace(text) }
