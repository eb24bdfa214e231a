package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/cmd/storestream/internal/instance"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// environment is what one call of the program gets from outside. The variables are a list and not a lookup,
// because an unknown STORESTREAM_ variable is an error.
type environment struct {
	environ        []string
	stdin          io.Reader
	stdout, stderr io.Writer
	rows           io.Writer // stdout for rows: the one writer that hides no secrets, see execute
	terminal       bool      // a person can answer a question

	saying  sync.Mutex
	secrets atomic.Pointer[rotation.Hidden] // those of the configuration, once it is loaded

	// The flags that every command takes.
	configFile string
	set        []string

	begun  bool // the command line was understood: an error before that is wrong usage
	noFile bool // no configuration file is named or there, unless --config names one
}

// usualFile is the default configuration file.
const usualFile = "storestream.yaml"

// usualConfig returns the configuration file without --config: the one that STORESTREAM_CONFIG names, even if
// it is set to nothing, or usualFile if the current folder has it. Otherwise it sets noFile.
func (e *environment) usualConfig() string {
	for _, variable := range e.environ {
		if path, ok := strings.CutPrefix(variable, config.FileVariable+"="); ok {
			return path
		}
	}
	if _, err := os.Stat(usualFile); err == nil {
		return usualFile
	}
	e.noFile = true
	return ""
}

// config loads the configuration that flags and variables name.
func (e *environment) config() (*config.Config, error) {
	e.begun = true
	cfg, err := config.Load(config.Input{File: e.configFile, Environ: e.environ, Set: e.set})
	if err != nil {
		return nil, exitError{exitUsage, err}
	}
	e.secrets.Store(cfg.Hidden())
	return cfg, nil
}

// hide takes the configuration's secrets out of a text.
func (e *environment) hide(text string) string { return e.secrets.Load().Hide(text) }

// load is the configuration and the schemas that it names.
func (e *environment) load() (*config.Config, *schemas.Set, error) {
	cfg, err := e.config()
	if err != nil {
		return nil, nil, err
	}
	return cfg, cfg.SchemaSet(), nil
}

// planned does f with the configuration, the schemas that it names, and its cluster. No broker is asked.
func (e *environment) planned(f func(*config.Config, *schemas.Set, *producer.Cluster) error) error {
	cfg, set, err := e.load()
	if err != nil {
		return err
	}
	cluster, err := openCluster(cfg)
	if err != nil {
		return err
	}
	defer cluster.Close()
	return f(cfg, set, cluster)
}

// openCluster opens the cluster of a configuration. What matters comes back as an error, so it has no log.
func openCluster(cfg *config.Config) (*producer.Cluster, error) {
	return connect.Kafka(cfg, instance.Name(), zap.NewNop(), nil)
}

// inKafka is planned, once a broker has answered.
func (e *environment) inKafka(cmd *cobra.Command,
	f func(*config.Config, *schemas.Set, *producer.Cluster) error) error {
	return e.planned(func(cfg *config.Config, set *schemas.Set, cluster *producer.Cluster) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), connect.BrokerPatience)
		defer cancel()
		if err := cluster.Ping(ctx); err != nil {
			return err
		}
		return f(cfg, set, cluster)
	})
}

// print writes to stdout. What fails is the end of execute to say.
func (e *environment) print(format string, args ...any) {
	_, _ = fmt.Fprintf(e.stdout, format, args...)
}

// say writes a line about a resource to stderr. Several goroutines may call it.
func (e *environment) say(resource, text string) {
	e.saying.Lock()
	defer e.saying.Unlock()
	_, _ = fmt.Fprintf(e.stderr, "%s: %s\n", resource, text)
}

// printJSON writes v to stdout, indented.
func (e *environment) printJSON(v any) error {
	var text strings.Builder
	if err := writeJSON(&text, v); err != nil {
		return err
	}
	_, err := io.WriteString(e.rows, e.secrets.Load().HideJSON(text.String()))
	return err
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// spacesAtEnd are those that tabwriter puts in place of a last cell that is empty.
var spacesAtEnd = regexp.MustCompile(" +\n")

// printTable writes rows as aligned columns. The first row is the header.
func printTable(w io.Writer, rows [][]string) error {
	var text strings.Builder
	columns := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(columns, strings.Join(row, "\t")) // a strings.Builder takes everything
	}
	_ = columns.Flush()
	_, err := io.WriteString(w, spacesAtEnd.ReplaceAllString(text.String(), "\n"))
	return err
}

// confirm asks on the terminal. Only a yes is one, and an interrupt is a no.
func (e *environment) confirm(ctx context.Context, question string) bool {
	e.print("%s [y/N] ", question)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(e.stdin).ReadString('\n') // an end without an answer is no
		answer <- line
	}()
	select {
	case line := <-answer:
		line = strings.ToLower(strings.TrimSpace(line))
		return line == "y" || line == "yes"
	case <-ctx.Done(): // an interrupt
		return false
	}
}

// jsonFlag adds -o, and returns whether it asks for JSON. Without it the output is for a person to read.
func jsonFlag(cmd *cobra.Command) *bool {
	var form string
	asJSON := new(bool)
	cmd.Flags().StringVarP(&form, "output", "o", "",
		"`form` of the output: json")
	forms := cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp)
	_ = cmd.RegisterFlagCompletionFunc("output", forms) // the flag is there
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if form != "" && form != "json" {
			return usagef(cmd, "-o %s: expected json", form)
		}
		*asJSON = form == "json"
		return nil
	}
	return asJSON
}
