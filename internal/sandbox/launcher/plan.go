package launcher

// Name is argv[0] of a launcher.
const Name = "toolreg-sandbox"

// Descriptors that the launcher inherits in addition to the three streams.
const (
	PlanFD   = 3 // the encoded Plan, to be read to its end
	StatusFD = 4 // a SOCK_SEQPACKET socket for its reports
	NetFD    = 5 // the net namespace to join, if the launcher is started in no namespaces of its own
)

// Kinds of [Report].
const (
	Failed    = 'F' // the sandbox was not set up, or the program not started
	Listening = 'L' // the message carries a listening socket, see Plan.Listen
	Watching  = 'W' // the message carries the listener of the filter, see Plan.Watched
	Networked = 'N' // the message carries the net namespace, see Plan.Shared
	Started   = 'S' // the program runs; the message carries its mount namespace
	Ended     = 'E' // the program has ended; others that it started may still run
)

// Report is one message of the launcher.
type Report struct {
	Kind  byte
	Value int    // Failed: the errno; Listening: the port; Ended: the wait status of the program
	Step  string // Failed: the step that failed; StepStart for the start of the program
}

// StepStart is the step of a Failed report if the sandbox was set up completely
// but the program could not be started.
const StepStart = "starting the program"

// Plan lists what the launcher does, in this order.
type Plan struct {
	UID, GID int   // of the caller; the only ones that the user namespace knows
	Loopback bool  // the loopback interface is to be set up
	Shared   bool  // the net namespace is to be reported
	Listen   []int // ports on 127.0.0.1 of listening sockets to report

	Ops     []Op
	Rules   []Rule
	Filter  []byte // a seccomp filter, as the kernel reads it
	Watched bool   // the filter passes calls to a listener, which the launcher reports

	Dir     string // working directory
	SameDir bool   // Dir must be the folder in which the launcher was started

	Program string // "" means set the sandbox up, report Started and exit
	Argv    []string
	Env     []string
}

// Kinds of [Op]. A base path is relative to a new tmpfs, whose folder "root"
// becomes the root; a target is a path in the new root.
const (
	MakeDir  = 'd' // base path A, mode Flags
	MakeFile = 'f' // base path A, empty, mode Flags
	MakeLink = 'l' // base path B as a symbolic link to A
	Bind     = 'b' // path A at target B with mount attributes Flags
	BindBase = 's' // base path A at target B with mount attributes Flags
	Overlay  = 'o' // path A at target B, with changes written to base path C; read-only if the kernel cannot do that
	MountPTS = 'y' // new pseudoterminals at target A
	MountPro = 'p' // a new /proc at target A
)

// Op is one step of building the file system.
type Op struct {
	Kind    byte
	Flags   int
	A, B, C string
	Skip    bool // skip the step if A cannot be reached
}

// Rule grants access to a path of the new root and everything below it.
type Rule struct {
	Path   string
	Access int // LANDLOCK_ACCESS_FS_*
	IsFile bool
}

// Encode returns the plan as bytes.
func (p *Plan) Encode() []byte {
	var c coder
	p.code(&c)
	return c.data
}

// Decode reads a plan, and reports whether it was complete.
func Decode(data []byte) (*Plan, bool) {
	p, c := &Plan{}, coder{data: data, reads: true}
	p.code(&c)
	return p, c.isDone()
}

func (p *Plan) code(c *coder) {
	number(c, &p.UID)
	number(c, &p.GID)
	c.flag(&p.Loopback)
	c.flag(&p.Shared)
	list(c, &p.Listen, number)
	list(c, &p.Ops, func(c *coder, op *Op) {
		number(c, &op.Kind)
		number(c, &op.Flags)
		text(c, &op.A)
		text(c, &op.B)
		text(c, &op.C)
		c.flag(&op.Skip)
	})
	list(c, &p.Rules, func(c *coder, r *Rule) {
		text(c, &r.Path)
		number(c, &r.Access)
		c.flag(&r.IsFile)
	})
	text(c, &p.Filter)
	c.flag(&p.Watched)
	text(c, &p.Dir)
	c.flag(&p.SameDir)
	text(c, &p.Program)
	list(c, &p.Argv, text)
	list(c, &p.Env, text)
}

// Encode returns the report as bytes.
func (r Report) Encode() []byte {
	var c coder
	r.code(&c)
	return c.data
}

// DecodeReport reads a report, and reports whether it was complete.
func DecodeReport(data []byte) (Report, bool) {
	r, c := Report{}, coder{data: data, reads: true}
	r.code(&c)
	return r, c.isDone()
}

func (r *Report) code(c *coder) {
	number(c, &r.Kind)
	number(c, &r.Value)
	text(c, &r.Step)
}

// coder appends values to data, or reads them from its beginning: numbers as eight bytes, and
// strings preceded by their length.
type coder struct {
	data  []byte
	reads bool
	bad   bool // what was to be read is missing
}

// isDone reports whether everything was read.
func (c *coder) isDone() bool { return !c.bad && len(c.data) == 0 }

func number[T ~int | ~byte](c *coder, n *T) {
	const size = 8
	switch {
	case !c.reads:
		for i := range size {
			c.data = append(c.data, byte(uint64(*n)>>(8*i)))
		}
	case len(c.data) < size:
		c.bad = true
	default:
		var bits uint64
		for i, b := range c.data[:size] {
			bits |= uint64(b) << (8 * i)
		}
		*n, c.data = T(bits), c.data[size:]
	}
}

func (c *coder) flag(b *bool) {
	n := 0
	if *b {
		n = 1
	}
	number(c, &n)
	*b = n == 1
}

func text[T ~string | ~[]byte](c *coder, s *T) {
	n := len(*s)
	number(c, &n)
	switch {
	case !c.reads:
		c.data = append(c.data, *s...)
	case n < 0 || n > len(c.data):
		c.bad = true
	default:
		*s, c.data = T(c.data[:n]), c.data[n:]
	}
}

func list[T any](c *coder, all *[]T, item func(*coder, *T)) {
	n := len(*all)
	number(c, &n)
	for i := 0; i < n && !c.bad; i++ {
		if c.reads {
			*all = append(*all, *new(T))
		}
		item(c, &(*all)[i])
	}
}
