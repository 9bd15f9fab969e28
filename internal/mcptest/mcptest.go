// Package mcptest is a real MCP server for tests, built on the official SDK,
// with flags for correct and incorrect behavior. Tests run it as a separate
// program; see [Build].
package mcptest

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Run runs the server with command-line flags args until stdin ends, with
// --http until the process is killed, and returns its exit code.
func Run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err == nil {
		var code int
		if code, err = o.run(stdin, stdout, stderr); err == nil {
			return code
		}
	}
	fmt.Fprintln(stderr, "mcp-testserver:", err)
	return 1
}

func (o *options) run(stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	if err := o.begin(stdout, stderr); err != nil {
		return 1, err
	}
	if o.exit >= 0 {
		return o.exit, nil
	}
	time.Sleep(o.delay)
	switch {
	case o.hang:
		_, err := io.Copy(io.Discard, stdin)
		if o.stubborn {
			select {}
		}
		return 0, err
	case o.steps != "":
		code, err := o.follow(stdin, stdout, stderr)
		if o.stubborn {
			select {}
		}
		return code, err
	case o.tasks && o.httpAddr == "":
		return o.taskServer().serve(stdin, stdout)
	case o.httpAddr != "":
		return 1, o.serveHTTP()
	}
	return o.serveStdio(stdin, stdout)
}

