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
	var e encoder
	e.number(p.UID)
	e.number(p.GID)
	e.flag(p.Loopback)
	e.flag(p.Shared)
	e.number(len(p.Listen))
	for _, port := range p.Listen {
		e.number(port)
	}
	e.number(len(p.Ops))
	for _, op := range p.Ops {
		e.number(int(op.Kind))
		e.number(op.Flags)
		e.text(op.A)
		e.text(op.B)
		e.text(op.C)
		e.flag(op.Skip)
	}
	e.number(len(p.Rules))
	for _, r := range p.Rules {
		e.text(r.Path)
		e.number(r.Access)
		e.flag(r.IsFile)
	}
	e.text(string(p.Filter))
	e.flag(p.Watched)
	e.text(p.Dir)
	e.flag(p.SameDir)
	e.text(p.Program)
	e.texts(p.Argv)
	e.texts(p.Env)
	return e.out
}

// Decode reads a plan, and reports whether it was complete.
func Decode(data []byte) (*Plan, bool) {
	d := decoder{in: data}
	p := &Plan{UID: d.number(), GID: d.number(), Loopback: d.flag(), Shared: d.flag()}
	for range d.number() {
		if d.bad {
			break
		}
		p.Listen = append(p.Listen, d.number())
	}
	for range d.number() {
		if d.bad {
			break
		}
		p.Ops = append(p.Ops,
			Op{Kind: byte(d.number()), Flags: d.number(), A: d.text(), B: d.text(), C: d.text(), Skip: d.flag()})
	}
	for range d.number() {
		if d.bad {
			break
		}
		p.Rules = append(p.Rules, Rule{Path: d.text(), Access: d.number(), IsFile: d.flag()})
	}
	p.Filter, p.Watched = []byte(d.text()), d.flag()
	p.Dir, p.SameDir, p.Program, p.Argv, p.Env = d.text(), d.flag(), d.text(), d.texts(), d.texts()
	return p, !d.bad && len(d.in) == 0
}

// Encode returns the report as bytes.
func (r Report) Encode() []byte {
	e := encoder{out: []byte{r.Kind}}
	e.number(r.Value)
	e.text(r.Step)
	return e.out
}

// DecodeReport reads a report, and reports whether it was complete.
func DecodeReport(data []byte) (Report, bool) {
	if len(data) == 0 {
		return Report{}, false
	}
	d := decoder{in: data[1:]}
	r := Report{Kind: data[0], Value: d.number(), Step: d.text()}
	return r, !d.bad
}

// encoder writes numbers as eight bytes and strings preceded by their length.
type encoder struct{ out []byte }

func (e *encoder) number(n int) {
	for shift := 0; shift < 64; shift += 8 {
		e.out = append(e.out, byte(uint64(n)>>shift))
	}
}

func (e *encoder) flag(b bool) {
	n := 0
	if b {
		n = 1
	}
	e.number(n)
}

func (e *encoder) text(s string) {
	e.number(len(s))
	e.out = append(e.out, s...)
}

func (e *encoder) texts(list []string) {
	e.number(len(list))
	for _, s := range list {
		e.text(s)
	}
}

// decoder reads what encoder writes. If data is missing, it sets bad and
// returns zero values.
type decoder struct {
	in  []byte
	bad bool
}

func (d *decoder) number() int {
	if len(d.in) < 8 {
		d.bad = true
		return 0
	}
	var n uint64
	for i, b := range d.in[:8] {
		n |= uint64(b) << (8 * i)
	}
	d.in = d.in[8:]
	return int(n)
}

func (d *decoder) flag() bool { return d.number() == 1 }

func (d *decoder) text() string {
	n := d.number()
	if n < 0 || n > len(d.in) {
		d.bad = true
		return ""
	}
	s := string(d.in[:n])
	d.in = d.in[n:]
	return s
}

func (d *decoder) texts() []string {
	var out []string
	for range d.number() {
		if d.bad {
			break
		}
		out = append(out, d.text())
	}
	return out
}
