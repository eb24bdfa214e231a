//go:build chart

// Package chart tests the Helm chart of storestream: what it renders is of Kubernetes' own types, holds
// together, and is a configuration that storestream takes.
package chart

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	network "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	chartFolder = "../../deploy/helm/storestream"
	release     = "shop"
	namespace   = "data"
)

// rendered is what a release of the chart consists of.
type rendered struct {
	deployment *apps.Deployment
	check      *core.Pod
	config     *core.ConfigMap
	dashboard  *core.ConfigMap // nil: none
	service    *core.Service
	account    *core.ServiceAccount
	budget     *policy.PodDisruptionBudget
	network    *network.NetworkPolicy     // nil: none
	monitor    *monitoring.ServiceMonitor // nil: none
	rule       *monitoring.PrometheusRule // nil: none
}

func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// valuesOf reads a values file.
func valuesOf(t *testing.T, file string) map[string]any {
	t.Helper()
	values, err := chartutil.ReadValuesFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// texts renders c as helm install does, after the values were held against the schema.
func texts(c *chart.Chart, values map[string]any) (map[string]string, error) {
	options := chartutil.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(c, values, options, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, all)
}

// decode takes what was rendered for what Kubernetes and Prometheus' operator take it for. A field that they
// do not know is an error.
func decode(files map[string]string) (*rendered, error) {
	r := &rendered{}
	for file, text := range files {
		var kind meta.TypeMeta
		if strings.HasSuffix(file, "NOTES.txt") || strings.TrimSpace(text) == "" {
			continue
		}
		if err := yaml.Unmarshal([]byte(text), &kind); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", file, err, text)
		}
		if err := yaml.UnmarshalStrict([]byte(text), r.place(kind, filepath.Base(file))); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", file, err, text)
		}
	}
	return r, nil
}

// place is where an object of a kind goes.
func (r *rendered) place(kind meta.TypeMeta, file string) any {
	switch kind.APIVersion + " " + kind.Kind {
	case "apps/v1 Deployment":
		return &r.deployment
	case "v1 Pod":
		return &r.check
	case "v1 ConfigMap":
		if file == "dashboard.yaml" {
			return &r.dashboard
		}
		return &r.config
	case "v1 Service":
		return &r.service
	case "v1 ServiceAccount":
		return &r.account
	case "policy/v1 PodDisruptionBudget":
		return &r.budget
	case "networking.k8s.io/v1 NetworkPolicy":
		return &r.network
	case "monitoring.coreos.com/v1 ServiceMonitor":
		return &r.monitor
	case "monitoring.coreos.com/v1 PrometheusRule":
		return &r.rule
	}
	return &struct{}{} // of no kind that the chart should have: its fields are unknown
}

func render(t *testing.T, values map[string]any) *rendered {
	t.Helper()
	files, err := texts(load(t), values)
	if err != nil {
		t.Fatal(err)
	}
	r, err := decode(files)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// documented is the values that docs/deploying.md tells readers to begin with.
func documented(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile("../../docs/deploying.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "<!-- values -->\n```yaml\n")
	block, _, found := strings.Cut(rest, "```\n")
	if !found {
		t.Fatal("docs/deploying.md has no block of values")
	}
	values, err := chartutil.ReadValues([]byte(block))
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// forEachValuesFile runs a test with each file in testdata, and with the values in docs/deploying.md.
func forEachValuesFile(t *testing.T, test func(*testing.T, *rendered)) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no values files: ", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			test(t, render(t, valuesOf(t, file)))
		})
	}
	t.Run("deploying.md", func(t *testing.T) {
		test(t, render(t, documented(t)))
	})
}

func TestHelmLintFindsNothing(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		for _, m := range lint.AllWithKubeVersion(chartFolder, valuesOf(t, file), namespace, nil).Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %v", file, m)
			}
		}
	}
}

