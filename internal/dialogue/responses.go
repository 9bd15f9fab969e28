package dialogue

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// decodeResponses reads a response of OpenAI's Responses API, the list of its
// output items, or one item.
func decodeResponses(t *Turn, raw json.RawMessage) error {
	list, ok := jsonx.Elements(raw)
	if !ok {
		o := asObject(raw)
		if err := apiError(o); err != nil {
			return err
		}
		switch {
		case asObject(o["output"]).has("message"): // Bedrock's
			return errUnrecognised
		case o.has("output"):
			if list, ok = jsonx.Elements(o["output"]); !ok {
				return errors.New("output is no list")
			}
		case strings.HasSuffix(o.text("type"), "_call"):
			list = []json.RawMessage{raw}
		default:
			return errUnrecognised
		}
	}
	for _, raw := range list {
		if err := t.addResponses(asObject(raw)); err != nil {
			return err
		}
	}
	return nil
}

// addResponses adds a call; items of other types need no answer.
func (t *Turn) addResponses(item object) error {
	c := Call{id: textID(item["call_id"]), Name: item.text("name"), Params: params(item["arguments"]), kind: item.text("type")}
	switch c.kind {
	case "":
		return errUnrecognised
	case "function_call_output", "custom_tool_call_output":
		return errors.New("it holds answers to calls; send the output of the last response alone")
	case "custom_tool_call":
		c.Fault = "Calls of type custom are not known here. Call a declared function."
	case "function_call":
		if item.text("status") == "incomplete" {
			c.Fault = cutOff
		}
	default:
		return nil
	}
	if c.id == nil {
		return errors.New("a call in it has no call_id to answer to")
	}
	t.Calls = append(t.Calls, c)
	return nil
}

// replyResponses writes a function_call_output item for each call: a text where
// that is all there is, else a list of input items.
func replyResponses(t *Turn, answers []Answer) []any {
	type item struct {
		Type   string          `json:"type"`
		ID     json.RawMessage `json:"call_id"`
		Output any             `json:"output"`
	}
	out := make([]any, len(answers))
	for i, a := range answers {
		text := notes{}
		var media []any
		for _, p := range a.parts() {
			if m := responsesMedia(p); m != nil {
				media = append(media, m)
				continue
			}
			text.add(p.asText())
		}
		it := item{Type: t.Calls[i].kind + "_output", ID: t.Calls[i].id}
		switch {
		case len(media) == 0:
			it.Output = text.result(a.IsError)
		case len(text) == 0 && !a.IsError:
			it.Output = media
		default:
			it.Output = append([]any{textBlock{"input_text", text.result(a.IsError)}}, media...)
		}
		out[i] = it
	}
	return out
}

func responsesMedia(p part) any {
	switch {
	case p.isImage():
		return struct {
			Type string `json:"type"`
			URL  string `json:"image_url"`
		}{"input_image", p.dataURL()}
	case p.isPDF():
		return struct {
			Type string `json:"type"`
			Name string `json:"filename"`
			Data string `json:"file_data"`
		}{"input_file", p.fileName(), p.dataURL()}
	}
	return nil
}
