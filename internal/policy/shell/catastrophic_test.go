package shell_test

import (
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/policy/shell"
	"github.com/toolreg/toolreg/internal/registry"
)

// TestCatastrophic checks that no rule or mode allows commands that ruin a
// machine.
func TestCatastrophic(t *testing.T) {
	for _, text := range developerLines(t, "testdata/catastrophic.txt") {
		want, line, _ := strings.Cut(text, " ")
		for _, shell := range []string{shell.Bash, shell.POSIX} {
			p := &policy.Policy{Mode: policy.ModeYolo, Rules: []policy.Rule{{Decision: policy.Allow, Origin: "s.yaml:1"}}, Shell: shell}
			v := p.Decide(t.Context(), shellTool(line), registry.Call{})
			if v.Decision.String() != want || want == "deny" && !strings.Contains(v.Reason, "shell.catastrophic") && !v.Unread {
				t.Errorf("%s: %q: %s, want %s (%s)", shell, line, v.Decision, want, v.Reason)
			}
			p.AskCatastrophic = true
			v = p.Decide(t.Context(), shellTool(line), registry.Call{})
			if want == "deny" && !v.Unread && (v.Decision != policy.Ask || !v.Person || len(v.Scopes) > 0) {
				t.Errorf("%s: %q as a question: %s (%s)", shell, line, v.Decision, v.Reason)
			}
		}
	}
}

// A relative path can lead out of the workspace to a system folder.
func TestCatastrophicRelativePath(t *testing.T) {
	p := &policy.Policy{Mode: policy.ModeYolo, Workspace: "/home/jane/work"}
	for line, want := range map[string]policy.Decision{
		"chmod -R 777 ..": policy.Deny, "chmod -R 777 ../../..": policy.Deny, "find ../* -delete": policy.Deny, "mv ../../../etc x": policy.Deny,
		"cd ..; chmod -R 777 .": policy.Deny, "cd sub/../..; find -delete": policy.Deny, "(cd ..); find . -delete": policy.Allow,
		"chmod -R 777 ../other": policy.Allow, "chmod -R 777 .": policy.Allow, "cd sub; find .. -delete": policy.Allow,
	} {
		if v := p.Decide(t.Context(), shellTool(line), registry.Call{}); v.Decision != want {
			t.Errorf("%q: %s (%s)", line, v.Decision, v.Reason)
		}
	}
}

// Yolo mode does not ask, so it denies a program that may be a banned one, unless
// nothing is banned.
func TestYoloDeniesWhatMayBeBanned(t *testing.T) {
	for _, line := range []string{"$x y", `"$x" y`, "$(cat cmd)", "eval $x", "eval \"$(cat x)\"", "cat x | sh", "sh -c \"$x\"", "env $x", "echo x | xargs -I{} {}",
		"echo $\\\n(id)", "echo \"${x:-'$(id)'}\"", "alias a=b", "set -o posix", "trap $x EXIT", "PS4=$x", "bash -c '$0' x", "zsh -c 'ls'",
		"export LC_ALL=zh_CN.GBK\necho \u4e2d\\;rm x", "LANG=zh_CN bash -c 'echo \u4e2d\\;rm x'", "read L'C'_CTYPE < f\necho \u4e2d\\;rm x", "LC_ALL=C.UTF-8x LC_ALL=C echo \u4e2d",
		"unset LC_ALL\necho \u4e2d\\;rm x", "printf -vLC_ALL zh\necho \u4e2d\\;rm x", "for LC_ALL in zh; do echo \u4e2d\\;rm x; done", ": ${LANG:=zh}; echo \u4e2d\\;rm x",
		"env -u LC_ALL bash -c 'echo \u4e2d\\;rm x'", "export {LC_ALL,x}=zh; echo \u4e2d\\;rm x", "LC_ALL+=x; echo \u4e2d\\;rm x"} {
		p := &policy.Policy{Mode: policy.ModeYolo, Banned: banned()}
		if v := p.Decide(t.Context(), shellTool(line), registry.Call{}); v.Decision != policy.Deny {
			t.Errorf("%q: %s (%s)", line, v.Decision, v.Reason)
		}
		p = &policy.Policy{Mode: policy.ModeYolo, AskCatastrophic: true} // nothing is banned
		if v := p.Decide(t.Context(), shellTool(line), registry.Call{}); v.Decision != policy.Allow {
			t.Errorf("%q, with nothing banned: %s (%s)", line, v.Decision, v.Reason)
		}
	}
}

