//go:build linux

package shell_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/policy/shell"
	"github.com/toolreg/toolreg/internal/registry"
)

// optionLines is the number of lines that TestOptionsAreHarmless generates, unless
// TOOLREG_OPTION_LINES sets another.
const optionLines = 300

// TestOptionsAreHarmless holds the tables against the installed programs. It calls
// each program with options of its table, its help and its manual, followed by
// words that would run the program "marker" or write the file "F" as an option, a
// value or an operand. It runs the lines that a rule on the program allows, and
// lines with any option for programs whose options are all said to be harmless. Of
// some programs it calls several implementations.
// The marker must not run, and no file may appear or change unless the program
// writes its operands.
func TestOptionsAreHarmless(t *testing.T) {
	n, seed := lines(t, "TOOLREG_OPTION_LINES", optionLines)
	g := &optionMaker{r: rand.New(rand.NewPCG(seed, 3))}
	bash := slices.IndexFunc(differRuns(t), func(r differRun) bool { return r.name == "bash" })
	if bash < 0 {
		t.Skip("bash is not installed")
	}
	how := differRuns(t)[bash]
	if exec.Command("unshare", "-rn", "true").Run() == nil {
		how.argv = append([]string{"unshare", "-rn"}, how.argv...)
	} else {
		t.Log("programs run with a network, because unshare -rn does not work here")
	}
	var tables []shell.Table
	programs := map[string]bool{}
	for _, table := range shell.Tables() {
		program, _, _ := strings.Cut(table.Path, " ")
		if _, err := exec.LookPath(program); err != nil && !isBuiltin(program) || isUntestable(table.Path) {
			continue
		}
		tables, programs[program] = append(tables, table), true
	}
	others := otherImplementations(t)
	step := max(1, 5*len(tables)/n) // a few lines are for some of the tables only
	tables = slices.Collect(func(yield func(shell.Table) bool) {
		for i := 0; i < len(tables) && yield(tables[i]); i += step {
		}
	})
	ran, late := 0, filepath.Join(t.TempDir(), "late")
	put(t, late, "", 0o600)
	for _, writes := range []bool{false, true} {
		t.Run(fmt.Sprintf("writes operands %t", writes), func(t *testing.T) {
			d := newDifferRun(t, how, !writes)
			d.prepare = prepareOptions
			d.env = []string{"PATH=" + d.bin + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin", "HOME=" + filepath.Join(d.bin, "home"),
				"LC_ALL=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1", "GOFLAGS=-mod=mod", "GOPROXY=off",
				"GOCACHE=" + filepath.Join(d.bin, "gocache"), "GOTOOLCHAIN=local", "npm_config_prefix=" + d.bin, "npm_config_offline=true", "MYPY_CACHE_DIR=/dev/null", "PYTHONDONTWRITEBYTECODE=1", "PYTEST_ADDOPTS=-pno:cacheprovider"}
			d.wrap = func(line string) string {
				program, args, _ := strings.Cut(line, " ")
				if isBuiltin(program) {
					return line
				}
				hash := fnv.New32() // the same line always runs the same program
				_, _ = io.WriteString(hash, line)
				if i := hash.Sum32() % uint32(len(others[program])+1); i > 0 {
					line = others[program][i-1] + " " + args
				}
				return "timeout -k 1 2 " + line + "; case $? in 124|126|127|137) echo " + program + " >>" + late + ";; esac"
			}
			for i, table := range tables {
				if table.Has("writes") != writes {
					continue
				}
				program, _, _ := strings.Cut(table.Path, " ")
				p := &policy.Policy{Rules: entries(t, policy.Allow, "run_shell_command("+program+")")}
				options := append(slices.Clone(table.Options), realOptions(t, table.Path)...)
				for _, other := range others[program] {
					options = append(options, realOptions(t, other)...)
				}
				var allowed []string
				for range (n + i) / len(tables) {
					line := g.line(table, options)
					if table.Has("any") || table.Has("safe") || p.Decide(t.Context(), shellTool(line), registry.Call{}).Decision == policy.Allow {
						allowed = append(allowed, line)
					}
				}
				ran += len(allowed)
				for batch := range slices.Chunk(allowed, 100) {
					for _, line := range d.hits(batch) {
						t.Errorf("allowed, and it runs the marker or writes a file: %s", line)
					}
				}
			}
		})
	}
	ended, err := os.ReadFile(late)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d lines for %d tables of %d programs, seed %d; %d ran", n, len(tables), len(programs), seed, ran)
	vain := strings.Fields(string(ended))
	slices.Sort(vain)
	t.Logf("%d ran for too long or could not run: %s", len(vain), vain)
	if ran < n/10 {
		t.Error("too few lines are allowed for a meaningful test")
	}
}

