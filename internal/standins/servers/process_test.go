package servers

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ownerVariable, when set, makes this test binary the owner of a PostgreSQL instead: it prints the server's
// process id and folder, and waits to be killed.
const ownerVariable = "SERVERS_TEST_OWNER"

func TestMain(m *testing.M) {
	if os.Getenv(ownerVariable) == "" {
		os.Exit(m.Run())
	}
	p, err := StartPostgres(context.Background(), PostgresConfig{InMemory: true})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(p.run.process.cmd.Process.Pid, p.dir.path)
	select {}
}

func TestAServerDiesWithAnOwnerThatIsKilledAndItsFolderIsSweptLater(t *testing.T) {
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerVariable+"=1")
	output, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	number, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
	pid, err := strconv.Atoi(number)
	if err != nil {
		t.Fatalf("the owner said %q", line)
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait()
	waitFor(t, "the server to follow its owner", func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })

	longAgo := time.Now().Add(-time.Hour)
	if err := os.Chtimes(dir, longAgo, longAgo); err != nil {
		t.Fatal(err)
	}
	PostgresForTest(t, PostgresConfig{})
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there after another server started (%v)", dir, err)
	}
}

func TestAFolderInUseIsNotSwept(t *testing.T) {
	p := PostgresForTest(t, PostgresConfig{})
	longAgo := time.Now().Add(-time.Hour)
	if err := os.Chtimes(p.dir.path, longAgo, longAgo); err != nil {
		t.Fatal(err)
	}
	sweep(filepath.Dir(p.dir.path), "postgres")
	if _, err := os.Stat(p.data()); err != nil {
		t.Errorf("the folder of a running server was removed: %v", err)
	}
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	p := PostgresForTest(t, PostgresConfig{})
	_, err := StartPostgres(t.Context(), PostgresConfig{Port: p.Port})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("port %d is in use", p.Port)) {
		t.Errorf("a second server on the same port: %v", err)
	}
	settings := map[string]string{"no_such_setting": "1"}
	_, err = StartPostgres(t.Context(), PostgresConfig{InMemory: true, Settings: settings})
	if err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("an unknown setting: %v", err)
	}
}

// initdb says a lot after the line that matters.
func TestThatADiskIsFullIsSaidBeforeManyWords(t *testing.T) {
	err := run(t.Context(), command{name: "initdb", path: "/bin/sh", log: filepath.Join(t.TempDir(), "log"),
		args: []string{"-c", "echo could not write: No space left on device; echo removing; exit 1"}})
	if err == nil || !strings.HasPrefix(err.Error(), "initdb ended (exit status 1, no space left on device);") {
		t.Error(err)
	}
}
