package confine

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/sandbox"
	"github.com/toolreg/toolreg/internal/trust"
)

// maxRead is how many bytes at the end of a result are searched for denied
// accesses.
const maxRead = 64 << 10

// denied describes the accesses that the sandbox denied to a failed program, as far
// as its output and the proxy reveal them, and the settings that would allow them.
func (c *Confiner) denied(k kind, confined *process.Confinement, r *registry.Result) []string {
	d := &denial{confiner: c, kind: k, profile: confined.Profile}
	for _, host := range confined.Refused {
		d.add("the connection to "+host, "%s: [%s] would allow it", d.setting("network"), host)
	}
	text := r.Text()
	for line := range strings.Lines(text[max(0, len(text)-maxRead):]) {
		d.line(line)
	}
	return d.notes
}

// maxDenied limits how many denied accesses a note names.
const maxDenied = 5

// denial collects denied accesses.
type denial struct {
	confiner *Confiner
	kind     kind
	profile  *sandbox.Profile
	notes    []string
	seen     []string
}

func (d *denial) add(what, format string, args ...any) {
	if len(d.seen) == maxDenied || slices.Contains(d.seen, what) {
		return
	}
	d.seen = append(d.seen, what)
	d.notes = append(d.notes, what+" ("+fmt.Sprintf(format, args...)+")")
}

func (d *denial) setting(field string) string { return "sandbox." + d.kind.name + "." + field }

// line looks for a denied access in one line of a program's output.
func (d *denial) line(line string) {
	switch {
	case containsAny(line, "Read-only file system", "read-only file system",
		"EROFS", "Errno 30", "Invalid cross-device link", "Device or resource busy"):
		for _, path := range pathsIn(line) {
			d.path(path, true)
		}
	case containsAny(line, "Permission denied", "permission denied", "Operation not permitted",
		"operation not permitted", "EACCES", "EPERM", "PermissionError"):
		if what := neverAllowed(line); what != "" {
			d.add(what, "no setting allows it")
			return
		}
		written := containsAny(line, "create", "touch", "remove", "unlink",
			"rename", "move", "mkdir", "write", "writing", "copy", "link")
		for _, path := range pathsIn(line) {
			d.path(path, written)
		}
	case containsAny(line, "No such file or directory", "ENOENT", "cannot open", "not found"):
		onlyReads := containsAny(line, "cat: ", "head: ", "tail: ", "grep: ", "wc: ", "cannot access", "cannot stat",
			"cannot open", "can't open", "can't read")
		for _, path := range pathsIn(line) {
			if !onlyReads || exists(d.absolute(path)) { // a missing file was not denied
				d.path(path, false)
			}
		}
	case containsAny(line, "could not lock config file", "could not write config file"): // of git
		for _, path := range pathsIn(line) {
			d.path(path, true)
		}
	case d.profile.Network.Mode == sandbox.NetworkAll:
	case containsAny(line, "Network is unreachable", "ENETUNREACH", "network is unreachable",
		"Could not resolve", "Temporary failure in name resolution", "EAI_AGAIN", "ENOTFOUND",
		"Name or service not known", "no such host", "getaddrinfo", "Connection refused", "ECONNREFUSED",
		"connection refused", "ould not connect", "ouldn't connect", "ailed to connect", "annot connect to"):
		what, host := "a connection", hostIn(line)
		if host != "" {
			what = "the connection to " + host
		} else if len(d.seen) > 0 {
			return
		}
		if path := socketIn(line); path != "" {
			d.path(path, false)
			return
		}
		d.add(what, "its network is %s; %s would allow it", networkWords(d.profile.Network), d.setting("network"))
	}
}

// neverAllowed returns what was refused according to a message, if the sandbox always refuses it;
// "" otherwise.
func neverAllowed(line string) string {
	line = strings.ToLower(line)
	for _, kind := range [][]string{
		{"tracing another process", "ptrace", "strace"},
		{"creating namespaces", "unshare", "namespace", "bwrap", "clone_new"},
		{"mounting a file system", "mount:", "umount:"},
		{"performance events", "perf_event"},
	} {
		if containsAny(line, kind[1:]...) {
			return kind[0]
		}
	}
	return ""
}

func containsAny(s string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(s, part) })
}

