package main

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/storestream/storestream/config"
)

func configCommand(env *environment) *cobra.Command {
	show := &cobra.Command{
		Use:   "show",
		Short: "Print the settings in force, and their origin",
		Long: `Prints every key with its value and the value's origin: the default, a line of
the file, an environment variable or a flag. Below it prints the variables that
name a proxy. It masks secrets. It reports every mistake, with exit status 2.`,
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
	schema := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the configuration file",
		Long: `Prints the JSON Schema (draft 2020-12) of the configuration file: every key
with its type, values, default and meaning. With it an editor completes keys
and marks mistakes. Write it beside the file, and begin the file with the line

  # yaml-language-server: $schema=schema.json

"storestream config show" also finds mistakes that a schema cannot describe.`,
		Example: "  storestream config schema > schema.json",
		Args:    cobra.NoArgs,
		Run:     func(*cobra.Command, []string) { env.print("%s", config.JSONSchema) },
	}
	return group(&cobra.Command{Use: "config", Short: "Show the configuration and its schema",
		Example: "  storestream config show"}, show, schema)
}
