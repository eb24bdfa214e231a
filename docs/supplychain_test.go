package docs

import (
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// A module without a release has no version that anybody stands for, so each has a reason, or the name of
// what brings it, in decisions.md.
func TestDecisionsNameEachModuleWithoutARelease(t *testing.T) {
	_, rest, _ := strings.Cut(read(t, "decisions.md"), "\n### Dependencies without a release\n\n")
	paragraph, _, found := strings.Cut(rest, "\n\n")
	if !found {
		t.Fatal("decisions.md says nothing of dependencies without a release")
	}
	required := regexp.MustCompile(`(?m)^(?:require)?\s+(\S+) v0\.0\.0-`)
	for _, file := range []string{"../go.mod", "../lab/go.mod", "../examples/go/go.mod"} {
		for _, module := range required.FindAllStringSubmatch(read(t, file), -1) {
			parts := strings.Split(module[1], "/")
			name := strings.Join(parts[len(parts)-2:], "/") // as the page names it
			if !strings.Contains(paragraph, name) {
				t.Errorf("%s requires %s, which has no release; decisions.md does not say why", file, module[1])
			}
		}
	}
}

// workflow is what the tests read of a file in .github/workflows.
type workflow struct {
	Permissions any
	Jobs        map[string]job
}

type job struct {
	Needs       any // a name, or names
	Uses        string
	Permissions any
	Steps       []struct{ Uses, Run string }
}

func workflows(t *testing.T) map[string]workflow {
	t.Helper()
	files, err := filepath.Glob("../.github/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("workflows: %v, %v", files, err)
	}
	found := map[string]workflow{}
	for _, file := range files {
		var w workflow
		if err := yaml.Unmarshal([]byte(read(t, file)), &w); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		found[filepath.Base(file)] = w
	}
	return found
}

// Whoever may move a tag of an action gets into what uses it by that tag.
func TestWorkflowsNameActionsByDigestAndSayTheVersion(t *testing.T) {
	uses := regexp.MustCompile(`(?m)^[ -]*uses:(.*)$`)
	good := regexp.MustCompile(`^ (\./\S+|[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$`)
	for name := range workflows(t) {
		for _, line := range uses.FindAllStringSubmatch(read(t, "../.github/workflows/"+name), -1) {
			if !good.MatchString(line[1]) {
				t.Errorf("%s uses%s: expected a commit's digest, and its version behind #", name, line[1])
			}
		}
	}
}

// writes reports whether permissions let a job change anything or speak for the repository. Nil is what
// GitHub gives if a workflow says nothing, which may be everything.
func writes(permissions any) bool {
	rights, ok := permissions.(map[string]any)
	if !ok {
		return permissions != "read-all"
	}
	return slices.Contains(slices.Collect(maps.Values(rights)), any("write"))
}

// Code of the repository, of its modules and of its tools may not reach the rights with which releases are
// signed and uploaded.
func TestNoJobHasBothTheRepositoryAndTheRightToWrite(t *testing.T) {
	for name, w := range workflows(t) {
		for id, j := range w.Jobs {
			rights := j.Permissions
			if rights == nil {
				rights = w.Permissions
			}
			here := j.Uses != ""
			for _, step := range j.Steps {
				here = here || strings.HasPrefix(step.Uses, "actions/checkout@")
			}
			if here && writes(rights) {
				t.Errorf("%s: the job %s has the repository, and the rights %v", name, id, rights)
			}
		}
	}
}

func TestAReleaseIsTestedAsAChangeIsBeforeItIsBuilt(t *testing.T) {
	all := workflows(t)
	tests := false
	for _, step := range all["ci.yml"].Jobs["run"].Steps {
		tests = tests || step.Run == ".ci/run"
	}
	if !tests {
		t.Fatal("ci.yml does not run .ci/run")
	}
	jobs := all["release.yml"].Jobs
	var tested func(id string) bool
	tested = func(id string) bool {
		needs, _ := jobs[id].Needs.([]any)
		if one, ok := jobs[id].Needs.(string); ok {
			needs = []any{one}
		}
		return jobs[id].Uses == "./.github/workflows/ci.yml" ||
			slices.ContainsFunc(needs, func(need any) bool { return tested(need.(string)) })
	}
	for id := range jobs {
		if !tested(id) {
			t.Errorf("release.yml: nothing is tested before the job %s", id)
		}
	}
}

// ecosystems is what Dependabot calls those of whom a file says what is needed.
var ecosystems = map[string]string{
	"go.mod": "gomod", "package.json": "npm", "requirements.txt": "pip", "pom.xml": "maven",
	"Dockerfile": "docker", "docker-compose.yml": "docker-compose",
}

// What Dependabot is not told of keeps its version for good, with whatever is found in it.
func TestDependabotLooksAtWhateverNamesAVersion(t *testing.T) {
	var settings struct {
		Updates []struct {
			Ecosystem   string `yaml:"package-ecosystem"`
			Directories []string
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "../.github/dependabot.yml")), &settings); err != nil {
		t.Fatal(err)
	}
	told := map[string][]string{}
	for _, update := range settings.Updates {
		told[update.Ecosystem] = append(told[update.Ecosystem], update.Directories...)
	}
	there := map[string][]string{"github-actions": {"/"}}
	// What a build or an example has brought here is not ours.
	brought := []string{".git", ".cache", "dist", "bin", "node_modules", "venv", "target"}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && slices.Contains(brought, entry.Name()) {
			return fs.SkipDir
		}
		if ecosystem := ecosystems[filepath.Base(path)]; ecosystem != "" {
			folder := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "..")
			there[ecosystem] = append(there[ecosystem], "/"+strings.TrimPrefix(folder, "/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for ecosystem := range there {
		slices.Sort(there[ecosystem])
		slices.Sort(told[ecosystem])
		if !slices.Equal(told[ecosystem], there[ecosystem]) {
			t.Errorf("dependabot.yml has %s in %v, and versions are named in %v", ecosystem, told[ecosystem],
				there[ecosystem])
		}
	}
}
