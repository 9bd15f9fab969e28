package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolreg/toolreg/internal/form"
	"github.com/toolreg/toolreg/internal/webaddr"
)

// The answers to an elicitation (revision 2025-11-25).
const (
	actionAccept  = "accept"
	actionDecline = "decline"
	actionCancel  = "cancel"
)

// The modes of an elicitation.
const (
	modeForm = "form"
	modeURL  = "url"
)

// elicit puts a question of the server to the person and returns the result of
// elicitation/create. What cannot be shown is declined, and told.
func (s *Source) elicit(ctx context.Context, x *exchange, params json.RawMessage) json.RawMessage {
	e, err := s.elicitation(params)
	if !x.mayAsk(false, 0) {
		err = tooMany(x)
	} else {
		e.During = x.what
	}
	if err != nil {
		s.refused("question", err)
		return elicitResult(Answer{Action: actionDecline})
	}
	a := s.put(ctx, e)
	if a.Action == actionAccept && e.Mode == modeForm {
		if len(a.Content) == 0 {
			a.Content = json.RawMessage("{}")
		}
		if !json.Valid(a.Content) || !isObject(a.Content) {
			a = Answer{Action: actionCancel}
		}
	} else {
		a.Content = nil
	}
	return elicitResult(a)
}

func tooMany(x *exchange) error {
	if x == nil || x.what == "" {
		return errors.New("it came while no request was made that it could be about")
	}
	return fmt.Errorf("more than %d came during %s", maxQuestions, quoteControls(x.what))
}

// refused tells that a request of the server was turned down without asking.
func (s *Source) refused(what string, err error) {
	s.log().Warn(what+" of the server declined", "reason", err.Error())
	if s.opts.Refused != nil {
		s.opts.Refused(s.opts.Server.Name, what, err.Error())
	}
}

func elicitResult(a Answer) json.RawMessage {
	if a.Content == nil {
		return json.RawMessage(`{"action":"` + a.Action + `"}`)
	}
	return json.RawMessage(`{"action":"` + a.Action + `","content":` + string(a.Content) + `}`)
}

// elicitation reads the params of elicitation/create. Revision 2025-06-18 knows
// no mode.
func (s *Source) elicitation(params json.RawMessage) (Elicitation, error) {
	e := Elicitation{Server: s.opts.Server.Name, Mode: modeForm}
	if !isObject(params) {
		return e, errors.New("it has no params")
	}
	message, _ := text(member(params, "message"))
	e.Message = shorten(message, maxNote)
	e.URL, _ = text(member(params, "url"))
	e.ID, _ = text(member(params, "elicitationId"))
	if mode, ok := text(member(params, "mode")); ok && mode != "" {
		e.Mode = mode
	} else if e.URL != "" {
		e.Mode = modeURL
	}
	switch e.Mode {
	case modeURL:
		return e, webaddr.Check(e.URL)
	case modeForm:
		e.Schema = member(params, "requestedSchema")
		if isNull(e.Schema) {
			e.Schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		var err error
		e.Form, err = form.Parse(e.Schema)
		return e, err
	}
	return e, fmt.Errorf("its mode is %s", quote(e.Mode))
}

// shorten cuts text that is too long to be read, and says so.
func shorten(s string, n int) string {
	if len(s) <= n {
		return cut(s, n)
	}
	return fmt.Sprintf("%s…\n(cut at %d of %d bytes)", cut(s, n), n, len(s))
}

// put asks the person and returns an action that the protocol knows. It returns
// when ctx is done even if the person never answers.
func (s *Source) put(ctx context.Context, e Elicitation) Answer {
	if s.opts.Elicit == nil {
		return Answer{Action: actionDecline}
	}
	answers := make(chan Answer, 1)
	go func() {
		a, err := s.opts.Elicit(ctx, e)
		if err != nil {
			a = Answer{Action: actionCancel}
		}
		answers <- a
	}()
	select {
	case a := <-answers:
		if slices.Contains([]string{actionAccept, actionDecline, actionCancel}, a.Action) {
			return a
		}
		return Answer{Action: actionDecline}
	case <-ctx.Done():
		return Answer{Action: actionCancel}
	}
}

// answerURLs deals with a request that failed because the person has to visit
// addresses first (error -32042), and reports whether to send it again. The
// person, or the server by notifications/elicitation/complete, says when the
// visit is over.
func (s *Source) answerURLs(ctx context.Context, sess *session, x *exchange, err error) bool {
	var refused *jsonrpc.Error
	if !isVisitFirst(err) || !errors.As(err, &refused) {
		return false
	}
	questions, _ := elements(member(refused.Data, "elicitations"))
	for _, raw := range questions {
		e, err := s.elicitation(raw)
		switch {
		case err == nil && e.Mode != modeURL:
			err = errors.New("it is no address to visit")
		case !x.mayAsk(false, 0):
			err = tooMany(x)
		}
		if err != nil {
			s.refused("question", err)
			return false
		}
		var forget func()
		e.During = x.what
		e.Done, forget = sess.wire.completion(e.ID)
		a := s.put(ctx, e)
		forget()
		if a.Action != actionAccept {
			return false
		}
	}
	return len(questions) > 0
}