func TestAFieldThatKubernetesDoesNotKnowIsFound(t *testing.T) {
	files, err := texts(load(t), valuesOf(t, "testdata/secured.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for file, fields := range map[string][]string{
		"deployment.yaml":          {"maxSurge", "readOnlyRootFilesystem", "mountPath", "periodSeconds"},
		"poddisruptionbudget.yaml": {"maxUnavailable"},
		"networkpolicy.yaml":       {"podSelector", "ipBlock"},
		"servicemonitor.yaml":      {"targetLabel", "credentials"},
		"prometheusrule.yaml":      {"annotations:"},
		"service.yaml":             {"targetPort"},
		"tests/check.yaml":         {"activeDeadlineSeconds"},
	} {
		path := "storestream/templates/" + file
		for _, field := range fields {
			broken := maps.Clone(files)
			broken[path] = strings.Replace(files[path], field, "x"+field, 1)
			if broken[path] == files[path] {
				t.Errorf("%s has no %s", file, field)
			}
			if _, err := decode(broken); err == nil {
				t.Errorf("%s with a field x%s is decoded", file, field)
			}
		}
	}
}

// pods are the specs of the pods that a release makes.
func (r *rendered) pods() []core.PodSpec {
	return []core.PodSpec{r.deployment.Spec.Template.Spec, r.check.Spec}
}

func TestPodsHaveNoRightsThatTheyDoNotNeed(t *testing.T) {
	forEachValuesFile(t, func(t *testing.T, r *rendered) {
		t.Helper()
		for _, pod := range r.pods() {
			own, container := pod.SecurityContext, pod.Containers[0].SecurityContext
			if !*own.RunAsNonRoot || own.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault ||
				*pod.AutomountServiceAccountToken || *pod.EnableServiceLinks {
				t.Errorf("the pod may more than it needs: %+v", own)
			}
			if *container.AllowPrivilegeEscalation || !*container.ReadOnlyRootFilesystem ||
				!slices.Equal(container.Capabilities.Drop, []core.Capability{"ALL"}) {
				t.Errorf("the container may more than it needs: %+v", container)
			}
			if pod.ServiceAccountName != r.account.Name {
				t.Errorf("the pod is %s, and there is %s", pod.ServiceAccountName, r.account.Name)
			}
		}
	})
}

func TestWhatIsMountedIsThere(t *testing.T) {
	forEachValuesFile(t, func(t *testing.T, r *rendered) {
		t.Helper()
		for _, pod := range r.pods() {
			volumes := map[string]bool{}
			for _, v := range pod.Volumes {
				if volumes[v.Name] {
					t.Errorf("two volumes are %s", v.Name)
				}
				volumes[v.Name] = true
				if v.Name == "config" && v.ConfigMap.Name != r.config.Name {
					t.Errorf("the configuration is %s, and there is %s", v.ConfigMap.Name, r.config.Name)
				}
			}
			paths := map[string]bool{}
			for _, m := range pod.Containers[0].VolumeMounts {
				if !volumes[m.Name] || paths[m.MountPath] || !m.ReadOnly {
					t.Errorf("%s at %s: no such volume, twice, or writable", m.Name, m.MountPath)
				}
				delete(volumes, m.Name)
				for path := range paths {
					if strings.HasPrefix(path+"/", m.MountPath+"/") || strings.HasPrefix(m.MountPath, path+"/") {
						t.Errorf("%s lies in %s, which is read-only", path, m.MountPath)
					}
				}
				paths[m.MountPath] = true
			}
			if len(volumes) > 0 {
				t.Errorf("nothing mounts %v", volumes)
			}
		}
	})
}

// selects says whether a selector means what has these labels.
func selects(t *testing.T, selector *meta.LabelSelector, labels map[string]string) bool {
	t.Helper()
	s, err := meta.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return s.Matches(labelSet(labels))
}

// labelSet is labels as selectors look at them.
type labelSet map[string]string

func (l labelSet) Has(name string) bool              { _, ok := l[name]; return ok }
func (l labelSet) Get(name string) string            { return l[name] }
func (l labelSet) Lookup(name string) (string, bool) { v, ok := l[name]; return v, ok }

func TestSelectorsMeanTheInstancesAndNotTheCheck(t *testing.T) {
	forEachValuesFile(t, func(t *testing.T, r *rendered) {
		t.Helper()
		instance, check := r.deployment.Spec.Template.Labels, r.check.Labels
		pod := r.deployment.Spec.Template.Spec
		selectors := map[string]*meta.LabelSelector{
			"deployment": r.deployment.Spec.Selector,
			"budget":     r.budget.Spec.Selector,
			"service":    {MatchLabels: r.service.Spec.Selector},
			"spread":     pod.TopologySpreadConstraints[0].LabelSelector,
		}
		for _, p := range pod.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			selectors["anti-affinity"] = p.PodAffinityTerm.LabelSelector
		}
		for name, selector := range selectors {
			if !selects(t, selector, instance) || selects(t, selector, check) {
				t.Errorf("the selector of %s means the wrong pods: %v", name, selector)
			}
		}
		if n := r.network; n != nil {
			if s := n.Spec.PodSelector; !selects(t, &s, instance) || !selects(t, &s, check) {
				t.Errorf("the network policy does not mean all pods: %v", s)
			}
		}
		if m := r.monitor; m != nil && !selects(t, &m.Spec.Selector, r.service.Labels) {
			t.Errorf("Prometheus does not find the service: %v", m.Spec.Selector)
		}
	})
}

