package shell

import (
	"slices"
	"testing"
)

// A line that some shell may read differently is unread, so that no rule allows it. A similar
// line that every shell reads alike is not.
func TestLinesThatShellsReadAlike(t *testing.T) {
	const nbsp, next = "\u00a0", "\u0085"
	for _, pair := range []struct{ alike, differently string }{
		// Quotes and backslashes.
		{`ls a\\`, `ls a\`},
		{`ls a\ b`, "ls a\\\nb"},
		{"ls \\\n -a", "ls $(ls \\\n -a)"},
		{"ls\t\\\n\t-a", "(ls \\\n -a)"},
		{" ls", " \\\n ls"},
		{"ls a", "ls \\\n"},
		{`ls "a\"b"`, "ls \"a\\\nb\""},
		{`ls 'a\'`, `ls 'a\''`},
		{`ls $'a\'b' c`, `ls $'a'\`},
		{`ls "$x"'a'`, "ls `git log 'a'`"},
		{"ls `git log $x`", "ls `git log \\$x`"},
		{"ls \"`git log`\"", "ls \"`git \\\"log\\\"`\""},
		{"ls `git log`; ls 'a'", "ls `git log \"a\"`"},
		{`ls $"a"`, "ls `ls $\"a\"`"},
		{`ls $'a'`, "ls `ls $'a'`"},
		{`ls "$'a'"`, `ls ${x:-$'a'}`},

		{`ls $'a\''`, `ls $'a`},

		// Dollar signs.
		{`ls $$`, `ls $$'a'`},
		{`ls "$$"`, `ls $$"a"`},
		{`ls "$$a"`, `ls "$${x}"`},
		{`ls $$a`, `ls $$(ls)`},
		{`ls $$ a`, `ls $$[1]`},
		{`ls $a$b $a9$A0$Z_`, "ls $$`ls`"},
		{`ls $ a`, `ls $[1+2]`},
		{`ls $0a $1a $9a $10 $@ $* $# $? $! $-`, `ls $$$` + "`ls`"},
		{`ls a$`, "ls $$$$(ls)"},
		{`ls ${x} ${#x} ${!x} ${@} ${*} ${?} ${-}`, `ls ${x:-"a"}`},
		{`ls ${x:-a b} ${x/a/b} ${x%.*} ${x#[ab]} ${x^}`, `ls ${x:-(a)}`},
		{`ls ${x:-$y} ${x:-$(ls)}`, "ls ${x:-`ls`}"},
		{`ls ${x:-a}b}`, `ls ${x:-\}}`},
		{`ls ${1} ${0}`, `ls ${$}`},

		// Arithmetic.
		{`ls $((1+2*3)) $(( (1) ))`, `ls $((1<<2))`},
		{`ls $((1 < 2 ? 3 : 4))`, `ls $((a[1]))`},
		{`ls $(($x)) $((${x}))`, `ls $(('1'))`},
		{`((a=1)); ls`, `((a[1]=1)); ls`},
		{`for ((i=0; i<2; i++)); do ls; done`, `for ((i=0; i<a[1]; i++)); do ls; done`},
		{`let a=1+2`, `let 'a=1'`},
		{`let a`, `let a=$x`},

		// Parentheses, brackets and comments.
		{`(ls; (ls))`, `((ls); ls)`},
		{`ls $( (ls) )`, `ls $((ls) )`},
		{`[[ (a -nt b) ]]`, `[[ ((a -nt b)) ]]`},
		{`case x in a) ls;; (b) ls;; esac`, `ls; ((ls) )`},
		{`ls a[1] [ab]`, `ls a[$x]`},
		{`ls a[bc]d`, `ls a[b`},
		{`ls 'a[$x]'`, `ls a["b"]`},
		{`ls _[1]`, `ls a[b c]`},
		{`a=(x y)`, `a=([1]=x)`},
		{`ls 'a(b'`, `ls @(a)`},
		{`ls a#b`, "ls $(ls # a\n)"},
		{"ls # a\nls", "ls # a\\\nls"},
		{"ls;# '\nls", "ls `ls # a`"},
		{`cat <(ls) >(cat)`, `cat <(ls`},
		{`ls é 'à'`, "ls \u00e0"},
		{`ls '` + nbsp + `'`, `ls ` + nbsp},
		{`ls '` + next + `'`, `ls ` + next},

		// Aliases and options of the shell.
		{`alias`, `alias a=b`},
		{`set -- -k`, `set -k`},
		{`shopt -s nullglob`, `shopt -- extglob`},

		// Descriptors.
		{`ls >&2`, `x=2; ls >&$x`},
		{`ls >&a`, `ls >&'a$b'`},
		{`ls 3>&1-`, `ls >&-a`},
		{`ls <&0`, `ls <&$x`},
		{`ls >& 'a'`, "ls >&'a`'"},

		// Characters that another locale may read differently.
		{`LC_ALL=C.UTF-8 ls é`, `LC_ALL=zh_CN.GBK ls é`},
		{`LANG=zh_CN.GBK ls e`, `LANG=zh_CN.GBK ls '` + "\u0080'"},
		{`ls LC é`, `ls "LC_"ALL=ja_JP.SJIS é`},

		// Here-documents.
		{"cat <<E\na\nE", "cat <<E\na"},
		{"cat <<E; ls\na\nE\nls", "cat <<\\E\na\nE"},
		{"cat <<-E\n\ta\n\tE", "cat <<E\n\ta\n\tE"},
		{"cat << E|ls\na\nE", "cat <<E'F'\na\nEF"},
		{"cat <<  'E.-F'\na\nE.-F", "cat <<'E F'\na\nE F"},
		{"cat <<\"E\"\na\nE", "cat <<E.F\na\nE.F"},
		{"cat <<'E'\n$(a\\\n`\nE", "cat <<E\na\\\nb\nE"},
		{"cat <<E\n$x ${x} $(ls) $((1)) \\$ \"'\nE", "cat <<E\n${x:-'a'}\nE"},
		{"cat <<E\n`ls`\nE", "cat <<E\n`ls 'a'`\nE"},
		{"cat <<E\n\nE", "cat <<''\na\n\n"},
		{"cat <<E\nE", "cat <<É\na\nÉ"},
		{"cat <<A <<B\na\nA\nb\nB\nls", "cat <<A <<B\na\nA\nb"},
		{"ls $(cat <<E\na\nE\n)", "ls $(cat <<E\nEa\nE\n)"},
		{"cat <<E\nEa\nE", "ls $(cat <<-E\n\tEa\n\tE\n)"},
		{"ls $(cat <<E\na\nE\n) b", "ls $(cat <<E)\na\nE"},
		{"cat <<E \"a\"\na\nE", "cat <<E \"a\nb\"\na\nE"},
		{"cat <<E $(ls)\na\nE", "cat <<E $(ls\n)\na\nE"},
		{"cat <<< a", "ls ${x:-$(cat <<E\na\nE\n)}"},
		{"cat <<< 'a b'", "ls `cat <<E\na\nE\n`"},
		{"cat <<<$x", "cat <<E `\na`\nE"},
	} {
		for line, want := range map[string]bool{pair.alike: false, pair.differently: true} {
			unread := func(c Command) bool { return c.Unread }
			if got := slices.ContainsFunc(Read(Bash, line, "").Commands, unread); got != want {
				t.Errorf("%q: unread %t, want %t", line, got, want)
			}
		}
	}
}