// begin performs the actions that must be visible before the first message.
func (o *options) begin(stdout, stderr io.Writer) error {
	if o.marker != "" {
		if err := appendLine(o.marker, "started"); err != nil {
			return err
		}
	}
	lines := strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\e`, "\x1b")
	if o.stderr != "" {
		fmt.Fprintln(stderr, lines.Replace(o.stderr))
	}
	if o.banner != "" {
		fmt.Fprintln(stdout, lines.Replace(o.banner))
	}
	if o.stubborn {
		ignoreSignals()
	}
	pid := os.Getpid()
	if o.grandchild {
		child, err := startSleeper()
		if err != nil {
			return err
		}
		pid = child
	}
	if o.pidFile != "" {
		return writeWhole(o.pidFile, fmt.Sprint(pid))
	}
	return nil
}

// builtServer is a variable with the path of the server, for systems without the go command.
const builtServer = "MCPTEST_SERVER"

// Build builds the server as the program mcp-testserver in a new folder, which the caller
// removes. It starts much faster than a test binary that acts as the server, above all one
// with the race detector.
func Build() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "mcptest"); err != nil {
		return "", err
	}
	program := filepath.Join(dir, "mcp-testserver")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	if built := os.Getenv(builtServer); built != "" {
		data, err := os.ReadFile(built)
		if err != nil {
			return "", err
		}
		return dir, os.WriteFile(program, data, 0o700)
	}
	build := exec.Command("go", "build", "-o", program, "github.com/toolreg/toolreg/testdata/clients/testserver")
	if out, err := build.CombinedOutput(); err != nil {
		_ = os.RemoveAll(dir)
		return "", fmt.Errorf("building mcp-testserver: %w\n%s", err, out)
	}
	return dir, nil
}

// Step is an action of a scripted server (--steps) when it receives a method.
// It can send what no real server would.
type Step struct {
	On     string        // method; "start" before anything is read, "end" after the end of stdin
	With   string        // only if the params contain this
	Print  []string      // lines on stdout, in which $ID is the id of the request, $PARAMS its params, and more
	Raw    string        // text on stdout after them, without a newline
	Big    int           // bytes of text in $BIG
	Times  int           // how often the lines are printed; 0 means once, and a negative value for ever
	Every  time.Duration // wait before each time
	Stderr string
	Delay  time.Duration // wait before all of this
	Exit   int           // exit with this code afterwards, unless 0
	Deaf   bool          // stop reading for ever afterwards
}

// follow does the steps of a script until stdin ends, and returns an exit code.
func (o *options) follow(stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	data, err := os.ReadFile(o.steps)
	if err != nil {
		return 1, err
	}
	var steps []Step
	if err := json.Unmarshal(data, &steps); err != nil {
		return 1, fmt.Errorf("%s: %w", o.steps, err)
	}
	do := func(method, id, params string) int {
		for _, s := range steps {
			if s.On == method && strings.Contains(params, s.With) {
				if s.do(id, params, stdout, stderr); s.Exit != 0 {
					return s.Exit
				}
			}
		}
		return 0
	}
	if code := do("start", "", ""); code != 0 {
		return code, nil
	}
	in := bufio.NewScanner(stdin)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		var m struct {
			ID, Params json.RawMessage
			Method     string
		}
		if json.Unmarshal(in.Bytes(), &m) != nil {
			continue
		}
		if code := do(m.Method, string(m.ID), string(m.Params)); code != 0 {
			return code, nil
		}
	}
	return do("end", "", ""), nil
}

func (s Step) do(id, params string, stdout, stderr io.Writer) {
	time.Sleep(s.Delay)
	fmt.Fprint(stderr, s.Stderr)
	fill := strings.NewReplacer("$ID", id, "$PARAMS", params, "$BIG", strings.Repeat("x", s.Big))
	out := bufio.NewWriterSize(stdout, 64<<10)
	for n := 0; n < max(1, s.Times) || s.Times < 0; n++ {
		time.Sleep(s.Every)
		for _, line := range s.Print {
			fmt.Fprintln(out, fill.Replace(line))
		}
		if s.Every > 0 && out.Flush() != nil {
			return
		}
	}
	fmt.Fprint(out, fill.Replace(s.Raw))
	out.Flush()
	if s.Deaf {
		time.Sleep(time.Hour)
	}
}

// options are the flags of the server.
type options struct {
	conduct
	overHTTP
	tools       int
	names       string
	pageSize    int
	loopCursor  bool
	badTools    bool
	noTools     bool
	extras      bool
	dialogs     bool
	changes     bool
	offers      bool
	description string
	listing     string
	tasks       bool
	undeclared  bool
	steps       string
	roots       bool
}

// conduct configures how the process behaves apart from what it offers.
type conduct struct {
	delay         time.Duration
	banner        string
	stderr        string
	exit          int
	hang          bool
	ignoreUnknown bool
	dieOnProbe    bool
	stubborn      bool
	grandchild    bool
	pidFile       string
	marker        string
	started       string
}

// overHTTP configures how the server is reached.
type overHTTP struct {
	httpAddr     string
	addrFile     string
	sse          bool
	jsonResponse bool
	protocol     string
}

func parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("mcp-testserver", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&o.tools, "tools", 0, "offer `N` generated tools, tool_1 to tool_N, instead of the usual ones")
	f.StringVar(&o.names, "names", "", "offer these tools, `a,b,c`, all like echo, instead of the usual ones")
	f.IntVar(&o.pageSize, "page-size", 0, "tools on a page of the listing")
	f.DurationVar(&o.delay, "delay", 0, "wait before anything is read or answered")
	f.StringVar(&o.banner, "banner", "", "print `TEXT` on stdout first; \\n is a newline")
	f.StringVar(&o.stderr, "stderr", "", "print `TEXT` on stderr first; \\n is a newline")
	f.IntVar(&o.exit, "exit", -1, "exit with `CODE` at once")
	f.BoolVar(&o.hang, "hang", false, "read everything and answer nothing")
	f.BoolVar(&o.ignoreUnknown, "ignore-unknown", false, "do not answer methods that revision 2025-11-25 does not know")
	f.BoolVar(&o.dieOnProbe, "die-on-probe", false, "exit with code 3 on server/discover")
	f.BoolVar(&o.stubborn, "stubborn", false, "do not end when stdin does, nor on SIGTERM")
	f.BoolVar(&o.grandchild, "grandchild", false, "start a sleeping child in the background")
	f.StringVar(&o.pidFile, "pidfile", "", "write the pid of the grandchild, else of the server, to `FILE`")
	f.StringVar(&o.marker, "marker", "", "append a line to `FILE` at the start")
	f.StringVar(&o.httpAddr, "http", "", "serve streamable HTTP on `ADDR`")
	f.StringVar(&o.addrFile, "addr-file", "", "write the URL to `FILE`")
	f.BoolVar(&o.sse, "sse", false, "with --http: serve the older HTTP transport (SSE)")
	f.BoolVar(&o.jsonResponse, "json-response", false, "with --http: answer with JSON instead of event streams")
	f.StringVar(&o.protocol, "protocol", "", "speak revision `V` alone")
	f.BoolVar(&o.loopCursor, "loop-cursor", false, "give every page of the listing the same next cursor")
	f.BoolVar(&o.badTools, "bad-tools", false, "list ill-typed, nameless and duplicate tools between the good ones")
	f.BoolVar(&o.noTools, "no-tools", false, "have no tools capability")
	f.BoolVar(&o.extras, "extras", false, "have a prompt and two resources")
	f.BoolVar(&o.changes, "changes", false, "have tools that change what the server has")
	f.BoolVar(&o.dialogs, "dialogs", false, "have tools that ask, log and tell of progress too")
	f.BoolVar(&o.offers, "offers", false, "have prompts and resources of every kind")
	f.StringVar(&o.started, "started", "", "write to `FILE` when the resource test://slow is read")
	f.StringVar(&o.description, "description", "", "describe the tools by the text in `FILE` where it exists")
	f.StringVar(&o.listing, "listing", "",
		"list the tools that the JSON in `FILE` has under \"tools\", as they are; a call gives back its name and params")
	f.BoolVar(&o.roots, "roots", false, "have a tool that asks for the roots")
	f.BoolVar(&o.tasks, "tasks", false, "have tools that go on as tasks, and nothing else")
	f.BoolVar(&o.undeclared, "undeclared", false,
		"with --tasks and a protocol before 2026-07-28: have no tasks capability, and refuse calls that ask for a task")
	f.StringVar(&o.steps, "steps", "", "be no real server but follow the script in `FILE`, a JSON list of steps")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	return o, nil
}

func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	return errors.Join(err, f.Close())
}

// writeWhole writes a file atomically.
func writeWhole(path, text string) error {
	if err := os.WriteFile(path+".tmp", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

// firstModern is the first revision without an initialize handshake.
const firstModern = "2026-07-28"

// exits carries the exit code of a server that exits in the middle of a
// request.
type exits chan int

func (e exits) with(code int) {
	select {
	case e <- code:
	default:
	}
}
