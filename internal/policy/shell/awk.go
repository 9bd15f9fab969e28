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

// awkRuns returns a doubt if awk may do more than read and print text.
func awkRuns(name string, args []word) runs {
	p := program{valued: "-F -v -e --field-separator --assign --source", attached: "-L --lint",
		runs: "-f -E -i -l -W --file --exec --include --load", acts: "-o -p -d -D --pretty-print --profile --dump-variables --debug"}
	o := p.read(args, true)
	r := o.runs(name)
	r.scripts, r.dynamic = nil, false // they are not shell scripts
	scripts := args[o.rest:min(o.rest+1, len(args))]
	for _, x := range o.options {
		if x.name == "-e" || x.name == "--source" {
			scripts = append(scripts, x.value)
		}
	}
	for _, s := range scripts {
		if !s.known || awkActs().MatchString(strings.ReplaceAll(s.text, "||", "")) {
			r.doubt = "the awk script may run commands or write files"
		}
	}
	return r
}
