package shell

import (
	"cmp"
	_ "embed"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/toolreg/toolreg/internal/lazy"
)

// table describes the arguments of a program or of a subcommand: the options that
// are known to be harmless, and those that run programs or write files. An option
// in no table is never allowed by a rule on the program. The file tables.txt
// explains the fields.
type table struct {
	path    string            // the program and its subcommands, as in "git log"
	options map[string]option // by name, with dashes
	subs    map[string]string // subcommands with a table, and their paths
	attrs   map[string]string // "@max=1" is attrs["max"] = "1"
	parent  *table
	names   map[string]string // other names of subcommands, and the last name of each option

	patterns map[string]*regexp.Regexp // of operands, by attribute
}

// option describes an option of a program.
type option struct {
	name  string
	arity byte // one of the constants below
	kind  byte // what its value is, or what the option does; 0 if any value is harmless
}

// The numbers of values of an option.
const (
	noValue       = 0
	oneValue      = '=' // in the same word or the next
	twoValues     = '2' // in the next words
	attachedValue = '?' // in the same word, if there is one
)

// The kinds of options, as in tables.txt.
const (
	kindNumber  = '#'
	kindPlain   = '@'
	kindLinker  = 'l'
	kindArchive = 'h'
	kindNear    = 'f'
	kindProgram = 's'
	kindWrites  = '>'
	kindStdout  = '-'
	kindOutput  = '.'
	kindRuns    = '|'
	kindScript  = '$'
	kindSplits  = ':'
	kindSub     = 'c'
	kindActs    = '!'
	kindSilent  = '~'
	kindBars    = '^'
	kindCode    = '*'
	kindNames   = '%'
)

//go:embed tables.txt
var tablesText string

// tableFile contains the lines of tables.txt by the path on their left side, one for
// each of several names, and the subcommands and the table of each path.
type tableFile struct {
	lines map[string]string
	subs  map[string]map[string]string
	table map[string]func() *table
}

// tables is the content of tables.txt.
var tables = lazy.New(readTables)

// readTables reads tables.txt, except for the tables themselves, which are read when they are first needed.
func readTables() *tableFile {
	file := &tableFile{lines: map[string]string{},
		subs: map[string]map[string]string{}, table: map[string]func() *table{}}
	out := file.lines
	var paths []string
	for line := range strings.Lines(tablesText) {
		switch line = strings.TrimRight(line, "\n"); {
		case line == "" || line[0] == '#':
		case line[0] == ' ':
			for _, p := range paths {
				out[p] += line
			}
		default:
			left, right, _ := strings.Cut(line, ": ")
			paths = []string{""}
			for names := range strings.FieldsSeq(left) {
				var next []string
				for _, p := range paths {
					for name := range strings.SplitSeq(names, ",") {
						next = append(next, strings.TrimSpace(p+" "+name))
					}
				}
				paths = next
			}
			for _, p := range paths {
				out[p] = right
				for i := strings.LastIndexByte(p, ' '); i > 0; i = strings.LastIndexByte(p[:i], ' ') {
					program := p[:i]
					if file.subs[program] == nil {
						file.subs[program] = map[string]string{}
					}
					file.subs[program][p[i+1:]] = p
					out[program] = cmp.Or(out[program], " ") // only subcommands may be known
					p = program
				}
			}
		}
	}
	for p := range out {
		file.table[p] = sync.OnceValue(func() *table { return file.readTable(p) })
	}
	return file
}

// plainName is programName without the g prefix of GNU programs, on systems where they have one:
// grm is rm.
func plainName(word string) string {
	name := programName(word)
	if t := tableOf(name); hasWord("gdd gshred", name) || t != nil && name == "g"+t.path && t.path != "cd" {
		return name[1:]
	}
	return name
}

// tableOf returns the table of a program, or nil if it has none. It ignores a version at the end of
// the name and the prefix of GNU versions.
func tableOf(name string) *table {
	if name == "" || name[0] == '$' || strings.Contains(name, " ") {
		return nil
	}
	if strings.HasPrefix(name, "ld") && strings.Contains(name, ".so") { // as in ld-linux-x86-64.so.2
		name = "ld.so"
	}
	for _, n := range []string{name, strings.TrimRight(name, "0123456789."), strings.TrimPrefix(name, "g")} {
		if hasKey(tables.Get().lines, n) {
			return tables.Get().table[n]()
		}
	}
	return nil
}

