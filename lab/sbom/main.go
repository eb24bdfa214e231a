// Command sbom writes the bill of materials of a Go program, as CycloneDX JSON. It lists the modules that the
// program itself says it was built from, and not those that go.mod would have allowed.
//
//	sbom PROGRAM DOCUMENT
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "expected the path of a Go program, and that of the document to write")
		os.Exit(2)
	}
	document, err := os.Create(os.Args[2])
	if err == nil {
		err = errors.Join(write(document, os.Args[1]), document.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func write(w io.Writer, program string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("expected a program built by Go: %w", err)
	}
	bytes, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(bytes)
	whole := component(&info.Main)
	whole.Type, whole.Name = cyclonedx.ComponentTypeApplication, filepath.Base(program)
	whole.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}
	standard := component(&debug.Module{Path: "std", Version: info.GoVersion})
	parts, needs := []cyclonedx.Component{standard}, []string{standard.BOMRef}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		part := component(m)
		parts, needs = append(parts, part), append(needs, part.BOMRef)
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &whole}
	bom.Components = &parts
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: whole.BOMRef, Dependencies: &needs}}
	return cyclonedx.NewBOMEncoder(w, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
}

func component(m *debug.Module) cyclonedx.Component {
	url := "pkg:golang/" + m.Path + "@" + m.Version
	return cyclonedx.Component{Type: cyclonedx.ComponentTypeLibrary, BOMRef: url, Name: m.Path,
		Version: m.Version, PackageURL: url}
}
