package process

import (
	"cmp"
	"context"
	"io"
	"os"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/sandbox"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/tracing"
)

// Run starts the program, waits for it to exit and for its pipes to be closed,
// and returns the outcome. The error is a *[StartError], [ErrOutputLimit], or
// the cause of ctx; a non-zero exit code is not an error. When Run returns, the
// process group is gone. With ErrOutputLimit and the cause of ctx, the outcome
// contains the output so far.
func Run(ctx context.Context, spec Spec) (Outcome, error) {
	if ctx.Err() != nil {
		return Outcome{ExitCode: -1}, context.Cause(ctx)
	}
	spec.Env = tracing.Environ(ctx, spec.Env)
	child, ends, err := begin(spec, spec.Stdin != nil)
	if err != nil {
		return Outcome{ExitCode: -1}, err
	}
	limit := cmp.Or(spec.MaxOutput, DefaultMaxOutput)
	r := &running{
		child:  child,
		ends:   ends,
		spec:   spec,
		stdout: newCapture(limit, spec.Keep),
		stderr: newCapture(limit, spec.Keep),
		over:   make(chan struct{}),
	}
	return r.run(ctx)
}

// running is the state of one Run.
type running struct {
	child          *launched
	ends           *pipes
	spec           Spec
	stdout, stderr *capture
	output         sync.Mutex // one call of spec.Output at a time
	over           chan struct{}
	overOnce       sync.Once
}

func (r *running) run(ctx context.Context) (Outcome, error) {
	go r.child.await()
	drained := make(chan struct{})
	var readers, writer sync.WaitGroup
	readers.Go(func() { r.readStream(1, r.ends.stdout, r.stdout) })
	readers.Go(func() { r.readStream(2, r.ends.stderr, r.stderr) })
	go func() {
		readers.Wait()
		close(drained)
	}()
	if r.ends.stdin != nil {
		writer.Go(func() {
			// A child need not read its input, so EPIPE is ignored.
			_, _ = r.ends.stdin.Write(r.spec.Stdin)
			_ = r.ends.stdin.Close()
		})
	}

	err := r.wait(ctx, drained)

	r.child.finish()
	limitReading(r.ends.stdout)
	limitReading(r.ends.stderr)
	<-drained
	r.ends.closeOurs()
	writer.Wait()
	return r.outcome(), err
}

// wait returns when the child has exited and its pipes are closed, or when it
// is time to kill the rest of the group.
func (r *running) wait(ctx context.Context, drained <-chan struct{}) (err error) {
	exited, canceled := r.child.exited, ctx.Done()
	var timer <-chan time.Time
	for exited != nil || drained != nil {
		select {
		case <-drained:
			drained = nil
		case <-exited:
			exited = nil
			if err == nil {
				timer = time.After(cmp.Or(r.spec.Linger, DefaultLinger))
			}
		case <-canceled:
			canceled, err = nil, context.Cause(ctx)
			r.child.terminate()
			timer = time.After(cmp.Or(r.spec.Grace, DefaultGrace))
		case <-r.over:
			return ErrOutputLimit
		case <-timer:
			return err
		}
	}
	select { // several channels may be ready at once
	case <-r.over:
		return ErrOutputLimit
	default:
		return err
	}
}

func (r *running) readStream(stream int, f *os.File, into *capture) {
	copyChunks(f, func(p []byte) {
		if !into.add(p) {
			r.overOnce.Do(func() { close(r.over) })
		}
		if r.spec.Output != nil {
			r.output.Lock()
			defer r.output.Unlock()
			r.spec.Output(stream, p)
		}
	})
}

func (r *running) outcome() Outcome {
	var o Outcome
	var cutOut, cutErr bool
	o.Stdout, o.StdoutHead, cutOut = r.stdout.result()
	o.Stderr, o.StderrHead, cutErr = r.stderr.result()
	o.Truncated = cutOut || cutErr
	o.StdoutBytes, o.StderrBytes = r.stdout.total, r.stderr.total
	o.ExitCode, o.Signal = r.child.exit()
	if r.child.sandbox != nil {
		o.Refused = r.child.sandbox.Refused()
	}
	o.PID = r.child.cmd.Process.Pid
	return o
}

// capture keeps the beginning and the end of a stream in bounded memory. It is
// not safe for concurrent use.
type capture struct {
	limit   int64 // bytes allowed; negative means no limit
	headMax int64 // bytes kept from the start; negative means all
	tailMax int   // bytes kept from the end, after the head
	total   int64
	head    []byte
	tail    []byte // the end of the stream, at most tailMax long
	oldest  int    // where tail begins once it is full, as a ring buffer
}

// newCapture returns a capture for a stream of at most limit bytes, of which it
// keeps keep bytes; 0 means all.
func newCapture(limit, keep int64) *capture {
	if keep > 0 && (limit < 0 || keep < limit) {
		return &capture{limit: limit, headMax: keep / 2, tailMax: int(keep - keep/2)}
	}
	return &capture{limit: limit, headMax: limit}
}

