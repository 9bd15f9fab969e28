package provider

import (
	"errors"
	"fmt"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// UnreadableError reports that data is not a response in a format.
type UnreadableError struct {
	Format string
	Reason string
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("reading a response of format %s: %s", e.Format, e.Reason)
}

// errUnrecognized reports that the data has no element of the format.
var errUnrecognized = errors.New("it is not in this format")

// apiError returns the error that an API returned instead of a message.
func apiError(o object) error {
	raw, ok := o["error"]
	if !ok || jsonx.IsNull(raw) {
		return nil
	}
	text := asText(raw)
	if e := asObject(raw); e != nil {
		text = e.text("message")
	}
	if text == "" {
		text = string(raw)
	}
	return fmt.Errorf("the API returned an error: %.500s", text)
}
