// Package expand replaces environment variables in text: $VAR, ${VAR} and
// ${VAR:-default}, and ~ at the beginning of a path.
//
// It is the only implementation of this syntax. Package settings expands values
// when they are used, package consent finds the variables that a value would
// read, and other packages resolve paths below the home folder.
package expand

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// maxNested limits the nesting of defaults: ${A:-${B:-x}}.
const maxNested = 16

// UnsetError reports a variable that is not set.
type UnsetError struct {
	Name string
}

// Error names the variable and says what to do.
func (e *UnsetError) Error() string {
	return fmt.Sprintf("$%s is not set; set it, or write ${%s:-default}", e.Name, e.Name)
}

// Lookup returns the value of a variable and whether it is set. A nil Lookup
// finds none.
type Lookup func(name string) (value string, ok bool)

// Value returns the value of a variable, or an [*UnsetError].
func (l Lookup) Value(name string) (string, error) {
	if l != nil {
		if value, ok := l(name); ok {
			return value, nil
		}
	}
	return "", &UnsetError{Name: name}
}

// Text replaces $VAR, ${VAR} and ${VAR:-default}, whose default is also used if
// VAR is empty. $$ is a dollar sign, even in a default, and so is a $ that is not
// followed by a name or a brace; ${} is empty. Values of variables are not
// expanded again. A variable that is not set and has no default is an
// [*UnsetError]; other errors are syntax errors. If there is an error, the text is "".
func Text(s string, lookup Lookup) (string, error) {
	if !strings.Contains(s, "$") {
		return s, nil
	}
	return expandText(s, lookup, 0)
}

func expandText(s string, lookup Lookup, depth int) (string, error) {
	if depth > maxNested {
		return "", fmt.Errorf("defaults nest deeper than %d levels", maxNested)
	}
	var out strings.Builder
	for s != "" {
		plain, rest, found := strings.Cut(s, "$")
		out.WriteString(plain)
		if !found {
			break
		}
		value, after, err := expandDollar(rest, lookup, depth)
		if err != nil {
			return "", err
		}
		out.WriteString(value)
		s = after
	}
	return out.String(), nil
}

// expandDollar expands what follows a dollar sign and returns what comes after it.
func expandDollar(s string, lookup Lookup, depth int) (value, after string, err error) {
	switch {
	case strings.HasPrefix(s, "$"):
		return "$", s[1:], nil
	case strings.HasPrefix(s, "{"):
		return braced(s[1:], lookup, depth)
	}
	name := s[:nameLength(s)]
	if name == "" {
		return "$", s, nil
	}
	value, err = lookup.Value(name)
	return value, s[len(name):], err
}

func braced(s string, lookup Lookup, depth int) (value, after string, err error) {
	end := closingBrace(s)
	if end < 0 {
		return "", "", errors.New("${ without a closing }; write $$ for a dollar sign")
	}
	if end == 0 { // ${} is empty: it marks text that looks like a reference as plain text
		return "", s[1:], nil
	}
	name, def, hasDefault := strings.Cut(s[:end], ":-")
	if !isBracedName(name) {
		return "", "", fmt.Errorf("${%s}: not the name of a variable; only ${NAME} and ${NAME:-default} are supported",
			printable(name))
	}
	after = s[end+1:]
	value, err = lookup.Value(name)
	if hasDefault && (err != nil || value == "") {
		value, err = expandText(def, lookup, depth+1)
	}
	return value, after, err
}

// closingBrace returns the index of the brace that closes an open one before s.
func closingBrace(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], "$$"):
			i++
		case strings.HasPrefix(s[i:], "${"):
			depth++
			i++
		case s[i] == '}' && depth == 0:
			return i
		case s[i] == '}':
			depth--
		}
	}
	return -1
}

// nameLength returns the length of the variable name at the beginning of s.
func nameLength(s string) int {
	for i := 0; i < len(s); i++ {
		c := s[i]
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return i
		}
	}
	return len(s)
}

// IsName reports whether s is a variable name: letters, digits and _.
func IsName(s string) bool { return s != "" && nameLength(s) == len(s) }

// isBracedName accepts names that are valid in braces: variable names, and
// names on Windows such as ProgramFiles(x86).
func isBracedName(s string) bool { return IsName(strings.TrimSuffix(s, "(x86)")) }

