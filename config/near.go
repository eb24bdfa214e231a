package config

import (
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// nearest returns the first known name with the fewest edits from an unknown one.
func nearest(unknown string, known []string) string {
	return slices.MinFunc(known, func(a, b string) int {
		return levenshtein.ComputeDistance(unknown, a) - levenshtein.ComputeDistance(unknown, b)
	})
}

// NearMiss returns the known name that an unknown one was probably meant to be, or "". It is at most two
// edits away (and not all of the name), or contains the unknown one.
func NearMiss(unknown string, known []string) string {
	if len(known) == 0 {
		return ""
	}
	closest := nearest(unknown, known)
	if edits := levenshtein.ComputeDistance(unknown, closest); edits <= 2 && edits < len(unknown) {
		return closest
	}
	for _, name := range known {
		if len(unknown) > 2 && strings.Contains(name, unknown) {
			return name
		}
	}
	return ""
}
