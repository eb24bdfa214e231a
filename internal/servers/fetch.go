package servers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// What Apache Kafka and Apicurio need, and this machine does not have.
var (
	ErrNoJava  = errors.New("no Java: install 17 or newer (Debian: apt-get install default-jre-headless)")
	ErrNoMaven = errors.New("no Maven, which fetches what runs on Java: install it " +
		"(Debian: apt-get install maven)")
)

// fetched returns the folder of this name in the user's cache. The first time on a machine, fetch fills it.
func fetched(name string, fetch func(dir string) error) (string, error) {
	dir, err := cacheFolder(name)
	if err != nil {
		return "", err
	}
	// Packages' tests run side by side, and fetching fills the folder in place. Without the lock one would run
	// what another has half fetched.
	lock, err := lockFile(filepath.Join(dir, "lock"))
	if err != nil {
		return "", fmt.Errorf("lock %s: %w", dir, err)
	}
	defer lock.Close()
	complete := filepath.Join(dir, "complete")
	if _, err := os.Stat(complete); err == nil {
		return dir, nil
	}
	fmt.Fprintf(os.Stderr, "fetching %s from Maven Central into %s\n", name, dir)
	if err := fetch(dir); err != nil {
		return "", err
	}
	return dir, os.WriteFile(complete, nil, 0o644)
}

// cacheFolder is a folder in the user's cache. The unprivileged user that runs the servers may not enter
// root's home, so root's cache is /var/cache.
func cacheFolder(name string) (string, error) {
	base := "/var/cache"
	if os.Geteuid() != 0 {
		var err error
		if base, err = os.UserCacheDir(); err != nil {
			return "", err
		}
	}
	dir := filepath.Join(base, "storestream", name)
	return dir, os.MkdirAll(dir, 0o755)
}

// maven runs a goal whose output goes to dir. The goal's name pins its version, or else the pom.xml in dir.
func maven(dir string, args ...string) error {
	path, err := exec.LookPath("mvn")
	if err != nil {
		return ErrNoMaven
	}
	return run(command{
		name: "mvn", path: path, dir: dir, log: filepath.Join(dir, "log"), lastWish: syscall.SIGKILL,
		args: append([]string{"-q", "-B"}, args...),
	})
}

func javaBinary() (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		if path, err := exec.LookPath(filepath.Join(home, "bin", "java")); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath("java")
	if err != nil {
		return "", ErrNoJava
	}
	return path, nil
}

// javaFlags are for a quick start and little memory. Servers that live so short gain nothing from the
// optimizing compiler.
func javaFlags(heap string) []string {
	return []string{"-Xms64m", "-Xmx" + heap, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}
}
