package policy

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"

	"github.com/toolreg/toolreg/internal/state"
)

// QuestionFiles stores each question in a file named by the identity of its call.
type QuestionFiles interface {
	// Read returns the content of a file, or nil if there is none.
	Read(ctx context.Context, file string) ([]byte, error)
	// Update replaces a file by the result of change, which may be called more than once. A
	// result of nil removes the file.
	Update(ctx context.Context, file string, change func(old []byte) ([]byte, error)) error
	// Each calls use with the content of each file in a folder and a function that removes the
	// file, until use returns an error.
	Each(ctx context.Context, folder string, use func(data []byte, remove func(context.Context) error) error) error
}

// SharedApprovals stores approvals of clients, and questions about their calls, for several
// processes that serve the same project. Those of the person at the command line stay in the state
// folder. File names are the same as there.
type SharedApprovals interface {
	QuestionFiles
	// Key returns the key of the hashes that all processes compare.
	Key() []byte
}

// maxShared is about the maximum size in bytes of the approvals that are shared, and of the questions.
const maxShared = 4 << 20

// questionsFolder is the name of the folder in the state folder.
const questionsFolder = "questions"

// questionFile returns the name of the file of a question.
func questionFile(call string) string { return path.Join(questionsFolder, call) }

// questionFolder is the folder in the state folder. Changes to it require its lock.
type questionFolder struct{ *state.Dir }

// Read implements [QuestionFiles].
func (f questionFolder) Read(_ context.Context, file string) ([]byte, error) {
	data, err := f.Dir.Read(path.Base(file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// Update implements [QuestionFiles].
func (f questionFolder) Update(ctx context.Context, file string, change func([]byte) ([]byte, error)) error {
	old, err := f.Read(ctx, file)
	if err != nil {
		return err
	}
	data, err := change(old)
	switch {
	case err != nil || bytes.Equal(data, old):
		return err
	case data == nil:
		return f.Delete(path.Base(file))
	}
	return f.Put(path.Base(file), data)
}

// Each implements [QuestionFiles].
func (f questionFolder) Each(ctx context.Context, _ string, use func([]byte, func(context.Context) error) error) error {
	names, err := f.Names("", "")
	for _, name := range names {
		var data []byte
		if data, err = f.Read(ctx, name); err == nil {
			err = use(data, func(context.Context) error { return f.Delete(name) })
		}
		if err != nil {
			return err
		}
	}
	return err
}
