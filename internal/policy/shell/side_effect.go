package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// redirected adds the effect of a redirection to one target, as far as the target
// is known.
func (a *analysis) redirected(text string, op syntax.RedirOperator, target word) {
	switch op {
	case syntax.RdrIn:
		if !target.known || strings.HasPrefix(target.text, "/dev/tcp/") || strings.HasPrefix(target.text, "/dev/udp/") {
			a.doubt(text, "it reads from a place that is not known before it runs")
		}
		return
	case syntax.DplIn, syntax.DplOut:
		fd := strings.TrimSuffix(target.text, "-") // "-" closes a descriptor, "3-" moves one
		if target.known && target.text != "" && strings.Trim(fd, "0123456789") == "" {
			return
		}
		// Bash expands the file name twice here, even if it is quoted, and other shells
		// begin a new word after >&-.
		if !target.known || strings.ContainsAny(target.text, "$`<>(") || strings.HasPrefix(target.text, "-") {
			a.unread(text, "%s", text)
			return
		}
	}
	if target.known && (target.text == "/dev/null" || target.text == "/dev/stdout" || target.text == "/dev/stderr") {
		return
	}
	if a.isDisk(target) {
		a.addCommand(Command{Text: text, Catastrophic: "it writes to the disk " + target.text})
	}
	a.addWrite(target.text)
	c := Command{Text: text, Doubt: "it writes to a file by redirection",
		Unplaced: a.isUnplaced(target.text), Redirects: true}
	if !target.isFile() || c.Unplaced {
		c.Unclear = "the file that it writes to is not known before the line runs"
	}
	c.Fallbacks = a.appendNames(nil, target.text)
	a.addCommand(c)
}

// addFiles adds the files that a command changes.
func (a *analysis) addFiles(c *Command, program string, r runs) {
	for _, name := range r.writes {
		a.addWrite(name)
		c.Fallbacks = a.appendNames(c.Fallbacks, name)
	}
	for _, name := range r.trees {
		if name != "" {
			a.trees = append(a.trees, a.placed(name))
		}
		c.Fallbacks = a.appendNames(c.Fallbacks, name)
	}
	for _, f := range r.inside {
		if f.Folder != "" {
			a.inside = append(a.inside, Inside{a.placed(f.Folder), f.Name})
		}
		c.Fallbacks = a.appendNames(c.Fallbacks, path.Join(f.Folder, f.Name))
	}
	c.Unplaced = slices.ContainsFunc(r.writes, a.isUnplaced) || slices.ContainsFunc(r.trees, a.isUnplaced)
	if r.unclear || c.Unplaced {
		c.Unclear = "what " + program + " writes is not known before it runs"
	}
}

// isUnplaced reports whether a file is relative to an unknown folder that a cd has changed to.
func (a *analysis) isUnplaced(name string) bool {
	ofOther := len(a.dir) > 1 && a.dir[0] == '~' && a.dir[1] != '/' // as in ~user
	return a.location != a.begin && !path.IsAbs(name) && (a.dir == "" || a.glob || a.tooMany || ofOther)
}

// changes adds the files that well-known programs change, although no arguments of these programs
// are known to be harmless.
func (r *runs) changes(name string, args []word) {
	files, t := operands(args), tableOf(name)
	switch name {
	case "find":
		if t.given("delete", args) {
			r.deletes(args)
		}
		return
	case "patch":
		for _, w := range files[:min(1, len(files))] { // others are named in what it reads
			r.ruined(w)
		}
		return
	case "truncate", "shred", "rm", "rmdir", "unlink":
	case "sed", "perl", "ruby":
		if !t.given("in-place", args) {
			return
		}
		if len(files) > 1 && t.has("script") && !t.given("expression", args) && !t.given("file", args) {
			files = files[1:] // behind the script
		}
	case "install":
		for _, x := range t.readArgs(args, false).options {
			if t.optionName(x.name) == "target-directory" {
				files = append(files, x.value)
			}
		}
	case "dd":
		files = slices.DeleteFunc(files,
			func(w word) bool { return (w.known || w.plainStart) && !strings.HasPrefix(w.text, "of=") })
		if len(files) == 0 {
			return
		}
		for i := range files {
			files[i].text = strings.TrimPrefix(files[i].text, "of=")
		}
	default:
		return
	}
	recursive := name == "rm" && t.given("recursive", args)
	for _, w := range files {
		if w.text = strings.TrimSuffix(w.text, "/"); strings.Contains(w.text, "{}") {
			w.known = false // find and xargs replace it
		}
		r.written(w)
		if recursive {
			r.trees = append(r.trees, w.text)
		}
	}
	r.unclear = r.unclear || len(files) == 0 // they come from xargs, or an option has them
}

// deletes adds what find deletes: files with the given names, or else everything in its folders.
func (r *runs) deletes(args []word) {
	folders, _ := findFolders(args)
	var names []word
	for i, w := range args[:len(args)-1] {
		if w.text == "-name" {
			names = append(names, args[i+1])
		}
	}
	r.unclear = r.unclear || len(folders)*len(names) > maxInner
	for _, folder := range folders {
		if len(names) == 0 {
			r.ruined(folder)
		}
		for _, name := range names {
			if r.unclear {
				return
			}
			name.text, name.known = path.Join(folder.text, name.text), name.known && folder.known
			r.ruined(name)
		}
	}
}

func (a *analysis) arithmetic(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.UnaryArithm:
		if n.Op == syntax.Inc || n.Op == syntax.Dec {
			a.doubt(a.textOf(n), "arithmetic sets a variable")
		}
	case *syntax.BinaryArithm:
		if op := n.Op.String(); strings.HasSuffix(op, "=") && op != "==" && op != "!=" && op != "<=" && op != ">=" {
			a.doubt(a.textOf(n), "arithmetic sets a variable")
		}
	}
}

// param adds parameter expansions that set variables or evaluate their values.
func (a *analysis) param(p *syntax.ParamExp) {
	a.evaluate = a.evaluate || p.Excl || p.Index != nil || p.Slice != nil
	if p.Excl {
		a.doubt(a.textOf(p), "an indirect expansion is not known before the line runs")
	}
	if p.Exp == nil {
		return
	}
	switch p.Exp.Op {
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		a.doubt(a.textOf(p), "the expansion sets a variable")
	case syntax.OtherParamOps:
		a.evaluate = true
		a.addCommand(Command{Text: a.textOf(p), Doubt: "the expansion may run what a variable holds",
			dynamic: a.word(p.Exp.Word).text == "P"})
	}
}

// test adds conditions that evaluate their operands as arithmetic, where a
// subscript can contain a command.
func (a *analysis) test(n syntax.Node) {
	var operands []syntax.TestExpr
	switch n := n.(type) {
	case *syntax.BinaryTest:
		switch n.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			operands = []syntax.TestExpr{n.X, n.Y}
		}
	case *syntax.UnaryTest:
		switch n.Op {
		case syntax.TsVarSet, syntax.TsRefVar:
			operands = []syntax.TestExpr{n.X}
		}
	}
	if operands == nil {
		return
	}
	a.evaluate = true
	c := Command{Text: a.textOf(n), Doubt: "the condition evaluates its operands"}
	for _, x := range operands {
		if w, ok := x.(*syntax.Word); ok {
			c.dynamic = c.dynamic || evaluated(a.word(w))
		}
	}
	a.addCommand(c)
}
