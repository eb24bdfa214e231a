package rotation

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"syscall"
)

// maxFile limits the text of one file, in bytes: the system's own authorities take 220 KiB.
const maxFile = 1 << 20

// Input gives the text that a Value is made of. Its errors name the file.
type Input func() (string, error)

// File is the text of a regular file. A pipe would make its reader wait, and a device has no end.
func File(path string) Input {
	return func() (string, error) { return read(path, false) }
}

// ReadOnce returns the text of a file that is not read again. It may be a pipe, as in <(...).
func ReadOnce(path string) (string, error) { return read(path, true) }

func read(path string, mayBePipe bool) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // does not wait for a pipe's writer
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	pipe := mayBePipe && info.Mode()&os.ModeNamedPipe != 0
	if !pipe && !info.Mode().IsRegular() {
		return "", &fs.PathError{Op: "read", Path: path, Err: errors.New("expected a regular file")}
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return "", err
	case len(text) > maxFile:
		err = fmt.Errorf("the file is larger than %d bytes", maxFile)
	case pipe && len(text) == 0:
		err = errors.New("nothing writes to this pipe: start its writer first, or name a file")
	default:
		return string(text), nil
	}
	return "", &fs.PathError{Op: "read", Path: path, Err: err}
}

// Value is made of the present texts of its inputs. It is safe for concurrent use.
type Value[T any] struct {
	setting string
	parse   func(texts []string) (T, error)
	inputs  []Input
	set     *Set // may be nil

	mu    sync.Mutex
	good  T        // made of the last good texts
	texts []string // the last good ones
	wrong error    // why the present texts are unusable, or nil
}

// New reads the inputs for the first time. parse makes the value from their texts. It is called again if one
// has changed. Its errors must not contain a part of a text. set may be nil.
func New[T any](set *Set, setting string, parse func(texts []string) (T, error), inputs ...Input) (
	*Value[T], error) {
	v := &Value[T]{setting: setting, parse: parse, inputs: inputs}
	if _, err := v.look(); err != nil {
		return nil, err
	}
	if v.set = set; set != nil {
		set.add(setting, v.look)
	}
	return v, nil
}

// Get reads the inputs and returns the value. While they are unusable, it returns the last good one.
func (v *Value[T]) Get() T {
	good, _ := v.Current()
	return good
}

// Current is Get. A non-nil error means that the inputs are unusable and the value is the last good one.
func (v *Value[T]) Current() (T, error) {
	_, err := v.look()
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.good, err
}

// look reads the inputs. changed means that they are good and differ from the last good ones.
func (v *Value[T]) look() (changed bool, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var texts []string
	for _, input := range v.inputs {
		text, wrong := input()
		texts, err = append(texts, text), cmp.Or(err, wrong)
	}
	if err == nil && !slices.Equal(texts, v.texts) {
		var made T
		if made, err = v.parse(texts); err == nil {
			v.good, v.texts, changed = made, texts, true
		}
	}
	if v.set != nil {
		v.set.tell(v.setting, changed, v.wrong, err)
	}
	v.wrong = err
	return changed, err
}