// readTable returns the table of a path.
func (f *tableFile) readTable(path string) *table {
	t := &table{
		path:    path,
		options: map[string]option{},
		subs:    f.subs[path],
		attrs:   map[string]string{},
		names:   map[string]string{},

		patterns: map[string]*regexp.Regexp{},
	}
	if i := strings.LastIndexByte(path, ' '); i > 0 {
		t.parent = f.table[path[:i]]()
	}
	t.addTokens(f.lines, f.lines[path])
	for _, attr := range []string{"ops", "first"} {
		if t.has(attr) {
			t.patterns[attr] = regexp.MustCompile("^(" + t.attrs[attr] + ")$")
		}
	}
	if like, ok := t.attrs["like"]; ok {
		for program := range strings.SplitSeq(like, ",") {
			t.subs[program] = program
		}
	}
	for pair := range strings.SplitSeq(t.attrs["alias"], ",") {
		name, of, _ := strings.Cut(pair, ":")
		t.names[name] = of
	}
	return t
}

// addTokens reads the tokens of a table. lines are those of the groups that it inserts.
func (t *table) addTokens(lines map[string]string, text string) {
	for token := range strings.FieldsSeq(text) {
		switch {
		case token[0] == '@':
			name, value, _ := strings.Cut(token[1:], "=")
			t.attrs[name] = value
		case token[0] == '$':
			t.addTokens(lines, lines[token])
		default:
			end := strings.IndexAny(token, "=?!~^*%")
			if end < 0 {
				end = len(token)
			}
			names, rest := token[:end], token[end:]
			o := option{}
			switch {
			case strings.HasPrefix(rest, "=="):
				o.arity, rest = twoValues, rest[2:]
			case strings.HasPrefix(rest, "="), strings.HasPrefix(rest, "?"):
				o.arity, rest = rest[0], rest[1:]
			}
			if rest != "" {
				o.kind = rest[0]
			}
			for same := range strings.SplitSeq(names, ",") {
				last := same[strings.LastIndexByte(same, '/')+1:]
				for name := range strings.SplitSeq(same, "/") {
					if o.kind != kindNames {
						t.option(name, o)
					}
					t.names[t.spelled(name)] = t.spelled(last)
				}
			}
		}
	}
}

// option adds an option, or several if name is a cluster of letters.
func (t *table) option(name string, o option) {
	if t.has("whole") || strings.HasPrefix(name, "--") || len(name) <= 2 || o != (option{}) {
		o.name = name
		t.options[t.spelled(name)] = o
		return
	}
	for _, letter := range name[1:] {
		o.name = "-" + string(letter)
		t.options[o.name] = o
	}
}

// spelled returns the name by which an option is stored.
func (t *table) spelled(name string) string {
	if t.has("whole") {
		return "-" + strings.TrimLeft(name, "-")
	}
	return name
}

// optionName returns an option without dashes, in full, and of several names the last. The table may be nil.
func (t *table) optionName(name string) string {
	for ; t != nil; t = t.parent {
		name = t.spelled(name)
		of, ok := t.names[name]
		if !ok && len(name) > 2 && name[:2] == "--" {
			for full, other := range t.names {
				if strings.HasPrefix(full, name) {
					of = max(of, other)
				}
			}
		}
		if of != "" {
			return strings.TrimLeft(of, "-")
		}
	}
	return strings.TrimLeft(name, "-")
}

// given reports whether an option is among the arguments, in any spelling.
func (t *table) given(option string, args []word) bool {
	return slices.ContainsFunc(args, func(w word) bool {
		names, _ := t.optionsIn(w.text)
		return slices.Contains(names, option)
	})
}

// optionsIn returns the names of the options in a word, and the value or subcommand attached to the last. Without
// a table, the last is the whole word.
func (t *table) optionsIn(word string) (names []string, value string) {
	if word == "" || strings.IndexByte("-+:", word[0]) < 0 {
		return nil, ""
	}
	name, value, _ := strings.Cut(word, "=")
	switch {
	case word[0] != '-':
		return []string{t.optionName(word[:1])}, ""
	case strings.HasPrefix(word, "--") || t != nil && t.has("whole"):
		return strings.Split(t.optionName(name), "&"), value
	}
	var seen [256]bool
	for i := 1; i < len(word); i++ {
		letter := "-" + word[i:i+1]
		if seen[word[i]] {
			continue
		}
		seen[word[i]] = true
		names = append(names, strings.Split(t.optionName(letter), "&")...)
		if t != nil && letter != "--" && (t.options[letter].arity == oneValue || hasKey(t.subs, letter)) {
			return names, word[i+1:]
		}
	}
	if t == nil {
		names = append(names, t.optionName(name))
	}
	return names, ""
}

