package table

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/document"
)

// Sandbox is the prefix of the settings of the sandbox, and of nothing else.
const Sandbox = "sandbox."

// SandboxMode is the setting that the modes of all kinds of programs default to.
const SandboxMode = "sandbox.mode"

// The values of sandbox.mode and sandbox.yolo, and the words of a network setting.
const (
	SandboxOff     = "off"
	SandboxAuto    = "auto"
	SandboxRequire = "require"

	NetworkNone     = "none"
	NetworkLoopback = "loopback"
	NetworkAll      = "all"
)

// SandboxKinds returns the kinds of programs, other than MCP servers, that have
// their own settings below sandbox.
func SandboxKinds() []string {
	return []string{"shell", "plugins", "discovery", "hooks", "processor", "references"}
}

func sandboxRows() []Row {
	modes := []string{SandboxOff, SandboxAuto, SandboxRequire}
	rows := []Row{
		{Name: SandboxMode, Type: Choice, Choices: modes, Default: `"off"`, Looser: looserWord(modes),
			Doc: "Whether programs run in the sandbox. auto: if the system fully supports it; require: always; without full support they do not run."},
		{Name: "sandbox.yolo", Type: Choice, Choices: modes, Default: `"auto"`, Looser: looserWord(modes),
			Doc: "The same for shell commands under --yes and approvalMode yolo; they may use the network unless sandbox.shell.network is set."},
	}
	programs := map[string]string{
		"shell":   "commands of run_shell_command",
		"plugins": "plugins and their factories", "discovery": "the discovery and call commands",
		"hooks": "hooks", "processor": "fetch.processor, search.command and sampling.command",
		"references": "cmd: references, which do not follow sandbox.mode",
	}
	for _, kind := range SandboxKinds() {
		for _, field := range sandboxFields(programs[kind], kind != "references") {
			field.Name = Sandbox + kind + "." + field.Name
			rows = append(rows, field)
		}
	}
	return append(rows, Row{
		Name: "sandbox.servers", Type: Named, Names: Servers, Match: Exact, Merge: ByName, Strict: true,
		Fields: sandboxFields("the stdio server NAME", true),
		Doc:    "The same for stdio servers, by name.",
	})
}

func sandboxFields(programs string, inherits bool) []Row {
	modes := []string{SandboxOff, SandboxAuto, SandboxRequire}
	mode := Row{
		Name:    "mode",
		Type:    Choice,
		Choices: modes,
		Doc:     "Whether to sandbox " + programs + "; by default sandbox.mode.",
		Looser:  looserMode(modes),
	}
	if inherits {
		mode.Inherits = SandboxMode
	} else {
		mode.Default, mode.Doc = `"off"`, "Whether to sandbox "+programs+"."
	}
	return []Row{
		mode,
		{Name: "read", Type: Strings, Doc: "Files and folders that they may read in addition to those listed by toolreg help sandbox.", Looser: looserList},
		{Name: "write", Type: Strings, Doc: "Files and folders that they may read and write in addition to the workspace.", Looser: looserList},
		{Name: "network", Type: Network, Choices: []string{NetworkNone, NetworkLoopback, NetworkAll}, Default: `"loopback"`, Looser: looserNetwork,
			Doc: "loopback: a private loopback interface; none; all; or a list of hosts, as host (ports 80 and 443) or host:port."},
	}
}

// ParseNetwork reads a network: a word, or a list of hosts as host or host:port.
func ParseNetwork(n *jsonx.Value) (word string, hosts []string, err error) {
	switch n.Kind {
	case jsonx.String:
		if words := []string{NetworkNone, NetworkLoopback, NetworkAll}; !slices.Contains(words, n.Text()) {
			return "", nil, fmt.Errorf("unknown value %q; use %s, or a list of hosts",
				n.Text(), strings.Join(words, ", "))
		}
		return n.Text(), nil, nil
	case jsonx.Array:
		for _, item := range n.Items {
			host, err := parseHost(item)
			if err != nil {
				return "", nil, err
			}
			hosts = append(hosts, host)
		}
		return "", hosts, nil
	}
	return "", nil, errors.New("expected none, loopback, all or a list of hosts, got " + document.TypeName(n))
}

// parseHost returns a host in lower case, with the port if it has one. Names may begin with "*.", and
// "*" is any port.
func parseHost(n *jsonx.Value) (string, error) {
	text := strings.ToLower(literalText(n))
	host, port := splitHost(text)
	if n.Kind != jsonx.String || !isHost(strings.TrimPrefix(host, "*.")) || port != "*" && !isPort(port) {
		return "", fmt.Errorf(`%q is not a host; write it as "example.com" or "example.com:8443"`, literalText(n))
	}
	if text == host && strings.Contains(host, ":") {
		return "[" + host + "]", nil
	}
	return text, nil
}

// checkHosts checks a list of hosts that are compared as they are.
func checkHosts(n *jsonx.Value) (problem, hint string) {
	for _, item := range n.Items {
		host, port := splitHost(strings.ToLower(item.Text()))
		letter := func(r rune) rune { // names may be international
			if r >= utf8.RuneSelf {
				return 'x'
			}
			return r
		}
		if !isHost(strings.Map(letter, host)) || port != "*" && !isPort(port) || strings.HasSuffix(item.Text(), ":*") {
			return fmt.Sprintf("%q is not a host", document.Printable(item.Text())),
				`write it as "localhost" or "localhost:3000"`
		}
	}
	return "", ""
}

// splitHost returns a host without brackets, and its port, or "*" if it has none.
func splitHost(text string) (host, port string) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"), "*"
	}
	return host, port
}

// isHost reports whether text is an address, or can be the name of a host.
func isHost(text string) bool {
	return net.ParseIP(text) != nil ||
		strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == "" && strings.Trim(text, ".") != ""
}

func isPort(text string) bool {
	number, err := strconv.ParseUint(text, 10, 16)
	return err == nil && number > 0
}

// The functions below are values of Row.Looser. A project may only tighten such a
// setting: its value must not allow more than that of the earlier scopes.

// looserWord compares words, which are listed from the loosest to the strictest.
func looserWord(words []string) func(now, was *jsonx.Value) bool {
	return func(now, was *jsonx.Value) bool {
		return slices.Index(words, now.Text()) < slices.Index(words, was.Text())
	}
}

// looserMode is looserWord for the mode of one kind of program. There off is always
// looser, even if sandbox.mode is off too, because it also disables the sandbox that
// --yes would use.
func looserMode(words []string) func(now, was *jsonx.Value) bool {
	less := looserWord(words)
	return func(now, was *jsonx.Value) bool { return now.Text() == SandboxOff || less(now, was) }
}

func looserList(now, was *jsonx.Value) bool {
	return slices.ContainsFunc(now.Strings(), func(s string) bool { return !slices.Contains(was.Strings(), s) })
}

func looserNetwork(now, was *jsonx.Value) bool {
	rank := func(n *jsonx.Value) int {
		word, _, _ := ParseNetwork(n) // already checked
		return slices.Index([]string{NetworkNone, NetworkLoopback, "", NetworkAll}, word)
	}
	_, hosts, _ := ParseNetwork(now)
	_, before, _ := ParseNetwork(was)
	return rank(now) > rank(was) ||
		rank(now) == rank(was) && slices.ContainsFunc(hosts, func(h string) bool { return !slices.Contains(before, h) })
}
