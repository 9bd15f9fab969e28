package wire

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/text"
)

// message is one message on its way to the server.
type message struct {
	jsonrpc.Message
	request  *Request // the request sent, nil for notifications and answers
	method   string   // of a request or a notification
	revision string   // sent in a header, "" for none
}

// decodeMessage decodes a valid JSON object as a message. The result of an
// answer stays a slice of raw: it may be tens of megabytes.
func decodeMessage(raw json.RawMessage) (jsonrpc.Message, error) {
	var id, method, result, failure json.RawMessage
	var version string
	for k, v := range jsonx.Members(raw) {
		switch k {
		case "jsonrpc":
			version, _ = jsonx.Text(v)
		case "id":
			id = v
		case "method":
			method = v
		case "result":
			result = v
		case "error":
			failure = v
		}
	}
	rid := messageID(id)
	answer := method == nil
	failed := !jsonx.IsNull(failure)
	// A result without an id, or an error about an unknown method or a notification, answers a notification.
	anonymous := answer && jsonx.IsNull(id) && failed && string(jsonx.Get(failure, "code")) != strconv.Itoa(jsonrpc.CodeMethodNotFound) &&
		!strings.Contains(strings.ToLower(string(failure)), "notification")
	switch {
	case version != "2.0":
		return nil, &badMessageError{answer: anonymous, id: answerID(answer, rid), reason: `its "jsonrpc" is not "2.0"`}
	case answer && !rid.IsValid():
		return nil, &badMessageError{answer: anonymous, reason: "neither a request nor an answer" + errorText(raw)}
	case answer && !failed:
		return &jsonrpc.Response{ID: rid, Result: result}, nil
	}
	m, err := jsonrpc.DecodeMessage(raw)
	switch {
	case err == nil:
		return m, nil
	case answer:
		return nil, &badMessageError{id: rid, reason: "its error has the wrong form: " + text.Head(string(failure), 300)}
	}
	return nil, &badMessageError{reason: err.Error()}
}

// answerID returns the id of an answer; ids of requests are a separate space.
func answerID(answer bool, id jsonrpc.ID) jsonrpc.ID {
	if !answer {
		return jsonrpc.ID{}
	}
	return id
}

// messageID decodes an id like the SDK: as a string or an integer.
func messageID(raw json.RawMessage) jsonrpc.ID {
	if s, ok := jsonx.Text(raw); ok {
		id, _ := jsonrpc.MakeID(s)
		return id
	}
	var n float64
	if len(raw) == 0 || strings.ContainsAny(string(raw), ".eE{[ntf") || json.Unmarshal(raw, &n) != nil {
		return jsonrpc.ID{}
	}
	id, _ := jsonrpc.MakeID(n)
	return id
}

// errorText returns the message of an error answer, for display.
func errorText(raw json.RawMessage) string {
	if s, ok := jsonx.Text(jsonx.Get(jsonx.Get(raw, "error"), "message")); ok {
		return " (" + text.Head(s, 300) + ")"
	}
	return ""
}

// badMessageError reports JSON that is not a JSON-RPC message; the connection
// stays usable.
type badMessageError struct {
	id     jsonrpc.ID // of the request it may answer; invalid if unknown
	answer bool       // it looks like an answer to one of our requests
	reason string
	long   *LimitError // it was skipped because it is too long
}

func (e *badMessageError) Error() string { return fmt.Sprintf("malformed message: %s", e.reason) }

func malformed(what string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: what}
}
