package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	yaml "github.com/pb33f/go-yaml"
	"github.com/pb33f/libopenapi"
	"github.com/pb33f/libopenapi/datamodel"
	v2 "github.com/pb33f/libopenapi/datamodel/high/v2"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"
)

// document is a line of documents.txt.
type document struct {
	name, file string
	prism      bool
	size       int64
}

// readDocuments reads the list. The files are absolute paths afterwards.
func readDocuments(ctx context.Context, path string) ([]document, error) {
	module, err := exec.CommandContext(ctx, "go", "list",
		"-m", "-f", "{{.Dir}}", "github.com/pb33f/libopenapi").Output()
	if err != nil {
		return nil, fmt.Errorf("finding the judge's module: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []document
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || fields[0] == "#" {
			continue
		}
		d := document{name: fields[0], prism: slices.Contains(fields, "prism")}
		kind, rest, _ := strings.Cut(fields[1], ":")
		switch kind {
		case "npm":
			if d.file, err = filepath.Abs(filepath.Join("node_modules", rest)); err != nil {
				return nil, err
			}
		case "go":
			d.file = filepath.Join(strings.TrimSpace(string(module)), rest)
		}
		info, err := os.Stat(d.file)
		if err != nil {
			return nil, err
		}
		d.size = info.Size()
		out = append(out, d)
	}
	return out, lines.Err()
}

// operation is what both readers must agree on.
type operation struct {
	Method, Path, ID string
	Params           []param
	HasBody          bool
}

type param struct {
	Name, In string
	Required bool
}

// scheme is a security scheme: Kind is bearer, basic or apiKey.
type scheme struct{ Kind, Name, In string }

// model is what the judge, a library that has nothing to do with toolreg, reads.
type model struct {
	Version    string
	Operations []operation
	Schemes    []scheme
}

// judged reads the document. Errors of the judge about single parts come with the model.
func (d document) judged() (model, error) {
	data, err := os.ReadFile(d.file)
	if err != nil {
		return model{}, err
	}
	doc, err := libopenapi.NewDocumentWithConfiguration(data, &datamodel.DocumentConfiguration{
		Logger: slog.New(slog.DiscardHandler), AllowFileReferences: true,
		BasePath: filepath.Dir(d.file), SpecFilePath: d.file, SkipCircularReferenceCheck: true,
	})
	if err != nil {
		return model{}, err
	}
	defer doc.Release()
	if doc.GetSpecInfo().SpecFormat == datamodel.OAS2 {
		built, err := doc.BuildV2Model()
		if built == nil || built.Model.Paths == nil {
			return counted(data, doc.GetVersion()), cmp.Or(err, errors.New("no model"))
		}
		return readV2(&built.Model), err
	}
	built, err := doc.BuildV3Model()
	if built == nil || built.Model.Paths == nil {
		return counted(data, doc.GetVersion()), cmp.Or(err, errors.New("no model"))
	}
	m := readV3(&built.Model)
	m.Version = doc.GetVersion()
	return m, err
}

// counted returns the operations of a document for which the judge makes no model, because
// of a missing reference for instance, without what is inside of them.
func counted(data []byte, version string) model {
	m := model{Version: version}
	var doc struct {
		Paths map[string]map[string]any `yaml:"paths"`
	}
	if yaml.Unmarshal(data, &doc) != nil {
		return m
	}
	for path, item := range doc.Paths {
		for method := range item {
			if slices.Contains([]string{"get", "put", "post", "delete", "options", "head", "patch", "trace"}, method) {
				m.Operations = append(m.Operations, operation{Method: strings.ToUpper(method), Path: path})
			}
		}
	}
	return m
}

func readV3(doc *v3.Document) model {
	var m model
	if doc.Components != nil {
		for _, s := range doc.Components.SecuritySchemes.FromOldest() {
			m.Schemes = append(m.Schemes, schemeOf(s.Type, s.Scheme, s.Name, s.In))
		}
	}
	if doc.Paths == nil {
		return m
	}
	for path, item := range doc.Paths.PathItems.FromOldest() {
		for method, op := range item.GetOperations().FromOldest() {
			o := operation{Method: strings.ToUpper(method), Path: path, ID: op.OperationId}
			o.Params = joined(paramsV3(item.Parameters), paramsV3(op.Parameters))
			o.HasBody = op.RequestBody != nil
			m.Operations = append(m.Operations, o)
		}
	}
	return m
}

func paramsV3(params []*v3.Parameter) []param {
	var out []param
	for _, p := range params {
		if p != nil {
			out = append(out, param{p.Name, p.In, p.Required != nil && *p.Required || p.In == "path"})
		}
	}
	return out
}

// joined puts the params of an operation over those of its path.
func joined(shared, own []param) []param {
	shared = slices.DeleteFunc(shared, func(p param) bool {
		return slices.ContainsFunc(own, func(q param) bool { return p.Name == q.Name && p.In == q.In })
	})
	return append(shared, own...)
}

func readV2(doc *v2.Swagger) model {
	m := model{Version: doc.Swagger}
	if doc.SecurityDefinitions != nil {
		for _, s := range doc.SecurityDefinitions.Definitions.FromOldest() {
			m.Schemes = append(m.Schemes, schemeOf(s.Type, "", s.Name, s.In))
		}
	}
	if doc.Paths == nil {
		return m
	}
	for path, item := range doc.Paths.PathItems.FromOldest() {
		for method, op := range item.GetOperations().FromOldest() {
			o := operation{Method: strings.ToUpper(method), Path: path, ID: op.OperationId}
			for _, p := range joined(paramsV2(item.Parameters), paramsV2(op.Parameters)) {
				o.HasBody = o.HasBody || p.In == "body" || p.In == "formData"
				if p.In != "body" {
					o.Params = append(o.Params, p)
				}
			}
			m.Operations = append(m.Operations, o)
		}
	}
	return m
}

func paramsV2(params []*v2.Parameter) []param {
	var out []param
	for _, p := range params {
		if p != nil {
			out = append(out, param{p.Name, p.In, p.Required != nil && *p.Required || p.In == "path"})
		}
	}
	return out
}

func schemeOf(kind, scheme_, name, in string) scheme {
	switch {
	case kind == "apiKey":
		return scheme{"apiKey", name, in}
	case kind == "basic" || kind == "http" && strings.EqualFold(scheme_, "basic"):
		return scheme{Kind: "basic"}
	}
	return scheme{Kind: "bearer"}
}

// auth returns settings with credentials for the schemes. Of those that use the header
// Authorization only the first is given.
func auth(schemes []scheme) []any {
	var out []any
	seen := map[scheme]bool{}
	authorized := false
	for _, s := range schemes {
		if seen[s] {
			continue
		}
		seen[s] = true
		if s.Kind == "apiKey" && strings.EqualFold(s.Name, "Authorization") {
			s.Kind = "bearer"
		}
		switch {
		case s.Kind == "bearer" && !authorized:
			out, authorized = append(out, map[string]any{"bearer": "key-of-the-harness"}), true
		case s.Kind == "basic" && !authorized:
			out, authorized = append(out,
				map[string]any{"basic": map[string]any{"username": "ada", "password": "password-of-the-harness"}}), true
		case s.Kind == "apiKey":
			out = append(out,
				map[string]any{"apiKey": map[string]any{"in": s.In, "name": s.Name, "value": "key-of-the-harness"}})
		}
	}
	return out
}

// compare returns what the judge reads otherwise than toolreg. Operations without an id are
// not compared, nor are documents of which the judge makes no model.
func compare(operations []operation, tools []tool) []string {
	byID := map[string]tool{}
	for _, t := range tools {
		byID[t.ServerTool] = t
	}
	var out []string
	seen := map[string]bool{}
	for _, o := range operations {
		t, ok := byID[o.ID]
		if !ok || o.ID == "" || seen[o.ID] {
			continue // quarantined; or the id is there twice
		}
		seen[o.ID] = true
		var schema struct {
			Properties map[string]json.RawMessage
			Required   []string
		}
		if err := json.Unmarshal(t.InputSchema, &schema); err != nil {
			out = append(out, fmt.Sprintf("%s: %v", o.ID, err))
			continue
		}
		known := 0
		for _, p := range o.Params {
			name := p.In + "_" + p.Name
			if _, ok := schema.Properties[name]; !ok {
				name = p.Name
			}
			_, ok := schema.Properties[name]
			switch {
			case !plainName.MatchString(p.Name):
				known++ // has another name in the tool
			case p.In == "header" && slices.Contains(ownHeaders, strings.ToLower(p.Name)):
				if ok {
					out = append(out, fmt.Sprintf("%s: header %s is a param", o.ID, p.Name))
				}
			case !ok:
				out = append(out, fmt.Sprintf("%s: no param %s in %s", o.ID, p.Name, p.In))
			case slices.Contains(schema.Required, name) != p.Required:
				out = append(out, fmt.Sprintf("%s: %s: required is %v for the judge", o.ID, p.Name, p.Required))
				fallthrough
			default:
				known++
			}
		}
		if !o.HasBody && len(schema.Properties) > known {
			out = append(out, fmt.Sprintf("%s: %d params, but the judge reads %d and no body",
				o.ID, len(schema.Properties), known))
		}
	}
	return out
}

// plainName matches the names that every provider accepts.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// ownHeaders are never params.
var ownHeaders = []string{"accept", "content-type", "authorization",
	"host", "cookie", "content-length", "transfer-encoding", "connection"}
