package file

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/registry"
)

// numbered returns the lines "line 1" to "line n", each with a line break.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

func TestReadFileText(t *testing.T) {
	lines := func(from, to int) string {
		return strings.Join(strings.SplitAfter(numbered(to), "\n")[from-1:to], "")
	}
	long := strings.Repeat("é", 2000)
	opts, dir := place(t, map[string]string{
		"five": numbered(5), "many": numbered(2500), "crlf": "a\r\nb\r\n", "open": "a\nb", "empty": "", "only-bom": "\xef\xbb\xbf", "only-bom16": "\xff\xfe", "break": "\n",
		"damaged": "ünd\n\xff\n", "cjk": "x" + strings.Repeat("日", 100_000) + "\né\n",
		"bom": "\xef\xbb\xbfa\n", "latin": "caf\xe9\n", "undefined": "caf\xe9 \x81\n", "le": "\xff\xfea\x00\xe9\x00\n\x00", "be": "\xfe\xff\x00a\x00\xe9\x00\n",
		"wide": long + "\n" + long + "x\nlast\n", "astral": strings.Repeat("😀", 3000),
		"late": strings.Repeat("a\n", 5000) + "caf\xe9\n", "escape": "\x1b[31mred\x1b[0m\n", "nb.ipynb": `{"cells": []}`,
		"mixed": "é\n" + strings.Repeat("a\n", 4000) + "\xff\n", "BM": "BM is no bitmap\n", "x.png": "text after all\n",
		"sjis": "\x83t\x83@\x83C\x83\x8b\n", "gbk": "\xc4\xe3\xba\xc3\n", "late-gbk": strings.Repeat("a\n", 5000) + "\xc4\xe3\xba\xc3\n",
		"cyrillic": "\xcf\xf0\xe8\xe2\xe5\xf2\n",
	})
	tests := []struct{ params, want string }{
		{`{"file_path":"five"}`, numbered(5)},
		{`{"file_path":` + tooltest.Quoted(filepath.Join(dir, "five")) + `,"offset":1,"limit":5}`, numbered(5)},
		{`{"file_path":"five","offset":2,"limit":2}`, "[showing lines 2-3 of 5 total lines; continue with offset 4]\n" + lines(2, 3)},
		{`{"file_path":"five","offset":5.0}`, "[showing line 5 of 5 total lines]\n" + lines(5, 5)},
		{`{"file_path":"many"}`, "[showing lines 1-2000 of 2500 total lines; continue with offset 2001]\n" + lines(1, 2000)},
		{`{"file_path":"many","limit":2500}`, numbered(2500)},
		{`{"file_path":"many","offset":2001}`, "[showing lines 2001-2500 of 2500 total lines]\n" + lines(2001, 2500)},
		{`{"file_path":"crlf"}`, "a\r\nb\r\n"},
		{`{"file_path":"open"}`, "a\nb"},
		{`{"file_path":"open","limit":1}`, "[showing line 1 of 2 total lines; continue with offset 2]\na\n"},
		{`{"file_path":"empty"}`, `"empty" is empty.`},
		{`{"file_path":"only-bom"}`, `"only-bom" is empty.`},
		{`{"file_path":"only-bom16"}`, `"only-bom16" is empty.`},
		{`{"file_path":"break"}`, "\n"},
		{`{"file_path":"bom"}`, "a\n"},
		{`{"file_path":"damaged"}`, "[it contains bytes that are not UTF-8]\nünd\nÿ\n"},
		{`{"file_path":"cjk"}`, "[1 line cut at 2000 characters; grep shows the part around a match, and run_shell_command the rest: sed -n 1p FILE | cut -b 5999-]\nx" + strings.Repeat("日", 1999) + "... [truncated]\né\n"},
		{`{"file_path":"latin"}`, "[decoded from Windows-1252]\ncafé\n"},
		{`{"file_path":"undefined"}`, "[decoded from Windows-1252]\ncafé \u0081\n"}, // as edit takes it
		{`{"file_path":"le"}`, "[decoded from UTF-16 (little endian)]\naé\n"},
		{`{"file_path":"be"}`, "[decoded from UTF-16 (big endian)]\naé\n"},
		{`{"file_path":"wide"}`, "[1 line cut at 2000 characters; grep shows the part around a match, and run_shell_command the rest: sed -n 2p FILE | cut -b 4001-]\n" + long + "\n" + long + "... [truncated]\nlast\n"},
		{`{"file_path":"astral"}`, "[1 line cut at 2000 characters; grep shows the part around a match, and run_shell_command the rest: sed -n 1p FILE | cut -b 8001-]\n" + strings.Repeat("😀", 2000) + "... [truncated]"},
		{`{"file_path":"late","offset":5001}`, "[showing line 5001 of 5001 total lines; decoded from Windows-1252]\ncafé\n"},
		{`{"file_path":"mixed","offset":4002}`, "[showing line 4002 of 4002 total lines; decoded from Windows-1252]\nÿ\n"},
		{`{"file_path":"sjis"}`, "[decoded from Shift_JIS]\nファイル\n"},
		{`{"file_path":"gbk"}`, "[decoded from GB18030]\n你好\n"},
		{`{"file_path":"late-gbk","offset":5001}`, "[showing line 5001 of 5001 total lines; decoded from GB18030]\n你好\n"},
		{`{"file_path":"cyrillic"}`, "[decoded from an unknown encoding as if it were Windows-1252, which is probably wrong; iconv can convert the file]\nÏðèâåò\n"},
		{`{"file_path":"escape"}`, "\x1b[31mred\x1b[0m\n"},
		{`{"file_path":"nb.ipynb"}`, "[shown as it is: not a notebook of format 4]\n" + `{"cells": []}`},
		{`{"file_path":"BM"}`, "BM is no bitmap\n"},
		{`{"file_path":"x.png"}`, "text after all\n"},
	}
	for _, tt := range tests {
		r := run(t, opts, "read_file", tt.params)
		if diff := cmp.Diff(tt.want, r.Text()); diff != "" || r.IsError {
			t.Errorf("%s (-want +got)\n%s", tt.params, diff)
		}
	}
}

