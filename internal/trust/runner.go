package trust

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
)

// runner is a program that reads files in its folder to find out what to run.
type runner struct {
	names   string // names of the program, without version
	entries string // files that it reads, in its folder or a folder above
	code    string // extensions of other files that it may load
	local   bool   // prefers programs that are installed in the project
}

// runnersOf returns the runners with a name; there may be several.
func runnersOf(name string) []runner {
	return slices.DeleteFunc([]runner{
		{names: "node nodejs", entries: "package.json .env", local: true},
		{names: "tsx ts-node", entries: "tsconfig.json package.json"},
		{names: "gulp grunt jake vite vite-node vitest nodemon", local: true,
			entries: "package.json vite.config.ts vite.config.js vite.config.mjs vitest.config.ts nodemon.json gulpfile.js gulpfile.mjs gulpfile.cjs gulpfile.ts gulpfile.babel.js .gulp.js .gulp.json Gruntfile.js Gruntfile.cjs Gruntfile.coffee Jakefile jakefile.js"},
		{names: "turbo nx lerna rush", entries: "turbo.json nx.json lerna.json rush.json package.json", local: true},
		{names: "npm pnpm yarn npx pnpx bun bunx corepack", local: true,
			entries: "package.json .npmrc bunfig.toml .yarnrc .yarnrc.yml .pnpmfile.cjs pnpm-workspace.yaml tsconfig.json .env"},
		{names: "deno", entries: "deno.json deno.jsonc package.json", local: true},
		{names: "make gmake bmake", entries: "GNUmakefile makefile Makefile BSDmakefile"},
		{names: "just", entries: "justfile Justfile .justfile"},
		{names: "task go-task",
			entries: "Taskfile.yml Taskfile.yaml taskfile.yml taskfile.yaml Taskfile.dist.yml Taskfile.dist.yaml"},
		{names: "mise rtx asdf", local: true,
			entries: "mise.toml .mise.toml mise.local.toml .mise.local.toml .tool-versions"},
		{names: "cargo",
			entries: "Cargo.toml Cargo.lock build.rs src/main.rs .cargo/config.toml .cargo/config rust-toolchain.toml rust-toolchain"},
		{names: "go", entries: "go.mod go.sum go.work go.work.sum vendor/modules.txt", code: ".go .s .c .h"},
		{names: "zig", entries: "build.zig build.zig.zon", code: ".zig"},
		{names: "swift", entries: "Package.swift Package.resolved"},
		{names: "bazel bazelisk blaze buck",
			entries: "BUILD BUILD.bazel WORKSPACE WORKSPACE.bazel MODULE.bazel .bazelrc .bazelversion tools/bazel BUCK .buckconfig"},
		{names: "invoke inv fab", entries: "tasks.py fabfile.py invoke.yaml invoke.json pyproject.toml", code: ".py"},
		{names: "vagrant", entries: "Vagrantfile"},
		{names: "scons waf", entries: "SConstruct SConscript wscript"},
		{names: "sbt mill lein clojure clj",
			entries: "build.sbt project/build.properties project/plugins.sbt build.sc build.mill project.clj deps.edn .sbtopts .jvmopts"},
		{names: "mix iex rebar", entries: "mix.exs mix.lock .iex.exs rebar.config"},
		{names: "stack cabal dune", entries: "stack.yaml cabal.project package.yaml Setup.hs dune dune-project"},
		{names: "terraform tofu terragrunt packer", entries: "main.tf terragrunt.hcl .terraformrc", code: ".tf"},
		{names: "ansible ansible-playbook", entries: "ansible.cfg"},
		{names: "earthly skaffold tilt", entries: "Earthfile skaffold.yaml Tiltfile"},
		{names: "pre-commit lefthook husky", entries: ".pre-commit-config.yaml lefthook.yml"},
		{names: "python pypy", entries: "pyvenv.cfg", code: ".py .pyc .so"},
		{names: "uv uvx poetry hatch pdm pipx pipenv tox nox pytest rye pixi poe fastmcp", code: ".py", local: true,
			entries: "pyproject.toml uv.toml hatch.toml pixi.toml fastmcp.json Pipfile tox.ini noxfile.py pytest.ini conftest.py setup.py setup.cfg .env"},
		{names: "rake bundle ruby", entries: "Rakefile rakefile Gemfile .bundle/config"},
		{names: "php composer", entries: "composer.json php.ini", local: true},
		{names: "gradle gradlew mvn mvnw ant",
			entries: "build.gradle build.gradle.kts settings.gradle settings.gradle.kts gradle.properties pom.xml build.xml .mvn/extensions.xml .mvn/jvm.config .mvn/maven.config gradlew gradle/wrapper/gradle-wrapper.jar gradle/wrapper/gradle-wrapper.properties mvnw .mvn/wrapper/maven-wrapper.jar .mvn/wrapper/maven-wrapper.properties .mvn/wrapper/MavenWrapperDownloader.java"},
		{names: "cmake ninja meson", entries: "CMakeLists.txt build.ninja meson.build"},
		{names: "docker podman docker-compose",
			entries: "Dockerfile Containerfile compose.yaml compose.yml docker-compose.yml docker-compose.yaml docker-compose.override.yml .env"},
		{names: "nix nix-shell nix-build devbox devenv",
			entries: "flake.nix shell.nix default.nix devbox.json devenv.nix"},
		{names: "direnv dotenv dotenvx env-cmd", entries: ".envrc .env .env.local .env-cmdrc"},
		{names: "dotnet", entries: "global.json NuGet.config Directory.Build.props Directory.Build.targets"},
	}, func(r runner) bool { return !slices.Contains(strings.Fields(r.names), name) })
}

