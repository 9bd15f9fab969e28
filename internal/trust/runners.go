package trust

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
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

const (
	shellScripts = ".sh .bash .zsh .ksh"
	javaScripts  = ".js .cjs .mjs .ts .cts .mts .jsx .tsx"
)

// isScript reports whether a file is code, by its mode or its name, and not installed by a
// package manager.
func isScript(path string, info fs.FileInfo) bool {
	for _, folder := range strings.Split(filepath.ToSlash(path), "/") {
		if folder == "node_modules" || folder == ".venv" || folder == "venv" {
			return false
		}
	}
	extension := filepath.Ext(path)
	return info.Mode()&0o111 != 0 || extension != ".json" && slices.Contains(extensions(), extension) ||
		slices.Contains(strings.Fields(shellScripts+" "+javaScripts), extension)
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

// pieces splits a word where a shell or an option may split it, as in "--x=FILE"
// or "a; b".
func pieces(word string) []string {
	return strings.FieldsFunc(word,
		func(r rune) bool { return strings.ContainsRune(" \t\r\n=;|&<>(){}[]`'\",:$#!+", r) })
}
