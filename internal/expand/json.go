package expand

import (
	"bytes"
	"encoding/json"
)

// JSON applies expand to every string value of a JSON document.
func JSON(raw json.RawMessage, expand func(string) (string, error)) (json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	v, err := eachValue(v, expand)
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

func eachValue(v any, expand func(string) (string, error)) (any, error) {
	var err error
	switch v := v.(type) {
	case string:
		return expand(v)
	case []any:
		for i := range v {
			if v[i], err = eachValue(v[i], expand); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k := range v {
			if v[k], err = eachValue(v[k], expand); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}
