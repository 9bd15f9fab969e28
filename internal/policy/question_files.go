package policy

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"

	"github.com/toolreg/toolreg/internal/state"
)

// QuestionFiles has a file for each question, which the identity of its call names.
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

// questionsFolder is the name of the folder in the state folder.
const questionsFolder = "questions"

// questionFile returns the name of the file of a question.
func questionFile(call string) string { return path.Join(questionsFolder, call) }

// questionFolder is the folder in the state folder. Who changes it has its lock.
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

// files returns the files of the shared questions, or of those in the state folder.
func (s *Questions) files(shared bool) (QuestionFiles, error) {
	if shared {
		return s.Approvals.Shared, nil
	}
	if s.Approvals.Dir == nil {
		return nil, s.Approvals.noFolder()
	}
	dir, err := state.OpenDir(filepath.Join(s.Approvals.Dir.Path, questionsFolder))
	return questionFolder{dir}, err
}

// change lets do change the shared questions, which others may change too between its steps, or
// those in the state folder while nobody else does.
func (s *Questions) change(ctx context.Context, shared bool, do func(QuestionFiles) error) error {
	files, err := s.files(shared)
	if err != nil {
		return err
	}
	if !shared {
		unlock, err := s.Approvals.Dir.Lock(ctx, questionsFolder)
		if err != nil {
			return err
		}
		defer unlock()
	}
	return do(files)
}
