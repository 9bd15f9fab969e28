// Package args converts the arguments of `toolreg call TOOL k=v…` to params: one
// JSON object, typed by the tool's input schema.
//
//	k=v       a string, number, boolean, list or object, according to the schema
//	k:=JSON   a JSON value
//	k=@FILE   the content of a file, k=@- that of stdin; k=@@x is the text "@x"
//	a.b=v     nests, unless the schema has a property with the dotted name
//	k=v k=w   appends if the schema has a list
//
// Arguments override the values of a base object given as JSON.
package args

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// Options are the options of [Parse].
type Options struct {
	Schema json.RawMessage // input schema of the tool; may be empty
	Base   json.RawMessage // object that the arguments override; empty means {}
	// ReadFile reads the file named after "@", which is "-" for stdin. If nil, such arguments are errors.
	ReadFile func(name string) ([]byte, error)
}

// Parse returns the params as one JSON object whose keys are in the order of
// the arguments. It does not validate them. Errors are *Error.
func Parse(arguments []string, o Options) (json.RawMessage, error) {
	base, err := registry.DecodeParams("", o.Base)
	if err != nil {
		return nil, err
	}
	root, err := jsonx.Parse(base, jsonx.Options{})
	if err != nil {
		return nil, err
	}
	if err := newTypes(o.Schema).parse(root, arguments, o); err != nil {
		return nil, err
	}
	return root.AppendTo(nil), nil
}

func (t types) parse(root *jsonx.Value, arguments []string, o Options) error {
	p := parser{
		options: o,
		types:   t,
		below:   map[string]string{},
		given:   map[string]int{},
		seen:    map[string]int{},
		lists:   map[*jsonx.Value]bool{},
	}
	for _, arg := range arguments {
		if key, _, _, err := splitArg(arg); err == nil {
			p.given[key]++
		}
	}
	for _, arg := range arguments {
		if err := p.apply(root, arg); err != nil {
			return err
		}
	}
	return nil
}

type parser struct {
	options Options
	types   types
	below   map[string]string     // the key of an argument by the keys that it is a member of
	given   map[string]int        // number of arguments per key
	seen    map[string]int        // number of those so far: a second one appends, or is an error
	lists   map[*jsonx.Value]bool // lists built by arguments
}

func (p *parser) apply(root *jsonx.Value, arg string) error {
	key, value, raw, err := splitArg(arg)
	if err != nil {
		return err
	}
	path := p.types.path(key)
	whole := strings.Join(path, "\x00")
	if member := p.below[whole]; member != "" {
		return &Error{Arg: arg, Message: fmt.Sprintf(
			"it would replace %s, which was given before; give the whole first", text.Quote(member))}
	}
	for i := 1; i < len(path); i++ {
		p.below[strings.Join(path[:i], "\x00")] = key
	}
	typ := p.types.at(path)
	given, err := p.text(arg, value, typ.file || typ.items != nil && typ.items.file)
	if err != nil {
		return err
	}
	before := p.seen[key]
	p.seen[key]++
	several := p.given[key] > 1
	isItem := typ.isList(given, several) && !raw && !typ.isWhole(given, several)
	if isItem {
		typ = typ.item(before)
	}
	v, err := p.value(arg, typ, given, raw)
	if e, ok := errors.AsType[*Error](err); ok && isItem {
		e.Message += fmt.Sprintf("; %s is a list, so each argument is one item of it, or the whole as JSON: %s:=[…]",
			text.Quote(key), key)
	}
	if err != nil {
		return err
	}
	at, err := parent(root, arg, path)
	if err != nil {
		return err
	}
	last := path[len(path)-1]
	list := at.Get(last)
	switch {
	case before > 0 && isItem && p.lists[list]:
		list.Items = append(list.Items, v)
	case before > 0:
		why := "but is not a list in the schema"
		if typ.isList("", true) || isItem {
			why = "once as a whole; give either its items or the whole"
		}
		return &Error{Arg: arg, Message: fmt.Sprintf("%s is given twice, %s", text.Quote(key), why)}
	case isItem: // replaces a list in the base
		list = jsonx.NewArray(v)
		p.lists[list] = true
		at.Set(last, list)
	default:
		at.Set(last, v)
	}
	return nil
}

// splitArg splits k=v and k:=v. JSON is refused, also where it contains a =.
func splitArg(arg string) (key, value string, raw bool, err error) {
	key, value, found := strings.Cut(arg, "=")
	if !found || strings.HasPrefix(arg, "{") {
		return "", "", false, &Error{Arg: arg, Message: "expected key=value, key:=JSON or key=@file", Usage: true}
	}
	if k, ok := strings.CutSuffix(key, ":"); ok {
		key, raw = k, true
	}
	if key == "" {
		return "", "", false, &Error{Arg: arg, Message: "the key before = is missing", Usage: true}
	}
	if !utf8.ValidString(key) {
		return "", "", false, &Error{Arg: arg, Message: "the key before = is not valid UTF-8", Usage: true}
	}
	return key, value, raw, nil
}

// text resolves "@FILE" and "@@". The content of a file for a param that is one becomes a
// data: URI, because it need not be text.
func (p *parser) text(arg, value string, asFile bool) (string, error) {
	name, isFile := strings.CutPrefix(value, "@")
	switch {
	case !utf8.ValidString(value):
		return "", &Error{Arg: arg,
			Message: "the value is not valid UTF-8; the content of a file can be given with @FILE if it is text"}
	case !isFile:
		return value, nil
	case strings.HasPrefix(name, "@"):
		return name, nil
	case p.options.ReadFile == nil || name == "":
		return "", &Error{Arg: arg, Message: "the file name after @ is missing; write @@ for a literal @", Usage: true}
	}
	data, err := p.options.ReadFile(name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w; write @@ for a literal @", err)
		}
		return "", &Error{Arg: arg, Message: err.Error(), Usage: true}
	}
	if name == "-" {
		name = "stdin"
	}
	if asFile {
		kind := cmp.Or(mime.TypeByExtension(filepath.Ext(name)), http.DetectContentType(data))
		kind, _, _ = strings.Cut(kind, ";")
		return "data:" + kind + ";name=" + url.PathEscape(filepath.Base(name)) +
			";base64," + base64.StdEncoding.EncodeToString(data), nil
	}
	if !utf8.Valid(data) {
		return "", &Error{Arg: arg, Message: name + " is not text in UTF-8", Usage: true}
	}
	return string(data), nil
}

func (p *parser) value(arg string, typ schemaType, text string, raw bool) (*jsonx.Value, error) {
	if raw {
		v, err := parseStrict(text)
		if err != nil {
			return nil, &Error{Arg: arg, Message: "the text after := is not valid JSON: " + err.Error()}
		}
		return v, nil
	}
	v, err := typ.encode(text)
	if err != nil {
		return nil, &Error{Arg: arg, Message: err.Error()}
	}
	return v, nil
}

// Error reports an argument that cannot be used. It is an error in the params
// (exit code 4) or, if Usage is set, in the syntax of the argument (exit code
// 2).
type Error struct {
	Arg     string
	Message string
	Usage   bool
}

func (e *Error) Error() string { return fmt.Sprintf("argument %s: %s", text.Quote(e.Arg), e.Message) }
