package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/toolreg/toolreg/internal/atomicfile"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/recording"
	"github.com/toolreg/toolreg/internal/settings"
)

// recordings are the recording that a run makes or uses: all its sessions have the same.
type recordings struct {
	config   *Config
	recorder *recording.Recorder
	recorded *recording.Recording
	root     string // of the project
	apart    string // folder with what a replay stores; "" means there is none
}

// open opens what --record and --replay name, once. A file that cannot be written is found
// before anything runs.
func (r *recordings) open(ctx context.Context, set *settings.Settings) error {
	g := r.config.Globals
	if r.recorder != nil || r.recorded != nil || g.Record == "" && g.Replay == "" {
		return nil
	}
	r.root = set.ProjectRoot
	folders := recording.NewFolders(set.ProjectRoot, r.config.Getenv("HOME"))
	if g.Record != "" {
		if err := r.write(nil, false); err != nil {
			return &UsageError{Err: fmt.Errorf("--record: %w", err)}
		}
		r.recorder = recording.NewRecorder(folders, engine.RecordingErrors())
		return nil
	}
	data, err := r.config.ReadFile(ctx, g.Replay)
	if err == nil {
		r.recorded, err = recording.Read(g.Replay, data, folders, engine.RecordingErrors())
	}
	if err != nil {
		return &UsageError{Err: fmt.Errorf("--replay: %w", err), Hint: "a recording is made with --record FILE"}
	}
	return r.detach()
}

// detach keeps what a replay stores apart from what other runs read: answers of a recording are not
// those of a server.
func (r *recordings) detach() (err error) {
	if r.apart, err = os.MkdirTemp("", "toolreg-replay-"); err == nil {
		err = r.config.Folders.Detach(r.apart)
	}
	if err != nil {
		return fmt.Errorf("--replay: making a folder for what the replay stores: %w", err)
	}
	return nil
}

// close writes the recording.
func (r *recordings) close() error {
	if r.apart != "" {
		_ = os.RemoveAll(r.apart) // what is left is read by nobody
	}
	if r.recorder == nil {
		return nil
	}
	data, err := r.recorder.Bytes()
	if err == nil {
		err = r.write(data, true)
	}
	if err != nil {
		return fmt.Errorf("the recording is not written: %w", err)
	}
	return nil
}

// write replaces the file of --record, or only checks that it can.
func (r *recordings) write(data []byte, commit bool) error {
	file := r.config.Absolute(r.config.Globals.Record)
	folder, _, err := r.config.folder(r.root, file)
	if err != nil {
		return err
	}
	defer folder.Close()
	name, options := filepath.Base(file), atomicfile.Options{Mode: 0o600}
	if info, err := folder.Lstat(name); err == nil && !info.Mode().IsRegular() && info.Mode()&os.ModeSymlink == 0 {
		return fmt.Errorf("%s is not a file", file)
	}
	if commit {
		err = atomicfile.Write(folder, name, data, options)
	} else {
		var staged *atomicfile.File
		if staged, err = atomicfile.Stage(folder, name, nil, atomicfile.Options{Mode: 0o600, Volatile: true}); err == nil {
			staged.Close()
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
