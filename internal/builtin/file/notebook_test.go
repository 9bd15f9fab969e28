package file

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin/tool"
)

func TestReadFileNotebook(t *testing.T) {
	book := func(cells string) string { return `{"cells":[` + cells + `],"nbformat":4}` }
	output := func(o string) string {
		return book(`{"cell_type":"code","source":"x","outputs":[` + o + `]}`)
	}
	const head = "--- cell 1 (code) ---\nx\n"
	tests := []struct{ name, data, want string }{
		{"no cells", book(""), "(no cells)\n"},
		{"source as one string", book(`{"cell_type":"raw","source":"a\nb\n"}`), "--- cell 1 (raw) ---\na\nb\n"},
		{"order and index", book(`{"cell_type":"code","source":"b"},{"cell_type":"code","source":[],"execution_count":null,"outputs":null}`),
			"--- cell 1 (code) ---\nb\n--- cell 2 (code) ---\n"},
		{"a cell type cannot fake a line", book(`{"cell_type":"a\nb","source":""}`), "--- cell 1 (\"a\\nb\") ---\n"},
		{"html only", output(`{"output_type":"execute_result","data":{"text/html":["<b>","x</b>"]}}`),
			head + "--- output of cell 1 (execute_result) ---\n<b>x</b>\n"},
		{"text first, images by type", output(`{"output_type":"display_data","data":{"image/png":"AAAA","text/html":"<b>","text/plain":["a\n","b"]}}`),
			head + "--- output of cell 1 (display_data) ---\na\nb\n[image/png, 3 B, not shown]\n"},
		{"an error without colors", output(`{"output_type":"error","ename":"E","evalue":"no","traceback":["\u001b[31mE\u001b[0m","no"]}`),
			head + "--- output of cell 1 (error) ---\nE\nno\n"},
		{"an error without a traceback", output(`{"output_type":"error","ename":"E","evalue":"no","traceback":[]}`),
			head + "--- output of cell 1 (error) ---\nE: no\n"},
		{"json only", output(`{"output_type":"execute_result","data":{"application/json":{"a":1}}}`),
			head + "--- output of cell 1 (execute_result) ---\n[application/json, 7 B, not shown]\n"},
		{"CRLF line breaks", output(`{"output_type":"stream","name":"stderr","text":"a\r\nb\r"}`),
			head + "--- output of cell 1 (stderr) ---\na\nb\n"},
	}
	for _, tt := range tests {
		text, _, err := notebookText([]byte(tt.data))
		if diff := cmp.Diff(tt.want, string(text)); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got)\n%s", tt.name, err, diff)
		}
	}
}

func TestReadFileNotebookFallsBack(t *testing.T) {
	tests := map[string]string{
		"cut":            `{"nbformat":4,"cells":[{`,
		"format 3":       `{"nbformat":3,"worksheets":[]}`,
		"no list":        `{"nbformat":4,"cells":{}}`,
		"wrong type":     `{"nbformat":4,"cells":[{"source":5}]}`,
		"wrong output":   `{"nbformat":4,"cells":[{"outputs":{}}]}`,
		"a list":         `[]`,
		"text":           "no JSON at all",
		"something more": `{"nbformat":4,"cells":[]} x`,
	}
	for name, data := range tests {
		opts, _ := place(t, map[string]string{"a.IPYNB": data})
		r := run(t, opts, "read_file", `{"file_path":"a.IPYNB"}`)
		if want := "[shown as it is: not a notebook of format 4]\n" + data; r.Text() != want {
			t.Errorf("%s: got %q", name, r.Text())
		}
	}
	opts, _ := place(t, map[string]string{"big.ipynb": `{"nbformat":4,"cells":[` + "\n" + strings.Repeat(" ", 20<<20) + "]}\n"})
	r := run(t, opts, "read_file", `{"file_path":"big.ipynb","limit":1}`)
	if want := "[shown as it is: the notebook is larger than 20.0 MiB; showing line 1 of more than 1 line ("; !strings.HasPrefix(r.Text(), want) {
		t.Errorf("a large notebook: %q", r.Text())
	}
}

// Reading a notebook of millions of cells takes little memory, wherever the
// excerpt is.
func TestReadFileNotebookOfManyCells(t *testing.T) {
	const cells = 200_000
	data := `{"nbformat":4,"cells":[{}` + strings.Repeat(",{}", cells-1) + "]}"
	var before, after runtime.MemStats
	opts, _ := place(t, map[string]string{"a.ipynb": data})
	runtime.GC() // what other tests left lets the heap grow more
	runtime.ReadMemStats(&before)
	r := run(t, opts, "read_file", `{"file_path":"a.ipynb","offset":199999}`)
	runtime.ReadMemStats(&after)
	if want := "of 200000 total lines]\n--- cell 199999 () ---\n--- cell 200000 () ---\n"; !strings.HasSuffix(r.Text(), want) {
		t.Errorf("got %q", r.Text())
	}
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 40<<20 {
		t.Errorf("the heap grew by %s", tool.Size(grown))
	}
}

func FuzzNotebook(f *testing.F) {
	f.Add([]byte(`{"nbformat":4,"cells":[{"cell_type":"code","source":["a"],"outputs":[{"output_type":"stream","name":"stdout","text":"a\rb"}]}]}`))
	f.Add([]byte(`{"nbformat":4,"cells":[{"attachments":{"a":{"image/png":1}},"outputs":[{"data":{"image/png":[1]}},{"output_type":"error"}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		text, cells, err := notebookText(data)
		if err != nil && !errors.Is(err, errNotebook) {
			t.Error(err)
		}
		if err == nil && strings.Count(string(text), "--- cell ") < cells {
			t.Errorf("%d cells, but not as many headers:\n%s", cells, text)
		}
	})
}
