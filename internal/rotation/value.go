package rotation

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// maxFile bounds what is read of one file, in bytes: the system's own authorities take 220 KiB.
const maxFile = 1 << 20

// Input gives the text that a Value is made of. Its errors name the file.
type Input func() (string, error)

// File is the text of a file.
func File(path string) Input {
	return func() (string, error) {
		f, pipe, err := open(path)
		if err != nil {
			return "", fileError(path, err)
		}
		defer f.Close()
		if pipe {
			return "", &FileError{path, errors.New("expected a regular file, which can be read again and again")}
		}
		return read(f, path)
	}
}

// ReadOnce is the text of a file that nobody reads again. It may be a pipe that somebody writes to, as in
// <(...); done, which may be nil, ends the wait for that.
func ReadOnce(path string, done <-chan struct{}) (string, error) {
	f, pipe, err := open(path)
	if err != nil {
		return "", fileError(path, err)
	}
	defer f.Close()
	if !pipe {
		return read(f, path)
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-done:
			_ = f.SetReadDeadline(time.Unix(1, 0)) // of a pipe it can be set
		case <-over:
		}
	}()
	text, err := read(f, path)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = &FileError{path, errors.New("interrupted while waiting for what writes to this pipe")}
	case err == nil && text == "":
		err = &FileError{path, errors.New("nothing writes to this pipe: start that first, or name a file")}
	}
	return text, err
}

// open opens a regular file or a pipe. It does not wait for whoever writes to a pipe, and so reading one that
// nobody has open for writing ends at once.
func open(path string) (f *os.File, pipe bool, _ error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, false, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() && info.Mode()&os.ModeNamedPipe == 0 {
		err = errors.New("expected a regular file")
	}
	if err != nil {
		_ = f.Close()
		return nil, false, err
	}
	return f, !info.Mode().IsRegular(), nil
}

func read(f *os.File, path string) (string, error) {
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("the file is larger than %d bytes", maxFile)
	}
	if err != nil {
		return "", fileError(path, err)
	}
	return string(text), nil
}

// FileError is a file that cannot be read.
type FileError struct {
	Path string
	Err  error // without the path
}

func (e *FileError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns what the system said.
func (e *FileError) Unwrap() error { return e.Err }

func fileError(path string, err error) error {
	if inner, ok := errors.AsType[*os.PathError](err); ok {
		err = inner.Err
	}
	return &FileError{path, err}
}

// Value is what the inputs of one setting make now. It is safe for concurrent use.
type Value[T any] struct {
	setting string
	parse   func(texts []string) (T, error)
	inputs  []Input
	set     *Set // nil: nobody is told
	admits  bool // it is a token that lets others in

	mu       sync.Mutex
	good     T // what the last good texts made
	accepted []string
	refused  []string // the texts that were looked at last, where they are not good; nil: they cannot be read
	wrong    error    // why they are not good
}

// tries is how often texts that are not good are read: another time for each time that they change meanwhile.
const tries = 3

// New reads the inputs for the first time; its error is why they are not good. parse makes of their texts
// what Get returns, and is called again only where one has changed. No error of it may hold what a text says.
// set may be nil.
func New[T any](set *Set, setting string, parse func(texts []string) (T, error), inputs ...Input) (
	*Value[T], error) {
	v := &Value[T]{setting: setting, parse: parse, inputs: inputs}
	if _, err := v.look(); err != nil {
		return nil, err
	}
	if v.set = set; set != nil {
		set.add(v)
	}
	return v, nil
}

// Get reads the inputs, and returns what they make. Where they are not good it is what the last good ones
// made.
func (v *Value[T]) Get() T {
	good, _ := v.Current()
	return good
}

// Current is Get, with the reason where the inputs are not good now.
func (v *Value[T]) Current() (T, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	was := v.wrong
	changed, err := v.look()
	if v.set != nil {
		v.set.tell(v.setting, v.admits, changed, was, err)
	}
	return v.good, err
}

// again looks at the inputs for whoever tells of a change itself.
func (v *Value[T]) again() (setting string, changed bool, wrong error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	was := v.wrong
	changed, err := v.look()
	if !changed {
		v.set.tell(v.setting, v.admits, false, was, err)
	}
	return v.setting, changed, err
}

// look reads the inputs. changed: they are good, and others than the last good ones.
func (v *Value[T]) look() (changed bool, _ error) {
	for range tries {
		texts, err := v.read()
		switch {
		case err == nil && slices.Equal(texts, v.accepted):
			v.refused, v.wrong = nil, nil
			return false, nil
		case err == nil && slices.Equal(texts, v.refused):
			return false, v.wrong
		case err == nil:
			var made T
			if made, err = v.parse(texts); err == nil {
				v.good, v.accepted, v.refused, v.wrong = made, texts, nil, nil
				return true, nil
			}
		}
		v.refused, v.wrong = texts, err
	}
	return false, v.wrong
}

// read returns the texts of all inputs, or none and why.
func (v *Value[T]) read() (texts []string, _ error) {
	for _, input := range v.inputs {
		text, err := input()
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}
