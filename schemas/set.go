package schemas

import (
	"embed"
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

// Set is all resources with their schemas, in the order of their declarations.
type Set struct{ resources []*Resource }

// Load reads the built-in schemas. If dir is not "", each .avsc file in it (not below it) replaces the
// built-in schema of the same record name. The error has all mistakes, so that a person can
// correct them at once, or says why dir cannot be read. Waiting does not help.
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
	set := &Set{}
	for _, d := range declared {
		if files[d.RecordName] == nil {
			mistakes = append(mistakes, d.RecordName+".avsc: "+d.Name+" is declared: expected its schema")
		}
		set.resources = append(set.resources, files[d.RecordName])
	}
	if len(mistakes) > 0 {
		return nil, fmt.Errorf("schemas: %s", strings.Join(mistakes, "\n         "))
	}
	return set, nil
}

// readFolder parses a folder's .avsc files. It returns them by record name, and their mistakes. It refuses
// pipes, which would wait for a writer, and devices, which have no end.
func readFolder(fsys fs.FS, folder string) (map[string]*Resource, []string, error) {
	entries, err := fs.ReadDir(fsys, folder)
	if err != nil {
		return nil, nil, err
	}
	found := map[string]*Resource{}
	var mistakes []string
	for _, e := range entries {
		if e.IsDir() || path.Ext(e.Name()) != ".avsc" {
			continue
		}
		name := path.Join(folder, e.Name())
		info, err := fs.Stat(fsys, name)
		if err == nil && (!info.Mode().IsRegular() || info.Size() > maxSchemaFile) {
			err = fmt.Errorf("%s: expected a regular file of at most %d bytes", name, maxSchemaFile)
		}
		if err != nil {
			return nil, nil, err
		}
		text, err := fs.ReadFile(fsys, name)
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
	if len(found)+len(mistakes) == 0 {
		err = fmt.Errorf("no .avsc file in it: expected one for each schema to replace, such as Order.avsc")
	}
	return found, mistakes, err
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
