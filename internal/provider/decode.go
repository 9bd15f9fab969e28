package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

// Decode decodes a response: the whole response of the API, the message in it, only the
// calls, or the stream of its events. A response without calls is a Turn without calls, not
// an error. The error is an *[UnreadableError].
func (f Format) Decode(data []byte) (*Turn, error) {
	if len(data) > MaxResponseBytes {
		return nil, f.unreadable("it is larger than the limit of %d bytes", MaxResponseBytes)
	}
	if !bytes.HasPrefix(data, []byte{0}) { // text
		data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\uFEFF")))
	}
	if len(data) == 0 {
		return nil, f.unreadable("it is empty")
	}
	events, err := f.splitStream(data)
	if err == nil && events != nil {
		var joined any
		if joined, err = f.join(events); err == nil {
			data, err = jsonx.Marshal(joined)
		}
	}
	if err != nil {
		return nil, f.unreadable("%s", err)
	}
	if err := registry.CheckJSON(data); err != nil {
		line, _, _ := bytes.Cut(data, []byte("\n"))
		if what := foreign(asObject(line)); what != nil && registry.CheckJSON(line) == nil {
			return nil, f.unreadable("%s", what)
		}
		return nil, f.unreadable("it is not valid JSON: %s", err.Message)
	}
	t := &Turn{format: f}
	if err := f.decode(t, data); err != nil {
		if err == errUnrecognized {
			return nil, f.unrecognized(data)
		}
		return nil, f.unreadable("%s", err)
	}
	if len(t.Calls) == 0 {
		if other := f.looksLike(data); other != "" { // the message is in this format, but its calls are in another
			return nil, f.unreadable("it contains no call of this format; it looks like format %s", other)
		}
	}
	if len(t.Calls) > MaxCalls {
		return nil, f.unreadable("it contains %d calls, but the limit is %d", len(t.Calls), MaxCalls)
	}
	if err := t.identify(data); err != nil {
		return nil, f.unreadable("%s", err)
	}
	t.message = f.messageOf(data)
	return t, nil
}

// identify gives an id to a single call without one: some servers write an empty one.
func (t *Turn) identify(data []byte) error {
	anonymous := slices.IndexFunc(t.Calls, func(c Call) bool { return c.id == nil })
	switch {
	case t.format.callID == "" || anonymous < 0:
		return nil
	case len(t.Calls) > 1:
		return fmt.Errorf("%d calls, of which at least one has no %s, cannot be answered; request the response again", len(t.Calls), t.format.callID)
	}
	t.Calls[0].id = quoted(fmt.Sprintf("c%08x", crc32.ChecksumIEEE(data))) // of a form that every API takes
	return nil
}

// Reply returns the messages to append to the conversation after the model's own
// message. There are none if there were no calls. answers has one element for each
// of Calls, in order; a missing one is replaced by an error result.
func (t *Turn) Reply(answers []Answer) []any {
	if len(t.Calls) == 0 {
		return nil
	}
	all := make([]Answer, len(t.Calls))
	for i := range all {
		if i < len(answers) {
			all[i] = t.format.media.fit(answers[i])
		} else {
			all[i] = ErrorAnswer("the call was not run")
		}
	}
	return t.format.reply(t, all)
}

func (f Format) unreadable(format string, args ...any) error {
	return &UnreadableError{Format: f.Name, Reason: fmt.Sprintf(format, args...)}
}

// unrecognized returns an error that says what was expected.
func (f Format) unrecognized(data json.RawMessage) error {
	if what := foreign(asObject(data)); what != nil {
		return f.unreadable("%s", what)
	}
	if other := f.looksLike(data); other != "" {
		return f.unreadable("%s; it looks like format %s", errUnrecognized, other)
	}
	return f.unreadable("%s: %s", errUnrecognized, f.expects)
}

// looksLike returns another format in which the data has calls, or "".
func (f Format) looksLike(data json.RawMessage) string {
	for _, other := range CallFormats() {
		var t Turn
		if other.Name != f.Name && other.decode(&t, data) == nil && len(t.Calls) > 0 {
			return other.Name
		}
	}
	return ""
}
