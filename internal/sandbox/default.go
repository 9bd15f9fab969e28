package sandbox

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Place describes where a program runs and what belongs to it.
type Place struct {
	Workspace []string // files and folders that it may write: the project and folders that the user opened
	Own       []string // files and folders of its own, which it may read: a plugin's, a hook's, a server's
	Script    string   // its script or program; the folders of it and of its link target are readable; "" means none
	Hide      []string // files and folders to be hidden in addition
	Home      string   // "" means none
	Environ   []string // its environment: PATH, GOPATH, CARGO_HOME and so on
}

// Default returns the profile of a program without any settings. The program can read the
// system's programs and libraries, the folders on PATH and the installations that these
// belong to, its own folders and git's settings, read the caches of go, npm, pip and
// cargo without changing them, and write to the workspace. Credentials and the files of
// browsers and of toolreg are hidden. The network is a private loopback.
//
// The caller adds the paths of its settings, guarded names and the network.
func Default(p Place) Profile {
	h := newHome(p)
	profile := Profile{Write: p.Workspace, Scratch: h.caches(), Hide: h.hidden}
	profile.Read = systemPaths()
	for _, folder := range slices.Concat(p.Own, h.foldersOf(p.Script)) {
		profile.Read = append(profile.Read, installed(folder))
	}
	profile.Read = slices.Concat(profile.Read, h.paths(".gitconfig", ".rustup"), // settings of git and go
		joinAll(h.or("XDG_CONFIG_HOME", ".config"), "git", "go"))
	profile.Read = append(profile.Read, h.installations()...)
	return profile
}

// HoldsHome reports whether a folder is or contains the home folder, or whether that cannot
// be determined. Most of what should be hidden is in such a folder.
func HoldsHome(folder, home string) bool {
	if home == "" {
		return false
	}
	f, err := resolve(folder)
	if err != nil {
		return true
	}
	h, err := resolve(home)
	return isWithin(home, folder) || err == nil && isWithin(h.path, f.path)
}

// home finds files of one user.
type home struct {
	dir     string // "" means none
	environ map[string]string
	links   resolver
	hidden  []string
	secret  []string // hidden, without symbolic links
	changes []string // what the program can change, without symbolic links
}

func newHome(p Place) *home {
	h := &home{environ: map[string]string{}, links: resolver{}}
	for _, entry := range p.Environ {
		name, value, _ := strings.Cut(entry, "=")
		h.environ[name] = value
	}
	if filepath.IsAbs(p.Home) {
		h.dir = filepath.Clean(p.Home)
	}
	h.hidden = append(h.secrets(), p.Hide...)
	h.secret, h.changes = h.links.resolveAll(h.hidden), h.links.resolveAll(p.Workspace)
	return h
}

// target follows the symbolic links of a path and reports whether the result may be opened:
// a link that the program can change could lead anywhere, and no link opens hidden paths.
func (h *home) target(path string) (string, bool) {
	r, err := h.links.resolve(path)
	if err != nil {
		return "", false
	}
	_, changeable := r.linkIn(h.changes)
	return r.path, !changeable && !isWithinAny(r.path, h.secret)
}

// foldersOf returns the folder of a script and the folder of the file it links
// to.
func (h *home) foldersOf(script string) []string {
	if script == "" {
		return nil
	}
	out := []string{filepath.Dir(script)}
	if target, ok := h.target(script); ok {
		out = append(out, filepath.Dir(target))
	}
	return slices.DeleteFunc(out, func(dir string) bool { return dir == "/etc" || HoldsHome(dir, h.dir) })
}

// paths returns paths below the home folder, or none if there is no home
// folder.
func (h *home) paths(names ...string) []string {
	if h.dir == "" {
		return nil
	}
	return joinAll([]string{h.dir}, names...)
}

// or returns the folder that a variable names, or else a path below the home folder.
func (h *home) or(variable, name string) []string {
	if folder := h.named(variable); folder != nil {
		return folder
	}
	return h.paths(name)
}