// add adds p and reports whether the stream is within its limit.
func (c *capture) add(p []byte) bool {
	c.total += int64(len(p))
	if c.headMax < 0 {
		c.head = append(c.head, p...)
		return true
	}
	n := min(int64(len(p)), c.headMax-int64(len(c.head)))
	if need := len(c.head) + int(n); need > cap(c.head) {
		// Doubling produces less garbage than append's smaller steps.
		c.head = slices.Grow(c.head, int(min(max(2*int64(cap(c.head)), int64(need)), c.headMax))-len(c.head))
	}
	c.head = append(c.head, p[:n]...)
	if c.tailMax > 0 {
		c.addTail(p[n:])
	}
	return c.limit < 0 || c.total <= c.limit
}

func (c *capture) addTail(p []byte) {
	p = p[max(0, len(p)-c.tailMax):]
	n := min(len(p), c.tailMax-len(c.tail))
	c.tail = append(c.tail, p[:n]...)
	for p = p[n:]; len(p) > 0; p = p[n:] {
		n = copy(c.tail[c.oldest:], p)
		c.oldest = (c.oldest + n) % len(c.tail)
	}
}

func (c *capture) last() []byte { return slices.Concat(c.tail[c.oldest:], c.tail[:c.oldest]) }

// result returns what was kept, the length of the part before the cut, and
// whether something was cut, which is never inside a character. The capture must not be
// used afterwards.
func (c *capture) result() (out []byte, head int, cut bool) {
	head = len(c.head)
	if len(c.tail) == 0 {
		return c.head, head, false
	}
	if c.total == int64(len(c.head)+len(c.tail)) {
		out = slices.Concat(c.head, c.last())
		c.head, c.tail = nil, nil // free them: both may be large
		return out, len(out), false
	}
	before, _ := text.WholeRunes(c.head)
	after := c.last()
	for i := 0; i < utf8.UTFMax-1 && len(after) > 0 && !utf8.RuneStart(after[0]); i++ {
		after = after[1:]
	}
	c.head, c.tail = nil, nil
	return slices.Concat(before, after), len(before), true
}

// copyChunks passes what it reads from f to sink until the stream ends.
func copyChunks(f io.Reader, sink func([]byte)) {
	buf := make([]byte, 32<<10)
	for {
		n, err := f.Read(buf)
		if n > 0 {
			sink(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// Confinement is the sandbox for the program that one call of a tool starts. The context
// of the call carries it.
type Confinement struct {
	Profile *sandbox.Profile
	// Logs is the folder for what must survive if toolreg is killed, "" means none, and Private
	// are files and folders that the program must not create.
	Logs    string
	Private []string
	// Refused are the connections that the sandbox refused, as host:port. Background is
	// set if the program continues after the call. The tool sets Background, Run Refused.
	Refused    []string
	Background bool
}

// HasLoopback reports whether the program has a loopback interface of its own and no other network.
func (c *Confinement) HasLoopback() bool {
	return c != nil && c.Profile.Network.Mode == sandbox.NetworkLoopback
}

type confinementKey struct{}

// WithConfinement returns the context of a call whose program must be confined.
func WithConfinement(ctx context.Context, c *Confinement) context.Context {
	return context.WithValue(ctx, confinementKey{}, c)
}

// ConfinementOf returns the confinement of the program that a call starts, or nil if it is
// not confined.
func ConfinementOf(ctx context.Context) *Confinement {
	c, _ := ctx.Value(confinementKey{}).(*Confinement)
	return c
}

// Run is like [Run], but confines the program. If c is nil, the program is not confined.
func (c *Confinement) Run(ctx context.Context, spec Spec) (Outcome, error) {
	if c == nil {
		return Run(ctx, spec)
	}
	spec.Confine = c.Profile
	o, err := Run(ctx, spec)
	c.Refused = o.Refused
	return o, err
}

// Confiner confines programs of one kind that run outside of calls, such as hooks:
// it sets Spec.Confine unless they are not confined. If err is nil, after must be
// called when the program has exited. A nil Confiner does not confine anything.
type Confiner func(ctx context.Context, spec *Spec) (after func(), err error)

// Apply calls the Confiner.
func (c Confiner) Apply(ctx context.Context, spec *Spec) (after func(), err error) {
	if c == nil {
		return func() {}, nil
	}
	return c(ctx, spec)
}

// Run is like [Run], but confines the program.
func (c Confiner) Run(ctx context.Context, spec Spec) (Outcome, error) {
	after, err := c.Apply(ctx, &spec)
	if err != nil {
		return Outcome{ExitCode: -1}, err
	}
	defer after()
	return Run(ctx, spec)
}