func (t *table) has(attr string) bool {
	_, ok := t.attrs[attr]
	return ok
}

// hasSubcommands reports whether there are subcommands besides --, which only ends the options.
func (t *table) hasSubcommands() bool {
	return len(t.subs) > 1 || len(t.subs) == 1 && !hasKey(t.subs, "--")
}

// optionValue is an option of a command line and its value.
type optionValue struct {
	option
	value word
}

// reading contains the arguments of a program, as its table divides them.
type reading struct {
	table    *table
	options  []optionValue
	operands []word // without subcommands
	rest     int    // index of the first operand or subcommand
	lead     int    // number of arguments up to the last subcommand, or script if the table says so
	path     []word // these without the options between them
	ended    bool   // the options ended with --

	runner       *table // runs the command in the arguments; nil if they contain none
	at           int    // index of the first argument of runner
	afterUnknown bool   // an unknown option precedes it

	unlisted  string   // why the arguments are not known to be harmless; "" if they are
	unsure    bool     // it is not known how many values an option has
	shifted   bool     // a word may be an option, or no word at all, so that others have another meaning
	attached  [][]word // values attached to unknown options, as commands
	scanned   int      // bytes read to find these; over maxInnerWords, there are too many
	named     string   // why a rule must have the subcommand; "" if it need not
	stdin     string   // why no rule can allow it: it runs its stdin
	dynamic   bool     // a script of the program may run commands
	variables []word   // NAME=VALUE before the first operand
}

func (r *reading) doubt(format string, args ...any) {
	if r.unlisted == "" {
		r.unlisted = fmt.Sprintf(format, args...)
	}
}

// dashed adds a doubt if a word known only at run time may be an option.
func (r *reading) dashed(w word) {
	if w.known || w.plainStart && !strings.HasPrefix(w.text, "-") {
		return
	}
	r.shifted = true
	if !r.table.has("safe") {
		r.doubt("a word known only at run time may be an option of %s", r.table.path)
	}
}

// readArgs divides arguments into options, subcommands and operands. If first is set,
// the first operand ends the options, as in programs that run the words after it.
// A value that begins with a dash is read as an option as well.
func (t *table) readArgs(args []word, first bool) reading {
	r := reading{rest: -1}
	r.enter(t)
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case r.ended || a.text == "-" && !hasKey(r.table.options, "-") || !strings.HasPrefix(a.text, "-"):
			if first && t.has("assigns") && strings.Contains(a.text, "=") {
				r.variables = append(r.variables, a)
				continue
			}
			r.operand(args, i)
			if first {
				return r
			}
		case a.text == "--" && first:
			for i++; i < len(args) && t.has("assigns") && strings.Contains(args[i].text, "="); i++ {
				r.variables = append(r.variables, args[i])
			}
			r.rest = i
			return r
		case a.text == "--" && hasKey(r.table.subs, "--") && !(r.table.has("lead") && len(r.operands) == 0):
			r.checkOperands()
			r.table, r.operands = tables.Get().table[r.table.subs["--"]](), nil
		case a.text == "--":
			r.ended = true
		default:
			if path, ok := r.table.subs[a.text]; ok && len(r.operands) == 0 { // as in python -m
				r.leads(args, i)
				r.enter(tables.Get().table[path]())
				continue
			}
			r.dashed(a)
			i += r.option(args[i:])
		}
	}
	if r.rest < 0 {
		r.rest = len(args)
	}
	r.checkOperands()
	return r
}

// splitCluster makes separate words of a cluster of options that ends in a subcommand, as in
// python -Im pip and python -mpip.
func (t *table) splitCluster(args []word) []word {
	if !t.hasSubcommands() {
		return args
	}
	for i := 0; i < len(args) && strings.HasPrefix(args[i].text, "-") && !strings.HasPrefix(args[i].text, "--"); i++ {
		text := args[i].text
		_, value := t.optionsIn(text)
		end := len(text) - len(value)
		last := "-" + text[max(1, end-1):end]
		if !hasKey(t.subs, last) {
			if value == "" && t.options[last].arity == oneValue {
				i++
			}
			continue
		}
		out := slices.Clone(args[:i])
		for _, part := range []string{text[:end-1], last, value} {
			if part != "-" && part != "" {
				out = append(out, word{text: part, known: args[i].known})
			}
		}
		return append(out, args[i+1:]...)
	}
	return args
}

