//go:build linux

package shell_test

import (
	"math/rand/v2"
	"strings"
)

// lineMaker generates lines from a grammar, from random tokens, and by mutating
// seeds.
type lineMaker struct {
	r     *rand.Rand
	seeds []string
	depth int
}

func (g *lineMaker) pick(from ...string) string { return from[g.r.IntN(len(from))] }

func (g *lineMaker) line() string {
	g.depth = 0
	switch g.r.IntN(10) {
	case 9:
		return g.located()
	case 8:
		return g.expanded()
	case 0:
		return g.soup(3 + g.r.IntN(12))
	case 1, 2, 3:
		return g.changed(g.pick(g.seeds...))
	case 4:
		return g.pick("", "", "echo marker | ", "x=marker ", "! ") + g.wrapped()
	case 5:
		return g.evaluated()
	}
	return g.list()
}

// tokens are tokens that shells and parsers often read differently.
var tokens = []string{"$(", ")", "'", "\"", "`", "${x:-", "${PATH#", "${PATH:", "${#", "${", "}", "$((", "))", "((", "(", "\\", "\n", "\\\n", " \\\n ", "<<E\n", "<<'E'\n", "<<-E\n",
	"\nE\n", "E", "<<<", " marker ", "marker", "$(marker)", "`marker`", "echo ", "cat ", ";", ";;", "|", "&", "&&", "<(", ">(", "#", " #", "[", "]", "a[", "a=", "a=(", "{", "} ",
	" ", " ", " ", "$'", "$\"", "$", "x", "1", "+", "!", "case x in x)", "esac", "[[ ", " ]]", "if ", " then ", " fi", "~", "*", "{a,", "{", ",", "..", "{,", ",}", "{marker,", "$[", "\t", "<", "&>", ">&", "2>&1", "/dev/null"}

func (g *lineMaker) soup(n int) string {
	var b strings.Builder
	b.WriteString(g.pick("echo ", "cat ", "", "echo \"", "printf "))
	for range n {
		b.WriteString(g.pick(tokens...))
	}
	return b.String()
}

// changed inserts tokens into a line, removes bytes from it, or repeats a part of
// it.
func (g *lineMaker) changed(line string) string {
	for range 1 + g.r.IntN(3) {
		i, j := g.r.IntN(len(line)+1), g.r.IntN(len(line)+1)
		i, j = min(i, j), max(i, j)
		switch g.r.IntN(4) {
		case 0:
			line = line[:i] + line[min(i+1+g.r.IntN(3), len(line)):]
		case 1:
			line = line[:j] + line[i:]
		default:
			line = line[:i] + g.pick(tokens...) + line[i:]
		}
		if len(line) > 400 {
			line = line[:400]
		}
	}
	return line
}

// noPID is an id that no process on this machine has, because some of the programs
// act on processes.
const noPID = "4194304"

// wrapped generates a call of a program that may run another, with options that it
// may or may not have.
func (g *lineMaker) wrapped() string {
	if g.r.IntN(4) == 0 {
		return g.pick("sed ", "sed -n ", "sed -e ", "sed -ne p -e ", "sed --expr=") + "'" + g.sed() + "' f"
	}
	out := g.pick("env", "xargs", "find .", "find . -name f", "nohup", "nice", "timeout "+noPID, "timeout", "setsid", "stdbuf", "setpriv", "prlimit", "setarch", "linux64", "choom", "sg",
		"chrt", "taskset", "ionice", "flock f", "runuser", "chroot", "command", "exec", "builtin", "eval", "time", "bash", "sh", "trap", ".", "jobs",
		"busybox", "sort", "tar", "tar cf T f", "git", "git log", "git grep x", "git rebase", "git bisect", "git submodule", "uniq", "printf", "test", "echo", "hash", "wait", "read",
		"compgen", "mapfile", "declare", "export", "getopts x", "coproc", "alias", "enable", "set", "shopt", "type", "let", "unset", "\\marker", "cat")
	for g.r.IntN(3) > 0 {
		out += " " + g.option()
	}
	return out + g.pick("", " marker", " marker", " 'marker'", " f", " 'marker x' f", " env marker", " -- marker", " marker \\;", " {} +", " x=1 marker", " <<< marker", " < f", " 'a[$(marker)]'")
}

