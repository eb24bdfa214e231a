package main

import (
	"cmp"

	"github.com/spf13/cobra"
)

func configCommand(env *environment) *cobra.Command {
	show := &cobra.Command{
		Use:   "show",
		Short: "Print the configuration in force and where each value came from",
		Long: `Prints every key with its value and where that was given: the default, a line of the file, an
environment variable or a flag; below them the variables that name a proxy. Secrets are masked. Every
mistake is reported, with exit status 2.`,
		Example: "  STORESTREAM_LOG__LEVEL=debug storestream config show",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := env.config()
			if err != nil {
				return err
			}
			rows := [][]string{{"KEY", "VALUE", "FROM"}}
			for _, e := range cfg.Entries() {
				rows = append(rows, []string{e.Key, cmp.Or(e.Value, `""`), e.From})
			}
			return printTable(env.stdout, rows)
		},
	}
	return group(&cobra.Command{Use: "config", Short: "The configuration",
		Example: "  storestream config show"}, show)
}
