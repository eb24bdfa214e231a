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
	document, err := readYAML(text)
	if err != nil {
		l.found = append(l.found, Mistake{Key: path, Rule: "not YAML: " + err.Error()})
		return
	}
	for _, root := range document.Content { // one, or none in an empty file
		layNode(root, filepath.Base(path), "", l)
	}
}

// readYAML reads the one document in text.
func readYAML(text string) (document yaml.Node, err error) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	if err = decoder.Decode(&document); errors.Is(err, io.EOF) {
		return document, nil // an empty file sets nothing
	}
	if err == nil && !errors.Is(decoder.Decode(&yaml.Node{}), io.EOF) {
		err = errors.New("expected one YAML document, found more")
	}
	if err == nil {
		err = document.Decode(new(any)) // which finds a key that stands twice, and an anchor that contains itself
	}
	if err != nil && strings.ContainsAny(err.Error(), "`'") { // the library quotes values, and names of anchors
		err = errors.New("a value or an anchor cannot be read: put values that begin with * or ! in quotes")
	}
	return document, err
}

// layNode lays the settings in n, whose key is path, over l.
func layNode(n *yaml.Node, file, path string, l *loader) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	s := setting{Key: path, Text: n.Value, From: fmt.Sprintf("%s:%d", file, n.Line),
		List: n.Kind != yaml.ScalarNode}
	if n.Tag == "!!null" && (path == "" || slices.Contains(l.names, path)) {
		return // it is not set
	}
	// The library resolves << in this: a key of the section's own replaces a merged one with all that is in it.
	section := map[string]yaml.Node{}
	if n.Kind == yaml.MappingNode && n.Decode(&section) != nil {
		l.found = append(l.found, Mistake{Key: path, From: s.From, Rule: "expected plain names as keys"})
		return
	}
	names := slices.Sorted(maps.Keys(section))
	if _, isLeaf := l.leaves[path]; n.Kind == yaml.MappingNode && !isLeaf {
		for _, name := range names {
			child := section[name]
			layNode(&child, file, join(path, name), l)
		}
		return
	}
	var parts []string
	plain := true
	add := func(before string, child *yaml.Node) {
		if child.Kind == yaml.AliasNode {
			child = child.Alias
		}
		parts, plain = append(parts, before+child.Value), plain && child.Kind == yaml.ScalarNode
	}
	for _, name := range names {
		child := section[name]
		add(name+"=", &child)
	}
	if n.Kind == yaml.SequenceNode {
		for _, child := range n.Content {
			add("", child)
		}
	}
	if s.List {
		s.Text = strings.Join(parts, ",")
	}
	if !plain {
		l.found = append(l.found, Mistake{Key: path, From: s.From, Rule: "expected plain values in it"})
		return
	}
	l.set(s)
}