func (g *lineMaker) option() string {
	const letters = "abcdefghiklmnopqrstuvwxzCDEFIORSTX0"
	switch g.r.IntN(4) {
	case 0:
		return g.pick("--", "-", noPID, "f", "x=1", "root", "-exec", "-ok", "-c", "x86_64", "marker")
	case 1:
		long := g.pick("--exec", "--split-string", "--compress-program", "--use-compress-program", "--to-command", "--output", "--command", "--checkpoint-action", "--open-files-in-pager",
			"--upload-pack", "--unset", "--signal", "--adjustment", "--arg-file", "--replace", "--reuid", "--nofile", "--rcfile", "--rsh-command", "--info-script", "--ext-diff", "--config-env")
		return long[:3+g.r.IntN(len(long)-2)] + g.pick("", "=marker", "="+noPID, "=exec=marker", "=f", " "+noPID)
	}
	out := "-"
	for range 1 + g.r.IntN(3) {
		i := g.r.IntN(len(letters))
		out += letters[i : i+1]
	}
	return out + g.pick("", "", "marker", noPID, "f", " "+noPID, " f", " ''")
}

// sed generates a sed script.
func (g *lineMaker) sed() string {
	out := ""
	for range 1 + g.r.IntN(3) {
		out += g.pick("", "1", "$", "/x/", "/x/I", "1,2", "1,/y/", "\\,x,", "0~2", "1!", "/[/]/", "/a\\/b/", "2,+1 ") +
			g.pick("p", "d", "e", "e marker", "1e marker", "w F", "s/x/marker/", "s/x/marker/e", "s/x/y/w F", "s,x,marker,e", "s/[/]x/y/", "s/x/y/;e marker", "y/x/z/", "a marker", "i\\\nmarker",
				"a\\", "c x", "r f", "R f", "W F", "{p}", "{e marker\n}", "n;e", "b", "b x", ":x", "t", "q", "=", "l", "#n", "F", "z", "}", "{", "s|x|\\n|e", "s/x/\\/e/", "s/x/y/pe", "s/x/y/2 e") +
			g.pick("", ";", "\n", " ", "}", " ; ")
	}
	return strings.ReplaceAll(out, "'", "")
}

// expanded generates a line in which brace expansion produces words that run the
// marker or write a file.
func (g *lineMaker) expanded() string {
	return g.pick(
		g.braces("marker")+" x", g.braces("marker", "x"), g.braces("env", "marker"), "env "+g.braces("x=1", "marker"), "xargs "+g.braces("-n1", "marker")+" < l",
		"find . -maxdepth 0 "+g.braces("-exec", "marker", ";"), "find "+g.braces(".", "-exec", "marker", "{}", ";"), "find . "+g.braces("-fprint", "F"), "find . a"+g.braces("$")+"IFS-o$IFS-fprint${IFS}F",
		"sed "+g.braces("-e", "e marker")+" f", "sed "+g.braces("1e marker", "f"), "sed "+g.braces("-i", "s/x/z/", "f"), "sort "+g.braces("-o", "F", "f"), "sort f -"+g.braces("oF"),
		"sort --comp"+g.braces("ress-program=marker")+" -S1 f", "uniq f"+g.braces("", "2"), "uniq "+g.braces("f", "F"), "tar cf T "+g.braces("-I", "marker", "f"), "tar "+g.braces("cfI", "T", "marker", "f"),
		"git "+g.braces("log", "--output=F"), "git log "+g.braces("--output=F"), "git -c "+g.braces("core.pager=marker")+" -p log", "git "+g.braces("grep", "-Omarker", "x"), "git config "+g.braces("x.y", "z"),
		"echo x > "+g.braces("F"), "echo x >> F"+g.braces(""), "cat < "+g.braces("f"), "cat <<< "+g.braces("marker")+" | sh", "sh <<< "+g.braces("marker", "x"), "sh -c "+g.braces("marker x", "x"), "bash "+g.braces("-c", "marker"),
		"eval "+g.braces("marker", "x"), "sh -c '"+strings.ReplaceAll(g.braces("marker", "x"), "'", "")+"'", "test "+g.braces("-v", "a[$(marker)]"), "printf "+g.braces("-v", "a[$(marker)]", "x"),
		"export "+g.braces("PS4=$(marker)")+"; set -x; echo", "export PS4"+g.braces("=$(marker)")+"; set -x; echo", "x="+g.braces("$(marker)")+"; echo $x", "x=("+g.braces("a[$(marker)]")+"); echo $((x))",
		"for x in "+g.braces("marker", "x")+"; do $x; done", "for x in "+g.braces("a[$(marker)]")+"; do echo $((x)); done", "trap "+g.braces("marker", "0"), "case "+g.braces("x")+" in x) marker;; esac",
		"f() { "+g.braces("marker", "x")+"; }; f", "hash "+g.braces("-p", "/bin/true", "x")+"; x", "cat <<E\n"+g.braces("$(marker)")+"\nE", "find . -name "+g.braces("f", "x"), "echo HEAD@{1}"+g.braces("x", "y"), "echo {}"+g.braces("x"))
}

