package servers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// What running Apache Kafka takes, and is not on this machine.
var (
	ErrNoJava  = errors.New("no Java: install 17 or newer (Debian: apt-get install default-jre-headless)")
	ErrNoMaven = errors.New("no Maven, which fetches Apache Kafka: install it (Debian: apt-get install maven)")
)

// fetched returns the folder of this name in the user's cache, filled by fetch the first time that it is asked for on this machine.
func fetched(name string, fetch func(dir string) error) (string, error) {
	dir, err := cacheFolder(name)
	if err != nil {
		return "", err
	}
	// Packages' tests run side by side, and fetching fills the folder in place: without the lock one would run what another has half fetched.
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

// cacheFolder is a folder in the user's cache, made where absent. Root's home is closed to the unprivileged user that runs the
// servers, so root's cache is /var/cache.
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

// fetchJars returns the folder with the jars that a pom.xml asks for, and theirs. Nothing but the first call needs Maven or the network.
func fetchJars(name, pom string) (string, error) {
	dir, err := fetched(name, func(dir string) error {
		maven, err := exec.LookPath("mvn")
		if err != nil {
			return ErrNoMaven
		}
		if err := os.WriteFile(filepath.Join(dir, "pom.xml"), []byte(pom), 0o644); err != nil {
			return err
		}
		return run(command{
			name: "mvn", path: maven, dir: dir, log: filepath.Join(dir, "log"), lastWish: syscall.SIGKILL,
			args: []string{"-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=" + filepath.Join(dir, "jars")},
		})
	})
	return filepath.Join(dir, "jars"), err
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
