package builtin

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// encodeParams encodes params for a revised call, text unescaped.
func encodeParams(p any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(p); err != nil {
		return nil, fmt.Errorf("encoding params: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