// located generates a line whose characters another locale may read as one with
// the quote, backslash or separator behind them.
func (g *lineMaker) located() string {
	name := g.pick("LC_ALL", "LC_CTYPE", "LANG", "LC_ALL", "LC'_ALL'", "LANGUAGE")
	value := g.pick("zh_CN.GBK", "zh_TW.BIG5", "ja_JP.SJIS", "zh_CN.GBK", "'zh_CN.GBK'", "zh_CN.UTF-8", "C", "$x")
	set := g.pick("", "", "export "+name+"="+value+"; ", name+"="+value+"; ", name+"="+value+"\n", "unset LC_ALL; export "+name+"="+value+"; ", "read "+name+" <<< "+value+"; ", ": ${"+name+":="+value+"}; ",
		"LC_ALL=; LANG="+value+"; ", "declare -x "+name+"="+value+"; ", "printf -v "+name+" %s "+value+"; ", "for "+name+" in "+value+"; do ", name+"="+value+" ")
	wide := func() string {
		return g.pick("中", "丁", "表", "é", "\u00a0", "全", "ソ", "乗", "許", "珮", "縺")
	}
	text := g.pick(wide()+"\\;marker", wide()+"\\|marker", "\""+wide()+"\\\";marker;echo \"", "'"+wide()+"';echo", wide()+"\\`marker\\`", wide()+"\\$(marker)", "\""+wide()+"\\$(marker)\"", "\""+wide()+"\\`marker\\`\"", wide()+"'\\;marker;'",
		"$'"+wide()+"\\';marker;echo \\''", wide()+"\\\nmarker", "{"+wide()+"\\,marker}", wide()+"\\&marker", wide()+"\\ marker", "-x "+wide())
	line := set + g.pick("echo ", "echo x", "cat ", "printf ", "echo a ") + text
	if strings.HasPrefix(set, "for") {
		line += "; done"
	}
	if g.r.IntN(6) == 0 {
		line = g.pick("bash -c ", "sh -c ", "eval ", "env "+name+"="+value+" bash -c ") + "'" + strings.ReplaceAll(line, "'", "") + "'"
	}
	return line
}

// braces generates a word whose braces expand to roughly the given words.
func (g *lineMaker) braces(words ...string) string {
	out := ""
	for _, w := range words {
		i := g.r.IntN(len(w) + 1)
		switch g.r.IntN(8) {
		case 0:
			w = g.quote(w[:i]) + "{" + g.quote(w[i:]) + ",}"
		case 1:
			w = "{" + g.quote(w) + "," + g.pick("", "x", "{a,b}", "$x", "$(echo x)", "'a,b'") + "}"
		case 2:
			w = g.quote(w[:i]) + "{" + g.quote(w[i:]) + ".." + g.quote(w[i:]) + g.pick("", "..1", ",", "..$x") + "}"
		case 3:
			w = "{" + g.quote(w[:i]) + "}" + g.quote(w[i:])
		default:
			w = g.quote(w)
		}
		out += "," + w
	}
	out = g.pick("{", "{", "{", "{", "{{a,", "${x-", "\\{", "{{", "{x},", "{x}", "$x{", "${x}{") + out[1:] + g.pick("}", "}", "}", "}", ",}", "}}", ",x}", "\\}", "..}", "}{,}", "{}}")
	return out
}

// quote quotes a text, completely, partly or not at all, in one of the ways of
// shells.
func (g *lineMaker) quote(text string) string {
	i := g.r.IntN(len(text) + 1)
	switch single := "'" + text + "'"; g.r.IntN(8) {
	case 0, 1:
		return single
	case 2:
		return "\"" + text + "\""
	case 3:
		return text[:i] + "'" + text[i:] + "'"
	case 4:
		return "'" + text[:i] + "'" + text[i:]
	case 5:
		return "$" + single
	case 6:
		if i < len(text) {
			return text[:i] + "\\" + text[i:]
		}
	}
	return text
}

// evaluated generates text that would run the marker, and a command that may
// evaluate it.
func (g *lineMaker) evaluated() string {
	text := g.pick("'$(marker)'", "'a[$(marker)]'", "'a[`marker`]'", "marker", "'marker'", "'x;marker'", "\"a[\\$(marker)]\"", "a[\\`marker\\`]", "'$'", "'(marker)]'", "'a[$'")
	hold := g.pick("x="+text+"; ", "x="+text+" && ", "export x="+text+"; ", "for x in "+text+"; do ", "read x <<< "+text+"; ", "set -- "+text+"; ", "x="+text+" ", "y="+text+"; x=$y; ",
		"x=(1 "+text+"); ", "x="+text+"; y='(marker)]'; x=$x$y; ", ": ${x:="+text+"}; ", "x() { ", "printf -v x %s "+text+"; ", "x=$(echo "+text+"); ", "case x in x) x="+text+";; esac; ")
	use := g.pick("echo $((x))", "echo ${a[x]}", "echo ${a:x}", "echo ${x@P}", "echo \"${x@P}\"", "echo ${!x}", "((x))", "let x", "[[ x -eq 1 ]]", "[[ -v $x ]]", "declare -i y=x", "declare -a y=\"($x)\"", "test -v \"$x\"",
		"$x", "\"$x\"", "eval $x", "eval \"$x\"", "echo $(($1))", "echo \"$1\" $((1+$1))", "printf -v \"$x\" 1", "unset \"$x\"", "for ((;x;)); do break; done", "a[x]=1", "echo $x", "bash -c 'echo $((x))'",
		"bash -c \"$x\"", "sh -c $x", "env $x", "env -S \"$x\"", "xargs $x", "trap \"$x\" 0", "alias y=\"$x\"", "PS4=$x; set -x; echo", "echo ${x[$(echo 1)]}", "echo ${#x[x]}", "echo ${x[@]:x}", "wait -p \"$x\"")
	end := ""
	switch {
	case strings.HasPrefix(hold, "for"):
		end = "; done"
	case strings.HasPrefix(hold, "x()"):
		end = "; }; x " + text
	}
	return hold + use + end
}

