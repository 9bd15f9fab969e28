//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
	"go.yaml.in/yaml/v3"
)

// conventions are those of OpenTelemetry: the attributes of each kind of span and each metric, and
// whether they are required.
type conventions map[string]map[string]bool

func readConventions(path string) (conventions, error) {
	var written struct {
		Groups []struct {
			ID         string
			Attributes []written
		} `yaml:"attribute_groups"`
		Spans []struct {
			Kind       string
			Attributes []written
		}
		Metrics []struct {
			Name, Unit string
			Attributes []written
		}
	}
	data, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(data, &written)
	}
	groups, out := map[string]map[string]bool{}, conventions{}
	for _, g := range written.Groups {
		groups[g.ID] = resolved(g.Attributes, groups)
	}
	for _, s := range written.Spans {
		out[s.Kind] = resolved(s.Attributes, groups)
	}
	for _, m := range written.Metrics {
		out[m.Name+" in "+m.Unit] = resolved(m.Attributes, groups)
	}
	return out, err
}

type written struct {
	Ref   string
	Group string `yaml:"ref_group"`
	Level any    `yaml:"requirement_level"`
}

func resolved(list []written, groups map[string]map[string]bool) map[string]bool {
	out := map[string]bool{}
	for _, a := range list {
		if a.Group != "" {
			maps.Copy(out, groups[a.Group])
			continue
		}
		out[a.Ref] = a.Level == "required"
	}
	return out
}

// violations describes how attributes differ from the conventions; those of our own are permitted.
func (c conventions) violations(what string, got attributes) (out []string) {
	known, ok := c[what]
	if !ok {
		return []string{"bad: the conventions have no " + what}
	}
	has := map[string]bool{}
	for _, kv := range got {
		has[kv.Key] = true
		if _, ok := known[kv.Key]; !ok && !strings.HasPrefix(kv.Key, "toolreg.") {
			out = append(out, "bad: the conventions have no attribute "+kv.Key+" of "+what)
		}
	}
	for name, required := range known {
		if required && !has[name] {
			out = append(out, "bad: "+what+" without "+name)
		}
	}
	return out
}

// collectorCommand runs "collector FILE": a collector of OpenTelemetry whose address is
// $COLLECTOR. It writes a line for each span, "KIND NAME SPAN in PARENT ATTRIBUTES", and
// "metric NAME COUNT ATTRIBUTES" for each series to the file.
func collectorCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: collector FILE")
	}
	path := ts.MkAbs(args[0])
	known, err := readConventions("../../testdata/otel/conventions.yaml")
	ts.Check(err)
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var lines []string
		if err == nil {
			lines, err = exportedLines(body, known)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			lines = []string{"bad: " + err.Error()}
		}
		mu.Lock()
		defer mu.Unlock()
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			fmt.Fprintln(f, strings.Join(lines, "\n"))
			f.Close()
		}
	}))
	ts.Defer(server.Close)
	ts.Setenv("COLLECTOR", server.URL)
}

// exported is what the exporter sends, as far as scripts look at it; the test of the exporter
// holds the rest against the collector's own types.
type exported struct {
	ResourceSpans []struct {
		ScopeSpans []struct {
			Spans []struct {
				TraceID, SpanID, ParentSpanID, Name string
				Kind                                int
				Attributes                          attributes
			}
		}
	}
	ResourceMetrics []struct {
		ScopeMetrics []struct {
			Metrics []struct {
				Name      string
				Unit      string
				Histogram struct {
					DataPoints []struct {
						Count      string
						Attributes attributes
					}
				}
			}
		}
	}
}

type attributes []struct {
	Key   string
	Value map[string]any
}

func (a attributes) String() string {
	var out []string
	for _, kv := range a {
		for _, v := range kv.Value {
			out = append(out, fmt.Sprintf("%s=%v", kv.Key, v))
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func exportedLines(body []byte, known conventions) (lines []string, err error) {
	var e exported
	if err := json.Unmarshal(body, &e); err != nil {
		return nil, err
	}
	for _, r := range e.ResourceSpans {
		for _, scope := range r.ScopeSpans {
			for _, s := range scope.Spans {
				kind := []string{"", "Internal", "Server", "Client"}[s.Kind]
				lines = append(lines, fmt.Sprintf("%s %q %s in %s of %s %s", kind, s.Name, s.SpanID, s.ParentSpanID, s.TraceID, s.Attributes))
				lines = append(lines, known.violations(strings.ToLower(kind), s.Attributes)...)
			}
		}
	}
	for _, r := range e.ResourceMetrics {
		for _, scope := range r.ScopeMetrics {
			for _, m := range scope.Metrics {
				for _, p := range m.Histogram.DataPoints {
					lines = append(lines, fmt.Sprintf("metric %s %s %s", m.Name, p.Count, p.Attributes))
					lines = append(lines, known.violations(m.Name+" in "+m.Unit, p.Attributes)...)
				}
			}
		}
	}
	return lines, nil
}
