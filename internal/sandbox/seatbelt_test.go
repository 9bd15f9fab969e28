package sandbox

import (
	"os"
	"path/filepath"
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

// A link that a program can change opens nothing; what is closed is so behind the link, too.
func TestSeatbeltDoesNotFollowLinksInTheWorkspace(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{os.Mkdir(dir+"/work", 0o700), os.Mkdir(dir+"/target", 0o700), os.Symlink("../target", dir+"/work/link"), os.Symlink("target", dir+"/link")} {
		if err != nil {
			t.Skip(err)
		}
	}
	for _, c := range []struct {
		change func(*Profile, []string)
		inside string // the rule through a link in the workspace; "" means none
	}{
		{func(p *Profile, paths []string) { p.Read = paths }, ""},
		{func(p *Profile, paths []string) { p.Opened = paths }, ""},
		{func(p *Profile, paths []string) { p.Scratch = paths }, ""},
		{func(p *Profile, paths []string) { p.Write = append(p.Write, paths...) }, ""},
		{func(p *Profile, paths []string) { p.Hide = paths }, "(deny file-read* file-write* "},
		{func(p *Profile, paths []string) { p.ReadOnly = paths }, "(deny file-write* "},
	} {
		for link, want := range map[string]bool{dir + "/work/link": c.inside != "", dir + "/link": true} {
			p := Profile{Write: []string{dir + "/work"}}
			c.change(&p, []string{link})
			text := seatbelt(p, "/none/tmp", 0)
			if rule := c.inside + `(subpath "` + dir + `/target")`; strings.Contains(text, rule) != want {
				t.Errorf("%s leads to %s: %v\n%s", link, rule, !want, text)
			}
		}
	}
}