// IsVariable reports whether s is exactly one variable without a default, $NAME
// or ${NAME}. It accepts names on Windows in either form.
func IsVariable(s string) bool {
	if name, ok := strings.CutPrefix(s, "${"); ok {
		name, ok = strings.CutSuffix(name, "}")
		return ok && isBracedName(name)
	}
	name, ok := strings.CutPrefix(s, "$")
	return ok && isBracedName(name)
}

// Names returns the variables that expanding s could read, whether or not they
// are set. It expands nothing, so that an invalid default cannot hide the text
// after it.
func Names(s string) []string {
	var out []string
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] != '$':
			continue
		case strings.HasPrefix(s[i:], "$$"):
			i++
			continue
		}
		rest := strings.TrimPrefix(s[i+1:], "{")
		name := rest[:nameLength(rest)]
		if name == "" {
			continue
		}
		if strings.HasPrefix(rest[len(name):], "(x86)") {
			out = append(out, name+"(x86)")
		}
		out = append(out, name)
	}
	return out
}

// Escape returns text that expands to s.
func Escape(s string) string { return strings.ReplaceAll(s, "$", "$$") }

// Word is Text for a path, or a word of a command line: ~ that is written at its beginning is the
// home folder, as in a shell. What a variable contains stays as it is.
func Word(s string, lookup Lookup) (string, error) {
	out, err := Text(s, lookup)
	if err == nil && strings.HasPrefix(s, "~") {
		home, _ := lookup.Value(homeVariable()) // without one the word stays as it is
		out = Home(out, home)
	}
	return out, err
}

