package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/toolreg/toolreg/internal/registry"
)

// command decides on a shell command line: allow needs every part allowed, deny
// needs one (spec section 8.4).
func (d *decision) command() Verdict {
	parts, writes := analyse(d.policy.Shell, d.subject.Command)
	for _, w := range writes {
		if !path.IsAbs(w) {
			w = path.Join(d.subject.Directory, w)
		}
		d.subject.Paths = append(d.subject.Paths, w)
	}
	if len(parts) == 0 { // nothing but comments
		return d.plain()
	}
	var v Verdict
	for i := range parts {
		d.unread = d.unread || parts[i].unread
		c := d.part(&parts[i])
		v.Commands = append(v.Commands, c)
		unread := parts[i].unread && c.Decision == Ask && v.Decision == Ask // tells most
		if i == 0 || unread || stricter(v.Decision, c.Decision) != v.Decision {
			v.Decision, v.Reason, v.Origin, v.Rule, v.Approval = c.Decision, c.Reason, c.Origin, c.rule, c.approval
		}
	}
	if v.Decision == Ask && len(d.changes) > 0 {
		v.Reason = changedReason(d.changes)
	}
	return v
}

// part decides on one part of a command line.
func (d *decision) part(s *simple) CommandVerdict {
	c := CommandVerdict{Text: s.text, Root: s.root(), Origin: originDefault}
	if s.refused {
		c.Decision, c.Reason = Deny, s.doubt
		return c
	}
	if s.ruin != "" {
		c.Decision, c.Reason = Deny, fmt.Sprintf("setting shell.catastrophic denies it: %s", s.ruin)
		if d.policy.AskCatastrophic {
			d.person = true
			c.Decision, c.Reason = Ask, fmt.Sprintf("setting shell.catastrophic asks about it: %s", s.ruin)
		}
		return c
	}
	doubt := "" // what might be denied, if it were known
	for _, b := range d.policy.Banned {
		switch s.denied(b.Value) {
		case yes:
			c.Decision, c.Origin = Deny, b.Setting
			c.Reason = fmt.Sprintf("setting shell.banned denies %q", b.Value)
			return c
		case maybe:
			doubt = fmt.Sprintf("%s, so setting shell.banned cannot be checked", s.doubt)
		}
	}
	for i := range d.policy.Rules {
		r := &d.policy.Rules[i]
		if !d.ruleNames(r) || !d.rulePaths(r) {
			continue
		}
		switch d.ruleCommand(r, s) {
		case yes:
			c.Decision, c.Reason, c.Origin, c.rule = r.Decision, r.reason(), r.Origin, r
			d.unsure = d.unsure || doubt != ""
			return c.floor(doubt)
		case maybe:
			doubt = fmt.Sprintf("it may be what a rule on %q %ss", r.Command, r.Decision)
		}
	}
	v := d.byDefault()
	if root := s.coverable(); root != "" && doubt == "" && v.Decision != Allow {
		if id := d.approvedFor(ScopeCommand, root); id != "" {
			c.Decision, c.Reason, c.Origin, c.approval = Allow, fmt.Sprintf("you allowed %q for good", root), originApproval, id
			return c
		}
		if !isShell(programName(root)) { // "always bash" would be always anything
			c.remember = root
		}
	}
	c.Decision, c.Reason, c.Origin, c.rule = v.Decision, v.Reason, v.Origin, v.Rule
	if c.Decision == Ask && s.doubt != "" {
		c.Reason = s.doubt
	}
	if s.unread {
		doubt = s.doubt
	}
	d.unsure = d.unsure || doubt != "" && !s.unread
	return c.floor(doubt)
}

// floor turns an allow into a question where a doubt remains.
func (c CommandVerdict) floor(doubt string) CommandVerdict {
	if doubt != "" && c.Decision == Allow {
		c.Decision, c.Reason, c.Origin, c.rule = Ask, doubt, originDefault, nil
	}
	return c
}

// certainty is how sure a match is.
type certainty int

const (
	no certainty = iota
	maybe
	yes
)

// ruleCommand compares the command of a rule with a part.
func (d *decision) ruleCommand(r *Rule, s *simple) certainty {
	switch {
	case s.unread && r.Decision == Allow:
		return no // what cannot be read is asked about
	case r.Command == "":
		return yes
	case r.Decision != Allow:
		return s.denied(r.Command)
	case s.allowed(r.Command):
		return yes
	}
	return no
}

// coverable returns the program of a part that rules and approvals on commands
// may cover, "" where there is a doubt.
func (s *simple) coverable() string {
	if s.doubt != "" || s.unread || len(s.words) == 0 || !s.words[0].known {
		return ""
	}
	return s.words[0].text
}

// allowed reports whether the part begins with exactly the rule's words.
func (s *simple) allowed(command string) bool {
	want, ok := ruleWords(command)
	if !ok || s.coverable() == "" || len(want) > len(s.words) {
		return false
	}
	for i, w := range want {
		if !s.words[i].known || !registry.MatchName(w, s.words[i].text) {
			return false
		}
	}
	return true
}

// denied reports whether the part is, or may be, what the rule's words name.
// The program counts by its last path element, case aside; options may stand
// between the words.
func (s *simple) denied(command string) certainty {
	want, ok := ruleWords(command)
	if !ok {
		return yes // a broken rule denies rather than nothing
	}
	unknown := no
	if s.dynamic {
		unknown = maybe
	}
	if len(s.words) == 0 || !slices.ContainsFunc(s.words[0].programs(), func(p string) bool { return registry.MatchName(programName(want[0]), p) || s.words[0].globs(want[0]) }) {
		return unknown
	}
	return max(unknown, restDenied(want[1:], s.words[1:]))
}

// restDenied looks for the rule's further words, in order, among the words of
// a command; what looks like an option, with or without a value, may stand
// before each.
func restDenied(want []string, words []word) certainty {
	sure := yes
	for _, w := range want {
		at := -1
		for i := range words {
			if !words[i].known {
				sure = maybe
			}
			if foldMatch(w, words[i].text) {
				at = i
				break
			}
			optionBefore := i > 0 && strings.HasPrefix(words[i-1].text, "-")
			if words[i].known && !strings.HasPrefix(words[i].text, "-") && !optionBefore && !strings.HasPrefix(w, "-") {
				break
			}
		}
		if at < 0 {
			if sure == maybe {
				return maybe
			}
			return no
		}
		if words[at].known {
			sure = yes
		}
		words = words[at+1:]
	}
	return sure
}

// programs returns the names of programs that a first word may stand for.
func (w word) programs() []string {
	names := []string{programName(w.text)}
	if w.braces {
		for _, f := range strings.FieldsFunc(w.text, func(r rune) bool { return strings.ContainsRune("{},", r) }) {
			names = append(names, programName(f))
		}
	}
	return names
}

// globs reports whether the word is a glob that the program's name matches.
func (w word) globs(program string) bool {
	if !w.glob {
		return false
	}
	ok, err := doublestar.Match(programName(w.text), programName(program))
	return ok && err == nil
}

// rememberable returns the programs that "always" would cover, nil where it
// would not cover the whole line.
func rememberable(commands []CommandVerdict) []string {
	var roots []string
	for _, c := range commands {
		if c.Decision != Ask {
			continue
		}
		if c.remember == "" {
			return nil
		}
		if !slices.Contains(roots, c.remember) {
			roots = append(roots, c.remember)
		}
	}
	return roots
}
