package shell

import (
	"regexp"
	"strings"
	"testing"
)

// Each token of tables.txt is an attribute, a group that exists, or an option of a
// known kind, and no table is there twice: a mistyped line could allow more than it
// says.
func TestTablesAreWellFormed(t *testing.T) {
	option := regexp.MustCompile(`^(-|--?[A-Za-z0-9#][A-Za-z0-9._-]*)([,/](-|[+:]|[a-z]+&[a-z]+|--?[A-Za-z0-9#][A-Za-z0-9._-]*))*(==|[=?])?[#@lhfsc>.|$:!~^*%-]?$`)
	attribute := regexp.MustCompile(`^@(any|named=[a-z]+|safe|deny|whole|operands|lead|stdin|prefix|versions|local|writes|exec|wraps|passes|runs|package|aliases|plus|folder|vague|assigns|joins|shell|extra|writes=(all|last|moved)|max=[0-9]|skip=[0-9]+|script=(sed|awk)|into=-C(,--[a-z]+)?|(ops|first|alias|like)=\S+)$`)
	for path, line := range tables.Get().lines {
		if path == "$variables" || path == "$local" {
			continue // see TestVariables
		}
		for token := range strings.FieldsSeq(line) {
			switch token[0] {
			case '@':
				if !attribute.MatchString(token) {
					t.Errorf("%s: attribute %s", path, token)
				}
			case '$':
				if !hasKey(tables.Get().lines, token) {
					t.Errorf("%s: no group %s", path, token)
				}
			default:
				if !option.MatchString(token) {
					t.Errorf("%s: option %s", path, token)
				}
			}
		}
	}
	seen := map[string]bool{}
	for line := range strings.Lines(tablesText) {
		left, _, _ := strings.Cut(line, ": ")
		if line[0] == '#' || line[0] == ' ' || line[0] == '\n' {
			continue
		}
		words := strings.Fields(left)
		for name := range strings.SplitSeq(words[len(words)-1], ",") {
			path := strings.Join(append(words[:len(words)-1:len(words)-1], name), " ")
			if seen[path] {
				t.Errorf("two lines for %s", path)
			}
			seen[path] = true
		}
	}
}

// A table is read as its line says.
func TestTableOptions(t *testing.T) {
	for line, want := range map[string]string{
		"git log -5 --oneline":             "",
		"git log --output=x":               "--output=x is not among the options of git log that are known to be harmless",
		"sort -o x":                        "sort -o writes a file",
		"sort -o -":                        "sort -o writes a file",
		"shuf -o -":                        "shuf -o writes a file",
		"shuf -o /dev/null":                "",
		"iconv -o - f":                     "",
		"iconv -o f":                       "iconv -o writes a file",
		"jq --arg a":                       "jq --arg lacks its value",
		"head -n x f":                      "the value of head -n is not known to be harmless",
		"head -n=5 f":                      "the value of head -n is not known to be harmless",
		"git diff -M":                      "",
		"git diff -Mx":                     "the value of git diff -M is not known to be harmless",
		"mv y \"a${z:-b}\"":                "what mv writes is not known before it runs",
		"curl --url @x":                    "the value of curl --url is not known to be harmless",
		"pytest --cov-report=term-missing": "",
		"pytest --cov-report=xml:../x":     "the value of pytest --cov-report is not known to be harmless",
		"pytest --cov-report=xml:.envrc":   "the value of pytest --cov-report is not known to be harmless",
		"uniq a b":                         "uniq is known with 1 operands at most",
		"git push origin +main":            "the operand +main of git push is not known to be harmless",
		"git push origin :main":            "the operand :main of git push is not known to be harmless",
		"git push origin a:b":              "",
		`git push origin "b/$x" c*`:        "",
		`git push origin "+$x"`:            "the operand + of git push is not known to be harmless",
		`git push "origin$x"`:              "the operand origin of git push is not known to be harmless",
		"pytest tests/test_*.py":           "",
		`gcc "a$x.c"`:                      "the operand a.c of gcc is not known to be harmless",
		"git push elsewhere":               "the operand elsewhere of git push is not known to be harmless",
		"git log --format=x --":            "",
		"sed 'e x' f":                      "the sed script may run commands or write files",
		"sed \"s/a/$b/\" f":                "the sed script may run commands or write files",
		"sed -e 'e x' p":                   "the sed script may run commands or write files",
		"sed s/a/b/ f":                     "",
		"sort -output f":                   "sort -o writes a file",
		"ls -- -l":                         "-l behind -- may be an option of what ls runs",
		"'$log' -5":                        "the arguments of $log are not known to be harmless",
		"'git log' -5":                     "the arguments of git log are not known to be harmless",
		".exe":                             "the arguments of .exe are not known to be harmless",
		"mytool":                           "the arguments of mytool are not known to be harmless",
	} {
		why, _, _, _ := harmless(command(t, line).words)
		if why != want {
			t.Errorf("%s: %q, want %q", line, why, want)
		}
	}
}

// A rule that denies a spelling of an option denies the others, and one that allows it covers the option alone.
func TestSpellingsOfOptions(t *testing.T) {
	pairs := 0
	for path := range tables.Get().lines {
		if path[0] == '$' {
			continue
		}
		table := tables.Get().table[path]()
		for a := range table.names {
			for b := range table.names {
				if !strings.HasPrefix(a, "-") || !strings.ContainsAny(b, "-+:") || a == b || table.optionName(a) != table.optionName(b) {
					continue
				}
				pairs++
				c := Read(Bash, path+" "+b+" x", "").Commands[0]
				if got := c.Names(path + " " + a); got != Yes {
					t.Errorf("%s %s x names %s: %d", path, b, a, got)
				}
				if c.Begins(path+" "+a, false) {
					t.Errorf("%s %s x begins with %s", path, b, a)
				}
			}
		}
	}
	if pairs < 1000 {
		t.Errorf("%d pairs", pairs)
	}
}

// A long line is read for each of many rules, so each letter of a cluster counts once.
func TestOptionsOfLongWords(t *testing.T) {
	if names, _ := tableOf("git").optionsIn("-" + strings.Repeat("nf", 1000)); len(names) != 2 {
		t.Errorf("%d names", len(names))
	}
}
