package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func noEnv(string) string { return "" }

func TestItSaysWhereItListensServesAndStopsCleanly(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{"--listen", "127.0.0.1:0", "--users", "20", "--orders", "30", "--products", "5",
			"--traffic", "50"}, noEnv, in, io.Discard)
		_ = in.Close()
	}()
	lines := bufio.NewScanner(out)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "rest ") {
		t.Fatalf("first line %q (%v), expected where it listens", lines.Text(), lines.Err())
	}
	response, err := http.Get(strings.TrimSpace(strings.TrimPrefix(lines.Text(), "rest")) + "/store-api-keys")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || !strings.Contains(string(body), "api_key") {
		t.Errorf("key endpoint: %s, %v", body, err)
	}
	stop()
	last := ""
	for lines.Scan() {
		last = lines.Text()
	}
	if err := <-done; err != nil || last != "stopped" {
		t.Errorf("it ended with %v, saying %q", err, last)
	}
}

func TestAllWrongSettingsAreNamedAtOnce(t *testing.T) {
	err := run(t.Context(), []string{"--order", "sideways", "--clock", "noon", "--fault", "hiccup=0.1",
		"--fault", "500=x", "--nulls", "3",
		"--traffic", "-1", "--postgres", "nonsense"}, noEnv, io.Discard, io.Discard)
	var usage *usageError
	if !errors.As(err, &usage) {
		t.Fatalf("%v: expected a usage error", err)
	}
	for _, want := range []string{"sideways", "noon", "hiccup", "500=x", "nulls", "traffic", "postgres DSN"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not named in: %v", want, err)
		}
	}
	if err := run(t.Context(), []string{"--ordr", "id"}, noEnv, io.Discard, io.Discard); !errors.As(err,
		&usage) {
		t.Errorf("an unknown flag: %v, expected a usage error", err)
	}
}

func TestHelpShowsAWorkedExample(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--help"}, noEnv, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "curl") || !strings.Contains(out.String(), "--clock-speed") {
		t.Errorf("no example in:\n%s", out.String())
	}
}

// The default of each named setting may be written out.
func TestDefaultsMayBeNamed(t *testing.T) {
	var s settings
	flags := pflag.NewFlagSet("storefake", pflag.ContinueOnError)
	s.declare(flags)
	for flag, name := range map[string]string{"count": "total", "past-end": "empty", "oversize": "capped",
		"order": "id", "money": "as-is", "retry-after": "seconds"} {
		if err := flags.Set(flag, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Readings.Check(); err != nil {
		t.Error(err)
	}
}
