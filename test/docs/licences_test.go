package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// deploy/tools writes the page, with the licences; this test is the quick one that everybody runs.
func TestThePageOfLicencesNamesWhatIsLinkedIn(t *testing.T) {
	page := pages(t)["docs/licences.md"]
	linked := map[string]bool{}
	for _, system := range []string{"linux", "darwin"} {
		cmd := exec.Command("go", "list", "-deps", "-f",
			"{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "./cmd/hooklock")
		cmd.Dir = filepath.FromSlash(root)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^(\S+) (\S+)$`).FindAllStringSubmatch(string(out), -1) {
			linked[m[1]+"@"+m[2]] = true
		}
	}
	rows := regexp.MustCompile(`(?m)^(\S+@v\S+)$`).FindAllStringSubmatch(page, -1)
	if len(rows) == 0 {
		t.Fatal("the page has no modules")
	}
	for _, row := range rows {
		if !linked[row[1]] {
			t.Errorf("%s is on the page, and not linked in: run make licences", row[1])
		}
		delete(linked, row[1])
	}
	for m := range linked {
		t.Errorf("%s is linked in, and not on the page: run make licences", m)
	}
}