func TestPortsAreThoseOfTheStatusServer(t *testing.T) {
	forEachValuesFile(t, func(t *testing.T, r *rendered) {
		t.Helper()
		container := r.deployment.Spec.Template.Spec.Containers[0]
		port, scheme := container.Ports[0], core.URISchemeHTTP
		if strings.Contains(r.config.Data[configFile], "secrets/http-certificate") {
			scheme = core.URISchemeHTTPS
		}
		for path, probe := range map[string]*core.Probe{
			"/healthz": container.LivenessProbe, "/readyz": container.ReadinessProbe} {
			get := probe.HTTPGet
			if get.Path != path || get.Port.String() != port.Name || get.Scheme != scheme {
				t.Errorf("expected a probe of %s over %s, it is %v", path, scheme, get)
			}
		}
		if s := r.service.Spec.Ports[0]; s.TargetPort.String() != port.Name || s.Name == "" {
			t.Errorf("the service leads to port %v", s.TargetPort)
		}
		if n := r.network; n != nil {
			for _, rule := range n.Spec.Ingress {
				if len(rule.From) == 0 || rule.Ports[0].Port.String() != port.Name {
					t.Errorf("the network policy lets in whoever there is, or to another port: %+v", rule)
				}
			}
		}
		if m := r.monitor; m != nil {
			if e := m.Spec.Endpoints[0]; e.Port != r.service.Spec.Ports[0].Name || e.Path != "/metrics" ||
				!strings.EqualFold(e.Scheme.String(), string(scheme)) {
				t.Errorf("Prometheus asks %s for %s over %s", e.Port, e.Path, e.Scheme)
			}
		}
	})
}

func TestAnUpgradeNeverHasFewerInstancesThanBefore(t *testing.T) {
	forEachValuesFile(t, func(t *testing.T, r *rendered) {
		t.Helper()
		s := r.deployment.Spec.Strategy
		if u := s.RollingUpdate; u == nil || u.MaxUnavailable.IntValue() != 0 || u.MaxSurge.IntValue() != 1 {
			t.Errorf("expected one new instance beside the old ones: %v", s)
		}
		// cmd/storestream/internal/instance gives the batch in hand 20 s.
		if got := *r.deployment.Spec.Template.Spec.TerminationGracePeriodSeconds; got < 30 {
			t.Errorf("a stop has %d s, and takes 20 s and what it takes to leave the group", got)
		}
	})
}

