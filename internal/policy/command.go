package policy

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/git"
	"github.com/toolreg/toolreg/internal/policy/shell"
	"github.com/toolreg/toolreg/internal/registry"
)

// factsOf returns the facts of a call.
func (p *Policy) factsOf(ctx context.Context, t *registry.Tool, call registry.Call) (*facts, error) {
	f := p.factsOfTool(ctx, t, false)
	f.call = &call
	if t.Subject != nil {
		var err error
		if f.subject, err = t.Subject(call); err != nil {
			return nil, fmt.Errorf("cannot determine what the call would access: %w", err)
		}
	}
	if f.subject.Command != "" {
		f.readLine()
	}
	return f, nil
}

// readLine analyzes the command line and adds the files that it writes to the
// paths of the call.
func (f *facts) readLine() {
	dir := ""
	if f.policy.Workspace != "" {
		dir = absolutePath(f.policy.Workspace, f.subject.Directory)
	}
	line := shell.ReadIn(f.policy.Shell, f.subject.Command, dir, func(program, dir string) bool {
		return f.policy.Workspace != "" && isFolder(dir) && f.isOfProject(program, dir)
	})
	writes := line.Writes
	for _, in := range line.Inside {
		if isFolder(absolutePath(dir, f.atHome(in.Folder))) {
			writes = append(writes, path.Join(in.Folder, in.Name))
		}
	}
	for _, w := range writes {
		w = f.written(w)
		f.subject.Paths = append(f.subject.Paths, w)
		name := absolutePath(f.policy.Workspace, w)
		if real := realPath(name); f.policy.Workspace != "" && real != name {
			f.subject.Paths = append(f.subject.Paths, real)
		}
	}
	for _, name := range line.Trees {
		f.trees = append(f.trees, f.written(name))
	}
	for i := range line.Commands {
		f.unplaced = f.unplaced || line.Commands[i].Unplaced
		for _, name := range line.Commands[i].Fallbacks {
			f.fallbacks = append(f.fallbacks, f.written(name))
		}
	}
	// If no part of the line needs a rule, the rules about all commands decide about the line
	// itself.
	alone := !slices.ContainsFunc(line.Commands, func(c shell.Command) bool { return !c.Passes })
	for i := range line.Commands {
		part := &line.Commands[i]
		part.Passes = part.Passes && !alone
		f.unread = f.unread || part.Unread
		f.person = f.person || part.Catastrophic != "" && !part.Refused && f.policy.AskCatastrophic
		m := f.aboutPart(part)
		f.parts = append(f.parts, m)
		f.unsure = f.unsure || m.doubt != "" && m.banned == nil && !part.Refused && part.Catastrophic == ""
	}
}

// atHome replaces ~ at the start of a name by the home folder.
func (f *facts) atHome(name string) string {
	return filepath.ToSlash(expand.Home(name, f.policy.ShellHome))
}

// written resolves the name of a file that the line writes: the result is absolute or relative to
// the workspace.
func (f *facts) written(name string) string {
	if name = f.atHome(name); path.IsAbs(name) || filepath.IsAbs(name) {
		return name
	}
	return path.Join(f.subject.Directory, name)
}

func isFolder(name string) bool {
	info, err := os.Stat(filepath.FromSlash(name))
	return err == nil && info.IsDir()
}

func (f *facts) aboutCall() *matter {
	return &matter{facts: f,
		rule: decidingRule(f.rules, func(r *Rule) bool { return f.isPlain(r) && f.unmet(r) == "" })}
}

func (f *facts) aboutPart(part *shell.Command) *matter {
	m := &matter{facts: f, part: part, elsewhere: f.foreignFolderReason(part), doubt: f.unclearPath(part)}
	for i := range f.policy.Banned {
		b := &f.policy.Banned[i]
		switch part.Names(b.Value) {
		case shell.Yes:
			m.banned = b
			return m
		case shell.Maybe:
			m.doubt = fmt.Sprintf("%s, so setting shell.banned cannot be checked", part.Doubt)
		}
	}
	for i := range f.policy.Core {
		limit := &f.policy.Core[i]
		if !part.Passes && !slices.ContainsFunc(limit.Commands, func(r Rule) bool { return part.Begins(r.Command, true) }) {
			m.outside = limit
		}
	}
	m.rule = decidingRule(f.rules, func(r *Rule) bool {
		certain := f.ruleCommand(r, part)
		if certain == shell.No || f.unmet(r) != "" {
			return false
		}
		if certain == shell.Maybe {
			m.doubt = fmt.Sprintf("the rule on %q (%s) may apply to it", r.Command, r.Decision)
		}
		return certain == shell.Yes
	})
	return m
}

