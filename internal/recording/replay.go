package recording

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// Recording is a file that was read. Its exchanges are used up in order. It is safe for
// concurrent use.
type Recording struct {
	name    string
	folders Folders
	errors  Errors

	mu    sync.Mutex
	lines []recorded
	like  map[exchange][]int // the lines with the same key, in order
}

// exchange is the key by which calls and questions are matched.
type exchange struct{ kind, source, tool, params string }

type recorded struct {
	line
	number int
	params string // canonical, as written
	used   bool
}

// Read reads the content of a file; name is its name in messages. The error names the
// line.
func Read(name string, data []byte, folders Folders, e Errors) (*Recording, error) {
	r := &Recording{name: name, folders: folders, errors: e, like: map[exchange][]int{}}
	number := 0
	for text := range bytes.Lines(data) {
		number++
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		if err := r.readLine(text, number); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, number, err)
		}
	}
	if number == 0 {
		return nil, fmt.Errorf("%s: %w", name, errForeign)
	}
	return r, nil
}

var errForeign = errors.New("it is not a recording of toolreg")

func (r *Recording) readLine(text []byte, number int) error {
	if number == 1 {
		var h header
		if json.Unmarshal(text, &h) != nil || h.Recording != format {
			return errForeign
		}
		if h.Version != version {
			return fmt.Errorf("the recording is of version %d, but this program reads version %d", h.Version, version)
		}
		return nil
	}
	v, err := jsonx.Parse(text, jsonx.Options{Strict: true})
	if err != nil {
		return fmt.Errorf("it is not valid JSON: %w", err)
	}
	l := recorded{number: number}
	if params := v.Get("params"); params != nil {
		l.params = jsonx.Canonical(params.JSON())
	}
	rewrite(v, r.folders.show)
	if err := jsonx.DecodeKnown(v.JSON(), &l.line); err != nil {
		return err
	}
	if err := l.check(); err != nil {
		return err
	}
	key := exchange{l.Kind, l.Source, l.name(), l.params}
	r.like[key] = append(r.like[key], len(r.lines))
	r.lines = append(r.lines, l)
	return nil
}

// check returns the mistake in a line, or nil.
func (l *recorded) check() error {
	if _, isServer := registry.ServerOf(l.Source); !isServer && l.Source != registry.SourceCommand &&
		l.Source != registry.SourceHost && !strings.HasPrefix(l.Source, registry.PluginPrefix) {
		return fmt.Errorf("%q is not a source that is recorded", l.Source)
	}
	switch l.Kind {
	case kindList:
		for i := range l.Tools {
			if t := &l.Tools[i]; t.Name == "" || t.Source != l.Source ||
				t.OfServer() && l.Source != registry.MCPPrefix+t.Server && l.Source != registry.APIPrefix+t.Server {
				return fmt.Errorf("tool %d is not one of %s", i+1, l.Source)
			}
		}
	case kindCall:
		if l.Result == nil || l.params == "" {
			return errors.New("a call must have params and a result")
		}
	case kindRequest:
		if l.Method == "" || l.params == "" || l.Content == nil && l.Error == nil {
			return errors.New("a request must have a method, params and a result")
		}
	case kindQuestion:
	default:
		return fmt.Errorf("the kind must be %s, %s, %s or %s, not %q",
			kindList, kindQuestion, kindCall, kindRequest, l.Kind)
	}
	return nil
}

// Sources returns the sources of the recording in the order in which they are registered. Calls are
// compared with recorded ones in the form in which o would write them.
func (r *Recording) Sources(o Options) []registry.Source {
	var out []registry.Source
	for i := range r.lines {
		if name := r.lines[i].Source; r.lines[i].Kind == kindList &&
			!slices.ContainsFunc(out, func(s registry.Source) bool { return s.Name() == name }) {
			out = append(out, &source{recording: r, options: o, name: name})
		}
	}
	return out
}

// source answers as a recorded source did.
type source struct {
	recording *Recording
	options   Options
	name      string
}

// Name implements [registry.Source].
func (s *source) Name() string { return s.name }

// Discover implements [registry.Source]. The last list of the source is used again.
func (s *source) Discover(context.Context) ([]registry.Tool, []registry.Diagnostic, error) {
	r := s.recording
	r.mu.Lock()
	defer r.mu.Unlock()
	var list *recorded
	for i := range r.lines {
		if l := &r.lines[i]; l.Kind == kindList && l.Source == s.name {
			if list = l; !l.used {
				break
			}
		}
	}
	list.used = true
	if list.Error != nil {
		return nil, list.Diagnostics, r.errors.Decode(list.Error)
	}
	tools := make([]registry.Tool, len(list.Tools))
	for i := range list.Tools {
		listed := &list.Tools[i]
		t := &tools[i]
		*t = registry.Tool{Definition: listed.Definition,
			Identity: list.Identity, Trusted: listed.Trusted, Unmet: listed.Unmet}
		if listed.Identity != nil {
			t.Identity = listed.Identity
		}
		if listed.Quarantine != "" {
			t.Quarantine = errors.New(listed.Quarantine)
		}
		name := t.Name
		t.Run = func(_ context.Context, call registry.Call) (registry.Result, error) { return s.call(name, call) }
		t.Subject = func(call registry.Call) (registry.Subject, error) { return s.subject(name, call), nil }
	}
	return tools, list.Diagnostics, nil
}

