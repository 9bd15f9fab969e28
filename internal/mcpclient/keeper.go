package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/toolreg/toolreg/internal/mcpclient/keep"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/timing"
)

// KeepServer keeps a server until it is no longer used. A [keep.Start] starts the process
// that calls it: in has the description of the server. listening is called when runs can
// attach, or with the reason why they cannot. confiner returns the sandbox of a plan of
// [Keep].
func KeepServer(ctx context.Context, in io.Reader, listening func(error) error,
	confiner func(plan json.RawMessage) (process.Confiner, error)) error {
	spec, err := keep.Read(in)
	var confine process.Confiner
	if err == nil && spec.Plan != nil {
		confine, err = confiner(spec.Plan)
	}
	var k *keep.Keeper
	if err == nil {
		k, err = keep.Listen(ctx, spec)
	}
	if err != nil {
		return errors.Join(err, listening(err))
	}
	defer k.Close()
	if err := listening(nil); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-k.Stopped():
			cancel()
		case <-ctx.Done():
		}
	}()
	p := spec.Process
	opts := &Options{
		Server: settings.Server{
			Name:       p.Server,
			Command:    p.Command,
			Args:       p.Args,
			Split:      spec.Split,
			Cwd:        p.Dir,
			InheritEnv: true,
			Protocol:   p.Protocol,
		},
		ProjectRoot: p.Root, Workspace: p.Workspace, Environ: p.Env, Version: p.Version,
		ConnectTimeout: spec.ConnectTimeout, Memory: onlyProtocol(spec.Known),
		Limits: Limits{Frame: spec.MaxFrame, Result: spec.MaxMessage}.withDefaults(), Confine: confine,
		Guard: true,
	}
	c := &connector{dialer: dialer{opts: opts, asker: k.Asker(), changed: func(Change) {}, keeper: k}}
	sess, err := c.connectWithin(ctx, spec.ConnectTimeout)
	if err != nil {
		failure := &keep.Failure{Phase: "start", Reason: err.Error()}
		if of, ok := errors.AsType[*ServerError](err); ok {
			failure.Phase, failure.Reason = of.Phase, of.Reason
		}
		k.Fail(failure)
		return err
	}
	defer sess.end()
	sess.limit.Store(opts.Limits.result())
	k.Serve(ctx, sess.wire, sess.child.(keep.Child), sess.ending)
	return nil
}

// connectWithin is connect with a time limit; 0 means none.
func (c *connector) connectWithin(ctx context.Context, limit time.Duration) (*session, error) {
	ctx, stop := timing.Limit(ctx, limit, &connectTimeoutError{limit})
	defer stop()
	return c.connect(ctx)
}
