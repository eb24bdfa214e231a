package docs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// objects are the JSON objects of the contract by the name of their table, with their Go types.
var objects = []struct{ name, of string }{
	{"watermark", "watermark.Watermark"},
	{"request", "watermark.Request"},
	{"watermark list", "health.Resource"},
	{"verify", "verify.Result"},
	{"row", "row.Report"},
	{"requests", "main.asked"},
	{"dead-letters list", "main.deadLetters"},
	{"tail", "main.printRecord"},
	{"check", "preflight.Finding"},
	{"status", "status.Snapshot"},
}

// elsewhere are the types whose members have their own table, with the words that lead there.
var elsewhere = map[string]string{
	"watermark.Request":     "As in a [request](#requests)",
	"watermark.DeadLetters": "As in [`dead-letters list`](#dead-letters-list)",
	"health.Resource":       "As in [`watermark list`](#watermark-list)",
}

// mostWords limits the meaning of a member, a key or a flag in the tables.
const mostWords = 15

// Each JSON object of the contract has a table of its members. The first sentence of a field's comment is the
// member's meaning.
func TestTheReferenceHasEveryMemberOfEveryObject(t *testing.T) {
	types := parseTypes(t)
	for _, o := range objects {
		list := newTable("member: type", "meaning")
		for _, m := range types.membersOf(t, o.of) {
			list.row("`"+strings.Join(m.names, "`, `")+"`", m.about)
			checkMeaning(t, o.name+", "+m.names[0], m.about)
		}
		generated(t, "members of "+o.name, list.String())
	}
}

// Each example of an object has the members of its table, and each member that is never left out.
func TestTheExamplesOfTheReferenceAreOfTheirObjects(t *testing.T) {
	text, types := readReference(t), parseTypes(t)
	for _, o := range objects {
		_, rest, found := strings.Cut(text, "<!-- example of "+o.name+" -->\n```json\n")
		example, _, closed := strings.Cut(rest, "\n```\n")
		if !found || !closed {
			t.Errorf("%s has no example of %s", referenceFile, o.name)
			continue
		}
		var value any
		if err := json.Unmarshal([]byte(example), &value); err != nil {
			t.Errorf("%s: the example of %s: %v", referenceFile, o.name, err)
			continue
		}
		if all, isList := value.([]any); isList {
			value = all[0]
		}
		checkExample(t, types, o.name, value, o.of)
	}
}

func checkExample(t *testing.T, types goTypes, name string, value any, of string) {
	t.Helper()
	object, isObject := value.(map[string]any)
	if !isObject {
		return // null
	}
	members := types.fieldsOf(t, of)
	for _, f := range members {
		inner, found := object[f.json]
		if !found && !f.optional {
			t.Errorf("%s: an example of %s lacks %s", referenceFile, name, f.json)
		}
		if all, isList := inner.([]any); isList && len(all) > 0 {
			inner = all[0]
		}
		if types.structs[f.of] != nil && f.suffix != ".NAME" {
			checkExample(t, types, name+"."+f.json, inner, f.of)
		}
	}
	for member := range object {
		if !slices.ContainsFunc(members, func(f goField) bool { return f.json == member }) {
			t.Errorf("%s: an example of %s has a member %s, which there is not", referenceFile, name, member)
		}
	}
}

// checkMeaning fails if text is no short meaning for a reader who does not know Go.
func checkMeaning(t *testing.T, name, text string) {
	t.Helper()
	switch words := strings.Fields(text); {
	case text == "":
		t.Errorf("%s: its comment does not say what it is", name)
	case len(words) > mostWords:
		t.Errorf("%s: %d words, %d at most. Begin its description with a short sentence: %s", name, len(words),
			mostWords, text)
	case regexp.MustCompile(`\bnil\b|Instant`).MatchString(text):
		t.Errorf("%s: readers do not know Go: %s", name, text)
	}
}

