package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/policy/shell"
	"github.com/toolreg/toolreg/internal/registry"
)

const maxAlternatives = 64 // the maximum number of rules for one prefix_rule

// readCodexRules reads Codex's rules. If several match a command, Codex applies the
// strictest, so the rules are sorted by strictness. Only literals are read; nothing
// is evaluated.
func readCodexRules(ctx context.Context, files []RuleFile) (ImportedRules, error) {
	r := &codexReader{}
	for _, f := range files {
		calls, err := readCalls(f)
		if err != nil {
			return ImportedRules{}, err
		}
		for _, c := range calls {
			r.call(ctx, place(f.Path, c.line), c)
		}
	}
	slices.SortStableFunc(r.Rules, func(a, b Rule) int {
		order := []string{deny, ask, allow}
		return cmp.Compare(slices.Index(order, a.Decision), slices.Index(order, b.Decision))
	})
	return r.ImportedRules, nil
}

type codexReader struct{ ImportedRules }

func (r *codexReader) call(ctx context.Context, from string, c call) {
	if c.name != "prefix_rule" {
		r.addNote(from, leftOut+c.name+" has no counterpart")
		return
	}
	text, _ := c.args["decision"].(string)
	if _, given := c.args["decision"]; !given {
		text = "allow"
	}
	decision := map[string]string{"allow": allow, "prompt": ask, "forbidden": deny}[text]
	patterns, ok := alternatives(c.args["pattern"])
	if elements, _ := c.args["pattern"].([]any); !ok && decision != allow && len(elements) > 1 {
		if patterns, ok = alternatives(elements[:1]); ok {
			r.addNote(from, broader+"it applies to all commands of the program")
		}
	}
	if decision == "" || !ok {
		r.addNote(from, leftOut+"its pattern or decision cannot be read")
		return
	}
	reason, _ := c.args["justification"].(string)
	var rules []Rule
	for _, pattern := range patterns {
		rule, note := prefixRule(decision, quoteWords(pattern))
		if note != "" {
			r.addNote(from, note)
		}
		if rule != nil {
			rule.Decision, rule.Reason, rule.From = decision, reason, from
			rules = append(rules, *rule)
		}
	}
	for _, line := range exampleLines(c.args["match"]) {
		if !r.example(ctx, rules, line, true) {
			r.addNote(from, "the example "+line+" is left out")
		}
	}
	for _, line := range exampleLines(c.args["not_match"]) {
		r.example(ctx, rules, line, false)
	}
	r.Rules = append(r.Rules, rules...)
}

// alternatives expands a pattern whose elements may be lists of alternative words.
func alternatives(v any) ([][]string, bool) {
	elements, ok := v.([]any)
	if !ok || len(elements) == 0 {
		return nil, false
	}
	out := [][]string{nil}
	for _, e := range elements {
		choices, ok := words(e)
		if !ok || len(choices) == 0 || len(out)*len(choices) > maxAlternatives {
			return nil, false
		}
		var next [][]string
		for _, begin := range out {
			for _, choice := range choices {
				next = append(next, append(slices.Clone(begin), choice))
			}
		}
		out = next
	}
	return out, true
}

func quoteWords(list []string) string {
	quoted := make([]string, len(list))
	for i, w := range list {
		quoted[i] = w
		if w == "" || !shell.IsPlain(w) || strings.ContainsAny(w, "*?[{~ '\"\\") {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

func exampleLines(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, e := range list {
		switch e := e.(type) {
		case string:
			out = append(out, e)
		case []any:
			if words, ok := words(e); ok {
				out = append(out, quoteWords(words))
			}
		}
	}
	return slices.DeleteFunc(out, func(line string) bool { return strings.TrimSpace(line) == "" })
}

// example adds an example to the rules to which it applies.
func (r *codexReader) example(ctx context.Context, rules []Rule, line string, match bool) bool {
	tool := &registry.Tool{Definition: registry.Definition{Name: shellTool,
		Source: registry.SourceBuiltin, Category: registry.CategoryCommand},
		Behavior: registry.Behavior{
			Subject: func(registry.Call) (registry.Subject, error) { return registry.Subject{Command: line}, nil },
		}}
	p := &policy.Policy{Shell: shell.Bash}
	found := false
	for i := range rules {
		decision, err := policy.ParseDecision(rules[i].Decision)
		if err != nil || rules[i].When != "" {
			continue
		}
		got, err := p.Matches(ctx,
			&policy.Rule{Tool: shellTool, Command: rules[i].Command, Decision: decision}, tool,
			registry.Call{Params: json.RawMessage("{}")})
		if err != nil || got != match {
			continue
		}
		found = true
		if match {
			rules[i].Match = append(rules[i].Match, line)
		} else {
			rules[i].NotMatch = append(rules[i].NotMatch, line)
		}
	}
	return found
}
