package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/schemas"
	"github.com/storestream/storestream/schemas/registry"
)

func (a *app) schemaCommand() *cobra.Command {
	return a.group(&cobra.Command{Use: "schema", Short: "The Avro schemas of the topics", Example: "  storestream schema show orders"},
		a.schemaList(), a.schemaShow(), a.schemaCheck(), a.schemaRegister())
}

func (a *app) schemaList() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "Print the schema of each resource: its topic, fields and personal fields",
		Example: "  storestream schema list",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, set, err := a.load()
			if err != nil {
				return err
			}
			return a.printSchemas(cfg, set, output)
		},
	}
	outputFlag(cmd, &output)
	return cmd
}

// schemaLine is a resource as `schema list` shows it.
type schemaLine struct {
	Resource     string   `json:"resource"`
	Record       string   `json:"record"`
	Topic        string   `json:"topic"`
	KeySubject   string   `json:"key_subject"`
	ValueSubject string   `json:"value_subject"`
	Fields       []string `json:"fields"`
	Personal     []string `json:"personal"`
}

func (a *app) printSchemas(cfg *config.Config, set *schemas.Set, output string) error {
	lines := []schemaLine{}
	t := terminal.NewTable(a.paint, "RESOURCE", "RECORD", "TOPIC", "FIELDS", "PERSONAL FIELDS").Numbers(3)
	for _, r := range set.All() {
		topic := cfg.Kafka.TopicPrefix + r.Name
		personal := append([]string{}, r.PersonalFields()...)
		lines = append(lines, schemaLine{r.Name, r.RecordName, topic, topic + "-key", topic + "-value", r.Columns(), personal})
		t.Row(r.Name, "storestream."+r.RecordName, topic, fmt.Sprint(len(r.Fields)), strings.Join(personal, ", "))
	}
	if output == "json" {
		return printJSON(a.stdout, lines)
	}
	return t.Print(a.stdout)
}

func (a *app) schemaShow() *cobra.Command {
	var key bool
	cmd := &cobra.Command{
		Use:     "show RESOURCE",
		Short:   "Print the Avro schema of a resource's values (--key: of its keys)",
		Example: "  storestream schema show orders > Order.avsc",
		Args:    oneResource,
		RunE: func(_ *cobra.Command, args []string) error {
			_, set, err := a.load()
			if err != nil {
				return err
			}
			r := set.Get(args[0])
			text := r.ValueSchema()
			if key {
				text = r.KeySchema()
			}
			var indented bytes.Buffer
			if err := json.Indent(&indented, []byte(text), "", "  "); err != nil {
				return fmt.Errorf("schema of %s: %w", r.Name, err)
			}
			a.print("%s\n", indented.String())
			return nil
		},
	}
	cmd.Flags().BoolVar(&key, "key", false, "the schema of the keys")
	return cmd
}

func (a *app) schemaRegister() *cobra.Command {
	return &cobra.Command{
		Use:   "register",
		Short: "Register the schemas of all resources at the registry",
		Long: `Registers the key and value schemas of every resource under <topic>-key and <topic>-value, for a deployment where
registry.auto_register is false. What is registered already stays as it is.`,
		Example: "  storestream schema register --config storestream.yaml",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, set, err := a.load()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), 2*brokerPatience)
			defer cancel()
			registry, err := newRegistry(cfg)
			if err != nil {
				return err
			}
			t := terminal.NewTable(a.paint, "RESOURCE", "KEY SUBJECT", "ID", "VALUE SUBJECT", "ID")
			for _, r := range set.All() {
				topic := cfg.Kafka.TopicPrefix + r.Name
				keyID, valueID, err := registry.Ensure(ctx, topic, r, true)
				if err != nil {
					return fmt.Errorf("registering the schemas of %s: %w", r.Name, err)
				}
				t.Row(r.Name, topic+"-key", fmt.Sprint(keyID), topic+"-value", fmt.Sprint(valueID))
			}
			return t.Print(a.stdout)
		},
	}
}

func (a *app) schemaCheck() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Ask the registry whether the schemas are compatible; register nothing",
		Long: `Asks about the key and value subject of every resource: whether our schema is registered there, and if not, whether the
registry would take it. Exits 1 if one is refused.`,
		Example: "  storestream schema check --config storestream.yaml",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, set, err := a.load()
			if err != nil {
				return err
			}
			client, err := newRegistry(cfg)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), 2*brokerPatience)
			defer cancel()
			found := []registry.Subject{}
			for _, r := range set.All() {
				subjects, err := client.Check(ctx, cfg.Kafka.TopicPrefix+r.Name, r)
				if err != nil {
					return fmt.Errorf("checking the schemas of %s: %w", r.Name, err)
				}
				found = append(found, subjects...)
			}
			return a.printSubjects(found, output)
		},
	}
	outputFlag(cmd, &output)
	return cmd
}

// subjectLine is a subject as `schema check -o json` shows it.
type subjectLine struct {
	Subject    string   `json:"subject"`
	ID         int      `json:"id"` // 0: not registered
	Compatible bool     `json:"compatible"`
	Messages   []string `json:"messages"`
}

func (a *app) printSubjects(subjects []registry.Subject, output string) error {
	lines, refused := []subjectLine{}, []string{}
	t := terminal.NewTable(a.paint, "SUBJECT", "ID", "STATE")
	for _, s := range subjects {
		id, what := "-", "not registered; compatible"
		switch {
		case s.ID != 0:
			id, what = fmt.Sprint(s.ID), "registered"
		case !s.Compatible:
			what = a.paint.As(terminal.Red, "refused: ") + strings.Join(s.Messages, "; ")
			refused = append(refused, s.Name)
		}
		lines = append(lines, subjectLine{s.Name, s.ID, s.Compatible, append([]string{}, s.Messages...)})
		t.Row(s.Name, id, what)
	}
	show := func() error { return t.Print(a.stdout) }
	if output == "json" {
		show = func() error { return printJSON(a.stdout, lines) }
	}
	if err := show(); err != nil || len(refused) == 0 {
		return err
	}
	return fmt.Errorf("the registry would refuse %s: change the schema file, or the subject's compatibility", strings.Join(refused, ", "))
}

// oneResource wants the name of one resource.
func oneResource(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef(cmd, "expected the name of one resource: %s", strings.Join(schemas.Names(), ", "))
	}
	return resource(cmd, args[0])
}