// firstSentence returns the first sentence of a comment or a description, up to a semicolon.
func firstSentence(text string) string {
	first, _, _ := strings.Cut(strings.Join(strings.Fields(text), " "), ". ")
	first, _, _ = strings.Cut(first, "; ")
	return strings.TrimSuffix(first, ".")
}

// goTypes are the types of the packages that make JSON, by package and name.
type goTypes struct {
	structs map[string]*ast.StructType
	others  map[string]string // types that are no structs: what each is
}

func parseTypes(t *testing.T) goTypes {
	t.Helper()
	types := goTypes{map[string]*ast.StructType{}, map[string]string{}}
	for _, folder := range []string{"internal/watermark", "internal/health", "internal/status",
		"internal/reconcile", "cmd/storestream", "cmd/storestream/internal/verify", "cmd/storestream/internal/row",
		"cmd/storestream/internal/preflight"} {
		files, err := filepath.Glob(filepath.Join("..", folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no Go files in %s: %v", folder, err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			types.add(file)
		}
	}
	return types
}

func (g goTypes) add(file *ast.File) {
	function := ""
	ast.Inspect(file, func(n ast.Node) bool {
		switch of := n.(type) {
		case *ast.FuncDecl:
			function = file.Name.Name + "." + of.Name.Name
		case *ast.CompositeLit:
			if literal, ok := of.Type.(*ast.StructType); ok { // by the name of its function
				g.structs[function] = literal
			}
		case *ast.TypeSpec:
			name := file.Name.Name + "." + of.Name.Name
			switch of := of.Type.(type) {
			case *ast.StructType:
				g.structs[name] = of
			case *ast.Ident:
				g.others[name] = of.Name
			case *ast.ArrayType:
				if element, ok := of.Elt.(*ast.Ident); ok {
					g.others[name] = "[]" + element.Name
				}
			}
		}
		return true
	})
}

// goField is a field of a struct that becomes a member.
type goField struct {
	name, json string
	of         string // the type, without lists and pointers
	suffix     string // "[]" for each list, ".NAME" for a map
	about      string // the first sentence of its comment
	optional   bool   // it may be left out
	embedded   bool   // its members are those of the type
}

// fieldsOf returns the fields of a struct that become members, embedded ones taken apart.
func (g goTypes) fieldsOf(t *testing.T, name string) (fields []goField) {
	t.Helper()
	for _, f := range g.ownFields(t, name) {
		if !f.embedded {
			fields = append(fields, f)
			continue
		}
		for _, inner := range g.fieldsOf(t, f.of) {
			inner.optional = inner.optional || f.optional
			fields = append(fields, inner)
		}
	}
	return fields
}

func (g goTypes) ownFields(t *testing.T, name string) (fields []goField) {
	t.Helper()
	pkg, _, _ := strings.Cut(name, ".")
	if g.structs[name] == nil {
		t.Fatalf("no type %s", name)
	}
	for _, f := range g.structs[name].Fields.List {
		of, suffix := typeOf(pkg, f.Type)
		if len(f.Names) == 0 {
			_, pointer := f.Type.(*ast.StarExpr)
			fields = append(fields, goField{of: of, embedded: true, optional: pointer})
			continue
		}
		if f.Tag == nil {
			continue
		}
		tag, options, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ",")
		if tag == "" || tag == "-" {
			continue
		}
		if under := g.others[of]; under != "" {
			element := strings.TrimPrefix(under, "[]")
			suffix, of = suffix+under[:len(under)-len(element)], element
		}
		if options == "string" {
			of = "string"
		}
		fields = append(fields, goField{name: f.Names[0].Name, json: tag, of: of, suffix: suffix,
			about: meaning(f.Names[0].Name, f.Doc.Text()), optional: strings.Contains(options, "omit")})
	}
	return fields
}

