package script

import (
	"slices"
	"strings"
)

// Most scripts are written by models that know Python. Where Starlark refuses what Python
// takes, the error says what to write instead.

const noModules = "there are no other modules; json and math are there without import"

// answerSyntax returns the message of an error in the text of a script. word is the line
// from the place of the error on.
func answerSyntax(line, word, message string) string {
	begins := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool {
			rest, ok := strings.CutPrefix(word, w)
			return ok && (rest == "" || !isWordByte(rest[0]))
		})
	}
	got := func(tokens ...string) bool {
		return slices.ContainsFunc(tokens,
			func(token string) bool { return strings.HasPrefix(message, "got "+token+",") })
	}
	name, isUndefined := strings.CutPrefix(message, "undefined: ")
	switch {
	case isUndefined:
		return answerName(name, word, message)
	case strings.Contains(message, "while"), begins("while"):
		return "Starlark has no while loops here; use for x in range(n)"
	case begins("try", "except", "finally", "raise"):
		return "Starlark has no exceptions; call(name, params) returns an error instead of ending the script, and fail(text) ends it"
	case strings.HasPrefix(word, "**"), strings.Contains(message, "'**'"):
		if strings.Contains(line, "{**") {
			return "Starlark has no ** in dicts; use a | b"
		}
		return "Starlark has no operator **; multiply, or use math.pow(x, y)"
	case begins("import", "from"):
		return noModules
	case strings.Contains(message, "string literal") && hasFString(line):
		return `Starlark has no f-strings; use "…%s…" % x or "…{}…".format(x)`
	case strings.Contains(message, "string literal"):
		return message + "; Starlark does not join strings side by side: use +"
	case got("is"), strings.Contains(message, "without else") && strings.Contains(line, " is "):
		return "Starlark has no operator is; use == or !=, as in x == None"
	case got("for"):
		return "Starlark has no generator expressions; use a list, [x for x in items]"
	case begins("assert"), strings.HasPrefix(strings.TrimSpace(line), "assert "):
		return "Starlark has no assert; use if and fail(text)"
	case strings.HasPrefix(strings.TrimSpace(line), "match ") && strings.HasSuffix(strings.TrimSpace(line), ":"):
		return "Starlark has no match; use if and elif"
	case got("newline") &&
		(strings.HasSuffix(strings.TrimSpace(line), "++") || strings.HasSuffix(strings.TrimSpace(line), "--")):
		return "Starlark has no ++ and --; use x += 1"
	case begins("global", "nonlocal"):
		return "Starlark has no global and nonlocal; return the value, or change a list or dict"
	case begins("del"):
		return "Starlark has no del; use d.pop(key) or list.pop(i)"
	case begins("class"):
		return "Starlark has no classes; use functions and dicts"
	case begins("with"):
		return "Starlark has no with and no files; use tools.read_file"
	case begins("async", "await"):
		return "Starlark has no async; use parallel(f, list)"
	case begins("yield"):
		return "Starlark has no generators; return a list"
	case strings.HasPrefix(word, ":=") || strings.Contains(line, ":=") && got("':'"):
		return "Starlark has no operator :=; assign in a line of its own"
	case (got("','") || got("'}'")) && strings.HasSuffix(message, "want ':'"):
		return "Starlark has no sets in braces; use set([x, y])"
	case got("':'"), got("'-'") && strings.Contains(line, "->"):
		return message + "; Starlark has no types in the text: leave them out"
	case strings.Contains(message, "does not associate"):
		return message + "; Starlark does not chain comparisons: use a < b and b < c"
	case got("'*'"):
		return message + "; Starlark has no unpacking with *: use x[0] and x[1:]"
	}
	return message
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// hasFString reports whether a line has a string with the prefix f.
func hasFString(line string) bool {
	for i := 1; i < len(line); i++ {
		if (line[i] == '"' || line[i] == '\'') && (line[i-1] == 'f' || line[i-1] == 'F') &&
			(i == 1 || strings.IndexByte(" \t(,=[{:+%r", line[i-2]) >= 0) {
			return true
		}
	}
	return false
}

// answerName returns the message for a name that is not defined.
func answerName(name, word, message string) string {
	instead := ""
	name, similar, _ := strings.Cut(name, " ")
	switch name {
	case "null", "nil", "undefined", "NULL":
		instead = "use None"
	case "true":
		instead = "use True"
	case "false":
		instead = "use False"
	case "sum":
		instead = "add in a loop"
	case "isinstance", "issubclass":
		instead = `use type(x) == "string" (or "int", "float", "list", "dict", "bool")`
	case "round":
		instead = "use math.round(x)"
	case "pow":
		instead = "use math.pow(x, y)"
	case "open", "os", "pathlib", "Path", "glob", "shutil":
		instead = "a script has no files; use tools such as tools.read_file"
	case "requests", "urllib", "httpx":
		instead = "a script has no network; use tools such as tools.web_fetch"
	case "subprocess":
		instead = "a script starts no programs; use tools.run_shell_command"
	case "map", "filter":
		instead = "use [f(x) for x in items if g(x)]"
	case "re", "datetime", "time", "sys", "random", "itertools", "functools", "collections":
		instead = noModules
	case "Exception", "ValueError", "KeyError", "TypeError", "RuntimeError":
		instead = "use fail(text)"
	case "__name__":
		instead = "a script has no main; write the lines at the top"
	case "input":
		instead = "use params"
	default:
		if similar != "" || !strings.HasPrefix(word, name+"(") {
			return message
		}
		instead = "a tool is called as tools.NAME(param = value)"
	}
	return message + "; " + instead
}

// answerRun returns the message of an error of a script that ran.
func answerRun(message string) string {
	instead := ""
	has := func(s string) bool { return strings.Contains(message, s) }
	switch {
	case strings.HasPrefix(message, "function main "):
		instead = "it gets all params in one argument, as in def main(params)"
	case has("module has no .dumps"):
		instead = "use json.encode(value)"
	case has("module has no .loads"):
		instead = "use json.decode(text)"
	case has("module has no .load "), has("module has no .dump "):
		instead = "a script has no files; use json.encode, json.decode and tools.read_file"
	case strings.HasPrefix(message, "unknown conversion %"), has("format spec features not supported"):
		instead = "Starlark has no precision and width; round first, as in str(math.round(x * 100) / 100)"
	case has("list has no .sort "):
		instead = "use sorted(list, key=f, reverse=True)"
	case has(" called recursively"):
		instead = "Starlark has no recursion; use a loop over range(n) and a list of what is left"
	case strings.HasPrefix(message, "enumerate: unexpected keyword"):
		instead = "use enumerate(x, 1)"
	case strings.HasPrefix(message, "print: unexpected keyword"):
		instead = "print takes only sep; join the texts with +"
	case has("list has no .copy "):
		instead = "use list(x)"
	case has("dict has no .copy "):
		instead = "use dict(x)"
	case has("dict has no ."):
		instead = "use d[key] or d.get(key)"
	case has("unknown binary op: string + "), has("unknown binary op: ") && strings.HasSuffix(message, " + string"):
		instead = "use str(x)"
	default:
		return message
	}
	return message + "; " + instead
}