// named returns the folder that a variable names, if the path is absolute and neither is nor
// contains the home folder. The folder need not exist.
func (h *home) named(variable string) []string {
	if folder := filepath.Clean(h.environ[variable]); filepath.IsAbs(folder) && !h.isAtOrAbove(folder) {
		return []string{folder}
	}
	return nil
}

// isAtOrAbove reports whether a path is or contains the home folder.
func (h *home) isAtOrAbove(path string) bool {
	return path == "/" || h.dir != "" && isWithin(h.dir, path)
}

func joinAll(folders []string, names ...string) []string {
	var out []string
	for _, folder := range folders {
		for _, name := range names {
			out = append(out, filepath.Join(folder, name))
		}
	}
	return out
}

// caches returns the caches that programs use and trust.
func (h *home) caches() []string {
	xdg := h.or("XDG_CACHE_HOME", ".cache")
	out := append(joinAll(xdg, "go-build", "pip"), h.paths(".npm")...)
	out = append(out, joinAll(h.or("GOPATH", "go"), "pkg")...)
	out = append(out, h.or("CARGO_HOME", ".cargo")...)
	for _, variable := range []string{"GOCACHE", "GOMODCACHE", "npm_config_cache", "PIP_CACHE_DIR"} {
		out = append(out, h.named(variable)...)
	}
	return out
}

// secrets returns the paths that no program may read unless a setting names them.
func (h *home) secrets() []string {
	out := h.paths(".ssh", ".aws", ".gnupg", ".npmrc", ".yarnrc.yml",
		".netrc", ".docker", ".kube", ".azure", ".oci", ".git-credentials",
		".pypirc", ".gem/credentials", ".m2/settings.xml",
		".gradle/gradle.properties", ".password-store", ".terraform.d",
		".vault-token", ".mozilla", ".thunderbird", ".var/app",
		"snap", ".local/share/keyrings", ".local/share/kwalletd",
		".local/share/password-store", ".local/share/uv/credentials", ".dotnet/corefx",
		".rye/credentials", ".fly/config.yml", ".pulumi/credentials.json",
		".bunfig.toml", ".databrickscfg", ".my.cnf", ".pgpass", ".composer/auth.json",
		".ivy2/.credentials", ".sbt/.credentials", ".nuget/NuGet", ".vercel", ".railway",
		".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json",
		".s3cfg", ".boto", ".kaggle", ".huggingface/token", ".terraformrc",
		"Library/Keychains", "Library/Cookies", "Library/Safari", "Library/Application Support")
	out = append(out, joinAll(h.or("CARGO_HOME", ".cargo"), "credentials", "credentials.toml")...)
	out = append(out, joinAll(h.or("XDG_CONFIG_HOME", ".config"), "toolreg",
		"git/credentials", "gh", "glab-cli", "gcloud", "pip",
		"google-chrome", "chromium", "BraveSoftware", "microsoft-edge", "vivaldi",
		"opera", "op", "sops", "doctl", "hub", "rclone", "hcloud", "openstack")...)
	out = append(out, joinAll(h.or("XDG_CACHE_HOME", ".cache"), "toolreg", "mozilla", "google-chrome", "chromium")...)
	out = append(out, joinAll(h.or("XDG_STATE_HOME", ".local/state"), "toolreg")...)
	out = append(out, joinAll(h.or("XDG_DATA_HOME", ".local/share"), "toolreg/secrets", "keyrings")...)
	return append(out, systemSecrets()...)
}

// systemSecrets returns the files of the system with password hashes, keys and tokens.
func systemSecrets() []string {
	return []string{"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-",
		"/etc/master.passwd", "/etc/spwd.db", "/private/etc/master.passwd",
		"/etc/security/opasswd", "/etc/sudoers", "/etc/sudoers.d", "/etc/krb5.keytab",
		"/etc/ssl/private", "/etc/pki/tls/private", "/etc/letsencrypt",
		"/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_ecdsa_key",
		"/etc/ssh/ssh_host_ed25519_key", "/etc/ssh/ssh_host_dsa_key",
		"/etc/wireguard", "/etc/ipsec.secrets", "/etc/ppp/chap-secrets",
		"/etc/ppp/pap-secrets", "/etc/NetworkManager/system-connections",
		"/etc/kubernetes", "/var/lib/kubelet", "/run/secrets", "/var/run/secrets", "/run/credentials"}
}

