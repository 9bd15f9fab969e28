package imports

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// dialect turns a string as a program means it into one that means the same in
// our settings. secret tells that ours may be references there (env, headers).
type dialect func(s string, secret bool) (string, error)

// plain is for programs that expand nothing.
func plain(s string, secret bool) (string, error) {
	return guard(strings.ReplaceAll(s, "$", "$$"), secret), nil
}

// guard keeps text from being taken for a reference.
func guard(s string, secret bool) string {
	if secret && (strings.HasPrefix(s, "env:") || strings.HasPrefix(s, "file:") || strings.HasPrefix(s, "cmd:")) {
		return "${}" + s
	}
	return s
}

// shellLike is for programs that expand $NAME and ${NAME} as we do.
func shellLike(s string, secret bool) (string, error) { return guard(s, secret), nil }

// braces is for programs that expand ${NAME} and ${NAME:-default} alone.
func braces(s string, secret bool) (string, error) {
	out, err := replace(s, "${", "}", func(inner string) (string, error) {
		name, def, hasDefault := strings.Cut(inner, ":-")
		switch {
		case !isName(name):
			return "$${" + strings.ReplaceAll(inner, "$", "$$") + "}", nil
		case hasDefault:
			return "${" + name + ":-" + strings.ReplaceAll(def, "$", "$$") + "}", nil
		}
		return "${" + name + "}", nil
	})
	return guard(out, secret), err
}

// editorLike is for the editors whose variables are ${env:NAME},
// ${workspaceFolder} and the like.
func editorLike(root string) dialect {
	return func(s string, secret bool) (string, error) {
		if path, ok := strings.CutPrefix(s, "${file:"); ok && secret && strings.HasSuffix(path, "}") && !strings.Contains(path, "$") {
			return fileReference(strings.TrimSuffix(path, "}"))
		}
		out, err := replace(s, "${", "}", func(inner string) (string, error) { return editorVariable(root, inner) })
		return guard(out, secret), err
	}
}

func editorVariable(root, inner string) (string, error) {
	kind, name, _ := strings.Cut(inner, ":")
	switch {
	case kind == "env" && isName(name):
		return "${" + name + "}", nil
	case inner == "workspaceFolder":
		return strings.ReplaceAll(root, "$", "$$"), nil
	case inner == "workspaceFolderBasename":
		return strings.ReplaceAll(filepath.Base(root), "$", "$$"), nil
	case inner == "userHome":
		return "${HOME}", nil
	case inner == "pathSeparator" || inner == "/":
		return string(filepath.Separator), nil
	case kind == "input":
		return "", fmt.Errorf("it asks for the input %q, which only the editor can give; set the server up with `toolreg servers add` and env:NAME", name)
	}
	return "", fmt.Errorf("its variable ${%s} means nothing here", inner)
}

// opencodeLike is for {env:NAME} and {file:PATH}.
func opencodeLike(s string, secret bool) (string, error) {
	if path, ok := strings.CutPrefix(s, "{file:"); ok && secret && strings.Count(s, "}") == 1 && strings.HasSuffix(path, "}") {
		return fileReference(strings.TrimSuffix(path, "}"))
	}
	out, err := replace(s, "{", "}", func(inner string) (string, error) {
		kind, name, _ := strings.Cut(inner, ":")
		switch {
		case kind == "env" && isName(name):
			return "${" + name + ":-}", nil
		case kind == "file":
			return "", errors.New("a {file:…} inside other text is not supported")
		}
		return "{" + strings.ReplaceAll(inner, "$", "$$") + "}", nil
	})
	return guard(out, secret), err
}

// fileReference makes our reference to a file of a program's.
func fileReference(path string) (string, error) {
	path = strings.ReplaceAll(path, "$", "$$")
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return "file:${HOME}/" + rest, nil
	}
	if !filepath.IsAbs(path) {
		return "", errors.New("its file with a secret is named by a relative path")
	}
	return "file:" + path, nil
}

// replace gives what stands between open and close to variable, and escapes the
// dollar signs of all the rest. An open one that is never closed is text.
func replace(s, open, close string, variable func(inner string) (string, error)) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, open)
		inner, after, closed := strings.Cut(rest, close)
		if !found || !closed {
			b.WriteString(strings.ReplaceAll(s, "$", "$$"))
			return b.String(), nil
		}
		b.WriteString(strings.ReplaceAll(before, "$", "$$"))
		value, err := variable(inner)
		if err != nil {
			return "", err
		}
		b.WriteString(value)
		s = after
	}
}

// isName reports whether s is the name of a variable.
func isName(s string) bool {
	for i, r := range s {
		if r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || i > 0 && r >= '0' && r <= '9' {
			continue
		}
		return false
	}
	return s != ""
}
