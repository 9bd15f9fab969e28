package confine

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/sandbox"
	"github.com/toolreg/toolreg/internal/trust"
)

// maxRead is how many bytes at the end of a result are searched for denied
// accesses.
const maxRead = 64 << 10

// denied describes the accesses that the sandbox denied to a failed program, as far
// as its output and the proxy reveal them, and the settings that would allow them;
// "" if there were none.
func (c *Confiner) denied(k kind, p *sandbox.Profile, call registry.Call, r *registry.Result) string {
	d := &denial{confiner: c, kind: k, profile: p}
	for _, host := range call.Confine.Refused {
		d.host(host)
	}
	text := r.Text()
	for line := range strings.Lines(text[max(0, len(text)-maxRead):]) {
		d.line(line)
	}
	if len(d.notes) == 0 {
		return ""
	}
	return "The sandbox denied: " + strings.Join(d.notes, "; ")
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

// host records a denied connection.
func (d *denial) host(host string) {
	d.add("the connection to "+host, "%s: [%s] would allow it", d.setting("network"), host)
}

// line looks for a denied access in one line of a program's output.
func (d *denial) line(line string) {
	switch {
	case containsAny(line, "Permission denied", "Read-only file system", "Operation not permitted", "EACCES", "EROFS", "EPERM", "Invalid cross-device link",
		"Device or resource busy", "PermissionError"):
		for _, path := range pathsIn(line) {
			d.path(path, true)
		}
	case containsAny(line, "No such file or directory", "ENOENT", "cannot open", "not found"):
		for _, path := range pathsIn(line) {
			d.path(path, false)
		}
	case d.profile.Network.Mode == sandbox.NetworkAll:
	case containsAny(line, "Network is unreachable", "ENETUNREACH", "network is unreachable", "Could not resolve", "Temporary failure in name resolution", "EAI_AGAIN", "ENOTFOUND",
		"Name or service not known", "no such host", "getaddrinfo", "Connection refused", "ECONNREFUSED", "connection refused"):
		what, host := "a connection", hostIn(line)
		if host != "" {
			what = "the connection to " + host
		} else if len(d.seen) > 0 {
			return
		}
		d.add(what, "its network is %s; %s would allow it", networkWords(d.profile.Network), d.setting("network"))
	}
}

func containsAny(s string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(s, part) })
}

// path records an existing file or folder of the machine that the profile does not
// open. written reports that the access may have been a write.
func (d *denial) path(path string, written bool) {
	path = expand.Home(path, d.confiner.home)
	if !filepath.IsAbs(path) {
		path = filepath.Join(d.confiner.opts.Settings.Workspace, path)
	}
	path = filepath.Clean(path)
	if target, err := filepath.EvalSymlinks(path); err == nil && trust.Within(path, d.confiner.opts.Settings.Workspace) && !trust.Within(target, d.confiner.opts.Settings.Workspace) {
		path = target // links in the workspace do not open their targets
	}
	ours := func(list []string) bool {
		return slices.ContainsFunc(list, func(p string) bool { return trust.Within(path, p) })
	}
	private := ours([]string{"/dev", "/proc", "/sys"})
	switch {
	case ours(d.profile.ReadOnly) && written, slices.Contains(d.profile.Fixed, path) && written:
		d.add("changing "+path, "other programs run commands from it")
	case ours(d.profile.Hide) && exists(path):
		d.add("reading "+path, "%s would allow it", d.setting("read"))
	case ours(d.profile.Write) || private:
	case ours(d.profile.Read) || ours(d.profile.Opened) || ours(d.profile.Scratch):
		if written {
			d.add("writing "+path, "%s would allow it", d.setting("write"))
		}
	case exists(path) || written && exists(filepath.Dir(path)):
		field := "read"
		if written {
			field = "write"
		}
		d.add("access to "+path, "%s would allow it", d.setting(field))
	}
}

// pathsIn returns possible paths in a message: quoted words, and words that
// contain a slash or begin with a dot.
func pathsIn(line string) []string {
	var out []string
	for _, quotes := range []string{"''", `""`, "‘’", "``"} {
		for rest := line; ; {
			open, end := quotes[:len(quotes)/2], quotes[len(quotes)/2:]
			_, after, found := strings.Cut(rest, open)
			inner, next, closed := strings.Cut(after, end)
			if !found || !closed {
				break
			}
			out, rest = append(out, inner), next
		}
	}
	for _, word := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r\n:,;()[]'\"`‘’", r) }) {
		if strings.Contains(word, "/") || word[0] == '.' || word[0] == '~' {
			out = append(out, word)
		}
	}
	return out
}

// hostIn returns the host named in a message, or "".
func hostIn(line string) string {
	words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r\n,;()[]'\"`‘’", r) })
	for i, word := range words {
		if _, address, ok := strings.Cut(word, "://"); ok {
			host, _, _ := strings.Cut(address, "/")
			return strings.TrimRight(host, ".:")
		}
		if i > 0 && slices.Contains([]string{"host:", "hostname:", "host", "EAI_AGAIN", "ENOTFOUND", "ENETUNREACH", "lookup", "to", "tcp"}, words[i-1]) &&
			(strings.Contains(word, ".") || strings.HasPrefix(word, "localhost")) {
			return strings.TrimRight(word, ".:")
		}
	}
	return ""
}
