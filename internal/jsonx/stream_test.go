package jsonx

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestStream(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		in   io.Reader
		want []string // with the numbers of the lines
		err  error
	}{
		"nothing":           {strings.NewReader(""), nil, io.EOF},
		"blank lines":       {strings.NewReader("\n{}\r\n \n[1]"), []string{"2 {}", "4 [1]"}, io.EOF},
		"a byte order mark": {strings.NewReader("\uFEFF1\n2\n"), []string{"1 1", "2 2"}, io.EOF},
		"long lines":        {strings.NewReader("1\n" + long + "\n2\n" + long), []string{"1 1", "2 long", "3 2", "4 long"}, io.EOF},
		"a line of a limit": {strings.NewReader(long[:999] + "\n"), []string{"1 " + long[:999]}, io.EOF},
		"an error":          {io.MultiReader(strings.NewReader("1\n2"), iotest.ErrReader(broken)), []string{"1 1", "2 2"}, broken},
	} {
		l := NewStream(tt.in, 1000)
		var got []string
		var err error
		for range 10 {
			var line []byte
			if line, err = l.Next(); errors.Is(err, ErrLongLine) {
				line = []byte("long")
			} else if err != nil {
				break
			}
			got = append(got, string(rune('0'+l.Number()))+" "+string(line))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || !errors.Is(err, tt.err) {
			t.Errorf("%s: error %v (-want +got):\n%s", name, err, diff)
		}
		if _, again := l.Next(); !errors.Is(again, tt.err) {
			t.Errorf("%s: then %v", name, again)
		}
	}
}
