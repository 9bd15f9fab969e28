package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// Method is a request that a host may make. Create it with [NewMethod].
type Method struct {
	Name string
	// Params and Result are the types of its messages.
	Params, Result reflect.Type
	// Calls is set if it calls tools: it has a place in the line of calls, which it leaves
	// with [Request.Leave], and is canceled at the end of the input.
	Calls bool
	// Arrive is called when the request arrives, before any later one is read. It returns
	// what is in [Request.Arrived], and what to call when the request is over. May be nil.
	Arrive func() (arrived any, over func())

	run func(context.Context, *Request, json.RawMessage) (any, error)
}

// NewMethod returns the method that run carries out. The params must be a struct; members
// without omitempty or omitzero are required, and others than those of the struct are
// refused. An error that is an [*Error] is the answer; of others the server's
// Options.ErrorData says more.
func NewMethod[P, R any](name string, run func(context.Context, *Request, P) (R, error)) Method {
	known := members(reflect.TypeFor[P]())
	return Method{Name: name, Params: reflect.TypeFor[P](), Result: reflect.TypeFor[R](), run: func(ctx context.Context, r *Request, raw json.RawMessage) (any, error) {
		var params P
		if err := decode(raw, known, &params); err != nil {
			return nil, &Error{Code: CodeInvalidParams, Message: fmt.Sprintf("params of %s: %s", name, err)}
		}
		return run(ctx, r, params)
	}}
}

// decode decodes an object into a struct with these members, whose names must be exact.
func decode(raw json.RawMessage, known map[string]bool, v any) error {
	if raw == nil {
		raw = json.RawMessage("{}")
	}
	if kind := jsonx.KindOf(raw); kind != jsonx.Object {
		return fmt.Errorf("must be an object, not %s", kind)
	}
	var given []string
	for name := range jsonx.Members(raw) {
		switch _, ok := known[name]; {
		case !ok:
			return fmt.Errorf("unknown member %q", name)
		case slices.Contains(given, name):
			return fmt.Errorf("the member %q is given twice", name)
		}
		given = append(given, name)
	}
	for name, required := range known {
		if required && !slices.Contains(given, name) {
			return fmt.Errorf("the member %q is missing", name)
		}
	}
	return jsonx.Unmarshal(raw, v)
}

// members maps the names of a struct's members to whether each is required.
func members(t reflect.Type) map[string]bool {
	all := map[string]bool{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && f.IsExported() {
			all[name] = !strings.Contains(options, "omit")
		}
	}
	return all
}
