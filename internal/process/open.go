package process

import "os"

// Open starts a program that goes on without us, such as the person's browser:
// in a session of its own, with nothing on its standard streams, and not ended
// when we end. Stdin, MaxOutput, HeadTail, Grace, Linger and Output of the Spec
// do not count. The error is a *[StartError]; how the program ends is nobody's
// concern.
func Open(spec Spec) error {
	cmd, err := newCommand(spec)
	if err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return &StartError{Program: spec.Argv[0], Err: err}
	}
	defer null.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = null, null, null
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return &StartError{Program: spec.Argv[0], Err: explain(err, cmd.Path, spec.Dir)}
	}
	go func() { _ = cmd.Wait() }() // a zombie would stay as long as we do
	return nil
}