// installers returns folders below the home folder that contain only installed programs. If
// one of their subfolders is on PATH, all of it is readable.
func installers() []string {
	return []string{".cargo", ".rustup", ".nvm", ".pyenv", ".rbenv",
		".asdf", ".volta", ".sdkman", ".bun", ".deno", ".fnm", ".jenv",
		".nodenv", ".goenv", ".phpenv", ".rye", ".juliaup", ".opam",
		".ghcup", ".dotnet", ".local/share/mise", ".local/share/fnm",
		".local/share/pnpm", ".local/share/uv", ".local/share/pipx"}
}

// maxEntries limits how many entries of a folder on PATH are examined.
const maxEntries = 500

// installations returns the folders on PATH outside the system's, the installations that
// they belong to, and the targets of the links in them.
func (h *home) installations() []string {
	var out []string
	known := systemPaths()
	add := func(paths ...string) {
		for _, path := range paths {
			if !isWithinAny(path, known) {
				out, known = append(out, path), append(known, path)
			}
		}
	}
	for _, dir := range filepath.SplitList(h.environ["PATH"]) {
		if dir = filepath.Clean(dir); !filepath.IsAbs(dir) || h.isAtOrAbove(dir) {
			continue
		}
		if !isWithinAny(dir, known) {
			add(h.installationOf(dir)...)
		} else if !isLocal(dir) {
			continue // the system's own folders have thousands of entries
		}
		for _, target := range h.linksIn(dir) {
			if !isWithinAny(target, known) && !h.isAtOrAbove(target) {
				add(h.installationOfTarget(target)...)
			}
		}
	}
	return out
}

// isLocal reports whether the links in a system folder are made by users and not by
// the system.
func isLocal(dir string) bool {
	return dir == "/usr/local/bin" || !isWithinAny(dir, []string{"/usr", "/bin", "/sbin"})
}

// installationOf returns the installation to which a folder on PATH belongs.
func (h *home) installationOf(dir string) []string {
	for _, installer := range h.paths(installers()...) {
		if isWithin(dir, installer) {
			return []string{installer}
		}
	}
	parent := filepath.Dir(dir)
	switch name := filepath.Base(dir); {
	case h.dir != "" && parent == filepath.Join(h.dir, ".local"):
		// Its share and state contain much besides programs.
		return append(joinAll([]string{parent}, programFolders()...),
			joinAll([]string{parent}, "pipx", "share/pipx", "share/uv", "share/pnpm")...)
	case h.dir != "" && filepath.Dir(parent) == h.dir && filepath.Base(parent)[0] == '.' &&
		(name == "bin" || name == "sbin") && !h.isHub(parent):
		// Such as ~/.fly: its tokens are beside its programs.
		return joinAll([]string{parent}, programFolders()...)
	case (name == "bin" || name == "sbin" || name == ".bin" || name == "shims") && !h.isHub(parent):
		return []string{parent}
	}
	return []string{dir}
}

// programFolders returns the folders of an installation that do not contain settings.
func programFolders() []string {
	return []string{"bin", "sbin", "lib", "lib64", "libexec", "include", "opt"}
}

// installationOfTarget returns the installation to which the target of a link on PATH belongs.
func (h *home) installationOfTarget(target string) []string {
	if dir := filepath.Dir(target); filepath.Base(dir) == "bin" {
		return h.installationOf(dir)
	}
	return []string{target}
}

// installed returns the installation that a program's own folder is part of, such as all
// packages of Node.js or the virtual environment of Python.
func installed(folder string) string {
	const packages = "/node_modules"
	if at := strings.Index(folder+"/", packages+"/"); at >= 0 {
		return folder[:at+len(packages)]
	}
	if parent := filepath.Dir(folder); filepath.Base(folder) == "bin" {
		if _, err := os.Stat(filepath.Join(parent, "pyvenv.cfg")); err == nil {
			return parent
		}
	}
	return folder
}

