package whycmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
)

// conditions are the conditions of a rule.
type conditions struct {
	Tool        string          `json:"tool,omitempty"`
	Source      string          `json:"source,omitempty"`
	Server      string          `json:"server,omitempty"`
	Category    string          `json:"category,omitempty"`
	Annotations map[string]bool `json:"annotations,omitempty"`
	Command     string          `json:"command,omitempty"`
	Path        string          `json:"path,omitempty"`
	Client      string          `json:"client,omitempty"`
	Group       string          `json:"group,omitempty"`
	Profile     string          `json:"profile,omitempty"`
	Prompt      string          `json:"prompt,omitempty"`
	Resource    string          `json:"resource,omitempty"`
	When        string          `json:"when,omitempty"`
}

func conditionsOf(r *policy.Rule) conditions {
	c := conditions{
		Tool: r.Tool, Source: r.Source, Server: r.Server, Category: r.Category, Annotations: r.Annotations,
		Command: r.Command, Path: r.Path, Client: r.Client,
		Group: r.Group, Profile: r.Profile, Prompt: r.Prompt, Resource: r.Resource,
	}
	if r.When != nil {
		c.When = r.When.Text
	}
	return c
}

func (c conditions) match() string {
	var parts []string
	for _, f := range [][2]string{{"tool", c.Tool}, {"source", c.Source},
		{"server", c.Server}, {"category", c.Category},
		{"command", c.Command}, {"path", c.Path}, {"client", c.Client}, {"group", c.Group},
		{"profile", c.Profile}, {"prompt", c.Prompt}, {"resource", c.Resource}, {"when", c.When}} {
		if f[1] != "" {
			parts = append(parts, f[0]+"="+f[1])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Annotations)) {
		parts = append(parts, fmt.Sprintf("%s=%t", name, c.Annotations[name]))
	}
	return strings.Join(parts, " ")
}

type ruleReport struct {
	Decision policy.Decision `json:"decision"`
	Origin   string          `json:"origin"`
	conditions
	Matches bool     `json:"matches"`
	Parts   []string `json:"parts,omitempty"` // commands of a shell line that it matches
	First   bool     `json:"first,omitempty"` // no rule before it matches the call or one of these commands
	Unmet   string   `json:"unmet,omitempty"`
	Value   string   `json:"value,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// explain reports on every rule. If whole is set, it is about the tool without params.
func explain(ctx context.Context, p *policy.Policy, t *registry.Tool,
	call registry.Call, whole bool) ([]ruleReport, error) {
	reports := p.ExplainTool(ctx, t)
	if !whole {
		var err error
		if reports, err = p.Explain(ctx, t, call); err != nil {
			return nil, err
		}
	}
	var out []ruleReport
	matched := map[string]bool{} // the parts that the rule matches
	for i, r := range reports {
		if i == 0 || reports[i-1].Rule != r.Rule {
			out = append(out, ruleReport{Decision: r.Rule.Decision,
				Origin: r.Rule.Origin, conditions: conditionsOf(r.Rule)})
		}
		out[len(out)-1].add(r, !matched[r.Part])
		matched[r.Part] = matched[r.Part] || r.Matches
	}
	return out, nil
}

// add adds the report on the call, or on one command of its command line.
func (r *ruleReport) add(part policy.RuleReport, first bool) {
	if part.Failed != nil {
		r.Error = part.Failed.Error()
	}
	switch {
	case !part.Matches && !r.Matches:
		r.Unmet, r.Value = part.Unmet, part.Value
	case part.Matches:
		r.Matches, r.First = true, r.First || first
		r.Unmet, r.Value = "", ""
		if part.Part != "" {
			r.Parts = append(r.Parts, part.Part)
		}
	}
}

func (r ruleReport) String() string {
	text := fmt.Sprintf("%s: %s", r.Origin, r.Decision)
	if match := r.match(); match != "" {
		text += " " + match
	}
	switch {
	case r.Error != "":
		text += fmt.Sprintf(": when failed (%s), treated as %t", r.Error, r.Matches)
	case r.Matches:
		text += ": matches"
		for i, part := range r.Parts {
			text += fmt.Sprintf("%s %q", strings.Repeat(",", min(i, 1)), part)
		}
		if !r.First {
			text += ", but an earlier rule decides"
		}
	case r.Unmet == "when" && r.Value == "":
		text += ": not evaluated without params"
	case r.Unmet == "when":
		text += ": does not match: when returned " + r.Value
	case r.Value == "":
		text += fmt.Sprintf(": does not match: the call has no %s", r.Unmet)
	default:
		text += fmt.Sprintf(": does not match: %s is %q", r.Unmet, r.Value)
	}
	return text
}

// describeCall describes in one line what a call would do, and which files it names
// or in which folder a command would run, as far as this is known without
// making the call.
func describeCall(ctx context.Context, t *registry.Tool,
	call registry.Call, workspace string) (string, []registry.Location) {
	var subject registry.Subject
	if t.Subject != nil {
		subject, _ = t.Subject(call) // omit what is unknown
	}
	var at []registry.Location
	for _, path := range subject.Paths {
		path = expand.From(workspace, filepath.FromSlash(path))
		at = append(at, registry.Location{Path: path})
	}
	if t.Preview != nil {
		p, err := t.Preview(ctx, call)
		if failed, ok := errors.AsType[*registry.FailedError](err); ok {
			return "fail: " + failed.Result.Text(), at
		}
		if err == nil && p.Directory != "" {
			at = append(at, registry.Location{Path: p.Directory})
		}
		if err == nil && p.Title != "" {
			if more := cmp.Or(p.Command, strings.Join(p.URLs, ", ")); more != "" {
				return p.Title + ": " + more, at
			}
			return p.Title, at
		}
	}
	if t.OfServer() {
		return "call " + t.ServerTool + " of server " + t.Server, at
	}
	what := cmp.Or(subject.Command, strings.Join(subject.URLs, ", "), strings.Join(subject.Paths, ", "))
	return strings.TrimSpace("call " + t.Name + " " + what), at
}
