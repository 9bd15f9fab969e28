package complete

import (
	"cmp"
	"context"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/args"
	"github.com/toolreg/toolreg/internal/engine"
)

// Params completes arguments k=v by the schema of the tool in the first
// argument: keys, values, and files after "@".
func (c Completer) Params() cobra.CompletionFunc {
	return c.Session(func(ctx context.Context, s *engine.Session, argv []string, word string) []cobra.Completion {
		found, err := s.Tools.Find(ctx, argv[0], engine.Query{})
		if err != nil {
			return nil
		}
		return c.Arguments(args.Describe(&found.Tool.Definition), argv[1:], word)
	})
}

// Arguments completes an argument k=v; given are the arguments before it.
func (c Completer) Arguments(params []args.Param, given []string, word string) []cobra.Completion {
	key, value, hasValue := strings.Cut(word, "=")
	if hasValue {
		i := slices.IndexFunc(params, func(p args.Param) bool { return p.Name == key })
		if i < 0 {
			return c.value(args.Param{Name: key}, value)
		}
		return c.value(params[i], value)
	}
	var required, optional []cobra.Completion
	for i, p := range params {
		if p.Element || strings.ContainsFunc(p.Name, invisible) {
			continue
		}
		nested := i+1 < len(params) && strings.HasPrefix(params[i+1].Name, p.Name+".")
		repeated := !strings.HasSuffix(p.Type, "[]") && slices.ContainsFunc(given, func(arg string) bool {
			return strings.HasPrefix(arg, p.Name+"=") || strings.HasPrefix(arg, p.Name+":=")
		})
		switch c := cobra.CompletionWithDesc(p.Name+"=", describeParam(p)); {
		case nested || repeated:
		case p.Required:
			required = append(required, c)
		default:
			optional = append(optional, c)
		}
	}
	return append(required, optional...)
}

func describeParam(p args.Param) string {
	d := cmp.Or(summary(p.Description), p.Type)
	if p.Required {
		d = "required; " + d
	}
	if p.Default != "" {
		d += "; default " + p.Default
	}
	return d
}

// value completes the text after "=".
func (c Completer) value(p args.Param, value string) []cobra.Completion {
	prefix := p.Name + "="
	if from, ok := strings.CutPrefix(value, "@"); ok {
		return c.completeFiles(prefix+"@", from)
	}
	var out []cobra.Completion
	for _, v := range p.Values {
		if strings.ContainsFunc(v, invisible) {
			continue
		}
		if strings.HasPrefix(v, "@") { // @ introduces a file name
			v = "@" + v
		}
		if v == p.Default {
			out = append(out, cobra.CompletionWithDesc(prefix+v, "default"))
		} else {
			out = append(out, prefix+v)
		}
	}
	switch {
	case out != nil:
		return out
	case namesFile(p):
		return c.completeFiles(prefix, value)
	case p.Default != "" && p.Default[0] != '@':
		return []cobra.Completion{cobra.CompletionWithDesc(prefix+p.Default, "default")}
	}
	return nil
}

// namesFile reports whether a param expects the name of a file or folder,
// according to its own name.
func namesFile(p args.Param) bool {
	name := strings.ToLower(p.Name)
	return strings.HasPrefix(p.Type, "string") &&
		slices.ContainsFunc([]string{"path", "paths", "file", "files",
			"filename", "dir", "directory", "folder"}, func(end string) bool {
			return strings.HasSuffix(name, end)
		})
}

// maxListed limits how many entries of a folder are read.
const maxListed = 5000

// completeFiles completes a path inside a word, which the shell cannot do. prefix is the
// part of the word before the path.
func (c Completer) completeFiles(prefix, typed string) []cobra.Completion {
	dir, base := path.Split(typed)
	f, err := os.Open(c.Absolute(cmp.Or(dir, ".")))
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, _ := f.ReadDir(maxListed) // use the entries read before an error
	var out []cobra.Completion
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case !strings.HasPrefix(name, base), name[0] == '.' && base == "", strings.ContainsFunc(name, invisible):
			continue
		case isDir(f.Name(), entry):
			name += "/"
		}
		out = append(out, prefix+dir+name)
	}
	slices.Sort(out)
	return out
}

// isDir reports whether an entry is a folder or a link to one.
func isDir(in string, entry os.DirEntry) bool {
	if entry.Type()&os.ModeSymlink == 0 {
		return entry.IsDir()
	}
	info, err := os.Stat(path.Join(in, entry.Name()))
	return err == nil && info.IsDir()
}
