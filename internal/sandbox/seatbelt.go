package sandbox

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// seatbelt returns a profile for macOS's sandbox-exec. If several rules match a path, the
// last one applies, so folders come before their content. There are no mounts: access to
// hidden paths is denied, and caches of Scratch are read-only. macOS has no private
// loopback, so the program has no loopback at all. tmp is the program's own folder, and
// port is that of the proxy.
//
// The tests check the text, but it has never been tried on a Mac.
func seatbelt(p Profile, tmp string, port int) string {
	var b strings.Builder
	b.WriteString(seatbeltStart)
	const deny, read, write = "(deny file-read* file-write* TREE)\n",
		"(allow file-read* process-exec* file-map-executable TREE)\n",
		"(allow file-read* file-write* process-exec* file-map-executable TREE)\n"
	rules, changes := map[string]string{}, resolver{}.resolveAll(p.Write)
	for _, list := range []struct {
		paths []string
		rule  string
	}{
		{p.Read, read},
		{p.Scratch, read},
		{p.Hide, deny},
		{p.Opened, read},
		{p.Fixed, "(allow file-read* file-write* TREE)\n(deny file-write-unlink ITSELF)\n"},
		{p.Write, write},
		{p.ReadOnly, "(allow file-read* TREE)\n(deny file-write* TREE)\n"},
		{[]string{tmp}, write},
	} {
		for _, path := range list.paths {
			r, err := resolve(path)
			if err != nil {
				r.path = path // a rule for a missing path applies when it is created
			}
			if _, ok := r.linkIn(changes); ok && (list.rule == read || list.rule == write) {
				continue
			}
			rules[r.path] = strings.NewReplacer("TREE", "(subpath "+quote(r.path)+")",
				"ITSELF", "(literal "+quote(r.path)+")").Replace(list.rule)
		}
	}
	order := func(a, b string) int { return strings.Compare(a+"/", b+"/") }
	for _, path := range slices.SortedFunc(maps.Keys(rules), order) {
		b.WriteString(rules[path])
	}
	switch p.Network.Mode {
	case NetworkHosts:
		fmt.Fprintf(&b, "(allow network-outbound (remote ip \"localhost:%d\"))\n", port)
	case NetworkAll:
		b.WriteString("(allow network*)\n(allow system-socket)\n" +
			"(allow mach-lookup (global-name \"com.apple.dnssd.service\") (global-name \"com.apple.SystemConfiguration.configd\") (global-name \"com.apple.trustd.agent\"))\n" +
			"(deny network-outbound (remote unix-socket))\n(allow network-outbound (literal \"/private/var/run/mDNSResponder\"))\n")
	}
	return b.String()
}

// seatbeltStart allows the operations that every program needs.
const seatbeltStart = `(version 1)
(deny default)
(allow process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow pseudo-tty)
(allow ipc-posix-sem)
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo") (global-name "com.apple.system.logger"))
(allow file-read-metadata)
(allow file-read* (literal "/"))
(allow file-read* file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (literal "/dev/ptmx") (regex #"^/dev/ttys[0-9]+$"))
(allow file-read* (literal "/dev/random") (literal "/dev/urandom") (subpath "/dev/fd"))
(allow file-ioctl (literal "/dev/tty") (literal "/dev/ptmx") (regex #"^/dev/ttys[0-9]+$"))
`

// quote writes a string of a Seatbelt profile.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}
