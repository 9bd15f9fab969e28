package lint

import (
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider"
)

// declaredSchema returns the schema of params in a declaration, and its key. It
// returns nil for text formats and if there is no declaration.
func declaredSchema(f provider.Format, data []byte) (schema *jsonx.Value, key string) {
	if f.Text {
		return nil, ""
	}
	isMember := f.Name == "json-schema" // a key with its value
	if isMember {
		data = slices.Concat([]byte("{"), data, []byte("}"))
	}
	n, err := jsonx.Parse(data, jsonx.Options{})
	if err != nil {
		return nil, ""
	}
	if isMember && len(n.Members) == 1 {
		return n.Members[0].Value, ""
	}
	return schemaIn(n)
}

// schemaIn returns the schema in a declaration of any format.
func schemaIn(n *jsonx.Value) (schema *jsonx.Value, key string) {
	for _, wrapper := range []string{"function", "toolSpec"} {
		if inner := n.Get(wrapper); inner != nil {
			n = inner
		}
	}
	if schema := n.Get("inputSchema").Get("json"); schema != nil {
		return schema, "json"
	}
	for _, key := range []string{"parameters", "parametersJsonSchema", "input_schema", "inputSchema"} {
		if schema := n.Get(key); schema != nil {
			return schema, key
		}
	}
	return nil, ""
}
