package main

import (
	"bytes"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// busy is a port that something listens on.
func busy(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

func TestAUsualPortThatIsTakenIsReplacedAndSaid(t *testing.T) {
	p := ports{broker: port{number: busy(t)}}
	taken := p.broker.number
	if err := p.settle(); err != nil {
		t.Fatal(err)
	}
	if p.broker.number == taken || !strings.Contains(p.broker.remark(), strconv.Itoa(taken)) {
		t.Errorf("the broker got port %d instead of %d, and the remark %q", p.broker.number, taken,
			p.broker.remark())
	}
	var numbers []int
	for _, port := range p.all() {
		numbers = append(numbers, port.number)
	}
	slices.Sort(numbers)
	if slices.Contains(numbers, 0) || len(slices.Compact(numbers)) != len(p.all()) {
		t.Errorf("not all ports differ: %v", numbers)
	}
}

func TestAPortThatTheUserChoseIsTakenOrTheDemoEnds(t *testing.T) {
	taken := strconv.Itoa(busy(t))
	var stdout, stderr bytes.Buffer
	status := run(t.Context(), []string{"--port-broker", taken}, nil, &stdout, &stderr)
	if status != exitFailed || !strings.Contains(stderr.String(), "--port-broker "+taken) {
		t.Errorf("exit status %d, stderr %q", status, stderr.String())
	}
}

func TestWrongUsageIsNamedWholeWithExitStatusTwo(t *testing.T) {
	var stdout, stderr bytes.Buffer
	status := run(t.Context(), []string{"now", "--traffic", "-1", "--for", "-1s", "--users", "0",
		"--port-broker", "70000",
		"--port-registry", "8090", "--port-service", "8090"}, nil, &stdout, &stderr)
	if status != exitUsage || stdout.Len() > 0 {
		t.Errorf("exit status %d, stdout %q", status, stdout.String())
	}
	for _, want := range []string{
		`"now"`, "--traffic -1", "--for -1s", "1 user", "--port-broker 70000", "both 8090",
	} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("%q is not in %q", want, stderr.String())
		}
	}
}

func TestHelpShowsEveryFlagAndAnExample(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if status := run(t.Context(), []string{"--help"}, nil, &stdout, &stderr); status != exitDone ||
		stderr.Len() > 0 {
		t.Errorf("exit status %d, stderr %q", status, stderr.String())
	}
	for _, want := range []string{"make demo ARGS=", "--orders", "--users", "--products", "--traffic", "--seed",
		"--for", "--port-broker"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("%q is not in\n%s", want, stdout.String())
		}
	}
}
