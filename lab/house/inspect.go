package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	module     = "github.com/storestream/storestream/"
	maxColumns = 110
	maxFiles   = 3
)

// house holds the findings in one source tree.
type house struct {
	product, standIns size
	dependencies      int
	methods           map[string]map[string]bool // type -> files that hold methods of it
	code, documents   prose
	keys              int // settings of the configuration, each resource's once
	members           int // of one watermark's JSON

	long, bare, against []string
}

// standIns are the packages that play the service, start other people's servers, or help tests. The program
// contains none of them.
var standIns = []string{"cmd/storefake", "cmd/storestream/internal/stage", "internal/rounds",
	"internal/standins/storefake", "internal/standins/servers"}

// size is the size of one part, without tests.
type size struct {
	lines, files, types int // lines of code: comments and blank lines are not counted
	packages            map[string]bool
}

func (s *size) add(folder string, lines int) {
	s.lines += lines
	s.files++
	s.packages[folder] = true
}

func (s *size) String() string {
	return fmt.Sprintf("%d lines of code, %d types, %d files, %d packages", s.lines, s.types, s.files,
		len(s.packages))
}

// inspect reads every Go file below root, and the documents.
func inspect(root string) (*house, error) {
	h := &house{methods: map[string]map[string]bool{}}
	h.product.packages, h.standIns.packages = map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != root && strings.HasPrefix(entry.Name(), ".") {
			return fs.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		place, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		return h.file(filepath.ToSlash(place), text)
	})
	if err != nil {
		return nil, err
	}
	if h.dependencies, err = directDependencies(filepath.Join(root, "go.mod")); err != nil {
		return nil, err
	}
	if err := h.readDocuments(root); err != nil {
		return nil, err
	}
	if _, h.keys, err = count(filepath.Join(root, "config"), "Config", "koanf"); err != nil {
		return nil, err
	}
	h.members, _, err = count(filepath.Join(root, "internal/watermark"), "Watermark", "json")
	return h, err
}

// readDocuments reads the documents of users. The change log is history.
func (h *house) readDocuments(root string) error {
	names, err := filepath.Glob(filepath.Join(root, "docs/*.md"))
	if err != nil {
		return err
	}
	names = append(names, filepath.Join(root, "README.md"))
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		h.documents.document(strings.TrimPrefix(filepath.ToSlash(name), filepath.ToSlash(root)+"/"), string(text))
	}
	return nil
}

func (h *house) file(place string, text []byte) error {
	for n, line := range bytes.Split(text, []byte("\n")) {
		if columns := utf8.RuneCount(line); columns > maxColumns {
			h.long = append(h.long, fmt.Sprintf("%s:%d (%d)", place, n+1, columns))
		}
	}
	if strings.HasSuffix(place, "_test.go") {
		return nil
	}
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, place, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	h.code.code(place, files, parsed)
	folder := path.Dir(place)
	h.receivers(folder, place, parsed.Decls)
	if top(place) == "lab" || top(place) == "examples" {
		return nil
	}
	size := &h.product
	if slices.Contains(standIns, folder) {
		size = &h.standIns
	}
	size.add(folder, codeLines(text))
	for _, spec := range parsed.Imports {
		imported, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module)
		if ours && !downward(folder, imported) {
			h.against = append(h.against, fmt.Sprintf("%s imports %s", place, imported))
		}
	}
	for _, decl := range parsed.Decls {
		h.declaration(size, decl, func(name string, at token.Pos) {
			h.bare = append(h.bare, fmt.Sprintf("%s:%d %s", place, files.Position(at).Line, name))
		})
	}
	return nil
}

// receivers notes in which file each type has methods.
func (h *house) receivers(folder, place string, decls []ast.Decl) {
	for _, decl := range decls {
		d, ok := decl.(*ast.FuncDecl)
		if !ok || d.Recv == nil {
			continue
		}
		of := folder + "." + receiverOf(d)
		if h.methods[of] == nil {
			h.methods[of] = map[string]bool{}
		}
		h.methods[of][place] = true
	}
}

// declaration counts types, and gives undocumented exported names to bare.
func (h *house) declaration(size *size, decl ast.Decl, bare func(string, token.Pos)) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		receiver := receiverOf(d)
		visible := d.Name.IsExported() && (receiver == "" || ast.IsExported(receiver)) && !universal[d.Name.Name]
		if visible && d.Doc == nil {
			bare(d.Name.Name, d.Pos())
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				size.types++
				if s.Name.IsExported() && s.Doc == nil && d.Doc == nil {
					bare(s.Name.Name, s.Pos())
				}
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if name.IsExported() && s.Doc == nil && s.Comment == nil && d.Doc == nil {
						bare(name.Name, name.Pos())
					}
				}
			}
		}
	}
}

// universal are the methods that every Go programmer knows: a comment could only read the code aloud.
var universal = map[string]bool{"Error": true, "String": true, "Unwrap": true}

func receiverOf(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if generic, ok := t.(*ast.IndexExpr); ok {
		t = generic.X
	}
	if name, ok := t.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

func (h *house) scattered() []string {
	var found []string
	for name, files := range h.methods {
		if len(files) > maxFiles {
			found = append(found, fmt.Sprintf("%s (%d files)", name, len(files)))
		}
	}
	slices.Sort(found)
	return found
}

// downward says whether a package may import another by the arrows. Within poller, producer, config or cmd a
// package may import its neighbours: the compiler keeps circles out, and depguard holds the finer rules.
func downward(from, to string) bool {
	a, b := layer(from), layer(to)
	return a > b || a == b && (top(from) == top(to) || a == 2)
}

func top(folder string) string { return strings.SplitN(folder, "/", 2)[0] }

func layer(folder string) int {
	switch top(folder) {
	case "schemas":
		return 1
	case "internal":
		return 2
	case "cmd":
		return 4
	}
	return 3
}

var required = regexp.MustCompile(`(?m)^\t\S+ v\S+$`)

// directDependencies counts the lines of go.mod that require a module and do not say // indirect.
func directDependencies(goMod string) (int, error) {
	text, err := os.ReadFile(goMod)
	return len(required.FindAll(text, -1)), err
}