// folderEntries are the files that a program may run in any folder that a command names.
const folderEntries = "package.json index.js index.mjs index.cjs index.json index.node index.ts __main__.py __main__.pyc __init__.py main.go main.py main.ts pyproject.toml"

// extensions returns the extensions that programs append to names.
func extensions() []string {
	return []string{".js", ".cjs", ".mjs", ".json", ".node", ".ts", ".py", ".pyc",
		".rb", ".pl", ".pm", ".lua", ".php", ".sh", ".exe", ".cmd", ".bat", ".ps1"}
}

// runnerName returns the name of the program that a word may refer to, without version.
func runnerName(word string) string {
	return strings.TrimRight(strings.TrimSuffix(filepath.Base(word), ".exe"), "0123456789.")
}

// Runners returns the names of the programs in a command line that find files to run
// themselves, in their working directory and beyond, such as npx, go and python. [Cover]
// follows the rules by which they begin, but not all that these files load.
func Runners(argv []string) []string {
	var words, out []string
	for _, word := range argv {
		words = append(append(words, word), pieces(word)...)
	}
	option := func(prefixes ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool {
			return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(word, prefix) })
		})
	}
	for _, word := range words {
		name := runnerName(word)
		known := len(runnersOf(name)) > 0
		switch name { // these run the file that they are given, except with these options
		case "node", "nodejs":
			known = option("--run")
		case "python", "pypy":
			known = option("-m", "-c")
		}
		if known && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// addRunner adds the runner that a word may refer to.
func (r *reach) addRunner(word string) {
	name := runnerName(word)
	if strings.HasPrefix(name, "node") && !slices.Contains(r.words, "--run") {
		return // it runs the file that it is given
	}
	r.runners = append(r.runners, runnersOf(name)...)
}

// entries covers the files in a folder that determine what a runner runs there.
func (r *reach) entries(dir string) error {
	if dir == r.root && dir != r.program.Dir && !slices.Contains(r.words, dir) {
		return nil // applies only if a word names the root
	}
	var names []string
	for _, known := range r.runners {
		names = append(names, strings.Fields(known.entries)...)
		if known.code != "" {
			if err := r.code(dir, known.code); err != nil {
				return err
			}
		}
	}
	if dir != r.program.Dir && dir != r.root || slices.Contains(r.words, ".") { // a folder that the command names
		for name := range strings.FieldsSeq(folderEntries) {
			if path := filepath.Join(dir, name); r.inside(path) {
				if err := r.entry(path); err != nil {
					return err
				}
			}
		}
	}
	for _, at := range r.upTo(dir) {
		for _, name := range names {
			if err := r.entry(filepath.Join(at, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// upTo returns a folder and its parents up to the project root; nil if the folder
// is outside the project.
func (r *reach) upTo(dir string) []string {
	var out []string
	for at := dir; r.inside(at); at = filepath.Dir(at) {
		if out = append(out, at); r.real(at) == r.root {
			return out
		}
	}
	return out
}

// entry covers a file that a runner reads and, for a package.json, the files that
// it names.
func (r *reach) entry(path string) error {
	if err := r.addFile(path, r.started); err != nil || filepath.Base(path) != "package.json" {
		return err
	}
	for _, word := range packageWords(path) {
		for _, name := range append(pieces(word), word) {
			if r.started && !strings.Contains(filepath.ToSlash(path), "/node_modules/") {
				if err := r.installed(filepath.Dir(path), name); err != nil {
					return err
				}
			}
			if err := r.word(filepath.Join(filepath.Dir(path), name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// packageWords returns the strings in a package.json that may name files to run.
func packageWords(path string) []string {
	f, err := Read(path, maxBytes)
	var all map[string]any
	if err != nil || json.Unmarshal(f.Data, &all) != nil { // node cannot read it either
		return nil
	}
	var out []string
	var take func(any)
	take = func(v any) {
		switch v := v.(type) {
		case string:
			out = append(out, v)
		case map[string]any:
			for _, member := range v {
				take(member)
			}
		case []any:
			for _, item := range v {
				take(item)
			}
		}
	}
	for _, name := range []string{"main", "module", "bin", "exports", "imports", "scripts"} {
		take(all[name])
	}
	return out
}

// siblings covers the files next to a script that an interpreter would load before
// those of its own library.
func (r *reach) siblings(path string) error {
	for _, known := range r.runners {
		if slices.Contains(strings.Fields(known.code), filepath.Ext(path)) {
			if err := r.code(filepath.Dir(path), known.code); err != nil {
				return err
			}
		}
	}
	return nil
}

// code covers the files in a folder with one of the extensions, and the Python
// packages in it.
func (r *reach) code(dir, extensions string) error {
	if r.scripts {
		return nil
	}
	for _, name := range r.listDir(dir) {
		path := filepath.Join(dir, name)
		if !slices.Contains(strings.Fields(extensions), filepath.Ext(name)) {
			path = filepath.Join(path, "__init__.py")
		}
		if err := r.add(path); err != nil {
			return err
		}
	}
	return nil
}

// codeFolders covers the contents of all folders that environment variables name
// as locations of code.
func (r *reach) codeFolders() error {
	for _, name := range expand.CodeFolders() {
		if !slices.ContainsFunc(r.program.Env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") }) {
			continue
		}
		for _, dir := range r.folderList(name) {
			if info, err := os.Stat(dir); err != nil || !info.IsDir() || !r.inside(dir) {
				continue
			}
			if err := r.tree(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// local covers programs installed in the project, which some runners prefer to
// others of the same name.
func (r *reach) local() error {
	if !slices.ContainsFunc(r.runners, func(known runner) bool { return known.local }) {
		return nil
	}
	for _, dir := range r.folders {
		for _, at := range r.upTo(dir) {
			for _, word := range r.words {
				if err := r.installed(at, word); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// installed covers the package or program with this name that is installed in a
// folder.
func (r *reach) installed(dir, word string) error {
	if i := strings.LastIndex(word, "@"); i > 0 {
		word = word[:i] // remove the version
	}
	if !filepath.IsLocal(word) {
		return nil
	}
	name := filepath.Base(word) // of @scope/name
	for _, path := range []string{
		"node_modules/.bin/" + name, ".venv/bin/" + name, "venv/bin/" + name, "vendor/bin/" + name,
	} {
		if err := r.addFile(filepath.Join(dir, path), r.started); err != nil {
			return err
		}
	}
	return r.entry(filepath.Join(dir, "node_modules", word, "package.json"))
}