func TestReadFileResult(t *testing.T) {
	opts, _ := place(t, map[string]string{"dir/five": numbered(5)})
	r := run(t, opts, "read_file", `{"file_path":"dir/five","offset":2,"limit":1}`)
	if r.Summary != "read line 2 of dir/five" || !r.Truncated {
		t.Errorf("summary %q, truncated %v", r.Summary, r.Truncated)
	}
	if diff := cmp.Diff([]registry.Location{{Path: "dir/five", Line: 2}}, r.Locations); diff != "" {
		t.Error(diff)
	}
	if r := run(t, opts, "read_file", `{"file_path":"dir/five"}`); r.Truncated {
		t.Error("a whole file is marked as truncated")
	}
}

func TestReadFileFailures(t *testing.T) {
	opts, dir := place(t, map[string]string{
		"five": numbered(5), "src/main.go": "x", "zip": "PK\x03\x04\x00\x00", "control": strings.Repeat("\x01\x02a", 50),
		"utf32": "\xff\xfe\x00\x00a\x00\x00\x00", "README.md": "x", "empty": "", "no.png": "\x00\x01\x02",
	})
	tooltest.MakePipe(t, filepath.Join(dir, "pipe"))
	tests := []struct {
		params string
		want   []string
	}{
		{`{"file_path":"five","offset":6}`, []string{"past the end", "5 lines"}},
		{`{"file_path":"src"}`, []string{"is a directory", "list_directory"}},
		{`{"file_path":"src/mian.go"}`, []string{"does not exist", `did you mean "src/main.go"?`}},
		{`{"file_path":"readme.txt"}`, []string{`did you mean "README.md"?`}},
		{`{"file_path":"scr/main.go"}`, []string{`did you mean "src"?`}},
		{`{"file_path":"qqqqqqqq"}`, []string{"does not exist", "glob"}},
		{`{"file_path":"five/x"}`, []string{"is a file, not a folder"}},
		{`{"file_path":"zip"}`, []string{"is binary", "application/zip", "6 B"}},
		{`{"file_path":"control"}`, []string{"is binary"}},
		{`{"file_path":"no.png"}`, []string{"is binary", "application/octet-stream"}},
		{`{"file_path":"utf32"}`, []string{"is binary"}},
	}
	for _, tt := range tests {
		r := run(t, opts, "read_file", tt.params)
		category := registry.ErrorExecution
		if strings.Contains(tt.params, "offset") {
			category = registry.ErrorValidation
		}
		if !r.IsError || r.ErrorCategory != category {
			t.Errorf("%s: not a %s error: %s", tt.params, category, r.Text())
		}
		for _, want := range tt.want {
			if !strings.Contains(r.Text(), want) {
				t.Errorf("%s: %s\nwant %q", tt.params, r.Text(), want)
			}
		}
	}
	r, err := find(t, opts, "read_file").Run(t.Context(), tooltest.Call(`{"file_path":"pipe"}`))
	if err == nil && !r.IsError {
		t.Error("a pipe was read")
	}
}

