package docs

import (
	"io/fs"
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
	_, rest, _ := strings.Cut(read(t, "decisions.md"), "**Dependencies without a release")
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
