package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxCover is the maximum length in bytes of the text that Cover returns, because
// a person has to read it.
const maxCover = 120

// Cover returns the words that an "always" answer for this command covers: every
// command that begins with them is then allowed. They are the program and its
// subcommand, or the whole command if options precede the subcommand. Cover
// returns "" if "always" cannot be offered, because it would allow arbitrary
// commands or is too long to read at a glance.
func (c *Command) Cover() string {
	if root := c.coverable(); root == "" || isShell(programName(root)) {
		return ""
	}
	var texts []string
	for _, w := range c.words {
		if !w.known {
			break
		}
		texts = append(texts, w.text)
	}
	need := leading(texts)
	switch {
	case need < 0 && len(texts) == len(c.words):
		need = len(texts)
	case need < 0 || need > len(texts):
		return ""
	}
	cover := make([]string, need)
	for i, text := range texts[:need] {
		quoted, err := syntax.Quote(text, syntax.LangBash)
		if err != nil {
			return ""
		}
		cover[i] = quoted
	}
	if out := strings.Join(cover, " "); len(out) <= maxCover {
		return out
	}
	return ""
}

// Covered reports whether an "always" answer for these words covers the command.
func (c *Command) Covered(cover string) bool {
	want, ok := coverWords(cover)
	if !ok || c.coverable() == "" || len(want) > len(c.words) {
		return false
	}
	for i, text := range want {
		if !c.words[i].known || c.words[i].text != text {
			return false
		}
	}
	return true
}

// IsCover reports whether an "always" answer for these words can cover any
// command. Words without the subcommand cover nothing, because they may allow more
// than the person was shown.
func IsCover(cover string) bool {
	_, ok := coverWords(cover)
	return ok
}

func coverWords(cover string) ([]string, bool) {
	words, ok := ruleWords(cover)
	return words, ok && len(words) >= leading(words)
}

// leading returns how many words at the start of a command determine what it does:
// the program, and its subcommand if it has one. The result is greater than the
// number of words if the subcommand is missing, and -1 if an option is in its
// place.
func leading(words []string) int {
	name := strings.TrimRight(programName(words[0]), "0123456789.") // python3.12
	if !has(withSubcommands, name) {
		return 1
	}
	path := name
	for i, w := range words[1:] {
		path += "/" + w
		option := strings.HasPrefix(w, "-")
		switch nested := has(withNested, path) || i == 0 && !option && has(withNested, name+"/*"); {
		case option && !nested:
			return -1
		case !nested:
			return i + 2
		}
	}
	return len(words) + 1
}

// withSubcommands are the programs whose first argument is a subcommand or the
// name of a script, package or host.
const withSubcommands = "ansible apk apt apt-get awk aws az bazel brew bun bundle bunx cabal cargo command composer conda dart deno dnf docker docker-compose dotnet dune elixir " +
	"firebase flatpak flutter fly gawk gcloud gem gh git glab go gradle gradlew helm heroku hg ip java jj julia kubectl lein lua mawk mix mvn mvnw nawk nerdctl netlify nix node npm npx nx " +
	"opam openssl osascript pdm perl php pip pipenv pipx pnpm pnpx podman poetry pulumi python rails rscript ruby rustup rye sbt serverless service snap ssh stack supabase svn " +
	"swift symfony systemctl tclsh terraform tmux tofu toolreg tsx turbo uv uvx vagrant vercel wp wrangler yarn yum zig"

// withNested are the subcommands that have subcommands themselves, or that run a
// script or program. "*" means all subcommands of a program.
const withNested = "aws/* az/* gcloud/* gh/* glab/* bun/run bun/x bundle/exec conda/run deno/run deno/task docker/compose dotnet/tool " +
	"go/mod go/run go/tool go/work java/-jar npm/exec npm/run npm/x pipenv/run pipx/run pnpm/dlx pnpm/exec pnpm/run poetry/run python/-m " +
	"toolreg/call uv/pip uv/run uv/tool yarn/dlx yarn/exec yarn/run"
