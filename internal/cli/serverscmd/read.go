package serverscmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/atomicfile"
	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/timing"
	"github.com/toolreg/toolreg/internal/ui"
)

type readOptions struct{ output string }

func newReadCommand(e *cli.Env) *cobra.Command {
	o := &readOptions{}
	cmd := &cobra.Command{
		Use:   "read NAME URI",
		Short: "Read a resource of a server",
		Long: `Read a resource of an MCP server and print it: text as it is, binary content byte
for byte, not to a terminal. A resource may have several contents, which are
printed one after the other. toolreg servers NAME --resources lists resources and
templates. To read from a template, write out the URI.

Rules about resources (policy.rules) apply: a resource that they deny is not read,
and one that they ask about is read once you have said yes.

Exit codes: 0, 2, 3 (no such server or resource), 5 (denied), 6 (it needs an answer
and nobody can be asked), 7 (the server refused), 8 (the server failed),
124 (time limit).`,
		Example: `  toolreg servers read docs docs://guide/intro
  toolreg servers read shots shot://latest --output shot.png`,
		Args: cli.ArgsBetween(2, 2, "the NAME of a server and a URI"),
		ValidArgsFunction: complete.Args(e.Complete().Servers(),
			completeOffers(e, mcpclient.OfferResources), cobra.NoFileCompletions),
		RunE: func(cmd *cobra.Command, argv []string) error {
			return runRead(cmd.Context(), e, o, argv[0], argv[1])
		},
	}
	cmd.Flags().StringVar(&o.output, "output", "",
		"write to this `file`, or into this folder if it is one or ends with a slash")
	return cmd
}

// readingDocument is the JSON of servers read.
type readingDocument struct {
	Server   string          `json:"server"`
	URI      string          `json:"uri"`
	Contents json.RawMessage `json:"contents"` // as the server sent them
	Saved    []string        `json:"saved,omitempty"`
}

func runRead(ctx context.Context, e *cli.Env, o *readOptions, name, uri string) error {
	if uri == "" {
		return cli.Usage("the URI is empty", "toolreg servers "+name+" --resources lists them")
	}
	var reading mcpclient.Reading
	use := offerUse{what: "read " + uri, method: "resources/read",
		offer: engine.Offer{Server: name, URI: uri}, params: map[string]string{"uri": uri}}
	err := atServer(ctx, e, use,
		func(ctx context.Context, s *mcpclient.Source, show func(registry.Progress)) (err error) {
			reading, err = s.ReadResource(ctx, uri, show)
			return err
		})
	if err != nil {
		return err
	}
	d := readingDocument{Server: name, URI: uri, Contents: reading.Raw}
	if o.output != "" {
		if d.Saved, err = saveReading(o.output, uri, reading.Contents); err != nil {
			return err
		}
	}
	if e.IO.JSON || o.output != "" {
		return e.IO.PrintText(d, ui.EndLine(ui.Visible(strings.Join(d.Saved, "\n"))))
	}
	return printReading(e.IO, uri, reading.Contents)
}

// offerUse is a request to a server for a prompt or a resource.
type offerUse struct {
	what   string // for messages
	method string
	offer  engine.Offer
	params any
}

// atServer calls do with one server, if the rules or the person allow the request. It applies the
// time limit of a call, shows progress on the live lines, and closes the server.
func atServer(ctx context.Context, e *cli.Env, u offerUse,
	do func(context.Context, *mcpclient.Source, func(registry.Progress)) error) error {
	name := u.offer.Server
	s, err := e.Engine.Session(ctx, cli.SessionOptions{})
	if err != nil {
		return err
	}
	server, err := serverNamed(e.IO, s, name)
	if err != nil {
		return err
	}
	defer closeServers([]*mcpclient.Source{server})
	return s.Calls.Use(ctx, u.offer.Tool(u.method), u.offer, u.params, func(ctx context.Context) error {
		limit := server.Settings().Timeout // or that of --timeout
		ctx, cancel := timing.Limit(ctx, limit, &exec.TimeoutError{Tool: u.what, Limit: limit})
		defer cancel()
		show, hide := e.IO.Screen.Progress(u.what, registry.MCPPrefix+name)
		defer hide()
		err := do(ctx, server, show)
		if over, ok := errors.AsType[*exec.TimeoutError](context.Cause(ctx)); ok && err != nil {
			return fmt.Errorf("server %q: %w", name, over)
		}
		return err
	})
}

