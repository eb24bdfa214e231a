package config

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/storestream/storestream/internal/rotation"
)

// node is a value of a YAML file: a text as it was written, a list or a section. The zero node is null.
type node struct {
	line     int
	text     string
	list     []node
	section  map[string]node
	composed bool // it is a list or a section
}

// UnmarshalYAML implements yaml.Unmarshaler. Aliases and merges are resolved by the library.
func (n *node) UnmarshalYAML(y *yaml.Node) error {
	n.line, n.text, n.composed = y.Line, y.Value, y.Kind != yaml.ScalarNode
	switch y.Kind {
	case yaml.SequenceNode:
		return y.Decode(&n.list)
	case yaml.MappingNode:
		n.section = map[string]node{}
		return y.Decode(&n.section)
	}
	return nil
}

// loadFile lays a YAML file over l. A key without a value (null) is not set.
func loadFile(path string, l *loader) {
	if path == "" || path == os.DevNull {
		return
	}
	text, err := rotation.ReadOnce(path)
	if err != nil {
		l.found = append(l.found, Mistake{Key: path, Rule: "the configuration file cannot be read: " + err.Error()})
		return
	}
	var root node
	if err := readYAML(text, &root); err != nil {
		l.found = append(l.found, Mistake{Key: path, Rule: "not YAML: " + err.Error()})
		return
	}
	root.lay(filepath.Base(path), "", l)
}

// readYAML reads the one document in text.
func readYAML(text string, root *node) error {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var document yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return nil // an empty file sets nothing
	}
	if err == nil && !errors.Is(decoder.Decode(&yaml.Node{}), io.EOF) {
		err = errors.New("expected one YAML document, found more")
	}
	if err == nil {
		err = document.Decode(new(any)) // which finds an anchor that contains itself
	}
	if err == nil {
		err = document.Decode(root)
	}
	if err != nil && strings.ContainsAny(err.Error(), "`'") { // the library quotes values, and names of anchors
		err = errors.New("a value or an anchor cannot be read: put values that begin with * or ! in quotes")
	}
	return err
}

// lay lays the settings in n, whose key is path, over l.
func (n node) lay(file, path string, l *loader) {
	from := strings.TrimSuffix(fmt.Sprintf("%s:%d", file, n.line), ":0") // null has no line
	if n.line == 0 && (path == "" || slices.Contains(l.names, path)) {
		return // it is not set
	}
	if _, isLeaf := l.leaves[path]; n.section != nil && !isLeaf {
		for _, name := range slices.Sorted(maps.Keys(n.section)) {
			n.section[name].lay(file, join(path, name), l)
		}
		return
	}
	var parts []string
	nested := false
	for _, child := range n.list {
		parts, nested = append(parts, child.text), nested || child.composed
	}
	for _, name := range slices.Sorted(maps.Keys(n.section)) {
		parts, nested = append(parts, name+"="+n.section[name].text), nested || n.section[name].composed
	}
	if nested {
		l.found = append(l.found, Mistake{Key: path, From: from, Rule: "expected plain values in it"})
		return
	}
	if n.composed {
		n.text = strings.Join(parts, ",")
	}
	l.set(setting{Key: path, Text: n.text, From: from, List: n.composed})
}