// Commands that a program runs or configures are analyzed, whichever way they are
// passed.
func TestBannedInOptions(t *testing.T) {
	for _, line := range []string{"PS4='$(rm x)'; set -x; ls", "export PS4='`rm x`'", "GIT_PAGER='rm x' git log", "PROMPT_COMMAND='rm x' bash",
		"BASH_CMDS[foo]=/bin/rm; foo x", "BASH_CMDS=([foo]=/bin/rm); foo x", "BASH_CMDS+=([a]=ls [foo]=rm)", "BASH_ALIASES[foo]='rm -f'", "declare BASH_CMDS[foo]=rm", "declare -A BASH_CMDS=([foo]=rm)", "BASH_CMDS[foo]=rm ls", "git -c core.pager='rm x' log",
		"git -c alias.x='!rm x' x", "tar --use-compress='rm x' -cf a b", "tar cfI a 'rm x' b", "sort --compress-prog 'rm x' y", "env -vS 'rm x'", "env -S 'sh -c' 'rm x'", "env --sp='rm x'",
		"xargs env rm", "uclampset -m 1 rm x", "pipesz -s 1k -- rm x", "gdbserver :1 rm x", "gtimeout 5 rm x", "genv rm x", "git submodule foreach rm x", "git bisect run rm x", "rg --pre rm x", "ssh -oProxyCommand='rm x' h", "rsync -e 'rm x' a b",
		"fd -xrm", "fd . -Hx rm", "fd --exec=rm", "test -v 'a[$(rm)]'; printf -v 'a[`rm x`]' y"} {
		p := &policy.Policy{Mode: policy.ModeYolo, Banned: banned()}
		if v := p.Decide(t.Context(), shellTool(line), registry.Call{}); v.Decision != policy.Deny {
			t.Errorf("%q: %s (%s)", line, v.Decision, v.Reason)
		}
	}
}

// Options that only resemble dangerous ones do not cause a question.
func TestHarmlessOptions(t *testing.T) {
	p := developerPolicy(t)
	for _, line := range []string{"sort -t, -k2,2n a", "sort -to a", "git grep -nA3 Ox", "git clean -fdx", "git push -u origin main", "rg -n pretty",
		"tar xf a.tar I", "tar xf a -C F", "curl -s -o /dev/null http://x", "test -f \"$x\"", "printf '%s' \"a$x\"", "sed -n 1p a", "sed -e 's/a\\/b/c/g;2,$d' -e '/x/!d' a", "sed 's|/usr|/opt|' a", "sed -n '/a/,/b/p' a", "sed 5q a", "sed ':a;N;$!ba;s/\\n/ /g' a", "sed -n 'x;:a;t a;p' a", "sed -e :a -e '$!N;ta' a", "sed -n '/a/{p;s/b/c/;p}; $d' a", "sed '/a/,/b/{ /c/d; }' a", "sed '$!{h;d};x;G' a", "curl -sw '%{http_code}' x", "uniq -f 1 a", "jobs -l"} {
		if v := p.Decide(t.Context(), shellTool(line), registry.Call{}); v.Decision != policy.Allow {
			t.Errorf("%q: %s (%s)", line, v.Decision, v.Reason)
		}
	}
}

// Rules that allow a program do not cover other programs it runs or files it
// writes.
func TestDoubtfulOptions(t *testing.T) {
	p := developerPolicy(t)
	for _, line := range []string{"sed ':a;e x' a", "sed ': a;w b' a", "sed 't a;e x' a", "sed 's/x/y/gi;w b' a", "sed 's,x,y,iw b' a", "sed 'ta}=!a];w b' a", "curl -w '%output{a}x' y", "curl -sSw@a y", "curl --write-out=\"$x\" y", "curl --variable v=a --expand-output '{{v}}' y",
		"curl --ssl-sessions a y", "git grep -e -O", "git log --oneline -O", "git commit -m \"$x\"", "git log -- --output=F"} {
		if v := p.Decide(t.Context(), shellTool(line), registry.Call{}); v.Decision != policy.Ask {
			t.Errorf("%q: %s (%s)", line, v.Decision, v.Reason)
		}
	}
}

// Ordinary script lines are not mistaken for banned programs.
func TestYoloAllowsWhatIsKnown(t *testing.T) {
	for _, line := range []string{"setsid sh -c 'echo $$ > stray; exec sleep 6' & until [ -s stray ]; do :; done; echo done", "set -euo pipefail; make", "for f in *.go; do gofmt -l \"$f\"; done",
		"source .venv/bin/activate && pytest", "while read -r x; do echo \"$x\"; done < a", "X=1 make", "export A=b; make", "x=$(git describe) && echo \"$x\"", "if [ -f a ]; then cat a; fi",
		"cat > a <<'EOF'\n$(x) `y` \\\nEOF", "find . -name '*.o' -exec ls {} +", "bash x.sh", "python3 - <<'EOF'\nprint(1)\nEOF", "sed -i 's/a/b/;/x/a foo' f", "sed -i \"s/a/$b/\" f",
		"echo \u4e2d\\;rm x", "LC_ALL=C grep \u4e2d a", "LANG=de_DE.UTF-8 LC_CTYPE=C.utf8 echo \u4e2d", "export LC_ALL=; echo \u4e2d", "LC_ALL=zh_CN.GBK make", "git commit -m 'CALC_X in ERLANG \u2013 x'", "echo \"LC_ALL ist \u00e9\"", "echo \"\u00e9 $LANG\"", "grep -c LC_ALL x.txt | sed s/1/\u00e9/", "echo \"\u00e9 ${LC_CTYPE}\"", "git commit -m 'tests: LC_MESSAGES \u2013 no'",
		"for ((i=0; i<3; i++)); do echo $i; done", "f() { ls; }; f", "nohup ./server > log 2>&1 &", "timeout 5 make", "go test ./... 2>&1 | tail -5", "xargs -n1 ls < a", "trap 'echo x' EXIT"} {
		p := &policy.Policy{Mode: policy.ModeYolo, Banned: banned()}
		if v := p.Decide(t.Context(), shellTool(line), registry.Call{}); v.Decision != policy.Allow {
			t.Errorf("%q: %s (%s)", line, v.Decision, v.Reason)
		}
	}
}
