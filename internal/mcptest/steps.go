package mcptest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Step is an action of a scripted server (--steps) when it receives a method.
// It can send what no real server would.
type Step struct {
	On     string        // method; "start" before anything is read, "end" after the end of stdin
	With   string        // only if the params contain this
	Print  []string      // lines on stdout, in which $ID is the id of the request, $PARAMS its params, and more
	Raw    string        // text on stdout after them, without a newline
	Big    int           // bytes of text in $BIG
	Times  int           // how often the lines are printed; 0 means once, and a negative value for ever
	Every  time.Duration // wait before each time
	Stderr string
	Delay  time.Duration // wait before all of this
	Exit   int           // exit with this code afterwards, unless 0
	Deaf   bool          // stop reading for ever afterwards
}

// follow does the steps of a script until stdin ends, and returns an exit code.
func (o *options) follow(stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	data, err := os.ReadFile(o.steps)
	if err != nil {
		return 1, err
	}
	var steps []Step
	if err := json.Unmarshal(data, &steps); err != nil {
		return 1, fmt.Errorf("%s: %w", o.steps, err)
	}
	do := func(method, id, params string) int {
		for _, s := range steps {
			if s.On == method && strings.Contains(params, s.With) {
				if s.do(id, params, stdout, stderr); s.Exit != 0 {
					return s.Exit
				}
			}
		}
		return 0
	}
	if code := do("start", "", ""); code != 0 {
		return code, nil
	}
	in := bufio.NewScanner(stdin)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		var m struct {
			ID, Params json.RawMessage
			Method     string
		}
		if json.Unmarshal(in.Bytes(), &m) != nil {
			continue
		}
		if code := do(m.Method, string(m.ID), string(m.Params)); code != 0 {
			return code, nil
		}
	}
	return do("end", "", ""), nil
}

func (s Step) do(id, params string, stdout, stderr io.Writer) {
	time.Sleep(s.Delay)
	fmt.Fprint(stderr, s.Stderr)
	fill := strings.NewReplacer("$ID", id, "$PARAMS", params, "$BIG", strings.Repeat("x", s.Big))
	out := bufio.NewWriterSize(stdout, 64<<10)
	for n := 0; n < max(1, s.Times) || s.Times < 0; n++ {
		time.Sleep(s.Every)
		for _, line := range s.Print {
			fmt.Fprintln(out, fill.Replace(line))
		}
		if s.Every > 0 && out.Flush() != nil {
			return
		}
	}
	fmt.Fprint(out, fill.Replace(s.Raw))
	out.Flush()
	if s.Deaf {
		time.Sleep(time.Hour)
	}
}
