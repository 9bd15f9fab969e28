package mcptest

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

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
