package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// decodeKnown decodes JSON that holds no other keys than v has. The error says
// what is wrong without the name of the package that found it.
func decodeKnown(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}