func TestReadFileMedia(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
	opts, dir := place(t, map[string]string{
		"a.png": png, "no-extension": png, "b.pdf": "%PDF-1.7\nplain text", "c.wav": "RIFF\x00\x00\x00\x00WAVEfmt ",
		"d.mp3": "\xff\xfb\x90\x00\x00\x00", "e.mp4": "\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom", "sp ace/f.pdf": "%PDF-\x00",
		"g.mkv": "\x1aE\xdf\xa3\x93B\x82\x88matroska\x00", "h.bin": "\x00\x00\x00\x18ftypheic\x00", "i.mpg": "\x00\x00\x01\xba\x00",
	})
	url := "file://" + filepath.ToSlash(dir)
	tests := map[string]registry.Content{
		"a.png":        {Type: registry.ContentImage, MIMEType: "image/png", Data: []byte(png)},
		"no-extension": {Type: registry.ContentImage, MIMEType: "image/png", Data: []byte(png)},
		"b.pdf":        {Type: registry.ContentResource, MIMEType: "application/pdf", Data: []byte("%PDF-1.7\nplain text"), URI: url + "/b.pdf"},
		"c.wav":        {Type: registry.ContentAudio, MIMEType: "audio/wav", Data: []byte("RIFF\x00\x00\x00\x00WAVEfmt ")},
		"d.mp3":        {Type: registry.ContentAudio, MIMEType: "audio/mpeg", Data: []byte("\xff\xfb\x90\x00\x00\x00")},
		"e.mp4":        {Type: registry.ContentResource, MIMEType: "video/mp4", Data: []byte("\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom"), URI: url + "/e.mp4"},
		"g.mkv":        {Type: registry.ContentResource, MIMEType: "video/x-matroska", Data: []byte("\x1aE\xdf\xa3\x93B\x82\x88matroska\x00"), URI: url + "/g.mkv"},
		"h.bin":        {Type: registry.ContentImage, MIMEType: "image/heic", Data: []byte("\x00\x00\x00\x18ftypheic\x00")},
		"i.mpg":        {Type: registry.ContentResource, MIMEType: "video/mpeg", Data: []byte("\x00\x00\x01\xba\x00"), URI: url + "/i.mpg"},
		"sp ace/f.pdf": {Type: registry.ContentResource, MIMEType: "application/pdf", Data: []byte("%PDF-\x00"), URI: url + "/sp%20ace/f.pdf"},
	}
	for name, want := range tests {
		r := run(t, opts, "read_file", `{"file_path":`+tooltest.Quoted(name)+`}`)
		if diff := cmp.Diff([]registry.Content{want}, r.Content); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
		if !strings.Contains(r.Display.Text, "("+want.MIMEType+",") {
			t.Errorf("%s is displayed as %q", name, r.Display.Text)
		}
	}
}

func TestReadFileMediaTooLarge(t *testing.T) {
	opts, dir := place(t, map[string]string{"a.png": "\x89PNG\r\n\x1a\n"})
	if err := os.Truncate(filepath.Join(dir, "a.png"), 20<<20+1); err != nil {
		t.Fatal(err)
	}
	if r := run(t, opts, "read_file", `{"file_path":"a.png"}`); !r.IsError || !strings.Contains(r.Text(), "is larger than the limit of 20.0 MiB") {
		t.Errorf("%.200s", r.Text())
	}
}

// TestReadFileLineNumbers reads excerpts at every place of texts whose lines
// end before, at and after the end of the buffer.
func TestReadFileLineNumbers(t *testing.T) {
	for _, width := range []int{1, 7, readBuffer - 1, readBuffer, readBuffer + 1} {
		var text strings.Builder
		n := min(5, 1+2*readBuffer/width)
		if width < 10 {
			n = 3 * readBuffer / width
		}
		for i := range n {
			text.WriteString(strings.Repeat("x", width-1))
			text.WriteString(string(rune('a'+i%26)) + "\n")
		}
		for _, ending := range []string{"\n", ""} {
			opts, _ := place(t, map[string]string{"f": text.String() + "last" + ending})
			for _, at := range []int{1, 2, n / 2, n - 1, n, n + 1} {
				x := &excerpt{first: max(at, 1), limit: 1}
				if err := x.read(t.Context(), bufio.NewReaderSize(strings.NewReader(text.String()+"last"+ending), readBuffer)); err != nil {
					t.Fatal(err)
				}
				want := string(rune('a' + (x.first-1)%26))
				if x.first == n+1 {
					want = "last"
				}
				if got := x.text.String(); width < 2000 && !strings.HasSuffix(got, want) || x.total != n+1 {
					t.Errorf("width %d, line %d of %d: %.40q of %d", width, x.first, n+1, got, x.total)
				}
			}
			r := run(t, opts, "read_file", fmt.Sprintf(`{"file_path":"f","offset":%d}`, n+2))
			if want := fmt.Sprintf("which has %d lines", n+1); !r.IsError || !strings.HasSuffix(r.Text(), want) {
				t.Errorf("width %d past the end: %s", width, r.Text())
			}
		}
	}
}