// isHub reports whether a folder contains much besides one installation, or is hidden.
func (h *home) isHub(dir string) bool {
	if h.isAtOrAbove(dir) || filepath.Dir(dir) == "/" || isWithinAny(dir, h.hidden) {
		return true
	}
	hubs := h.paths(".local", ".local/share", ".config", ".cache", "Library")
	return slices.Contains(append(hubs, h.or("GOPATH", "go")...), dir)
}

// linksIn returns the targets of the symbolic links in a folder that may be opened.
func (h *home) linksIn(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, _ := f.ReadDir(maxEntries)
	var out []string
	for _, e := range entries {
		if e.Type() != os.ModeSymlink {
			continue
		}
		if target, ok := h.target(filepath.Join(dir, e.Name())); ok {
			out = append(out, target)
		}
	}
	return out
}

// systemPaths returns the paths that system programs need and that do not contain
// personal data. For the system's settings these are single files, because password
// hashes and keys are in the same folders.
func systemPaths() []string {
	if runtime.GOOS == "darwin" {
		return []string{"/System", "/Library", "/usr", "/bin",
			"/sbin", "/opt", "/Applications/Xcode.app", "/private/etc",
			"/private/var/db/timezone", "/private/var/select", "/dev"}
	}
	return []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
		"/opt", "/nix/store", "/gnu/store", "/home/linuxbrew",
		"/sys/devices/system/cpu", "/sys/devices/system/node",

		"/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts",
		"/etc/host.conf", "/etc/hostname", "/etc/resolv.conf",
		"/etc/gai.conf", "/etc/networks", "/etc/protocols", "/etc/services", "/etc/rpc", "/etc/ethertypes",
		"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/alternatives",
		"/etc/localtime", "/etc/timezone", "/etc/locale.conf",
		"/etc/locale.alias", "/etc/locale.gen", "/etc/default/locale",
		"/etc/os-release", "/etc/lsb-release", "/etc/debian_version", "/etc/redhat-release", "/etc/fedora-release",
		"/etc/alpine-release", "/etc/arch-release", "/etc/SuSE-release", "/etc/system-release",
		"/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf",
		"/etc/ca-certificates", "/etc/ca-certificates.conf",
		"/etc/pki/ca-trust", "/etc/pki/tls/certs", "/etc/pki/tls/cert.pem",
		"/etc/pki/tls/openssl.cnf", "/etc/crypto-policies",
		"/etc/profile", "/etc/profile.d", "/etc/bash.bashrc", "/etc/bashrc", "/etc/bash_completion.d", "/etc/inputrc",
		"/etc/environment", "/etc/shells", "/etc/zsh", "/etc/zshrc",
		"/etc/zshenv", "/etc/fish", "/etc/skel", "/etc/login.defs",
		"/etc/gitconfig", "/etc/gitattributes", "/etc/terminfo", "/etc/mime.types", "/etc/magic", "/etc/mailcap",
		"/etc/papersize", "/etc/xdg", "/etc/fonts", "/etc/X11/fonts", "/etc/ImageMagick-6", "/etc/ImageMagick-7",
		"/etc/python3", "/etc/perl", "/etc/java", "/etc/maven", "/etc/gradle", "/etc/nodejs", "/etc/php", "/etc/ghc",
		"/etc/java-11-openjdk", "/etc/java-17-openjdk", "/etc/java-21-openjdk", "/etc/java-25-openjdk",
		"/etc/emacs", "/etc/vim", "/etc/nanorc", "/etc/manpath.config", "/etc/groff", "/etc/lynx", "/etc/wgetrc",
		"/etc/dpkg", "/etc/gdb", "/etc/chromium", "/etc/chromium.d", "/etc/pip.conf", "/etc/npmrc",
	}
}
