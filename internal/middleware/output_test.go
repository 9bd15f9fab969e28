package middleware

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/state"
)

func holding(t testing.TB, limit int64) Output {
	dir := openDir(t)
	return Output{Limit: limit, Spill: 1 << 20, Dir: func() (*state.Dir, error) { return dir, nil }}
}

// spilled returns the contents of the files that a result names.
func spilled(t *testing.T, r registry.Result) []string {
	t.Helper()
	var out []string
	for _, m := range regexp.MustCompile(`are in (\S+)\]`).FindAllStringSubmatch(r.Text(), -1) {
		data, err := os.ReadFile(m[1])
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(m[1]); err != nil || info.Mode() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
		out = append(out, string(data))
	}
	return out
}

func TestSmallOutputIsUnchanged(t *testing.T) {
	o := holding(t, 100)
	want := registry.Result{Content: []registry.Content{registry.TextContent(strings.Repeat("x", 100))}, Structured: json.RawMessage(`{}`)}
	got, err := o.Wrap(reader(counter(want, new(int)))).Run(t.Context(), call("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if dir, _ := o.Dir(); exists(dir.Path) {
		t.Error("a folder was made")
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestLargeTextKeepsBeginningAndEnd(t *testing.T) {
	whole := "HEAD" + strings.Repeat("ü", 500) + "TAIL"
	r := registry.TextResult(whole)
	r.Display.Text = whole
	got, err := holding(t, 101).Wrap(reader(counter(r, new(int)))).Run(t.Context(), call("{}"))
	if err != nil {
		t.Fatal(err)
	}
	text := got.Text()
	if !strings.HasPrefix(text, "HEADü") || !strings.Contains(text, "üTAIL\n[the output is cut; all 1008 bytes that were read are in ") || !strings.Contains(text, "[… cut: 907 of 1008 bytes …]") && !strings.Contains(text, "[… cut: 908 of 1008 bytes …]") && !strings.Contains(text, "[… cut: 909 of 1008 bytes …]") {
		t.Errorf("text %q", text)
	}
	if !got.Truncated || !utf8.ValidString(text) || len(got.Display.Text) > 200 || !strings.HasSuffix(got.Display.Text, "TAIL") {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff([]string{whole}, spilled(t, got)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// The note for a model names read_file, unless a line that was cut out is longer than that shows.
func TestModelIsToldHowToReadOn(t *testing.T) {
	for text, want := range map[string]string{
		strings.Repeat("line\n", 1000):                    "to read on: read_file with this file_path and offset ",
		strings.Repeat("é", 5000):                         "read on with a program such as cut or jq",
		strings.Repeat(strings.Repeat("é", 1999)+"\n", 9): "to read on: read_file with this file_path and offset ",
	} {
		r := holding(t, 2000).Answer(t.Context(), "t", registry.TextResult(text))
		if got := r.Text(); !strings.Contains(got, want) {
			t.Errorf("%.20q: no %q in %q", text, want, got[max(0, len(got)-300):])
		}
	}
}

func TestBinaryPartsThatExceedLimit(t *testing.T) {
	data := []byte(strings.Repeat("\x89", 300))
	r := registry.Result{
		Content: []registry.Content{
			registry.TextContent("first"), {Type: registry.ContentImage, Data: data, MIMEType: "image/png"},
			registry.TextContent(strings.Repeat("m", 300)), {Type: registry.ContentImage, Data: []byte("tiny"), MIMEType: "image/gif"},
		},
		Structured: json.RawMessage(`"` + strings.Repeat("s", 300) + `"`),
	}
	got, err := holding(t, 100).Wrap(reader(counter(r, new(int)))).Run(t.Context(), call("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if got.Content[0].Text != "first" || got.Content[len(got.Content)-2].MIMEType != "image/gif" || got.Structured != nil {
		t.Errorf("%+v", got)
	}
	want := []string{string(data), "first" + strings.Repeat("m", 300), string(r.Structured)}
	if diff := cmp.Diff(want, spilled(t, got)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// A tool that cuts its own output passes all of it to Spill.
func TestSpilledOutputIsComplete(t *testing.T) {
	for name, tt := range map[string]struct {
		emit  int // pieces of 10 bytes
		cut   bool
		files int
	}{"all fits": {5, false, 0}, "the tool cut it": {5, true, 1}, "more than the limit": {50, true, 1}, "more, but the result is small": {50, false, 1}} {
		t.Run(name, func(t *testing.T) {
			tool := reader(func(_ context.Context, c registry.Call) (registry.Result, error) {
				for range tt.emit {
					c.Spill([]byte("123456789\n"))
				}
				r := registry.TextResult("report")
				r.Truncated = tt.cut
				return r, nil
			})
			o := holding(t, 100)
			got, err := o.Wrap(tool).Run(t.Context(), call("{}"))
			if err != nil {
				t.Fatal(err)
			}
			files := spilled(t, got)
			if len(files) != tt.files || tt.files == 1 && files[0] != strings.Repeat("123456789\n", tt.emit) {
				t.Errorf("%d files: %.60q\n%s", len(files), files, got.Text())
			}
			if !strings.HasPrefix(got.Text(), "report") {
				t.Errorf("text %q", got.Text())
			}
		})
	}
}

func TestFileSizeIsLimited(t *testing.T) {
	o := holding(t, 10)
	o.Spill = 25
	got, err := o.Wrap(reader(counter(registry.TextResult(strings.Repeat("0123456789", 10)), new(int)))).Run(t.Context(), call("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"0123456789012345678901234"}, spilled(t, got)); diff != "" || !strings.Contains(got.Text(), "first 25 of the 100 bytes that were read (limits.spill)") {
		t.Errorf("%s (-want +got):\n%s", got.Text(), diff)
	}
}

func TestResultSaysThatOutputCouldNotBeSaved(t *testing.T) {
	o := Output{Limit: 10, Spill: 100, Dir: func() (*state.Dir, error) { return nil, state.ErrUnavailable }}
	got, err := o.Wrap(reader(counter(registry.TextResult(strings.Repeat("x", 50)), new(int)))).Run(t.Context(), call("{}"))
	if err != nil || !strings.Contains(got.Text(), "could not be saved: state cannot be used") || !got.Truncated {
		t.Errorf("%+v, %v", got, err)
	}
}

func BenchmarkAround(b *testing.B) {
	tool := reader(counter(registry.TextResult("hello"), new(int)))
	tool = Retry{Retries: 2}.Wrap(holding(b, 10<<20).Wrap(tool))
	c := call("{}")
	for b.Loop() {
		if _, err := tool.Run(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
}
