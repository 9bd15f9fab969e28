package shell

import (
	"regexp"
	"strings"
	"sync"
)

// awkActs matches awk scripts that may run programs, write files, use the network
// or load other scripts. It also matches some harmless ones.
var awkActs = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)system|extension|@|/inet|\\\r?\n|print.*[|>]|\|.*getline`)
})

// awkScripts adds a doubt if awk may do more than read and print text.
func (r *reading) awkScripts() {
	for _, w := range r.scripts() {
		if !w.known || awkActs().MatchString(strings.ReplaceAll(w.text, "||", "")) {
			r.doubt("the awk script may run commands or write files")
		}
	}
}