func hasKey[V any](m map[string]V, key string) bool {
	_, ok := m[key]
	return ok
}

// leads adds an argument that determines what the program does.
func (r *reading) leads(args []word, i int) {
	r.path, r.lead = append(r.path, args[i]), i+1
}

// enter continues with a table after the arguments so far.
func (r *reading) enter(t *table) {
	r.table = t
	if t.has("runs") {
		r.runner, r.at, r.afterUnknown = t, r.lead, r.unsure
	}
}

// operand adds an operand, or the subcommand that it names.
func (r *reading) operand(args []word, i int) {
	a, t := args[i], r.table
	if strings.HasPrefix(a.text, "+") && t.has("plus") && len(r.operands) == 0 {
		r.unknown(a.text)
		return
	}
	if r.rest < 0 {
		r.rest = i
	}
	r.dashed(a)
	if r.ended && strings.HasPrefix(a.text, "-") {
		r.doubt("%s behind -- may be an option of what %s runs", a.text, t.path)
	}
	if path, ok := t.subs[a.text]; ok && len(r.operands) == 0 && !r.ended {
		if !a.known {
			r.doubt("the subcommand of %s is not known before it runs", t.path)
		}
		r.leads(args, i)
		r.enter(tables.Get().table[path]())
		return
	}
	if t.hasSubcommands() && !t.has("operands") {
		r.doubt("%s %s is not a command that is known to be harmless", t.path, a.text)
	}
	if t.has("lead") && len(r.operands) == 0 {
		r.leads(args, i)
	}
	r.operands = append(r.operands, a)
}

// option adds the options in the first word, and returns how many of the following
// words belong to their values.
func (r *reading) option(args []word) int {
	t, text := r.table, args[0].text
	name, value, attached := strings.Cut(text, "=")
	o, ok := t.options[t.spelled(name)]
	switch {
	case ok && (len(name) > 2 || t.has("whole") || text == "-"):
		return r.value(o, word{text: value, known: args[0].known}, attached, args[1:])
	case strings.HasPrefix(text, "--") || t.has("whole"):
		return r.abbreviated(args, name, value, attached)
	}
	if strings.Trim(text[1:], "0123456789") == "" && hasKey(t.options, "-#") {
		return 0
	}
	for i := 1; i < len(text); i++ {
		o, ok := t.options["-"+text[i:i+1]]
		switch {
		case !ok:
			r.unknown(text)
			r.attach(word{text: text[i+1:], known: args[0].known})
		case o.arity != noValue:
			return r.value(o, word{text: text[i+1:], known: args[0].known}, i+1 < len(text), args[1:])
		default:
			r.value(o, word{}, false, nil)
		}
	}
	return 0
}

func (r *reading) unknown(option string) {
	r.unsure = true
	r.doubt("%s is not among the options of %s that are known to be harmless", option, r.table.path)
}

// attach adds a value that is attached to an unknown option. It may be a command, or a
// setting whose value is one.
func (r *reading) attach(value word) {
	for value.text != "" && r.scanned <= maxInnerWords {
		r.scanned += len(value.text)
		r.attached = append(r.attached, pieces(value)...)
		_, value.text, _ = strings.Cut(value.text, "=")
	}
}

// abbreviated adds the dangerous options that an option in no table may mean: the
// abbreviation of a long name, or an option of the program given after its
// subcommand.
func (r *reading) abbreviated(args []word, name, value string, attached bool) (taken int) {
	r.unknown(args[0].text)
	r.attach(word{text: value, known: args[0].known})
	for t := r.table; t != nil && len(name) > 2; t = t.parent {
		for full, o := range t.options {
			if o.isDangerous() && strings.HasPrefix(full, t.spelled(name)) {
				taken = max(taken, r.value(o, word{text: value, known: args[0].known}, attached, args[1:]))
			}
		}
	}
	return taken
}

func (o option) isDangerous() bool {
	return strings.IndexByte(string([]byte{kindWrites, kindStdout, kindOutput, kindRuns,
		kindScript, kindSplits, kindSub, kindActs, kindCode}), o.kind) >= 0
}

