package policy

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/policy/shell"
	"github.com/toolreg/toolreg/internal/trust"
)

// command decides on a shell command line. The line is allowed if every part is
// allowed, and denied if any part is denied.
func (d *decision) command() Verdict {
	line := d.readLine()
	if len(line.Commands) == 0 { // only comments
		return d.plain()
	}
	var v Verdict
	var accepts []string
	// A line of parts that need no rule is decided by the rules on all commands.
	alone := !slices.ContainsFunc(line.Commands, func(c shell.Command) bool { return !c.Passes })
	decided := 0 // the part that the decision on the line is that of
	for i := range line.Commands {
		part := &line.Commands[i]
		d.unread = d.unread || part.Unread
		part.Passes = part.Passes && !alone
		c := d.part(part)
		if c.Decision == Allow {
			if changed := d.changedFiles(part); len(changed) > 0 {
				c = c.floor(fmt.Sprintf("a sandboxed program may have changed %s", strings.Join(changed, ", ")))
				accepts = append(accepts, changed...)
			}
		}
		v.Commands = append(v.Commands, c)
		unread := part.Unread && c.Decision == Ask && v.Decision == Ask // prefer this reason, which explains most
		passed := line.Commands[decided].Passes && c.Decision == v.Decision
		if i == 0 || unread || passed || stricter(v.Decision, c.Decision) != v.Decision {
			decided = i
			v.Decision, v.Reason, v.Origin, v.Rule, v.Approval = c.Decision, c.Reason, c.Origin, c.rule, c.approval
		}
	}
	if v.Decision == Ask && len(d.changes) > 0 {
		v.Reason = changedReason(d.changes)
	}
	if accept, seen := d.means().Accept, time.Now(); accept != nil && len(accepts) > 0 {
		v.Accept = func(ctx context.Context) error { return accept(ctx, accepts, seen) }
	}
	d.changed = func() (changed []string) {
		for i := range line.Commands {
			changed = append(changed, d.changedFiles(&line.Commands[i])...)
		}
		return changed
	}
	return v
}

// changedFiles returns the files that a part starts with and that a sandboxed program may have
// changed. Only a person can accept them.
func (d *decision) changedFiles(part *shell.Command) []string {
	changed, argv := d.means().Changed, part.Starts()
	if changed == nil || len(argv) == 0 {
		return nil
	}
	return changed(argv, d.folder(part))
}

// folder returns the absolute folder in which a part runs, as far as it is known.
func (d *decision) folder(part *shell.Command) string {
	if dir, _ := part.Folder(); path.IsAbs(dir) {
		return dir
	}
	return absolutePath(d.policy.Workspace, d.subject.Directory)
}

// elsewhere returns the reason why the words of a rule are not enough to allow a part: it runs
// what it finds in its folder, and this is neither the workspace nor belongs to its project. Otherwise it returns "".
func (d *decision) elsewhere(part *shell.Command) string {
	root := absolutePath(d.policy.Workspace, "")
	dir, moved := part.Folder()
	known := !moved || path.IsAbs(dir)
	if dir = d.folder(part); d.policy.Workspace == "" || known && dir == root || !part.RunsFolder() {
		return ""
	}
	if known && (part.Root() == "git" && !holdsRepository(root, dir) || belongsTo(root, dir)) {
		return ""
	}
	return fmt.Sprintf("what %s runs depends on its folder, which is not known to be one of the project in the workspace; a rule with `when` can name the folder", part.Root())
}

// belongsTo reports whether a folder is a part of the project in the workspace: it lies inside and not
// behind a link, has no repository of its own, and is neither hidden nor one for the code of others.
// The line itself may fill an empty one. Nothing belongs to a workspace that is the home folder.
func belongsTo(root, dir string) bool {
	within, ok := strings.CutPrefix(dir, strings.TrimSuffix(root, "/")+"/")
	if home, err := os.UserHomeDir(); !ok || root == "/" || err != nil || trust.Real(home) == trust.Real(filepath.FromSlash(root)) || holdsRepository(root, dir) {
		return false
	}
	for name := range strings.SplitSeq(within, "/") {
		if strings.HasPrefix(name, ".") || slices.Contains(foreignFolders(), strings.ToLower(name)) {
			return false
		}
	}
	real, err := filepath.EvalSymlinks(filepath.FromSlash(dir))
	if err != nil || real != filepath.Join(trust.Real(filepath.FromSlash(root)), filepath.FromSlash(within)) {
		return false
	}
	files, err := os.ReadDir(real)
	return err == nil && len(files) > 0
}

