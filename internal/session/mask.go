package session

import (
	"encoding/json"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/text"
)

// maskedParams are params with what looks like a secret masked; nil of what is
// no JSON.
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
