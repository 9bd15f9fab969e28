package shell

import (
	"slices"
	"testing"
)

// A command ruins the machine by the folder that it changes, wherever the line has gone to
// before, and not by words that only look like that folder or like an option.
func TestRuinedFolder(t *testing.T) {
	for _, tt := range []struct {
		start, line string
		ruins       bool
	}{
		{"", "cd /tmp; chmod -R 777 /etc", true},
		{"", "cd /tmp; chmod -R 777 ~", true},
		{"", "chmod -R 777 $x /etc", true},
		{"", "chmod -R 777 $(pwd)/etc", false},
		{"", "chmod -R 777 $(echo /etc)", true},
		{"", "chmod -R 777 /usr/x*", false},
		{"", "chmod --verbose 755 /", false},
		{"", "mv /etc", true}, // xargs adds where to
		{"", "mv x /etc", false},
		{"", "find ~d -delete", true}, // not an option
		{"", "find -L", false},
		{"", "find -L / -delete", true},
		{"", "find -D tree / -delete", true},
		{"", "cd ''; ls", false},
		{"", "cd \"$x\"/etc; chmod -R 777 .", false},
		{"/home/jane", "chmod -R 777 .", false}, // all that is in the workspace
		{"/home/jane", "cd ..; chmod -R 777 jane", true},
		{"/home/jane/work", "chmod -R 777 ..", true},
	} {
		ruins := slices.ContainsFunc(Read(Bash, tt.line, tt.start).Commands, func(c Command) bool { return c.Catastrophic != "" })
		if ruins != tt.ruins {
			t.Errorf("in %q: %q ruins the machine: %t", tt.start, tt.line, ruins)
		}
	}
}