// TestReadFileBounds reads an excerpt of a file that is too large to count its
// lines, and more text than one result can hold.
func TestReadFileBounds(t *testing.T) {
	opts, dir := place(t, map[string]string{"huge": numbered(1000), "fat": strings.Repeat(strings.Repeat("x", 1999)+"\n", 6000)})
	if err := os.Truncate(filepath.Join(dir, "huge"), 10<<30); err != nil {
		t.Fatal(err)
	}
	r := run(t, opts, "read_file", `{"file_path":"huge","limit":3}`)
	if want := "[showing lines 1-3 of more than 3 lines (the file has 10.0 GiB); continue with offset 4]\nline 1\nline 2\nline 3\n"; r.Text() != want {
		t.Errorf("got %.300q", r.Text())
	}
	far := strings.Repeat("x\n", maxCountedBytes)
	tooltest.Put(t, filepath.Join(dir, "far"), far)
	for params, want := range map[string]string{
		`{"file_path":"far","limit":100}`:                "[showing lines 1-100 of about 8300000 lines (estimated; the file has 16.0 MiB); continue with offset 101]\n" + strings.Repeat("x\n", 100),
		`{"file_path":"far","limit":1,"offset":8000000}`: "[showing line 8000000 of 8388608 total lines; continue with offset 8000001]\nx\n",
	} {
		if r := run(t, opts, "read_file", params); r.Text() != want {
			t.Errorf("%s: %.300q", params, r.Text())
		}
	}
	r = run(t, opts, "read_file", `{"file_path":"fat","limit":6000}`)
	if len(r.Text()) > readMaxText+1<<16 || !strings.Contains(r.Text()[:200], "stopped at 8.0 MiB of text; continue with offset 4") {
		t.Errorf("%d bytes: %.200s", len(r.Text()), r.Text())
	}
}

func TestReadFileStopsWhenContextIsCanceled(t *testing.T) {
	opts, dir := place(t, map[string]string{"huge": numbered(1000)})
	if err := os.Truncate(filepath.Join(dir, "huge"), 1<<40); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, offset := range []string{"1", "2", "3"} {
		_, err := find(t, opts, "read_file").Run(ctx, tooltest.Call(`{"file_path":"huge","offset":`+offset+`}`))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("offset %s: %v", offset, err)
		}
	}
}

func FuzzReadFile(f *testing.F) {
	f.Add([]byte("a\nb\r\n\xff\xfe"), 1, 2)
	f.Add([]byte("\xff\xfea\x00\x00\xd8"), 1, 1)
	f.Add([]byte("\xef\xbb\xbf"), 2, 9)
	opts, dir := place(f, nil)
	tool := find(f, opts, "read_file")
	f.Fuzz(func(t *testing.T, data []byte, offset, limit int) {
		if offset < 1 || limit < 1 || offset > 1<<40 || limit > 1<<20 {
			return
		}
		if err := os.WriteFile(filepath.Join(dir, "f"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := tool.Run(t.Context(), tooltest.Call(fmt.Sprintf(`{"file_path":"f","offset":%d,"limit":%d}`, offset, limit)))
		if err != nil {
			t.Fatal(err)
		}
		if text := r.Text(); strings.ToValidUTF8(text, "") != text {
			t.Errorf("invalid UTF-8: %q", text)
		}
	})
}

func TestReadFileRefusesUnapprovedFile(t *testing.T) {
	opts, dir := place(t, map[string]string{"secret": "x"})
	tooltest.Link(t, "secret", filepath.Join(dir, "link"))
	call := tooltest.Call(`{"file_path":"link"}`)
	call.Paths = []string{"free", "link"}
	if r, err := find(t, opts, "read_file").Run(t.Context(), call); err != nil || !r.IsError || strings.Contains(r.Text(), "x\n") {
		t.Errorf("%s; %v", r.Text(), err)
	}
}
