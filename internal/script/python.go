package script

import (
	"slices"
	"strings"
)

// Most scripts are written by models that know Python. For what Python allows and Starlark does
// not, the error says what to write instead.

const noModules = "there are no other modules; json and math are there without import"

// answerSyntax returns the message for a syntax error. word is the line from the position of the
// error on.
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

func hasFString(line string) bool {
	for i := 1; i < len(line); i++ {
		if (line[i] == '"' || line[i] == '\'') && (line[i-1] == 'f' || line[i-1] == 'F') &&
			(i == 1 || strings.IndexByte(" \t(,=[{:+%r", line[i-2]) >= 0) {
			return true
		}
	}
	return false
}

func answerName(name, word, message string) string {
	name, similar, _ := strings.Cut(name, " ")
	for _, known := range []struct{ names, instead string }{
		{"null nil undefined NULL", "use None"},
		{"true", "use True"},
		{"false", "use False"},
		{"sum", "add in a loop"},
		{"isinstance issubclass", `use type(x) == "string" (or "int", "float", "list", "dict", "bool")`},
		{"round", "use math.round(x)"},
		{"pow", "use math.pow(x, y)"},
		{"open os pathlib Path glob shutil", "a script has no files; use tools such as tools.read_file"},
		{"requests urllib httpx", "a script has no network; use tools such as tools.web_fetch"},
		{"subprocess", "a script starts no programs; use tools.run_shell_command"},
		{"map filter", "use [f(x) for x in items if g(x)]"},
		{"re datetime time sys random itertools functools collections", noModules},
		{"Exception ValueError KeyError TypeError RuntimeError", "use fail(text)"},
		{"__name__", "a script has no main; write the lines at the top"},
		{"input", "use params"},
	} {
		if slices.Contains(strings.Fields(known.names), name) {
			return message + "; " + known.instead
		}
	}
	if similar == "" && strings.HasPrefix(word, name+"(") {
		message += "; a tool is called as tools.NAME(param = value)"
	}
	return message
}

const (
	noFiles     = "a script has no files; use json.encode, json.decode and tools.read_file"
	noPrecision = "Starlark has no precision and width; round first, as in str(math.round(x * 100) / 100)"
)

// answerRun returns the message for a runtime error.
func answerRun(message string) string {
	if strings.HasPrefix(message, "unknown binary op: ") &&
		(strings.Contains(message, ": string + ") || strings.HasSuffix(message, " + string")) {
		return message + "; use str(x)"
	}
	for _, known := range []struct{ part, instead string }{ // ^ is the beginning of the message
		{"^function main ", "it gets all params in one argument, as in def main(params)"},
		{"module has no .dumps", "use json.encode(value)"},
		{"module has no .loads", "use json.decode(text)"},
		{"module has no .load ", noFiles},
		{"module has no .dump ", noFiles},
		{"^unknown conversion %", noPrecision},
		{"format spec features not supported", noPrecision},
		{"list has no .sort ", "use sorted(list, key=f, reverse=True)"},
		{" called recursively", "Starlark has no recursion; use a loop over range(n) and a list of what is left"},
		{"^enumerate: unexpected keyword", "use enumerate(x, 1)"},
		{"^print: unexpected keyword", "print takes only sep; join the texts with +"},
		{"list has no .copy ", "use list(x)"},
		{"dict has no .copy ", "use dict(x)"},
		{"dict has no .", "use d[key] or d.get(key)"},
	} {
		if strings.Contains("^"+message, known.part) {
			return message + "; " + known.instead
		}
	}
	return message
}