// value adds an option with its value: v if it is attached, else the next words.
// It returns how many of these belong to the value.
func (r *reading) value(o option, v word, attached bool, next []word) int {
	taken := 0
	switch {
	case o.arity == noValue && attached:
		r.unknown(o.name + "=" + v.text)
	case o.arity == attachedValue || o.arity == noValue || o.arity == oneValue && attached:
	case len(next) == 0 || o.arity == twoValues && len(next) == 1:
		r.doubt("%s %s lacks its value", r.table.path, o.name)
	default:
		v, taken = next[0], 1
		if o.arity == twoValues {
			taken = 2
		}
		for _, w := range next[:taken] {
			if strings.HasPrefix(w.text, "-") && w.text != "-" &&
				!((o.kind == kindNumber || o.kind == kindLinker) && o.takes(w)) {
				r.doubt("the value %s of %s %s may be an option", w.text, r.table.path, o.name)
				taken, r.unsure = 0, true
			}
			r.dashed(w)
		}
	}
	r.options = append(r.options, optionValue{o, v})
	switch {
	case o.kind == 0 || o.kind == kindSilent || o.kind == kindBars ||
		o.arity == attachedValue && v.text == "" && !o.isDangerous() || o.takes(v):
	case o.kind == kindWrites || o.kind == kindStdout || o.kind == kindOutput:
		r.doubt("%s %s writes a file", r.table.path, o.name)
	case o.kind == kindCode:
		r.doubt("%s %s runs code that no rule on the program covers", r.table.path, o.name)
	case o.isDangerous():
		r.doubt("%s %s may run another command or change a file", r.table.path, o.name)
	default:
		r.doubt("the value of %s %s is not known to be harmless", r.table.path, o.name)
	}
	return taken
}

// takes reports whether a value is certainly of the kind that the option expects.
func (o option) takes(v word) bool {
	if !v.known {
		return false
	}
	switch o.kind {
	case kindNumber:
		return numbers.Get().MatchString(v.text)
	case kindPlain:
		return !strings.HasPrefix(v.text, "@") && !strings.Contains(v.text, "%output{")
	case kindLinker:
		return linkerFlags.Get().MatchString(v.text)
	case kindArchive:
		host, _, remote := strings.Cut(v.text, ":")
		return !remote || strings.Contains(host, "/")
	case kindNear:
		return !strings.ContainsAny(v.text, `/\~:`) && v.text != ".." && v.text != ""
	case kindProgram:
		return !strings.HasPrefix(v.text, "-")
	case kindWrites:
		return v.text == "/dev/null"
	case kindStdout:
		return v.text == "/dev/null" || v.text == "-"
	case kindOutput:
		return v.text == "/dev/null" || v.text != "" && !strings.HasPrefix(v.text, "~") && filepath.IsLocal(v.text)
	}
	return false
}

var (
	numbers     = lazy.NewRegexp(`^[+-]?[0-9][0-9.]*[A-Za-z]{0,2}$`)
	linkerFlags = lazy.NewRegexp(`^((-s|-w|-X[ =][A-Za-z0-9_./-]+=[A-Za-z0-9_./+-]*)( |$))*$`)
)

// checkOperands compares the number and form of the operands with the table.
func (r *reading) checkOperands() {
	t := r.table
	if t.has("deny") {
		r.doubt("the arguments of %s are not known to be harmless", t.path)
	}
	if t.has("stdin") && !slices.ContainsFunc(r.options,
		func(x optionValue) bool { return x.kind == kindSilent || x.kind == kindCode }) &&
		(len(r.operands) == 0 || r.operands[0].text == "-") {
		r.stdin = t.path + " runs its stdin"
		if r.unsure {
			r.stdin = r.unlisted + ", and without a script it runs its stdin"
		}
		r.doubt("%s", r.stdin)
	}
	trial := false // of several options that say so, the last counts
	for _, x := range r.options {
		trial = trial && x.kind != kindSilent || x.isTrial()
	}
	if t.has("named") && !trial {
		r.named = fmt.Sprintf("%s changes a %s, so a rule must name it, not %s alone",
			t.path, t.attrs["named"], strings.Fields(t.path)[0])
	}
	if t.has("max") {
		sure := !slices.ContainsFunc(r.operands, func(w word) bool { return !w.known })
		if limit := int(t.attrs["max"][0] - '0'); len(r.operands) > limit || !sure {
			r.doubt("%s is known with %d operands at most", t.path, limit)
		}
	}
	files, _, _ := r.targets()
	if slices.ContainsFunc(files, func(w word) bool { return !w.known && !w.expanded && (!w.glob || w.gap) }) {
		r.doubt("what %s writes is not known before it runs", t.path)
	}
	for i, w := range r.operands {
		for attr, pattern := range t.patterns {
			if (attr == "ops" || i == 0) && !w.matches(pattern) {
				r.doubt("the operand %s of %s is not known to be harmless", w.text, t.path)
			}
		}
	}
}