// foreignFolders are the names of folders in projects that hold the code of others.
func foreignFolders() []string {
	return []string{"node_modules", "bower_components", "vendor", "third_party", "venv", "env", "site-packages", "tmp", "downloads"}
}

// holdsRepository reports whether git finds another repository in a folder than in the workspace.
func holdsRepository(root, dir string) bool {
	for at := dir; at != root; at = path.Dir(at) {
		if _, err := os.Lstat(filepath.Join(filepath.FromSlash(at), ".git")); err == nil || at == "/" {
			return true
		}
	}
	return false
}

// readLine analyzes the command line and adds the files that it writes to the
// paths of the call.
func (d *decision) readLine() shell.Line {
	dir := ""
	if d.policy.Workspace != "" {
		dir = absolutePath(d.policy.Workspace, d.subject.Directory)
	}
	line := shell.Read(d.policy.Shell, d.subject.Command, dir)
	writes := line.Writes
	for _, f := range line.Inside {
		if info, err := os.Stat(filepath.FromSlash(absolutePath(dir, f.Folder))); err == nil && info.IsDir() {
			writes = append(writes, path.Join(f.Folder, f.Name))
		}
	}
	for _, w := range writes {
		if !path.IsAbs(w) {
			w = path.Join(d.subject.Directory, w)
		}
		d.subject.Paths = append(d.subject.Paths, w)
		if real := d.linked(w); real != "" {
			d.subject.Paths = append(d.subject.Paths, real)
		}
	}
	return line
}

// linked returns the file that a shell would write if name contains symbolic
// links, and "" if it does not.
func (d *decision) linked(name string) string {
	if d.policy.Workspace == "" {
		return ""
	}
	name = absolutePath(d.policy.Workspace, name)
	real := trust.Real(filepath.Join(trust.Real(filepath.Dir(name)), filepath.Base(name)))
	if real == filepath.Clean(name) {
		return ""
	}
	return real
}

