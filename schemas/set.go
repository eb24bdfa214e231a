package schemas

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

//go:embed avsc/*.avsc
var embedded embed.FS

// maxSchemaFile bounds a schema file, in bytes: a hundred times the largest built-in one.
const maxSchemaFile = 256 << 10

// ErrMistakes says that the schema files have mistakes. Waiting does not help.
var ErrMistakes = errors.New("schemas")

// Set is all resources with their schemas, in the order of their declarations.
type Set struct{ resources []*Resource }

// Load reads the built-in schemas. If dir is not "", each .avsc file in it (not below it) replaces the
// built-in schema of the same record name. The error is ErrMistakes with all mistakes, so that a
// person can correct them at once, or says why dir cannot be read.
func Load(dir string) (*Set, error) {
	files, mistakes, err := readFolder(embedded, "avsc")
	if err != nil {
		return nil, err
	}
	if dir != "" {
		own, more, err := readFolder(os.DirFS(dir), ".")
		if err != nil {
			return nil, fmt.Errorf("schemas: folder %s: %w", dir, err)
		}
		mistakes = append(mistakes, more...)
		maps.Copy(files, own)
	}
	for _, d := range declared {
		if files[d.RecordName] == nil {
			mistakes = append(mistakes, d.RecordName+".avsc: "+d.Name+" is declared: expected its schema")
		}
	}
	if len(mistakes) > 0 {
		return nil, fmt.Errorf("%w: %s", ErrMistakes, strings.Join(mistakes, "\n         "))
	}
	set := &Set{}
	for _, d := range declared {
		set.resources = append(set.resources, files[d.RecordName])
	}
	return set, nil
}

// readFolder parses a folder's .avsc files. It returns them by record name, and their mistakes.
func readFolder(fsys fs.FS, folder string) (map[string]*Resource, []string, error) {
	entries, err := fs.ReadDir(fsys, folder)
	if err != nil {
		return nil, nil, err
	}
	found, files := map[string]*Resource{}, 0
	var mistakes []string
	for _, e := range entries {
		if e.IsDir() || path.Ext(e.Name()) != ".avsc" {
			continue
		}
		files++
		text, err := readFile(fsys, path.Join(folder, e.Name()))
		if err != nil {
			return nil, nil, err
		}
		r, more := parseSchemaFile(e.Name(), text)
		mistakes = append(mistakes, more...)
		if r != nil && found[r.RecordName] != nil {
			mistakes = append(mistakes, fmt.Sprintf("%s: record %s is in another file too: expected it once",
				e.Name(), r.RecordName))
		} else if r != nil {
			found[r.RecordName] = r
		}
	}
	if files == 0 {
		err = fmt.Errorf("no .avsc file in it: expected one for each schema to replace, such as Order.avsc")
	}
	return found, mistakes, err
}

// readFile reads a file of limited size. It refuses pipes, which would wait for a writer, and devices, which
// have no end.
func readFile(fsys fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: expected a regular file", name)
	}
	if info.Size() > maxSchemaFile {
		return nil, fmt.Errorf("%s has %d bytes: expected a schema file of at most %d",
			name, info.Size(), maxSchemaFile)
	}
	return fs.ReadFile(fsys, name)
}

// Get returns the resource of that name, nil if there is none.
func (s *Set) Get(name string) *Resource {
	for _, r := range s.resources {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// All returns every resource.
func (s *Set) All() []*Resource { return slices.Clone(s.resources) }
