package config

import (
	"slices"

	"github.com/agnivade/levenshtein"
)

// nearest returns the first known name with the fewest edits from an unknown one.
func nearest(unknown string, known []string) string {
	return slices.MinFunc(known, func(a, b string) int {
		return levenshtein.ComputeDistance(unknown, a) - levenshtein.ComputeDistance(unknown, b)
	})
}
