// Command openapi reads published OpenAPI documents with toolreg and prints what became
// of them: the operations that a second library finds, the tools, what is quarantined,
// what toolreg schema --lint says, and what loading costs. With -prism it also calls every
// tool of some of them against a mock server that refuses what does not match the document.
//
// It is a module of its own, so that neither the library nor the documents are part of the
// program. npm ci and go mod download get them, as pinned by package-lock.json and go.sum.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == measureArg {
		os.Exit(measure(os.Args[2:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type options struct {
	path    string
	only    string
	prism   bool
	verbose bool
	every   int
	judge   string
}

func run(ctx context.Context) error {
	var o options
	flag.StringVar(&o.path, "toolreg", "../../bin/toolreg", "the `program` to run")
	flag.StringVar(&o.only, "only", "", "the documents to read, by `names` separated by commas")
	flag.BoolVar(&o.prism, "prism", false, "call the tools of the documents marked for it")
	flag.StringVar(&o.judge, "judge", "", "print what the judge reads in the document of this `name`, as JSON, and end")
	flag.IntVar(&o.every, "every", 1, "call only every `N`th tool, because a mock server of a large document is slow")
	flag.BoolVar(&o.verbose, "v", false, "say why each call was not accepted")
	flag.Parse()
	path, err := filepath.Abs(o.path)
	if err != nil {
		return err
	}
	documents, err := readDocuments(ctx, "documents.txt")
	if err != nil {
		return err
	}
	for _, d := range documents {
		if o.judge == d.name {
			m, err := d.judged()
			out := judgement{Model: m}
			if err != nil {
				out.Error = err.Error()
			}
			return json.NewEncoder(os.Stdout).Encode(out)
		}
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	var failed []error
	fmt.Fprintln(table,
		"document\tversion\tKB\toperations\ttools\tquarantined\tlint\tcold, CPU ms\tcached, CPU ms\tMiB\taccepted by Prism")
	for _, d := range documents {
		if o.only != "" && !slices.Contains(strings.Split(o.only, ","), d.name) {
			continue
		}
		r, err := o.read(ctx, path, d)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", d.name, err))
		}
		fmt.Fprintln(table, r)
		fmt.Fprintf(os.Stderr, "%s\n", strings.ReplaceAll(r.String(), "\t", "  "))
		for _, note := range r.notes {
			fmt.Fprintf(os.Stderr, "    %s\n", note)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return errors.Join(failed...)
}

// judgement is what a run with -judge prints.
type judgement struct {
	Model model
	Error string
}

// judgedApart judges a document in a process of its own: the judge needs much memory, and
// the most that a process has had counts for the processes that it starts.
func judgedApart(ctx context.Context, name string) (judgement, error) {
	var out judgement
	self, err := os.Executable()
	if err != nil {
		return out, err
	}
	cmd := exec.CommandContext(ctx, self, "-judge", name)
	cmd.Env = append(os.Environ(), "GOMEMLIMIT=2GiB")
	cmd.Stderr = os.Stderr
	data, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("judging: %w", err)
	}
	return out, json.Unmarshal(data, &out)
}

// row is a line of the table.
type row struct {
	document
	model
	tools, quarantined int
	lint               string
	cold, cached       usage
	prism              string
	notes              []string
}

func (r row) String() string {
	return fmt.Sprintf("%s\t%s\t%d\t%d\t%d\t%d\t%s\t%d\t%d\t%d\t%s",
		r.name, r.Version, r.size/1000, len(r.Operations), r.tools, r.quarantined, r.lint,
		r.cold.CPU.Milliseconds(), r.cached.CPU.Milliseconds(), r.cold.Memory>>20, r.prism)
}

// listing is what list --json prints.
type listing struct {
	Tools  []tool
	Hidden []struct {
		Name, Reason string
	}
	Diagnostics []struct {
		Severity, Code, Source, Tool, Message string
	}
}

func (o options) read(ctx context.Context, path string, d document) (row, error) {
	r := row{document: d}
	judged, err := judgedApart(ctx, d.name)
	if err != nil {
		return r, err
	}
	r.model = judged.Model
	if judged.Error != "" {
		r.notes = append(r.notes, "judge: "+head(judged.Error, 300))
	}
	home, err := os.MkdirTemp("", "openapi")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(home)
	p := program{path: path, home: home}
	if err := os.MkdirAll(filepath.Join(home, "work", ".git"), 0o777); err != nil {
		return r, err
	}
	settings := filepath.Join(home, "settings.json")
	if err := writeSettings(settings, d, r.Schemes, "https://api.example.com"); err != nil {
		return r, err
	}
	flags := []string{"--settings", settings, "--source", "openapi:*", "--json"}
	out, cold, err := p.run(ctx, nil, append([]string{"list", "--all"}, flags...)...)
	if err != nil {
		return r, err
	}
	r.cold = cold
	for range 3 {
		_, cached, err := p.run(ctx, nil, append([]string{"list", "--all"}, flags...)...)
		if err != nil {
			return r, err
		}
		if r.cached.CPU == 0 || cached.CPU < r.cached.CPU {
			r.cached = cached
		}
	}
	var list listing
	if err := json.Unmarshal(out, &list); err != nil {
		return r, err
	}
	r.tools, r.quarantined = len(list.Tools), len(list.Hidden)
	for _, h := range list.Hidden {
		r.notes = append(r.notes,
			"quarantined: "+h.Name+": "+strings.ReplaceAll(h.Reason, filepath.Dir(d.file)+"/", ""))
	}
	for _, diagnostic := range list.Diagnostics {
		if diagnostic.Severity != "info" { // info repeats why tools are quarantined
			r.notes = append(r.notes, diagnostic.Severity+": "+diagnostic.Message)
		}
	}
	r.notes = append(r.notes, compare(r.Operations, list.Tools)...)
	if len(r.Operations) != r.tools+r.quarantined {
		r.notes = append(r.notes,
			fmt.Sprintf("%d operations, but %d tools and %d quarantined", len(r.Operations), r.tools, r.quarantined))
	}
	if r.lint, err = lint(ctx, p, settings, &r); err != nil {
		return r, err
	}
	if o.prism && d.prism {
		return r, o.callAll(ctx, p, d, settings, list.Tools, &r)
	}
	return r, nil
}

// lint returns the number of errors over all providers.
func lint(ctx context.Context, p program, settings string, r *row) (string, error) {
	out, _, err := p.run(ctx, []int{9}, "schema", "--lint", "--settings", settings, "--source", "openapi:*", "--json")
	if err != nil {
		return "", err
	}
	var found struct {
		Findings []struct {
			Severity, Code, Tool, Message string
			Formats                       []string
		}
	}
	if err := json.Unmarshal(out, &found); err != nil {
		return "", err
	}
	errors := 0
	kinds := map[string]int{}
	for _, f := range found.Findings {
		// What is about all tools together is how many there are, not how they are declared.
		if f.Severity == "error" && f.Tool != "" {
			errors++
			kinds[strings.Join(f.Formats, ", ")+": "+f.Code+": "+strings.ReplaceAll(f.Message, f.Tool, "…")]++
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		r.notes = append(r.notes, fmt.Sprintf("lint: %d × %s", kinds[kind], head(kind, 200)))
	}
	if errors == 0 {
		return "ok", nil
	}
	return fmt.Sprint(errors), nil
}

func (o options) callAll(ctx context.Context, p program, d document, settings string, tools []tool, r *row) error {
	mock, err := startPrism(ctx, d.file)
	if err != nil {
		return err
	}
	defer mock.stop()
	if err := writeSettings(settings, d, r.Schemes, mock.url); err != nil {
		return err
	}
	s, err := p.session(ctx, "--settings", settings)
	if err != nil {
		return err
	}
	defer s.close()
	verbose := func(string, ...any) {}
	if o.verbose {
		verbose = func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
	}
	start := time.Now()
	some := slices.Clone(tools[:0])
	for i := 0; i < len(tools); i += max(o.every, 1) {
		some = append(some, tools[i])
	}
	t, err := callAll(ctx, s, mock, some, verbose)
	r.prism = fmt.Sprintf("%d of %d (%.1f %%)", t.accepted, t.calls, 100*float64(t.accepted)/float64(max(t.calls, 1)))
	for _, note := range slices.Sorted(maps.Keys(t.notes)) {
		r.notes = append(r.notes, fmt.Sprintf("%d × %s", t.notes[note], note))
	}
	r.notes = append(r.notes, fmt.Sprintf("%s for the calls", time.Since(start).Round(time.Second)))
	return err
}

// writeSettings writes settings with the document as the only source besides the built-in
// tools, and with credentials for the security schemes that the document declares.
func writeSettings(path string, d document, schemes []scheme, baseURL string) error {
	entry := map[string]any{"spec": d.file, "baseUrl": baseURL}
	if list := auth(schemes); len(list) > 0 {
		entry["auth"] = list
	}
	data, err := json.Marshal(map[string]any{"openapi": map[string]any{d.name: entry}})
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}
