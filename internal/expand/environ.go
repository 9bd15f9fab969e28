package expand

import (
	"runtime"
	"slices"
	"strings"
)

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