func (g *lineMaker) list() string {
	g.depth++
	defer func() { g.depth-- }()
	out := g.command()
	for g.r.IntN(3) == 0 {
		out += g.pick("; ", " && ", " || ", " | ", "\n", " & ", " |& ", ";") + g.command()
	}
	return out
}

func (g *lineMaker) command() string {
	if g.depth > 4 {
		return "echo x"
	}
	switch g.r.IntN(17) {
	case 7:
		return g.wrapped()
	case 0:
		return "(" + g.list() + ")"
	case 1:
		return "{ " + g.list() + "; }"
	case 2:
		return "if " + g.list() + "; then " + g.list() + "; fi"
	case 3:
		return "case " + g.word() + " in " + g.pick("(x)", "x)", "*)") + " " + g.list() + ";; esac"
	case 4:
		d := g.pick("E", "'E'", "\"E\"", "E\"\"", "\\E", "E.x", "-E", "$E")
		return "cat <<" + d + g.pick("", " | cat", "; echo "+g.word()) + "\n" + g.word() + "\n" + g.pick("", g.word()+"\n") + "E\n" + g.list()
	case 5:
		return "[[ " + g.word() + g.pick(" == ", " -eq ", " && ", " =~ ") + g.word() + " ]]"
	case 6:
		return g.pick("marker", "env marker", "x=1 marker", "! marker")
	}
	out := g.pick("echo", "cat", "printf %s", "test", "sort", "git log", "true") + " " + g.word()
	for g.r.IntN(2) == 0 {
		out += " " + g.word()
	}
	return out + g.pick("", "", "", " 2>&1", " >/dev/null", " < "+g.word(), " <<< "+g.word(), " # "+g.word())
}

func (g *lineMaker) word() string {
	out := g.piece()
	for g.r.IntN(2) == 0 {
		out += g.piece()
	}
	return out
}

func (g *lineMaker) piece() string {
	g.depth++
	defer func() { g.depth-- }()
	if g.depth > 6 {
		return "x"
	}
	switch g.r.IntN(21) {
	case 20:
		return g.braces(g.piece(), "marker")
	case 0:
		return "\"" + g.piece() + g.pick("", " ", g.piece()) + "\""
	case 1:
		return "'" + g.pick("$(marker)", "`marker`", "x", "a b", "\"") + "'"
	case 2:
		return "$(" + g.list() + ")"
	case 3:
		return "`" + g.pick(g.list(), "echo marker", "echo x") + "`"
	case 4:
		return "${" + g.pick("x", "PATH", "a[0]", "#x", "@", "1") + g.pick("", ":-", "#", "%%", "/", "/a/", ":", ":+", "-", "^") + g.pick("", "x", "1", g.piece()) + "}"
	case 5:
		return "$((" + g.pick("1", "x", g.piece()) + g.pick("", "+1", "*2", "<1", "?1:2") + "))"
	case 6:
		return g.pick("<(", ">(") + g.list() + ")"
	case 7:
		return g.pick("\\", "\\\n", "\\'", "\\\"", "\\$", "\\`", "\\\\")
	case 8:
		return g.pick("$'", "$\"") + g.pick("x", "\\'", g.piece()) + g.pick("'", "\"")
	case 9:
		return g.pick("a[", "{a,", "{", "@(", "!(", "~", "*", "{"+g.piece()+",", "{x..") + g.piece() + g.pick("]", "}", ")", "")
	case 10:
		return g.pick("#", " #", "\n", "\t", " ; ", "=", "+=")
	}
	return g.pick("x", "a", "-n", "$x", "\"$x\"", "'a b'", "\"a b\"", "a.txt", "1", "'$(marker)'", `\$x`, "\"\\`marker\\`\"", "marker", "$(echo marker)", "${x:-y}", "$#", "$?", "--", "%s")
}
