package process

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestSplitWords(t *testing.T) {
	tests := []struct {
		line string
		want []string
	}{
		{`npm run discover`, []string{"npm", "run", "discover"}},
		{"  a\t b \n", []string{"a", "b"}},
		{`'a b' "c d" e\ f`, []string{"a b", "c d", "e f"}},
		{`a '' ""`, []string{"a", "", ""}},
		{`a"b"'c'd`, []string{"abcd"}},
		{`a#b`, []string{"a#b"}},
		{`x '#c' \#d`, []string{"x", "#c", "#d"}},
		{`x "|" '&&' \; ">"`, []string{"x", "|", "&&", ";", ">"}},
		{`x '*.go' "a?b" \*`, []string{"x", "*.go", "a?b", "*"}},
		{`x [ab]c {a,b} ~/f`, []string{"x", "[ab]c", "{a,b}", "~/f"}},
		{`x $HOME "${X}" ${Y:-d} "${Z:-d e}" a$B.c`, []string{"x", "$HOME", "${X}", "${Y:-d}", "${Z:-d e}", "a$B.c"}},
		{`x "a\nb" "a\"b" "a\\b"`, []string{"x", `a\nb`, `a"b`, `a\b`}},
		{`x '$HOME' \$HOME "\$HOME" "'$HOME'" '\$' cost$`, []string{"x", "$$HOME", "$$HOME", "$$HOME", "'$HOME'", `\$$`, "cost$"}},
		{`"C:\Program Files\t.exe" x`, []string{`C:\Program Files\t.exe`, "x"}},
		{"a b\\\nc d", []string{"a", "bc", "d"}},
		{`'it'\''s'`, []string{"it's"}},
		{`工具 "é"`, []string{"工具", "é"}},
		{`x a=b --c=d`, []string{"x", "a=b", "--c=d"}},
	}
	for _, tt := range tests {
		got, err := Split(tt.line)
		if err != nil {
			t.Errorf("Split(%q): %v", tt.line, err)
		} else if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("Split(%q) (-want +got):\n%s", tt.line, diff)
		}
	}
}

func TestSplitRefusesWhatOnlyAShellCouldRun(t *testing.T) {
	const list = "sh -c '...'"
	tests := []struct{ line, want string }{
		{"a | b", list}, {"a && b", list}, {"a || b", list}, {"a; b", list}, {"a;", list}, {"a & b", list}, {"a &", list},
		{"a\nb", list}, {"a > f", list}, {"a 2>&1", list}, {"a < f", list}, {"a << E\nE", list}, {"a <<< x", list},
		{"a $(b)", list}, {`a "$(b)"`, list}, {"a `b`", list}, {"a <(b)", list}, {"a $((1+1))", list},
		{"(a)", list}, {"{ a; }", list}, {"! a", list}, {"if a; then b; fi", list}, {"f() { a; }", list}, {"[[ a ]]", list},
		{"ls *.go", "glob"}, {"ls a?b", "glob"}, {"ls @(a|b)", list},
		{"a # b", "comment"}, {"# b", "comment"},
		{"A=1 b", "env"}, {"A=1", "env"},
		{`a $'b\n'`, list}, {`a $"b"`, list},
		{"a ${}", list}, {"a ${X#y}", list}, {"a ${#X}", list}, {"a ${X:=y}", list}, {"a ${X[0]}", list}, {"a ${!X}", list},
		{"a $1", "expansion"}, {"a $$", "expansion"}, {"a $?", "expansion"}, {"a $@", "expansion"},
		{"a ${X:-b c}", "quotes"}, {"a ${X:-$(b)}", list}, {`a "${X:-"b"}"`, "plain text"},
		{"| a", list}, {"a |", list},
		{`a "b`, "quotes"}, {"a 'b", "quotes"}, {`a b\`, ""},
		{"", "empty"}, {"  \n", "empty"}, {`""`, "empty"},
		{"a \x00", "NUL"}, {"a \xff", "UTF-8"},
	}
	for _, tt := range tests {
		got, err := Split(tt.line)
		if err == nil {
			t.Errorf("Split(%q) = %q", tt.line, got)
		} else if !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Split(%q): %v, which lacks %q", tt.line, err, tt.want)
		}
	}
}

// Nesting as deep as the limit allows neither overflows the stack nor takes
// long.
func TestSplitLimitsNesting(t *testing.T) {
	for _, unit := range []string{"$(", "`", "${a:-", "\"$(", "{ ", "((", "$((", "[", "!", "\\", "(", "if ", "<(", "${a:-\"", "@("} {
		line := "x " + strings.Repeat(unit, (maxLine-2)/len(unit))
		if words, err := Split(line); err == nil && unit != "[" && unit != "!" && unit != "\\" && unit != "{ " && unit != "if " {
			t.Errorf("nested %q gave %d words", unit, len(words))
		}
		if _, err := Split(line + strings.Repeat("x", maxLine)); err == nil || !strings.Contains(err.Error(), "the limit is 32768") {
			t.Errorf("beyond the limit: %v", err)
		}
	}
}

// FuzzSplit looks for lines whose words would not survive being quoted and
// split again: a difference between the two parsers.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{`a "b\c" 'd'`, "a b\\\nc", `x "${Z:-d e}"`, `'it'\''s'`, "a\r\nb", `"\$x"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words, err := Split(line)
		if err != nil {
			return
		}
		if len(words) == 0 || words[0] == "" || !utf8.ValidString(strings.Join(words, "")) {
			t.Fatalf("Split(%q) = %q", line, words)
		}
		quoted := make([]string, len(words))
		for i, w := range words {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		again, err := Split(strings.Join(quoted, " "))
		if err != nil {
			t.Fatalf("Split(%q) = %q, quoted: %v", line, words, err)
		}
		for i, w := range words { // every dollar sign is a literal one now
			words[i] = strings.ReplaceAll(w, "$", "$$")
		}
		if diff := cmp.Diff(words, again); diff != "" {
			t.Fatalf("Split(%q) (-first +quoted):\n%s", line, diff)
		}
	})
}

func TestBaseEnvSelectsTheMinimum(t *testing.T) {
	got := BaseEnv([]string{
		"PATH=/bin", "GITHUB_TOKEN=s", "HOME=/h", "LC_ALL=C", "XDG_STATE_HOME=/x", "https_proxy=http://p", "NO_PROXY=a",
		"SSL_CERT_FILE=/c", "SSLKEYLOGFILE=/k", "AWS_SECRET_ACCESS_KEY=s", "LD_PRELOAD=x", "BASH_ENV=x", "NODE_OPTIONS=x",
		"TMPDIR=/t", "USER=u", "LANG=C", "no equals sign", "=odd", "PATHS=1",
	})
	want := []string{
		"PATH=/bin", "HOME=/h", "LC_ALL=C", "XDG_STATE_HOME=/x", "https_proxy=http://p", "NO_PROXY=a",
		"SSL_CERT_FILE=/c", "TMPDIR=/t", "USER=u", "LANG=C",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("BaseEnv (-want +got):\n%s", diff)
	}
}
