package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// What Apache Kafka and Apicurio need, and this machine does not have.
var (
	ErrNoJava  = errors.New("no Java: install 17 or newer (Debian: apt-get install default-jdk-headless)")
	ErrNoMaven = errors.New("no Maven, which fetches what runs on Java: install it " +
		"(Debian: apt-get install maven)")
)

// Progress receives the progress of a fetch, some times a second. It is called only the first time on a
// machine.
type Progress func(text string)

// announced prints a fetch once, for callers that cannot show progress.
func announced() Progress {
	told := false
	return func(text string) {
		if !told {
			fmt.Fprintln(os.Stderr, text)
		}
		told = true
	}
}

// fetched returns the folder of this name in the user's cache. fetch fills it the first time on a machine,
// and if it was filled by another recipe.
func fetched(name, recipe string, progress Progress, fetch func(dir string) error) (string, error) {
	dir, err := cacheFolder(name)
	if err != nil {
		return "", err
	}
	// Packages' tests run side by side, and fetching fills the folder in place. Without the lock one would
	// run programs that another has half fetched.
	lock, err := lockFile(filepath.Join(dir, "lock"))
	if err != nil {
		return "", fmt.Errorf("lock %s: %w", dir, err)
	}
	defer lock.Close()
	complete := filepath.Join(dir, "complete")
	if by, err := os.ReadFile(complete); err == nil && string(by) == recipe {
		return dir, nil
	}
	progress(fmt.Sprintf("fetching %s from Maven Central into %s", name, dir))
	if err := fetch(dir); err != nil {
		return "", err
	}
	return dir, os.WriteFile(complete, []byte(recipe), 0o644)
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

// progressEvery is how often Progress hears of a fetch that goes on.
const progressEvery = 500 * time.Millisecond

// maven runs a goal whose output goes to dir, until ctx ends. The goal's name pins its version, or else the
// pom.xml in dir.
func maven(ctx context.Context, dir string, progress Progress, args ...string) error {
	path, err := exec.LookPath("mvn")
	if err != nil {
		return ErrNoMaven
	}
	log := filepath.Join(dir, "log")
	watched, end := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		ticker := time.NewTicker(progressEvery)
		defer ticker.Stop()
		for {
			select {
			case <-watched.Done():
				return
			case <-ticker.C:
				progress(downloads(log))
			}
		}
	})
	defer watching.Wait()
	defer end()
	return run(ctx, command{
		name: "mvn", path: path, dir: dir, log: log, lastWish: syscall.SIGKILL,
		environ: append(os.Environ(), "MAVEN_OPTS="+os.Getenv("MAVEN_OPTS")+" "+noPerfData),
		args:    append([]string{"-B"}, args...),
	})
}

// downloads says how far Maven is by its log, which has a line for each file.
func downloads(log string) string {
	text, err := os.ReadFile(log)
	if err != nil {
		return err.Error()
	}
	files, last := 0, ""
	for line := range strings.Lines(string(text)) {
		if _, after, ok := strings.Cut(line, "Downloaded from "); ok {
			files++
			_, url, _ := strings.Cut(after, ": ")
			url, _, _ = strings.Cut(url, " ")
			last = url[strings.LastIndex(url, "/")+1:]
		}
	}
	if files == 0 {
		return "Maven is starting"
	}
	return fmt.Sprintf("fetching from Maven Central: %d files, the last one %s", files, last)
}

func javaBinary() (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		if path, err := exec.LookPath(filepath.Join(home, "bin", "java")); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath("java")
	if err == nil {
		return path, nil
	}
	if _, err := exec.LookPath("mvn"); err != nil { // name both, so that the user installs both at once
		return "", errors.Join(ErrNoJava, ErrNoMaven)
	}
	return "", ErrNoJava
}

// javaLog limits programs that log by slf4j-simple to warnings.
var javaLog = []string{"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
	"-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS"}

// javaFlags are for a quick start and little memory. The optimizing compiler does not help servers that live
// so short. They unpack files (snappy's library, Vert.x's cache) into their own folder, which is removed with
// them. Java ignores TMPDIR, and in /tmp the files of a killed server would stay.
func javaFlags(heap string, dir *folder) []string {
	return []string{"-Xms64m", "-Xmx" + heap, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Djava.io.tmpdir=" + dir.path, noPerfData}
}

// noPerfData keeps a Java machine from leaving a folder hsperfdata_<user> in /tmp.
const noPerfData = "-XX:-UsePerfData"
