package schemas

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

//go:embed avsc/*.avsc
var embedded embed.FS

// maxSchemaFile bounds a schema file: a hundred times the largest built-in one.
const maxSchemaFile = 256 << 10

// Mistake is one thing wrong with a schema file.
type Mistake struct {
	File  string
	Field string // "" where it is the record or the whole file
	Rule  string // what is wrong, and what was expected
}

func (m Mistake) String() string {
	if m.Field == "" {
		return m.File + ": " + m.Rule
	}
	return m.File + ": field " + m.Field + ": " + m.Rule
}

// MistakesError is everything wrong with the schema files, so that all of it can be mended at once. Waiting does not mend it.
type MistakesError struct{ Mistakes []Mistake }

func (e *MistakesError) Error() string {
	lines := make([]string, len(e.Mistakes))
	for i, m := range e.Mistakes {
		lines[i] = m.String()
	}
	return "schemas: " + strings.Join(lines, "\n         ")
}

// Load reads the built-in schemas. Where dir is not "", each .avsc file in it (not below it) replaces the built-in schema of the same
// record name. The error is a *MistakesError, or says why dir cannot be read.
func Load(dir string) (*Set, error) {
	found := map[string]*avsc{}
	mistakes, err := readFolder(embedded, "avsc", found)
	if err != nil {
		return nil, err
	}
	if dir != "" {
		own := map[string]*avsc{}
		more, err := readFolder(os.DirFS(dir), ".", own)
		if err != nil {
			return nil, fmt.Errorf("schemas: folder %s: %w", dir, err)
		}
		mistakes = append(mistakes, more...)
		for name, s := range own {
			found[name] = s
		}
	}
	if len(mistakes) > 0 {
		return nil, &MistakesError{mistakes}
	}
	set := &Set{}
	for _, r := range declared {
		set.resources = append(set.resources, newResource(r, found[r.RecordName]))
	}
	return set, nil
}

// readFolder parses folder's .avsc files into found, by record name.
func readFolder(fsys fs.FS, folder string, found map[string]*avsc) ([]Mistake, error) {
	entries, err := fs.ReadDir(fsys, folder)
	if err != nil {
		return nil, err
	}
	var mistakes []Mistake
	files := 0
	for _, e := range entries {
		if e.IsDir() || path.Ext(e.Name()) != ".avsc" {
			continue
		}
		files++
		text, err := readFile(fsys, path.Join(folder, e.Name()))
		if err != nil {
			return nil, err
		}
		s, wrong := parseAvsc(e.Name(), text)
		mistakes = append(mistakes, wrong...)
		if s == nil || s.name == "" {
			continue
		}
		if other := found[s.name]; other != nil {
			mistakes = append(mistakes, Mistake{File: e.Name(), Rule: fmt.Sprintf("record %s is in %s too: expected it once", s.name, other.file)})
			continue
		}
		found[s.name] = s
	}
	if files == 0 {
		return nil, fmt.Errorf("no .avsc file in it: expected one for each schema to replace, such as Order.avsc")
	}
	return mistakes, nil
}

// readFile reads a file of bounded size.
func readFile(fsys fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxSchemaFile {
		return nil, fmt.Errorf("%s has %d bytes: expected a schema file of at most %d", name, info.Size(), maxSchemaFile)
	}
	return fs.ReadFile(fsys, name)
}