func TestNobodyIsLetInWithoutAPeer(t *testing.T) {
	r := render(t, valuesOf(t, "testdata/closed.yaml"))
	n := r.network.Spec
	if len(n.Ingress) != 0 || !slices.Contains(n.PolicyTypes, network.PolicyTypeIngress) {
		t.Errorf("expected a policy that lets nobody in: %+v", n)
	}
}

func TestAlertsAndDashboardAreThoseOfTheFolderDeploy(t *testing.T) {
	r := render(t, valuesOf(t, "testdata/secured.yaml"))
	alerts, err := os.ReadFile("../../deploy/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	var want monitoring.PrometheusRuleSpec
	if err := yaml.UnmarshalStrict(alerts, &want); err != nil {
		t.Fatal(err)
	}
	if len(want.Groups) == 0 || !reflect.DeepEqual(r.rule.Spec, want) {
		t.Errorf("the rules are not those of deploy/prometheus/alerts.yml: %+v", r.rule.Spec)
	}
	dashboard, err := os.ReadFile("../../deploy/grafana/storestream.json")
	if err != nil {
		t.Fatal(err)
	}
	got := r.dashboard.Data["storestream.json"]
	if strings.TrimSpace(got) != strings.TrimSpace(string(dashboard)) {
		t.Error("the dashboard is not that of deploy/grafana")
	}
}

// docs/operations.md, What bounds memory: of the container's limit a tenth, sweep.memory, and poll.memory for
// each resource that may fill it, of which the chart takes two to be.
func TestGOMEMLIMITIsByTheRule(t *testing.T) {
	size := func(t *testing.T, limit, poll, sweep string) (string, error) {
		t.Helper()
		values := valuesOf(t, "testdata/least.yaml")
		values["resources"] = map[string]any{"limits": map[string]any{"memory": limit}}
		config := values["config"].(map[string]any)
		if poll != "" {
			config["poll"], config["sweep"] = map[string]any{"memory": poll}, map[string]any{"memory": sweep}
		}
		files, err := texts(load(t), values)
		if err != nil {
			return "", err
		}
		return environment(t, files)["GOMEMLIMIT"], nil
	}
	for _, c := range []struct{ limit, poll, sweep, want string }{
		{"1Gi", "", "", "538MiB"}, // 1024 - 102 - 128 - 2 * 128: the "some 540MiB" of the document
		{"2Gi", "256MiB", "512MiB", "820MiB"},
		{"8Gi", "1GiB", "1GiB", "4301MiB"},
		{"600Mi", "65536KiB", "64MiB", "348MiB"},
	} {
		if got, err := size(t, c.limit, c.poll, c.sweep); err != nil || got != c.want {
			t.Errorf("with a limit of %s, poll.memory %q and sweep.memory %q GOMEMLIMIT is %q (%v), want %s",
				c.limit, c.poll, c.sweep, got, err, c.want)
		}
	}
	_, err := size(t, "512Mi", "", "")
	if err == nil || !strings.Contains(err.Error(), "leaves 77MiB") {
		t.Errorf("a limit that leaves too little is taken: %v", err)
	}
}

// environment is the variables of the instances' container.
func environment(t *testing.T, files map[string]string) map[string]string {
	t.Helper()
	r, err := decode(files)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, v := range r.deployment.Spec.Template.Spec.Containers[0].Env {
		all[v.Name] = v.Value
	}
	return all
}

func TestPrometheusIsNotSentWithoutTheToken(t *testing.T) {
	values := valuesOf(t, "testdata/secured.yaml")
	delete(values["serviceMonitor"].(map[string]any), "authorization")
	_, err := texts(load(t), values)
	if err == nil || !strings.Contains(err.Error(), "serviceMonitor.authorization") {
		t.Errorf("a ServiceMonitor without the token that http.token asks for: %v", err)
	}
}

func TestTheValuesAreExplained(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chartFolder, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for name := range load(t).Values {
		if !regexp.MustCompile(`(?m)^` + name + `:`).Match(text) {
			t.Errorf("values.yaml does not have %s", name)
		}
	}
}