// otherImplementations returns the installed programs that a system may have under the name of
// another program.
func otherImplementations(t *testing.T) map[string][]string {
	out := map[string][]string{}
	for _, pair := range []string{"awk gawk", "awk mawk", "awk original-awk", "nawk original-awk", "tar bsdtar"} {
		name, other, _ := strings.Cut(pair, " ")
		if _, err := exec.LookPath(other); err == nil {
			out[name] = append(out[name], other)
		}
	}
	applets, err := exec.Command("busybox", "--list").Output()
	if err != nil {
		t.Logf("without the applets of busybox: %v", err)
	}
	for applet := range strings.FieldsSeq(string(applets)) {
		out[applet] = append(out[applet], "busybox "+applet)
	}
	return out
}

func isBuiltin(program string) bool {
	return slices.Contains(strings.Fields("echo true false : pwd exit return break continue test [ printf type cd"), program)
}

// isUntestable reports whether a program acts on processes, containers or packages
// of this machine, or needs a network.
func isUntestable(path string) bool {
	program, _, _ := strings.Cut(path, " ")
	return slices.Contains(strings.Fields("kill wait sleep docker podman docker-compose ping npx"), program) ||
		slices.Contains([]string{"pip install", "python -m pip install", "npm install", "npm i", "npm add", "npm ci"}, path)
}

// prepareOptions adds to a folder what some programs need to get as far as their
// options.
func prepareOptions(t *testing.T, dir string) {
	put(t, filepath.Join(dir, "marker"), "#!/bin/sh\nexec marker\n", 0o700)
	put(t, filepath.Join(dir, "args"), "--exec=marker\n--output=F\n-oF\n", 0o600)
	put(t, filepath.Join(dir, "Makefile"), "f:\n\ttrue\n", 0o600)
	put(t, filepath.Join(dir, "go.mod"), "module x\n\ngo 1.20\n", 0o600)
	put(t, filepath.Join(dir, "x.go"), "package x\n", 0o600)
	put(t, filepath.Join(dir, "package.json"), `{"name":"x","version":"1.0.0","scripts":{"test":"true","build":"true"}}`, 0o600)
}

// optionMaker generates calls of programs.
type optionMaker struct{ r *rand.Rand }

// payloads are words that run the marker or write F if a program takes them for
// options, or for something else than names. Several words are separated by spaces;
// "_" is a space in a word.
var payloads = strings.Split(strings.TrimSpace(`
-exec marker ;
-execdir marker ;
-exec marker {} +
-fprint F
-delete
--exec=marker
--exec marker
-x marker
-xmarker .
--output=F
--output F
-o F f
-oF f
-O marker x
-Omarker x
--open-files-in-pager=marker x
--ext-diff
-c core.pager=marker -p log
-c alias.log=!marker log
-c marker
-cmarker
--pager=marker x
--pre=marker x .
--pre marker x .
--compress-program=marker -S1 f
--use-compress-program=marker -cf T f
-I marker -cf T f
-Imarker -cf T f
--to-command=marker -xf T
--checkpoint=1 --checkpoint-action=exec=marker -cf T f
--rsh=marker a:b c
-e marker a:b c
--upload-pack=marker .
-u marker .
--remote=ext::marker HEAD
ext::marker
--eval=x:;marker x
--eval x:;marker x
-E x:;marker x
-f args
-fargs
--file=args
@args
SHELL=./marker f
CC=marker x.o
V!=marker f
e_marker f
1e_marker f
w_F f
s/x/marker/e f
-e e_marker f
-ne w_F f
BEGIN{system("marker")}
BEGIN{print_"x">"F"} f
f F
F
marker
./marker
--script-shell=./marker
-script-shell ./marker
--node-options=--require=./marker
--config=args
-K args x
%output{F}x
-w %output{F}x file:///dev/null
-toolexec marker ./...
-vettool=./marker ./...
-exec ./marker .
--log=F
--log-file=F
--diff-program=marker f l f
--filter=marker f
-ra --type=marker
-TT marker
x=marker
HEAD
.
./...
-- -exec marker ;
-- --output=F
-- F
-
1
f
f l
-n
-i
`), "\n")

