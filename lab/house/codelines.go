package main

import (
	"go/scanner"
	"go/token"
)

// codeLines counts the lines of a Go file that hold code. Comments and blank lines are not counted. A string
// that spans lines counts each of them.
func codeLines(text []byte) int {
	file := token.NewFileSet().AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0) // no ScanComments: comments are skipped
	count, last := 0, 0
	for {
		at, kind, literal := s.Scan()
		if kind == token.EOF {
			return count
		}
		if kind == token.SEMICOLON && literal == "\n" {
			continue // the end of a line, which the scanner reports as a token
		}
		for line, end := file.Line(at), endLine(file, at, literal); line <= end; line++ {
			if line > last {
				count, last = count+1, line
			}
		}
	}
}

// endLine returns the line on which a token ends.
func endLine(file *token.File, at token.Pos, literal string) int {
	if literal == "" {
		return file.Line(at)
	}
	return file.Line(at + token.Pos(len(literal)-1))
}
