package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
	"github.com/storestream/storestream/schemas/registry"
)

func schemaCommand(env *environment) *cobra.Command {
	return group(&cobra.Command{Use: "schema", Short: "Show, check and register the Avro schemas",
		Example: "  storestream schema show orders"},
		schemaShow(env), schemaCheck(env), schemaRegister(env), schemaAsyncAPI(env))
}

func schemaShow(env *environment) *cobra.Command {
	var key bool
	cmd := &cobra.Command{
		Use:       "show RESOURCE",
		ValidArgs: schemas.Names(),
		Short:     "Print the Avro schema of a resource's values",
		Example:   "  storestream schema show orders > Order.avsc",
		Args:      resourceArgs(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			_, set, err := env.load()
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
			env.print("%s\n", indented.String())
			return nil
		},
	}
	cmd.Flags().BoolVar(&key, "key", false, "print the schema of the keys")
	return cmd
}

func schemaRegister(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "register",
		Short: "Register all schemas",
		Long: `Registers the key and value schemas of every resource as <topic>-key and
<topic>-value. You need it if registry.auto_register is false. Schemas that are
registered stay as they are.

If the registry has lost schemas that a topic's records name, it registers
none: put them back under their ids first. If it reaches no broker, it cannot
check this, and warns.`,
		Example: "  storestream schema register",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return subjects(cmd.Context(), env, true) },
	}
}

func schemaCheck(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Ask the registry whether it accepts the schemas",
		Long: `Asks the registry about the key and value schema of every resource: is it
registered, and if not, would the registry accept it? It registers none.

Exit status: 1 if the registry refuses one.`,
		Example: "  storestream schema check",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return subjects(cmd.Context(), env, false) },
	}
}

// subjects checks all schemas with the registry, and registers them if register is set. It prints the state
// of each.
func subjects(ctx context.Context, env *environment, register bool) error {
	cfg, set, err := env.load()
	if err != nil {
		return err
	}
	client, err := connect.Registry(cfg)
	if err != nil {
		return err
	}
	if register {
		if err := idsInTopics(ctx, env, cfg, set); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*connect.BrokerPatience)
	defer cancel()
	rows := [][]string{{"RESOURCE", "KEY SUBJECT", "ID", "VALUE SUBJECT", "ID", "STATE"}}
	var refused []error
	for _, r := range set.All() {
		topic := cfg.Kafka.TopicPrefix + r.Name
		keyID, valueID, err := client.Ensure(ctx, topic, r, true, !register)
		state := "registered"
		switch {
		case registry.AsAWhole(err):
			return err
		case err != nil:
			state = "refused"
			refused = append(refused, err)
		case keyID == 0 || valueID == 0:
			state = "not registered; compatible"
		}
		rows = append(rows, []string{r.Name, topic + "-key", idOrDash(keyID), topic + "-value", idOrDash(valueID),
			state})
	}
	return errors.Join(append(refused, printTable(env.stdout, rows))...)
}

// idOrDash returns a schema id as text, and a dash for 0.
func idOrDash(id int) string {
	if id == 0 {
		return "-"
	}
	return strconv.Itoa(id)
}

// idsInTopics refuses if the registry lost the schemas of a topic's records. New schemas would get the old
// ids in another order, so old rows would name other schemas, and the old ones could not be restored. A
// machine that may register schemas need not reach the brokers. Then idsInTopics only warns.
func idsInTopics(ctx context.Context, env *environment, cfg *config.Config, set *schemas.Set) error {
	ctx, cancel := context.WithTimeout(ctx, connect.BrokerPatience)
	defer cancel()
	cluster, err := openCluster(cfg)
	if err != nil {
		return err
	}
	defer cluster.Close()
	err = cluster.Ping(ctx)
	for _, r := range set.All() {
		if err == nil {
			err = producer.SameSchemas(ctx, cluster, r)
		}
	}
	_, ofRegistry := errors.AsType[*registry.Error](err)
	switch {
	case producer.Refused(err) || ofRegistry:
		return fmt.Errorf("nothing was registered: %w", err)
	case errors.Is(err, context.Canceled):
		return err
	case err != nil:
		_, _ = fmt.Fprintf(env.stderr, "storestream: not compared with the ids in the topics: %v\n", err)
	}
	return nil
}