// unclearPath returns the reason why a part may write a file that a rule denies; "" if there is
// none.
func (f *facts) unclearPath(s *shell.Command) string {
	if s.Unclear == "" && len(s.Fallbacks) == 0 {
		return ""
	}
	for _, r := range f.rules {
		if r.Decision != Deny || r.Path == "" || f.ruleCommand(r, s) == shell.No || !f.ruleNames(r) || !f.ruleWhen(r) {
			continue
		}
		if s.Unclear != "" {
			return fmt.Sprintf("%s, and a rule denies %q", s.Unclear, r.Path)
		}
		for _, name := range s.Fallbacks {
			name = f.written(name)
			if w := f.where(); w.match(r, w.name(name)) || len(f.trees) > 0 && w.mayHold(name, r) {
				return fmt.Sprintf("it writes %q if a cd before it fails or does not run, and a rule denies %q", name, r.Path)
			}
		}
	}
	return ""
}

// ruleCommand compares the command of a rule with a part of the line.
func (f *facts) ruleCommand(r *Rule, s *shell.Command) shell.Certainty {
	switch {
	case s.Unread && r.isNarrow():
		return shell.No // ask about a part that cannot be read
	case r.Command == "" && (s.Passes || r.Decision == Allow && r.Path != "" && !s.Redirects):
		return shell.No // a path does not say what else a command does
	case r.Command == "":
		return shell.Yes
	case !r.isNarrow():
		return s.Names(r.Command)
	case s.Begins(r.Command, r.Decision == Sandbox):
		return shell.Yes
	}
	return shell.No
}

// changedFiles returns the files that a part starts with and that a sandboxed program may have
// changed. Only a person can accept them.
func (f *facts) changedFiles(part *shell.Command) []string {
	changed, argv := f.means.Changed, part.Starts()
	if changed == nil || len(argv) == 0 {
		return nil
	}
	return changed(argv, f.folder(part))
}

// changedPrograms is [Confinement.Changed].
func (f *facts) changedPrograms() (changed []string) {
	for _, m := range f.parts {
		changed = append(changed, f.changedFiles(m.part)...)
	}
	return changed
}

// folder returns the absolute folder in which a part runs, as far as it is known.
func (f *facts) folder(part *shell.Command) string {
	if dir, _ := part.Folder(); path.IsAbs(dir) {
		return dir
	}
	return absolutePath(f.policy.Workspace, f.subject.Directory)
}

// foreignFolderReason returns the reason why a rule about the words of a part is not enough to
// allow it: the part runs what it finds in its folder, which is not part of the project. Otherwise
// it returns "".
func (f *facts) foreignFolderReason(part *shell.Command) string {
	dir, moved := part.Folder()
	known := !moved || path.IsAbs(dir)
	if f.policy.Workspace == "" || !part.RunsFolder() || known && f.isOfProject(part.Root(), f.folder(part)) {
		return ""
	}
	return fmt.Sprintf("what %s runs depends on its folder, which is not known to be one of the project in the workspace; a rule with `when` can name the folder",
		part.Root())
}

// isOfProject reports whether a folder belongs to the project, so that a rule which allows a
// program allows it there too. The folder must be the workspace or a folder in it that is not
// behind a link, is neither hidden nor one for code of others, has no repository of its own, and
// has files that git tracks: such a rule does not extend to what was only unpacked or generated.
// For git itself, being in the repository is enough.
func (f *facts) isOfProject(program, dir string) bool {
	root := absolutePath(f.policy.Workspace, "")
	within, inside := strings.CutPrefix(dir, strings.TrimSuffix(root, "/")+"/")
	if dir == root {
		return true
	}
	real := path.Join(realPath(root), within)
	if isOther := len(git.Top(dir)) > len(root); !inside || isOther || realPath(dir) != real {
		return false
	}
	if program == "git" {
		return true
	}
	for name := range strings.SplitSeq(within, "/") {
		if strings.HasPrefix(name, ".") || slices.Contains([]string{"node_modules", "bower_components",
			"vendor", "third_party", "venv", "env", "site-packages", "tmp", "downloads"}, strings.ToLower(name)) {
			return false
		}
	}
	return f.tracked.get(within, func() bool {
		top := git.Top(filepath.FromSlash(real))
		rel, err := filepath.Rel(top, filepath.FromSlash(real))
		return err == nil && git.Tracks(top, filepath.ToSlash(rel))
	})
}