// printReading prints text unchanged in a pipe, and made visible on a terminal.
func printReading(ios *cli.IO, uri string, contents []registry.Content) error {
	if len(contents) == 0 {
		ios.Notef("the server returned nothing for %s", uri)
		return nil
	}
	if !ios.OutTTY {
		return cli.WriteRaw(ios.Results(), contents)
	}
	var b strings.Builder
	for _, c := range contents {
		if c.Data != nil {
			return &cli.UsageError{Err: fmt.Errorf("%s is binary (%s, %d bytes), which is not written to a terminal",
				cmp.Or(c.URI, uri), cmp.Or(c.MIMEType, "unknown type"), len(c.Data)),
				Hint: "--output FILE writes it to a file"}
		}
		if len(contents) > 1 {
			b.WriteString("== " + ui.Line(cmp.Or(c.URI, uri)) + "\n")
		}
		b.WriteString(ui.EndLine(ui.Visible(c.Text)))
	}
	_, err := io.WriteString(ios.Out, b.String())
	return err
}

// saveReading writes the contents to a file, or each to its own file in a folder, with
// names from the URIs and without overwriting other files.
func saveReading(output, uri string, contents []registry.Content) ([]string, error) {
	info, err := os.Stat(output)
	if isDir := err == nil && info.IsDir() || strings.HasSuffix(output, "/") ||
		strings.HasSuffix(output, string(filepath.Separator)); !isDir {
		if len(contents) > 1 {
			return nil, cli.Usage(fmt.Sprintf("%s has %d contents, and --output names one file", uri, len(contents)),
				"name a folder, with a slash at its end")
		}
		return saveFile(output, contents)
	}
	root, err := cli.OpenOutput(output)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var saved []string
	for _, c := range contents {
		base, ext := fileName(cmp.Or(c.URI, uri), c)
		name, err := cli.CreateFile(root, base, ext, cli.PartBytes(c))
		if err != nil {
			return saved, fmt.Errorf("--output: %w", err)
		}
		saved = append(saved, filepath.Join(output, name))
	}
	return saved, nil
}

func saveFile(name string, contents []registry.Content) ([]string, error) {
	if len(contents) == 0 {
		return nil, errors.New("the server returned nothing to write")
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() { // a device, a pipe
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return nil, fmt.Errorf("--output: %w", err)
		}
		_, err = f.Write(cli.PartBytes(contents[0]))
		return []string{name}, errors.Join(err, f.Close())
	}
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real // replace the target of a link, not the link
	}
	folder, err := os.OpenRoot(filepath.Dir(name))
	if err == nil {
		defer folder.Close()
		var o atomicfile.Options
		o.Like, _ = folder.Stat(filepath.Base(name)) // nil if there is none
		err = atomicfile.Write(folder, filepath.Base(name), cli.PartBytes(contents[0]), o)
	}
	if err != nil {
		return nil, &cli.UsageError{Err: fmt.Errorf("--output: %w", err)}
	}
	return []string{name}, nil
}

// fileName returns a file name made from the last part of a URI, without characters that
// have a meaning in paths.
func fileName(uri string, c registry.Content) (base, ext string) {
	last := uri
	if u, err := url.Parse(uri); err == nil {
		if last = path.Base(u.Path); last == "." || last == "/" {
			last = u.Host + u.Opaque
		}
	}
	last = strings.TrimLeft(text.Plain(last, "._-"), ".-")
	if len(last) > 100 {
		last = last[len(last)-100:]
	}
	ext = path.Ext(last)
	if base = strings.TrimSuffix(last, ext); base == "" {
		base, ext = "resource", last
	}
	if ext == "" {
		ext = cli.Extension(c.MIMEType)
		if c.Data == nil && c.MIMEType == "" || strings.HasPrefix(c.MIMEType, "text/plain") {
			ext = ".txt"
		}
	}
	return base, ext
}
