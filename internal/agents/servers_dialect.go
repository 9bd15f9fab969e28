package agents

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
)

// dialect converts a string in a program's settings to one with the same meaning in
// toolreg's. secret is set if the result may be a reference (env, headers).
type dialect func(s string, secret bool) (string, error)

// plain is the dialect of programs that expand nothing.
func plain(s string, secret bool) (string, error) {
	return guard(expand.Escape(s), secret), nil
}

// guard prevents text from being interpreted as a reference.
func guard(s string, secret bool) string {
	if secret && (strings.HasPrefix(s, "env:") || strings.HasPrefix(s, "file:") || strings.HasPrefix(s, "cmd:")) {
		return "${}" + s
	}
	return s
}

// shellLike is the dialect of programs that expand $NAME and ${NAME} as toolreg
// does.
func shellLike(s string, secret bool) (string, error) { return guard(s, secret), nil }

// braces is the dialect of programs that expand only ${NAME} and ${NAME:-default}.
func braces(s string, secret bool) (string, error) {
	out, err := replace(s, "${", func(inner string) (string, error) {
		name, def, hasDefault := strings.Cut(inner, ":-")
		switch {
		case !expand.IsName(name):
			return "$${" + expand.Escape(inner) + "}", nil
		case hasDefault:
			return "${" + name + ":-" + expand.Escape(def) + "}", nil
		}
		return "${" + name + "}", nil
	})
	return guard(out, secret), err
}

// mcporterLike is the dialect of mcporter: that of braces, and $env:NAME as a whole value.
func mcporterLike(s string, secret bool) (string, error) {
	if name, ok := strings.CutPrefix(s, "$env:"); ok && expand.IsName(name) {
		return "${" + name + "}", nil
	}
	return braces(s, secret)
}

// editorLike is the dialect of editors, whose variables are ${env:NAME},
// ${workspaceFolder} and the like.
func editorLike(root string) dialect {
	return func(s string, secret bool) (string, error) {
		if path, ok := strings.CutPrefix(s, "${file:"); ok && secret &&
			strings.HasSuffix(path, "}") && !strings.Contains(path, "$") {
			return fileReference(strings.TrimSuffix(path, "}"))
		}
		out, err := replace(s, "${", func(inner string) (string, error) { return editorVariable(root, inner) })
		return guard(out, secret), err
	}
}

func editorVariable(root, inner string) (string, error) {
	kind, name, _ := strings.Cut(inner, ":")
	switch {
	case kind == "env" && expand.IsName(name):
		return "${" + name + ":-}", nil // the editors treat an unset variable as empty
	case inner == "workspaceFolder":
		return expand.Escape(root), nil
	case inner == "workspaceFolderBasename":
		return expand.Escape(filepath.Base(root)), nil
	case inner == "userHome":
		return "${HOME}", nil
	case inner == "pathSeparator" || inner == "/":
		return string(filepath.Separator), nil
	case kind == "input":
		return "", fmt.Errorf("it asks for the input %q, which only the editor can give; add the server with `toolreg servers add` and env:NAME", name)
	}
	return "", fmt.Errorf("its variable ${%s} is not supported", inner)
}

// opencodeLike is the dialect with {env:NAME} and {file:PATH}.
func opencodeLike(s string, secret bool) (string, error) {
	if path, ok := strings.CutPrefix(s, "{file:"); ok && secret &&
		strings.Count(s, "}") == 1 && strings.HasSuffix(path, "}") {
		return fileReference(strings.TrimSuffix(path, "}"))
	}
	out, err := replace(s, "{", func(inner string) (string, error) {
		kind, name, _ := strings.Cut(inner, ":")
		switch {
		case kind == "env" && expand.IsName(name):
			return "${" + name + ":-}", nil
		case kind == "file":
			return "", errors.New("a {file:…} inside other text is not supported")
		}
		return "{" + expand.Escape(inner) + "}", nil
	})
	return guard(out, secret), err
}

func fileReference(path string) (string, error) {
	path = expand.Escape(path)
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return "file:${HOME}/" + rest, nil
	}
	if !filepath.IsAbs(path) {
		return "", errors.New("its secret file has a relative path")
	}
	return "file:" + path, nil
}

// replace replaces each text between open and a brace by the result of variable, and
// escapes the dollar signs in the rest. If the brace is missing, open is ordinary text.
func replace(s, open string, variable func(inner string) (string, error)) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, open)
		inner, after, closed := strings.Cut(rest, "}")
		if !found || !closed {
			b.WriteString(expand.Escape(s))
			return b.String(), nil
		}
		b.WriteString(expand.Escape(before))
		value, err := variable(inner)
		if err != nil {
			return "", err
		}
		b.WriteString(value)
		s = after
	}
}