// call answers a call as the next recorded one with the same params was answered.
func (s *source) call(tool string, call registry.Call) (registry.Result, error) {
	key := s.key(tool, call)
	l := s.recording.use(key)
	if l == nil {
		return registry.Result{}, s.recording.missing(key)
	}
	if l.Output != "" {
		call.Emit(registry.TextContent(l.Output))
	}
	for _, p := range l.Progress {
		call.Progress(p)
	}
	var err error
	if l.Error != nil {
		err = s.recording.errors.Decode(l.Error)
	}
	return l.Result.registered(), err
}

func (s *source) subject(tool string, call registry.Call) registry.Subject {
	for _, i := range s.recording.like[s.key(tool, call)] {
		if l := &s.recording.lines[i]; l.Subject != nil {
			return *l.Subject
		}
	}
	return registry.Subject{}
}

// key returns the key of a call of a tool.
func (s *source) key(tool string, call registry.Call) exchange {
	return exchange{kindCall, s.name, tool, string(maskedParams(&s.recording.folders, s.options, call.Params))}
}

// use returns the first unused line with a key; nil if there is none.
func (r *Recording) use(key exchange) *recorded {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, i := range r.like[key] {
		if l := &r.lines[i]; !l.used {
			l.used = true
			return l
		}
	}
	return nil
}

func (r *Recording) missing(key exchange) *NoCallError {
	missing := &NoCallError{Tool: key.tool, File: r.name, Used: len(r.like[key])}
	least := 0 // the smallest difference so far
	for i := range r.lines {
		if l := &r.lines[i]; l.Kind == key.kind && l.Source == key.source && l.name() == key.tool {
			diff, far := differences(l.params, key.params), differingBytes(l.params, key.params)
			if missing.Line == 0 ||
				cmp.Or(cmp.Compare(len(diff), len(missing.Differences)), cmp.Compare(far, least)) < 0 {
				missing.Line, missing.Differences, least = l.number, diff, far
			}
		}
	}
	return missing
}

// Request answers a request to a server like the next recorded one with the same params. A list can
// be used again. If the source has no recorded list of this method, the result is nil, which means
// that the server offers none.
func (r *Recording) Request(o Options, source, method string, params json.RawMessage) (json.RawMessage, error) {
	key := exchange{kindRequest, source, method, string(maskedParams(&r.folders, o, params))}
	l := r.use(key)
	if same := r.like[key]; l == nil && len(same) > 0 && r.lines[same[0]].isList() {
		l = &r.lines[same[len(same)-1]]
	}
	switch {
	case l == nil && strings.HasSuffix(method, "/list"):
		return nil, nil
	case l == nil:
		return nil, r.missing(key)
	case l.Error != nil:
		return nil, r.errors.Decode(l.Error)
	}
	return l.Content, nil
}

// Answer returns the recorded answer to a question about a call: its word, and the reason
// of a refusal. ok is false if there is none.
func (r *Recording) Answer(o Options, source, tool string, params json.RawMessage) (answer, reason string, ok bool) {
	l := r.use(exchange{kindQuestion, source, tool, string(maskedParams(&r.folders, o, params))})
	if l == nil {
		return "", "", false
	}
	reason, _ = jsonx.Text(l.Content)
	return l.Answer, reason, true
}

// NoCallError reports that a recording has no call like the one that was made, or that all
// such calls are used up.
type NoCallError struct {
	Tool string
	File string
	Used int // number of used calls with the same params
	// Line is the line of the most similar call, which differs in the fewest params; 0 if none of
	// the tool is recorded. Differences describes the differences.
	Line        int
	Differences []string
}

func (e *NoCallError) Error() string {
	switch {
	case e.Used == 1:
		return fmt.Sprintf("%s has one call of %q with these params, which is used up", e.File, e.Tool)
	case e.Used > 1:
		return fmt.Sprintf("%s has %d calls of %q with these params, which are used up", e.File, e.Used, e.Tool)
	case e.Line == 0:
		return fmt.Sprintf("%s has no call of %q", e.File, e.Tool)
	}
	return fmt.Sprintf("%s has no call of %q with these params; the nearest is in line %d:\n%s",
		e.File, e.Tool, e.Line, strings.Join(e.Differences, "\n"))
}

// maxShown is the length to which a value in a difference is cut.
const maxShown = 200

// differingBytes returns how many bytes of the longer of two texts lie between what they have in common
// at the beginning and at the end.
func differingBytes(a, b string) int {
	if len(a) < len(b) {
		a, b = b, a
	}
	from, to := 0, 0
	for from < len(b) && a[from] == b[from] {
		from++
	}
	for to < len(b)-from && a[len(a)-1-to] == b[len(b)-1-to] {
		to++
	}
	return len(a) - from - to
}

// differences describes how two canonical objects differ, member by member.
func differences(recorded, now string) []string {
	var names []string
	for name := range jsonx.Members(json.RawMessage(recorded)) {
		names = append(names, name)
	}
	for name := range jsonx.Members(json.RawMessage(now)) {
		names = text.AppendNew(names, name)
	}
	var out []string
	for _, name := range names {
		was, is := jsonx.Get(json.RawMessage(recorded), name), jsonx.Get(json.RawMessage(now), name)
		if !bytes.Equal(was, is) {
			out = append(out, fmt.Sprintf("%s: recorded %s, now %s", name, shownValue(was), shownValue(is)))
		}
	}
	return out
}

func shownValue(value json.RawMessage) string {
	if value == nil {
		return "nothing"
	}
	return text.Clip(string(value), maxShown)
}
