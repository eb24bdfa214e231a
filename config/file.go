package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/storestream/storestream/internal/rotation"
)

// loadFile lays a YAML file over v. It goes over YAML's nodes, because they know their lines and their text
// as it was written. A key without a value (null) is not set.
func loadFile(path string, v *values, m *mistakes) {
	if path == "" || path == os.DevNull {
		return
	}
	text, err := rotation.ReadOnce(path)
	if err != nil {
		m.add(Mistake{Key: path, Rule: fmt.Sprintf("the configuration file cannot be read: %v; expected one "+
			"that the user of this process may read", err)})
		return
	}
	dec := yaml.NewDecoder(strings.NewReader(text))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if !errors.Is(err, io.EOF) { // an empty file sets nothing
			m.add(Mistake{Key: path, Rule: "not YAML: " + yamlReason(err, text)})
		}
		return
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		m.add(Mistake{Key: path, Rule: "expected one YAML document, found more"})
		return
	}
	f := &yamlFile{name: filepath.Base(path), known: v.known, mistakes: m, given: layer{}}
	f.section("", doc.Content[0])
	v.lay(f.given)
}

// yamlReason is why a text is not YAML. The name of an alias may be a secret that begins with a *.
func yamlReason(err error, text string) string {
	reason := strings.TrimPrefix(err.Error(), "yaml: ")
	if strings.Contains(reason, "anchor") {
		return "a value begins with a *, which makes it the name of an anchor that is not there: put it in quotes"
	}
	at := yamlLine.FindStringSubmatch(reason)
	if at == nil {
		return reason
	}
	n, _ := strconv.Atoi(at[1]) // it is digits
	lines := strings.Split(text, "\n")
	for _, line := range []int{n, n + 1} { // some errors name the line before
		if line <= len(lines) && indentedByTab.MatchString(lines[line-1]) {
			return fmt.Sprintf("line %d: a tab at its beginning: expected spaces there", line)
		}
	}
	if strings.Contains(reason, "cannot start any token") {
		return at[0] + "a value begins with @ or `, which YAML keeps for itself: put it in quotes"
	}
	return reason
}

var (
	yamlLine      = regexp.MustCompile(`^line ([0-9]+): `)
	indentedByTab = regexp.MustCompile(`^ *\t`)
)

// yamlFile collects what a file sets.
type yamlFile struct {
	name     string
	known    *keys
	mistakes *mistakes
	given    layer
}

func (f *yamlFile) at(n *yaml.Node) string { return fmt.Sprintf("%s:%d", f.name, n.Line) }

func (f *yamlFile) mistake(key string, n *yaml.Node, rule string) {
	f.mistakes.add(Mistake{Key: key, From: f.at(n), Rule: rule})
}

// section goes over a mapping whose key is path ("" for the whole file).
func (f *yamlFile) section(path string, n *yaml.Node) {
	n = target(n)
	switch {
	case n.ShortTag() == "!!null":
		return
	case n.Kind != yaml.MappingNode:
		what := path
		if what == "" {
			what = f.name
		}
		f.mistake(what, n, "expected a section with the keys "+f.known.inSection(path))
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 { // first: a key of the mapping itself wins over a merged one
		if n.Content[i].ShortTag() == "!!merge" {
			f.section(path, n.Content[i+1])
		}
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		if name.ShortTag() == "!!merge" {
			continue
		}
		if first, twice := lines[name.Value]; twice {
			f.mistake(join(path, name.Value), name, fmt.Sprintf("set twice, first in line %d", first))
			continue
		}
		lines[name.Value] = name.Line
		f.key(join(path, name.Value), name, value)
	}
}

func (f *yamlFile) key(key string, name, value *yaml.Node) {
	if f.known.sections[key] {
		f.section(key, value)
		return
	}
	if !f.known.has(key) {
		f.mistakes.unknown(key, f.at(name))
		return
	}
	value = target(value)
	if value.ShortTag() == "!!null" {
		return
	}
	text, err := textOf(value, f.known.leaves[key].typ)
	if err != nil {
		f.mistake(key, value, err.Error())
		return
	}
	f.given[key] = setting{text, f.at(value)}
}

// textOf is a value as it was written; of a key that takes several the elements between commas. Where a key
// takes one, a list is a mistake, also one of one element: joined, a password would be another one.
func textOf(n *yaml.Node, typ reflect.Type) (string, error) {
	policies, list := typ == reflect.TypeFor[Policies](), typ == reflect.TypeFor[[]string]()
	switch {
	case n.Kind == yaml.ScalarNode:
		return n.Value, nil
	case n.Kind == yaml.MappingNode && policies:
		return pairs(n)
	case n.Kind == yaml.SequenceNode && (policies || list):
		return elements(n)
	case n.Kind == yaml.SequenceNode:
		return "", errors.New("expected one value, found a list: a value that begins with [ or - takes quotes")
	}
	return "", errors.New("expected a value, found a section: a value that begins with { takes quotes")
}

// elements is a list's elements between commas.
func elements(n *yaml.Node) (string, error) {
	var parts []string
	for _, element := range n.Content {
		element = target(element)
		if element.Kind != yaml.ScalarNode {
			return "", errors.New("expected a list of plain values")
		}
		parts = append(parts, element.Value)
	}
	return strings.Join(parts, ","), nil
}

// pairs is a mapping's name=value between commas.
func pairs(n *yaml.Node) (string, error) {
	var list []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := target(n.Content[i]), target(n.Content[i+1])
		if name.Kind != yaml.ScalarNode || value.Kind != yaml.ScalarNode {
			return "", errors.New("expected resource.field: policy, such as users.email: hash")
		}
		list = append(list, name.Value+"="+value.Value)
	}
	return strings.Join(list, ","), nil
}

// target follows an alias to the node it stands for.
func target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
