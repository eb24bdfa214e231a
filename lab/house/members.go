package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
)

// members counts the fields of one type that have names outside of the program, such as `json:"rows"`.
type members struct {
	tag   string // the key of the tag, such as json
	types map[string]*ast.StructType
}

// count parses the package in folder and counts the named fields of its type start. A field that holds
// another struct of the package is a section, and the fields in it are counted as well. Leaves are the named
// fields that are no section.
func count(folder, start, tag string) (all, leaves int, err error) {
	m := members{tag, map[string]*ast.StructType{}}
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return 0, 0, err
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return 0, 0, err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if structure, ok := spec.Type.(*ast.StructType); ok {
					m.types[spec.Name.Name] = structure
				}
			}
			return true
		})
	}
	if m.types[start] == nil {
		return 0, 0, fmt.Errorf("%s has no struct %s, whose %s names are counted: tell lab/house its new name",
			folder, start, tag)
	}
	all, leaves = m.of(start)
	return all, leaves, nil
}

func (m *members) of(name string) (all, leaves int) {
	for _, field := range m.types[name].Fields.List {
		section := m.section(field.Type)
		named := m.named(field)
		if named {
			all++
		}
		if section != "" && (named || len(field.Names) == 0) {
			below, ends := m.of(section)
			all, leaves = all+below, leaves+ends
		} else if named {
			leaves++
		}
	}
	return all, leaves
}

// named tells whether the field's tag gives it a name.
func (m *members) named(field *ast.Field) bool {
	if field.Tag == nil {
		return false
	}
	tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get(m.tag)
	name, _, _ := strings.Cut(tag, ",")
	return name != "" && name != "-"
}

// section returns the struct of this package that a field holds, directly or as an element. It returns "" if
// there is none, or if that struct has no named fields.
func (m *members) section(of ast.Expr) string {
	switch t := of.(type) {
	case *ast.StarExpr:
		return m.section(t.X)
	case *ast.ArrayType:
		return m.section(t.Elt)
	case *ast.MapType:
		return m.section(t.Value)
	case *ast.Ident:
		if structure := m.types[t.Name]; structure != nil {
			for _, field := range structure.Fields.List {
				if m.named(field) {
					return t.Name
				}
			}
		}
	}
	return ""
}
