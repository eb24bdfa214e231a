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

// NearMiss returns the known name that an unknown one was probably meant to be: it is at most two edits away,
// and not all of the name. Without one it returns "".
func NearMiss(unknown string, known []string) string {
	if len(known) > 0 {
		closest := nearest(unknown, known)
		if edits := levenshtein.ComputeDistance(unknown, closest); edits <= 2 && edits < len(unknown) {
			return closest
		}
	}
	return ""
}
