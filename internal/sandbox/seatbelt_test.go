package sandbox

import (
	"strings"
	"testing"
)

func TestSeatbelt(t *testing.T) {
	text := seatbelt(Profile{
		Read: []string{"/none/bin", `/none/a "b"\c`}, Write: []string{"/none/work"}, Scratch: []string{"/none/cache"},
		ReadOnly: []string{"/none/work/.git/hooks"}, Fixed: []string{"/none/work/.git"},
		Hide: []string{"/none/work/.git/hooks/secret", "/none/work/.env"}, Network: Network{Mode: NetworkHosts},
	}, "/none/tmp", 4711)
	last := -1
	for _, want := range []string{
		"(version 1)\n(deny default)\n",
		`(allow file-read* process-exec* file-map-executable (subpath "/none/a \"b\"\\c"))`,
		`(allow file-read* process-exec* file-map-executable (subpath "/none/bin"))`,
		`(allow file-read* process-exec* file-map-executable (subpath "/none/cache"))`,
		`(allow file-read* file-write* process-exec* file-map-executable (subpath "/none/tmp"))`,
		`(allow file-read* file-write* process-exec* file-map-executable (subpath "/none/work"))`,
		`(deny file-read* file-write* (subpath "/none/work/.env"))`,
		`(allow file-read* file-write* (subpath "/none/work/.git"))` + "\n" + `(deny file-write-unlink (literal "/none/work/.git"))`,
		`(allow file-read* (subpath "/none/work/.git/hooks"))` + "\n" + `(deny file-write* (subpath "/none/work/.git/hooks"))`,
		`(deny file-read* file-write* (subpath "/none/work/.git/hooks/secret"))`,
		`(allow network-outbound (remote ip "localhost:4711"))`,
	} {
		at := strings.Index(text, want)
		if at <= last {
			t.Errorf("%s is missing or too early", want)
		}
		last = at
	}
	if strings.Count(text, "(") != strings.Count(text, ")") || strings.Contains(text, "TREE") || strings.Contains(text, "ITSELF") {
		t.Error("the text is not well formed")
	}
	if t.Failed() {
		t.Log(text)
	}
	if text := seatbelt(Profile{}, "/none/tmp", 0); strings.Contains(text, "network") {
		t.Errorf("a network is open without being asked for:\n%s", text)
	}
}
