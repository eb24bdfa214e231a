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
		l.mistake(path, "the configuration file cannot be read: "+err.Error())
		return
	}
	document, err := readYAML(text)
	if err != nil {
		l.mistake(path, "not YAML: "+err.Error())
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
	// The library quotes values, names of anchors, and keys that are no text, as in password: {{geheim}}.
	if err != nil && (strings.ContainsAny(err.Error(), "`'") || strings.Contains(err.Error(), "map key: ")) {
		err = errors.New("a value or an anchor cannot be read: put values that begin with * ! or { in quotes")
	}
	return document, err
}

// layNode lays the settings in n, whose key is path, over l.
func layNode(n *yaml.Node, file, path string, l *loader) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Tag == "!!null" && (path == "" || slices.Contains(l.names, path)) {
		return // it is not set
	}
	s := setting{Key: path, Text: n.Value, From: fmt.Sprintf("%s:%d", file, n.Line),
		List: n.Kind != yaml.ScalarNode}
	// The library resolves aliases and << in these: a key of the section's own replaces a merged one with all
	// that is in it.
	children, pairs, list := map[string]yaml.Node{}, map[string]string{}, []string{}
	var err error
	rule := "expected plain values in it"
	_, isLeaf := l.leaves[path]
	isSection := n.Kind == yaml.MappingNode && !isLeaf
	switch {
	case isSection:
		err, rule = n.Decode(&children), "expected plain names as keys"
	case n.Kind == yaml.MappingNode:
		err = n.Decode(&pairs)
	case n.Kind == yaml.SequenceNode:
		err = n.Decode(&list)
	}
	for _, name := range slices.Sorted(maps.Keys(children)) {
		child := children[name]
		layNode(&child, file, join(path, name), l)
	}
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		list = append(list, name+"="+pairs[name])
	}
	if s.List {
		s.Text = strings.Join(list, ",")
	}
	if err != nil {
		l.found = append(l.found, Mistake{Key: path, From: s.From, Rule: rule})
	} else if !isSection {
		l.set(s)
	}
}
