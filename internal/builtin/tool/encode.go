package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// EncodeParams encodes params for a revised call, without escaping HTML
// characters.
func EncodeParams(p any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(p); err != nil {
		return nil, fmt.Errorf("encoding params: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
