package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/pflag"

	"github.com/storestream/storestream/internal/standins/storefake"
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

// started runs storefake until the test ends, and returns what it prints, line by line.
func started(t *testing.T, args ...string) (line func(begin string)) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, append([]string{"--listen", "127.0.0.1:0", "--users", "20", "--orders", "30",
			"--products", "5"}, args...), noEnv, in, io.Discard)
		_ = in.Close()
	}()
	t.Cleanup(func() {
		stop()
		_, _ = io.Copy(io.Discard, out)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	lines := bufio.NewScanner(out)
	return func(begin string) {
		t.Helper()
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), begin) {
				return
			}
		}
		t.Fatalf("it ended without a line that begins with %q", begin)
	}
}

func TestASignalStopsTrafficAndTheNextStartsItAgain(t *testing.T) {
	line := started(t, "--traffic", "50")
	for _, want := range []string{"traffic      50 changes", "traffic      stopped", "traffic      50 changes"} {
		line(want)
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
	}
	line("traffic      stopped")
}

func TestWhatIsScheduledHappensInTime(t *testing.T) {
	line := started(t, "--without", "users.city", "--from", "20ms", "--until", "60ms", "--clock-step",
		"40ms=-5m", "--restore", "50ms=30ms")
	for _, want := range []string{"20ms         readings and faults hold", "30ms         backup",
		"40ms         clock steps by -5m0s", "50ms         restored", "60ms         the plainest service again"} {
		line(want)
	}
}

func TestAllWrongSettingsAreNamedAtOnce(t *testing.T) {
	err := run(t.Context(), []string{"--order", "sideways", "--clock", "noon", "--fault", "hiccup=0.1",
		"--fault", "500=x", "--nulls", "3", "--clock-step", "noon=1m", "--restore", "1m=2m",
		"--without", "users.town", "--from", "2m", "--until", "1m",
		"--traffic", "-1", "--postgres", "nonsense"}, noEnv, io.Discard, io.Discard)
	var usage *usageError
	if !errors.As(err, &usage) {
		t.Fatalf("%v: expected a usage error", err)
	}
	for _, want := range []string{"sideways", "noon", "hiccup", "500=x", "nulls", "traffic", "postgres DSN",
		"clock-step noon", "restore 1m=2m", "users.town", "from 2m"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not named in: %v", want, err)
		}
	}
	for _, args := range [][]string{{"--stack", "cobol"}, {"--refuse", "past=400"}, {"--times", "roman"},
		{"--key-status", "402"}} {
		if err := run(t.Context(), args, noEnv, io.Discard, io.Discard); !errors.As(err, &usage) ||
			!strings.Contains(err.Error(), args[1]) {
			t.Errorf("%v: %v, expected a usage error that names it", args, err)
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
	if !strings.Contains(out.String(), "curl") || !strings.Contains(out.String(), "--clock-speed") ||
		!strings.Contains(out.String(), "SIGUSR1") {
		t.Errorf("no example in:\n%s", out.String())
	}
}

// The default of each named setting may be written out.
func TestDefaultsMayBeNamed(t *testing.T) {
	var s settings
	flags := pflag.NewFlagSet("storefake", pflag.ContinueOnError)
	s.declare(flags)
	for flag, name := range map[string]string{"count": "total", "past-end": "empty", "oversize": "capped",
		"order": "id", "money": "as-is", "retry-after": "seconds", "has-more": "follows", "times": "as-is",
		"null-form": "as-is", "errors": "as-is"} {
		if err := flags.Set(flag, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Readings.Check(); err != nil {
		t.Error(err)
	}
}

func TestFlagsAfterAStackChangeSingleHabits(t *testing.T) {
	var s settings
	flags := pflag.NewFlagSet("storefake", pflag.ContinueOnError)
	s.declare(flags)
	if err := flags.Parse([]string{"--fractions", "--stack", "php", "--null-form", "nan", "--refuse",
		"past:10000=422", "--refuse", "users/rows:500=silence"}); err != nil {
		t.Fatal(err)
	}
	h := s.Readings.Habits
	if h.Times != storefake.TimesLaravel || h.Nulls != storefake.NullNaN || !h.Fractions ||
		s.Readings.MoneyForm != storefake.MoneyString {
		t.Errorf("%+v", s.Readings)
	}
	want := []storefake.Refusal{{What: storefake.PastRows, Limit: 10000, Status: 422},
		{Of: []string{storefake.Users}, What: storefake.HeavyPages, Limit: 500}}
	if !reflect.DeepEqual(s.Readings.Refusals, want) {
		t.Errorf("%+v, expected %+v", s.Readings.Refusals, want)
	}
}
