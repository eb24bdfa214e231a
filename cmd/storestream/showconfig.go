package main

import (
	"github.com/spf13/cobra"

	"github.com/storestream/storestream/internal/terminal"
)

func (a *app) configCommand() *cobra.Command {
	show := &cobra.Command{
		Use:   "show",
		Short: "Print the configuration in force and where each value came from",
		Long: `Prints every key with its value and where that was given: the default, a line of the file, an environment
variable or a flag. Secrets are masked. Every mistake is reported, with exit status 2.`,
		Example: "  STORESTREAM_LOG__LEVEL=debug storestream config show --config storestream.yaml",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := a.config()
			if err != nil {
				return err
			}
			t := terminal.NewTable(a.paint, "KEY", "VALUE", "FROM")
			for _, e := range cfg.Entries() {
				value := e.Value
				if value == "" {
					value = `""`
				}
				t.Row(e.Key, value, e.From)
			}
			return t.Print(a.stdout)
		},
	}
	return a.group(&cobra.Command{Use: "config", Short: "The configuration", Example: "  storestream config show"}, show)
}
