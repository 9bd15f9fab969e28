package serve

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/toolreg/toolreg/internal/jsonx"
)

var errID = errors.New("the id of a request must be a string, or an integer between -(2^53-1) and 2^53-1")

// checkID returns an error if a message is a request whose id the SDK would change: it
// reads ids as float64 and drops fractions, so the response would have another id.
func checkID(message json.RawMessage) error {
	const most = 1<<53 - 1
	id := jsonx.Get(message, "id")
	if jsonx.KindOf(id) != jsonx.Number || jsonx.Get(message, "method") == nil {
		return nil
	}
	if n, err := strconv.ParseInt(string(id), 10, 64); err != nil || n < -most || n > most {
		return errID
	}
	return nil
}

// idOf returns the id with which an error about a message is reported, "null" if the
// message has none.
func idOf(message json.RawMessage) json.RawMessage {
	id := jsonx.Get(message, "id")
	if kind := jsonx.KindOf(id); kind == jsonx.String || kind == jsonx.Number {
		return id
	}
	return json.RawMessage("null")
}
