package recorder

import (
	"encoding/json"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/text"
)

// maskedParams masks what looks like a secret in params; nil if they are not
// JSON.
func maskedParams(params json.RawMessage) json.RawMessage {
	v, err := jsonx.Decode(params)
	if err != nil {
		return nil
	}
	data, err := json.Marshal(secret.Value("", v))
	if err != nil {
		return nil
	}
	return text.EscapeJSON(data)
}