// matches reports whether a word certainly matches a pattern. Of a word known only at run time, the first byte
// may be enough.
func (w word) matches(pattern *regexp.Regexp) bool {
	text := w.text
	if !w.known {
		if !w.plainStart || !strings.HasSuffix(pattern.String(), ".*)$") {
			return false
		}
		text = text[:min(1, len(text))]
	}
	return pattern.MatchString(text)
}

// targets returns the operands that name files which the program writes, and the folder
// in which it writes files with the names of others, if it is a folder.
func (r *reading) targets() (files []word, folder word, from []word) {
	switch r.table.attrs["writes"] {
	case "all":
		return r.operands, word{}, nil
	case "last", "moved":
		from, folder = r.operands, word{text: ".", known: true}
		if i := slices.IndexFunc(r.options,
			func(x optionValue) bool { return x.name == "-t" || x.name == "--target-directory" }); i >= 0 {
			folder = r.options[i].value
			files = []word{folder}
		} else if len(from) > 1 {
			folder, from = from[len(from)-1], from[:len(from)-1]
			files = []word{folder}
		}
		if r.table.attrs["writes"] == "moved" {
			files = append(files, from...)
		}
	}
	return files, folder, from
}

// isTrial reports whether the option makes the program only show what it would do.
func (x optionValue) isTrial() bool {
	return x.kind == kindSilent &&
		(x.arity == noValue || x.value.known && hasWord("client server", x.value.text))
}

// isNamed reports whether a word certainly means the program of the table: it is the plain name, or
// a path in a system folder.
func (t *table) isNamed(word string) bool {
	dir, name := path.Split(word)
	if t.has("versions") {
		name = strings.TrimRight(name, "0123456789.")
	}
	return name == t.path && (dir == "" || t.has("local") ||
		hasWord("/bin/ /usr/bin/ /usr/local/bin/ /sbin/ /usr/sbin/ /usr/local/sbin/ /opt/homebrew/bin/", dir))
}

// dashed converts the old style of tar, where the first word is a cluster of
// options without a dash, to separate options. Their values are the following
// words, in order, and never the rest of the first word. If the first words may turn out
// to be nothing, those behind them are read in both ways.
func (t *table) dashed(args []word) []word {
	first := slices.IndexFunc(args, func(w word) bool { return w.known || w.text != "" })
	if first > 0 {
		return slices.Concat(t.dashed(args[first:]), args)
	}
	if len(args) == 0 || strings.HasPrefix(args[0].text, "-") || args[0].text == "" {
		return args
	}
	out, values := []word{}, args[1:]
	for _, letter := range args[0].text {
		out = append(out, word{text: "-" + string(letter), known: args[0].known})
		if (t.options["-"+string(letter)].arity == oneValue || strings.ContainsRune("gHKLNVX", letter)) &&
			len(values) > 0 {
			out, values = append(out, values[0]), values[1:]
		}
	}
	return append(out, values...)
}

// scripts returns the scripts that the program interprets itself: the values of
// options, else the first operand. If words may have another meaning, any of them
// may be a script.
func (r *reading) scripts() []word {
	var out []word
	for _, x := range r.options {
		if x.kind == kindProgram || r.shifted {
			out = append(out, x.value)
		}
	}
	if r.shifted {
		return append(out, r.operands...)
	}
	if out == nil {
		out = r.operands[:min(1, len(r.operands))]
	}
	return out
}

// isNameOf reports whether the program takes a word for the subcommand that a rule
// names, because the word is another name for it or an abbreviation.
func (t *table) isNameOf(word, sub string) bool {
	if t == nil || word == "" || t.attrs["alias"] == "" {
		return false
	}
	word, sub = strings.ToLower(word), strings.ToLower(sub)
	meant := cmp.Or(t.names[sub], sub)
	if hasKey(t.names, word) || hasKey(t.subs, word) || !t.has("prefix") {
		return cmp.Or(t.names[word], word) == meant
	}
	for name, of := range t.names {
		if of == meant && strings.HasPrefix(name, word) {
			return true
		}
	}
	return strings.HasPrefix(meant, word)
}