// path records an existing file or folder of the machine that the profile does not open, unless the
// user could not access it either. written says that the access was a write.
func (d *denial) path(path string, written bool) {
	path = d.absolute(path)
	if target, err := filepath.EvalSymlinks(path); err == nil &&
		trust.Within(path, d.confiner.opts.Settings.Workspace) &&
		!trust.Within(target, d.confiner.opts.Settings.Workspace) {
		path = target // links in the workspace do not open their targets
	}
	ours := func(list []string) bool {
		return slices.ContainsFunc(list, func(p string) bool { return trust.Within(path, p) })
	}
	private := ours([]string{"/dev", "/proc", "/sys"})
	brokered := slices.ContainsFunc(d.profile.Brokered,
		func(b sandbox.Brokered) bool { return trust.Within(path, b.Path) })
	readable := ours(d.profile.Read) || ours(d.profile.Opened) || ours(d.profile.Scratch)
	folder := filepath.Dir(path)
	switch {
	case d.confiner.isClosed(path) && exists(path):
		d.add("access to "+path, "no setting allows it")
	case written && brokered && filepath.Base(path) == "config":
		d.add("changing "+path,
			"git runs commands from it; no setting allows more than what branches follow, so a person must run the command outside of the sandbox")
	case written && (ours(d.profile.ReadOnly) || brokered || slices.Contains(d.profile.Fixed, path)):
		d.add("changing "+path, "other programs run commands from it; no setting allows it")
	case ours(d.profile.Hide) && exists(path) && !written:
		d.add("reading "+path, "%s would allow it", d.setting("read"))
	case ours(d.profile.Write) || private:
	case written || !exists(path) && exists(folder) && !d.isVisible(folder):
		// It is a new file in a folder that the program does not see.
		if canWrite(path) {
			d.add("writing "+path, "%s would allow it", d.setting("write"))
		}
	case !readable && exists(path) && canRead(path):
		d.add("reading "+path, "%s would allow it", d.setting("read"))
	}
}

// absolute returns a path that a program names.
func (d *denial) absolute(path string) string {
	return filepath.Clean(expand.From(d.confiner.opts.Settings.Workspace, expand.Home(path, d.confiner.home)))
}

// isVisible reports whether the program sees a folder, perhaps only as the way to another one.
func (d *denial) isVisible(dir string) bool {
	p := d.profile
	return slices.ContainsFunc(slices.Concat(p.Read, p.Opened, p.Scratch, p.Write, p.Hide),
		func(path string) bool { return trust.Within(path, dir) || trust.Within(dir, path) })
}

// pathsIn returns possible paths in a message: quoted words, and words that
// contain a slash or begin with a dot.
func pathsIn(line string) []string {
	var out []string
	for _, quotes := range []string{"''", `""`, "‘’", "``"} {
		for rest := line; ; {
			open, end := quotes[:len(quotes)/2], quotes[len(quotes)/2:]
			_, after, _ := strings.Cut(rest, open)
			inner, next, closed := strings.Cut(after, end)
			if !closed {
				break
			}
			out, rest = append(out, inner), next
		}
	}
	for _, word := range strings.FieldsFunc(line,
		func(r rune) bool { return strings.ContainsRune(" \t\r\n:,;()[]'\"`‘’", r) }) {
		if strings.Contains(word, "/") || word[0] == '.' {
			out = append(out, word)
		}
	}
	return out
}

// socketIn returns the path of a Unix domain socket named in a message, or "".
func socketIn(line string) string {
	_, path, _ := strings.Cut(line, "unix://")
	if words := strings.FieldsFunc(path,
		func(r rune) bool { return strings.ContainsRune(" \t\r\n,;()[]'\"`", r) }); len(words) > 0 {
		return strings.TrimRight(words[0], ".:")
	}
	return ""
}

// hostIn returns the host named in a message, or "".
func hostIn(line string) string {
	words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r\n,;()[]'\"`‘’", r) })
	for i, word := range words {
		if _, address, ok := strings.Cut(word, "://"); ok {
			host, _, _ := strings.Cut(address, "/")
			return strings.TrimRight(host, ".:")
		}
		if i > 0 && slices.Contains([]string{"host:", "hostname:", "host", "EAI_AGAIN",
			"ENOTFOUND", "ENETUNREACH", "lookup", "to", "tcp"}, words[i-1]) &&
			(strings.Contains(word, ".") || strings.HasPrefix(word, "localhost")) {
			return strings.TrimRight(word, ".:")
		}
	}
	return ""
}
