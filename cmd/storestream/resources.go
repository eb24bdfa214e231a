package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/schemas"
)

// chooseResources is the resources that a command line names, each once, or all of them with --all.
func chooseResources(cmd *cobra.Command, args []string, all bool) ([]string, error) {
	names := schemas.Names()
	switch {
	case all && len(args) > 0:
		return nil, usagef(cmd, "--all and %s: expected one or the other", strings.Join(args, " "))
	case all:
		return names, nil
	case len(args) == 0:
		return nil, usagef(cmd, "no resource given: expected one or more of %s, or --all",
			strings.Join(names, ", "))
	}
	var chosen []string
	for _, arg := range args {
		if err := checkResource(cmd, arg); err != nil {
			return nil, err
		}
		if !slices.Contains(chosen, arg) {
			chosen = append(chosen, arg)
		}
	}
	return chosen, nil
}

// oneResource wants the name of one resource.
func oneResource(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef(cmd, "expected the name of one resource: %s", strings.Join(schemas.Names(), ", "))
	}
	return checkResource(cmd, args[0])
}

func checkResource(cmd *cobra.Command, arg string) error {
	names := schemas.Names()
	if slices.Contains(names, arg) {
		return nil
	}
	return usagef(cmd, "unknown resource %q: expected one of %s; the nearest is %s",
		arg, strings.Join(names, ", "), config.Nearest(arg, names))
}