// Home replaces ~ at the beginning of a path with home. Other paths, and those of
// other users (~name), are unchanged.
func Home(path, home string) string {
	if path == "~" && home != "" {
		return home
	}
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok && runtime.GOOS == "windows" {
		rest, ok = strings.CutPrefix(path, `~\`)
	}
	if ok && home != "" {
		return filepath.Join(home, rest)
	}
	return path
}

// From returns a path as an absolute one, relative to a folder unless it is absolute already.
func From(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// printable shortens arbitrary text for a message.
func printable(s string) string {
	if len(s) > 40 {
		s = s[:40] + "…"
	}
	return strings.Trim(fmt.Sprintf("%q", s), `"`)
}

// JSON applies expand to every string value of a JSON document.
func JSON(raw json.RawMessage, expand func(string) (string, error)) (json.RawMessage, error) {
	v, err := jsonx.Decode(raw)
	if err == nil {
		v, err = eachValue(v, expand)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

func eachValue(v any, expand func(string) (string, error)) (any, error) {
	var err error
	switch v := v.(type) {
	case string:
		return expand(v)
	case []any:
		for i := range v {
			if v[i], err = eachValue(v[i], expand); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k := range v {
			if v[k], err = eachValue(v[k], expand); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// Environ maps the [Key] of each variable's name to its value. A nil Environ is
// empty.
type Environ map[string]string

// NewEnviron returns the variables in a list of "K=V" entries. For duplicate names
// the last entry wins.
func NewEnviron(entries []string) Environ {
	e := make(Environ, len(entries))
	for _, entry := range entries {
		if name, value, ok := Cut(entry); ok {
			e[Key(name)] = value
		}
	}
	return e
}

// Lookup returns the value of a variable and whether it is set.
func (e Environ) Lookup(name string) (string, bool) {
	value, ok := e[Key(name)]
	return value, ok
}

// Get returns the value of a variable; "" if it is not set.
func (e Environ) Get(name string) string { return e[Key(name)] }

// Home returns the user's home folder; "" if the environment has none.
func (e Environ) Home() string { return e.Get(homeVariable()) }

func homeVariable() string {
	if runtime.GOOS == "windows" {
		return "USERPROFILE"
	}
	return "HOME"
}

// Find returns the value of one variable in a list of "K=V" entries and whether
// it is set. For duplicate names the last entry wins.
func Find(entries []string, name string) (string, bool) {
	for _, entry := range slices.Backward(entries) {
		if n, value, ok := Cut(entry); ok && Key(n) == Key(name) {
			return value, true
		}
	}
	return "", false
}

// Cut splits an entry "K=V". On Windows names may begin with "=".
func Cut(entry string) (name, value string, ok bool) {
	if entry == "" {
		return "", "", false
	}
	i := strings.Index(entry[1:], "=")
	if i < 0 {
		return "", "", false
	}
	return entry[:i+1], entry[i+2:], true
}

// Key folds the case of a variable's name if the system ignores it.
func Key(name string) string {
	if runtime.GOOS == "windows" {
		return strings.ToUpper(name)
	}
	return name
}

// CodeFolders returns the names of variables whose values are lists of folders with code that programs
// load.
func CodeFolders() []string {
	return []string{"PYTHONPATH", "PYTHONHOME", "NODE_PATH", "PERL5LIB",
		"PERLLIB", "RUBYLIB", "GEM_PATH", "GEM_HOME", "LUA_PATH", "LUA_CPATH",
		"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "CLASSPATH", "ZDOTDIR",
		"GIT_EXEC_PATH", "GIT_TEMPLATE_DIR", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"}
}

// Steers reports whether a variable chooses which code a program loads or runs, where it finds its
// configuration, or whom it trusts and talks to. Somebody who is trusted with the name of a program
// is not thereby trusted with these. Case does not count, because some runners ignore it.
func Steers(name string) bool {
	name = strings.ToUpper(name)
	return slices.Contains(CodeFolders(), name) || slices.Contains(strings.Fields(steering), name) ||
		slices.ContainsFunc(strings.Fields(steeringFamilies),
			func(family string) bool { return strings.HasPrefix(name, family) })
}

// steering are names of single variables, and steeringFamilies what the names of several begin with.
const (
	steering = `PATH PATHEXT HOME USERPROFILE HOMEDRIVE HOMEPATH APPDATA LOCALAPPDATA PROGRAMDATA
		SHELL COMSPEC ENV BASH_ENV SHELLOPTS BASHOPTS PROMPT_COMMAND PS4 IFS CDPATH
		EDITOR VISUAL PAGER MANPAGER BROWSER LESSOPEN LESSCLOSE RSYNC_RSH TAR_OPTIONS MAKEFLAGS
		GIT_SSH GIT_SSH_COMMAND GIT_ASKPASS GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_PAGER GIT_EXTERNAL_DIFF GIT_PROXY_COMMAND GIT_DIR GIT_WORK_TREE GIT_ALLOW_PROTOCOL
		SSH_ASKPASS SSH_AUTH_SOCK SUDO_ASKPASS
		NODE_OPTIONS NODE_EXTRA_CA_CERTS NODE_TLS_REJECT_UNAUTHORIZED NODE_REPL_EXTERNAL_MODULE NODE_USE_ENV_PROXY NODE_V8_COVERAGE ELECTRON_RUN_AS_NODE
		PYTHONSTARTUP PYTHONUSERBASE PYTHONEXECUTABLE PYTHONPLATLIBDIR PYTHONWARNINGS PYTHONBREAKPOINT PYTHONINSPECT PYTHONPYCACHEPREFIX PYTHONCASEOK VIRTUAL_ENV
		PERL5OPT PERL5DB PERL5SHELL RUBYOPT RUBYSHELL BUNDLE_GEMFILE LUA_INIT PHPRC PHP_INI_SCAN_DIR
		JAVA_HOME JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS GOFLAGS GOPROXY GONOSUMDB GOINSECURE
		GCONV_PATH LOCPATH GLIBC_TUNABLES HOSTALIASES RES_OPTIONS RESOLV_HOST_CONF
		HTTP_PROXY HTTPS_PROXY ALL_PROXY FTP_PROXY NO_PROXY WS_PROXY WSS_PROXY GLOBAL_AGENT_HTTP_PROXY
		SSL_CERT_FILE SSL_CERT_DIR SSLKEYLOGFILE REQUESTS_CA_BUNDLE CURL_CA_BUNDLE AWS_CA_BUNDLE`
	steeringFamilies = `LD_ DYLD_ XDG_ BASH_FUNC_ GIT_CONFIG GIT_SSL_ LUA_INIT_ OPENSSL_ NPM_CONFIG_ YARN_ PNPM_ COREPACK_ DENO_ BUN_ UV_ PIP_ CONDA_ CARGO_ RUSTUP_
		DOCKER_ BUILDKIT_ COMPOSE_ CONTAINER_ CONTAINERS_ PODMAN_ NUGET_ DOTNET_ CORECLR_ COMPLUS_ MSBUILD TOOLREG_`
)
