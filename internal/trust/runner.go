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

// runners returns all known runners. The first has no names and applies to every
// folder that a command names.
func runners() []runner {
	return []runner{
		{
			"",
			"package.json index.js index.mjs index.cjs index.json index.node index.ts __main__.py __main__.pyc __init__.py main.go main.py main.ts pyproject.toml",
			"", false,
		},
		{"node nodejs", "package.json .env", "", true},
		{"tsx ts-node", "tsconfig.json package.json", "", false},
		{
			"gulp grunt jake vite vite-node vitest nodemon",
			"package.json vite.config.ts vite.config.js vite.config.mjs vitest.config.ts nodemon.json gulpfile.js gulpfile.mjs gulpfile.cjs gulpfile.ts gulpfile.babel.js .gulp.js .gulp.json Gruntfile.js Gruntfile.cjs Gruntfile.coffee Jakefile jakefile.js",
			"", true,
		},
		{"turbo nx lerna rush", "turbo.json nx.json lerna.json rush.json package.json", "", true},
		{
			"npm pnpm yarn npx pnpx bun bunx corepack",
			"package.json .npmrc bunfig.toml .yarnrc .yarnrc.yml .pnpmfile.cjs pnpm-workspace.yaml tsconfig.json .env",
			"", true,
		},
		{"deno", "deno.json deno.jsonc package.json", "", true},
		{"make gmake bmake", "GNUmakefile makefile Makefile BSDmakefile", "", false},
		{"just", "justfile Justfile .justfile", "", false},
		{"task go-task", "Taskfile.yml Taskfile.yaml taskfile.yml taskfile.yaml Taskfile.dist.yml Taskfile.dist.yaml", "", false},
		{"mise rtx asdf", "mise.toml .mise.toml mise.local.toml .mise.local.toml .tool-versions", "", true},
		{"cargo", "Cargo.toml Cargo.lock build.rs src/main.rs .cargo/config.toml .cargo/config rust-toolchain.toml rust-toolchain", "", false},
		{"go", "go.mod go.sum go.work go.work.sum vendor/modules.txt", ".go .s .c .h", false},
		{"zig", "build.zig build.zig.zon", ".zig", false},
		{"swift", "Package.swift Package.resolved", "", false},
		{
			"bazel bazelisk blaze buck",
			"BUILD BUILD.bazel WORKSPACE WORKSPACE.bazel MODULE.bazel .bazelrc .bazelversion tools/bazel BUCK .buckconfig",
			"", false,
		},
		{"invoke inv fab", "tasks.py fabfile.py invoke.yaml invoke.json pyproject.toml", ".py", false},
		{"vagrant", "Vagrantfile", "", false},
		{"scons waf", "SConstruct SConscript wscript", "", false},
		{
			"sbt mill lein clojure clj",
			"build.sbt project/build.properties project/plugins.sbt build.sc build.mill project.clj deps.edn .sbtopts .jvmopts",
			"", false,
		},
		{"mix iex rebar", "mix.exs mix.lock .iex.exs rebar.config", "", false},
		{"stack cabal dune", "stack.yaml cabal.project package.yaml Setup.hs dune dune-project", "", false},
		{"terraform tofu terragrunt packer", "main.tf terragrunt.hcl .terraformrc", ".tf", false},
		{"ansible ansible-playbook", "ansible.cfg", "", false},
		{"earthly skaffold tilt", "Earthfile skaffold.yaml Tiltfile", "", false},
		{"pre-commit lefthook husky", ".pre-commit-config.yaml lefthook.yml", "", false},
		{"python pypy", "pyvenv.cfg", ".py .pyc .so", false},
		{
			"uv uvx poetry hatch pdm pipx pipenv tox nox pytest rye pixi poe fastmcp",
			"pyproject.toml uv.toml hatch.toml pixi.toml fastmcp.json Pipfile tox.ini noxfile.py pytest.ini conftest.py setup.py setup.cfg .env",
			".py", true,
		},
		{"rake bundle ruby", "Rakefile rakefile Gemfile .bundle/config", "", false},
		{"php composer", "composer.json php.ini", "", true},
		{
			"gradle gradlew mvn mvnw ant",
			"build.gradle build.gradle.kts settings.gradle settings.gradle.kts gradle.properties pom.xml build.xml .mvn/extensions.xml .mvn/jvm.config .mvn/maven.config " +
				"gradlew gradle/wrapper/gradle-wrapper.jar gradle/wrapper/gradle-wrapper.properties mvnw .mvn/wrapper/maven-wrapper.jar .mvn/wrapper/maven-wrapper.properties .mvn/wrapper/MavenWrapperDownloader.java", "", false,
		},
		{"cmake ninja meson", "CMakeLists.txt build.ninja meson.build", "", false},
		{
			"docker podman docker-compose",
			"Dockerfile Containerfile compose.yaml compose.yml docker-compose.yml docker-compose.yaml docker-compose.override.yml .env",
			"", false,
		},
		{"nix nix-shell nix-build devbox devenv", "flake.nix shell.nix default.nix devbox.json devenv.nix", "", false},
		{"direnv dotenv dotenvx env-cmd", ".envrc .env .env.local .env-cmdrc", "", false},
		{"dotnet", "global.json NuGet.config Directory.Build.props Directory.Build.targets", "", false},
	}
}

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
		known := slices.ContainsFunc(runners()[1:],
			func(r runner) bool { return slices.Contains(strings.Fields(r.names), name) })
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
	for _, known := range runners()[1:] {
		if slices.Contains(strings.Fields(known.names), name) {
			r.runners = append(r.runners, known)
		}
	}
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
		for name := range strings.FieldsSeq(runners()[0].entries) {
			if err := r.entryInside(filepath.Join(dir, name)); err != nil {
				return err
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

func (r *reach) entryInside(path string) error {
	if !r.inside(path) {
		return nil
	}
	return r.entry(path)
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
	for _, name := range r.listDir(dir).names {
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
