package shell

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/builtin/tool"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// resultOf converts the outcome of a command to a result. failure is the reason
// why the command was stopped early, or nil.
func resultOf(command, dir string, out process.Outcome, failure error) registry.Result {
	stdout := outputText(out.Stdout, out.StdoutHead, out.StdoutBytes)
	stderr := outputText(out.Stderr, out.StderrHead, out.StderrBytes)
	ending := endingOf(out, failure)
	r := registry.TextResult(shellReport(command, dir, out, stdout, stderr, failure))
	r.Summary = ending
	r.Truncated = out.Truncated
	r.IsError = failure != nil || out.ExitCode != 0 || out.Signal != ""
	if r.IsError {
		r.ErrorCategory = registry.ErrorExecution
	}
	r.Display.Text = joinOutput(stdout, stderr)
	if r.IsError || r.Display.Text == "" {
		r.Display.Text = joinOutput(r.Display.Text, "["+ending+"]\n")
	}
	return r
}

// shellReport formats the report for the model with the labels of the Gemini CLI, which models
// know. A line that would say that there is nothing is left out.
func shellReport(command, dir string, out process.Outcome, stdout, stderr string, failure error) string {
	lines := []string{"Command: " + command}
	add := func(label, value string) {
		if value != "" {
			lines = append(lines, label+": "+value)
		}
	}
	if dir != "." {
		add("Directory", dir)
	}
	if stderr == "" {
		stdout = cmp.Or(stdout, "(empty)")
	}
	add("Stdout", stdout)
	add("Stderr", stderr)
	if failure != nil {
		add("Error", failure.Error())
	}
	if out.Signal == "" {
		add("Exit Code", strconv.Itoa(out.ExitCode))
	}
	add("Signal", out.Signal)
	return strings.Join(lines, "\n")
}

// endingOf describes on one line how a command ended.
func endingOf(out process.Outcome, failure error) string {
	switch {
	case failure != nil:
		return failure.Error()
	case out.Signal != "":
		return "ended by signal " + out.Signal
	case out.ExitCode != 0:
		return "exit code " + strconv.Itoa(out.ExitCode)
	case out.StdoutBytes == 0 && out.StderrBytes == 0:
		return "done, no output"
	}
	return "done"
}

func joinOutput(a, b string) string {
	if a != "" && b != "" && !strings.HasSuffix(a, "\n") {
		a += "\n"
	}
	return a + b
}

// outputText converts the kept part of a stream of total bytes to text. If
// output was cut, the cut is after the first head bytes.
func outputText(kept []byte, head int, total int64) string {
	cut := total - int64(len(kept))
	if cut <= 0 || head > len(kept) {
		return text.Valid(kept)
	}
	var b strings.Builder
	b.Grow(len(kept) + 64) // it may be large: avoid a second copy
	writeValid(&b, kept[:head])
	fmt.Fprintf(&b, "\n[… %s cut here …]\n", tool.Size(cut))
	writeValid(&b, kept[head:])
	return b.String()
}

func writeValid(to *strings.Builder, b []byte) {
	if !utf8.Valid(b) {
		b = bytes.ToValidUTF8(b, []byte("\uFFFD")) // avoid a second copy as a string
	}
	to.Write(b)
}

// textStream emits output as text as it arrives, without splitting characters
// that span two reads.
type textStream struct {
	emit func(registry.Content)
	part [2][]byte // incomplete characters of stdout and stderr
}

func (s *textStream) write(stream int, p []byte) {
	if s.emit == nil {
		return
	}
	part := &s.part[stream-1]
	whole, rest := text.WholeRunes(append(*part, p...))
	*part = append([]byte(nil), rest...)
	if len(whole) > 0 {
		s.emit(registry.TextContent(text.Valid(whole)))
	}
}

// end emits incomplete characters.
func (s *textStream) end() {
	for _, part := range s.part {
		if len(part) > 0 && s.emit != nil {
			s.emit(registry.TextContent(string(utf8.RuneError)))
		}
	}
}
