//go:build chart

package chart

import (
	"context"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	core "k8s.io/api/core/v1"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/lab/contracts"
	"github.com/storestream/storestream/lab/product"
)

// configFile is the key of the ConfigMap that is the configuration.
const configFile = "storestream.yaml"

// program is storestream, built once for all tests.
var program = sync.OnceValues(func() (string, error) {
	path := filepath.Join(folder, "storestream")
	return path, product.Build(context.Background(), path, nil)
})

// folder holds the program while the tests run.
var folder string

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "storestream-chart-"); err != nil {
		panic(err)
	}
	log.SetOutput(io.Discard) // Helm says of each symbolic link that it follows it
	status := m.Run()
	os.RemoveAll(folder)
	os.Exit(status)
}

// container is what a rendered container finds in its file system, in a folder that stands for its root.
type container struct {
	t    *testing.T
	root string
	spec core.Container
}

// newContainer lays the configuration, and a file for each path that it names, into the folders that are
// mounted for them.
func newContainer(t *testing.T, r *rendered, pod core.PodSpec) *container {
	t.Helper()
	c := &container{t: t, root: t.TempDir(), spec: pod.Containers[0]}
	text := r.config.Data[configFile]
	for _, path := range regexp.MustCompile(`/etc/storestream/[A-Za-z0-9_./-]+`).FindAllString(text, -1) {
		if kind := c.mountedFrom(pod, path); strings.Contains(path, "/secrets/") != (kind == "secret") {
			t.Errorf("%s is mounted from a %q", path, kind)
		}
		c.lay(path)
	}
	const own = "/etc/storestream/"
	c.write(own+"config/"+configFile, strings.ReplaceAll(text, own, c.root+own))
	return c
}

// mountedFrom is the kind of volume that a path lies in: secret, configmap or none.
func (c *container) mountedFrom(pod core.PodSpec, path string) string {
	for _, m := range c.spec.VolumeMounts {
		for _, v := range pod.Volumes {
			if v.Name != m.Name || path != m.MountPath && !strings.HasPrefix(path, m.MountPath+"/") {
				continue
			}
			switch name := filepath.Base(m.MountPath); {
			case v.Secret != nil && v.Secret.SecretName == name:
				return "secret"
			case v.ConfigMap != nil && v.ConfigMap.Name == name:
				return "configmap"
			}
		}
	}
	return "none"
}

// lay writes what a path is for: a certificate, its key, a folder of schemas, or a secret.
func (c *container) lay(path string) {
	c.t.Helper()
	pair := sync.OnceValue(func() servers.Certificate {
		a := servers.AuthorityForTest(c.t, c.t.TempDir())
		return a.Issue(servers.CertificateConfig{Name: "storestream"})
	})
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			c.t.Fatal(err)
		}
		return string(text)
	}
	switch filepath.Ext(path) {
	case ".crt":
		c.write(path, read(pair().CertFile))
		c.write(strings.TrimSuffix(path, ".crt")+".key", read(pair().KeyFile))
	case ".key": // beside its certificate
	case "":
		if strings.Contains(path, "/configmaps/") {
			c.write(path+"/Order.avsc", read("../../schemas/avsc/Order.avsc"))
			return
		}
		secret := "f3a9c1d27e5b48608d14b7e20c6f93a5185bd0472fe69c3be8417a05d62c9f30" // also a privacy.key
		if strings.HasSuffix(path, "dsn") {
			secret = "postgres://student_ro:secret@pooler.example:6432/store"
		}
		c.write(path, secret+"\n")
	}
}

func (c *container) write(path, text string) {
	c.t.Helper()
	if err := os.MkdirAll(filepath.Dir(c.root+path), 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(c.root+path, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// show is what `storestream config show` says with the configuration and the variables of the container.
func (c *container) show() (string, error) {
	c.t.Helper()
	path, err := program()
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.CommandContext(c.t.Context(), path, "config", "show")
	for _, v := range c.spec.Env {
		const own = "/etc/storestream/"
		cmd.Env = append(cmd.Env, v.Name+"="+strings.ReplaceAll(v.Value, own, c.root+own))
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestStorestreamTakesTheConfiguration(t *testing.T) {
	forEachValuesFile(t, func(t *testing.T, r *rendered) {
		t.Helper()
		schema, err := contracts.Compile(config.JSONSchema)
		if err != nil {
			t.Fatal(err)
		}
		if err := contracts.Validate(schema, r.config.Data[configFile]); err != nil {
			t.Errorf("%v\n%s", err, r.config.Data[configFile])
		}
		for _, pod := range r.pods() {
			out, err := newContainer(t, r, pod).show()
			if err != nil {
				t.Errorf("%v\n%s\n%s", err, out, r.config.Data[configFile])
			}
			for _, host := range []string{"shop-storestream", "shop-storestream.data",
				"shop-storestream.data.svc", "shop-storestream.data.svc.cluster.local"} {
				line := regexp.MustCompile(`(?m)^http\.hosts .*$`).FindString(out)
				if !slices.Contains(regexp.MustCompile(`[, ]+`).Split(line, -1), host) {
					t.Errorf("http.hosts does not have %s, by which the service is asked: %s", host, line)
				}
			}
			if !regexp.MustCompile(`(?m)^http\.listen +:8080 `).MatchString(out) {
				t.Errorf("the status server does not listen on the container's port:\n%s", out)
			}
		}
	})
}

// The image is built from the Dockerfile: the chart gives arguments alone, and the same user.
func TestTheImageIsAsTheChartTakesItToBe(t *testing.T) {
	text, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, stage, _ := strings.Cut(string(text), " AS storestream\n")
	for _, line := range []string{"USER 65532:65532", `ENTRYPOINT ["/usr/local/bin/storestream"]`} {
		if !strings.Contains(stage, line+"\n") {
			t.Errorf("the image storestream does not have %s", line)
		}
	}
	want := []string{"COPY --from=build /out/storestream /usr/local/bin/",
		"COPY --chown=65532:65532 LICENSE NOTICE /usr/share/doc/storestream/"}
	got := regexp.MustCompile(`(?mi)^\s*(?:COPY|ADD|RUN)\b.*`).FindAllString(stage, -1)
	if !slices.Equal(got, want) {
		t.Errorf("the image is made of %q, expected the program and its licences alone: %q", got, want)
	}
	r := render(t, valuesOf(t, "testdata/least.yaml"))
	for _, pod := range r.pods() {
		if c := pod.Containers[0]; len(c.Command) != 0 || *pod.SecurityContext.RunAsUser != 65532 {
			t.Errorf("the pod runs %v as %d", c.Command, *pod.SecurityContext.RunAsUser)
		}
	}
}
