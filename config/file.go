package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// file reads the layer of a YAML file. It goes over YAML's nodes, because they know their lines and their text as it was written; a key
// with no value (null) is not set.
func (l *loader) file(path string) {
	if path == "" {
		return
	}
	text, err := os.ReadFile(path)
	if err != nil {
		l.mistake(Mistake{Key: path, Rule: fmt.Sprintf("the configuration file cannot be read: %v", fileError(err))})
		return
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if !errors.Is(err, io.EOF) { // an empty file sets nothing
			l.mistake(Mistake{Key: path, Rule: "not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")})
		}
		return
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		l.mistake(Mistake{Key: path, Rule: "expected one YAML document, found more"})
		return
	}
	f := &yamlFile{name: filepath.Base(path), loader: l, given: map[string]setting{}}
	f.section("", doc.Content[0])
	l.layer(f.given)
}

// yamlFile collects what a file sets.
type yamlFile struct {
	name   string
	loader *loader
	given  map[string]setting
}

func (f *yamlFile) at(n *yaml.Node) string { return fmt.Sprintf("%s:%d", f.name, n.Line) }

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
		f.loader.mistake(Mistake{Key: what, From: f.at(n), Rule: "expected a section with the keys " + f.loader.known.inSection(path)})
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 { // first, because a key of the mapping itself wins over a merged one
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
			f.loader.mistake(Mistake{Key: join(path, name.Value), From: f.at(name), Rule: fmt.Sprintf("set twice, first in line %d", first)})
			continue
		}
		lines[name.Value] = name.Line
		f.key(join(path, name.Value), name, value)
	}
}

func (f *yamlFile) key(key string, name, value *yaml.Node) {
	if f.loader.known.sections[key] {
		f.section(key, value)
		return
	}
	if _, ok := f.loader.known.leaves[key]; !ok {
		f.loader.mistake(Mistake{Key: key, From: f.at(name), Rule: "unknown key; the nearest known one is " + f.loader.known.nearest(key)})
		return
	}
	value = target(value)
	if value.ShortTag() == "!!null" {
		return
	}
	text, err := f.text(value)
	if err != nil {
		f.loader.mistake(Mistake{Key: key, From: f.at(value), Rule: err.Error()})
		return
	}
	f.given[key] = setting{text: text, from: f.at(value)}
}

// text is a scalar as it was written, or a list's elements between commas.
func (f *yamlFile) text(n *yaml.Node) (string, error) {
	if n.Kind == yaml.ScalarNode {
		return n.Value, nil
	}
	if n.Kind != yaml.SequenceNode {
		return "", errors.New("expected a value, found a section")
	}
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

// target follows an alias to the node it stands for.
func target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