// word returns how a word of the lists is written in a shell line.
func (g *optionMaker) word(text string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(text, "_", " "), "'", `'\''`) + "'"
}

// line generates a call of the program of a table: options of the table, an option
// of the table or the program, and a payload.
func (g *optionMaker) line(t shell.Table, options []string) string {
	out := t.Path
	option := func(from []string) {
		if len(from) == 0 {
			return
		}
		text := from[g.r.IntN(len(from))]
		if text == "-#" {
			text = "-5"
		}
		switch value := strings.Fields(payloads[g.r.IntN(len(payloads))]); g.r.IntN(9) {
		case 0:
			text += value[0]
		case 1:
			text += "=" + value[0]
		case 2:
			out += " " + g.word(text)
			text = []string{"1", "f", "F", "x", "marker", "e_marker", "1e_marker", "./marker", "x=marker"}[g.r.IntN(9)]
		case 3:
			if len(t.Options) > 0 && len(text) == 2 && !t.Has("whole") {
				text += strings.TrimLeft(t.Options[g.r.IntN(len(t.Options))], "-")
			}
		}
		out += " " + g.word(text)
	}
	for range g.r.IntN(3) {
		option(t.Options)
	}
	if g.r.IntN(3) == 0 {
		option(options)
	} else {
		option(t.Options)
	}
	payload := payloads[g.r.IntN(len(payloads))]
	for g.r.IntN(2) == 0 && strings.HasPrefix(payload, "-") { // most are not in the tables, so such lines are not allowed
		payload = payloads[g.r.IntN(len(payloads))]
	}
	for w := range strings.FieldsSeq(payload) {
		out += " " + g.word(w)
	}
	return out
}

// optionText matches an option in a help text or manual.
var optionText = regexp.MustCompile(`(?:^|[\s,\[(|/])(--?[A-Za-z0-9][A-Za-z0-9-]*)`)

// realOptions returns the options that the help and the manual of a program mention.
func realOptions(t *testing.T, path string) []string {
	words := strings.Fields(path)
	var text strings.Builder
	if !isBuiltin(words[0]) && words[0] != "git" { // git shows its manual
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, words[0], append(words[1:], "--help")...)
		cmd.Dir, cmd.WaitDelay = t.TempDir(), time.Second
		out, _ := cmd.CombinedOutput() // some programs have no --help
		text.Write(out)
	}
	for _, name := range []string{strings.Join(words, "-"), words[0]} {
		if f, err := os.Open("/usr/share/man/man1/" + name + ".1.gz"); err == nil {
			defer f.Close()
			if z, err := gzip.NewReader(f); err == nil {
				page, _ := io.ReadAll(z) // a damaged page only has fewer options
				text.WriteString(strings.NewReplacer(`\-`, "-", `\fB`, " ", `\fR`, " ", `\fI`, " ", `\fP`, " ").Replace(string(page)))
			}
			break
		}
	}
	var out []string
	for _, m := range optionText.FindAllStringSubmatch(text.String(), -1) {
		out = append(out, m[1])
	}
	slices.Sort(out)
	return slices.Compact(out)
}