// typeOf returns the name of a type without its lists, and these.
func typeOf(pkg string, e ast.Expr) (of, suffix string) {
	switch x := e.(type) {
	case *ast.StarExpr:
		return typeOf(pkg, x.X)
	case *ast.ArrayType:
		of, suffix = typeOf(pkg, x.Elt)
		return of, "[]" + suffix
	case *ast.MapType:
		of, suffix = typeOf(pkg, x.Value)
		return of, ".NAME" + suffix
	case *ast.SelectorExpr:
		return fmt.Sprint(x.X) + "." + x.Sel.Name, ""
	case *ast.Ident:
		if ast.IsExported(x.Name) {
			return pkg + "." + x.Name, ""
		}
		return x.Name, ""
	}
	return "", ""
}

// subject is the beginning of a comment: the names of one or more fields, and a verb that the table needs
// not.
var subject = regexp.MustCompile(`^[A-Z]\w*(?:, [A-Z]\w*)*(?: and [A-Z]\w*)? ` +
	`(?:(?:is|are|lists|holds|says?) )?(?:the (?:numbers? of )?|an? )?`)

// meaning returns the first sentence of a field's comment without its subject.
func meaning(name, comment string) string {
	text := firstSentence(comment)
	if strings.HasPrefix(text, name) {
		text = text[len(subject.FindString(text)):]
	}
	if rest, found := strings.CutPrefix(text, "set if "); found {
		text = "whether " + rest
	}
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// member is a row of a table: one or more members of an object, and their meaning.
type member struct {
	names []string // with their types
	about string
}

// kinds are the types of JSON, as readers know them.
var kinds = map[string]string{"string": "text", "bool": "boolean", "float64": "number",
	"json.RawMessage": "JSON", "schemas.Instant": "time", "time.Time": "time", "int": "integer",
	"int32": "integer", "int64": "integer",
	"uint32": "integer", "uint64": "integer"}

func (g goTypes) membersOf(t *testing.T, name string) []member {
	t.Helper()
	own := map[string]bool{} // the members of a watermark
	for _, f := range g.fieldsOf(t, "watermark.Watermark") {
		own[f.json] = true
	}
	var all []member
	paths := map[string]string{} // of the types that the table has
	var walk func(name, path string)
	walk = func(name, path string) {
		fields := g.ownFields(t, name)
		for _, f := range fields {
			kind := cmp.Or(kinds[f.of], "object")
			m := member{[]string{path + f.json + f.suffix + ": " + kind}, g.named(fields, f.about)}
			first, seen := paths[f.of]
			inner := g.structs[f.of] != nil && !f.embedded
			last := max(0, len(all)-1)
			const asThere = "As in a [watermark](#watermarks)"
			switch words := elsewhere[f.of]; {
			case f.embedded && words != "" && len(path) == 0 && f.of == "watermark.Request":
				all = append(all, member{[]string{"*"}, words})
				continue
			case f.embedded:
				walk(f.of, path)
				continue
			case f.about == "" && own[f.json] && name == "health.Resource":
				m = member{[]string{f.json}, asThere}
				if all[last].about == asThere {
					all[last].names = append(all[last].names, m.names...)
					continue
				}
				inner = false
			case f.about == "":
				all[last].names = append(all[last].names, m.names...)
				m = all[last]
			case words != "" && inner:
				m.about, inner = m.about+". "+words, false
			case inner && seen:
				m.about, inner = m.about+". As `"+first+"`", false
			}
			if f.about != "" || m.about == asThere {
				all = append(all, m)
			}
			if inner && !seen {
				paths[f.of] = path + f.json + f.suffix
				walk(f.of, path+f.json+f.suffix+".")
			}
		}
	}
	walk(name, "")
	return all
}

var goName = regexp.MustCompile(` [A-Z]\w+`)

// named returns text with the names of members in place of those of fields.
func (g goTypes) named(fields []goField, text string) string {
	text = strings.ReplaceAll(text, "Updated_at", "updated_at")
	text = regexp.MustCompile("`?\\bupdated_at\\b`?").ReplaceAllString(text, "`updated_at`")
	return goName.ReplaceAllStringFunc(text, func(word string) string {
		for _, f := range fields {
			if f.name == word[1:] {
				return " " + code(f.json)
			}
		}
		return word
	})
}
