package rowsway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const module = "github.com/storestream/storestream"

// function is a function of ours as its source shows it: a declaration, or a literal within one.
type function struct {
	name    string // "(*poller.Poller).Run", or that of the declaration with "function at line 12"
	file    string // "poller/poller.go"
	at, end token.Position
	literal bool
	carries bool // its parameters or results can hold a row's bytes
}

// functions are those of a program, by the path of their file, in the order of the source.
type functions map[string][]*function

// listed is a package as the go command lists it.
type listed struct {
	ImportPath, Export, Dir string
	GoFiles                 []string
}

// readFunctions reads the functions of the program that is built from the clone at root.
func readFunctions(root string) (functions, error) {
	packages, err := list(root)
	if err != nil {
		return nil, err
	}
	files, fs := token.NewFileSet(), functions{}
	export := func(path string) (io.ReadCloser, error) { return os.Open(packages[path].Export) }
	checker := types.Config{Importer: importer.ForCompiler(files, "gc", export)}
	for _, p := range packages {
		if !strings.HasPrefix(p.ImportPath, module+"/") {
			continue
		}
		var parsed []*ast.File
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			parsed = append(parsed, file)
		}
		info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}}
		if _, err := checker.Check(p.ImportPath, files, parsed, info); err != nil {
			return nil, err
		}
		for _, file := range parsed {
			fs.add(root, files, file, info)
		}
	}
	return fs, nil
}

// list lists the packages of the program, by path.
func list(root string) (map[string]listed, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export,Dir,GoFiles",
		"./cmd/storestream")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	packages := map[string]listed{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages[p.ImportPath] = p
	}
}

// add adds the functions of one file.
func (fs functions) add(root string, files *token.FileSet, file *ast.File, info *types.Info) {
	path := files.Position(file.Pos()).Filename
	for _, decl := range file.Decls {
		within := "package " + file.Name.Name
		ast.Inspect(decl, func(n ast.Node) bool {
			var signature *types.Signature
			f := &function{file: strings.TrimPrefix(path, root+"/")}
			switch n := n.(type) {
			case *ast.FuncDecl:
				signature = info.Defs[n.Name].Type().(*types.Signature)
				within = file.Name.Name + "." + n.Name.Name
				if receiver := signature.Recv(); receiver != nil {
					within = fmt.Sprintf("(%s).%s", types.TypeString(receiver.Type(), (*types.Package).Name),
						n.Name.Name)
				}
				f.name = within
			case *ast.FuncLit:
				signature = info.Types[n].Type.(*types.Signature)
				f.literal = true
				f.name = fmt.Sprintf("%s, function at line %d", within, files.Position(n.Pos()).Line)
			default:
				return true
			}
			f.at, f.end, f.carries = files.Position(n.Pos()), files.Position(n.End()), carries(signature)
			fs[path] = append(fs[path], f)
			return true
		})
	}
}

// around returns the innermost function around a place of a file, nil if there is none. Column 0 stands for
// the whole line. If declared is set, literals are passed over.
func (fs functions) around(path string, line, column int, declared bool) (found *function) {
	for _, f := range fs[path] {
		begun := f.at.Line < line || f.at.Line == line && (column == 0 || f.at.Column <= column)
		ended := f.end.Line < line || f.end.Line == line && column > f.end.Column
		if begun && !ended && !(f.literal && declared) {
			found = f // a literal comes after the function that it stands in
		}
	}
	return found
}

// carries tells whether a parameter or a result can hold a row's bytes.
func carries(s *types.Signature) bool {
	for _, list := range []*types.Tuple{s.Params(), s.Results()} {
		for v := range list.Variables() {
			if holdsBytes(v.Type(), map[types.Type]bool{}) {
				return true
			}
		}
	}
	return false
}

// holdsBytes tells whether a value of type t has a slice of bytes in it, in fields and elements too. Between
// the wire and Kafka a row is always in such a slice.
func holdsBytes(t types.Type, seen map[types.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	switch u := t.Underlying().(type) {
	case *types.Slice:
		basic, ok := u.Elem().Underlying().(*types.Basic)
		return ok && basic.Kind() == types.Byte || holdsBytes(u.Elem(), seen)
	case *types.Pointer:
		return holdsBytes(u.Elem(), seen)
	case *types.Struct:
		for field := range u.Fields() {
			if holdsBytes(field.Type(), seen) {
				return true
			}
		}
	}
	return false
}
