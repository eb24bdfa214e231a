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
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	network "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
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
	jobs       map[string]*batch.CronJob // by their command, what runs by a schedule
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
	return textsOf(c, values, release)
}

func textsOf(c *chart.Chart, values map[string]any, name string) (map[string]string, error) {
	options := chartutil.ReleaseOptions{Name: name, Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(c, values, options, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, all)
}

// decode takes what was rendered for what Kubernetes and Prometheus' operator take it for. A field that they
// do not know is an error.
func decode(files map[string]string) (*rendered, error) {
	r := &rendered{jobs: map[string]*batch.CronJob{}}
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
	case "batch/v1 CronJob":
		job := &batch.CronJob{}
		r.jobs[strings.TrimSuffix(file, ".yaml")] = job
		return job
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

// documented is the values that docs/deploying.md tells readers to begin with, and those together with each
// block that it has them add.
func documented(t *testing.T) map[string]map[string]any {
	t.Helper()
	text, err := os.ReadFile("../../docs/deploying.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)<!-- ((?:more )?values.*?) -->\n```yaml\n(.*?)```\n")
	first, all := map[string]any(nil), map[string]map[string]any{}
	for _, block := range blocks.FindAllStringSubmatch(string(text), -1) {
		values, err := chartutil.ReadValues([]byte(block[2]))
		if err != nil {
			t.Fatalf("%s: %v", block[1], err)
		}
		if first == nil {
			first = values
		}
		all["deploying.md, "+block[1]] = chartutil.CoalesceTables(values, first)
	}
	if len(all) != 4 {
		t.Fatalf("docs/deploying.md has %d blocks of values", len(all))
	}
	return all
}

// forEachValuesFile runs a test with each file in testdata, and with each block of values in
// docs/deploying.md.
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
	for name, values := range documented(t) {
		t.Run(name, func(t *testing.T) {
			test(t, render(t, values))
		})
	}
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
		"verify.yaml":              {"schedule", "concurrencyPolicy", "onPodConditions", "readOnlyRootFilesystem"},
		"check.yaml":               {"jobTemplate", "backoffLimit"},
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
	pods := []core.PodSpec{r.deployment.Spec.Template.Spec, r.check.Spec}
	for _, job := range r.jobs {
		pods = append(pods, job.Spec.JobTemplate.Spec.Template.Spec)
	}
	return pods
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
				if !volumes[m.Name] || paths[m.MountPath] || m.ReadOnly == (m.Name == "scratch") {
					t.Errorf("%s at %s: no such volume, twice, or may be written", m.Name, m.MountPath)
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

func TestSelectorsMeanTheInstancesAndNotTheCommands(t *testing.T) {
	forEachValuesFile(t, func(t *testing.T, r *rendered) {
		t.Helper()
		instance, commands := r.deployment.Spec.Template.Labels, []map[string]string{r.check.Labels}
		for _, job := range r.jobs {
			commands = append(commands, job.Spec.JobTemplate.Spec.Template.Labels)
		}
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
			if !selects(t, selector, instance) {
				t.Errorf("the selector of %s does not mean the instances: %v", name, selector)
			}
			for _, command := range commands {
				if selects(t, selector, command) {
					t.Errorf("the selector of %s means %v: %v", name, command, selector)
				}
			}
		}
		if n := r.network; n != nil {
			for _, pod := range append(commands, instance) {
				if s := n.Spec.PodSelector; !selects(t, &s, pod) {
					t.Errorf("the network policy does not mean %v: %v", pod, s)
				}
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
		config, err := chartutil.ReadValues([]byte(r.config.Data[configFile]))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := config.PathValue("http.tls.cert_file"); err == nil {
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

func TestWithoutAWordOfItThereIsAStandby(t *testing.T) {
	r := render(t, valuesOf(t, "testdata/least.yaml"))
	if got := *r.deployment.Spec.Replicas; got != 2 {
		t.Errorf("%d instances, expected 2", got)
	}
}

func TestADrainTakesOneInstanceAtATimeReadyOrNot(t *testing.T) {
	one, always := intstr.FromInt32(1), policy.AlwaysAllow
	forEachValuesFile(t, func(t *testing.T, r *rendered) {
		t.Helper()
		want := policy.PodDisruptionBudgetSpec{MaxUnavailable: &one, UnhealthyPodEvictionPolicy: &always,
			Selector: r.budget.Spec.Selector}
		if !reflect.DeepEqual(r.budget.Spec, want) {
			t.Errorf("the budget is %+v, expected %+v", r.budget.Spec, want)
		}
	})
}

func TestEachContainerGetsTheResourcesOfTheValues(t *testing.T) {
	least := core.ResourceList{"memory": resource.MustParse("1Gi")}
	most := core.ResourceList{"memory": resource.MustParse("4Gi")}
	for file, want := range map[string]core.ResourceRequirements{
		"least.yaml": {Limits: least, Requests: core.ResourceList{"cpu": resource.MustParse("200m"),
			"memory": least["memory"]}},
		"secured.yaml": {Limits: most, Requests: core.ResourceList{"cpu": resource.MustParse("1"),
			"memory": most["memory"]}},
	} {
		for _, pod := range render(t, valuesOf(t, "testdata/"+file)).pods() {
			if got := pod.Containers[0].Resources; !reflect.DeepEqual(got, want) {
				t.Errorf("%s: a container has %+v, expected %+v", file, got, want)
			}
		}
	}
}

func TestWhatNotEveryClusterKnowsIsMadeOnlyWhereItIsAskedFor(t *testing.T) {
	r := render(t, valuesOf(t, "testdata/least.yaml"))
	if r.monitor != nil || r.rule != nil || r.dashboard != nil {
		t.Errorf("without being asked for: %v, %v, %v", r.monitor, r.rule, r.dashboard)
	}
	r = render(t, valuesOf(t, "testdata/openshift.yaml"))
	if r.network != nil || r.monitor == nil || r.rule != nil || r.dashboard != nil {
		t.Errorf("expected a ServiceMonitor alone: %v, %v, %v, %v", r.network, r.monitor, r.rule, r.dashboard)
	}
}

func TestPodsThatMayConnectToSomePeersAloneMayAskDNS(t *testing.T) {
	if n := render(t, valuesOf(t, "testdata/least.yaml")).network.Spec; n.Egress != nil ||
		!slices.Equal(n.PolicyTypes, []network.PolicyType{network.PolicyTypeIngress}) {
		t.Errorf("without egress in the values: %+v", n)
	}
	n := render(t, valuesOf(t, "testdata/secured.yaml")).network.Spec
	udp, tcp := core.ProtocolUDP, core.ProtocolTCP
	port := func(number int32, protocol *core.Protocol) network.NetworkPolicyPort {
		n := intstr.FromInt32(number)
		return network.NetworkPolicyPort{Port: &n, Protocol: protocol}
	}
	want := []network.NetworkPolicyEgressRule{
		{Ports: []network.NetworkPolicyPort{port(53, &udp), port(53, &tcp)}},
		{To: []network.NetworkPolicyPeer{{IPBlock: &network.IPBlock{CIDR: "10.20.0.0/16"}}},
			Ports: []network.NetworkPolicyPort{port(6432, nil), port(9093, nil), port(443, nil)}},
	}
	if !reflect.DeepEqual(n.Egress, want) ||
		!slices.Equal(n.PolicyTypes, []network.PolicyType{network.PolicyTypeIngress, network.PolicyTypeEgress}) {
		t.Errorf("%v to %+v, expected also %+v", n.PolicyTypes, n.Egress, want)
	}
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
	for _, c := range []struct{ values, want, documented string }{
		// 1024 - 102 - 128 - 2 * 128
		{`{resources: {limits: {memory: 1Gi}}}`, "538MiB", "of 1 GiB and with the defaults %s"},
		{`{resources: {limits: {memory: 1536Mi}}, fullResources: 5}`, "615MiB", "of 1.5 GiB %s"},
		{`{resources: {limits: {memory: 2Gi}},
			config: {poll: {memory: 256MiB}, sweep: {memory: 512MiB}}}`, "820MiB", ""},
		{`{resources: {limits: {memory: 8Gi}},
			config: {poll: {memory: 1GiB}, sweep: {memory: 1GiB}}}`, "4301MiB", ""},
		{`{resources: {limits: {memory: 600Mi}},
			config: {poll: {memory: 65536KiB}, sweep: {memory: 64MiB}}}`, "348MiB", ""},
		{`{config: {resources: {orders: {enabled: false}, users: {enabled: true},
			products: {interval: 1m}}}}`, "538MiB", ""},
		{`{config: {resources: {orders: {enabled: false}, users: {enabled: false}}}, fullResources: 5,
			resources: {limits: {memory: 1536Mi}}}`, "871MiB", ""},
		{`{config: {resources: {orders: {enabled: false}, users: {enabled: false}, products: {enabled: false},
			shipments: {enabled: false}}}}`, "666MiB", ""},
		{`{goMemLimit: 700MiB}`, "700MiB", ""},
		{`{resources: {limits: {memory: 512Mi}}}`, "leaves 77MiB", ""},
		{`{fullResources: 5, config: {poll: {memory: 160MiB}}}`, "leaves -6MiB", ""},
		{`{goMemLimit: 1GiB}`, "goMemLimit of 1GiB leaves nothing", ""},
	} {
		values := valuesOf(t, "testdata/least.yaml")
		more, err := chartutil.ReadValues([]byte(c.values))
		if err != nil {
			t.Fatal(err)
		}
		files, err := texts(load(t), chartutil.CoalesceTables(more, values))
		if err != nil {
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, expected %s", c.values, err, c.want)
			}
			continue
		}
		if got := environment(t, files)["GOMEMLIMIT"]; got != c.want {
			t.Errorf("%s: GOMEMLIMIT is %s, expected %s", c.values, got, c.want)
		}
		notes := files["storestream/templates/NOTES.txt"]
		if !strings.Contains(notes, "GOMEMLIMIT is "+c.want+" of ") {
			t.Errorf("%s: the notes do not say %s:\n%s", c.values, c.want, notes)
		}
		if c.documented != "" {
			text, err := os.ReadFile("../../docs/operations.md")
			if err != nil {
				t.Fatal(err)
			}
			if said := fmt.Sprintf(c.documented, c.want); !strings.Contains(string(text), said) {
				t.Errorf("docs/operations.md does not say %q", said)
			}
		}
	}
}

// A Job that fails is what tells somebody: it must not be tried until it succeeds, nor fail because a node
// was drained. Kubernetes refuses a CronJob whose name has more than 52 letters.
func TestCommandsByAScheduleFailOnceAndByTheirExitStatus(t *testing.T) {
	if r := render(t, valuesOf(t, "testdata/least.yaml")); len(r.jobs) > 0 {
		t.Errorf("without being asked for: %v", r.jobs)
	}
	values := valuesOf(t, "testdata/secured.yaml")
	for _, name := range []string{release, strings.Repeat("long-", 10) + "one"} {
		files, err := textsOf(load(t), values, name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := decode(files)
		if err != nil {
			t.Fatal(err)
		}
		for command, schedule := range map[string]string{"verify": "0 3 * * 6", "check": "@weekly"} {
			job := r.jobs[command]
			if job == nil || job.Spec.Schedule != schedule || !strings.HasSuffix(job.Name, "-"+command) {
				t.Fatalf("%s: %+v", command, job)
			}
			if len(job.Name) > 52 {
				t.Errorf("%s has %d letters", job.Name, len(job.Name))
			}
			spec := job.Spec.JobTemplate.Spec
			pod, ignored := spec.Template.Spec, spec.PodFailurePolicy.Rules
			if *spec.BackoffLimit != 0 || pod.RestartPolicy != core.RestartPolicyNever || len(ignored) != 1 ||
				ignored[0].Action != batch.PodFailurePolicyActionIgnore ||
				ignored[0].OnPodConditions[0].Type != core.DisruptionTarget {
				t.Errorf("%s: %+v", command, spec)
			}
			if !slices.Equal(pod.Containers[0].Args, []string{command}) || *spec.ActiveDeadlineSeconds < 300 {
				t.Errorf("%s: %v, for %d s", command, pod.Containers[0].Args, *spec.ActiveDeadlineSeconds)
			}
		}
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

func TestThePageHasATokenUnlessTheValuesSayNone(t *testing.T) {
	values := valuesOf(t, "testdata/openshift.yaml")
	r := render(t, values)
	const path = "token: file:/etc/storestream/secrets/storestream/http-token"
	if text := r.config.Data[configFile]; !strings.Contains(text, path) {
		t.Errorf("the configuration has no token:\n%s", text)
	}
	credentials := r.monitor.Spec.Endpoints[0].Authorization
	if credentials == nil || credentials.Credentials.Name != "storestream" ||
		credentials.Credentials.Key != "http-token" {
		t.Errorf("Prometheus has %+v", credentials)
	}
	values["config"].(map[string]any)["http"] = map[string]any{"token": ""}
	r = render(t, values)
	if text := r.config.Data[configFile]; strings.Contains(text, path) ||
		r.monitor.Spec.Endpoints[0].Authorization != nil {
		t.Errorf("there is a token, and the values say none:\n%s", text)
	}
}

func TestALoginInTheAddressOfAProxyStandsInASecret(t *testing.T) {
	values := valuesOf(t, "testdata/least.yaml")
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY"} {
		for _, address := range []string{"http://me:geheim@proxy.example:3128", "me:geheim@proxy.example:3128"} {
			values["env"] = map[string]any{name: address}
			_, err := texts(load(t), values)
			if err == nil || strings.Contains(err.Error(), "geheim") || !strings.Contains(err.Error(), "env."+name) ||
				!strings.Contains(err.Error(), "secretKeyRef") {
				t.Errorf("%s=%s: %v", name, address, err)
			}
		}
	}
	values["env"] = map[string]any{"HTTPS_PROXY": map[string]any{
		"secretKeyRef": map[string]any{"name": "proxy", "key": "url"}}, "NO_PROXY": "registry.example"}
	for _, pod := range render(t, values).pods() {
		i := slices.IndexFunc(pod.Containers[0].Env, func(v core.EnvVar) bool { return v.Name == "HTTPS_PROXY" })
		if i < 0 {
			t.Fatal("no HTTPS_PROXY")
		}
		from := pod.Containers[0].Env[i].ValueFrom
		if from == nil || from.SecretKeyRef == nil || from.SecretKeyRef.Name != "proxy" ||
			from.SecretKeyRef.Key != "url" {
			t.Errorf("HTTPS_PROXY is %+v", pod.Containers[0].Env[i])
		}
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