// part decides on one part of a command line.
func (d *decision) part(s *shell.Command) CommandVerdict {
	c := CommandVerdict{Text: s.Text, Root: s.Root(), Origin: originDefault}
	if s.Refused {
		c.Decision, c.Reason = Deny, s.Doubt
		return c
	}
	if s.Catastrophic != "" {
		c.Decision, c.Reason = Deny, fmt.Sprintf("setting shell.catastrophic denies it: %s", s.Catastrophic)
		if d.policy.AskCatastrophic {
			d.person = true
			c.Decision, c.Reason = Ask, fmt.Sprintf("setting shell.catastrophic requires confirmation: %s", s.Catastrophic)
		}
		return c
	}
	doubt := d.unclearPath(s) // the reason why a deny cannot be ruled out
	for _, b := range d.policy.Banned {
		switch s.Names(b.Value) {
		case shell.Yes:
			c.Decision, c.Origin = Deny, b.Setting
			c.Reason = fmt.Sprintf("setting shell.banned denies %q", b.Value)
			if b.Value == "rm" || b.Value == "rmdir" || b.Value == "unlink" {
				c.Reason += "; the tool apply_patch deletes files"
			}
			return c
		case shell.Maybe:
			doubt = fmt.Sprintf("%s, so setting shell.banned cannot be checked", s.Doubt)
		}
	}
	for i, r := range d.rules() {
		certain := d.ruleCommand(r, s)
		if certain == shell.No || d.unmet(r) != "" {
			continue
		}
		switch certain {
		case shell.Yes:
			r = d.prevailing(i, func(r *Rule) bool {
				certain := d.ruleCommand(r, s)
				if certain == shell.No || d.unmet(r) != "" {
					return false
				}
				if certain == shell.Maybe {
					doubt = mayApply(r)
				}
				return certain == shell.Yes
			})
			c.Decision, c.Reason = d.ruled(r)
			c.Origin, c.rule = r.Origin, r
			d.unsure = d.unsure || doubt != ""
			if c = c.floor(doubt); c.Decision == Allow && r.Command != "" && r.When == nil {
				c = c.floor(d.elsewhere(s))
			}
			return c
		case shell.Maybe:
			doubt = mayApply(r)
		}
	}
	if s.Passes {
		c.Decision, c.Reason = Allow, "it has no effect besides the other parts of the line"
		return c.floor(doubt)
	}
	v := d.byDefault()
	elsewhere := d.elsewhere(s)
	if doubt == "" && v.Decision != Allow {
		d.moved = d.moved || elsewhere != ""
		if a := d.approval(ScopeCommand, func(a *Approval) bool { return (a.Confined || elsewhere == "") && s.Covered(a.Value, a.Confined) }); a != nil {
			c.Decision, c.Reason, c.Origin, c.approval = Allow, fmt.Sprintf("you chose to always allow %q", a.Value), originApproval, a.ID
			if a.Confined {
				c.Decision, c.Reason = d.sandboxed(fmt.Sprintf("you chose to always run %q in the sandbox", a.Value), "it was allowed in the sandbox")
			}
			return c
		}
		c.remember = s.Cover()
	}
	c.Decision, c.Reason, c.Origin, c.rule = v.Decision, v.Reason, v.Origin, v.Rule
	if c.Decision == Ask && (c.Root == "apply_patch" || c.Root == "applypatch") {
		c.Reason = "apply_patch is a tool and no program: call it with the patch as its param"
	} else if c.Decision == Ask && s.Doubt != "" {
		c.Reason = s.Doubt
	} else if c.Decision == Ask && elsewhere != "" && d.approval(ScopeCommand, func(a *Approval) bool { return s.Covered(a.Value, a.Confined) }) != nil {
		c.Reason = elsewhere
	} else if c.Decision == Ask && s.Exact != "" && d.anyRule(func(r *Rule) bool { return r.Decision == Allow && s.Begins(r.Command, true) && d.unmet(r) == "" }) {
		c.Reason = s.Exact + ", so a rule must have all words of the command"
	} else if c.Decision == Ask && s.Named != "" && d.anyRule(func(r *Rule) bool { return r.Decision == Allow && s.Begins(r.Command, true) && d.unmet(r) == "" }) {
		c.Reason = s.Named
	} else if c.Decision == Ask && c.remember != "" && d.approvedWhole(c.Root) {
		c.Reason = fmt.Sprintf("\"always\" now covers single subcommands of %q; the earlier answer for all of them is ignored", c.Root)
	}
	if s.Unread {
		doubt = s.Doubt
	}
	d.unsure = d.unsure || doubt != "" && !s.Unread
	return c.floor(doubt)
}

// unclearPath returns the doubt whether a part writes a file that a rule denies; "" if there is none.
func (d *decision) unclearPath(s *shell.Command) string {
	if s.Unclear == "" {
		return ""
	}
	for _, r := range d.rules() {
		if r.Decision == Deny && r.Path != "" && d.ruleCommand(r, s) != shell.No && d.ruleNames(r) && d.ruleWhen(r) {
			return fmt.Sprintf("%s, and a rule denies %q", s.Unclear, r.Path)
		}
	}
	return ""
}

// mayApply is the doubt whether a rule is about a command that is not understood completely.
func mayApply(r *Rule) string {
	return fmt.Sprintf("the rule on %q (%s) may apply to it", r.Command, r.Decision)
}

// floor changes the decision to Ask if the command would run unasked although a
// doubt remains.
func (c CommandVerdict) floor(doubt string) CommandVerdict {
	if doubt != "" && (c.Decision == Allow || c.Decision == Sandbox) {
		c.Decision, c.Reason, c.Origin, c.rule = Ask, doubt, originDefault, nil
	}
	return c
}

// ruleCommand compares the command of a rule with a part of the line.
func (d *decision) ruleCommand(r *Rule, s *shell.Command) shell.Certainty {
	switch {
	case s.Unread && r.isNarrow():
		return shell.No // ask about a part that cannot be read
	case r.Command == "" && s.Passes:
		return shell.No
	case r.Command == "":
		return shell.Yes
	case !r.isNarrow():
		return s.Names(r.Command)
	case s.Begins(r.Command, r.Decision == Sandbox):
		return shell.Yes
	}
	return shell.No
}

// rememberable returns the commands that "always" would cover, or nil if it would
// not cover the whole line.
func rememberable(commands []CommandVerdict) []string {
	var covers []string
	for _, c := range commands {
		if c.Decision != Ask {
			continue
		}
		if c.remember == "" {
			return nil
		}
		if !slices.Contains(covers, c.remember) {
			covers = append(covers, c.remember)
		}
	}
	return covers
}
